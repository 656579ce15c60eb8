#pragma once
// The samples that a minibatch is drawn from: all that are remembered, or after a change of the game those
// since.
//
// Two averages of the rewards of steps are kept: of the newest kNewest steps and of the newest kPast. The
// game has changed when the first lies below the second by kDeviations times as far as it usually does, and
// by kLeastDrop of the range of rewards. A player's new habit does that; a drop that belongs to each episode
// does not. Then minibatches come from the newest kNewest samples and those that follow: an earlier step
// tells the opposite, and a brain that avoids an action now has no newer one of it. Rewards that rise forget
// nothing. For kUnsettled steps agents choose at random too, at first kChangeEpsilon of their decisions, then
// fewer.
//
// P = brain_count, B = batch_size, K = samples that arrive.

#include <cstdint>

#include "compute/tensor/tensor.h"
#include "plugin/agent/learn/learn_graph.h"

namespace imprint::agent {

class Recall {
 public:
  static constexpr std::int32_t kNewest = 100, kPast = 2000;
  static constexpr float kDeviations = 6, kLeastDrop = 0.1f;
  static constexpr float kChangeEpsilon = 0.5f, kUnsettled = 500;

  // Adds its state. change_epsilon: Network::change_epsilon, or not ok().
  Recall(const BrainSpec& spec, const Variable& change_epsilon, LearnGraph& graph);

  // int32 [P, B]: rows of each brain's memory. Uses the generator's stream 0.
  Tensor draw(const Tensor& generator, const Tensor& filled) const;
  // rewards: float32 [P, K]; there: bool [P, K], 1 = a sample arrives.
  // Returns whether the game has changed, bool [P].
  Tensor take_in(const Tensor& rewards, const Tensor& there, std::vector<Update>& updates) const;

 private:
  std::int64_t brains_, batch_;
  std::int32_t capacity_;
  Variable change_epsilon_;
  Variable next_row_;          // int32 [P], that the next sample overwrites
  Variable since_;             // int32 [P] samples since the last change, or all
  Variable steps_;             // float32 [P] since the last change, at most kPast
  Variable newest_, past_;     // float32 [P], averages
  Variable distance_;          // float32 [P], mean square of past - newest where it is lower
  Variable lowest_, highest_;  // float32 [P], rewards seen
};

}  // namespace imprint::agent
