#include "plugin/agent/spec/brain_spec.h"

#include <algorithm>

#include "plugin/agent/spec/encoder.h"
#include "plugin/agent/spec/learner_traits.h"

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
  return action.output_count() + (network_traits(*this).squashed_actions ? action.continuous_count : 0);
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
