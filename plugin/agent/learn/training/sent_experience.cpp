#include "plugin/agent/learn/training/sent_experience.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "compute/base/text.h"
#include "plugin/agent/learn/registry.h"

namespace imprint::agent {
namespace {

using SampleAddress = std::array<std::uint32_t, 2>;  // brain, agent

std::uint64_t sample_bytes(const BrainSpec& spec) {
  return sizeof(SampleAddress) + std::uint64_t{learner_of(spec).layout(spec).width} * sizeof(float);
}

bool is_index(float value, std::uint32_t size) {
  return value >= 0 && value < static_cast<float>(size) && value == std::floor(value);
}

// Kernels index by these columns, and numbers that are not finite would stop the brain.
Result<> check_sample(const BrainSpec& spec, const SampleLayout& layout, std::uint64_t index,
                      const SampleAddress& address, std::span<const float> row) {
  const auto wrong = [&](const std::string& field, const std::string& found, const std::string& expected) {
    return make_error(ErrorCode::invalid_argument,
                      text("brain_give_experience: sample ", index, " of agent ", address[1], ": ", field,
                           ": found ", found, ", expected ", expected, "."));
  };
  if (address[0] >= spec.brain_count)
    return wrong("brain", text(address[0]), text("less than ", spec.brain_count));
  if (address[1] / spec.agents_per_brain != address[0])
    return wrong("agent", text(address[1]), text("one of brain ", address[0]));
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!std::isfinite(row[i])) return wrong(text("number ", i), text(row[i]), "a finite number");
  if (!is_index(row[layout.goal], spec.goal_count))
    return wrong("goal", text(row[layout.goal]), text("less than ", spec.goal_count));
  if (layout.next_goal > 0 && !is_index(row[layout.next_goal], spec.goal_count))
    return wrong("next goal", text(row[layout.next_goal]), text("less than ", spec.goal_count));
  if (layout.source > 0 && !is_index(row[layout.source], kLabelSources))
    return wrong("source", text(row[layout.source]), text("less than ", kLabelSources));
  if (layout.target > 0 && std::abs(row[layout.target]) > 1)
    return wrong("target", text(row[layout.target]), "-1 to 1");
  if (layout.weight > 0 && row[layout.weight] < 0)
    return wrong("weight", text(row[layout.weight]), "0 or more");
  for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b)
    if (!is_index(row[layout.branches + b], spec.action.branch_sizes[b]))
      return wrong(text("choice of branch ", b), text(row[layout.branches + b]),
                   text("less than ", spec.action.branch_sizes[b]));
  return {};
}

}  // namespace

std::uint64_t waiting_bytes(const BrainSpec& spec, const SampleQueue& waiting) {
  std::uint64_t count = 0;
  for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain) count += waiting.size(brain);
  return count * sample_bytes(spec);
}

void take_waiting(const BrainSpec& spec, SampleQueue& waiting, std::span<std::byte> into) {
  for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain) {
    for (std::uint32_t k = 0; k < waiting.size(brain); ++k) {
      const SampleAddress address{brain, waiting.copy(brain, k).agent};
      const std::span<const float> row = waiting.row(brain, k);
      std::memcpy(into.data(), address.data(), sizeof address);
      std::memcpy(into.data() + sizeof address, row.data(), row.size_bytes());
      into = into.subspan(sizeof address + row.size_bytes());
    }
    waiting.pop(brain, waiting.size(brain));
  }
}

Result<std::optional<std::uint64_t>> put_waiting(const BrainSpec& spec, SampleQueue& waiting,
                                                 std::uint32_t source, std::span<const std::byte> from) {
  const std::uint64_t each = sample_bytes(spec);
  if (from.size() % each != 0)
    return make_error(ErrorCode::invalid_argument, text("brain_give_experience: size: found ", from.size(),
                                                        " bytes, expected a multiple of ", each,
                                                        ". Give both brains the same imp_brain_desc."));
  const SampleLayout layout = learner_of(spec).layout(spec);
  const std::uint32_t enough = rows_per_step(spec);
  for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain)
    if (waiting.size(brain) >= enough) return std::optional<std::uint64_t>();
  const std::uint64_t count = from.size() / each;
  std::vector<float> row(layout.width);
  const auto read = [&](std::uint64_t index) {
    SampleAddress address;
    const std::byte* at = from.data() + index * each;
    std::memcpy(address.data(), at, sizeof address);
    std::memcpy(row.data(), at + sizeof address, row.size() * sizeof(float));
    return address;
  };
  std::vector<std::uint64_t> arriving(spec.brain_count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const SampleAddress address = read(i);
    IMPRINT_CHECK(check_sample(spec, layout, i, address, row));
    ++arriving[address[0]];
  }
  // An actor's message may hold more steps than the queue of a game that learns by itself: none is dropped.
  // Of labels the newest stay, so that games that play fast need not wait for the learner.
  for (std::uint32_t brain = 0; brain < spec.brain_count && learner_of(spec).records_steps(); ++brain)
    waiting.make_room(waiting.size(brain) + arriving[brain]);
  for (std::uint64_t i = 0; i < count; ++i) {
    const SampleAddress address = read(i);
    const std::uint32_t agent = source * spec.agent_capacity() + address[1];
    std::ranges::copy(row, waiting.push(address[0], {.agent = agent}).begin());
  }
  return std::optional(count);
}

}  // namespace imprint::agent
