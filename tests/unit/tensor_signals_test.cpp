// Fourier transforms against sums in double, windows and frames against numbers known by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "compute/tensor/composites/signals.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using reference::evaluate;
using Numbers = std::vector<double>;
using Signal = std::vector<std::complex<double>>;

Signal signal_of(std::int64_t n) {
  Signal x;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto a = static_cast<float>((i * 37 + 11) % 64 - 32) / 32,
               b = static_cast<float>((i * 53) % 63) / 64;
    x.emplace_back(a, b);
  }
  return x;
}

// exp(-2 pi i j k / n), summed as it is written.
Signal summed(const Signal& x, bool inverse = false) {
  const auto n = static_cast<std::int64_t>(x.size());
  Signal out;
  for (std::int64_t k = 0; k < n; ++k) {
    std::complex<double> sum;
    for (std::int64_t j = 0; j < n; ++j)
      sum += x[static_cast<std::size_t>(j)] *
             std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(j * k % n) /
                                 static_cast<double>(n));
    out.push_back(inverse ? sum / static_cast<double>(n) : sum);
  }
  return out;
}

Tensor parts(const Signal& x, bool imaginary) {
  std::vector<float> values;
  for (const auto& value : x) values.push_back(static_cast<float>(imaginary ? value.imag() : value.real()));
  return Tensor::from(values, {static_cast<std::int64_t>(x.size())});
}

void expect_near(const ComplexTensor& found, const Signal& expected, const char* what) {
  ASSERT_TRUE(found.real.ok()) << what << ": " << found.real.error().message;
  const Numbers real = evaluate(found.real, {}), imaginary = evaluate(found.imaginary, {});
  ASSERT_LE(real.size(), expected.size());
  double worst = 0;
  for (std::size_t k = 0; k < real.size(); ++k)
    worst = std::max(worst, std::abs(std::complex(real[k], imaginary[k]) - expected[k]));
  // The constants are rounded to float.
  EXPECT_LT(worst, 1e-6 * static_cast<double>(expected.size())) << what << " of " << expected.size();
}

TEST(Signals, TransformsOfAnyLengthAreTheSums) {
  // One product; two; three (4,480 = 2^7 5 7); large primes, alone and as a factor.
  for (const std::int64_t n : {1, 2, 3, 4, 7, 30, 67, 127, 128, 129, 144, 250, 131, 134, 263, 1024, 1155}) {
    const Signal x = signal_of(n);
    const ComplexTensor complex{parts(x, false), parts(x, true)};
    const Signal expected = summed(x);
    expect_near(fft(complex), expected, "fft");
    expect_near(ifft(complex), summed(x, true), "ifft");
    Signal real;
    for (const auto& value : x) real.emplace_back(value.real());
    const Signal of_real = summed(real);
    const ComplexTensor half = rfft(complex.real);
    EXPECT_EQ(half.real.shape(), (Shape{n / 2 + 1}));
    expect_near(half, of_real, "rfft");
    expect_near(fft({complex.real, {}}), of_real, "fft of real numbers");
    const Tensor back = irfft(half, -1, n);
    ASSERT_EQ(back.shape(), (Shape{n}));
    const Numbers again = evaluate(back, {});
    for (std::size_t i = 0; i < again.size(); ++i) ASSERT_NEAR(again[i], x[i].real(), 2e-5) << n;
  }
}

TEST(Signals, LongTransformsHaveEveryElement) {
  // A single wave of 4,480 = 2^7 5 7 points is a single line.
  const std::int64_t n = 4480;
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>(
        std::cos(2 * std::numbers::pi * static_cast<double>(i * 1001 % n) / static_cast<double>(n))));
  const Numbers found = evaluate(rfft(Tensor::from(values, {n})).real, {});
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], k == 1001 ? 2240 : 0, 2e-3) << k;
}

TEST(Signals, AxesAndPlanes) {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(evaluate(fft({x, {}}, 0).real, {}), (Numbers{5, 7, 9, -3, -3, -3}));
  const ComplexTensor plane = rfft2(x);
  EXPECT_EQ(plane.real.shape(), (Shape{2, 2}));
  EXPECT_NEAR(evaluate(plane.real, {})[0], 21, 1e-5);
  const Numbers back = evaluate(irfft2(plane, 3), {});
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(back[i], static_cast<double>(i) + 1, 1e-5);
  const Numbers again = evaluate(ifft2(fft2({x, {}})).real, {});
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(again[i], static_cast<double>(i) + 1, 1e-5);
  EXPECT_EQ(fft({zeros({0, 4}), {}}).imaginary.shape(), (Shape{0, 4}));
  EXPECT_TRUE(std::isnan(evaluate(rfft(Tensor::from({1, NAN}, {2})).real, {})[0]));
}

TEST(Signals, Windows) {
  EXPECT_EQ(evaluate(hann_window(4), {}), (Numbers{0, 0.5, 1, 0.5}));
  EXPECT_EQ(evaluate(hann_window(3, false), {}), (Numbers{0, 1, 0}));
  EXPECT_EQ(evaluate(hann_window(1, false), {}), (Numbers{0}));
  EXPECT_NEAR(evaluate(hamming_window(5, false), {})[0], 0.08, 1e-7);
  EXPECT_NEAR(evaluate(blackman_window(8), {})[2], 0.34, 1e-7);
}

TEST(Signals, FramesComeBack) {
  const Signal x = signal_of(61);
  const Tensor line = parts(x, false);
  for (const bool centred : {true, false}) {
    const ComplexTensor frames = stft(line, hann_window(12), 3, centred);
    EXPECT_EQ(frames.real.shape(), (Shape{centred ? 21 : 17, 7}));
    const std::int64_t covered = centred ? 60 : 59;
    const Numbers back = evaluate(istft(frames, hann_window(12), 3, covered, centred), {});
    // Without centring nothing reaches the first element: that window is 0 there.
    if (!centred) EXPECT_EQ(back[0], 0);
    for (std::size_t i = centred ? 0 : 1; i < back.size(); ++i) ASSERT_NEAR(back[i], x[i].real(), 1e-5) << i;
  }
  // The third frame, centred: elements 6 - 2 .. 6 + 1.
  const ComplexTensor frames = stft(line, ones({4}), 3);
  Signal frame;
  for (std::size_t i = 4; i < 8; ++i) frame.emplace_back(x[i].real());
  const Signal expected = summed(frame);
  const Numbers real = evaluate(frames.real, {});
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(real[6 + k], expected[k].real(), 1e-6);
}

TEST(Signals, ErrorsNameWhatDoesNotFit) {
  const auto message = [](const Tensor& x) { return x.ok() ? std::string("ok") : x.error().message; };
  EXPECT_NE(message(fft({zeros({3}), zeros({4})}).real).find("expected float32 [3]"), std::string::npos);
  EXPECT_NE(message(rfft(zeros({2, 0})).real).find("found 0 elements"), std::string::npos);
  EXPECT_NE(message(rfft(zeros({2}), 1).imaginary).find("found axis 1"), std::string::npos);
  EXPECT_NE(message(irfft({zeros({4}), {}}, 0, 9)).find("for length 9"), std::string::npos);
  EXPECT_NE(message(rfft(arange(4)).real).find("float32"), std::string::npos);
  EXPECT_NE(message(stft(zeros({5}), ones({8}), 2, false).real).find("one frame or more"), std::string::npos);
  EXPECT_NE(message(istft({zeros({2, 5}), {}}, ones({8}), 4, 99)).find("length 99"), std::string::npos);
  EXPECT_NE(message(hann_window(0)).find("found size 0"), std::string::npos);
  EXPECT_NE(message(fft({Tensor(), {}}).real).find("uninitialised"), std::string::npos);
}

}  // namespace
}  // namespace imprint
