#pragma once
// Optimisers: from gradients to updates. They hold the moments as variables and record one step; compile the
// updates into a program and run it.
//
// learning_rate: a number, a float32 scalar tensor (an input, say), or float32 [groups].
// Grouped parameters ([groups, ...] each) take steps of their own: norms, step counters and learning rates
// are per group, and `active`, float32 [groups], freezes those groups where it is 0: parameters, moments and
// counters keep their content, whatever the gradients are. With groups = 0 `active` is a float32 scalar that
// freezes everything.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct ClippedGradients {
  std::vector<Tensor> gradients;
  Tensor norm;  // before clipping: a scalar, or [groups]
};

// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is that of all of them together
// (Pascanu, Mikolov, Bengio, On the Difficulty of Training Recurrent Neural Networks, 2013). A norm that is
// not finite makes the gradients NaN: freeze such a step through `active`, which is_finite(norm) tells.
// loss_scale: what the loss was multiplied by, a float32 scalar or [groups] (LossScaler): gradients and norm
// are divided by it first. An infinite max_norm does that alone.
Result<ClippedGradients> clip_by_global_norm(std::span<const Tensor> gradients, double max_norm,
                                             std::int64_t groups = 0, const Tensor& loss_scale = Tensor());

class Optimiser {
 public:
  virtual ~Optimiser() = default;

  // Updates of the parameters and of the optimiser's own state. gradients: one a parameter, in order, of its
  // shape. Errors: invalid_argument on another number of gradients, shape_mismatch, and any error that a
  // tensor carries.
  virtual Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                           const Tensor& active = Tensor()) const = 0;

  // Moments and step counter, to save and to copy: "first_moment.0.weight", "second_moment.0.weight", "step",
  // ...
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
  bool nesterov =
      false;  // Sutskever, Martens, Dahl, Hinton, On the Importance of Initialization and Momentum, 2013
  double weight_decay = 0;  // added to the gradient
  std::int64_t groups = 0;
};

// velocity = momentum velocity + gradient; parameter -= learning_rate velocity (or gradient + momentum
// velocity with nesterov).
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
  bool decoupled = false;  // true: AdamW (Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019);
                           // false: added to the gradient
  std::int64_t groups = 0;
};

// Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015:
// parameter -= learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
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

// Adam with decoupled weight decay, 0.01 unless given.
Adam adam_w(const Parameters& parameters, AdamOptions options = {.weight_decay = 0.01});

}  // namespace imprint::nn
