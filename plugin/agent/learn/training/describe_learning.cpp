#include "plugin/agent/learn/training/describe_learning.h"

#include "compute/program/loop_parts.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/demonstration_memory.h"
#include "plugin/agent/learn/samples/samples.h"

namespace imprint::agent {
namespace {

// Fetches the observations that are in the ring. Samples come out as the learner reads them, [P * K, W].
LearnInputs take_in(const BrainSpec& spec, const SampleLayout& layout, LearnInputs given,
                    const Variable& copies) {
  if (!copies.ok()) return given;
  const std::int64_t width = spec.observation.width();
  const auto seen = [&](std::uint32_t first, const Tensor& rows) {
    const Tensor copied = take(copies.value(), 0, maximum(rows, 0));
    return where(greater_equal(unsqueeze(rows, 1), 0), copied, narrow(given.samples, 1, first, width));
  };
  std::int64_t at = width;  // the observation comes first
  std::vector<Tensor> columns{seen(layout.observation, given.copy_rows)};
  const auto as_given = [&](std::int64_t end) {
    if (end > at) columns.push_back(narrow(given.samples, 1, at, end - at));
    at = end;
  };
  if (given.next_copy_rows.ok()) {
    as_given(layout.next_observation);
    columns.push_back(seen(layout.next_observation, given.next_copy_rows));
    at += width;
  }
  as_given(layout.width);
  given.samples = concat(columns, 1);
  return given;
}

// The weights from before the step, as agents act by them until it ends.
void keep_weights(const Network& network, const Network& pool, const Tensor& rows,
                  std::vector<Update>& updates) {
  const auto keep = [&](const Variable& from, const Variable& to) {
    updates.push_back(Update::scatter_rows(to, rows, from.value()));
  };
  for (std::size_t i = 0; i < network.parameters().size(); ++i)
    keep(network.parameters()[i].variable, pool.parameters()[i].variable);
  if (network.log_deviation().ok()) keep(network.log_deviation(), pool.log_deviation());
}

}  // namespace

Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network, const Variable& copies,
                                     const Network* pool) {
  const std::int64_t rows = std::int64_t{spec.brain_count} * rows_per_step(spec);
  const std::int64_t width = learner_of(spec).layout(spec).width;
  LearnInputs inputs{input("filled", {spec.brain_count}, DType::int32),
                     input("rows", {rows}, DType::int32),
                     input("samples", {rows, width}),
                     {},
                     {},
                     {},
                     {}};
  const bool draws_newest = learner_of(spec).draws_newest();
  if (draws_newest) inputs.next_row = input("next row", {spec.brain_count}, DType::int32);
  if (copies.ok()) inputs.copy_rows = input("copy rows", {rows}, DType::int32);
  if (copies.ok() && learner_of(spec).needs_next())
    inputs.next_copy_rows = input("next copy rows", {rows}, DType::int32);
  if (spec.keeps_demonstrations()) {
    inputs.demonstrations = input(
        "demonstrations",
        {std::int64_t{spec.brain_count} * spec.demonstration_capacity, demonstration_layout(spec).width});
    inputs.demonstration_filled = input("demonstrations filled", {spec.brain_count}, DType::int32);
  }
  IMPRINT_ASSIGN(LearnGraph graph, describe_learning_from(spec, network, inputs, copies));
  graph.description.inputs = {inputs.filled, inputs.rows, inputs.samples};
  for (const Tensor& copied : {inputs.copy_rows, inputs.next_copy_rows})
    if (copied.ok()) graph.description.inputs.push_back(copied);
  if (spec.keeps_demonstrations()) {
    graph.demonstrations = graph.description.inputs.size();
    graph.description.inputs.push_back(inputs.demonstrations);
    graph.description.inputs.push_back(inputs.demonstration_filled);
  }
  if (draws_newest) {
    graph.next_row = graph.description.inputs.size();
    graph.description.inputs.push_back(inputs.next_row);
  }
  if (pool) {
    graph.kept = graph.description.inputs.size();
    const Tensor entries = input("kept", {spec.brain_count}, DType::int32);
    graph.description.inputs.push_back(entries);
    keep_weights(network, *pool, entries,
                 graph.sequence.parts.empty() ? graph.description.updates
                                              : graph.sequence.parts.back().description.updates);
  }
  for (ProgramPart& part : graph.sequence.parts) part.description.inputs = graph.description.inputs;
  // The loops' own variables lie with the brain's, so that baked kernels find them there.
  const auto known = static_cast<std::ptrdiff_t>(graph.sequence.own.size());
  IMPRINT_ASSIGN(graph.sequence, program::without_loops(graph.sequence));
  graph.work.insert(graph.work.end(), graph.sequence.own.begin() + known, graph.sequence.own.end());
  return graph;
}

Result<LearnGraph> describe_learning_from(const BrainSpec& spec, const Network& network,
                                          const LearnInputs& given, const Variable& copies) {
  const Learner& learner = learner_of(spec);
  LearnInputs taken = take_in(spec, learner.layout(spec), given, copies);
  const Tensor rollout = taken.samples;
  Variable stored;
  if (copies.ok() && learner.collects_rollouts()) {
    stored = Variable::zeros("rollout", rollout.shape());
    taken.samples = stored.value();
  }
  LearnGraph graph;
  graph.description.name = spec.name + " learn";
  graph.description.slot_count = learn_slots(spec.learn_period_frames);
  graph.description.yields = true;
  graph.has_observation_copies = copies.ok();
  graph.has_next_copies = given.next_copy_rows.ok();
  IMPRINT_CHECK(learner.describe(spec, network, taken, graph));
  if (stored.ok()) {
    if (graph.sequence.parts.empty())
      return make_error(ErrorCode::internal, spec.name + ": found one learn step, expected a sequence");
    // Fetched once: the minibatches are then the kernels that samples without copies have, to the same bits.
    graph.sequence.parts.front().description.updates.push_back(Update::assign(stored, rollout));
    graph.sequence.own.push_back(stored);
    graph.work.push_back(stored);
  }
  if (!graph.sequence.parts.empty()) {
    graph.sequence.name = graph.description.name;
    graph.sequence.slot_count = graph.description.slot_count;
  }
  return graph;
}

}  // namespace imprint::agent
