#pragma once
// The programs that learn: take in new samples, learn from a minibatch a brain, clip, step; one run a
// minibatch.
//
// P = brain_count, B = batch_size, C = replay_capacity, K = rows_per_step, W = sample width (replay.h).

#include <vector>

#include "compute/program/bake.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "plugin/agent/learn/replay.h"
#include "plugin/agent/network.h"

namespace imprint::agent {

struct LearnGraph {
  // Inputs.
  static constexpr std::size_t kFilled =
      0;  // int32 [P]: samples to learn from; 0 = this brain does not learn now
  static constexpr std::size_t kRows =
      1;  // int32 [P * K]: where the new samples go, a row of the replay variable each; -1 = nowhere
  static constexpr std::size_t kValues = 2;  // float32 [P * K, W]: the new samples
  static constexpr std::size_t kSights =
      3;  // int32 [P * K]: row of the ring of sights that has the observation; -1 = it is in the sample
  // Outputs.
  static constexpr std::size_t kLoss = 0;  // float32 [P]

  bool has_sights = false;         // else there is no input kSights
  ProgramDescription description;  // one step,
  ProgramSequence sequence;        // or where this has parts a whole update
  std::uint32_t minibatches = 1;   // of a run
  std::vector<StateVariable>
      state;  // beside the network's parameters: of the optimiser and the learner, replay memory, generator
  std::vector<Variable> work;  // nothing that outlasts a run

  std::uint32_t slots() const { return sequence.parts.empty() ? description.slots : sequence.slots; }
  Result<Program> compile(Runtime& runtime) const;  // any thread
  Status bake(Baker& baker, Baker::Groups groups, std::span<const Variable> apart) const;
};

// The tensors of a learn program's inputs, in their order; `sights` is not ok() where there is no ring.
struct LearnInputs {
  Tensor filled, rows, samples, sights;
};

// Learners with a memory draw a minibatch from it as it was before the run: what is taken in now is learned
// from the next run on. objective.h says what for; the mean over the minibatch, then each brain by itself:
// gradient cut to max_gradient_norm, Adam (Kingma and Ba, 2015) with beta 0.9 and 0.999. The others learn
// from what is taken in: trace_graph.h, rollout_graph.h.
//
// A brain whose loss or gradient is not finite, or that has no samples, keeps weights and moments as they
// are. sights: the ring (sight.h), or a variable that is not ok().
Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network,
                                     const Variable& sights = {});
// The same on samples that lie on the device, for whoever has them there: the description has no inputs and
// computes from what is given, of their shapes.
Result<LearnGraph> describe_learning_from(const BrainSpec& spec, const Network& network,
                                          const LearnInputs& given, const Variable& sights = {});

}  // namespace imprint::agent
