#include "compute/tensor/ops/quantised.h"

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"

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

}  // namespace

QuantisedWeights quantise(const Tensor& weight, int bits, std::int64_t block) {
  if (!weight.ok()) return {weight, weight, bits};
  const std::int64_t k = weight.extent(0), n = weight.extent(1);
  if (weight.rank() != 2 || weight.dtype() != DType::float32 || (bits != 8 && bits != 4) || block < 1 ||
      k < 1 || k % block != 0 || (bits == 4 && block % 2 != 0)) {
    const Tensor error = failure(ErrorCode::shape_mismatch, "quantise",
                                 text("found ", describe(weight), ", ", bits, " bits and blocks of ", block,
                                      ", expected float32 [k, n], 8 or 4 bits, and blocks that divide k"));
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

Tensor matmul(const Tensor& x, const QuantisedWeights& weights) { return matmul(x, dequantise(weights)); }

}  // namespace imprint
