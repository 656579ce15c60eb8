// Products by letters, determinants, losses, windows of signals and Fourier transforms.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "compute/base/text.h"
#include "compute/model/onnx_op.h"
#include "compute/tensor/composites.h"

namespace imprint::onnx {
namespace {

// The equation in imprint's form: no spaces, and letters for the axes that "..." stands for.
std::string plain_equation(OpContext& context, const std::string& equation) {
  std::string compact, used;
  for (const char c : equation)
    if (c != ' ') compact += c;
  if (compact.size() > 1024) {
    context.unsupported("a long equation");
    return {};
  }
  // The axes of each operand that letters do not name.
  int operand = 0, most = 0;
  std::vector<int> open;
  std::size_t begin = 0;
  const std::size_t arrow = std::min(compact.find("->"), compact.size());
  for (std::size_t i = 0; i <= arrow; ++i) {
    if (i < arrow && compact[i] != ',') continue;
    const auto letters =
        std::count_if(compact.begin() + static_cast<std::ptrdiff_t>(begin),
                      compact.begin() + static_cast<std::ptrdiff_t>(i), [](char c) { return c != '.'; });
    const int rank = operand < context.input_count() ? context.shape(operand).rank() : 0;
    open.push_back(std::max(0, rank - static_cast<int>(letters)));
    most = std::max(most, open.back());
    ++operand;
    begin = i + 1;
  }
  std::string fresh;
  for (const char* c = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"; *c; ++c)
    if (compact.find(*c) == std::string::npos && static_cast<int>(fresh.size()) < most) fresh += *c;
  std::string out;
  operand = 0;
  bool result = false;
  for (std::size_t i = 0; i < compact.size(); ++i) {
    if (compact[i] == ',') ++operand;
    if (compact[i] == '-') result = true;
    if (compact.compare(i, 3, "...") == 0) {
      const int axes = result ? most : open[static_cast<std::size_t>(operand)];
      if (static_cast<int>(fresh.size()) == most) out += fresh.substr(static_cast<std::size_t>(most - axes));
      i += 2;
    } else {
      out += compact[i];
    }
  }
  if (!result && most > 0 && compact.find("...") != std::string::npos) {
    // Without a result: the open axes, then the letters that occur once, sorted.
    std::string once;
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::count(compact.begin(), compact.end(), c) == 1 && c != '.') once += c;
    out += "->" + fresh + once;
  }
  return out;
}

void einsum(OpContext& context) {
  std::vector<Tensor> operands;
  for (int i = 0; i < context.input_count(); ++i) operands.push_back(context.tensor(i));
  const std::string equation = plain_equation(context, context.string_attribute("equation", ""));
  if (!context.failure() && context.may_make(16 * context.input_count()))
    context.set(0, imprint::einsum(equation, operands));
}

// By cofactors along the first row.
Tensor determinant(const Tensor& x, const std::vector<std::int64_t>& columns, std::int64_t row) {
  const auto at = [&](std::int64_t column) {
    return imprint::squeeze(
        imprint::squeeze(imprint::narrow(imprint::narrow(x, -2, row, 1), -1, column, 1), -1), -1);
  };
  if (columns.size() == 1) return at(columns[0]);
  Tensor sum;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<std::int64_t> rest = columns;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const Tensor term = at(columns[i]) * determinant(x, rest, row + 1);
    sum = i == 0 ? term : i % 2 == 0 ? sum + term : sum - term;
  }
  return sum;
}

void det(OpContext& context) {
  const Tensor x = context.tensor(0);
  const std::int64_t n = x.rank() >= 2 ? x.extent(x.rank() - 1) : 0;
  if (!context.require(n >= 1 && x.extent(x.rank() - 2) == n,
                       "expected square matrices, not " + x.shape().text()))
    return;
  if (n > 4) return context.unsupported("determinants of more than 4 x 4");
  if (!context.may_make(256)) return;
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < n; ++i) columns.push_back(i);
  context.set(0, determinant(x, columns, 0));
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

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)
void cosine_window(OpContext& context, double a0, double a1, double a2) {
  const std::int64_t size = context.known_int(0, "size");
  const auto type = cast_target(context, context.int_attribute("output_datatype", 1));
  if (!type || !context.require(size >= 1 && size <= (1 << 24), text("size: found ", size))) return;
  if (!context.mover().may_fold(ElementType::float32, size))
    return context.unsupported("constants of this size");
  const double n = static_cast<double>(context.int_attribute("periodic", 1) != 0 ? size : size - 1);
  HostArray out;
  out.shape = {size};
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = n > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / n : 0;
    out.floats.own().push_back(static_cast<float>(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle)));
  }
  if (!is_float(*type)) return context.unsupported("a window of whole numbers");
  out.type = *type;
  context.set(0, Value::known(std::move(out)));
}
void hann_window(OpContext& context) { cosine_window(context, 0.5, 0.5, 0); }
void hamming_window(OpContext& context) { cosine_window(context, 25.0 / 46, 21.0 / 46, 0); }
void blackman_window(OpContext& context) { cosine_window(context, 0.42, 0.5, 0.08); }

// Cosines and sines [in, out] of a Fourier transform of `length` elements.
struct Waves {
  Tensor cosine, sine;
};

std::optional<Waves> waves(OpContext& context, std::int64_t in, std::int64_t out, std::int64_t length) {
  if (!context.require(in > 0 && out > 0 && length > 0 && in <= (1 << 20) && out <= (1 << 20),
                       "an empty signal") ||
      !context.mover().may_fold(ElementType::float32, in * out) ||
      !context.mover().may_fold(ElementType::float32, in * out)) {
    context.unsupported("a Fourier transform of this length");
    return std::nullopt;
  }
  std::vector<float> cosine, sine;
  for (std::int64_t i = 0; i < in; ++i)
    for (std::int64_t k = 0; k < out; ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i * k % length) / static_cast<double>(length);
      cosine.push_back(static_cast<float>(std::cos(angle)));
      sine.push_back(static_cast<float>(std::sin(angle)));
    }
  return Waves{Tensor::from(cosine, {in, out}), Tensor::from(sine, {in, out})};
}

// Real and imaginary parts [..., n] -> [..., frequencies].
std::vector<Tensor> transformed(const Waves& by, const Tensor& real, const Tensor& imaginary, bool inverse,
                                double factor) {
  Tensor a = imprint::matmul(real, by.cosine), b = imprint::matmul(real, by.sine);
  if (!inverse) b = -b;
  if (imaginary.ok()) {
    const Tensor c = imprint::matmul(imaginary, by.sine), d = imprint::matmul(imaginary, by.cosine);
    a = inverse ? a - c : a + c;
    b = b + d;
  }
  return {a * factor, b * factor};
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
  if (!context.require(length >= 1 && length <= (1 << 20), text("dft_length: found ", length))) return;
  if (inverse && half) return context.unsupported("an inverse transform of one side");
  const std::int64_t in = std::min(length, x.extent(axis)), out = half ? length / 2 + 1 : length;
  const auto by = waves(context, in, out, length);
  if (!by) return;
  const int last = x.rank() - 1;
  x = imprint::narrow(x, axis, 0, in);
  const auto part = [&](std::int64_t which) {
    return imprint::movedim(imprint::squeeze(imprint::narrow(x, last, which, 1), last), axis, last - 1);
  };
  std::vector<Tensor> parts = transformed(*by, part(0), x.extent(last) == 2 ? part(1) : Tensor(), inverse,
                                          inverse ? 1 / static_cast<double>(length) : 1);
  for (Tensor& value : parts) value = imprint::movedim(value, last - 1, axis);
  context.set(0, imprint::stack(parts, last));
}

void short_time_fourier(OpContext& context) {
  Tensor x = context.tensor(0);
  const std::int64_t step = context.known_int(1, "frame_step");
  std::int64_t length = context.has(2) ? context.shape(2).element_count() : 0;
  if (context.has(3)) length = context.known_int(3, "frame_length");
  if (x.rank() == 2) x = imprint::unsqueeze(x, 2);
  if (!context.require(x.rank() == 3 && step >= 1 && step < (1 << 24) && length >= 1 && length <= x.extent(1),
                       text("frames of ", length, " every ", step, " do not fit ", x.shape().text())))
    return;
  const bool half = context.int_attribute("onesided", 1) != 0;
  const auto by = waves(context, length, half ? length / 2 + 1 : length, length);
  if (!by) return;
  const auto part = [&](std::int64_t which) {
    Tensor frames = imprint::window(imprint::squeeze(imprint::narrow(x, 2, which, 1), 2), 1, length, step);
    return context.has(2) ? frames * context.tensor(2) : frames;
  };
  context.set(0,
              imprint::stack(transformed(*by, part(0), x.extent(2) == 2 ? part(1) : Tensor(), false, 1), 3));
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
    OpHandler{"HannWindow", hann_window},
    OpHandler{"HammingWindow", hamming_window},
    OpHandler{"BlackmanWindow", blackman_window},
    OpHandler{"DFT", fourier},
    OpHandler{"STFT", short_time_fourier},
    OpHandler{"MelWeightMatrix", mel_weights},
};

}  // namespace

std::span<const OpHandler> various_ops() { return kVariousOps; }

}  // namespace imprint::onnx
