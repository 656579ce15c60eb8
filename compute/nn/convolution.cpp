#include "compute/nn/convolution.h"

#include <array>

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"

namespace imprint::nn {
namespace {

// A failed channel count gives a shape that the variable refuses.
std::int64_t in_group(std::int64_t in, const ConvOptions& options) {
  return options.groups > 0 && in % options.groups == 0 ? in / options.groups : -1;
}

}  // namespace

Convolution::Convolution(const std::string& name, const ConvOptions& options, const Shape& weight)
    : name_(name), options_(options) {
  InitialValues wanted = convolution_values(weight);
  wanted.seed = options.seed;
  weight_ = add_parameter(parameters_, name, "weight", weight, options.weight_values, wanted);
  wanted.rows = 1;
  wanted.columns = weight[0];
  if (options.bias)
    bias_ = add_parameter(parameters_, name, "bias", {weight[0]}, options.bias_values, wanted);
}

Conv2d::Conv2d(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
               const ConvOptions& options)
    : Convolution(name, options, {out, in_group(in, options), kernel, kernel}) {}

Tensor Conv2d::operator()(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (x.ok() && weight.ok() && (x.rank() != 4 || x.extent(1) != weight.extent(1) * options_.groups))
    return unfit_input("conv2d", name_, x,
                       text("[batch, ", weight.extent(1) * options_.groups, ", height, width]"));
  return conv2d(x, weight, options_.bias ? bias_.value() : Tensor(),
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups});
}

Conv1d::Conv1d(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
               const ConvOptions& options)
    : Convolution(name, options, {out, in_group(in, options), kernel}) {}

// One product per sequence over windows, as conv2d's.
Tensor Conv1d::operator()(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (!x.ok() || !weight.ok()) return x.ok() ? weight : x;
  const std::int64_t groups = options_.groups, inside = weight.extent(1), out = weight.extent(0);
  if (x.rank() != 3 || x.extent(1) != inside * groups)
    return unfit_input("conv1d", name_, x, text("[batch, ", inside * groups, ", length]"));
  if (out % groups != 0 || options_.padding < 0)
    return Tensor(make_error(
        ErrorCode::invalid_argument,
        text("conv1d '", name_, "': found ", out, " outputs in ", groups, " groups and padding ",
             options_.padding, ", expected outputs that the groups divide and padding of 0 or more")));
  const std::array<std::pair<std::int64_t, std::int64_t>, 3> amounts{
      {{0, 0}, {0, 0}, {options_.padding, options_.padding}}};
  const std::int64_t kernel = weight.extent(2);
  const Tensor seen = window(pad(x, amounts), 2, kernel, options_.stride, options_.dilation);
  if (!seen.ok()) return seen;
  const std::int64_t batch = x.extent(0), length = seen.extent(2);
  const Tensor grouped = reshape(seen, {batch, groups, inside, length, kernel});
  const Tensor patches = reshape(permute(grouped, {0, 1, 4, 2, 3}), {batch, groups, kernel * inside, length});
  const Tensor kernels = reshape(permute(weight, {0, 2, 1}), {1, groups, out / groups, kernel * inside});
  const Tensor product = reshape(matmul(kernels, patches), {batch, out, length});
  return options_.bias ? product + reshape(bias_.value(), {1, out, 1}) : product;
}

Tensor GlobalAvgPool::operator()(const Tensor& x) const {
  if (x.ok() && x.rank() < 3) return unfit_input("global average pool", "", x, "[batch, channels, ...]");
  Axes axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return mean(x, axes);
}

}  // namespace imprint::nn
