#include "tools/studio/state_mean.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace imprint::studio {
namespace {

template <class T>
T number_at(std::span<const std::byte> state, const StateArray& array, std::size_t index) {
  T number;
  std::memcpy(&number, state.data() + array.offset + index * sizeof number, sizeof number);
  return number;
}

float sign_of(const StateArray& bound) { return bound.merge == IMP_MERGE_SMALLEST ? -1.0f : 1.0f; }

template <class T>
void copy_in(std::span<const T> numbers, const StateArray& array, std::span<std::byte> state) {
  std::memcpy(state.data() + array.offset, numbers.data(), numbers.size_bytes());
}

}  // namespace

StateMean::StateMean(std::vector<StateArray> arrays) : arrays_(std::move(arrays)) {
  constexpr std::string_view kVariance = ".variance";
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::string& name = arrays_[i].name;
    if (arrays_[i].is_integer || !name.ends_with(kVariance)) continue;
    const std::string mean = name.substr(0, name.size() - kVariance.size()) + ".mean";
    const auto found = std::ranges::find(arrays_, mean, &StateArray::name);
    if (found != arrays_.end() && !found->is_integer && found->count == arrays_[i].count)
      spreads_.push_back({i, static_cast<std::size_t>(found - arrays_.begin())});
  }
}

void StateMean::pack(std::span<const std::byte> state, bool takes_part, float share) {
  floats_.clear();
  integers_.clear();
  bounds_.clear();
  for (const StateArray& array : arrays_)
    for (std::size_t i = 0; i < array.count; ++i) {
      if (array.is_integer)
        integers_.push_back(takes_part ? number_at<std::int32_t>(state, array, i) : INT32_MIN);
      else if (array.is_bound())
        bounds_.push_back(takes_part ? sign_of(array) * number_at<float>(state, array, i)
                                     : -std::numeric_limits<float>::infinity());
      else
        floats_.push_back(takes_part ? share * number_at<float>(state, array, i) : 0.0f);
    }
}

void StateMean::average(std::span<std::byte> state, bool takes_part, std::uint32_t takers, Group& group) {
  const float share = 1.0f / static_cast<float>(takers);
  if (!spreads_.empty()) own_.assign(state.begin(), state.end());
  pack(state, takes_part, share);
  group.add(floats_);
  if (!integers_.empty()) group.take_largest(integers_);
  if (!bounds_.empty()) group.take_largest(bounds_);
  std::span<const float> floats(floats_);
  std::span<float> bounds(bounds_);
  std::span<const std::int32_t> integers(integers_);
  for (const StateArray& array : arrays_) {
    if (array.is_integer) {
      copy_in(integers.first(array.count), array, state);
      integers = integers.subspan(array.count);
    } else if (array.is_bound()) {
      for (float& number : bounds.first(array.count)) number *= sign_of(array);
      copy_in(std::span<const float>(bounds.first(array.count)), array, state);
      bounds = bounds.subspan(array.count);
    } else {
      copy_in(floats.first(array.count), array, state);
      floats = floats.subspan(array.count);
    }
  }
  if (!spreads_.empty()) add_spreads(own_, state, takes_part, share, group);
}

// The mean of the variances is in place. Adds the variance of the means.
void StateMean::add_spreads(std::span<const std::byte> own, std::span<std::byte> state, bool takes_part,
                            float share, Group& group) {
  spread_floats_.clear();
  for (const Spread& spread : spreads_)
    for (std::size_t i = 0; i < arrays_[spread.mean].count; ++i) {
      const float apart =
          number_at<float>(own, arrays_[spread.mean], i) - number_at<float>(state, arrays_[spread.mean], i);
      spread_floats_.push_back(takes_part ? share * apart * apart : 0.0f);
    }
  group.add(spread_floats_);
  std::size_t next = 0;
  for (const Spread& spread : spreads_) {
    const StateArray& variance = arrays_[spread.variance];
    for (std::size_t i = 0; i < variance.count; ++i) {
      const float sum = number_at<float>(state, variance, i) + spread_floats_[next++];
      std::memcpy(state.data() + variance.offset + i * sizeof sum, &sum, sizeof sum);
    }
  }
}

}  // namespace imprint::studio
