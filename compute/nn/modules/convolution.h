#pragma once
// Convolutions as layers (module.h). x: [batch, channels, places...], with the places of an image as [height,
// width]. Numbers per axis are one for all or one each: 3, or {3, 5}.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"
#include "compute/nn/weight_form.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"

namespace imprint::nn {

struct ConvOptions {
  PerAxis stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;  // of channels. Depthwise: in = out = groups
  bool bias = true;
  WeightForm weight_form = WeightForm::plain;
  bool same = false;                         // padding="same", for any stride
  PadMode padding_mode = PadMode::constant;  // of zeros; not with same
  Initialisation weight_values = {};         // the defaults are PyTorch's
  Initialisation bias_values = {};
  std::int64_t networks = 0;  // of a kennel (parameter.h); with a plain weight_form
  std::uint64_t seed = 0;
};

// The base of convolutions of any rank. Parameters: "weight" [out, in / groups, kernel per axis], or its
// form's (weight_form.h), "bias" [out].
class Convolution {
 public:
  // x: [batch, in, places...] -> [batch, out, places...]. Of a kennel [networks, batch, in, places...], as
  // its parameters have the networks first.
  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, Pass& pass) const;
  const Parameters& parameters() const { return parameters_; }
  const Parameters& buffers() const { return buffers_; }  // of the weight's form

 protected:
  Convolution(const std::string& name, int places, std::int64_t in, std::int64_t out, const PerAxis& kernel,
              const ConvOptions& options);

 private:
  std::string name_;
  Tensor convolved(const Tensor& x, const Tensor& weight) const;

  ConvOptions options_;
  Parameters parameters_, buffers_;
  FormedWeight weight_;
  Variable bias_;
};

class Conv1d : public Convolution {
 public:
  static constexpr std::string_view kKind = "Conv1d";
  Conv1d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
         const ConvOptions& options = {})
      : Convolution(name, 1, in, out, kernel, options) {}
};

class Conv2d : public Convolution {
 public:
  static constexpr std::string_view kKind = "Conv2d";
  Conv2d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
         const ConvOptions& options = {})
      : Convolution(name, 2, in, out, kernel, options) {}
};

class Conv3d : public Convolution {
 public:
  static constexpr std::string_view kKind = "Conv3d";
  Conv3d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
         const ConvOptions& options = {})
      : Convolution(name, 3, in, out, kernel, options) {}
};

struct ConvTransposeOptions {
  PerAxis stride = 1, padding = 0, output_padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Initialisation weight_values = {};
  Initialisation bias_values = {};
  std::int64_t networks = 0;  // of a kennel (parameter.h)
  std::uint64_t seed = 0;
};

// The base of transposed convolutions: images.h, transposed_convolution. Parameters: "weight" [in,
// out / groups, kernel per axis], "bias" [out]. Dumoulin, Visin, A Guide to Convolution Arithmetic for Deep
// Learning, 2016.
class TransposedConvolution {
 public:
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 protected:
  TransposedConvolution(const std::string& name, int places, std::int64_t in, std::int64_t out,
                        const PerAxis& kernel, const ConvTransposeOptions& options);

 private:
  std::string name_;
  Tensor convolved(const Tensor& x, const Tensor& weight) const;

  ConvTransposeOptions options_;
  Parameters parameters_;
  Variable weight_, bias_;
};

class ConvTranspose1d : public TransposedConvolution {
 public:
  static constexpr std::string_view kKind = "ConvTranspose1d";
  ConvTranspose1d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
                  const ConvTransposeOptions& options = {})
      : TransposedConvolution(name, 1, in, out, kernel, options) {}
};

class ConvTranspose2d : public TransposedConvolution {
 public:
  static constexpr std::string_view kKind = "ConvTranspose2d";
  ConvTranspose2d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
                  const ConvTransposeOptions& options = {})
      : TransposedConvolution(name, 2, in, out, kernel, options) {}
};

class ConvTranspose3d : public TransposedConvolution {
 public:
  static constexpr std::string_view kKind = "ConvTranspose3d";
  ConvTranspose3d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
                  const ConvTransposeOptions& options = {})
      : TransposedConvolution(name, 3, in, out, kernel, options) {}
};

// One kernel per channel, then a 1x1 convolution across channels. Parameters: "depthwise.*", "pointwise.*".
// Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, 2017. PyTorch has none.
class DepthwiseSeparableConv2d {
 public:
  static constexpr std::string_view kKind = "DepthwiseSeparableConv2d";
  // options: of the depthwise part; its groups are the channels.
  DepthwiseSeparableConv2d(const std::string& name, std::int64_t in, std::int64_t out, const PerAxis& kernel,
                           ConvOptions options = {});
  Tensor operator()(const Tensor& x) const { return pointwise_(depthwise_(x)); }
  const Parameters& parameters() const { return parameters_; }

 private:
  Conv2d depthwise_, pointwise_;
  Parameters parameters_;
};

// [batch, ...] -> [batch, the rest].
class Flatten {
 public:
  static constexpr std::string_view kKind = "Flatten";
  Tensor operator()(const Tensor& x) const { return flatten(x, 1); }
};

}  // namespace imprint::nn
