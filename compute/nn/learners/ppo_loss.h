#pragma once
// The loss of proximal policy optimisation on one minibatch, as tensors.

#include <cstdint>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint::nn {

struct PpoLossOptions {
  Tensor clip_range = 0.2f;  // of the probability ratio, around 1: a number, or a float32 scalar tensor
  double entropy_coefficient = 0;
  double value_coefficient = 0.5;
  bool clip_value = false;  // values gain nothing by moving further than clip_range; needs PpoBatch::value
  // Networks in a kennel, whose rows lie one after the other: each number of the loss is [groups]. 0: one
  // network, and scalars.
  std::int64_t groups = 0;
};

// The samples, one per row.
struct PpoBatch {
  Tensor action;           // int32 [rows]; for the loss by logits
  Tensor log_probability;  // float32 [rows], of the action at the time it was taken
  Tensor advantage;        // float32 [rows]
  Tensor value_target;     // float32 [rows]
  Tensor value;            // float32 [rows], at that time too; empty unless clip_value
};

// The networks' outputs for the samples now, float32 [rows] each.
struct PpoEvaluation {
  Tensor log_probability;
  Tensor entropy;
  Tensor value;
};

struct PpoLoss {
  Tensor total;       // to differentiate: policy + value_coefficient value - entropy_coefficient entropy
  Tensor policy;      // -mean of min(ratio advantage, clamp(ratio, 1 - clip_range, 1 + clip_range) advantage)
  Tensor value;       // mean squared error; with clip_value the larger of the clipped and the plain error
  Tensor entropy;     // mean
  Tensor divergence;  // mean of (ratio - 1) - log ratio: an estimate of KL(old || new), never negative
  Tensor clipped;     // share of rows whose ratio left the range
};

// Tensors of other shapes give a loss that carries the error.
// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017, equations 7 and
// 9; divergence: Schulman, Approximating KL Divergence, 2020.
PpoLoss ppo_loss(const PpoEvaluation& now, const PpoBatch& batch, const PpoLossOptions& options = {});
// The loss of a categorical policy. logits: float32 [rows, actions]; values: float32 [rows].
PpoLoss ppo_loss(const Tensor& logits, const Tensor& values, const PpoBatch& batch,
                 const PpoLossOptions& options = {});

}  // namespace imprint::nn
