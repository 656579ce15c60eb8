#include "compute/nn/modules/convolution.h"

#include <algorithm>

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

std::string expected_input(std::int64_t channels, int places, std::int64_t networks) {
  constexpr const char* kPlaces[] = {"length", "height, width", "depth, height, width"};
  return text("[", networks > 0 ? text(networks, ", ") : "", "batch, ", channels, ", ", kPlaces[places - 1],
              "]");
}

Shape of_networks(std::int64_t networks, const Shape& one) {
  if (networks < 1) return one;
  Shape all{networks};
  for (const std::int64_t extent : one.extents()) all.append(extent);
  return all;
}

// [networks, channels, ...] as [networks channels, ...].
Tensor in_a_row(const Tensor& parameter) {
  Shape row{parameter.extent(0) * parameter.extent(1)};
  for (int axis = 2; axis < parameter.rank(); ++axis) row.append(parameter.extent(axis));
  return reshape(parameter, row);
}

// Whether x has these channels, with the networks of a kennel first.
bool fits_places(const Tensor& x, const Tensor& weight, std::int64_t channels, std::int64_t networks) {
  const bool is_kennel = networks > 0;
  return x.rank() == weight.rank() && x.extent(is_kennel ? 2 : 1) == channels &&
         (!is_kennel || x.extent(0) == networks);
}

}  // namespace

Convolution::Convolution(const std::string& name, int places, std::int64_t in, std::int64_t out,
                         const PerAxis& kernel, const ConvOptions& options)
    : name_(name), options_(options) {
  const Shape weight = weight_shape(out, per_group(in, options.groups), places, kernel);
  InitialValues wanted = convolution_values(weight);
  wanted.seed = options.seed;
  wanted.groups = options.networks;
  weight_ = FormedWeight(parameters_, buffers_, name, of_networks(options.networks, weight),
                         options.networks > 0 ? WeightForm::plain : options.weight_form,
                         options.weight_values, wanted, false);
  wanted.rows = 1;
  wanted.columns = out;
  if (options.bias)
    bias_ = add_parameter(parameters_, name, "bias", of_networks(options.networks, {out}),
                          options.bias_values, wanted);
}

Tensor Convolution::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

Tensor Convolution::operator()(const Tensor& x, Pass& pass) const {
  const Tensor weight = weight_.value(pass);
  if (!x.ok() || !weight.ok()) return x.ok() ? weight : x;
  const std::int64_t networks = options_.networks;
  const int first = networks > 0 ? 1 : 0;
  const std::int64_t channels = weight.extent(first + 1) * options_.groups;
  if (!fits_places(x, weight, channels, networks)) {
    const int places = weight.rank() - 2 - first;
    return unfit_input(text("conv", places, "d"), name_, x, expected_input(channels, places, networks));
  }
  if (networks < 1) return convolved(x, weight);
  return channels_as_networks(convolved(networks_as_channels(x), in_a_row(weight)), networks);
}

Tensor Convolution::convolved(const Tensor& x, const Tensor& weight) const {
  const bool is_zero = options_.padding_mode == PadMode::constant;
  Tensor wide = x;
  if (!is_zero) {
    std::vector<std::pair<std::int64_t, std::int64_t>> amounts(2);
    for (int i = 0; i + 2 < weight.rank(); ++i)
      amounts.emplace_back(options_.padding[i], options_.padding[i]);
    wide = pad(x, amounts, options_.padding_mode);
  }
  Tensor bias;
  if (options_.bias) bias = options_.networks > 0 ? in_a_row(bias_.value()) : bias_.value();
  return convolution(wide, weight, bias,
                     {.stride = options_.stride,
                      .padding = is_zero ? options_.padding : PerAxis(0),
                      .dilation = options_.dilation,
                      .groups = options_.groups * std::max<std::int64_t>(options_.networks, 1),
                      .same = options_.same});
}

TransposedConvolution::TransposedConvolution(const std::string& name, int places, std::int64_t in,
                                             std::int64_t out, const PerAxis& kernel,
                                             const ConvTransposeOptions& options)
    : name_(name), options_(options) {
  const Shape weight = weight_shape(in, per_group(out, options.groups), places, kernel);
  InitialValues wanted = convolution_values(weight);  // PyTorch's fans, with outputs for inputs too
  wanted.seed = options.seed;
  wanted.groups = options.networks;
  weight_ = add_parameter(parameters_, name, "weight", of_networks(options.networks, weight),
                          options.weight_values, wanted);
  wanted.rows = 1;
  wanted.columns = out;
  if (options.bias)
    bias_ = add_parameter(parameters_, name, "bias", of_networks(options.networks, {out}),
                          options.bias_values, wanted);
}

Tensor TransposedConvolution::operator()(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (!x.ok() || !weight.ok()) return x.ok() ? weight : x;
  const std::int64_t networks = options_.networks;
  const int first = networks > 0 ? 1 : 0;
  if (!fits_places(x, weight, weight.extent(first), networks)) {
    const int places = weight.rank() - 2 - first;
    return unfit_input(text("conv_transpose", places, "d"), name_, x,
                       expected_input(weight.extent(first), places, networks));
  }
  if (networks < 1) return convolved(x, weight);
  return channels_as_networks(convolved(networks_as_channels(x), in_a_row(weight)), networks);
}

Tensor TransposedConvolution::convolved(const Tensor& x, const Tensor& weight) const {
  Tensor bias;
  if (options_.bias) bias = options_.networks > 0 ? in_a_row(bias_.value()) : bias_.value();
  return transposed_convolution(x, weight, bias,
                                {.stride = options_.stride,
                                 .padding = options_.padding,
                                 .output_padding = options_.output_padding,
                                 .dilation = options_.dilation,
                                 .groups = options_.groups * std::max<std::int64_t>(options_.networks, 1)});
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
      pointwise_(name + ".pointwise", in, out, 1,
                 {.bias = options.bias, .networks = options.networks, .seed = options.seed}) {
  parameters_.add("depthwise", depthwise_.parameters());
  parameters_.add("pointwise", pointwise_.parameters());
}

}  // namespace imprint::nn
