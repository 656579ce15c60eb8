#include "compute/tensor/pages/sort_page.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "compute/tensor/build.h"
#include "compute/tensor/pages/scan_page.h"

namespace imprint::tensor {
namespace {

constexpr std::int64_t kSmallSort = 1024;      // elements that a workgroup sorts in shared memory
constexpr std::int64_t kMostSelected = 1024;   // by one workgroup per line
constexpr std::int64_t kSelectedLine = 16384;  // elements of a line that one workgroup selects from
constexpr std::int64_t kKeptLine = 8192;       // whose keys its workgroup keeps in registers
constexpr int kDigit = 8;                      // bits per pass of the radix sort
constexpr std::int64_t kFewChunks = 4;         // whose counts each workgroup adds up

std::int64_t sort_pieces(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

std::int64_t power_of_two(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

// A page of shaders/pages over [lines, length]. kind: of the elements, as in sort_keys.glsl.
LibraryPage order_page(const char* shader, const Tensor& lines, int kind, bool descending) {
  LibraryPage page;
  page.name = shader;
  page.shader = std::string("pages/") + shader;
  page.constants = {{"KEY_KIND", kind},
                    {"DESCENDING", descending},
                    {"LINES", lines.extent(0)},
                    {"LENGTH", lines.extent(1)}};
  page.prelude = "pages/sort_keys";
  page.includes = {"special_values"};
  return page;
}

int kind_of(const Tensor& lines, bool is_key) { return is_key ? 0 : lines.dtype() == DType::float32 ? 1 : 2; }

Sorted sort_small(const Tensor& lines, int kind, bool descending, const PageLimits& limits) {
  LibraryPage page = order_page("sort_small", lines, kind, descending);
  const std::int64_t size = std::max<std::int64_t>(2, power_of_two(lines.extent(1))),
                     here = std::min(kSmallSort / size, power_of_two(lines.extent(0)));
  page.constants.insert(page.constants.end(), {{"SIZE", size}, {"LINES_HERE", here}});
  page.outputs = {{lines.shape(), DType::int32}, {lines.shape(), DType::int32}};
  page.groups = sort_pieces(lines.extent(0), here);
  page.group_size =
      static_cast<int>(std::clamp<std::int64_t>(size * here / 2, 1, std::min(limits.invocations, 256)));
  std::vector<Tensor> found = run_page(std::move(page), std::span(&lines, 1));
  return {found[0], found[1]};
}

}  // namespace

Sorted sort_on_device(const Tensor& lines, bool descending, const PageLimits& limits, bool is_key,
                      int key_bits) {
  int kind = kind_of(lines, is_key);
  const std::int64_t count = lines.extent(0), length = lines.extent(1);
  if (length <= kSmallSort) return sort_small(lines, kind, descending, limits);
  constexpr std::int64_t kRun = 8;
  const std::int64_t invocations = limits.invocations >= 256 ? 256 : 128, tile = kRun * invocations,
                     tiles = sort_pieces(length, tile),
                     most = std::max<std::int64_t>(1, 2 * limits.groups / count),
                     chunk = sort_pieces(tiles, most) * tile, chunks = sort_pieces(length, chunk);
  Tensor keys = lines, positions;
  for (int shift = 0; shift < key_bits; shift += kDigit) {
    const auto pass = [&](const char* shader, bool is_descending) {
      LibraryPage page = order_page(shader, keys, kind, is_descending);
      page.constants.insert(page.constants.end(), {{"SHIFT", shift},
                                                   {"CHUNK", chunk},
                                                   {"CHUNKS", chunks},
                                                   {"RUN", kRun},
                                                   {"SCANNED", chunks > kFewChunks},
                                                   {"FIRST", is_empty(positions)}});
      page.groups = count * chunks;
      page.group_size = static_cast<int>(invocations);
      return page;
    };
    LibraryPage counting = pass("sort_count", descending);
    counting.outputs = {{{count, chunks, 256}, DType::int32}};
    const Tensor counts = run_page(std::move(counting), std::span(&keys, 1))[0];
    LibraryPage moving = pass("sort_move", descending);
    moving.outputs = {{lines.shape(), DType::int32}, {lines.shape(), DType::int32}};
    std::vector<Tensor> operands{keys, counts};
    if (chunks > kFewChunks)
      operands.push_back(
          scan_on_device(ScanKind::sum, std::span(&counts, 1), {.axis = 1, .exclusive = true}, limits)[0]);
    if (!is_empty(positions)) operands.push_back(positions);
    const std::vector<Tensor> moved = run_page(std::move(moving), operands);
    positions = moved[0];
    keys = moved[1];
    kind = 0;
  }
  return {positions, keys};
}

Tensor select_on_device(const Tensor& lines, std::int64_t count, bool largest, const PageLimits& limits) {
  const std::int64_t rows = lines.extent(0), length = lines.extent(1);
  if (count > kMostSelected || limits.invocations < 256 || length <= kSmallSort)
    return narrow(sort_on_device(lines, largest, limits).positions, 1, 0, count);
  if (length > kSelectedLine && count * 4 <= kSelectedLine) {
    // First of each part, then of what remains. Parts are in order, so that the first of equals stays first.
    // The filling comes last: NaN, or the worst integer behind all others.
    const std::int64_t parts = sort_pieces(length, kSelectedLine), filled = parts * kSelectedLine;
    const double filling = lines.dtype() == DType::float32 ? std::numeric_limits<double>::quiet_NaN()
                           : largest                       ? std::numeric_limits<std::int32_t>::min()
                                                           : std::numeric_limits<std::int32_t>::max();
    const std::vector<std::pair<std::int64_t, std::int64_t>> sides{{0, 0}, {0, filled - length}};
    const Tensor split =
        reshape(filled == length ? lines : pad(lines, sides, filling), {rows * parts, kSelectedLine});
    const Tensor local = select_on_device(split, count, largest, limits);
    const Tensor values = reshape(gather(split, 1, local), {rows, parts * count});
    const Tensor positions =
        reshape(reshape(local, {rows, parts, count}) +
                    imprint::iota({rows, parts, count}, 1) * static_cast<int>(kSelectedLine),
                {rows, parts * count});
    return gather(positions, 1, select_on_device(values, count, largest, limits));
  }
  LibraryPage page = order_page("select", lines, kind_of(lines, false), largest);
  const bool keeps = length <= kKeptLine;
  page.outputs = {{{rows, count}, DType::int32}};
  page.constants.insert(
      page.constants.end(),
      {{"COUNT", count}, {"SIZE", std::max<std::int64_t>(2, power_of_two(count))}, {"KEEPS", keeps}});
  page.groups = rows;
  page.group_size = 256;
  page.loads = keeps ? 1 : 5;
  return run_page(std::move(page), std::span(&lines, 1))[0];
}

}  // namespace imprint::tensor
