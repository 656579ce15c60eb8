#pragma once
// Measures of a model's answers: some as tensors, one number per sample, for Computed::metrics; others on the
// host, over a whole data set.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::training {

// ---- one float32 per row ----
// 1 where the largest logit is the target's. logits: [..., classes]; target: int32 [...], or of 8 or 16
// bits.
Tensor accuracy(const Tensor& logits, const Tensor& target);
// 1 where fewer than k logits are larger than the target's.
Tensor top_k_accuracy(const Tensor& logits, const Tensor& target, std::int64_t k);
// The mean of the values that count: [batch, ...] -> [batch]; of a sample in which none counts, 0. For padded
// sequences: masked_mean(accuracy(y, target), not_equal(target, padding)). counts: bool, of values' shape.
Tensor masked_mean(const Tensor& values, const Tensor& counts);
// 10 log10(range^2 / mean square error) per sample: [batch, ...] -> [batch], in decibels; 100 at most.
Tensor peak_signal_to_noise(const Tensor& found, const Tensor& expected, double range = 1);

// The mean similarity of structure of windows of 11 x 11 pixels, weighted by a normal distribution of
// deviation 1.5: [batch, channels, height, width] -> [batch]. Pictures of 11 x 11 pixels at least. range: of
// the pixels. Wang, Bovik, Sheikh, Simoncelli, Image Quality Assessment: From Error Visibility to Structural
// Similarity, 2004.
Tensor structural_similarity(const Tensor& found, const Tensor& expected, double range = 1);

// ---- on the host ----
// exp of a mean cross-entropy: as many equally likely choices.
double perplexity(double mean_loss);

// Counts of answers by class: counts[target * classes + answer].
class Confusion {
 public:
  explicit Confusion(std::int64_t classes)
      : classes_(classes), counts_(static_cast<std::size_t>(classes * classes)) {}
  // Pairs with a class outside are left out.
  void add(std::span<const std::int32_t> targets, std::span<const std::int32_t> answers);

  std::int64_t count(std::int64_t target, std::int64_t answer) const;
  double accuracy() const;
  // Right answers of one class, divided by all answers of it, or by all samples of it. 0 / 0 is 0.
  double precision(std::int64_t of) const;
  double recall(std::int64_t of) const;
  // (1 + beta^2) precision recall / (beta^2 precision + recall). van Rijsbergen, Information Retrieval, 1979.
  double f_score(std::int64_t of, double beta = 1) const;
  double mean_f_score(double beta = 1) const;  // over all classes

 private:
  std::int64_t classes_;
  std::vector<std::int64_t> counts_;
};

// Probability that a positive sample has a higher score than a negative one; ties count half. 0.5 when one
// kind is missing. Hanley, McNeil, The Meaning and Use of the Area under a Receiver Operating Characteristic
// Curve, 1982.
double area_under_curve(std::span<const float> scores, std::span<const std::int32_t> labels);

// Insertions, deletions and substitutions that turn one sequence into the other. Levenshtein, 1966.
std::int64_t edit_distance(std::span<const std::int32_t> a, std::span<const std::int32_t> b);
// Edit distances by the length of the expected texts: of characters (bytes), or of words between spaces.
double character_error_rate(std::span<const std::string> found, std::span<const std::string> expected);
double word_error_rate(std::span<const std::string> found, std::span<const std::string> expected);

}  // namespace imprint::training
