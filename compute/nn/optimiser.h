#pragma once
// Optimisers turn gradients into updates. They hold their moments as variables and record one step; put the
// updates into a program and run it.
//
// learning_rate: a number, a float32 scalar tensor (such as an input), or float32 [groups].
// active: float32 scalar, or [groups]. Where it is 0, parameters, moments and step counters keep their
// content, whatever the gradients are. Empty: always active.
// groups: networks in a kennel (parameter.h). Norms, step counters and learning rates are then per network.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct ClippedGradients {
  std::vector<Tensor> gradients;
  Tensor norm;  // before clipping: a scalar, or [groups]
};

// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is the norm of all of them together.
// A norm that is not finite makes the gradients NaN: skip such a step with active = is_finite(norm).
// loss_scale: the factor of the loss (LossScaler), a float32 scalar or [groups], or empty. Gradients and norm
// are divided by it first; with an infinite max_norm nothing else happens.
// Pascanu, Mikolov, Bengio, On the Difficulty of Training Recurrent Neural Networks, 2013.
Result<ClippedGradients> clip_by_global_norm(std::span<const Tensor> gradients, double max_norm,
                                             std::int64_t groups = 0, const Tensor& loss_scale = Tensor());

class Optimiser {
 public:
  virtual ~Optimiser() = default;

  // The updates of parameters and state. gradients: one per parameter, in order and of its shape.
  // Errors: invalid_argument for a wrong number of gradients, shape_mismatch, and the error of any tensor
  // that carries one.
  virtual Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                           const Tensor& active = Tensor()) const = 0;

  // Moments and step counter, for saving and copying: "first_moment.0.weight", "step", ...
  const Parameters& state() const { return state_; }
  const Parameters& parameters() const { return parameters_; }

 protected:
  Optimiser(Parameters parameters, std::int64_t groups)
      : parameters_(std::move(parameters)), groups_(groups) {}

  Parameters parameters_;
  Parameters state_;
  std::int64_t groups_;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;    // Sutskever et al., On the Importance of Initialization and Momentum, 2013
  double weight_decay = 0;  // times the parameter, added to the gradient
  std::int64_t groups = 0;
};

// velocity = momentum velocity + gradient
// parameter -= learning_rate velocity, or with nesterov learning_rate (gradient + momentum velocity)
class Sgd final : public Optimiser {
 public:
  Sgd(const Parameters& parameters, const SgdOptions& options = {});
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  SgdOptions options_;
  std::vector<Variable> velocity_;
};

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  // true: AdamW, Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019.
  // false: the decay is added to the gradient.
  bool decoupled = false;
  std::int64_t groups = 0;
};

// parameter -= learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015.
class Adam final : public Optimiser {
 public:
  Adam(const Parameters& parameters, const AdamOptions& options = {});
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  AdamOptions options_;
  std::vector<Variable> first_moment_;
  std::vector<Variable> second_moment_;
  Variable step_;  // int32: [1], or [groups]
};

// AdamW. Its default weight decay is 0.01.
Adam adam_w(const Parameters& parameters, AdamOptions options = {.weight_decay = 0.01});

}  // namespace imprint::nn
