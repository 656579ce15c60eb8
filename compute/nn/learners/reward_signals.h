#pragma once
// Rewards that a learner gives itself, beside those of the game, for many brains of one shape at once.
//
//   novelty    mean of (f(s') - t(s'))^2: a network f learns a fixed random network t where agents go, and
//              errs where they seldom were. Burda, Edwards, Storkey, Klimov, Exploration by Random Network
//              Distillation, 2019.
//   surprise   mean of (g(p(s), a) - p(s'))^2: what was not foreseen, in features p that tell the action.
//              Loss: 0.8 of the action's error by i(p(s), p(s')), 0.2 of the forecast's. Pathak, Agrawal,
//              Efros, Darrell, Curiosity-driven Exploration by Self-supervised Prediction, 2017.
//   imitation  -log(1 - D), D = sigmoid(d(s, a)): how much a step looks like those shown. Loss: the
//              cross-entropy of telling them apart, and 10 times the mean of (|d'| - 1)^2 between them. Ho,
//              Ermon, Generative Adversarial Imitation Learning, 2016; Gulrajani et al., Improved Training of
//              Wasserstein GANs, 2017; Kostrikov et al., Discriminator-Actor-Critic, 2019.
//
// Networks read observations at one scale, at most 5. P = brains, n = any number of rows, D = observations,
// A = numbers of an action.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/nn/learners/action_distribution.h"
#include "compute/nn/optimisers/grouped_moments.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

struct SignalRows {
  Tensor observation, next_observation;  // float32 [P, n, D]
  Tensor known;                          // bool [P, n]: the next observation is known
  Tensor action;                         // float32 [P, n, A]: action_numbers
};

// discrete int32 [P, n, branches] and continuous float32 [P, n, continuous], as the space has them ->
// [P, n, A]: each branch as one number per choice, then the continuous numbers.
Tensor action_numbers(const ActionSpace& space, const Tensor& discrete, const Tensor& continuous);

struct SignalShape {
  std::string name = "signal";
  std::int64_t brains = 1, observations = 1, hidden = 64, features = 32;
  ActionSpace action = {};
  std::uint64_t seed = 0;  // brain p draws its first weights from seed + p
};

class RewardSignal {
 public:
  virtual ~RewardSignal() = default;

  virtual Tensor reward(const SignalRows& rows) const = 0;  // float32 [P, n], no gradient
  // float32 [P]. shown: rows of the same n to be like, of a signal that imitates. mix: float32 [P, n, 1], 0
  // to 1 at random.
  virtual Result<Tensor> loss(const SignalRows& rows, const SignalRows& shown, const Tensor& mix) const = 0;
  virtual bool imitates() const { return false; }

  const Parameters& learned() const { return learned_; }
  const Parameters& fixed() const { return fixed_; }

 protected:
  Parameters learned_, fixed_;
};

std::shared_ptr<RewardSignal> novelty(const SignalShape& shape);
std::shared_ptr<RewardSignal> surprise(const SignalShape& shape);
std::shared_ptr<RewardSignal> imitation(const SignalShape& shape, double penalty = 10);

struct SignalTerm {
  std::string name;
  std::shared_ptr<RewardSignal> signal;
  double strength = 1;
  double discount = 0.99;  // of learners that value each signal by itself
};

struct RewardSignalsOptions {
  std::string name = "signals";
  std::int64_t brains = 1, observations = 1;
  double learning_rate = 3e-4, max_gradient_norm = 10;
  double reward_strength = 1;  // of the game's rewards
};

// All signals of a learner: their scales, and one optimiser.
class RewardSignals {
 public:
  RewardSignals(RewardSignalsOptions options, std::vector<SignalTerm> terms);

  const std::vector<SignalTerm>& terms() const { return terms_; }
  double reward_strength() const { return options_.reward_strength; }
  bool imitates() const;

  // The moments of observations with these rows too; adds the updates that keep them. active: bool [P].
  GroupedMoments::Values watch(const Tensor& observation, const Tensor& active,
                               std::vector<Update>& updates) const;
  GroupedMoments::Values seen() const { return seen_.now(); }
  static SignalRows scaled(const SignalRows& rows, const GroupedMoments::Values& seen);

  // Rewards of one term for scaled rows, [P, n], without its strength. Curiosity, whose size says nothing, is
  // divided: in a rollout by the deviation of its discounted sums, as `sums` makes them of rewards; else by
  // its root mean square. At most kMost.
  static constexpr double kMost = 5;
  Tensor reward_in_rollout(std::size_t term, const SignalRows& rows,
                           const std::function<Tensor(const Tensor& reward)>& sums, const Tensor& active,
                           std::vector<Update>& updates) const;
  // The game's rewards and all terms by their strengths.
  Tensor total(const Tensor& reward, const SignalRows& rows, const Tensor& active,
               std::vector<Update>& updates) const;

  // One optimiser step of all networks, from scaled rows. Brains that are not active, or whose gradient is
  // not finite, keep theirs. can_imitate: bool [P], 1 = `shown` holds demonstrations; both empty where no
  // signal imitates. Uses one stream of the generator.
  Result<std::vector<Update>> learn(const SignalRows& rows, const SignalRows& shown,
                                    const Tensor& can_imitate, const Tensor& active, const Tensor& generator,
                                    std::uint32_t stream) const;

  const Parameters& state() const { return state_; }

 private:
  Parameters learned() const;

  RewardSignalsOptions options_;
  std::vector<SignalTerm> terms_;
  std::vector<GroupedMoments> scales_;  // of curiosity
  GroupedMoments seen_;
  Adam adam_;
  Parameters state_;
};

}  // namespace imprint::nn
