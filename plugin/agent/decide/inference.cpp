#include "plugin/agent/decide/inference.h"

#include <algorithm>
#include <cstring>

#include "compute/base/saturated.h"
#include "compute/base/text.h"

namespace imprint::agent {

std::uint32_t inference_slots(std::uint32_t action_latency_frames) {
  return (action_latency_frames > 0 ? action_latency_frames : kMostChosenLatency) + 3;
}

Inference::Inference(InferGraph graph, const BrainSpec& spec)
    : graph_(std::move(graph)),
      agents_per_brain_(spec.agents_per_brain),
      period_(spec.decision_period_frames),
      observation_count_(spec.observation.width()),
      choice_count_(spec.action.choice_count()),
      continuous_count_(spec.action.continuous_count),
      value_count_(spec.action.output_count()),
      state_count_(spec.state_count()),
      runs_(graph_.description.slot_count),
      branches_(spec.action.branch_sizes.size()) {}

Result<> Inference::compile(Runtime& runtime) {
  IMPRINT_ASSIGN(Program program, Program::compile(runtime, graph_.description));
  // Before anything runs it.
  if (const std::uint64_t found = saturated_sum(program.stats().work, program.stats().bytes_moved);
      found > graph_.most_operations)
    return make_error(
        ErrorCode::unsupported,
        text("context_warmup: policy '", graph_.description.name, "': found ", found,
             " operations and bytes moved per run, expected at most ", graph_.most_operations,
             ", which is operation_limit of each agent. Use a smaller model, or raise the limit "
             "if you trust the file"));
  program_ = std::make_unique<Program>(std::move(program));
  for (std::uint32_t slot = 0; slot < program_->slot_count(); ++slot) {
    for (std::size_t i = 0; i < graph_.description.inputs.size(); ++i) {
      const std::span<std::byte> bytes = program_->input_bytes(slot, i);
      std::ranges::fill(bytes, std::byte{0});
    }
    // Agents that never ask are computed too, and need an allowed choice.
    if (graph_.mask >= 0) {
      const std::span<std::byte> bytes = program_->input_bytes(slot, static_cast<std::size_t>(graph_.mask));
      const std::int32_t one = 1;
      for (std::size_t at = 0; at < bytes.size(); at += sizeof one)
        std::memcpy(bytes.data() + at, &one, sizeof one);
    }
  }
  return {};
}

std::optional<std::uint32_t> Inference::free_slot() const {
  for (std::uint32_t slot = 0; slot < runs_.size(); ++slot)
    if (!runs_[slot].in_flight) return slot;
  return std::nullopt;
}

// Each agent has a row, or where only those of one turn have rows, its row in that turn.
std::uint32_t Inference::row_of(std::uint32_t agent) const {
  const std::uint32_t brain = agent / agents_per_brain_, of_brain = agent % agents_per_brain_;
  return brain * graph_.agents + (graph_.agents == agents_per_brain_ ? of_brain : of_brain / period_);
}

template <class T>
std::span<T> Inference::input(std::uint32_t slot, int index, std::uint32_t agent, std::size_t count) {
  const std::span<std::byte> bytes = program_->input_bytes(slot, static_cast<std::size_t>(index));
  return {reinterpret_cast<T*>(bytes.data()) + row_of(agent) * count, count};
}

template <class T>
std::span<const T> Inference::output(std::uint32_t slot, int index, std::uint32_t agent,
                                     std::size_t count) const {
  const std::span<const std::byte> bytes = program_->output_bytes(slot, static_cast<std::size_t>(index));
  return {reinterpret_cast<const T*>(bytes.data()) + row_of(agent) * count, count};
}

void Inference::begin(std::uint32_t slot) {
  for (const int flags : {graph_.active, graph_.reset})
    if (flags >= 0)
      std::ranges::fill(program_->input_bytes(slot, static_cast<std::size_t>(flags)), std::byte{0});
  for (const int rows : {graph_.copy_rows, graph_.action_rows, graph_.stacked})
    if (rows >= 0)
      std::ranges::fill(program_->input_bytes(slot, static_cast<std::size_t>(rows)), std::byte{0xFF});  // -1
}

void Inference::put(std::uint32_t slot, std::uint32_t agent, const Choice& choice, std::int32_t entry) {
  if (choice.copy_number == 0)
    std::ranges::copy(choice.observation,
                      input<float>(slot, graph_.observation, agent, observation_count_).begin());
  if (graph_.offset >= 0) input<std::int32_t>(slot, graph_.offset, agent, 1)[0] = choice.offset;
  if (graph_.action_rows >= 0)
    input<std::int32_t>(slot, graph_.action_rows, agent, 1)[0] = static_cast<std::int32_t>(agent);
  if (graph_.goal >= 0)
    input<std::int32_t>(slot, graph_.goal, agent, 1)[0] = static_cast<std::int32_t>(choice.goal);
  if (graph_.active >= 0) input<std::int32_t>(slot, graph_.active, agent, 1)[0] = 1;
  if (graph_.opponent >= 0) input<std::int32_t>(slot, graph_.opponent, agent, 1)[0] = entry;
}

std::span<std::int32_t> Inference::mask(std::uint32_t slot, std::uint32_t agent) {
  return graph_.mask < 0 ? std::span<std::int32_t>()
                         : input<std::int32_t>(slot, graph_.mask, agent, choice_count_);
}

std::span<float> Inference::noise(std::uint32_t slot, std::uint32_t agent) {
  return graph_.noise < 0 ? std::span<float>() : input<float>(slot, graph_.noise, agent, choice_count_);
}

std::span<float> Inference::random_choice(std::uint32_t slot, std::uint32_t agent) {
  return graph_.random_choice < 0 ? std::span<float>() : input<float>(slot, graph_.random_choice, agent, 2);
}

std::span<float> Inference::drift(std::uint32_t slot, std::uint32_t agent) {
  return graph_.drift < 0 ? std::span<float>() : input<float>(slot, graph_.drift, agent, continuous_count_);
}

void Inference::set_reset(std::uint32_t slot, std::uint32_t agent) {
  if (graph_.reset >= 0) input<std::int32_t>(slot, graph_.reset, agent, 1)[0] = 1;
}

void Inference::copy_observation(std::uint32_t slot, std::uint32_t agent, std::int32_t offset,
                                 std::int32_t row, std::int32_t stacked) {
  if (graph_.offset >= 0) input<std::int32_t>(slot, graph_.offset, agent, 1)[0] = offset;
  if (graph_.copy_rows >= 0) input<std::int32_t>(slot, graph_.copy_rows, agent, 1)[0] = row;
  if (graph_.stacked >= 0) input<std::int32_t>(slot, graph_.stacked, agent, 1)[0] = stacked;
}

Inference::AgentAnswer Inference::answer(std::uint32_t slot, std::uint32_t agent) {
  for (std::size_t b = 0; b < graph_.branches.size(); ++b)
    branches_[b] = static_cast<std::uint32_t>(output<std::int32_t>(slot, graph_.branches[b], agent, 1)[0]);
  AgentAnswer answer;
  answer.branches = branches_;
  if (graph_.continuous >= 0)
    answer.continuous = output<float>(slot, graph_.continuous, agent, continuous_count_);
  if (graph_.values >= 0) answer.values = output<float>(slot, graph_.values, agent, value_count_);
  if (graph_.state >= 0) answer.state = output<float>(slot, graph_.state, agent, state_count_);
  if (graph_.log_deviation >= 0) {
    const std::span<const std::byte> bytes =
        program_->output_bytes(slot, static_cast<std::size_t>(graph_.log_deviation));
    const std::size_t first = std::size_t{agent / agents_per_brain_} * continuous_count_;
    answer.log_deviation = {reinterpret_cast<const float*>(bytes.data()) + first, continuous_count_};
  }
  return answer;
}

}  // namespace imprint::agent
