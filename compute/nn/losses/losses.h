#pragma once
// Losses. Each computes one number per element, per row of classes or per row of features; multiplies it by
// `weight`, if given, which broadcasts; and reduces. Formulas and defaults are those of PyTorch's losses of
// the same name, except where a comment says otherwise.
//
// Classes and features are the last axis here; PyTorch has classes at axis 1.

#include <cstdint>

#include "compute/tensor/tensor.h"

namespace imprint::nn {

enum class Reduction {
  mean,  // of the weighted numbers: divided by their count, not by the sum of weights
  sum,
  none,
  group_mean,  // [groups, ...] -> [groups], the mean of each group. Differentiate the sum of it: each group
               // then has the gradient that it has alone
  batch_mean   // the sum, divided by the first extent
};

Tensor reduce_loss(const Tensor& losses, Reduction reduction);

// ---- numbers: one loss per element; d = prediction - target ----
// The two shapes must be equal: [n, 1] against [n] would silently compare all pairs.

// d^2.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
                const Tensor& weight = Tensor());

// |d|.
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
               const Tensor& weight = Tensor());

// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2). Huber, Robust Estimation of a Location Parameter,
// 1964.
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// huber_loss / beta: d^2 / (2 beta) where |d| < beta, else |d| - beta / 2. beta 0: |d|. Girshick, Fast R-CNN,
// 2015.
Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta = 1,
                      Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

struct PoissonOptions {
  bool log_input = true;  // the prediction is the logarithm of the rate; false: the rate
  bool full = false;      // adds Stirling's approximation of log(target!) where target > 1
  double epsilon = 1e-8;  // added to a rate before its logarithm
  Reduction reduction = Reduction::mean;
  Tensor weight = {};
};
// -log of the Poisson distribution: exp(prediction) - target prediction, or with a rate
// prediction - target log(prediction + epsilon).
Tensor poisson_nll_loss(const Tensor& prediction, const Tensor& target, const PoissonOptions& options = {});

struct GaussianOptions {
  bool full = false;      // adds log(2 pi) / 2
  double epsilon = 1e-6;  // a smaller variance counts as this; its gradient passes
  Reduction reduction = Reduction::mean;
  Tensor weight = {};
};
// -log of the normal distribution: (log variance + d^2 / variance) / 2. variance: broadcasts to prediction.
// Nix, Weigend, Estimating the Mean and Variance of the Target Probability Distribution, 1994.
Tensor gaussian_nll_loss(const Tensor& prediction, const Tensor& target, const Tensor& variance,
                         const GaussianOptions& options = {});

// ---- classes: one loss per row ----

// Targets are classes: int32 [...], or of 8 or 16 bits. A target outside [0, classes) that is not ignored has
// loss NaN, so that it does not train in silence, and gradient 0. PyTorch raises an error.

// -log softmax(logits)[target]. logits: [..., classes]. A target of -100 has loss 0 and gradient 0, but
// counts in the mean: use the options below to leave it out.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                     const Tensor& weight = Tensor());

struct ClassLossOptions {
  Tensor class_weight = {};               // float32 [classes]: the loss of a class is multiplied by it
  double label_smoothing = 0;             // this share of each target is spread evenly over all classes
  std::int32_t ignore_index = -100;       // such a target has loss and gradient 0, and does not count
  Reduction reduction = Reduction::mean;  // means divide by the sum of the class weights of the targets that
                                          // count; 0 when none counts. Soft targets: by the count of rows
  Tensor weight = {};                     // per row; does not change the divisor
};
// target: int32 [...] as above, or soft: float32 [..., classes], probabilities.
// Label smoothing: Szegedy et al., Rethinking the Inception Architecture for Computer Vision, 2016.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const ClassLossOptions& options);
// The same loss of log probabilities: cross_entropy(x, ...) = nll_loss(log_softmax(x), ...).
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const ClassLossOptions& options = {});

// target (log target - prediction) per element, 0 where target is 0. prediction: log probabilities, target:
// probabilities, or log probabilities. The divergence of a batch is Reduction::batch_mean.
// Kullback, Leibler, On Information and Sufficiency, 1951.
Tensor kl_divergence(const Tensor& log_prediction, const Tensor& target, bool log_target = false,
                     Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// ---- yes or no: one loss per element; targets in [0, 1] ----

// -target log p - (1 - target) log(1 - p), where the logarithm of 0 is -100.
Tensor binary_cross_entropy(const Tensor& probability, const Tensor& target,
                            Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());
// The same of p = sigmoid(logits), without its overflow. positive_weight: multiplies the first term;
// broadcasts to the logits.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        Reduction reduction = Reduction::mean,
                                        const Tensor& weight = Tensor(),
                                        const Tensor& positive_weight = Tensor());

struct FocalOptions {
  double gamma = 2;
  double alpha = 0.25;  // weight of positive targets; negative ones have 1 - alpha. Below 0: no weights
  Reduction reduction = Reduction::mean;  // torchvision: none
  Tensor weight = {};
};
// (1 - q)^gamma times binary_cross_entropy_with_logits, where q is the probability of the target.
// Lin, Goyal, Girshick, He, Dollar, Focal Loss for Dense Object Detection, 2017. As torchvision's
// sigmoid_focal_loss.
Tensor focal_loss(const Tensor& logits, const Tensor& target, const FocalOptions& options = {});

struct DiceOptions {
  double smooth = 1;     // added above and below the line
  bool squares = false;  // squares in the denominator, as in the paper
  Reduction reduction = Reduction::mean;
};
// Per sample: 1 - (2 sum p t + smooth) / (sum p + sum t + smooth). probability, target: [batch, ...].
// Milletari, Navab, Ahmadi, V-Net, 2016. PyTorch has none.
Tensor dice_loss(const Tensor& probability, const Tensor& target, const DiceOptions& options = {});

// ---- margins; labels are 1 or -1 ----

// max(0, 1 - label score) per element. PyTorch has none.
Tensor hinge_loss(const Tensor& score, const Tensor& label, Reduction reduction = Reduction::mean,
                  const Tensor& weight = Tensor());
// distance where label is 1, else max(0, margin - distance); per element.
Tensor hinge_embedding_loss(const Tensor& distance, const Tensor& label, double margin = 1,
                            Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());
// max(0, margin - label (first - second)) per element.
Tensor margin_ranking_loss(const Tensor& first, const Tensor& second, const Tensor& label, double margin = 0,
                           Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// log(1 + exp(-label score)) per element.
Tensor soft_margin_loss(const Tensor& score, const Tensor& label, Reduction reduction = Reduction::mean,
                        const Tensor& weight = Tensor());

// ---- margins between classes: scores [..., classes], one loss per row ----

// Sum over the other classes of max(0, margin - score of the target + score)^p / classes. target: int32
// [...]. p: 1 or 2.
Tensor multi_margin_loss(const Tensor& scores, const Tensor& target, double margin = 1, double p = 1,
                         Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());
// Sum over pairs of a target and a class that is none of max(0, 1 - score of the target + score) / classes.
// target: int32 [..., classes], classes up to the first negative number.
Tensor multilabel_margin_loss(const Tensor& scores, const Tensor& target,
                              Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());
// The mean of binary_cross_entropy_with_logits over the classes. target: float32 [..., classes], 0 or 1.
Tensor multilabel_soft_margin_loss(const Tensor& scores, const Tensor& target,
                                   Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// ---- distances: operands [..., features], one loss per row ----

// |a - b + epsilon|_p over the last axis, as PyTorch's. p >= 1.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double epsilon = 1e-6);

struct TripletOptions {
  double margin = 1;
  double p = 2;
  double epsilon = 1e-6;
  bool swap = false;  // the negative's distance is the smaller of those to the anchor and to the positive
  Reduction reduction = Reduction::mean;
  Tensor weight = {};
};
// max(0, distance(anchor, positive) - distance(anchor, negative) + margin).
// Schroff, Kalenichenko, Philbin, FaceNet, 2015; swap: Balntas, Riba, Ponsa, Mikolajczyk, Learning Local
// Feature Descriptors with Triplets and Shallow Convolutional Neural Networks, 2016.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options = {});

// cosine(a, b) = a b / sqrt((a a + 1e-12) (b b + 1e-12)) over the last axis.
Tensor cosine_similarity(const Tensor& a, const Tensor& b);
// 1 - cosine where label is 1, else max(0, cosine - margin). label: [...].
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& label, double margin = 0,
                             Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

// (same d^2 + (1 - same) max(0, margin - d)^2) / 2, where d is pairwise_distance(a, b). same: [...], 1 for
// pairs that belong together, else 0. Hadsell, Chopra, LeCun, Dimensionality Reduction by Learning an
// Invariant Mapping, 2006. PyTorch has none.
Tensor contrastive_loss(const Tensor& a, const Tensor& b, const Tensor& same, double margin = 1,
                        Reduction reduction = Reduction::mean, const Tensor& weight = Tensor());

}  // namespace imprint::nn
