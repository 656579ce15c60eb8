// Products by letters, determinants, losses, windows of signals and Fourier transforms.

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/signals.h"
#include "compute/tensor/composites/window_values.h"
#include "compute/tensor/ops/linear_algebra.h"

namespace imprint::onnx {
namespace {

void einsum(OpContext& context) {
  std::vector<Tensor> operands;
  for (int i = 0; i < context.input_count(); ++i) operands.push_back(context.tensor(i));
  const std::string equation = context.string_attribute("equation", "");
  if (equation.size() > 1024) return context.unsupported("a long equation");
  if (!context.failure() && context.may_make(16 * context.input_count()))
    context.set(0, imprint::einsum(equation, operands));
}

void det(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t n = x.rank() >= 2 ? x.extent(x.rank() - 1) : 0;
  if (!context.require(n >= 1 && x.extent(x.rank() - 2) == n,
                       "expected square matrices, not " + x.shape().text()))
    return;
  if (n > 64) return context.unsupported("determinants of more than 64 x 64");
  if (context.may_make(64)) context.set(0, imprint::det(x));
}

void shrink(OpContext& context) {
  context.set(0, imprint::shrink(context.tensor(0), context.float_attribute("lambd", 0.5),
                                 context.float_attribute("bias", 0)));
}

// Cuts or pads around the centre.
void center_crop_pad(OpContext& context) {
  Value value = context.value(0);
  const std::vector<std::int64_t> target = context.known_ints(1, "shape");
  std::vector<std::int64_t> raw = context.ints_attribute("axes");
  if (raw.empty())
    for (int i = 0; i < value.rank(); ++i) raw.push_back(i);
  const Axes axes = context.axes(raw, value.rank());
  if (!context.require(axes.size() == target.size(), "expected one extent for each axis")) return;
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(static_cast<std::size_t>(value.rank()));
  std::vector<std::int64_t> extents = extents_of(value.shape());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = value.shape()[axes[i]], want = target[i];
    extents[static_cast<std::size_t>(axes[i])] = want;
    context.checked(extents);
    if (context.failure()) return;
    if (want < extent)
      value = context.mover().slice(value, axes[i], (extent - want) / 2, want, 1);
    else
      pads[static_cast<std::size_t>(axes[i])] = {(want - extent) / 2, want - extent - (want - extent) / 2};
  }
  context.set(0, imprint::pad(value.tensor(), pads), value.type());
}

// ---- losses ----

// x: log-probabilities [batch, classes, ...]; labels [batch, ...]; weights [classes] or empty.
Tensor negative_log_likelihood(OpContext& context, const Tensor& x, const Tensor& labels,
                               const Tensor& weights) {
  const std::string reduction = context.string_attribute("reduction", "mean");
  bool fits = x.rank() >= 2 && labels.rank() == x.rank() - 1;
  for (int i = 0; fits && i < labels.rank(); ++i) fits = labels.extent(i) == x.extent(i == 0 ? 0 : i + 1);
  if (!context.require(fits, text("labels ", labels.shape().text(), " do not fit ", x.shape().text())))
    return x;
  const std::int64_t ignored =
      std::clamp<std::int64_t>(context.int_attribute("ignore_index", -1), -(1 << 30), 1 << 30);
  const bool ignores = context.has_attribute("ignore_index");
  Tensor weight = weights.ok() ? imprint::take(weights, 0, labels) : imprint::ones(labels.shape());
  if (ignores) weight = imprint::where(imprint::equal(labels, static_cast<int>(ignored)), 0.0f, weight);
  const Tensor chosen = imprint::squeeze(imprint::gather(x, 1, imprint::unsqueeze(labels, 1)), 1);
  const Tensor loss = -(chosen * weight);
  if (reduction == "none") return loss;
  if (reduction == "sum") return imprint::sum(loss);
  return weights.ok() || ignores ? imprint::sum(loss) / imprint::sum(weight) : imprint::mean(loss);
}

void nll_loss(OpContext& context) {
  context.set(0, negative_log_likelihood(context, context.tensor(0), context.tensor(1),
                                         context.has(2) ? context.tensor(2) : Tensor()));
}

void softmax_cross_entropy(OpContext& context) {
  if (!context.require(context.shape(0).rank() >= 2, "expected scores [batch, classes, ...]")) return;
  const Tensor logs = imprint::log_softmax(context.tensor(0), 1);
  context.set(0, negative_log_likelihood(context, logs, context.tensor(1),
                                         context.has(2) ? context.tensor(2) : Tensor()));
  context.set(1, logs);
}

// ---- signals ----

// hamming: its coefficients are ONNX's.
void window_op(OpContext& context, double a0, double a1, double a2) {
  const std::int64_t size = context.known_int(0, "size");
  const auto type = cast_target(context, context.int_attribute("output_datatype", 1));
  if (!type || !context.require(size >= 1 && size <= (1 << 24), text("size: found ", size))) return;
  if (!context.mover().may_fold(ElementType::float32, size, kSlowFunction))
    return context.unsupported("constants of this size");
  if (!is_float(*type)) return context.unsupported("a window of whole numbers");
  HostArray out;
  out.shape = {size};
  out.type = *type;
  out.floats = tensor::window_values(size, a0, a1, a2, context.int_attribute("periodic", 1) != 0);
  context.set(0, Value::known(std::move(out)));
}
void hann_window_op(OpContext& context) { window_op(context, 0.5, 0.5, 0); }
void hamming_window_op(OpContext& context) { window_op(context, 25.0 / 46, 21.0 / 46, 0); }
void blackman_window_op(OpContext& context) { window_op(context, 0.42, 0.5, 0.08); }

// Whether the constants of transforms of `length` elements may be made: a few per element, and more for a
// large prime factor.
bool may_transform(OpContext& context, std::int64_t length) {
  if (!context.require(length >= 1 && length <= (1 << 20), text("transform length: found ", length)))
    return false;
  constexpr std::uint64_t kWork = 6;  // for a large prime factor the host transforms the chirp
  if (!context.mover().may_fold(ElementType::float32, 16 * length + 65536, kWork)) {
    context.unsupported("a Fourier transform of this length");
    return false;
  }
  return context.may_make(128);
}

// The parts of x [..., 1 or 2].
ComplexTensor parts_of(const Tensor& x) {
  const int last = x.rank() - 1;
  const auto part = [&](std::int64_t which) {
    return imprint::squeeze(imprint::narrow(x, last, which, 1), last);
  };
  return {part(0), x.extent(last) == 2 ? part(1) : Tensor()};
}

Tensor joined_parts(const ComplexTensor& x) { return imprint::stack({x.real, x.imaginary}, -1); }

Tensor cut_or_padded(const Tensor& x, int axis, std::int64_t length) {
  const std::int64_t extent = x.extent(axis);
  if (length <= extent) return imprint::narrow(x, axis, 0, length);
  std::vector<std::pair<std::int64_t, std::int64_t>> sides(static_cast<std::size_t>(x.rank()));
  sides[static_cast<std::size_t>(axis)] = {0, length - extent};
  return imprint::pad(x, sides);
}

// The first length / 2 + 1 elements of a transform.
ComplexTensor first_half(const ComplexTensor& x, int axis, std::int64_t length) {
  return {imprint::narrow(x.real, axis, 0, length / 2 + 1),
          imprint::narrow(x.imaginary, axis, 0, length / 2 + 1)};
}

ComplexTensor forward(const ComplexTensor& x, int axis, std::int64_t length, bool half) {
  if (half && !x.imaginary.ok()) return imprint::rfft(x.real, axis);
  const ComplexTensor all = imprint::fft(x, axis);
  return half ? first_half(all, axis, length) : all;
}

void fourier(OpContext& context) {
  Tensor x = context.tensor(0);
  const std::int64_t raw = context.opset() >= 20 && context.has(2)
                               ? context.known_int(2, "axis")
                               : context.int_attribute("axis", context.opset() >= 20 ? -2 : 1);
  const bool inverse = context.int_attribute("inverse", 0) != 0,
             half = context.int_attribute("onesided", 0) != 0;
  if (!context.require(x.rank() >= 2 && (x.extent(x.rank() - 1) == 1 || x.extent(x.rank() - 1) == 2),
                       "expected real or complex numbers as the last axis, not " + x.shape().text()))
    return;
  const int axis = context.axis(raw, x.rank());
  if (!context.require(axis < x.rank() - 1, "the axis of the parts cannot be transformed")) return;
  const std::int64_t length = context.has(1) ? context.known_int(1, "dft_length") : x.extent(axis);
  if (!may_transform(context, length)) return;
  if (inverse && half) return context.unsupported("an inverse transform of one side");
  Extents extents = extents_of(x.shape());
  extents[static_cast<std::size_t>(axis)] = length;
  context.checked(extents);
  if (context.failure()) return;
  const ComplexTensor parts = parts_of(cut_or_padded(x, axis, length));
  context.set(0, joined_parts(inverse ? imprint::ifft(parts, axis) : forward(parts, axis, length, half)));
}

void short_time_fourier(OpContext& context) {
  Tensor x = context.tensor(0);
  const std::int64_t step = context.known_int(1, "frame_step");
  std::int64_t length = context.has(2) ? context.shape(2).element_count() : 0;
  if (context.has(3)) length = context.known_int(3, "frame_length");
  if (x.rank() == 2) x = imprint::unsqueeze(x, 2);
  if (!context.require(x.rank() == 3 && step >= 1 && step < (1 << 24) && length >= 1 && length <= x.extent(1),
                       text("frames of ", length, " every ", step, " do not fit ", x.shape().text())) ||
      !may_transform(context, length))
    return;
  const auto framed = [&](const Tensor& part) {
    const Tensor frames = imprint::window(part, 1, length, step);
    return context.has(2) ? frames * context.tensor(2) : frames;
  };
  ComplexTensor parts = parts_of(x);
  parts.real = framed(parts.real);
  if (parts.imaginary.ok()) parts.imaginary = framed(parts.imaginary);
  context.set(0, joined_parts(forward(parts, 2, length, context.int_attribute("onesided", 1) != 0)));
}

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

// Triangles between frequencies that are equally far apart in mel.
void mel_weights(OpContext& context) {
  const std::int64_t bands = context.known_int(0, "num_mel_bins"),
                     length = context.known_int(1, "dft_length"), rate = context.known_int(2, "sample_rate");
  const double low = context.known_number(3, "lower_edge_hertz"),
               high = context.known_number(4, "upper_edge_hertz");
  if (!context.require(bands >= 1 && bands <= (1 << 16) && length >= 1 && length <= (1 << 20) && rate >= 1 &&
                           low >= 0 && high >= low && high < 1e9,
                       "sizes or edges are out of range"))
    return;
  const std::int64_t bins = length / 2 + 1;
  if (!context.mover().may_fold(ElementType::float32, bands * bins))
    return context.unsupported("constants of this size");
  std::vector<std::int64_t> edges;
  const double step = (mel_of(high) - mel_of(low)) / static_cast<double>(bands + 2);
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel_of(low)) / 2595) - 1);
    edges.push_back(static_cast<std::int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  HostArray out;
  out.shape = {bins, bands};
  out.floats.own().resize(static_cast<std::size_t>(bins * bands));
  const auto set = [&](std::int64_t bin, std::int64_t band, double weight) {
    if (bin >= 0 && bin < bins)
      out.floats.own()[static_cast<std::size_t>(bin * bands + band)] = static_cast<float>(weight);
  };
  for (std::int64_t band = 0; band < bands; ++band) {
    const auto b = static_cast<std::size_t>(band);
    const std::int64_t from = edges[b], middle = edges[b + 1], to = std::min(edges[b + 2], bins);
    if (middle == from) set(middle, band, 1);
    for (std::int64_t bin = from; bin <= std::min(middle, bins - 1) && middle > from; ++bin)
      set(bin, band, static_cast<double>(bin - from) / static_cast<double>(middle - from));
    for (std::int64_t bin = middle; bin < to && edges[b + 2] > middle; ++bin)
      set(bin, band, static_cast<double>(edges[b + 2] - bin) / static_cast<double>(edges[b + 2] - middle));
  }
  context.set(0, Value::known(std::move(out)));
}

constexpr std::array kVariousOps{
    OpHandler{"Einsum", einsum},
    OpHandler{"Det", det},
    OpHandler{"Shrink", shrink},
    OpHandler{"CenterCropPad", center_crop_pad},
    OpHandler{"NegativeLogLikelihoodLoss", nll_loss},
    OpHandler{"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
    OpHandler{"HannWindow", hann_window_op},
    OpHandler{"HammingWindow", hamming_window_op},
    OpHandler{"BlackmanWindow", blackman_window_op},
    OpHandler{"DFT", fourier},
    OpHandler{"STFT", short_time_fourier},
    OpHandler{"MelWeightMatrix", mel_weights},
};

}  // namespace

std::span<const OpHandler> various_ops() { return kVariousOps; }

}  // namespace imprint::onnx
