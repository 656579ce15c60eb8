#pragma once
// Weights that are computed from their parameters at each use: weight norm and spectral norm.

#include <cstdint>
#include <string>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

// Units are the outputs of the weight. State-dict names are those of torch.nn.utils.parametrizations.
enum class WeightForm : std::uint8_t {
  plain,  // "weight"
  // g v / |v| for each unit: "parametrizations.weight.original0" (g) and "original1" (v). Salimans, Kingma,
  // Weight Normalization, 2016.
  weight_norm,
  // w / its largest singular value: "parametrizations.weight.original". A training pass improves the estimate
  // by one power iteration; its vectors are the buffers "parametrizations.weight.0._u" and "._v". Miyato,
  // Kataoka, Koyama, Yoshida, Spectral Normalization for Generative Adversarial Networks, 2018.
  spectral_norm
};

// The weight of a layer. Its outputs are axis 0, or the last axis of a transposed weight [in, out].
class FormedWeight {
 public:
  FormedWeight() = default;
  // Adds the parameters and buffers of the form.
  FormedWeight(Parameters& parameters, Parameters& buffers, const std::string& layer, const Shape& shape,
               WeightForm form, const Initialisation& initialisation, const InitialValues& wanted,
               bool transposed);

  Tensor value() const;
  Tensor value(Pass& pass) const;
  const Variable& variable() const { return original_; }  // the weight, v, or the weight before its norm

 private:
  Tensor magnitude_direction() const;
  Tensor matrix() const;  // [outputs, rest]

  WeightForm form_ = WeightForm::plain;
  bool transposed_ = false;
  Variable original_, magnitude_, u_, v_;
};

}  // namespace imprint::nn
