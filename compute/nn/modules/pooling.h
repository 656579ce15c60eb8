#pragma once
// Pools and resizing as layers (module.h), for one to three axes of places: x [batch, channels, places...].
// PyTorch's layers of these names with 1d to 3d. None has parameters.

#include <cstdint>
#include <string_view>
#include <vector>

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"

namespace imprint::nn {

class MaxPool {
 public:
  static constexpr std::string_view kKind = "MaxPool";
  explicit MaxPool(const PoolOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x) const { return max_pool(x, options_); }

 private:
  PoolOptions options_;
};

class AvgPool {
 public:
  static constexpr std::string_view kKind = "AvgPool";
  explicit AvgPool(const PoolOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x) const { return avg_pool(x, options_); }

 private:
  PoolOptions options_;
};

// p = 2: the Euclidean length of each window.
class LpPool {
 public:
  static constexpr std::string_view kKind = "LpPool";
  explicit LpPool(double p, const PoolOptions& options = {}) : p_(p), options_(options) {}
  Tensor operator()(const Tensor& x) const { return lp_pool(x, p_, options_); }

 private:
  double p_;
  PoolOptions options_;
};

class AdaptiveAvgPool {
 public:
  static constexpr std::string_view kKind = "AdaptiveAvgPool";
  explicit AdaptiveAvgPool(const PerAxis& places) : places_(places) {}
  Tensor operator()(const Tensor& x) const { return adaptive_avg_pool(x, places_); }

 private:
  PerAxis places_;
};

class AdaptiveMaxPool {
 public:
  static constexpr std::string_view kKind = "AdaptiveMaxPool";
  explicit AdaptiveMaxPool(const PerAxis& places) : places_(places) {}
  Tensor operator()(const Tensor& x) const { return adaptive_max_pool(x, places_); }

 private:
  PerAxis places_;
};

// The mean of each channel: [batch, channels, ...] -> [batch, channels]. PyTorch's AdaptiveAvgPool with
// output size 1, flattened.
class GlobalAvgPool {
 public:
  static constexpr std::string_view kKind = "GlobalAvgPool";
  Tensor operator()(const Tensor& x) const;
};

// The largest value of each channel: [batch, channels, ...] -> [batch, channels].
class GlobalMaxPool {
 public:
  static constexpr std::string_view kKind = "GlobalMaxPool";
  Tensor operator()(const Tensor& x) const;
};

// To a number of places per axis. PyTorch's Upsample and interpolate with size.
class Interpolate {
 public:
  static constexpr std::string_view kKind = "Interpolate";
  explicit Interpolate(const PerAxis& places, const ResizeOptions& options = {})
      : places_(places), options_(options) {}
  Tensor operator()(const Tensor& x) const { return interpolate(x, places_, options_); }

 private:
  PerAxis places_;
  ResizeOptions options_;
};

// To `factor` times as many places on each axis.
class Upsample {
 public:
  static constexpr std::string_view kKind = "Upsample";
  explicit Upsample(std::int64_t factor, const ResizeOptions& options = {})
      : factor_(factor), options_(options) {}
  Tensor operator()(const Tensor& x) const;

 private:
  std::int64_t factor_;
  ResizeOptions options_;
};

class PixelShuffle {
 public:
  static constexpr std::string_view kKind = "PixelShuffle";
  explicit PixelShuffle(std::int64_t factor) : factor_(factor) {}
  Tensor operator()(const Tensor& x) const { return pixel_shuffle(x, factor_); }

 private:
  std::int64_t factor_;
};

class PixelUnshuffle {
 public:
  static constexpr std::string_view kKind = "PixelUnshuffle";
  explicit PixelUnshuffle(std::int64_t factor) : factor_(factor) {}
  Tensor operator()(const Tensor& x) const { return pixel_unshuffle(x, factor_); }

 private:
  std::int64_t factor_;
};

class Unfold {
 public:
  static constexpr std::string_view kKind = "Unfold";
  explicit Unfold(const UnfoldOptions& options) : options_(options) {}
  Tensor operator()(const Tensor& x) const { return unfold(x, options_); }

 private:
  UnfoldOptions options_;
};

// To [batch, channels, height, width].
class Fold {
 public:
  static constexpr std::string_view kKind = "Fold";
  Fold(std::int64_t height, std::int64_t width, const UnfoldOptions& options)
      : height_(height), width_(width), options_(options) {}
  Tensor operator()(const Tensor& columns) const { return fold(columns, {height_, width_}, options_); }

 private:
  std::int64_t height_, width_;
  UnfoldOptions options_;
};

// Adds places on both sides of each axis: ZeroPad, ConstantPad, ReflectionPad, ReplicationPad, CircularPad.
class Pad {
 public:
  static constexpr std::string_view kKind = "Pad";
  explicit Pad(const PerAxis& amount, PadMode mode = PadMode::constant, double value = 0)
      : amount_(amount), mode_(mode), value_(value) {}
  Tensor operator()(const Tensor& x) const;

 private:
  PerAxis amount_;
  PadMode mode_;
  double value_;
};

}  // namespace imprint::nn
