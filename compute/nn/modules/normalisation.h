#pragma once
// The layer normalisation layer.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct LayerNormOptions {
  double epsilon = 1e-5;
  std::int64_t groups = 0;
};

// Normalises over the last axis, then y = weight * x + bias. weight starts at 1, bias at 0; both are
// [extent]. With groups: [groups, 1, extent], for x [groups, batch..., extent]. Ba, Kiros, Hinton, Layer
// Normalization, 2016.
class LayerNorm {
 public:
  static constexpr std::string_view kKind = "LayerNorm";
  LayerNorm(const std::string& name, std::int64_t extent, const LayerNormOptions& options = {});

  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }  // "weight", "bias"

 private:
  std::string name_;
  std::int64_t extent_;
  LayerNormOptions options_;
  Variable weight_;
  Variable bias_;
  Parameters parameters_;
};

}  // namespace imprint::nn
