#pragma once
// Deformable convolution: each element of the kernel reads x at a place that the network moves.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/modules/convolution.h"

namespace imprint::nn {

// torchvision's DeformConv2d. x: [batch, in, height, width]; between pixels it is read bilinearly, outside it
// is 0. offset: [batch, 2 * parts * kernel, out height, out width] in pixels, (down, right) per element of
// the kernel; `parts` divides the channels into neighbours that move together, and follows from the shape.
// mask: [batch, parts * kernel, out height, out width], a factor per element, or empty.
// options: without same, padding_mode and weight_form. Parameters: "weight" [out, in / groups, height,
// width], "bias" [out]. Dai et al., Deformable Convolutional Networks, 2017; mask: Zhu, Hu, Lin, Dai,
// Deformable ConvNets v2: More Deformable, Better Results, 2019.
class DeformConv2d {
 public:
  static constexpr std::string_view kKind = "DeformConv2d";
  DeformConv2d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
               const ConvOptions& options = {});
  Tensor operator()(const Tensor& x, const Tensor& offset, const Tensor& mask = Tensor()) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor columns(const Tensor& x, const Tensor& offset, const Tensor& mask, const Shape& out) const;

  std::string name_;
  ConvOptions options_;
  Parameters parameters_;
  Variable weight_, bias_;
};

}  // namespace imprint::nn
