#include "compute/nn/quantised_parameters.h"

#include <algorithm>
#include <array>

#include "compute/tensor/composites/composites.h"

namespace imprint::nn {
namespace {

// The values of NF4 in the paper's appendix E, rounded to float32.
constexpr std::array<float, 16> kNormal4 = {
    -1.0f,      -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
    0.0795803f, 0.1609302f,  0.2461123f,   0.33791524f, 0.44070983f,  0.562617f,    0.72295684f,   1.0f};

// Weights in rows of one block each; the last row ends in zeros.
Tensor block_rows(const Tensor& weight, std::int64_t block, std::int64_t blocks) {
  const Tensor flat = reshape(weight, {weight.shape().element_count()});
  const std::pair<std::int64_t, std::int64_t> missing{0, blocks * block - weight.shape().element_count()};
  return reshape(missing.second > 0 ? pad(flat, std::span(&missing, 1)) : flat, {blocks, block});
}

// share: weights divided by their scale. int32 codes, from 0 for those of 4 bits.
Tensor coded_as(const Tensor& share, WeightCode code) {
  if (code == WeightCode::int8) return cast(round(share * 127.0f), DType::int32);
  if (code == WeightCode::int4) return cast(round(share * 7.0f), DType::int32) + 8;
  Tensor passed = zeros(share.shape(), DType::int32);
  for (std::size_t i = 0; i + 1 < kNormal4.size(); ++i)
    passed = passed + cast(share > (kNormal4[i] + kNormal4[i + 1]) / 2, DType::int32);
  return passed;
}

}  // namespace

QuantisedParameters::QuantisedParameters(const std::string& name, const Parameters& weights,
                                         const QuantisedParametersOptions& options)
    : options_(options) {
  options_.block = std::max<std::int64_t>(2, options.block + options.block % 2);
  const bool bytes = options_.code == WeightCode::int8;
  for (const Parameter& weight : weights) {
    if (!weight.variable.ok() || !dtype_is_float(weight.variable.dtype())) continue;
    const std::int64_t count = weight.variable.shape().element_count();
    const std::int64_t blocks = (count + options_.block - 1) / options_.block;
    const std::string full = name + "." + weight.name;
    const Coded made{weight.variable,
                     Variable::zeros(full + ".codes", {blocks, bytes ? options_.block : options_.block / 2},
                                     bytes ? DType::int8 : DType::uint8),
                     Variable::zeros(full + ".scales", {blocks, 1})};
    state_.add(weight.name + ".codes", made.codes);
    state_.add(weight.name + ".scales", made.scales);
    coded_.push_back(made);
  }
}

std::vector<Update> QuantisedParameters::pack() const {
  std::vector<Update> updates;
  for (const Coded& coded : coded_) {
    const Tensor rows = block_rows(coded.weight.value(), options_.block, coded.scales.shape()[0]);
    const Tensor scales = max(abs(rows), {1}, true);
    Tensor codes = coded_as(rows / clamp_min(scales, 1e-30), options_.code);
    if (options_.code != WeightCode::int8) {
      const std::int64_t half = options_.block / 2;
      codes = narrow(codes, 1, 0, half) + 16 * narrow(codes, 1, half, half);
    }
    updates.push_back(Update::assign(coded.codes, cast(codes, coded.codes.dtype())));
    updates.push_back(Update::assign(coded.scales, scales));
  }
  return updates;
}

Tensor QuantisedParameters::decoded(const Coded& coded) const {
  const Tensor stored = cast(coded.codes.value(), DType::int32);
  Tensor share;
  if (options_.code == WeightCode::int8) {
    share = cast(stored, DType::float32) * (1.0f / 127);
  } else {
    const Tensor codes = concat({bit_and(stored, 15), shift_right(stored, 4)}, 1);
    share = options_.code == WeightCode::int4 ? cast(codes - 8, DType::float32) * (1.0f / 7)
                                              : take(Tensor::from(kNormal4, {16}), 0, codes);
  }
  const Shape& shape = coded.weight.shape();
  const Tensor flat = reshape(share * coded.scales.value(), {stored.extent(0) * options_.block});
  return reshape(narrow(flat, 0, 0, shape.element_count()), shape);
}

std::vector<Tensor> QuantisedParameters::operator()(std::span<const Tensor> outputs) const {
  std::vector<Tensor> from, to;
  for (const Coded& coded : coded_) {
    from.push_back(coded.weight.value());
    to.push_back(decoded(coded));
  }
  return substitute(outputs, from, to);
}

Tensor QuantisedParameters::operator()(const Tensor& output) const {
  return (*this)(std::span<const Tensor>(&output, 1))[0];
}

std::uint64_t QuantisedParameters::bytes() const {
  std::uint64_t total = 0;
  for (const Coded& coded : coded_) total += coded.codes.bytes() + coded.scales.bytes();
  return total;
}

}  // namespace imprint::nn
