#include "compute/model/onnx/ops/attention_products.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "compute/nn/modules/attention_page.h"
#include "compute/tensor/build.h"

namespace imprint::onnx {
namespace {

using tensor::Op;

// Without what broadcasts it.
const tensor::Node& narrow_node(const tensor::Node& node) {
  const tensor::Node* found = &node;
  while (found->op == Op::expand || found->op == Op::stop_gradient) found = found->inputs[0].get();
  return *found;
}

// Whether the node folds `of` over its last axis.
bool folds_rows(const tensor::Node& node, Op op, const tensor::Node& of) {
  const tensor::Node& fold = narrow_node(node);
  return fold.op == op && fold.inputs[0].get() == &of && fold.ints.size() == 1 &&
         fold.ints[0] == of.shape.rank() - 1;
}

// The scores of which the weights are the softmax along the last axis; null: they are something else.
const tensor::Node* scores_of(const tensor::Node& weights) {
  if (weights.op != Op::div) return nullptr;
  const tensor::Node& powers = *weights.inputs[0];
  if (powers.op != Op::exp || !folds_rows(*weights.inputs[1], Op::reduce_sum, powers)) return nullptr;
  const tensor::Node& shifted = *powers.inputs[0];
  if (shifted.op != Op::sub) return nullptr;
  const tensor::Node& scores = *shifted.inputs[0];
  return folds_rows(*shifted.inputs[1], Op::reduce_max, scores) ? &scores : nullptr;
}

// The one number of a constant.
std::optional<double> known_number(const tensor::Node& broadcast) {
  const tensor::Node* single = &narrow_node(broadcast);
  while (single->op == Op::reshape) single = single->inputs[0].get();
  const tensor::Node& node = *single;
  if (node.dtype != DType::float32) return std::nullopt;
  if (node.op == Op::full) return node.floats[0];
  if (node.op != Op::constant || node.shape.element_count() != 1) return std::nullopt;
  float number = 0;
  std::memcpy(&number, node.constant->bytes.data(), sizeof number);
  return number;
}

struct ScaledProduct {
  const tensor::Node* product = nullptr;
  double scale = 1;
};

std::optional<ScaledProduct> scaled_product(const tensor::Node& scores) {
  if (scores.op == Op::matmul) return ScaledProduct{&scores};
  if (scores.op != Op::mul && scores.op != Op::div) return std::nullopt;
  for (const std::size_t slot : {0u, 1u}) {
    const tensor::Node& product = *scores.inputs[slot];
    const std::optional<double> number = known_number(*scores.inputs[1 - slot]);
    if (!number || product.op != Op::matmul || (scores.op == Op::div && slot == 1)) continue;
    return ScaledProduct{&product, scores.op == Op::div ? 1 / *number : *number};
  }
  return std::nullopt;
}

// [..., steps, extent] with one axis of batches and one of heads.
Tensor with_heads(const Tensor& x) { return x.rank() == 3 ? imprint::unsqueeze(x, 1) : x; }

}  // namespace

Tensor product_with_weights(const Tensor& weights, const Tensor& values) {
  const Tensor product = imprint::matmul(weights, values);
  if (!product.ok() || weights.rank() != values.rank() || weights.rank() < 3 || weights.rank() > 4)
    return product;
  const tensor::Node* scores = scores_of(*weights.node());
  const std::optional<ScaledProduct> scaled = scores ? scaled_product(*scores) : std::nullopt;
  if (!scaled || !std::isfinite(scaled->scale)) return product;
  const Tensor query = with_heads(Tensor(scaled->product->inputs[0])),
               key = with_heads(imprint::transpose(Tensor(scaled->product->inputs[1]))),
               value = with_heads(values);
  if (!nn::fits_attention_page(query, key, value)) return product;
  const double ratio = scaled->scale * std::sqrt(static_cast<double>(query.extent(3)));
  constexpr double kRounding = 1e-6;  // of a scale that the file stores as float32
  const Tensor scaled_query = std::abs(ratio - 1) <= kRounding ? query : query * Tensor(ratio);
  const Tensor found =
      nn::attention_page(scaled_query, key, value, {}, nn::stores_attention_scores(query, key));
  return weights.rank() == 3 ? imprint::squeeze(found, 1) : found;
}

}  // namespace imprint::onnx
