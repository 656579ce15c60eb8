#include "compute/nn/convolution.h"

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"

namespace imprint::nn {
namespace {

// A failed channel count gives a shape that the variable refuses.
std::int64_t per_group(std::int64_t channels, std::int64_t groups) {
  return groups > 0 && channels % groups == 0 ? channels / groups : -1;
}

Shape weight_shape(std::int64_t first, std::int64_t second, int places, const PerAxis& kernel) {
  Shape shape{first, second};
  for (int i = 0; i < places; ++i) shape.append(kernel[i]);
  return shape;
}

std::string expected_input(std::int64_t channels, int places) {
  constexpr const char* kPlaces[] = {"length", "height, width", "depth, height, width"};
  return text("[batch, ", channels, ", ", kPlaces[places - 1], "]");
}

}  // namespace

Convolution::Convolution(const std::string& name, int places, std::int64_t in, std::int64_t out,
                         const PerAxis& kernel, const ConvOptions& options)
    : name_(name), options_(options) {
  const Shape weight = weight_shape(out, per_group(in, options.groups), places, kernel);
  InitialValues wanted = convolution_values(weight);
  wanted.seed = options.seed;
  weight_ = FormedWeight(parameters_, buffers_, name, weight, options.weight_form, options.weight_values,
                         wanted, false);
  wanted.rows = 1;
  wanted.columns = out;
  if (options.bias) bias_ = add_parameter(parameters_, name, "bias", {out}, options.bias_values, wanted);
}

Tensor Convolution::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

Tensor Convolution::operator()(const Tensor& x, Pass& pass) const {
  const Tensor weight = weight_.value(pass);
  if (!x.ok() || !weight.ok()) return x.ok() ? weight : x;
  const int places = weight.rank() - 2;
  if (x.rank() != weight.rank() || x.extent(1) != weight.extent(1) * options_.groups)
    return unfit_input(text("conv", places, "d"), name_, x,
                       expected_input(weight.extent(1) * options_.groups, places));
  const bool is_zero = options_.padding_mode == PadMode::constant;
  Tensor wide = x;
  if (!is_zero) {
    std::vector<std::pair<std::int64_t, std::int64_t>> amounts(2);
    for (int i = 0; i < places; ++i) amounts.emplace_back(options_.padding[i], options_.padding[i]);
    wide = pad(x, amounts, options_.padding_mode);
  }
  return convolution(wide, weight, options_.bias ? bias_.value() : Tensor(),
                     {.stride = options_.stride,
                      .padding = is_zero ? options_.padding : PerAxis(0),
                      .dilation = options_.dilation,
                      .groups = options_.groups,
                      .same = options_.same});
}

TransposedConvolution::TransposedConvolution(const std::string& name, int places, std::int64_t in,
                                             std::int64_t out, const PerAxis& kernel,
                                             const ConvTransposeOptions& options)
    : name_(name), options_(options) {
  const Shape weight = weight_shape(in, per_group(out, options.groups), places, kernel);
  InitialValues wanted = convolution_values(weight);  // PyTorch's fans, with outputs for inputs too
  wanted.seed = options.seed;
  weight_ = add_parameter(parameters_, name, "weight", weight, options.weight_values, wanted);
  wanted.rows = 1;
  wanted.columns = out;
  if (options.bias) bias_ = add_parameter(parameters_, name, "bias", {out}, options.bias_values, wanted);
}

Tensor TransposedConvolution::operator()(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (!x.ok() || !weight.ok()) return x.ok() ? weight : x;
  const int places = weight.rank() - 2;
  if (x.rank() != weight.rank() || x.extent(1) != weight.extent(0))
    return unfit_input(text("conv_transpose", places, "d"), name_, x,
                       expected_input(weight.extent(0), places));
  return transposed_convolution(x, weight, options_.bias ? bias_.value() : Tensor(),
                                {.stride = options_.stride,
                                 .padding = options_.padding,
                                 .output_padding = options_.output_padding,
                                 .dilation = options_.dilation,
                                 .groups = options_.groups});
}

namespace {

ConvOptions depthwise_options(ConvOptions options, std::int64_t channels) {
  options.groups = channels;
  return options;
}

}  // namespace

DepthwiseSeparableConv2d::DepthwiseSeparableConv2d(const std::string& name, std::int64_t in, std::int64_t out,
                                                   const PerAxis& kernel, ConvOptions options)
    : depthwise_(name + ".depthwise", in, in, kernel, depthwise_options(options, in)),
      pointwise_(name + ".pointwise", in, out, 1, {.bias = options.bias, .seed = options.seed}) {
  parameters_.add("depthwise", depthwise_.parameters());
  parameters_.add("pointwise", pointwise_.parameters());
}

}  // namespace imprint::nn
