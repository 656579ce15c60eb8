// Activations, softmax, and operators that do nothing at inference.

#include <array>

#include "compute/base/quote.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

template <Tensor (*function)(const Tensor&)>
void plain(OpContext& context) {
  context.set(0, function(context.tensor(0)));
}

void leaky_relu(OpContext& context) {
  context.set(0, imprint::leaky_relu(context.tensor(0), context.float_attribute("alpha", 0.01)));
}
void elu(OpContext& context) {
  context.set(0, imprint::elu(context.tensor(0), context.float_attribute("alpha", 1)));
}
void celu(OpContext& context) {
  context.set(0, imprint::celu(context.tensor(0), context.float_attribute("alpha", 1)));
}
void thresholded_relu(OpContext& context) {
  context.set(0, imprint::thresholded_relu(context.tensor(0), context.float_attribute("alpha", 1)));
}
void hard_sigmoid(OpContext& context) {
  context.set(0, imprint::hard_sigmoid(context.tensor(0), context.float_attribute("alpha", 0.2),
                                       context.float_attribute("beta", 0.5)));
}

void selu(OpContext& context) {
  if (!context.has_attribute("alpha") && !context.has_attribute("gamma"))
    return context.set(0, imprint::selu(context.tensor(0)));
  const double alpha = context.float_attribute("alpha", 1.67326319217681884765625),
               gamma = context.float_attribute("gamma", 1.05070102214813232421875);
  context.set(0, imprint::mul(imprint::elu(context.tensor(0), alpha), gamma));
}

void gelu(OpContext& context) {
  const std::string approximate = context.string_attribute("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return context.unsupported("approximate " + quote(approximate));
  context.set(
      0, approximate == "tanh" ? imprint::gelu_tanh(context.tensor(0)) : imprint::gelu(context.tensor(0)));
}

void swish(OpContext& context) {
  const Tensor x = context.tensor(0);
  context.set(0, imprint::mul(x, imprint::sigmoid(imprint::mul(x, context.float_attribute("alpha", 1)))));
}

void prelu(OpContext& context) {
  const Tensor x = context.tensor(0);
  Tensor slope = context.tensor(1);
  // Before opset 7 a list is one slope per channel.
  if (context.opset() < 7 && slope.rank() == 1 && x.rank() > 2) {
    Shape shape = slope.shape();
    for (int i = 2; i < x.rank(); ++i) shape.append(1);
    slope = imprint::reshape(slope, shape);
  }
  context.set(0, imprint::where(imprint::greater_equal(x, 0), x, imprint::mul(x, slope)),
              context.value(0).type());
}

// Before opset 13 everything from `axis` on is one row. Since then `axis` is one axis.
template <Tensor (*function)(const Tensor&, int)>
void softmax(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (context.opset() >= 13)
    return context.set(0, function(x, context.axis(context.int_attribute("axis", -1), x.rank())));
  const std::int64_t raw = context.int_attribute("axis", 1);
  const int axis = raw == x.rank() ? x.rank() : context.axis(raw, x.rank());
  std::int64_t rows = 1, columns = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? rows : columns) *= x.shape()[i];
  context.set(0, imprint::reshape(function(imprint::reshape(x, {rows, columns}), 1), x.shape()));
}

// 1 at the first maximum, 0 elsewhere.
Tensor first_maximum(const Tensor& x, int axis) {
  return imprint::cast(imprint::equal(imprint::iota(x.shape(), axis), imprint::argmax(x, axis, true)),
                       DType::float32);
}

void identity(OpContext& context) { context.set(0, context.value(0)); }

void dropout(OpContext& context) {
  if (context.has(2) && context.known_number(2, "training_mode") != 0)
    return dropout_in_training(context, context.has(1) ? context.known_number(1, "ratio") : 0.5);
  context.set(0, context.value(0));
  if (context.wants(1)) context.set(1, full(context.shape(0), 1, DType::boolean), ElementType::boolean);
}

constexpr std::array kActivationOps{
    OpHandler{"Relu", plain<imprint::relu>, fold_elementwise},
    OpHandler{"LeakyRelu", leaky_relu},
    OpHandler{"PRelu", prelu},
    OpHandler{"Elu", elu},
    OpHandler{"Selu", selu},
    OpHandler{"Celu", celu},
    OpHandler{"ThresholdedRelu", thresholded_relu},
    OpHandler{"Gelu", gelu},
    OpHandler{"Sigmoid", plain<imprint::sigmoid>},
    OpHandler{"HardSigmoid", hard_sigmoid},
    OpHandler{"HardSwish", plain<imprint::hard_swish>},
    OpHandler{"Swish", swish},
    OpHandler{"Mish", plain<imprint::mish>},
    OpHandler{"Softsign", plain<imprint::softsign>},
    OpHandler{"Tanh", plain<imprint::tanh>},
    OpHandler{"Softplus", [](OpContext& context) { context.set(0, imprint::softplus(context.tensor(0))); }},
    OpHandler{"Softmax", softmax<imprint::softmax>},
    OpHandler{"LogSoftmax", softmax<imprint::log_softmax>},
    OpHandler{"Hardmax", softmax<first_maximum>},
    OpHandler{"Identity", identity, nullptr, Takes::anything},
    OpHandler{"Dropout", dropout},
};

}  // namespace

std::span<const OpHandler> activation_ops() { return kActivationOps; }

}  // namespace imprint::onnx
