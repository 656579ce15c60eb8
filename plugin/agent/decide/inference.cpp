#include "plugin/agent/decide/inference.h"

#include <algorithm>
#include <cstring>

namespace imprint::agent {

std::uint32_t inference_slots(std::uint32_t action_latency_frames) { return action_latency_frames + 3; }

Inference::Inference(InferGraph graph, const BrainSpec& spec)
    : graph_(std::move(graph)),
      agents_per_brain_(spec.agents_per_brain),
      period_(spec.decision_period_frames),
      observation_count_(spec.observation.count),
      choice_count_(spec.action.choice_count()),
      continuous_count_(spec.action.continuous_count),
      value_count_(spec.action.output_count()),
      runs_(graph_.description.slots),
      branches_(spec.action.branch_sizes.size()) {}

Status Inference::compile(Runtime& runtime) {
  IMPRINT_ASSIGN(Program program, Program::compile(runtime, graph_.description));
  program_ = std::make_unique<Program>(std::move(program));
  for (std::uint32_t slot = 0; slot < program_->slot_count(); ++slot) {
    for (std::size_t i = 0; i < graph_.description.inputs.size(); ++i) {
      const std::span<std::byte> bytes = program_->input_bytes(slot, i);
      std::ranges::fill(bytes, std::byte{0});
    }
    // A seat that never asked is computed all the same; a choice must be allowed there too.
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
    if (!runs_[slot].under_way) return slot;
  return std::nullopt;
}

// Where all have a row it is the seat's; else that of its turn, in which it is alone.
std::uint32_t Inference::row_of(std::uint32_t seat) const {
  const std::uint32_t brain = seat / agents_per_brain_, agent = seat % agents_per_brain_;
  return brain * graph_.agents + (graph_.agents == agents_per_brain_ ? agent : agent / period_);
}

template <class T>
std::span<T> Inference::input(std::uint32_t slot, int index, std::uint32_t seat, std::size_t count) {
  const std::span<std::byte> bytes = program_->input_bytes(slot, static_cast<std::size_t>(index));
  return {reinterpret_cast<T*>(bytes.data()) + row_of(seat) * count, count};
}

template <class T>
std::span<const T> Inference::output(std::uint32_t slot, int index, std::uint32_t seat,
                                     std::size_t count) const {
  const std::span<const std::byte> bytes = program_->output_bytes(slot, static_cast<std::size_t>(index));
  return {reinterpret_cast<const T*>(bytes.data()) + row_of(seat) * count, count};
}

void Inference::begin(std::uint32_t slot) {
  for (const int flags : {graph_.active, graph_.reset})
    if (flags >= 0)
      std::ranges::fill(program_->input_bytes(slot, static_cast<std::size_t>(flags)), std::byte{0});
  for (const int rows : {graph_.sight_rows, graph_.action_rows})
    if (rows >= 0)
      std::ranges::fill(program_->input_bytes(slot, static_cast<std::size_t>(rows)), std::byte{0xFF});  // -1
}

void Inference::put(std::uint32_t slot, std::uint32_t seat, const Choice& choice) {
  if (choice.sight == 0)
    std::ranges::copy(choice.observation,
                      input<float>(slot, graph_.observation, seat, observation_count_).begin());
  if (graph_.place >= 0) input<std::int32_t>(slot, graph_.place, seat, 1)[0] = choice.place;
  if (graph_.action_rows >= 0)
    input<std::int32_t>(slot, graph_.action_rows, seat, 1)[0] = static_cast<std::int32_t>(seat);
  if (graph_.goal >= 0)
    input<std::int32_t>(slot, graph_.goal, seat, 1)[0] = static_cast<std::int32_t>(choice.goal);
  if (graph_.active >= 0) input<std::int32_t>(slot, graph_.active, seat, 1)[0] = 1;
}

std::span<std::int32_t> Inference::mask(std::uint32_t slot, std::uint32_t seat) {
  return graph_.mask < 0 ? std::span<std::int32_t>()
                         : input<std::int32_t>(slot, graph_.mask, seat, choice_count_);
}

std::span<float> Inference::noise(std::uint32_t slot, std::uint32_t seat) {
  return graph_.noise < 0 ? std::span<float>() : input<float>(slot, graph_.noise, seat, choice_count_);
}

void Inference::set_reset(std::uint32_t slot, std::uint32_t seat) {
  if (graph_.reset >= 0) input<std::int32_t>(slot, graph_.reset, seat, 1)[0] = 1;
}

void Inference::look(std::uint32_t slot, std::uint32_t seat, std::int32_t place, std::int32_t row) {
  if (graph_.place >= 0) input<std::int32_t>(slot, graph_.place, seat, 1)[0] = place;
  if (graph_.sight_rows >= 0) input<std::int32_t>(slot, graph_.sight_rows, seat, 1)[0] = row;
}

Inference::SeatAnswer Inference::answer(std::uint32_t slot, std::uint32_t seat) {
  for (std::size_t b = 0; b < graph_.branches.size(); ++b)
    branches_[b] = static_cast<std::uint32_t>(output<std::int32_t>(slot, graph_.branches[b], seat, 1)[0]);
  SeatAnswer answer;
  answer.branches = branches_;
  if (graph_.continuous >= 0)
    answer.continuous = output<float>(slot, graph_.continuous, seat, continuous_count_);
  if (graph_.values >= 0) answer.values = output<float>(slot, graph_.values, seat, value_count_);
  return answer;
}

}  // namespace imprint::agent
