#pragma once
// Losses. Each computes one number per element, or per row of logits; multiplies it by `weight`, if given,
// which broadcasts; and reduces.

#include "compute/tensor/tensor.h"

namespace imprint::nn {

enum class Reduction {
  mean,  // of the weighted numbers: divided by their count, not by the sum of weights
  sum,
  none,
  group_mean  // [groups, ...] -> [groups], the mean of each group. Differentiate the sum of it: each group
              // then has the gradient that it has alone
};

Tensor reduce_loss(const Tensor& losses, Reduction reduction);

// (prediction - target)^2. Shapes must be equal: [n, 1] against [n] would silently compare all pairs.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
                const Tensor& weight = Tensor());

// With d = prediction - target: d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2). Shapes must be
// equal. Huber, Robust Estimation of a Location Parameter, 1964.
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// -log softmax(logits)[target]. logits: [..., classes]; target: int32 [...]. A target outside [0, classes)
// has loss 0 and gradient 0.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                     const Tensor& weight = Tensor());

}  // namespace imprint::nn
