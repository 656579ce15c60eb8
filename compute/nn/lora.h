#pragma once
// Low-rank adaptation: a network is tuned through two small matrices per weight while its own weights stay
// fixed.
//
//   const Lora tuned("tuned", network.parameters().matching("*.weight"), {.rank = 4});
//   const Tensor loss = cross_entropy(tuned(network(x)), labels);
//   ... gradients and an optimiser of tuned.parameters() ...
//   ... run tuned.merge() once: the network alone then gives the same outputs
//
// Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2022.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 8;  // changes are A B alpha / rank
  std::uint64_t seed = 0;
};

class Lora {
 public:
  // weights: matrices are adapted, other parameters are left out. Parameters per weight "<name>.weight":
  // "<name>.lora_A.weight" [in, rank], drawn as PyTorch draws linear weights, and "<name>.lora_B.weight"
  // [rank, out], which starts at 0: the names of Hugging Face's PEFT, whose matrices are the transposes.
  Lora(const std::string& name, const Parameters& weights, const LoraOptions& options = {});

  // The output, computed with the adapted weights. Any tensors made from the weights' values will do.
  Tensor operator()(const Tensor& output) const;
  std::vector<Tensor> operator()(std::span<const Tensor> outputs) const;

  const Parameters& parameters() const { return parameters_; }
  // weight += change, then A is kept and B is 0.
  std::vector<Update> merge() const;

 private:
  struct Adapted {
    Variable weight, down, up;
  };
  Tensor changed(const Adapted& adapted) const;

  double scale_;
  std::vector<Adapted> adapted_;
  Parameters parameters_;
};

}  // namespace imprint::nn
