#pragma once
// The loss of proximal policy optimisation on one minibatch, as tensors.

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint::nn {

struct PpoLossOptions {
  double clip_range = 0.2;          // of the probability ratio, around 1
  double entropy_coefficient = 0;
  double value_coefficient = 0.5;
};

// What was seen and done, a row a step.
struct PpoBatch {
  Tensor action;          // int32 [rows]
  Tensor log_probability; // float32 [rows], of the action when it was taken
  Tensor advantage;       // float32 [rows]
  Tensor value_target;    // float32 [rows]
};

struct PpoLoss {
  Tensor total;           // what to differentiate: policy + value_coefficient value - entropy_coefficient entropy
  Tensor policy;          // - mean of min(ratio advantage, clamp(ratio, 1 - clip_range, 1 + clip_range) advantage)
  Tensor value;           // mean squared error
  Tensor entropy;         // mean, of the categorical distributions
  Tensor divergence;      // mean of (ratio - 1) - log ratio: an estimate of KL(old || new) that is never negative
  Tensor clipped;         // share of the rows whose ratio left the range
};

// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017, equations 7 and 9; the divergence estimate after
// Schulman, Approximating KL Divergence, 2020. logits: float32 [rows, actions]; values: float32 [rows].
// Tensors of other shapes give a loss that carries the error.
PpoLoss ppo_loss(const Tensor& logits, const Tensor& values, const PpoBatch& batch, const PpoLossOptions& options = {});

}  // namespace imprint::nn
