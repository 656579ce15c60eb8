#include "plugin/agent/learn/samples/replay_memory.h"

#include <array>

#include "plugin/agent/learn/registry.h"

namespace imprint::agent {
namespace {

constexpr std::int32_t kBytesPerWord = 4;

// Adds columns that follow those that are there.
void add_range(ReplayColumns& to, std::uint32_t count, bool bytes) {
  if (count == 0) return;
  std::uint32_t& used = bytes ? to.bytes : to.numbers;
  if (!to.ranges.empty() && to.ranges.back().bytes == bytes) {
    to.ranges.back().count += count;
  } else {
    const std::uint32_t first = to.ranges.empty() ? 0 : to.ranges.back().first + to.ranges.back().count;
    to.ranges.push_back({first, count, bytes, used});
  }
  used += count;
}

void add_observation(const ObservationSpec& seen, ReplayColumns& to) {
  for (std::uint32_t k = 0; k < seen.stack; ++k)
    for (const StreamSpec& stream : seen.streams)
      add_range(to, static_cast<std::uint32_t>(stream.numbers()), stream.kind == StreamKind::picture);
}

// float32 [n, count], 0 to 1 -> int32 [n, words].
Tensor as_words(const Tensor& numbers, std::uint32_t words) {
  const std::int64_t n = numbers.extent(0), count = numbers.extent(1);
  const std::int64_t missing = std::int64_t{words} * kBytesPerWord - count;
  const Tensor nearest =
      cast(minimum(maximum(numbers, 0.0f), 1.0f) * 255.0f + 0.5f, DType::int32);  // truncates
  const Tensor whole = missing > 0 ? concat({nearest, zeros({n, missing}, DType::int32)}, 1) : nearest;
  const Tensor fours = reshape(whole, {n, words, kBytesPerWord});
  const auto part = [&](int byte) { return shift_left(squeeze(narrow(fours, 2, byte, 1), 2), 8 * byte); };
  return bit_or(bit_or(part(0), part(1)), bit_or(part(2), part(3)));
}

// int32 [P, n, words] -> float32 [P, n, 4 * words]: each byte over 255, to the nearest float.
Tensor as_numbers(const Tensor& words) {
  const Shape& shape = words.shape();
  const Tensor shifts = iota({1, 1, 1, kBytesPerWord}, 3) * 8;
  const Tensor bytes = bit_and(shift_right(unsqueeze(words, 3), shifts), 255);
  const Tensor k = cast(reshape(bytes, {shape[0], shape[1], shape[2] * kBytesPerWord}), DType::float32);
  // k / 255 = (65,793 k + k / 255) / 2^24. The first product and the last are exact, so that the sum alone
  // rounds. A division would not do: devices may be some units in the last place off.
  return (k * 65793.0f + k * (1.0f / 255)) * (1.0f / 16777216);
}

}  // namespace

ReplayColumns replay_columns(const BrainSpec& spec) {
  const SampleLayout layout = learner_of(spec).layout(spec);
  ReplayColumns columns;
  if (!spec.pictures_as_bytes) {
    add_range(columns, layout.width, false);
    return columns;
  }
  add_observation(spec.observation, columns);  // the first columns
  const std::uint32_t seen = spec.observation.width();
  if (layout.next_observation == 0) {
    add_range(columns, layout.width - seen, false);
    return columns;
  }
  add_range(columns, layout.next_observation - seen, false);
  add_observation(spec.observation, columns);
  add_range(columns, layout.width - layout.next_observation - seen, false);
  return columns;
}

ReplayMemory::ReplayMemory(const BrainSpec& spec)
    : brains_(spec.brain_count),
      batch_(spec.batch_size),
      capacity_(spec.replay_capacity),
      layout_(learner_of(spec).layout(spec)),
      columns_(replay_columns(spec)),
      numbers_(Variable::zeros(kReplayName, {spec.brain_count * capacity_, columns_.numbers})) {
  if (columns_.bytes > 0)
    pictures_ =
        Variable::zeros(kReplayPicturesName, {spec.brain_count * capacity_, columns_.words()}, DType::int32);
}

Tensor ReplayMemory::draw_rows(const Tensor& generator, const Tensor& filled, const Tensor& next_row) const {
  const Shape wanted{brains_, batch_};
  const auto capacity = static_cast<std::int32_t>(capacity_);
  const Tensor all = reshape(filled, {brains_, 1});
  const Tensor is_newest = logical_and(less(iota(wanted, 1), static_cast<std::int32_t>(batch_ / kNewestPart)),
                                       greater(all, kNewest * kNewestPart));
  const Tensor place = random_integers(generator, wanted, where(is_newest, kNewest, all), 0);
  const Tensor newest = remainder(reshape(next_row, {brains_, 1}) + (capacity - kNewest) + place, capacity);
  return where(is_newest, newest, place);
}

Minibatch ReplayMemory::draw(const Tensor& rows) const {
  const Tensor all = rows + iota(rows.shape(), 0) * static_cast<int>(capacity_);
  const Tensor numbers = take(numbers_.value(), 0, all);
  Minibatch batch{numbers, layout_};
  if (!pictures_.ok()) return batch;
  const Tensor pictures = as_numbers(take(pictures_.value(), 0, all));
  for (const ReplayColumns::Range& range : columns_.ranges)
    batch.parts.push_back(
        {range.first, range.count, narrow(range.bytes ? pictures : numbers, 2, range.at, range.count)});
  return batch;
}

void ReplayMemory::keep(const Tensor& rows, const Tensor& samples, std::vector<Update>& updates) const {
  if (!pictures_.ok()) {
    updates.push_back(Update::scatter_rows(numbers_, rows, samples));
    return;
  }
  std::vector<Tensor> numbers, pictures;
  for (const ReplayColumns::Range& range : columns_.ranges)
    (range.bytes ? pictures : numbers).push_back(narrow(samples, 1, range.first, range.count));
  updates.push_back(Update::scatter_rows(numbers_, rows, concat(numbers, 1)));
  updates.push_back(Update::scatter_rows(pictures_, rows, as_words(concat(pictures, 1), columns_.words())));
}

std::vector<StateVariable> ReplayMemory::state() const {
  std::vector<StateVariable> state{{kReplayName, numbers_, INT32_MIN, INT32_MAX, Merge::none}};
  if (pictures_.ok()) state.push_back({kReplayPicturesName, pictures_, INT32_MIN, INT32_MAX, Merge::none});
  return state;
}

}  // namespace imprint::agent
