#pragma once
// y = x W + b.

#include <cstdint>
#include <string>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

struct LinearOptions {
  bool bias = true;
  Initialisation weight_values;  // PyTorch's default for both
  Initialisation bias_values;
  std::int64_t groups = 0;  // > 0: so many networks side by side (parameter.h)
  std::uint64_t seed = 0;
};

// Weight [in, out] and bias [out]; the rows of W are inputs, the transpose of PyTorch's layout.
// Grouped: weight [groups, in, out], bias [groups, 1, out].
class Linear {
 public:
  // name: where the layer stands in its network ("policy.0"); it keys the random numbers and prefixes the
  // variables' names. Sizes that make no sense surface as the error of its outputs.
  Linear(const std::string& name, std::int64_t in, std::int64_t out, const LinearOptions& options = {});

  // x: [..., in] -> [..., out]; grouped: [groups, batch, in] -> [groups, batch, out].
  Tensor operator()(const Tensor& x) const;

  const Parameters& parameters() const { return parameters_; }  // "weight", "bias"
  const Variable& weight() const { return weight_; }
  const Variable& bias() const { return bias_; }  // !ok() when there is none

 private:
  std::string name_;
  std::int64_t groups_;
  bool has_bias_;
  Variable weight_;
  Variable bias_;
  Parameters parameters_;
};

}  // namespace imprint::nn
