// Convolutions. Windows are views, so a convolution is one contraction over them; a transposed one is a
// contraction whose products are added into overlapping windows.

#include <algorithm>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/image_parts.h"
#include "compute/tensor/extent_sums.h"

namespace imprint {

using namespace tensor;

PerAxis::PerAxis(std::initializer_list<std::int64_t> each) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i < each.size()) last = each.begin()[i];
    values_[i] = last;
  }
}

namespace tensor {

std::optional<Tensor> refuse_image(std::string_view op, const Tensor& x) {
  if (!x.ok()) return x;
  if (x.rank() >= 3 && x.rank() <= 5 && x.dtype() == DType::float32) return std::nullopt;
  return failure(ErrorCode::shape_mismatch, op,
                 text("found ", dtype_name(x.dtype()), " ", describe(x),
                      ", expected float32 [batch, channels, places...] with 1 to 3 axes of places"));
}

Tensor sliding_windows(std::string_view op, const Tensor& x, const Sliding& sliding, double value) {
  std::vector<std::pair<std::int64_t, std::int64_t>> amounts{{0, 0}, {0, 0}};
  for (int i = 0; i < places_of(x); ++i) amounts.emplace_back(sliding.before[i], sliding.after[i]);
  Tensor out = pad(x, amounts, value);
  for (int i = 0; i < places_of(x); ++i)
    out = window(out, 2 + i, sliding.size[i], sliding.stride[i], sliding.dilation[i]);
  // Names the image: the window primitive only knows the axis.
  return out.ok() ? out : failure(out.error().code, op, "image " + describe(x) + ": " + out.error().message);
}

}  // namespace tensor

namespace {

// The error of weight or bias.
std::optional<Tensor> refuse_operands(std::string_view op, const Tensor& x, const Tensor& weight,
                                      const Tensor& bias, bool transposed, std::int64_t groups) {
  if (std::optional<Tensor> refused = refuse_image(op, x)) return refused;
  if (!weight.ok()) return weight;
  if (!bias.ok() && !is_empty(bias)) return bias;
  const std::string form = transposed ? "[in, out / groups, kernel...]" : "[out, in / groups, kernel...]";
  const bool fits = groups >= 1 && weight.rank() == x.rank() && weight.extent(0) % groups == 0 &&
                    x.extent(1) == (transposed ? weight.extent(0) : weight.extent(1) * groups);
  if (!fits)
    return failure(ErrorCode::shape_mismatch, op,
                   text("found image ", describe(x), " and weight ", describe(weight), " in ", groups,
                        " groups, expected [batch, in, places...] and ", form));
  for (int axis = 2; axis < weight.rank(); ++axis)
    if (weight.shape().is_named(axis))
      return failure(ErrorCode::unsupported, op,
                     text("found weight ", describe(weight), ", expected a kernel of fixed extents"));
  const std::int64_t out = transposed ? weight.extent(1) * groups : weight.extent(0);
  if (bias.ok() && bias.shape() != Shape{out})
    return failure(ErrorCode::shape_mismatch, op,
                   text("found bias ", describe(bias), ", expected [", out, "]"));
  return std::nullopt;
}

Tensor plus_bias(const Tensor& product, const Tensor& bias) {
  if (!bias.ok() || !product.ok()) return product;
  Shape along{1, bias.extent(0)};
  while (along.rank() < product.rank()) along.append(1);
  return product + reshape(bias, along);
}

Tensor negative_option(std::string_view op, const char* option, const PerAxis& value, int places) {
  for (int i = 0; i < places; ++i)
    if (value[i] < 0)
      return failure(ErrorCode::invalid_argument, op,
                     text("found ", option, " ", value[i], ", expected 0 or more"));
  return Tensor();
}

struct Parts {
  std::int64_t batch, groups, in_group, out_group, fan_in, count;
};

// [batch, channels, places..., kernel...] -> [batch, groups, fan in, places]. Terms run over kernel positions
// first, then channels: neighbouring terms read at one offset in their images, and are inside or outside
// together.
Tensor patches_of(const Tensor& seen, const Parts& parts, int places) {
  // An axis for the groups of a volume would be the ninth: there the batch takes it.
  const bool merged = places == 3;
  Shape grouped = merged ? Shape{parts.batch * parts.groups, parts.in_group}
                         : Shape{parts.batch, parts.groups, parts.in_group};
  const int channels = grouped.rank() - 1;
  for (int i = 0; i < 2 * places; ++i) grouped.append(seen.extent(2 + i));
  Axes order;
  for (int axis = 0; axis < channels; ++axis) order.push_back(axis);
  for (int i = 0; i < places; ++i) order.push_back(channels + 1 + places + i);
  for (int i = 0; i <= places; ++i) order.push_back(channels + i);
  return reshape(permute(reshape(seen, grouped), order),
                 {parts.batch, parts.groups, parts.fan_in, parts.count});
}

}  // namespace

Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ConvolutionOptions& options) {
  constexpr std::string_view op = "convolution";
  const std::int64_t groups = options.groups;
  if (std::optional<Tensor> refused = refuse_operands(op, x, weight, bias, false, groups)) return *refused;
  const int places = places_of(x);
  if (const Tensor bad = negative_option(op, "padding", options.padding, places); !is_empty(bad)) return bad;
  std::array<std::int64_t, 3> size{1, 1, 1}, before{}, after{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(places); ++i) {
    const int axis = static_cast<int>(i);
    size[i] = weight.extent(2 + axis);
    before[i] = after[i] = options.padding[axis];
    if (!options.same || options.stride[axis] < 1) continue;
    const std::int64_t n = x.extent(2 + axis), stride = options.stride[axis];
    if (stride > 1 && x.shape().is_named(2 + axis))
      return failure(ErrorCode::unsupported, op,
                     text("found image ", describe(x), " with stride ", stride,
                          ", expected stride 1 for same padding along a named axis. Give padding instead."));
    const std::int64_t reach =
        ((n + stride - 1) / stride - 1) * stride + options.dilation[axis] * (size[i] - 1) + 1;
    before[i] = std::max<std::int64_t>(reach - n, 0) / 2;
    after[i] = std::max<std::int64_t>(reach - n, 0) - before[i];
  }
  const Tensor seen = sliding_windows(op, x,
                                      {.size = {size[0], size[1], size[2]},
                                       .stride = options.stride,
                                       .dilation = options.dilation,
                                       .before = {before[0], before[1], before[2]},
                                       .after = {after[0], after[1], after[2]}},
                                      0);
  if (!seen.ok()) return seen;
  const std::int64_t out_channels = weight.extent(0);
  Parts parts{x.extent(0), groups, weight.extent(1), out_channels / groups, weight.extent(1), 1};
  Shape out_shape{parts.batch, out_channels};
  Axes kernel_axes, weight_order{0};
  Shape depthwise{1, groups};
  for (int i = 0; i < places; ++i) {
    parts.fan_in *= weight.extent(2 + i);
    parts.count *= seen.extent(2 + i);
    out_shape.append(seen.extent(2 + i));
    depthwise.append(1);
    kernel_axes.push_back(2 + places + i);
    weight_order.push_back(2 + i);
  }
  if (groups > 1 && parts.in_group == 1 && parts.out_group == 1) {
    // Depthwise: contractions of one column each would waste the matrix kernels. Multiply and reduce instead.
    for (int i = 0; i < places; ++i) depthwise.append(weight.extent(2 + i));
    return plus_bias(sum(seen * reshape(weight, depthwise), kernel_axes), bias);
  }
  // One product per image, so that results are in the output's layout.
  weight_order.push_back(1);
  const Tensor kernels = reshape(permute(weight, weight_order), {1, groups, parts.out_group, parts.fan_in});
  return plus_bias(reshape(matmul(kernels, patches_of(seen, parts, places)), out_shape), bias);
}

Tensor transposed_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const TransposedOptions& options) {
  constexpr std::string_view op = "transposed_convolution";
  const std::int64_t groups = options.groups;
  if (std::optional<Tensor> refused = refuse_operands(op, x, weight, bias, true, groups)) return *refused;
  const int places = places_of(x);
  if (const Tensor bad = negative_option(op, "padding", options.padding, places); !is_empty(bad)) return bad;
  const std::int64_t batch = x.extent(0), in_group = weight.extent(0) / groups, out_group = weight.extent(1);
  std::int64_t kernel = 1, count = 1;
  for (int i = 0; i < places; ++i) {
    kernel *= weight.extent(2 + i);
    count *= x.extent(2 + i);
    const std::int64_t more = options.output_padding[i];
    if (more < 0 || more >= std::max(options.stride[i], options.dilation[i]))
      return failure(ErrorCode::invalid_argument, op,
                     text("found output padding ", more, " for stride ", options.stride[i],
                          ", expected 0 or more, and less than stride or dilation"));
  }
  // Each place's multiples of the kernel: [batch, groups, out, kernel, places].
  const Tensor kernels = reshape(weight, {1, groups, in_group, out_group * kernel});
  const Tensor columns = matmul(transpose(kernels), reshape(x, {batch, groups, in_group, count}));
  Shape split{batch * groups * out_group};
  Axes order{0};
  for (int i = 0; i < places; ++i) split.append(weight.extent(2 + i));
  for (int i = 0; i < places; ++i) split.append(x.extent(2 + i));
  for (int i = 0; i < places; ++i) order.push_back(1 + places + i);
  for (int i = 0; i < places; ++i) order.push_back(1 + i);
  Tensor out = permute(reshape(columns, split), order);  // [all, places..., kernel...]
  for (int i = places - 1; i >= 0; --i) {
    const std::int64_t reached =
        (x.extent(2 + i) - 1) * options.stride[i] + options.dilation[i] * (weight.extent(2 + i) - 1) + 1;
    out = make(Op::unwindow, {out},
               {.ints = {1 + i, weight.extent(2 + i), options.stride[i], options.dilation[i], reached}});
    if (!out.ok()) break;
    std::vector<std::pair<std::int64_t, std::int64_t>> more(static_cast<std::size_t>(out.rank()));
    more[static_cast<std::size_t>(1 + i)].second = options.output_padding[i];
    out = trimmed(pad(out, more), 1 + i, options.padding[i], options.padding[i]);
  }
  if (!out.ok()) return failure(out.error().code, op, "image " + describe(x) + ": " + out.error().message);
  Shape shape{batch, groups * out_group};
  for (int i = 0; i < places; ++i) shape.append(out.extent(1 + i));
  return plus_bias(reshape(out, shape), bias);
}

Tensor unfold(const Tensor& x, const UnfoldOptions& options) {
  if (std::optional<Tensor> refused = refuse_image("unfold", x)) return *refused;
  const int places = places_of(x);
  const Tensor seen = sliding_windows("unfold", x,
                                      {.size = options.size,
                                       .stride = options.stride,
                                       .dilation = options.dilation,
                                       .before = options.padding,
                                       .after = options.padding},
                                      0);
  if (!seen.ok()) return seen;
  Axes order{0, 1};
  std::int64_t rows = x.extent(1);
  for (int i = 0; i < places; ++i) order.push_back(2 + places + i), rows *= options.size[i];
  for (int i = 0; i < places; ++i) order.push_back(2 + i);
  return reshape(permute(seen, order), {x.extent(0), rows, -1});
}

Tensor fold(const Tensor& columns, std::initializer_list<std::int64_t> extents,
            const UnfoldOptions& options) {
  if (!columns.ok()) return columns;
  const int places = static_cast<int>(extents.size());
  const Shape wanted(std::span<const std::int64_t>(extents.begin(), extents.size()));
  std::int64_t kernel = 1, count = 1;
  Shape windows, sizes;
  for (int i = 0; i < places && i < 3; ++i) {
    const std::int64_t room =
        wanted[i] + 2 * options.padding[i] - options.dilation[i] * (options.size[i] - 1) - 1;
    windows.append(room < 0 || options.stride[i] < 1 ? 0 : room / options.stride[i] + 1);
    sizes.append(options.size[i]);
    kernel *= sizes[i];
    count *= windows[i];
  }
  if (places < 1 || places > 3 || columns.rank() != 3 || kernel < 1 || count < 1 ||
      columns.extent(1) % kernel != 0 || columns.extent(2) != count)
    return failure(ErrorCode::shape_mismatch, "fold",
                   text("found columns ", describe(columns), " for places ", wanted.text(),
                        ", expected [batch, channels * ", kernel, ", ", count, "]"));
  const std::int64_t batch = columns.extent(0), channels = columns.extent(1) / kernel;
  Shape split{batch * channels}, shape{batch, channels};
  Axes order{0};
  for (const std::int64_t size : sizes.extents()) split.append(size);
  for (const std::int64_t number : windows.extents()) split.append(number);
  for (int i = 0; i < places; ++i) order.push_back(1 + places + i);
  for (int i = 0; i < places; ++i) order.push_back(1 + i), shape.append(wanted[i]);
  Tensor out = permute(reshape(columns, split), order);
  for (int i = places - 1; i >= 0; --i) {
    out = make(Op::unwindow, {out},
               {.ints = {1 + i, sizes[i], options.stride[i], options.dilation[i],
                         wanted[i] + 2 * options.padding[i]}});
    if (out.ok()) out = narrow(out, 1 + i, options.padding[i], wanted[i]);
  }
  return reshape(out, shape);
}

}  // namespace imprint
