#include "plugin/agent/spec/brain_spec.h"

#include <algorithm>

#include "plugin/agent/spec/encoder.h"

namespace imprint::agent {

std::uint64_t StreamSpec::numbers() const {
  switch (kind) {
    case StreamKind::picture:
      return std::uint64_t{channels} * height * width;
    case StreamKind::entities:
      return 1 + std::uint64_t{count} * features;
    case StreamKind::vector:
    case StreamKind::ids:
      break;
  }
  return count;
}

std::uint32_t StreamSpec::outputs() const {
  constexpr std::uint32_t kPicture = 128, kLargePicture = 512, kEntities = 64, kId = 16;
  if (size > 0) return size;
  if (kind == StreamKind::picture) return is_large_picture(*this) ? kLargePicture : kPicture;
  return kind == StreamKind::entities ? kEntities : kId;
}

std::uint64_t ObservationSpec::encoded_count() const {
  if (streams.empty()) return width();
  std::uint64_t sum = 0;
  for (const StreamSpec& stream : streams) {
    const std::uint64_t numbers = std::uint64_t{stream.count} * stack;
    if (stream.kind == StreamKind::vector) sum += numbers;
    if (stream.kind == StreamKind::ids) sum += numbers * stream.outputs();
    if (stream.kind == StreamKind::picture || stream.kind == StreamKind::entities) sum += stream.outputs();
  }
  return sum;
}

std::uint32_t ActionSpec::choice_count() const {
  std::uint32_t sum = 0;
  for (const std::uint32_t size : branch_sizes) sum += size;
  return sum;
}

std::uint32_t ActionSpec::output_count() const { return choice_count() + continuous_count; }

std::uint32_t ActionSpec::branch_offset(std::size_t branch) const {
  std::uint32_t offset = 0;
  for (std::size_t b = 0; b < branch; ++b) offset += branch_sizes[b];
  return offset;
}

std::vector<std::uint32_t> BrainSpec::layer_sizes() const {
  std::vector<std::uint32_t> sizes{static_cast<std::uint32_t>(observation.encoded_count())};
  sizes.insert(sizes.end(), hidden_sizes.begin(), hidden_sizes.end());
  if (has_cell()) sizes.push_back(cell_size);
  sizes.push_back(goal_count * head_count());
  return sizes;
}

std::uint32_t BrainSpec::head_count() const {
  return action.output_count() + (learner == LearnerKind::sac ? action.continuous_count : 0);
}

std::uint64_t BrainSpec::parameter_count() const {
  const std::vector<std::uint32_t> sizes = layer_sizes();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::uint64_t in = sizes[i], out = sizes[i + 1];
    if (has_cell() && i + 3 == sizes.size())
      count += (in + out + 2) * gate_count() * out;
    else
      count += (in + 1) * out;
  }
  for (const EncoderPart& part : encoder_parts(observation))
    count += static_cast<std::uint64_t>(part.rows * part.columns);
  return count * brain_count;
}

BrainSpec completed(BrainSpec spec) {
  constexpr std::uint64_t kRolloutPerAgent = 32, kLeastRollout = 512, kMostRollout = 16384;
  constexpr std::uint32_t kLeastBatch = 64, kLeastSequences = 4, kRandomRollouts = 8;
  if (!spec.has_rollouts()) return spec;
  if (!spec.observation.streams.empty() || spec.group_size > 0) spec.normalise_observations = false;
  const std::uint32_t unit = spec.has_cell() ? std::max(1u, spec.sequence_steps) : 1;
  const auto wanted_batch = [&](std::uint32_t rollout) {
    const std::uint32_t sequences = spec.has_cell() ? kLeastSequences * unit : 0;
    return std::max({rollout / 8, kLeastBatch, sequences});
  };
  const auto rounded_up = [](std::uint64_t value, std::uint32_t to) {
    return static_cast<std::uint32_t>((value + to - 1) / to * to);
  };
  const auto least = [](std::uint64_t value) {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(value, 1));
  };
  if (spec.rollout_steps == 0) {
    spec.rollout_steps = static_cast<std::uint32_t>(
        std::clamp(kRolloutPerAgent * spec.agents_per_brain, kLeastRollout, kMostRollout));
    if (spec.batch_size == 0 && spec.has_cell())
      spec.batch_size = rounded_up(wanted_batch(spec.rollout_steps), unit);
    // Whole minibatches.
    if (spec.batch_size > 0) spec.rollout_steps = rounded_up(spec.rollout_steps, spec.batch_size);
  }
  if (spec.batch_size == 0) {
    spec.batch_size = least(std::min(wanted_batch(spec.rollout_steps), spec.rollout_steps));
    const auto fits = [&] {
      return spec.rollout_steps % spec.batch_size == 0 && spec.batch_size % unit == 0;
    };
    if (spec.rollout_steps > kMaxSize) spec.batch_size = spec.rollout_steps;  // out of range
    while (spec.batch_size < spec.rollout_steps && !fits()) ++spec.batch_size;
  }
  if (spec.learn_period_frames == 0) {
    const std::uint64_t minibatches = std::uint64_t{spec.rollout_steps} / spec.batch_size * spec.epochs;
    const std::uint64_t frames = spec.rollout_steps / spec.agents_per_turn();
    spec.learn_period_frames = least(std::min(minibatches, frames / 4));
  }
  if (spec.learner == LearnerKind::pqn && spec.epsilon_decisions == 0)
    spec.epsilon_decisions = kRandomRollouts * std::min(spec.rollout_steps, kMaxSize);
  return spec;
}

const char* curiosity_name(Curiosity curiosity) {
  return curiosity == Curiosity::novelty ? "novelty" : "surprise";
}

const char* stream_name(StreamKind kind) {
  switch (kind) {
    case StreamKind::vector:
      return "vector";
    case StreamKind::picture:
      return "picture";
    case StreamKind::entities:
      return "entities";
    case StreamKind::ids:
      return "ids";
  }
  return "unknown";
}

const char* cell_name(Cell cell) {
  switch (cell) {
    case Cell::none:
      return "none";
    case Cell::gru:
      return "gru";
    case Cell::lstm:
      return "lstm";
  }
  return "unknown";
}

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::tanh:
      return "tanh";
    case Activation::silu:
      return "silu";
    case Activation::elu:
      return "elu";
    case Activation::gelu:
      return "gelu";
  }
  return "unknown";
}

}  // namespace imprint::agent
