#pragma once
// The program that learns: takes in new samples, computes losses and gradients, steps each brain's weights.
// learn/training/describe_learning.h makes one.
//
// P = brain_count, K = rows_per_step (learn/samples/samples.h), W = width of a sample
// (learn/sample_layout.h).

#include <span>
#include <utility>
#include <vector>

#include "compute/nn/parameter.h"
#include "compute/program/bake.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "plugin/agent/learn/metrics.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

struct LearnGraph {
  // ---- inputs ----
  // int32 [P]: samples to learn from; 0 = this brain does not learn in this step.
  static constexpr std::size_t kFilled = 0;
  // int32 [P * K]: row of the replay memory that each new sample goes to; -1 = none.
  static constexpr std::size_t kRows = 1;
  // float32 [P * K, W]: the new samples.
  static constexpr std::size_t kValues = 2;
  // int32 [P * K]: row of the observation copies that holds the observation; -1 = it is in the sample.
  static constexpr std::size_t kCopyRows = 3;
  // The same of the next observation; only where samples hold one.
  static constexpr std::size_t kNextCopyRows = 4;
  // ---- outputs ----
  static constexpr std::size_t kLoss = 0;     // float32 [P]
  static constexpr std::size_t kMetrics = 1;  // float32 [P, metrics]; only where a learner has some

  std::vector<Metric> metrics;

  // Index of an input, 0: there is none. float32 [P * C, W]: what was shown
  // (learn/samples/demonstration_memory.h), and after it int32 [P]: how many rows of each brain count in this
  // step.
  std::size_t demonstrations = 0;
  // Index of an input, 0: there is none. int32 [P]: the row of each brain's memory that its next sample goes
  // to.
  std::size_t next_row = 0;
  // Index of an input, 0: there is none. int32 [P]: the row of the pool that gets the network's weights,
  // -1 = none.
  std::size_t kept = 0;
  bool has_observation_copies = false;  // false: there is no input kCopyRows
  bool has_next_copies = false;         // false: there is no input kNextCopyRows
  ProgramDescription description;       // one learn step, or
  ProgramSequence sequence;             // where it has parts, a whole update
  std::uint32_t minibatches = 1;        // per run
  std::vector<StateVariable> state;     // beside the network's parameters; saved
  std::vector<Variable> work;           // holds nothing between runs

  std::uint32_t slot_count() const {
    return sequence.parts.empty() ? description.slot_count : sequence.slot_count;
  }
  Result<Program> compile(Runtime& runtime) const;  // any thread
  Result<> bake(Baker& baker, Baker::Groups groups, std::span<const Variable> apart) const;
};

// The tensors of the inputs. Rows of copies are not ok() where there is no such input.
struct LearnInputs {
  Tensor filled, rows, samples, copy_rows, next_copy_rows;
  Tensor demonstrations = {}, demonstration_filled = {};  // LearnGraph::demonstrations
  Tensor next_row = {};                                   // LearnGraph::next_row
};

// Makes `working` state of the graph that changes in the last part of the sequence only. The parts before
// work on copies, which a first part of its own takes. Between two parts the state is that from before the
// run, so that it does not depend on how a run is sliced.
void publish_at_end(LearnGraph& graph, const nn::Parameters& working);

// Makes the output kMetrics. float32 [P] each. After the output kLoss.
void add_metrics(std::span<const std::pair<Metric, Tensor>> metrics, LearnGraph& graph);

// Slots of a learn program: enough that a host which reports completed frames late never delays a step.
std::uint32_t learn_slots(std::uint32_t learn_period_frames);

// BrainSpec::max_gradient_norm as the clip takes it: 0 becomes the largest float.
double max_gradient_norm(const BrainSpec& spec);

}  // namespace imprint::agent
