#include "compute/training/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "compute/base/text.h"
#include "compute/tensor/composites/images.h"

namespace imprint::training {

Tensor accuracy(const Tensor& logits, const Tensor& target) {
  const Tensor label = target.ok() && dtype_is_integer(target.dtype()) ? cast(target, DType::int32) : target;
  return cast(equal(argmax(logits, -1), label), DType::float32);
}

Tensor top_k_accuracy(const Tensor& logits, const Tensor& target, std::int64_t k) {
  const Tensor own = gather(logits, -1, unsqueeze(target, -1));
  const Tensor larger = sum(cast(logits > own, DType::int32), {-1});
  return cast(larger < static_cast<int>(k), DType::float32);
}

Tensor masked_mean(const Tensor& values, const Tensor& counts) {
  const Tensor counting = where(counts, values, 0.0f);
  Axes axes;
  for (int axis = 1; axis < counting.rank(); ++axis) axes.push_back(axis);
  if (axes.empty()) return counting;
  return sum(counting, axes) / clamp_min(sum(cast(counts, DType::float32), axes), 1);
}

Tensor peak_signal_to_noise(const Tensor& found, const Tensor& expected, double range) {
  const Tensor squares = square(found - expected);
  Axes axes;
  for (int axis = 1; axis < squares.rank(); ++axis) axes.push_back(axis);
  const Tensor error = axes.empty() ? squares : mean(squares, axes);
  return Tensor(-10 / std::numbers::ln10) * log(clamp_min(error * Tensor(1 / (range * range)), 1e-10));
}

Tensor structural_similarity(const Tensor& found, const Tensor& expected, double range) {
  constexpr int kSide = 11;
  if (found.ok() && expected.ok() &&
      (found.rank() != 4 || found.shape() != expected.shape() || found.extent(2) < kSide ||
       found.extent(3) < kSide))
    return Tensor(
        make_error(ErrorCode::shape_mismatch,
                   text("structural_similarity: found ", found.shape().text(), " and ",
                        expected.shape().text(), ", expected equal [batch, channels, height, width] of ",
                        kSide, " x ", kSide, " pixels at least")));
  if (!found.ok() || !expected.ok()) return found.ok() ? expected : found;
  std::vector<float> line(kSide);
  for (int i = 0; i < kSide; ++i)
    line[static_cast<std::size_t>(i)] = std::exp(-static_cast<float>((i - 5) * (i - 5)) / 4.5f);
  const float total = std::accumulate(line.begin(), line.end(), 0.0f);
  for (float& weight : line) weight /= total;
  const std::int64_t batch = found.extent(0), channels = found.extent(1);
  const Tensor down = Tensor::from(line, {1, 1, kSide, 1}), across = Tensor::from(line, {1, 1, 1, kSide});
  const auto local_mean = [&](const Tensor& x) {
    const Tensor pictures = reshape(x, {batch * channels, 1, x.extent(2), x.extent(3)});
    return convolution(convolution(pictures, down, Tensor()), across, Tensor());
  };
  const Tensor a = local_mean(found), b = local_mean(expected);
  const Tensor aa = local_mean(square(found)) - square(a), bb = local_mean(square(expected)) - square(b),
               ab = local_mean(found * expected) - a * b;
  const Tensor c1(0.0001 * range * range), c2(0.0009 * range * range);
  const Tensor similar = (2 * a * b + c1) * (2 * ab + c2) / ((square(a) + square(b) + c1) * (aa + bb + c2));
  return mean(reshape(similar, {batch, channels * similar.extent(2) * similar.extent(3)}), {1});
}

double perplexity(double mean_loss) { return std::exp(mean_loss); }

void Confusion::add(std::span<const std::int32_t> targets, std::span<const std::int32_t> answers) {
  for (std::size_t i = 0; i < std::min(targets.size(), answers.size()); ++i) {
    const std::int64_t target = targets[i], answer = answers[i];
    if (target < 0 || target >= classes_ || answer < 0 || answer >= classes_) continue;
    ++counts_[static_cast<std::size_t>(target * classes_ + answer)];
  }
}

std::int64_t Confusion::count(std::int64_t target, std::int64_t answer) const {
  return counts_[static_cast<std::size_t>(target * classes_ + answer)];
}

namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double Confusion::accuracy() const {
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < classes_; ++i) right += count(i, i);
  return ratio(right, std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}));
}

double Confusion::precision(std::int64_t of) const {
  std::int64_t answered = 0;
  for (std::int64_t i = 0; i < classes_; ++i) answered += count(i, of);
  return ratio(count(of, of), answered);
}

double Confusion::recall(std::int64_t of) const {
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < classes_; ++i) all += count(of, i);
  return ratio(count(of, of), all);
}

double Confusion::f_score(std::int64_t of, double beta) const {
  const double p = precision(of), r = recall(of), divisor = beta * beta * p + r;
  return divisor == 0 ? 0 : (1 + beta * beta) * p * r / divisor;
}

double Confusion::mean_f_score(double beta) const {
  double total = 0;
  for (std::int64_t i = 0; i < classes_; ++i) total += f_score(i, beta);
  return classes_ == 0 ? 0 : total / static_cast<double>(classes_);
}

// By the sum of the positives' ranks, where equal scores share their mean rank.
double area_under_curve(std::span<const float> scores, std::span<const std::int32_t> labels) {
  const std::size_t count = std::min(scores.size(), labels.size());
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  double ranks = 0, positives = 0;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin;
    while (end < count && scores[order[end]] == scores[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin + end) + 1) / 2;
    for (; begin < end; ++begin)
      if (labels[order[begin]] != 0) ranks += rank, ++positives;
  }
  const double negatives = static_cast<double>(count) - positives;
  if (positives == 0 || negatives == 0) return 0.5;
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

std::int64_t edit_distance(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  std::vector<std::int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::int64_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t corner = row[0];
    row[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::int64_t replaced = corner + (a[i] == b[k] ? 0 : 1);
      corner = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

namespace {

using Tokens = std::vector<std::int32_t>;

template <class Split>
double error_rate(std::span<const std::string> found, std::span<const std::string> expected, Split split) {
  std::int64_t errors = 0, length = 0;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const Tokens a = split(found[i]), b = split(expected[i]);
    errors += edit_distance(a, b);
    length += static_cast<std::int64_t>(b.size());
  }
  return ratio(errors, length);
}

}  // namespace

double character_error_rate(std::span<const std::string> found, std::span<const std::string> expected) {
  return error_rate(found, expected, [](const std::string& text) {
    Tokens tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  });
}

double word_error_rate(std::span<const std::string> found, std::span<const std::string> expected) {
  std::map<std::string, std::int32_t, std::less<>> numbers;
  return error_rate(found, expected, [&](const std::string& text) {
    Tokens tokens;
    std::string word;
    for (const char c : text + " ") {
      if (c != ' ') {
        word += c;
        continue;
      }
      if (!word.empty())
        tokens.push_back(numbers.emplace(word, static_cast<std::int32_t>(numbers.size())).first->second);
      word.clear();
    }
    return tokens;
  });
}

}  // namespace imprint::training
