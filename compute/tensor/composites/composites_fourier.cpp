// Fourier transforms as matrix products of a few points each, and what is made of them.

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/composites/signals.h"
#include "compute/tensor/composites/window_values.h"

namespace imprint {

using namespace tensor;

namespace {

using Phasors = std::vector<std::complex<double>>;

constexpr std::int64_t kRadix = 64;    // points of one of several products
constexpr std::int64_t kDirect = 128;  // points of a single product
constexpr std::int64_t kLongest = 1 << 24;

// exp(-2 pi i numerator / denominator), conjugated for inverse transforms.
std::complex<double> phasor(std::int64_t numerator, std::int64_t denominator, bool inverse) {
  const double angle =
      2 * std::numbers::pi * static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  return {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
}

// `count` factors of n of up to kRadix, the smallest possible first one. Empty: there are none.
std::vector<std::int64_t> factors_of(std::int64_t n, int count) {
  if (count == 1) return n <= kRadix ? std::vector{n} : std::vector<std::int64_t>();
  const auto least =
      static_cast<std::int64_t>(std::ceil(std::pow(static_cast<double>(n), 1.0 / count) - 1e-9));
  for (std::int64_t factor = std::max<std::int64_t>(least, 2); factor <= kRadix; ++factor) {
    if (n % factor != 0) continue;
    std::vector<std::int64_t> rest = factors_of(n / factor, count - 1);
    if (rest.empty()) continue;
    rest.insert(rest.begin(), factor);
    return rest;
  }
  return {};
}

// The fewest factors. Empty for a length with a prime factor above kRadix.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  if (n <= kDirect) return {n};
  std::int64_t rest = n;
  for (std::int64_t prime = 2; prime <= kRadix; ++prime)
    while (rest % prime == 0) rest /= prime;
  if (rest > 1) return {};
  for (int count = 2;; ++count)
    if (std::vector<std::int64_t> factors = factors_of(n, count); !factors.empty()) return factors;
}

// A transform of z [lines, parts, n]; parts: the real ones, then the imaginary ones.
struct Transform {
  bool inverse = false;
  std::int64_t kept = 0;  // the first results
  bool real_only = false;
  double scale = 1;
};

// [parts out * kept, parts in * n]: multiplies columns of parts.
Tensor wave_matrix(std::int64_t n, std::int64_t parts, const Transform& form) {
  const std::int64_t parts_out = form.real_only ? 1 : 2;
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(parts_out * form.kept * parts * n));
  for (std::int64_t out = 0; out < parts_out; ++out)
    for (std::int64_t k = 0; k < form.kept; ++k)
      for (std::int64_t in = 0; in < parts; ++in)
        for (std::int64_t j = 0; j < n; ++j) {
          const std::complex<double> w = form.scale * phasor(j * k, n, form.inverse);
          values.push_back(static_cast<float>(out == in ? w.real() : out == 0 ? -w.imag() : w.imag()));
        }
  return Tensor::from(values, {parts_out * form.kept, parts * n});
}

// z [lines, 1 or 2, places...] times complex constants [places...].
Tensor times(const Tensor& z, const Phasors& by, const Shape& places) {
  std::vector<float> real, cross(2 * by.size());
  for (std::size_t i = 0; i < by.size(); ++i) {
    real.push_back(static_cast<float>(by[i].real()));
    cross[i] = static_cast<float>(-by[i].imag());
    cross[by.size() + i] = static_cast<float>(by[i].imag());
  }
  Shape both{2};
  for (const std::int64_t extent : places.extents()) both.append(extent);
  const Tensor crossed = Tensor::from(cross, both);
  if (z.extent(1) == 2) return z * Tensor::from(real, places) + flip(z, 1) * crossed;
  std::vector<float> parts = real;
  parts.insert(parts.end(), cross.begin() + static_cast<std::ptrdiff_t>(by.size()), cross.end());
  return z * Tensor::from(parts, both);
}

// Each product transforms one factor of the index, outermost first: [lines, parts, factor, rest, done] ->
// [lines, parts, rest, factor, done].
Tensor by_products(Tensor z, std::span<const std::int64_t> radices, const Transform& form) {
  const std::int64_t lines = z.extent(0), n = z.extent(2);
  if (radices.size() == 1) {
    const Tensor flat = reshape(z, {lines, z.extent(1) * n});
    const Tensor out = matmul(flat, transpose(wave_matrix(n, z.extent(1), form)));
    return reshape(out, {lines, form.real_only ? 1 : 2, form.kept});
  }
  std::int64_t done = 1, rest = n;
  for (const std::int64_t radix : radices) {
    const std::int64_t parts = z.extent(1);
    rest /= radix;
    const bool last = rest == 1;
    Transform stage{form.inverse, radix};
    if (last) {
      stage.kept = (form.kept - 1) / done + 1;
      stage.real_only = form.real_only;
      stage.scale = form.scale;
    }
    z = matmul(wave_matrix(radix, parts, stage), reshape(z, {lines, parts * radix, rest * done}));
    if (last) return narrow(reshape(z, {lines, form.real_only ? 1 : 2, stage.kept * done}), 2, 0, form.kept);
    Phasors turns;
    for (std::int64_t k = 0; k < radix; ++k)
      for (std::int64_t r = 0; r < rest; ++r) turns.push_back(phasor(k * r, radix * rest, form.inverse));
    z = times(reshape(z, {lines, 2, radix, rest, done}), turns, {radix, rest, 1});
    done *= radix;
    z = reshape(permute(z, {0, 1, 3, 2, 4}), {lines, 2, rest * done});
  }
  return z;
}

// In place; a power of two of elements.
void transform_host(Phasors& x) {
  if (x.size() == 1) return;
  const std::size_t half = x.size() / 2;
  Phasors even, odd;
  for (std::size_t i = 0; i < half; ++i) even.push_back(x[2 * i]), odd.push_back(x[2 * i + 1]);
  transform_host(even);
  transform_host(odd);
  for (std::size_t k = 0; k < half; ++k) {
    const std::complex<double> turned =
        odd[k] * phasor(static_cast<std::int64_t>(k), static_cast<std::int64_t>(x.size()), false);
    x[k] = even[k] + turned;
    x[half + k] = even[k] - turned;
  }
}

// Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution of a longer, round length.
Tensor by_chirp(const Tensor& z, const Transform& form) {
  const std::int64_t n = z.extent(2);
  const auto length = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)));
  Phasors chirp, kernel(static_cast<std::size_t>(length));
  for (std::int64_t j = 0; j < n; ++j) {
    chirp.push_back(phasor(j * j % (2 * n), 2 * n, form.inverse));
    kernel[static_cast<std::size_t>(j)] = std::conj(chirp.back());
    kernel[static_cast<std::size_t>((length - j) % length)] = std::conj(chirp.back());
  }
  transform_host(kernel);
  const std::vector<std::int64_t> radices = radices_of(length);
  const std::vector<std::pair<std::int64_t, std::int64_t>> sides{{0, 0}, {0, 0}, {0, length - n}};
  Tensor out = by_products(pad(times(z, chirp, {n}), sides), radices, {.kept = length});
  out = by_products(times(out, kernel, {length}), radices,
                    {.inverse = true, .kept = form.kept, .scale = form.scale / static_cast<double>(length)});
  chirp.resize(static_cast<std::size_t>(form.kept));
  out = times(out, chirp, {form.kept});
  return form.real_only ? narrow(out, 1, 0, 1) : out;
}

// The failure of an operand, or what does not fit.
std::optional<Tensor> refuse_signal(std::string_view op, const ComplexTensor& x, int axis) {
  if (!x.real.ok()) return x.real;
  const bool alone = is_empty(x.imaginary);
  if (!alone && !x.imaginary.ok()) return x.imaginary;
  if (x.real.dtype() != DType::float32) return bad_dtype(op, x.real, "float32");
  if (!alone && (x.imaginary.dtype() != DType::float32 || x.imaginary.shape() != x.real.shape()))
    return failure(ErrorCode::shape_mismatch, op,
                   text("found imaginary parts ", describe(x.imaginary), ", expected float32 ",
                        x.real.shape().text(), " as the real ones"));
  if (axis < -x.real.rank() || axis >= x.real.rank()) return bad_axis(op, axis, x.real);
  const std::int64_t n = x.real.extent(axis < 0 ? axis + x.real.rank() : axis);
  if (n < 1 || n > kLongest)
    return failure(ErrorCode::shape_mismatch, op,
                   text("found ", n, " elements along axis ", axis, " of ", describe(x.real),
                        ", expected 1 to ", kLongest));
  return std::nullopt;
}

ComplexTensor failed_signal(const Tensor& error) { return {error, error}; }

// x has been checked. kept 0: all.
ComplexTensor transformed(const ComplexTensor& x, int axis, Transform form) {
  const Tensor real = movedim(x.real, axis, -1);
  const std::int64_t n = real.extent(real.rank() - 1), lines = n == 0 ? 0 : real.shape().element_count() / n;
  if (form.kept == 0) form.kept = n;
  const Shape line{lines, 1, n};
  const Tensor z = is_empty(x.imaginary)
                       ? reshape(real, line)
                       : concat({reshape(real, line), reshape(movedim(x.imaginary, axis, -1), line)}, 1);
  const std::vector<std::int64_t> radices = radices_of(n);
  const Tensor out = radices.empty() ? by_chirp(z, form) : by_products(z, radices, form);
  Shape shape = real.shape();
  shape[shape.rank() - 1] = form.kept;
  const auto part = [&](std::int64_t which) {
    return movedim(reshape(narrow(out, 1, which, 1), shape), -1, axis);
  };
  return {part(0), form.real_only ? Tensor() : part(1)};
}

}  // namespace

ComplexTensor fft(const ComplexTensor& x, int axis) {
  if (const auto refused = refuse_signal("fft", x, axis)) return failed_signal(*refused);
  return transformed(x, axis, {});
}

ComplexTensor ifft(const ComplexTensor& x, int axis) {
  if (const auto refused = refuse_signal("ifft", x, axis)) return failed_signal(*refused);
  const std::int64_t n = x.real.extent(axis < 0 ? axis + x.real.rank() : axis);
  return transformed(x, axis, {.inverse = true, .scale = 1 / static_cast<double>(n)});
}

ComplexTensor rfft(const Tensor& x, int axis) {
  if (const auto refused = refuse_signal("rfft", {x, {}}, axis)) return failed_signal(*refused);
  return transformed({x, {}}, axis, {.kept = x.extent(axis < 0 ? axis + x.rank() : axis) / 2 + 1});
}

Tensor irfft(const ComplexTensor& x, int axis, std::int64_t length) {
  if (const auto refused = refuse_signal("irfft", x, axis)) return *refused;
  if (axis < 0) axis += x.real.rank();
  const std::int64_t extent = x.real.extent(axis), n = length == -1 ? 2 * (extent - 1) : length;
  if (n < 1 || n > kLongest || n / 2 + 1 != extent)
    return failure(ErrorCode::shape_mismatch, "irfft",
                   text("found ", describe(x.real), " for length ", n, ", expected length / 2 + 1 elements"));
  // The elements after n / 2 are the conjugates of those before.
  const auto whole = [&](const Tensor& part, bool negated) {
    if (n < 3) return part;
    const Tensor mirrored = flip(narrow(part, axis, 1, (n - 1) / 2), axis);
    return concat({part, negated ? -mirrored : mirrored}, axis);
  };
  const ComplexTensor full{whole(x.real, false), is_empty(x.imaginary) ? Tensor() : whole(x.imaginary, true)};
  return transformed(full, axis, {.inverse = true, .real_only = true, .scale = 1 / static_cast<double>(n)})
      .real;
}

ComplexTensor fft2(const ComplexTensor& x) { return fft(fft(x, -1), -2); }
ComplexTensor ifft2(const ComplexTensor& x) { return ifft(ifft(x, -1), -2); }
ComplexTensor rfft2(const Tensor& x) { return fft(rfft(x, -1), -2); }
Tensor irfft2(const ComplexTensor& x, std::int64_t length) { return irfft(ifft(x, -2), -1, length); }

std::vector<float> tensor::window_values(std::int64_t size, double a0, double a1, double a2, bool periodic) {
  const std::int64_t n = periodic ? size : size - 1;
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) {
    const double turn = n > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n) : 0;
    values.push_back(static_cast<float>(a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn)));
  }
  return values;
}

Tensor cosine_window(std::int64_t size, double a0, double a1, double a2, bool periodic) {
  if (size < 1 || size > kLongest)
    return failure(ErrorCode::shape_mismatch, "cosine_window",
                   text("found size ", size, ", expected 1 to ", kLongest));
  return Tensor::from(window_values(size, a0, a1, a2, periodic), {size});
}

Tensor hann_window(std::int64_t size, bool periodic) { return cosine_window(size, 0.5, 0.5, 0, periodic); }
Tensor hamming_window(std::int64_t size, bool periodic) {
  return cosine_window(size, 0.54, 0.46, 0, periodic);
}
Tensor blackman_window(std::int64_t size, bool periodic) {
  return cosine_window(size, 0.42, 0.5, 0.08, periodic);
}

ComplexTensor stft(const Tensor& x, const Tensor& window, std::int64_t step, bool centred) {
  if (!x.ok()) return failed_signal(x);
  if (!window.ok()) return failed_signal(window);
  const std::int64_t size = window.rank() == 1 ? window.extent(0) : 0, side = centred ? size / 2 : 0,
                     n = x.rank() > 0 ? x.extent(x.rank() - 1) : 0;
  if (size < 1 || step < 1 || n + 2 * side < size || (centred && n <= side))
    return failed_signal(
        failure(ErrorCode::shape_mismatch, "stft",
                text("found ", describe(x), ", window ", describe(window), " and step ", step,
                     ", expected [..., n] with one frame or more, a window [size] and a step of 1 or more")));
  std::vector<std::pair<std::int64_t, std::int64_t>> sides(static_cast<std::size_t>(x.rank()));
  sides.back() = {side, side};
  const Tensor wide = side > 0 ? pad(x, sides, PadMode::reflect) : x;
  return rfft(imprint::window(wide, -1, size, step) * window, -1);
}

Tensor istft(const ComplexTensor& x, const Tensor& window, std::int64_t step, std::int64_t length,
             bool centred) {
  if (!x.real.ok()) return x.real;
  if (!window.ok()) return window;
  const std::int64_t size = window.rank() == 1 ? window.extent(0) : 0, side = centred ? size / 2 : 0;
  const int rank = x.real.rank();
  const std::int64_t frames = rank >= 2 ? x.real.extent(rank - 2) : 0, total = (frames - 1) * step + size;
  if (size < 1 || step < 1 || frames < 1 || x.real.extent(rank - 1) != size / 2 + 1 || length < 1 ||
      side + length > total)
    return failure(
        ErrorCode::shape_mismatch, "istft",
        text("found ", describe(x.real), ", window ", describe(window), ", step ", step, " and length ",
             length, ", expected [..., frames, size / 2 + 1] that cover the length"));
  const Tensor pieces = irfft(x, -1, size) * window;
  const std::int64_t lines = pieces.shape().element_count() / (frames * size);
  const auto added = [&](const Tensor& of) {
    const UnfoldOptions sliding{.size = size, .stride = step};
    return narrow(reshape(fold(transpose(of), {total}, sliding), {of.extent(0), total}), 1, side, length);
  };
  const Tensor sum = added(reshape(pieces, {lines, frames, size})),
               weight = added(expand(reshape(square(window), {1, 1, size}), {1, frames, size}));
  const Tensor reached = weight > Tensor(1e-11);
  Shape shape;
  for (int i = 0; i < rank - 2; ++i) shape.append(x.real.extent(i));
  shape.append(length);
  return reshape(where(reached, sum / where(reached, weight, 1.0f), 0.0f), shape);
}

}  // namespace imprint
