#pragma once
// The layout of a value's elements in memory. Views (permute, expand, slice, window, many reshapes) only
// change strides.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "compute/base/at.h"
#include "compute/graph/graph.h"
#include "compute/tensor/shape.h"

namespace imprint::cpu {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

// Offsets and strides in elements of four bytes. `buffer` is a number in Memory::buffers (step.h).
struct Strided {
  std::int32_t buffer = -1;
  std::int64_t offset = 0;
  Shape shape;
  Strides strides{};

  bool is_row_major() const;
};

Strided row_major(std::int32_t buffer, const Shape& shape);

// The layout of a view of the source; empty for a reshape that must move elements.
std::optional<Strided> through_view(const graph::GraphNode& view, const Strided& source);
std::optional<Strided> reshaped(const Strided& source, const Shape& shape);

// The shape as nested loops, as few as possible, innermost last. They walk N layouts of it at once.
template <int N>
struct Loops {
  int depth = 0;  // at least 1
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::array<Strides, N> strides{};  // per layout
};
template <int N>
Loops<N> loops_over(const Shape& shape, const std::array<Strides, N>& strides) {
  Loops<N> loops;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (shape[axis] == 1) continue;
    const std::size_t inner = static_cast<std::size_t>(loops.depth);
    bool joins = inner > 0;
    for (int n = 0; joins && n < N; ++n) joins = loops.strides[n][inner - 1] == strides[n][a] * shape[axis];
    const std::size_t loop = joins ? inner - 1 : inner;
    loops.extents[loop] = joins ? loops.extents[loop] * shape[axis] : shape[axis];
    for (int n = 0; n < N; ++n) loops.strides[n][loop] = strides[n][a];
    if (!joins) ++loops.depth;
  }
  if (loops.depth == 0) loops.extents[at(loops.depth++)] = 1;
  return loops;
}

// A walk over all loops except the innermost.
template <int N>
struct Walk {
  explicit Walk(const Loops<N>& walked) : loops(walked) {}

  // Moves to the run that holds the element with this row-major number.
  void seek(std::int64_t element) {
    std::int64_t run = element / loops.extents[inner()];
    offsets = {};
    for (int loop = loops.depth - 2; loop >= 0; --loop) {
      const auto l = static_cast<std::size_t>(loop);
      index[l] = run % loops.extents[l];
      run /= loops.extents[l];
      for (std::size_t n = 0; n < N; ++n) offsets[n] += index[l] * loops.strides[n][l];
    }
  }
  void next() {
    for (int loop = loops.depth - 2; loop >= 0; --loop) {
      const auto l = static_cast<std::size_t>(loop);
      for (std::size_t n = 0; n < N; ++n) offsets[n] += loops.strides[n][l];
      if (++index[l] < loops.extents[l]) return;
      for (std::size_t n = 0; n < N; ++n) offsets[n] -= index[l] * loops.strides[n][l];
      index[l] = 0;
    }
  }
  std::size_t inner() const { return static_cast<std::size_t>(loops.depth) - 1; }

  const Loops<N>& loops;
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::array<std::int64_t, N> offsets{};
};

// Consecutive numbers of elements, or of parts of a step.
struct Parts {
  std::int64_t begin = 0, end = 1;
};

template <int N>
std::int64_t element_count(const Loops<N>& loops) {
  std::int64_t count = 1;
  for (int loop = 0; loop < loops.depth; ++loop) count *= loops.extents[at(loop)];
  return count;
}

// use(offsets, count, strides) for each innermost run of the elements `part`, cut at its ends.
template <int N, class Use>
void each_run(const Loops<N>& loops, Parts part, Use use) {
  Walk<N> walk(loops);
  walk.seek(part.begin);
  const std::int64_t run = loops.extents[walk.inner()];
  std::array<std::int64_t, N> strides;
  for (std::size_t n = 0; n < N; ++n) strides[n] = loops.strides[n][walk.inner()];
  std::int64_t position = part.begin % run;
  for (std::int64_t left = part.end - part.begin; left > 0;) {
    const std::int64_t count = std::min(run - position, left);
    std::array<std::int64_t, N> offsets = walk.offsets;
    for (std::size_t n = 0; n < N; ++n) offsets[n] += position * strides[n];
    use(offsets, count, strides);
    left -= count;
    position = 0;
    walk.next();
  }
}
// use(offsets, rows, row_strides, count, strides) for innermost runs of the elements `part`, as many at a
// time as their loop has.
template <int N, class Use>
void each_rows(const Loops<N>& loops, Parts part, Use use) {
  Walk<N> walk(loops);
  walk.seek(part.begin);
  const std::size_t inner = walk.inner(), outer = inner > 0 ? inner - 1 : 0;
  const std::int64_t run = loops.extents[inner];
  std::array<std::int64_t, N> strides, row_strides{};
  for (std::size_t n = 0; n < N; ++n) strides[n] = loops.strides[n][inner];
  for (std::size_t n = 0; inner > 0 && n < N; ++n) row_strides[n] = loops.strides[n][outer];
  std::int64_t position = part.begin % run;
  for (std::int64_t left = part.end - part.begin; left > 0;) {
    const std::int64_t count = std::min(run - position, left);
    const std::int64_t rows =
        inner > 0 && count == run ? std::min(left / run, loops.extents[outer] - walk.index[outer]) : 1;
    std::array<std::int64_t, N> offsets = walk.offsets;
    for (std::size_t n = 0; n < N; ++n) offsets[n] += position * strides[n];
    use(offsets, rows, row_strides, count, strides);
    left -= rows * count;
    position = 0;
    for (std::size_t n = 0; n < N; ++n) walk.offsets[n] += (rows - 1) * row_strides[n];
    walk.index[outer] += rows - 1;
    walk.next();
  }
}
template <int N, class Use>
void each_run(const Loops<N>& loops, Use use) {
  each_run(loops, {0, element_count(loops)}, use);
}

}  // namespace imprint::cpu
