// Matrix products.

#include <array>

#include "compute/model/onnx/ops/attention_products.h"
#include "compute/model/onnx/ops/whole_products.h"

namespace imprint::onnx {
namespace {

// The exact product of whole numbers. Operands of one axis as in NumPy.
Tensor whole_product_of(Tensor a, Tensor b) {
  const bool is_row = a.rank() == 1, is_column = b.rank() == 1;
  if (is_row) a = imprint::unsqueeze(a, 0);
  if (is_column) b = imprint::unsqueeze(b, 1);
  if (a.rank() < 2 || b.rank() < 2 || a.extent(a.rank() - 1) != b.extent(b.rank() - 2))
    return imprint::matmul(a, b);  // says what is wrong
  Tensor product = imprint::sum(imprint::mul(imprint::unsqueeze(a, -1), imprint::unsqueeze(b, -3)), -2);
  if (is_row) product = imprint::squeeze(product, -2);
  return is_column ? imprint::squeeze(product, -1) : product;
}

Tensor product_of(OpContext& context, const Value& a, const Value& b) {
  if (const auto product = dequantized_matmul(context, a, b)) return *product;
  if (a.tensor().dtype() == DType::int32 && b.tensor().dtype() == DType::int32)
    return whole_product_of(a.tensor(), b.tensor());
  return product_with_weights(a.tensor(), b.tensor());
}

// alpha * A' B' + beta * C
void gemm(OpContext& context) {
  Value a = context.value(0), b = context.value(1);
  if (!context.require(a.rank() == 2 && b.rank() == 2,
                       "operands " + a.shape().text() + " and " + b.shape().text() + " are not two matrices"))
    return;
  if (context.int_attribute("transA", 0) != 0) a = context.mover().permute(a, {1, 0});
  if (context.int_attribute("transB", 0) != 0) b = context.mover().permute(b, {1, 0});
  const double alpha = context.float_attribute("alpha", 1), beta = context.float_attribute("beta", 1);
  Tensor result = product_of(context, a, b);
  if (alpha != 1) result = imprint::mul(result, alpha);
  if (context.has(2)) {
    const Tensor c = context.tensor(2);
    result = imprint::add(result, beta == 1 ? c : imprint::mul(c, beta));
  }
  context.set(0, result);
}

void matmul(OpContext& context) {
  const Value a = context.value(0), b = context.value(1);
  context.set(0, product_of(context, a, b));
}

constexpr std::array kLinearOps{
    OpHandler{"Gemm", gemm},
    OpHandler{"MatMul", matmul},
};

}  // namespace

std::span<const OpHandler> linear_ops() { return kLinearOps; }

}  // namespace imprint::onnx
