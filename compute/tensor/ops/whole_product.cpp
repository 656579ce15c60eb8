#include "compute/tensor/ops/whole_product.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "compute/tensor/build.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::tensor {
namespace {

using Values = std::span<const Tensor>;  // numbers, weights, and a zero point if there is one

constexpr std::int64_t kQuad = 16;  // numbers of 8 bits that a kernel loads together
constexpr std::int64_t kFewRows = 16;
// With fewer weights, or less work, a further dispatch takes more time than float32.
constexpr std::int64_t kLeastWeights = 1 << 18, kLeastWork = 1 << 27;

std::int64_t parts_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }
// Kernels multiply numbers minus this: signed ones of 8 bits.
int shift_of(const WholeProduct& product) { return product.low + 128; }

// The zero point of shifted numbers, int32.
Tensor zero_of(const WholeProduct& product, Values in) {
  const int shift = shift_of(product);
  if (in.size() <= 2) return Tensor::from_ints(std::vector{-shift}, {});
  return shift == 0 ? cast(in[2], DType::int32) : cast(in[2], DType::int32) - shift;
}

// Sums of shifted numbers, as those of numbers minus their zero point. along: the shape of one number per
// column.
Tensor corrected(const WholeProduct& product, Values in, const Tensor& sums, const Shape& along) {
  const std::size_t terms = product.weights.size() / static_cast<std::size_t>(product.columns);
  const bool has_zero = in.size() > 2;
  std::vector<std::int32_t> totals(static_cast<std::size_t>(product.columns));
  for (std::size_t i = 0; i < product.weights.size(); ++i)
    totals[i / terms] += (has_zero ? 1 : -shift_of(product)) * static_cast<std::int8_t>(product.weights[i]);
  Tensor exact = sums;
  // A product of all elements is computed where the sums are.
  const Tensor share = broadcast_operand(Tensor::from_ints(totals, along), sums.shape());
  if (has_zero)
    exact = sums - broadcast_operand(zero_of(product, in), sums.shape()) * share;
  else if (shift_of(product) != 0)
    exact = sums - share;
  return product.sums == DType::float32 ? cast(exact, DType::float32) : exact;
}

Tensor product_in_float(const WholeProduct& product, Values in) {
  return product.in_float(in.size() > 2 ? in[0] - in[2] : in[0]);
}

LibraryPage int32_kernel(const char* name, Shape output, const PageLimits& limits) {
  LibraryPage page;
  page.name = name;
  page.outputs = {{std::move(output), DType::int32}};
  page.includes = {"packed", limits.integer_dot ? "integer_dot" : "integer_dot_shifts"};
  page.is_continued = true;
  return page;
}

// ---- few rows ----

// As few_bits_product of quantised.cpp, with packed numbers in shared memory.
Tensor few_rows(const Tensor& numbers, const Tensor& weights, std::int64_t columns, int shift,
                const PageLimits& limits) {
  constexpr std::int64_t kMostBatch = 4, kLanes = 32, kMostOwn = 8, kMostInvocations = 256;
  const std::int64_t rows = numbers.extent(0), wide = weights.extent(1), slices = wide / kQuad,
                     batch = std::min(kMostBatch, rows),
                     invocations = std::min<std::int64_t>(kMostInvocations, limits.invocations),
                     sets = invocations / kLanes, shared = limits.shared_bytes,
                     of_sums = invocations * (kMostOwn + 1) * 4,
                     most_bytes = std::min({std::int64_t{16384}, shared / 2, shared - of_sums}),
                     stage = std::min(slices, most_bytes / (batch * kQuad) / kLanes * kLanes);
  std::int64_t own = kMostOwn;
  while (own > 1 && parts_of(columns, sets * own) * parts_of(rows, batch) < limits.groups) own /= 2;
  LibraryPage page = int32_kernel("whole_product_rows", {rows, columns}, limits);
  page.shader = "pages/whole_product_rows";
  page.includes.emplace_back("set_sums");
  page.constants = {{"ROWS", rows},    {"COLUMNS", columns}, {"DEPTH", numbers.extent(1)},
                    {"PADDED", wide},  {"SHIFT", shift},     {"BATCH", batch},
                    {"LANES", kLanes}, {"OWN", own},         {"STAGE", stage}};
  page.group_size = static_cast<int>(invocations);
  page.groups = parts_of(columns, sets * own) * parts_of(rows, batch);
  page.loads = static_cast<double>(parts_of(columns, sets * own));
  page.work = static_cast<double>(rows * columns * wide) / 4;
  page.quads = {1};
  page.computed = {0};
  return run_page(std::move(page), std::vector{numbers, weights})[0];
}

// ---- tiles ----

constexpr int kTileInvocations = 256;

void set_tiles(LibraryPage& page, std::int64_t rows, std::int64_t columns, std::int64_t wide,
               const PageLimits& limits) {
  std::int64_t tile = 128;
  if (8 * (tile + 1) * 16 > limits.shared_bytes) tile /= 2;  // its two sides in shared memory
  const auto groups = [&] { return parts_of(rows, tile) * parts_of(columns, tile); };
  while (tile > 32 && groups() < limits.groups / 2) tile /= 2;
  page.shader = "pages/whole_product_tiles";
  page.constants = {{"ROWS", rows}, {"COLUMNS", columns}, {"PADDED", wide}, {"TILE", tile}};
  page.group_size = kTileInvocations;
  page.groups = groups();
  page.work = static_cast<double>(rows * columns * wide) / 4;
  page.quads = {0, 1};
}

// Numbers of 8 bits, as many along the axis as kernels load; those after the last meet weights of zero.
Tensor as_bytes(const Tensor& numbers, int axis, int shift) {
  Tensor wide = numbers;
  const std::int64_t extent = numbers.extent(axis);
  if (extent != padded_terms(extent)) {
    std::vector<std::pair<std::int64_t, std::int64_t>> more(static_cast<std::size_t>(numbers.rank()));
    more[static_cast<std::size_t>(axis)].second = padded_terms(extent) - extent;
    wide = pad(numbers, more);
  }
  return cast(cast(wide, DType::int32) - shift, DType::int8);
}

bool takes_tiles(const PageLimits& limits, std::int64_t rows, std::int64_t weights) {
  return limits.integer_dot && limits.invocations >= kTileInvocations && rows * weights >= kLeastWork;
}

// ---- pages ----

Tensor matmul_on_device(const WholeProduct& product, Values in, const PageLimits& limits) {
  const std::int64_t terms = in[0].extent(-1), rows = in[0].shape().element_count() / terms;
  const std::int64_t count = in[1].shape().element_count();
  const bool are_few = rows >= 1 && rows <= kFewRows && count >= kLeastWeights && limits.invocations >= 32;
  if (limits.processor || (!are_few && !takes_tiles(limits, rows, count)))
    return product_in_float(product, in);
  const Tensor numbers = reshape(in[0], {rows, terms}), &weights = in[1];
  Tensor sums;
  if (are_few) {
    sums = few_rows(numbers, weights, product.columns, shift_of(product), limits);
  } else {
    LibraryPage page = int32_kernel("whole_product_tiles", {rows, product.columns}, limits);
    set_tiles(page, rows, product.columns, weights.extent(1), limits);
    page.constants.emplace_back("PLACES", 0);
    const std::vector<Tensor> operands{as_bytes(numbers, 1, shift_of(product)), weights};
    sums = run_page(std::move(page), operands)[0];
  }
  Shape shape = in[0].shape();
  shape[shape.rank() - 1] = product.columns;
  return corrected(product, in, reshape(sums, shape), {product.columns});
}

Tensor convolution_on_device(const WholeProduct& product, const WholeWindow& window, const Shape& output,
                             Values in, const PageLimits& limits) {
  if (limits.processor ||
      !takes_tiles(limits, output[0] * output[2] * output[3], in[1].shape().element_count()))
    return product_in_float(product, in);
  const Tensor &numbers = in[0], &weights = in[1];
  const std::int64_t places = output[2] * output[3];
  const Tensor zero = zero_of(product, in);
  const Tensor bytes = as_bytes(permute(numbers, {0, 2, 3, 1}), 3, shift_of(product));
  LibraryPage page = int32_kernel("whole_product_windows", output, limits);
  set_tiles(page, output[0] * places, product.columns, weights.extent(1), limits);
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"PLACES", places},
                                    {"OUT_WIDTH", output[3]},
                                    {"HEIGHT", numbers.extent(2)},
                                    {"WIDTH", numbers.extent(3)},
                                    {"CHANNELS", bytes.extent(3)},
                                    {"KERNEL_X", window.x.size},
                                    {"STRIDE_Y", window.y.stride},
                                    {"STRIDE_X", window.x.stride},
                                    {"PAD_Y", window.y.before},
                                    {"PAD_X", window.x.before},
                                    {"DILATION_Y", window.y.dilation},
                                    {"DILATION_X", window.x.dilation}})
    page.constants.emplace_back(name, value);
  const Tensor sums = run_page(std::move(page), std::vector{bytes, weights, zero})[0];
  return corrected(product, in, sums, {product.columns, 1, 1});
}

Tensor recorded(LibraryPage page, const WholeProduct& product) {
  page.constants = {{"LOW", product.low}, {"FLOAT", product.sums == DType::float32}};
  page.spares_outputs = true;  // weights of the form that the device does not take
  page.compose = [product](Values in) { return std::vector{product_in_float(product, in)}; };
  page.backward = [](Values in, Values, Values) { return std::vector<Tensor>(in.size()); };
  const std::int64_t terms = static_cast<std::int64_t>(product.weights.size()) / product.columns;
  std::vector<Tensor> in{product.numbers,
                         Tensor::from_bytes(product.weights, {product.columns, terms}, DType::int8)};
  if (!is_empty(product.zero)) in.push_back(product.zero);
  return run_page(std::move(page), in)[0];
}

}  // namespace

Tensor whole_matmul(const WholeProduct& product) {
  Shape output = product.numbers.shape();
  output[output.rank() - 1] = product.columns;
  LibraryPage page;
  page.name = "whole_matmul";
  page.outputs = {{output, product.sums}};
  page.expand = [product](Values in, const PageLimits& limits) {
    return std::vector{matmul_on_device(product, in, limits)};
  };
  return recorded(std::move(page), product);
}

Tensor whole_convolution(const WholeProduct& product, const WholeWindow& window) {
  const Shape& x = product.numbers.shape();
  const Shape output{x[0], product.columns, window.y.places(x[2]), window.x.places(x[3])};
  LibraryPage page;
  page.name = "whole_convolution";
  page.outputs = {{output, product.sums}};
  page.expand = [product, window, output](Values in, const PageLimits& limits) {
    return std::vector{convolution_on_device(product, window, output, in, limits)};
  };
  return recorded(std::move(page), product);
}

}  // namespace imprint::tensor
