#pragma once
// Convolutions and pools as layers (module.h). Channels are axis 1: [batch, channels, height, width], or
// [batch, channels, length].

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

struct ConvOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;  // of channels. Depthwise: in = out = groups
  bool bias = true;
  Initialisation weight_values = {};  // the defaults are PyTorch's
  Initialisation bias_values = {};
  std::uint64_t seed = 0;
};

// The base of convolutions of any rank. Parameters: "weight" [out, in / groups, kernel per axis], "bias"
// [out].
class Convolution {
 public:
  const Parameters& parameters() const { return parameters_; }

 protected:
  Convolution(const std::string& name, const ConvOptions& options, const Shape& weight);

  std::string name_;
  ConvOptions options_;
  Parameters parameters_;
  Variable weight_, bias_;
};

// x: [batch, in, height, width].
class Conv2d : public Convolution {
 public:
  static constexpr std::string_view kKind = "Conv2d";
  Conv2d(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
         const ConvOptions& options = {});
  Tensor operator()(const Tensor& x) const;
};

// x: [batch, in, length].
class Conv1d : public Convolution {
 public:
  static constexpr std::string_view kKind = "Conv1d";
  Conv1d(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
         const ConvOptions& options = {});
  Tensor operator()(const Tensor& x) const;
};

class MaxPool2d {
 public:
  static constexpr std::string_view kKind = "MaxPool2d";
  explicit MaxPool2d(const Pool2dOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x) const { return max_pool2d(x, options_); }

 private:
  Pool2dOptions options_;
};

class AvgPool2d {
 public:
  static constexpr std::string_view kKind = "AvgPool2d";
  explicit AvgPool2d(const Pool2dOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x) const { return avg_pool2d(x, options_); }

 private:
  Pool2dOptions options_;
};

// The mean of each channel: [batch, channels, ...] -> [batch, channels]. PyTorch's AdaptiveAvgPool with
// output size 1, flattened.
class GlobalAvgPool {
 public:
  static constexpr std::string_view kKind = "GlobalAvgPool";
  Tensor operator()(const Tensor& x) const;
};

// [batch, ...] -> [batch, the rest].
class Flatten {
 public:
  static constexpr std::string_view kKind = "Flatten";
  Tensor operator()(const Tensor& x) const { return flatten(x, 1); }
};

}  // namespace imprint::nn
