#pragma once
// Fourier transforms and what signals need beside them. float32; complex numbers are two tensors. NumPy's and
// PyTorch's meanings and names. Errors as in tensor.h.

#include <cstdint>

#include "compute/tensor/tensor.h"

namespace imprint {

struct ComplexTensor {
  Tensor real, imaginary;  // equal shapes; an operand may leave `imaginary` empty: 0
};

// ---- Fourier transforms along an axis of 1 to 2^24 elements ----
// out[k] = sum of x[j] exp(-2 pi i j k / n). Cooley and Tukey, An Algorithm for the Machine Calculation of
// Complex Fourier Series, 1965, with matrix products of up to 64 points. A length with a prime factor above
// 64 costs about four times as much: Bluestein, A Linear Filtering Approach to the Computation of the
// Discrete Fourier Transform, 1970.
ComplexTensor fft(const ComplexTensor& x, int axis = -1);
ComplexTensor ifft(const ComplexTensor& x, int axis = -1);  // with +i, divided by n
// The first n / 2 + 1 elements of fft: the others are their conjugates.
ComplexTensor rfft(const Tensor& x, int axis = -1);
// The inverse of rfft. length: n; -1: 2 (extent - 1). The imaginary parts of element 0 and, for an even n,
// n / 2 add nothing.
Tensor irfft(const ComplexTensor& x, int axis = -1, std::int64_t length = -1);
// The same over the last two axes.
ComplexTensor fft2(const ComplexTensor& x);
ComplexTensor ifft2(const ComplexTensor& x);
ComplexTensor rfft2(const Tensor& x);                             // the last axis has n / 2 + 1
Tensor irfft2(const ComplexTensor& x, std::int64_t length = -1);  // length: of the last axis

// ---- windows: float32 [size] ----
// a0 - a1 cos(t) + a2 cos(2 t), with t = 2 pi i / n. periodic: n is the size, for transforms; else size - 1,
// which is symmetric.
Tensor cosine_window(std::int64_t size, double a0, double a1, double a2, bool periodic = true);
Tensor hann_window(std::int64_t size, bool periodic = true);      // 0.5, 0.5, 0
Tensor hamming_window(std::int64_t size, bool periodic = true);   // 0.54, 0.46, 0
Tensor blackman_window(std::int64_t size, bool periodic = true);  // 0.42, 0.5, 0.08

// ---- short-time Fourier transform ----
// [..., n] -> [..., frames, size / 2 + 1]: frame f is the rfft of `size` elements from f * step on, times the
// window [size]. centred: x is mirrored by size / 2 at both ends, so that frame f is around f * step.
ComplexTensor stft(const Tensor& x, const Tensor& window, std::int64_t step, bool centred = true);
// [..., frames, size / 2 + 1] -> [..., length]. Frames are windowed again and added; the sum is divided by
// that of the squared windows (Griffin, Lim, Signal Estimation from Modified Short-Time Fourier Transform,
// 1984). 0 where no window reaches.
Tensor istft(const ComplexTensor& x, const Tensor& window, std::int64_t step, std::int64_t length,
             bool centred = true);

}  // namespace imprint
