// Steps on whole values: copies, gathers, scans and scatters.

#include <algorithm>
#include <array>
#include <cstring>

#include "compute/cpu/step.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

// A step that runs a function of the memory.
template <class Run>
class MadeStep : public Step {
 public:
  explicit MadeStep(Run run) : run_(std::move(run)) {}
  void run(const Memory& memory, Parts) const override { run_(memory); }

 private:
  Run run_;
};
template <class Run>
std::unique_ptr<Step> made(Run run) {
  return std::make_unique<MadeStep<Run>>(std::move(run));
}

// A step of parts that runs a function of the memory and the parts.
template <class Run>
class DividedStep : public Step {
 public:
  DividedStep(std::int64_t parts, std::int64_t work, Run run)
      : parts_(parts), work_(work), run_(std::move(run)) {}
  std::int64_t part_count() const override { return parts_; }
  std::int64_t work() const override { return work_; }
  void run(const Memory& memory, Parts parts) const override { run_(memory, parts); }

 private:
  std::int64_t parts_, work_;
  Run run_;
};
template <class Run>
std::unique_ptr<Step> divided(std::int64_t parts, std::int64_t work, Run run) {
  return std::make_unique<DividedStep<Run>>(parts, work, std::move(run));
}

void copy(const Loops<2>& loops, Parts part, const Word* from, Word* to) {
  const KernelSet& set = kernels();
  each_rows(loops, part,
            [&](const auto& offsets, std::int64_t rows, const auto& row_strides, std::int64_t count,
                const auto& strides) {
              if (strides[1] == 1)
                return set.copy_rows({from + offsets[0], row_strides[0], strides[0], to + offsets[1],
                                      row_strides[1], rows, count});
              for (std::int64_t row = 0; row < rows; ++row) {
                const Word* source = from + offsets[0] + row * row_strides[0];
                Word* target = to + offsets[1] + row * row_strides[1];
                for (std::int64_t i = 0; i < count; ++i) target[i * strides[1]] = source[i * strides[0]];
              }
            });
}

// A row-major value as {outer, axis, inner}.
struct Lines {
  std::int64_t outer = 1, extent = 1, inner = 1;
  Lines(const Shape& shape, std::int64_t axis) : extent(shape[static_cast<int>(axis)]) {
    for (int a = 0; a < axis; ++a) outer *= shape[a];
    for (int a = static_cast<int>(axis) + 1; a < shape.rank(); ++a) inner *= shape[a];
  }
};

}  // namespace

std::unique_ptr<Step> copy_step(const Strided& from, const Strided& to, UsedPart used) {
  if (from.shape.element_count() == 0) return made([](const Memory&) {});
  const Loops<2> loops = loops_over<2>(from.shape, {from.strides, to.strides});
  const std::int64_t count = from.shape.element_count();
  return divided(count, count, [=](const Memory& memory, Parts part) {
    part.end = std::min(part.end, used.of(memory, count));
    if (part.begin >= part.end) return;
    copy(loops, part, memory.data<const Word>(from.buffer, from.offset),
         memory.data<Word>(to.buffer, to.offset));
  });
}

std::unique_ptr<Step> fill_step(std::int32_t buffer, std::int64_t count, Word value) {
  return divided(count, count, [=](const Memory& memory, Parts part) {
    kernels().copy_run(&value, 0, memory.data<Word>(buffer, part.begin), part.end - part.begin);
  });
}

namespace {

// The first of equals wins; NaN wins over every number.
template <class T>
std::int32_t best_position(const T* values, std::int64_t count, std::int64_t stride, bool largest) {
  std::int32_t best = 0;
  T found = values[0];
  for (std::int64_t i = 1; i < count && found == found; ++i) {
    const T value = values[i * stride];
    if (!(largest ? value > found : value < found) && value == value) continue;
    best = static_cast<std::int32_t>(i);
    found = value;
  }
  return best;
}

}  // namespace

std::unique_ptr<Step> arg_reduce_step(const GraphNode& node, DType dtype, const Strided& source,
                                      std::int32_t into) {
  if (node.element_count() == 0) return made([](const Memory&) {});
  const auto axis = at(node.ints[0]);
  const std::int64_t extent = source.shape[static_cast<int>(axis)], stride = source.strides[axis];
  const Loops<1> loops = loops_over<1>(node.shape, {source.strides});
  const std::int64_t results = node.element_count();
  return divided(
      results, results * extent,
      [=, largest = fold_of(node.op)->combination == Op::greater](const Memory& memory, Parts part) {
        auto* result = memory.data<std::int32_t>(into, part.begin);
        each_run(loops, part, [&](const auto& offsets, std::int64_t count, const auto& strides) {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t line = source.offset + offsets[0] + i * strides[0];
            *result++ =
                dtype == DType::float32
                    ? best_position(memory.data<const float>(source.buffer, line), extent, stride, largest)
                    : best_position(memory.data<const std::int32_t>(source.buffer, line), extent, stride,
                                    largest);
          }
        });
      });
}

namespace {

// A slice of one loop is the usual one, and may be a single element.
void copy_slice(const Loops<2>& loops, std::int64_t size, const Word* from, Word* to) {
  const std::int64_t stride = loops.strides[0][0];
  if (loops.depth > 1) return copy(loops, {0, size}, from, to);
  if (stride == 1) {
    std::copy_n(from, size, to);
    return;
  }
  for (std::int64_t i = 0; i < size; ++i) to[i] = from[i * stride];
}

// Whole slices of data by index: [outer][index][inner].
std::unique_ptr<Step> take_step(const GraphNode& node, const Strided& data, const Strided& indices,
                                std::int32_t into) {
  const int axis = static_cast<int>(node.ints[0]);
  Shape outer, inner;
  Strides outer_strides{}, inner_strides{};
  for (int a = 0; a < data.shape.rank(); ++a) {
    if (a == axis) continue;
    Shape& part = a < axis ? outer : inner;
    (a < axis ? outer_strides : inner_strides)[at(part.rank())] = data.strides[at(a)];
    part.append(data.shape[a]);
  }
  if (node.element_count() == 0) return made([](const Memory&) {});
  const Loops<1> blocks = loops_over<1>(outer, {outer_strides});
  const Loops<2> slice = loops_over<2>(inner, {inner_strides, row_major_strides(inner)});
  const std::int64_t count = indices.shape.element_count(), size = inner.element_count(),
                     extent = data.shape[axis], step = data.strides[at(axis)];
  return divided(element_count(blocks), node.element_count(), [=](const Memory& memory, Parts part) {
    const auto* chosen = memory.data<const std::int32_t>(indices.buffer, indices.offset);
    Word* to = memory.data<Word>(into, part.begin * count * size);
    each_run(blocks, part, [&](const auto& offsets, std::int64_t repeats, const auto& strides) {
      for (std::int64_t block = 0; block < repeats; ++block)
        for (std::int64_t i = 0; i < count; ++i, to += size) {
          if (chosen[i] < 0 || chosen[i] >= extent)
            std::fill_n(to, size, Word{0});
          else
            copy_slice(slice, size,
                       memory.data<const Word>(
                           data.buffer, data.offset + offsets[0] + block * strides[0] + chosen[i] * step),
                       to);
        }
    });
  });
}

}  // namespace

std::unique_ptr<Step> gather_step(const GraphNode& node, const Strided& data, const Strided& indices,
                                  std::int32_t into) {
  if (node.op == Op::take) return take_step(node, data, indices, into);
  if (node.element_count() == 0) return made([](const Memory&) {});
  const auto axis = at(node.ints[0]);
  Strides around = data.strides;  // of all axes except the indexed one
  around[axis] = 0;
  const Loops<2> loops = loops_over<2>(node.shape, {indices.strides, around});
  const std::int64_t extent = data.shape[static_cast<int>(axis)], step = data.strides[axis];
  const std::int64_t elements = node.element_count();
  return divided(elements, elements * 2, [=](const Memory& memory, Parts part) {
    const auto* chosen = memory.data<const std::int32_t>(indices.buffer, indices.offset);
    const Word* from = memory.data<const Word>(data.buffer, data.offset);
    Word* to = memory.data<Word>(into, part.begin);
    each_run(loops, part, [&](const auto& offsets, std::int64_t count, const auto& strides) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t index = chosen[offsets[0] + i * strides[0]];
        *to++ = index < 0 || index >= extent ? Word{0} : from[offsets[1] + i * strides[1] + index * step];
      }
    });
  });
}

namespace {

template <class T, class Next>
void scan_lines(const Lines& lines, Parts part, bool reverse, Next next) {
  for (std::int64_t outer = part.begin; outer < part.end; ++outer)
    for (std::int64_t step = 0; step < lines.extent; ++step) {
      const std::int64_t position = reverse ? lines.extent - 1 - step : step;
      const std::int64_t row = (outer * lines.extent + position) * lines.inner;
      next(row, step == 0 ? -1 : row + (reverse ? lines.inner : -lines.inner));
    }
}

// int32 sums wrap.
float sum_of(float a, float b) { return a + b; }
std::int32_t sum_of(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

template <class T>
void cumsum(const Lines& lines, Parts part, bool exclusive, bool reverse, const T* terms, T* sums) {
  if (lines.extent == 1) {  // no sum of two terms
    const std::int64_t first = part.begin * lines.inner, count = (part.end - part.begin) * lines.inner;
    if (exclusive)
      std::fill_n(sums + first, count, T{0});
    else
      std::copy_n(terms + first, count, sums + first);
    return;
  }
  scan_lines<T>(lines, part, reverse, [&](std::int64_t row, std::int64_t before) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      if (exclusive)
        sums[row + i] = before < 0 ? T{0} : sum_of(sums[before + i], terms[before + i]);
      else
        sums[row + i] = before < 0 ? terms[row + i] : sum_of(sums[before + i], terms[row + i]);
    }
  });
}

}  // namespace

std::unique_ptr<Step> scan_step(const GraphNode& node, std::span<const Strided> operands, std::int32_t into) {
  const Lines lines(node.shape, node.ints[0]);
  const Strided terms = operands[0];
  const bool reverse = node.ints[2] != 0;
  const std::int64_t work = 2 * node.element_count();
  if (node.op == Op::linear_recurrence)
    return divided(lines.outer, work, [=, factors = operands[1]](const Memory& memory, Parts part) {
      const auto* term = memory.data<const float>(terms.buffer, terms.offset);
      const auto* factor = memory.data<const float>(factors.buffer, factors.offset);
      auto* result = memory.data<float>(into);
      scan_lines<float>(lines, part, reverse, [&](std::int64_t row, std::int64_t before) {
        for (std::int64_t i = 0; i < lines.inner; ++i)
          result[row + i] = before < 0 ? term[row + i] : factor[row + i] * result[before + i] + term[row + i];
      });
    });
  const auto sum = [=, exclusive = node.ints[1] != 0, dtype = node.dtype](const Memory& memory, Parts part) {
    if (dtype == DType::float32)
      cumsum(lines, part, exclusive, reverse, memory.data<const float>(terms.buffer, terms.offset),
             memory.data<float>(into));
    else
      cumsum(lines, part, exclusive, reverse, memory.data<const std::int32_t>(terms.buffer, terms.offset),
             memory.data<std::int32_t>(into));
  };
  return divided(lines.outer, work, sum);
}

std::unique_ptr<Step> scatter_add_step(const GraphNode& node, const Strided& indices, const Strided& updates,
                                       std::int32_t into) {
  if (updates.shape.element_count() == 0) return made([](const Memory&) {});
  const auto axis = at(node.ints[0]);
  const Strides own = row_major_strides(node.shape);
  Strides around = own;
  around[axis] = 0;
  const Loops<3> loops = loops_over<3>(updates.shape, {indices.strides, updates.strides, around});
  const std::int64_t extent = node.shape[static_cast<int>(axis)], step = own[axis];
  return made([=, dtype = node.dtype](const Memory& memory) {
    const auto* chosen = memory.data<const std::int32_t>(indices.buffer, indices.offset);
    const auto add = [&](const auto* from, auto* to) {
      each_run(loops, [&](const auto& offsets, std::int64_t count, const auto& strides) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int32_t index = chosen[offsets[0] + i * strides[0]];
          if (index < 0 || index >= extent) continue;
          auto& target = to[offsets[2] + i * strides[2] + index * step];
          target = sum_of(target, from[offsets[1] + i * strides[1]]);
        }
      });
    };
    if (dtype == DType::float32)
      add(memory.data<const float>(updates.buffer, updates.offset), memory.data<float>(into));
    else
      add(memory.data<const std::int32_t>(updates.buffer, updates.offset), memory.data<std::int32_t>(into));
  });
}

std::unique_ptr<Step> unwindow_step(const GraphNode& node, const Strided& windows, std::int32_t into) {
  const int axis = static_cast<int>(node.ints[0]), last = windows.shape.rank() - 1;
  const std::int64_t size = node.ints[1], stride = node.ints[2], dilation = node.ints[3],
                     total = node.element_count();
  if (windows.shape.element_count() == 0) return fill_step(into, total, 0);
  // Element s of the window at position p adds to p * stride + s * dilation.
  Shape positions;
  for (int a = 0; a < last; ++a) positions.append(windows.shape[a]);
  const Strides own = row_major_strides(node.shape);
  Strides target = own;
  target[at(axis)] *= stride;
  const Loops<2> loops = loops_over<2>(positions, {windows.strides, target});
  const std::int64_t step = own[at(axis)] * dilation, window_step = windows.strides[at(last)];
  return made([=, dtype = node.dtype](const Memory& memory) {
    const auto add = [&](const auto* from, auto* to) {
      std::fill_n(to, total, 0);
      for (std::int64_t s = 0; s < size; ++s)
        each_run(loops, [&](const auto& offsets, std::int64_t count, const auto& strides) {
          const auto* source = from + offsets[0] + s * window_step;
          auto* result = to + offsets[1] + s * step;
          for (std::int64_t i = 0; i < count; ++i)
            result[i * strides[1]] = sum_of(result[i * strides[1]], source[i * strides[0]]);
        });
    };
    if (dtype == DType::float32)
      add(memory.data<const float>(windows.buffer, windows.offset), memory.data<float>(into));
    else
      add(memory.data<const std::int32_t>(windows.buffer, windows.offset), memory.data<std::int32_t>(into));
  });
}

std::unique_ptr<Step> store_rows_step(const Strided& values, const Strided& rows, const Shape& target,
                                      std::size_t element_bytes, std::int32_t into) {
  const std::int64_t count = rows.shape.element_count(), extent = target[0];
  const auto row_bytes = at(extent == 0 ? 0 : target.element_count() / extent) * element_bytes;
  return made([=](const Memory& memory) {
    const auto* chosen = memory.data<const std::int32_t>(rows.buffer, rows.offset);
    const auto* from = reinterpret_cast<const std::byte*>(memory.data<Word>(values.buffer, values.offset));
    std::byte* to = memory.buffers[at(into)];
    for (std::int64_t i = 0; i < count; ++i)
      if (chosen[i] >= 0 && chosen[i] < extent)
        std::memcpy(to + at(chosen[i]) * row_bytes, from + at(i) * row_bytes, row_bytes);
  });
}

std::unique_ptr<Step> narrow_step(std::int32_t buffer, std::int64_t count, DType dtype,
                                  const KernelSet& kernels) {
  const DType wide = dtype_is_float(dtype) ? DType::float32 : DType::int32;
  const Elementwise cast = kernels.elementwise(Op::cast, wide, dtype);
  return divided(count, count, [=](const Memory& memory, Parts part) {
    Word* words = memory.data<Word>(buffer, part.begin);
    cast(words, nullptr, nullptr, words, part.end - part.begin);
  });
}

std::unique_ptr<Step> unpack_step(std::int32_t from, DType dtype, const Strided& to) {
  const std::int64_t count = to.shape.element_count();
  return divided(count, count, [=](const Memory& memory, Parts part) {
    unpack_elements(memory.buffers[at(from)] + at(part.begin) * dtype_size(dtype), at(part.end - part.begin),
                    dtype, memory.data<Word>(to.buffer, to.offset + part.begin));
  });
}

std::unique_ptr<Step> pack_step(const Strided& from, DType dtype, std::int32_t to) {
  const std::int64_t count = from.shape.element_count();
  return divided(count, count, [=](const Memory& memory, Parts part) {
    pack_elements(memory.data<Word>(from.buffer, from.offset + part.begin), at(part.end - part.begin), dtype,
                  memory.buffers[at(to)] + at(part.begin) * dtype_size(dtype));
  });
}

}  // namespace imprint::cpu
