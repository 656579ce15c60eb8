// Products whose constant operand has whole numbers alone: weights of 8 bits, mostly. The other operand is
// looked at in each run. Where it has whole numbers too, the product is computed in pairs of 16 bits, with
// the bits of the float product: no partial sum reaches 2^24.

#include <algorithm>
#include <cmath>

#include "compute/cpu/product_step.h"
#include "compute/cpu/step.h"

namespace imprint::cpu {

namespace {

constexpr float kMostWhole = 32767;
constexpr std::int64_t kExactBelow = std::int64_t{1} << 24;
constexpr float kLeastLimit = 128;        // of the other operand; 8-bit numbers without a zero point
constexpr std::int64_t kLeastDepth = 16;  // below, packing costs more than it saves

// Whether the operand is one matrix for the whole batch.
bool is_one_matrix(const Strided& operand) {
  for (int axis = 0; axis < operand.shape.rank() - 2; ++axis)
    if (operand.shape[axis] != 1 && operand.strides[at(axis)] != 0) return false;
  return true;
}

std::int32_t pair_of(float first, float second) {
  return (static_cast<std::int32_t>(first) & 0xFFFF) |
         static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int32_t>(second)) << 16);
}

}  // namespace

std::shared_ptr<const WholeOperand> whole_operand(const float* buffer, const Strided& operand, bool left,
                                                  const KernelSet& kernels) {
  const int rank = operand.shape.rank(), along = left ? rank - 1 : rank - 2;  // the terms
  const int across = left ? rank - 2 : rank - 1;
  const std::int64_t depth = operand.shape[along], lines = operand.shape[across];
  if (!kernels.whole.product || depth < kLeastDepth || !is_one_matrix(operand)) return nullptr;
  const float* const first = buffer + operand.offset;
  const std::int64_t step = operand.strides[at(along)], line_step = operand.strides[at(across)];
  std::int64_t largest = 1;
  for (std::int64_t line = 0; line < lines; ++line) {
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      const float value = first[line * line_step + k * step];
      if (!(std::fabs(value) <= kMostWhole) || value != std::trunc(value)) return nullptr;
      sum += static_cast<std::int64_t>(std::fabs(value));
    }
    largest = std::max(largest, sum);
  }
  const float limit = std::min(kMostWhole, std::floor(static_cast<float>((kExactBelow - 1) / largest)));
  if (limit < kLeastLimit) return nullptr;
  WholeOperand packed{.limit = limit, .pairs = (depth + 1) / 2, .left = left, .numbers = {}};
  const auto number = [&](std::int64_t line, std::int64_t k) {
    return line < lines && k < depth ? first[line * line_step + k * step] : 0.0f;
  };
  const std::int64_t panel = left ? 1 : kWholeColumns;
  packed.numbers.reserve(at((lines + panel - 1) / panel * panel * packed.pairs));
  for (std::int64_t begin = 0; begin < lines; begin += panel)
    for (std::int64_t k = 0; k < depth; k += 2)
      for (std::int64_t line = begin; line < begin + panel; ++line)
        packed.numbers.push_back(pair_of(number(line, k), number(line, k + 1)));
  return std::make_shared<const WholeOperand>(std::move(packed));
}

bool whole_product(const WholeOperand& whole, const Matmul& m, std::int64_t first_row,
                   std::int64_t first_column, const WholeKernels& kernels) {
  auto* const scratch = reinterpret_cast<std::int32_t*>(m.scratch);
  const std::int64_t pairs = whole.pairs, room = kMatmulScratch / pairs;
  const auto columns_at = [&](std::int64_t column) { return std::min(kWholeColumns, m.columns - column); };
  if (whole.left) {
    if (room < kWholeColumns) return false;
    for (std::int64_t n = 0; n < m.columns; n += kWholeColumns) {
      if (!kernels.pack_panel(m, n, scratch, whole.limit)) return false;
      kernels.product({whole.numbers.data() + first_row * pairs, scratch, m.c + n, m.rows, pairs,
                       columns_at(n), m.c_row});
    }
    return true;
  }
  if (room < 1 || m.a_depth != 1) return false;
  for (std::int64_t row = 0; row < m.rows; row += room) {
    const std::int64_t rows = std::min(room, m.rows - row);
    for (std::int64_t r = 0; r < rows; ++r)
      if (!kernels.pack_row(m.a + (row + r) * m.a_row, scratch + r * pairs, m.depth, whole.limit))
        return false;
    for (std::int64_t n = 0; n < m.columns; n += kWholeColumns)
      kernels.product({scratch, whole.numbers.data() + (first_column + n) * pairs, m.c + row * m.c_row + n,
                       rows, pairs, columns_at(n), m.c_row});
  }
  return true;
}

}  // namespace imprint::cpu
