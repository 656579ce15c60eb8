#pragma once
// Weights in 8 or 4 bits: a network computes with them in a quarter or an eighth of float32's memory.
//
//   const QuantisedParameters small("net.small", network.parameters().matching("*.weight"),
//                                  {.code = WeightCode::normal4});
//   ... run small.pack() once; small.state() is for files ...
//   const Tensor y = small(network(x));
//
// QLoRA trains a Lora beside them: small(tuned(network(x))). Dettmers, Pagnoni, Holtzman, Zettlemoyer, QLoRA:
// Efficient Finetuning of Quantized LLMs, 2023.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

// Each block of neighbouring weights has one scale, the largest magnitude in it. bitsandbytes' names.
enum class WeightCode : std::uint8_t {
  int8,    // 127 equal steps on each side
  int4,    // 7 equal steps on each side
  normal4  // NF4: 16 values, spaced as the quantiles of a normal distribution
};

struct QuantisedParametersOptions {
  WeightCode code = WeightCode::int8;
  std::int64_t block = 64;  // weights per scale; even
};

class QuantisedParameters {
 public:
  // weights: floats of any shape. State per weight: "<weight>.codes", int8 [blocks, block] or uint8
  // [blocks, block / 2] with the first half of a block in the low bits, and "<weight>.scales" float32
  // [blocks, 1]. Everything is 0 before pack() has run.
  QuantisedParameters(const std::string& name, const Parameters& weights,
                      const QuantisedParametersOptions& options = {});

  // The updates that compute codes and scales from the weights.
  std::vector<Update> pack() const;
  // The output, computed with the coded weights. Programs of it do not use the weights' own variables.
  Tensor operator()(const Tensor& output) const;
  std::vector<Tensor> operator()(std::span<const Tensor> outputs) const;

  const Parameters& state() const { return state_; }
  std::uint64_t bytes() const;  // of codes and scales

 private:
  struct Coded {
    Variable weight, codes, scales;
  };
  Tensor decoded(const Coded& coded) const;

  QuantisedParametersOptions options_;
  std::vector<Coded> coded_;
  Parameters state_;
};

}  // namespace imprint::nn
