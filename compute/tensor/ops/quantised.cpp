#include "compute/tensor/ops/quantised.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace tensor;

namespace {

// Why the parts do not fit each other.
std::optional<Tensor> refused_weights(const QuantisedWeights& weights) {
  const Tensor &values = weights.values, &scales = weights.scales;
  if (!values.ok()) return values;
  if (!scales.ok()) return scales;
  const bool is_wide = weights.bits == 8;
  const std::int64_t k = values.extent(1) * (is_wide ? 1 : 2);
  if ((!is_wide && weights.bits != 4) || values.rank() != 2 || k < 1 || scales.rank() != 2 ||
      values.dtype() != (is_wide ? DType::int8 : DType::uint8) || !dtype_is_float(scales.dtype()) ||
      scales.extent(0) != values.extent(0) || scales.extent(1) < 1 || k % scales.extent(1) != 0)
    return failure(
        ErrorCode::shape_mismatch, "dequantise",
        text("found ", amount(weights.bits, "bit"), ", ", dtype_name(values.dtype()), " values ",
             describe(values), " and ", dtype_name(scales.dtype()), " scales ", describe(scales),
             ", expected int8 [n, k] of 8 bits or uint8 [n, k / 2] of 4, and floats [n, k / block]"));
  return std::nullopt;
}

// ---- the page of products with few rows ----

constexpr std::int64_t kFewRows = 16;            // with more, unpacked weights take less time
constexpr std::int64_t kLeastWeights = 1 << 18;  // fewer are read by kernels that do other work as well

struct ProductExtents {
  std::int64_t rows = 1, columns = 1, depth = 1, block = 1;
  int bits = 8;

  std::int64_t slice() const { return bits == 8 ? 16 : 32; }  // weights in 16 bytes
};

using Values = std::span<const Tensor>;  // x [rows, depth], values, scales

Tensor unpacked_product(const ProductExtents& extents, Values in) {
  return matmul(in[0], dequantise({in[1], in[2], extents.bits}));
}

// By the kernel of shaders/pages/few_bits_product.glsl.
Tensor product_on_device(const ProductExtents& extents, Values in, const PageLimits& limits) {
  constexpr std::int64_t kMostBatch = 4, kMostInvocations = 256, kLeastLanes = 16, kMostLanes = 32,
                         kMostOwn = 8, kMostSums = 16;
  if (limits.invocations < kLeastLanes) return unpacked_product(extents, in);
  const auto up = [](std::int64_t count, std::int64_t by) { return (count + by - 1) / by; };
  const std::int64_t invocations =
                         limits.processor ? 32 : std::min<std::int64_t>(kMostInvocations, limits.invocations),
                     batch = std::min(kMostBatch, extents.rows), slices = extents.depth / extents.slice(),
                     staged_bytes = std::min(16384, limits.shared_bytes / 2);
  // As few invocations without a slice as possible. All of x that a turn meets lies in shared memory: with
  // few lanes it is small, and many columns use it.
  std::int64_t lanes = 0;
  for (std::int64_t some = kLeastLanes; some <= std::min(kMostLanes, invocations); some *= 2)
    if (lanes == 0 || (up(slices, some) * some <= up(slices, lanes) * lanes &&
                       batch * some * extents.slice() * 4 <= staged_bytes))
      lanes = some;
  const std::int64_t sets = invocations / lanes;
  std::int64_t own = limits.processor ? 2 : kMostOwn;
  while (own > 1 && (own * batch > kMostSums ||
                     up(extents.columns, sets * own) * up(extents.rows, batch) < limits.groups))
    own /= 2;

  LibraryPage page;
  page.name = "few_bits_product_kernel";
  page.outputs = {{Shape{extents.rows, extents.columns}}};
  page.shader = "pages/few_bits_product";
  page.includes = {"set_sums"};
  page.constants = {
      {"BITS", extents.bits},
      {"ROWS", extents.rows},
      {"COLUMNS", extents.columns},
      {"DEPTH", extents.depth},
      {"BLOCK", extents.block},
      {"BATCH", batch},
      {"LANES", lanes},
      {"OWN", own},
      {"TOGETHER", limits.processor ? 1 : std::gcd(8, batch * lanes * extents.slice() / invocations)}};
  page.group_size = static_cast<int>(invocations);
  page.groups = up(extents.columns, sets * own) * up(extents.rows, batch);
  page.loads = static_cast<double>(up(extents.columns, sets * own));
  page.quads = {1};
  return run_page(std::move(page), in)[0];
}

// The gradients of x and of the scales.
std::vector<Tensor> product_gradients(const ProductExtents& extents, Values in, const Tensor& gradient) {
  const std::int64_t blocks = in[2].extent(1);
  const QuantisedWeights steps{in[1], ones({extents.columns, blocks}), extents.bits};
  const Tensor of_weights = transpose(matmul(transpose(in[0]), gradient) * dequantise(steps));
  return {matmul(gradient, transpose(dequantise({in[1], in[2], extents.bits}))), Tensor(),
          sum(reshape(of_weights, {extents.columns, blocks, extents.block}), {2})};
}

bool has_product_page(const ProductExtents& extents, const Tensor& x) {
  return x.dtype() == DType::float32 && !x.shape().is_named() && extents.rows >= 1 &&
         extents.rows <= kFewRows && extents.depth * extents.columns >= kLeastWeights &&
         extents.depth % extents.slice() == 0 && extents.block % 4 == 0 &&
         (extents.block % extents.slice() == 0 || extents.slice() % extents.block == 0);
}

Tensor product_page(const ProductExtents& extents, Values in) {
  LibraryPage page;
  page.name = "few_bits_product";
  page.outputs = {{Shape{extents.rows, extents.columns}}};
  page.constants = {{"BITS", extents.bits}};
  page.compose = [extents](Values inputs) { return std::vector{unpacked_product(extents, inputs)}; };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return std::vector{product_on_device(extents, inputs, limits)};
  };
  page.backward = [extents](Values inputs, Values, Values gradients) {
    return product_gradients(extents, inputs, gradients[0]);
  };
  return run_page(std::move(page), in)[0];
}

}  // namespace

QuantisedWeights quantise(const Tensor& weight, int bits, std::int64_t block) {
  if (!weight.ok()) return {weight, weight, bits};
  const std::int64_t k = weight.extent(0), n = weight.extent(1);
  if (weight.rank() != 2 || weight.dtype() != DType::float32 || (bits != 8 && bits != 4) || block < 1 ||
      k < 1 || k % block != 0 || (bits == 4 && block % 2 != 0)) {
    const Tensor error = failure(ErrorCode::shape_mismatch, "quantise",
                                 text("found ", describe(weight), ", ", bits, " bits and blocks of ", block,
                                      ", expected float32 [k, n], 8 or 4 bits, and blocks that divide k, of "
                                      "an even length for 4 bits"));
    return {error, error, bits};
  }
  const Tensor blocks = reshape(transpose(weight), {n, k / block, block});
  const double most = bits == 8 ? 127 : 7;
  const Tensor scales = max(abs(blocks), {2}, true) / most;
  const Tensor rounded =
      cast(clamp(round(blocks / where(equal(scales, 0.0f), 1.0f, scales)), -most, most), DType::int32);
  QuantisedWeights out;
  out.bits = bits;
  out.scales = reshape(scales, {n, k / block});
  if (bits == 8) {
    out.values = cast(reshape(rounded, {n, k}), DType::int8);
    return out;
  }
  const Tensor pairs = reshape(rounded + 8, {n, k / 2, 2});
  const Tensor both = narrow(pairs, 2, 0, 1) + narrow(pairs, 2, 1, 1) * 16;
  out.values = cast(reshape(both, {n, k / 2}), DType::uint8);
  return out;
}

Tensor dequantise(const QuantisedWeights& weights) {
  if (std::optional<Tensor> error = refused_weights(weights)) return *error;
  const std::int64_t n = weights.values.extent(0), blocks = weights.scales.extent(1),
                     k = weights.values.extent(1) * (weights.bits == 8 ? 1 : 2);
  Tensor values = cast(weights.values, DType::int32);
  if (weights.bits == 4) {
    const Shape pairs{n, k / 2, 2};
    values = bit_and(shift_right(expand(unsqueeze(values, 2), pairs), iota(pairs, 2) * 4), 15) - 8;
  }
  const Tensor scaled = cast(reshape(values, {n, blocks, k / blocks}), DType::float32) *
                        unsqueeze(cast(weights.scales, DType::float32), 2);
  return transpose(reshape(scaled, {n, k}));
}

Tensor matmul(const Tensor& x, const QuantisedWeights& weights) {
  const Tensor unpacked = dequantise(weights);
  if (!x.ok() || !unpacked.ok() || x.rank() < 1 || x.extent(x.rank() - 1) != unpacked.extent(0))
    return matmul(x, unpacked);
  ProductExtents extents{.columns = unpacked.extent(1), .depth = unpacked.extent(0), .bits = weights.bits};
  extents.rows = x.shape().element_count() / extents.depth;
  extents.block = extents.depth / weights.scales.extent(1);
  if (!has_product_page(extents, x)) return matmul(x, unpacked);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = extents.columns;
  const Tensor in[] = {reshape(x, {extents.rows, extents.depth}), weights.values, weights.scales};
  return reshape(product_page(extents, in), shape);
}

}  // namespace imprint
