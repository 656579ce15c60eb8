#pragma once
// Convolutions, pools, resizing and sampling. x: float32 [batch, channels, places...], with one to three axes
// of places (length; height, width; depth, height, width). Formulas and defaults are PyTorch's. Errors as in
// tensor.h.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/tensor.h"

namespace imprint {

// One number for all axes of places, or one per axis, outermost first. Missing ones repeat the last.
class PerAxis {
 public:
  PerAxis(std::int64_t all) : values_{all, all, all} {}
  PerAxis(std::initializer_list<std::int64_t> each);
  std::int64_t operator[](int axis) const { return values_[static_cast<std::size_t>(axis)]; }

 private:
  std::array<std::int64_t, 3> values_{};
};

// ---- convolutions ----
struct ConvolutionOptions {
  PerAxis stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  // Pads so that there are ceil(places / stride) outputs; if the padding is odd, one more after than before.
  bool same = false;
};
// weight: [out, in / groups, kernel...]. bias: [out] or empty.
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ConvolutionOptions& options = {});

struct TransposedOptions {
  PerAxis stride = 1, padding = 0;
  PerAxis output_padding = 0;  // places added after the last; they get the bias and what reaches them
  PerAxis dilation = 1;
  std::int64_t groups = 1;
};
// The gradient of a convolution by its input: each place adds its multiple of the kernel to the output, which
// has (places - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1 places.
// weight: [in, out / groups, kernel...]. bias: [out] or empty.
Tensor transposed_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const TransposedOptions& options = {});

// ---- pools ----
struct PoolOptions {
  PerAxis size = 2;
  PerAxis stride = 0;  // 0: the size
  PerAxis padding = 0, dilation = 1;
  bool ceil = false;          // a last window may reach beyond the padded places
  bool count_padding = true;  // avg_pool divides by the whole window; false: by its places inside x
};
Tensor max_pool(const Tensor& x, const PoolOptions& options = {});
// Also where each maximum stands: int32, row-major among the places of its channel; the first of equals.
WithIndices max_pool_with_indices(const Tensor& x, const PoolOptions& options = {});
// x at the indices of an image of these extents, and 0 elsewhere; of equal indices the last counts. An index
// outside is dropped.
Tensor max_unpool(const Tensor& x, const Tensor& indices, std::initializer_list<std::int64_t> places);
Tensor avg_pool(const Tensor& x, const PoolOptions& options = {});
// (sum of x^p over the window)^(1 / p). Negative sums give 0. Without padding.
Tensor lp_pool(const Tensor& x, double p, const PoolOptions& options = {});
// `places` windows per axis: the i-th covers floor(i n / places) to ceil((i + 1) n / places).
Tensor adaptive_avg_pool(const Tensor& x, const PerAxis& places);
Tensor adaptive_max_pool(const Tensor& x, const PerAxis& places);

// ---- windows as columns ----
struct UnfoldOptions {
  PerAxis size = 2, stride = 1, padding = 0, dilation = 1;
};
// [batch, channels * window, windows]: each column is one window, as torch's unfold (im2col).
Tensor unfold(const Tensor& x, const UnfoldOptions& options);
// The adjoint of unfold: adds the columns [batch, channels * window, windows] into [batch, channels,
// places...]. places: the extents, one per axis.
Tensor fold(const Tensor& columns, std::initializer_list<std::int64_t> places, const UnfoldOptions& options);

// ---- resizing ----
enum class Resize : std::uint8_t {
  nearest,  // the place at floor(i n / places)
  linear,   // between 2 places per axis
  cubic     // between 4 per axis: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981,
            // with a = -0.75
};
struct ResizeOptions {
  Resize mode = Resize::nearest;
  bool align_corners = false;  // the corners' centres stay in place; else their outer edges
};
Tensor interpolate(const Tensor& x, const PerAxis& places, const ResizeOptions& options = {});

// [batch, channels * factor^2, height, width] <-> [batch, channels, height * factor, width * factor].
// Shi et al., Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
// Neural Network, 2016.
Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);

// ---- sampling at computed places ----
struct SampleOptions {
  Resize mode = Resize::linear;         // nearest: the closest place, halves to even
  PadMode outside = PadMode::constant;  // 0; edge or reflect: of the places, not of the weights
  bool align_corners = false;           // -1 and 1 are the centres of the outermost places; else their edges
};
// x at the places of the grid [batch, places..., axes]: numbers from -1 to 1, the innermost axis first. cubic
// for one or two axes. Derivatives by x and by the grid. Jaderberg et al., Spatial Transformer Networks,
// 2015.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const SampleOptions& options = {});
// The grid [batch, places..., axes] of affine maps theta [batch, axes, axes + 1]; two or three axes.
Tensor affine_grid(const Tensor& theta, std::initializer_list<std::int64_t> places,
                   bool align_corners = false);
Tensor affine_grid(const Tensor& theta, std::span<const std::int64_t> places, bool align_corners = false);

// A convolution of images whose taps are moved by offsets [batch, parts * taps * 2, rows, columns], down and
// right, and multiplied by a mask [batch, parts * taps, rows, columns] or empty. Each of the parts moves its
// share of the channels. bias: [out] or empty. Without options.same. Zhu et al., Deformable ConvNets v2,
// 2019.
Tensor deformable_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& offsets, const Tensor& mask = Tensor(),
                              const ConvolutionOptions& options = {});

}  // namespace imprint
