#include "compute/nn/modules/deformable.h"

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"
#include "compute/tensor/build.h"

namespace imprint::nn {
namespace {

// Where each element of the kernel reads without offsets, along one axis: float32 [1, kernel, places].
Tensor fixed_places(const Shape& kernel, const Shape& out, int axis, const ConvOptions& options) {
  std::vector<float> places;
  for (std::int64_t i = 0; i < kernel[0]; ++i)
    for (std::int64_t j = 0; j < kernel[1]; ++j)
      for (std::int64_t y = 0; y < out[0]; ++y)
        for (std::int64_t x = 0; x < out[1]; ++x)
          places.push_back(static_cast<float>((axis == 0 ? y : x) * options.stride[axis] -
                                              options.padding[axis] +
                                              (axis == 0 ? i : j) * options.dilation[axis]));
  return Tensor::from(places, {1, kernel.element_count(), out.element_count()});
}

}  // namespace

DeformConv2d::DeformConv2d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
                           const ConvOptions& options)
    : name_(name), options_(options) {
  const bool divides = options.groups > 0 && in % options.groups == 0 && out % options.groups == 0;
  const Shape weight{out, divides ? in / options.groups : -1, kernel[0], kernel[1]};
  InitialValues wanted = convolution_values(weight);
  wanted.seed = options.seed;
  weight_ = add_parameter(parameters_, name, "weight", weight, options.weight_values, wanted);
  wanted.rows = 1;
  wanted.columns = out;
  if (options.bias) bias_ = add_parameter(parameters_, name, "bias", {out}, options.bias_values, wanted);
}

// [batch, in * kernel, places]: as unfold, read at the moved places. Sums the four pixels around each.
Tensor DeformConv2d::columns(const Tensor& x, const Tensor& offset, const Tensor& mask,
                             const Shape& out) const {
  const Shape& weight = weight_.shape();
  const Shape kernel{weight[2], weight[3]};
  const std::int64_t batch = x.extent(0), channels = x.extent(1), height = x.extent(2), width = x.extent(3);
  const std::int64_t size = kernel.element_count(), places = out.element_count();
  const std::int64_t parts = offset.extent(1) / (2 * size), rows = batch * parts;
  const Tensor moves = reshape(offset, {rows, size, 2, places});
  const Tensor pixels = reshape(x, {rows, channels / parts, height * width});
  Tensor low[2], share[2];
  for (int axis = 0; axis < 2; ++axis) {
    const Tensor at =
        reshape(narrow(moves, 2, axis, 1), {rows, size, places}) + fixed_places(kernel, out, axis, options_);
    low[axis] = stop_gradient(floor(at));
    share[axis] = at - low[axis];
  }
  Tensor sum;
  for (int corner = 0; corner < 4; ++corner) {
    const float down = static_cast<float>(corner / 2), right = static_cast<float>(corner % 2);
    const Tensor y = low[0] + down, z = low[1] + right;
    const Tensor inside = logical_and(logical_and(y >= 0.0f, y < static_cast<float>(height)),
                                      logical_and(z >= 0.0f, z < static_cast<float>(width)));
    const Tensor index =
        cast(clamp(y, 0, static_cast<double>(height - 1)), DType::int32) * static_cast<std::int32_t>(width) +
        cast(clamp(z, 0, static_cast<double>(width - 1)), DType::int32);
    const Tensor part = (down > 0 ? share[0] : 1 - share[0]) * (right > 0 ? share[1] : 1 - share[1]) *
                        cast(inside, DType::float32);
    const Shape flat{rows, 1, size * places}, wide{rows, channels / parts, size * places};
    const Tensor term = gather(pixels, 2, expand(reshape(index, flat), wide)) * reshape(part, flat);
    sum = corner == 0 ? term : sum + term;
  }
  if (mask.ok()) sum = sum * reshape(mask, {rows, 1, size * places});
  return reshape(sum, {batch, channels * size, places});
}

Tensor DeformConv2d::operator()(const Tensor& x, const Tensor& offset, const Tensor& mask) const {
  const Tensor weight = weight_.value();
  for (const Tensor& operand : {x, offset, weight})
    if (!operand.ok()) return operand;
  if (!tensor::is_empty(mask) && !mask.ok()) return mask;
  const Shape& shape = weight.shape();
  const std::int64_t size = shape[2] * shape[3];
  if (x.rank() != 4 || x.extent(1) != shape[1] * options_.groups)
    return unfit_input("deformable convolution", name_, x,
                       text("[batch, ", shape[1] * options_.groups, ", height, width]"));
  Shape out;
  for (int axis = 0; axis < 2; ++axis)
    out.append((x.extent(2 + axis) + 2 * options_.padding[axis] -
                options_.dilation[axis] * (shape[2 + axis] - 1) - 1) /
                   options_.stride[axis] +
               1);
  const std::int64_t parts = offset.rank() == 4 ? offset.extent(1) / (2 * size) : 0;
  if (parts < 1 || x.extent(1) % parts != 0 ||
      offset.shape() != Shape{x.extent(0), 2 * size * parts, out[0], out[1]})
    return unfit_input("deformable convolution", name_, offset,
                       text("offsets [", x.extent(0), ", ", 2 * size, " parts, ", out[0], ", ", out[1],
                            "], where parts divide ", x.extent(1), " channels"));
  if (mask.ok() && mask.shape() != Shape{x.extent(0), size * parts, out[0], out[1]})
    return unfit_input("deformable convolution", name_, mask,
                       text("a mask [", x.extent(0), ", ", size * parts, ", ", out[0], ", ", out[1], "]"));
  const std::int64_t groups = options_.groups, places = out.element_count();
  const Tensor read = reshape(columns(x, offset, mask, out), {x.extent(0), groups, shape[1] * size, places});
  const Tensor y = matmul(reshape(weight, {1, groups, shape[0] / groups, shape[1] * size}), read);
  const Tensor image = reshape(y, {x.extent(0), shape[0], out[0], out[1]});
  return options_.bias ? image + reshape(bias_.value(), {1, shape[0], 1, 1}) : image;
}

}  // namespace imprint::nn
