#pragma once
// The linear layer y = x W + b, and its form for two inputs.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"
#include "compute/nn/weight_form.h"

namespace imprint::nn {

struct LinearOptions {
  bool bias = true;
  Initialisation weight_values = {};  // the default is PyTorch's, for weights and biases
  Initialisation bias_values = {};
  std::int64_t groups = 0;  // number of networks in a kennel; 0: one plain network (parameter.h)
  WeightForm weight_form = WeightForm::plain;  // other forms: without groups
  std::uint64_t seed = 0;
};

// Weight [in, out], the transpose of PyTorch's layout; bias [out].
// With groups: weight [groups, in, out], bias [groups, 1, out].
class Linear {
 public:
  static constexpr std::string_view kKind = "Linear";
  // name: the layer's position in its network, such as "policy.0". It keys the random numbers and prefixes
  // the variables' names. Invalid sizes give outputs that carry the error.
  Linear(const std::string& name, std::int64_t in, std::int64_t out, const LinearOptions& options = {});

  // x: [..., in] -> [..., out]. With groups: [groups, batch..., in] -> [groups, batch..., out].
  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, Pass& pass) const;

  const Parameters& parameters() const { return parameters_; }  // "weight" or its form's, "bias"
  const Parameters& buffers() const { return buffers_; }        // of the weight's form
  const Variable& weight() const { return weight_.variable(); }
  const Variable& bias() const { return bias_; }  // !ok() without a bias

 private:
  std::string name_;
  std::int64_t groups_;
  bool has_bias_;
  Parameters parameters_, buffers_;
  FormedWeight weight_;
  Variable bias_;
};

struct BilinearOptions {
  bool bias = true;
  Initialisation values = {};  // U(+-1 / sqrt(in1)), PyTorch's
  std::uint64_t seed = 0;
};

// y[o] = a weight[o] b + bias[o]. a: [..., in1], b: [..., in2] -> [..., out].
// Parameters: "weight" [out, in1, in2], "bias" [out].
class Bilinear {
 public:
  Bilinear(const std::string& name, std::int64_t in1, std::int64_t in2, std::int64_t out,
           const BilinearOptions& options = {});
  Tensor operator()(const Tensor& a, const Tensor& b) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  std::string name_;
  Variable weight_, bias_;
  Parameters parameters_;
};

}  // namespace imprint::nn
