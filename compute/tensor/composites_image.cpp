// Images, NCHW. Windows are views, so a convolution is one contraction over them and a pool one reduction.

#include <array>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

namespace {

Tensor pad_image(const Tensor& x, std::int64_t amount, double value) {
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> amounts{
      {{0, 0}, {0, 0}, {amount, amount}, {amount, amount}}};
  return pad(x, amounts, value);
}

// [n, c, h, w] -> [n, c, rows, columns, kernel rows, kernel columns]
Tensor windows(const Tensor& x, std::int64_t height, std::int64_t width, std::int64_t stride,
               std::int64_t dilation) {
  return window(window(x, 2, height, stride, dilation), 3, width, stride, dilation);
}

Tensor bad_image(std::string_view op, const Tensor& x) {
  return failure(ErrorCode::shape_mismatch, op,
                 text("found ", dtype_name(x.dtype()), " ", describe(x),
                      ", expected float32 [batch, channels, height, width]"));
}

// Names the image in the error; the window primitive only knows the axis.
Tensor named_windows(std::string_view op, const Tensor& x, const Tensor& found) {
  return found.ok() ? found
                    : failure(found.error().code, op, "image " + describe(x) + ": " + found.error().message);
}

Tensor pooled_windows(std::string_view op, const Tensor& x, const Pool2dOptions& options,
                      double padding_value) {
  if (!x.ok()) return x;
  if (x.rank() != 4 || x.dtype() != DType::float32) return bad_image(op, x);
  if (options.padding < 0 || 2 * options.padding > options.size)
    return failure(ErrorCode::invalid_argument, op,
                   text("found padding ", options.padding, " and size ", options.size,
                        ", expected padding of 0 .. size / 2, so that every window overlaps the image"));
  return named_windows(
      op, x,
      windows(pad_image(x, options.padding, padding_value), options.size, options.size, options.stride, 1));
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  if (!x.ok()) return x;
  if (!weight.ok()) return weight;
  if (!bias.ok() && !is_empty(bias)) return bias;
  if (x.rank() != 4 || x.dtype() != DType::float32) return bad_image("conv2d", x);
  const std::int64_t groups = options.groups;
  if (groups < 1 || options.padding < 0)
    return failure(ErrorCode::invalid_argument, "conv2d",
                   text("found ", groups, " groups and padding ", options.padding,
                        ", expected at least 1 group and padding of 0 or more"));
  if (weight.rank() != 4 || x.extent(1) != weight.extent(1) * groups || weight.extent(0) % groups != 0)
    return failure(
        ErrorCode::shape_mismatch, "conv2d",
        text("found image ", describe(x), " and weight ", describe(weight), " in ", groups,
             " groups, expected [batch, in, height, width] and [out, in / groups, rows, columns]"));
  const std::int64_t out_channels = weight.extent(0), kernel_rows = weight.extent(2),
                     kernel_columns = weight.extent(3);
  if (bias.ok() && bias.shape() != Shape{out_channels})
    return failure(ErrorCode::shape_mismatch, "conv2d",
                   text("found bias ", describe(bias), ", expected [", out_channels, "]"));

  const Tensor seen = named_windows("conv2d", x,
                                    windows(pad_image(x, options.padding, 0), kernel_rows, kernel_columns,
                                            options.stride, options.dilation));
  if (!seen.ok()) return seen;
  const std::int64_t batch = seen.extent(0), rows = seen.extent(2), columns = seen.extent(3);
  const std::int64_t in_group = weight.extent(1), out_group = out_channels / groups;

  Tensor out;
  if (groups > 1 && in_group == 1 && out_group == 1) {
    // Depthwise: contractions of one column each would waste the matrix kernels. Multiply and reduce instead.
    out = sum(seen * reshape(weight, {1, groups, 1, 1, kernel_rows, kernel_columns}), {4, 5});
  } else {
    // One product per image, so that results are in the output's layout. Terms run over kernel positions
    // first, then channels: neighbouring terms read at one offset in their images, and are inside or outside
    // together.
    const Tensor grouped =
        reshape(seen, {batch, groups, in_group, rows, columns, kernel_rows, kernel_columns});
    const std::int64_t fan_in = in_group * kernel_rows * kernel_columns;
    const Tensor patches =
        reshape(permute(grouped, {0, 1, 5, 6, 2, 3, 4}), {batch, groups, fan_in, rows * columns});
    const Tensor kernels = reshape(permute(weight, {0, 2, 3, 1}), {1, groups, out_group, fan_in});
    out = reshape(matmul(kernels, patches), {batch, out_channels, rows, columns});
  }
  return bias.ok() ? out + reshape(bias, {1, out_channels, 1, 1}) : out;
}

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return max(pooled_windows("max_pool2d", x, options, -std::numeric_limits<double>::infinity()), {4, 5});
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return mean(pooled_windows("avg_pool2d", x, options, 0), {4, 5});
}

}  // namespace imprint
