// Sorts and selections: pages that find positions. Values are gathered, so that derivatives need no rule of
// their own.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "compute/base/at.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/sort_page.h"

namespace imprint {

using namespace tensor;

namespace {

// Whether a comes before b in the order of a sort: NaN last, equals neither way.
template <class T>
bool comes_before(T a, T b, bool descending) {
  if (a != a || b != b) return a == a && b != b;
  return descending ? a > b : a < b;
}

// Numbers in the order of comes_before; equal ones have one key.
std::uint32_t sort_key(float value, bool descending) {
  if (value != value) return ~0u;
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);  // -0 is 0
  const std::uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
  return descending ? ~ascending : ascending;
}
std::uint32_t sort_key(std::int32_t value, bool descending) {
  const std::uint32_t ascending = static_cast<std::uint32_t>(value) ^ 0x80000000u;
  return descending ? ~ascending : ascending;
}

constexpr std::size_t kRadixLength = 256;        // elements of a line from which a radix sort is quicker
constexpr std::int64_t kCachedLength = 1 << 20;  // up to which it reads its line from a cache
constexpr int kRadixBits = 11, kRadixPasses = 3;

// A stable radix sort of positions, from the lowest bits. The time does not depend on the values, as that of
// a sort by comparisons does by a factor of ten.
template <class T>
class RadixOrder {
 public:
  // order: of the line's length.
  void sort(const T* values, bool descending, std::vector<std::int32_t>& order) {
    for (auto& counts : counts_) counts.fill(0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t key = sort_key(values[i], descending);
      for (int pass = 0; pass < kRadixPasses; ++pass) ++counts_[at(pass)][digit(key, pass)];
    }
    std::iota(order.begin(), order.end(), 0);
    other_.resize(order.size());
    for (int pass = 0; pass < kRadixPasses; ++pass) {
      auto& counts = counts_[at(pass)];
      if (counts[digit(sort_key(values[0], descending), pass)] == order.size()) continue;  // all in one place
      std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), 0u);
      for (const std::int32_t position : order)
        other_[counts[digit(sort_key(values[position], descending), pass)]++] = position;
      order.swap(other_);
    }
  }

 private:
  static std::size_t digit(std::uint32_t key, int pass) {
    return key >> (kRadixBits * pass) & ((1u << kRadixBits) - 1);
  }

  std::array<std::array<std::uint32_t, 1u << kRadixBits>, kRadixPasses> counts_;
  std::vector<std::int32_t> other_;
};

// Positions of the first `count` in order, of every line of [lines, length].
template <class T>
void order_on_cpu(std::span<const T> x, std::span<std::int32_t> into, std::size_t length, std::size_t count,
                  bool descending) {
  std::vector<std::int32_t> order(length);
  RadixOrder<T> radix;
  const std::size_t lines = length == 0 ? 0 : x.size() / length;
  for (std::size_t line = 0; line < lines; ++line) {
    const T* values = x.data() + line * length;
    if (length >= kRadixLength) {
      radix.sort(values, descending, order);
    } else {
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
        return comes_before(values[a], values[b], descending);
      });
    }
    std::copy_n(order.begin(), count, into.begin() + static_cast<std::ptrdiff_t>(line * count));
  }
}

// The positions of the first `count` in order along the axis.
Tensor positions_of(std::string_view name, const Tensor& x, int axis, std::int64_t count, bool descending) {
  Axes to_last(static_cast<std::size_t>(x.rank()));
  std::iota(to_last.begin(), to_last.end(), 0);
  std::swap(to_last[static_cast<std::size_t>(axis)], to_last.back());  // its own inverse
  const Tensor moved = permute(x, to_last);
  const std::int64_t length = x.extent(axis), lines = length == 0 ? 0 : x.shape().element_count() / length;
  Shape shape = moved.shape();
  shape[shape.rank() - 1] = count;
  if (shape.element_count() == 0) return permute(zeros(shape, DType::int32), to_last);

  LibraryPage page;
  page.name = name;
  page.outputs = {{{lines, count}, DType::int32}};
  page.constants = {{"DESCENDING", descending}};
  page.work = (length > kCachedLength ? 16 : 8) * static_cast<double>(lines * length) *
              std::log2(2.0 * static_cast<double>(length));
  page.cpu = [length, count, descending](std::span<const PageArray> in, std::span<const PageArray> out) {
    const auto order = [&]<class T>(std::span<T> values) {
      order_on_cpu<T>(values, out[0].ints(), static_cast<std::size_t>(length),
                      static_cast<std::size_t>(count), descending);
    };
    in[0].dtype == DType::float32 ? order(in[0].floats()) : order(in[0].ints());
  };
  page.expand = [count, length, descending](std::span<const Tensor> inputs, const PageLimits& limits) {
    return std::vector{count == length ? sort_on_device(inputs[0], descending, limits).positions
                                       : select_on_device(inputs[0], count, descending, limits)};
  };
  const Tensor flat = reshape(moved, {lines, length});
  return permute(reshape(run_page(std::move(page), std::span(&flat, 1))[0], shape), to_last);
}

// The axis counted from the front, of a tensor that can be ordered; otherwise `error` is set.
std::optional<int> axis_to_order(std::string_view name, const Tensor& x, int axis, Tensor& error) {
  if (!x.ok()) {
    error = x;
    return std::nullopt;
  }
  const std::optional<int> position = normalize_axis(axis, x.rank());
  if (x.dtype() != DType::float32 && x.dtype() != DType::int32)
    error = bad_dtype(name, x, "float32 or int32");
  else if (!position)
    error = bad_axis(name, axis, x);
  else
    return position;
  return std::nullopt;
}

}  // namespace

Tensor argsort(const Tensor& x, int axis, bool descending) {
  Tensor error;
  const std::optional<int> position = axis_to_order("argsort", x, axis, error);
  return position ? positions_of("argsort", x, *position, x.extent(*position), descending) : error;
}

WithIndices sort(const Tensor& x, int axis, bool descending) {
  const Tensor indices = argsort(x, axis, descending);
  return {indices.ok() ? gather(x, axis, indices) : indices, indices};
}

WithIndices topk(const Tensor& x, std::int64_t count, int axis, bool largest) {
  Tensor error;
  const std::optional<int> position = axis_to_order("topk", x, axis, error);
  if (!position) return {error, error};
  if (count < 0 || count > x.extent(*position)) {
    error = failure(ErrorCode::shape_mismatch, "topk",
                    text("found ", count, " of axis ", *position, " of ", describe(x), ", expected 0 .. ",
                         x.extent(*position)));
    return {error, error};
  }
  const Tensor indices = positions_of("topk", x, *position, count, largest);
  return {gather(x, *position, indices), indices};
}

}  // namespace imprint
