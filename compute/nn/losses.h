#pragma once
// Losses. Each computes one number an element (or a row of logits), multiplies it by `weight` if one is given
// (it broadcasts), and folds.

#include "compute/tensor/tensor.h"

namespace imprint::nn {

enum class Reduction {
  mean,  // of all weighted numbers: divided by how many there are, not by the sum of weights
  sum,
  none,
  group_mean  // [groups, ...] -> [groups]: the mean within each group. Differentiate its sum: every group
              // then has the gradient it has alone
};

Tensor reduce_loss(const Tensor& losses, Reduction reduction);

// (prediction - target)^2. Shapes must be equal: a [n, 1] against a [n] would silently compare everything
// with everything.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
                const Tensor& weight = Tensor());

// d^2 / 2 where |d| <= delta, delta (|d| - delta / 2) beyond: Huber, Robust Estimation of a Location
// Parameter, 1964. Equal shapes.
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// -log softmax(logits)[target]. logits: [..., classes]; target: int32 [...]. A target outside [0, classes)
// costs nothing and teaches nothing.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                     const Tensor& weight = Tensor());

}  // namespace imprint::nn
