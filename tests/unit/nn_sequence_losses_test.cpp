// CTC and RNN-T against the sum over all alignments, one by one; margins between classes.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "compute/nn/losses/losses_sequences.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using test::waves;
using Ints = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

// Normalised logarithms of probabilities in rows of `classes`.
Doubles log_rows(std::size_t count, std::size_t classes, int seed) {
  Doubles values = waves(static_cast<std::int64_t>(count * classes), 2, seed);
  for (std::size_t row = 0; row < count; ++row) {
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += std::exp(values[row * classes + c]);
    for (std::size_t c = 0; c < classes; ++c) values[row * classes + c] -= std::log(total);
  }
  return values;
}

Ints collapsed(const Ints& path, std::int32_t blank) {
  Ints out;
  for (std::size_t i = 0; i < path.size(); ++i)
    if (path[i] != blank && (i == 0 || path[i] != path[i - 1])) out.push_back(path[i]);
  return out;
}

// Sums the probabilities of all paths whose labels are the target.
double ctc_by_paths(const double* log_rows, std::size_t steps, std::size_t classes, const Ints& target,
                    std::int32_t blank) {
  double total = 0;
  Ints path(steps, 0);
  for (;;) {
    if (collapsed(path, blank) == target) {
      double sum = 0;
      for (std::size_t t = 0; t < steps; ++t)
        sum += log_rows[t * classes + static_cast<std::size_t>(path[t])];
      total += std::exp(sum);
    }
    std::size_t i = 0;
    while (i < steps && ++path[i] == static_cast<std::int32_t>(classes)) path[i++] = 0;
    if (i == steps) return -std::log(total);
  }
}

TEST(Ctc, SumsOverAllAlignments) {
  const std::size_t batch = 4, steps = 5, classes = 3;
  const std::int32_t blank = 1;
  const Doubles values = log_rows(batch * steps, classes, 1);
  const std::vector<Ints> targets{{0, 2}, {2, 2}, {}, {0}};
  const std::vector<std::int32_t> padded{0, 2, 2, 2, 0, 0, 0, 2}, step_lengths{5, 4, 3, 5},
      lengths{2, 2, 0, 1};
  const Tensor x = input("x", {4, 5, 3});
  const Tensor losses =
      ctc_loss(x, Tensor::from_ints(padded, {4, 2}), Tensor::from_ints(step_lengths, {4}),
               Tensor::from_ints(lengths, {4}), {.blank = blank, .reduction = Reduction::none});
  ASSERT_TRUE(losses.ok()) << losses.error().message;
  const Doubles found = reference::evaluate(losses, {{"x", values}});
  for (std::size_t b = 0; b < batch; ++b)
    EXPECT_NEAR(found[b],
                ctc_by_paths(values.data() + b * steps * classes, static_cast<std::size_t>(step_lengths[b]),
                             classes, targets[b], blank),
                1e-9)
        << b;
  test::expect_sound(losses, {.inputs = {x}, .leaves = {x}, .bindings = {{"x", values}}});
}

TEST(Ctc, ImpossibleTargetsAreInfiniteOrZero) {
  const Tensor x = input("x", {2, 2, 3});  // "1 1" needs three steps
  const Doubles values = log_rows(4, 3, 2);
  const Tensor target = Tensor::from_ints(Ints{1, 1, 2, 1}, {2, 2}), two = full({2}, 2, DType::int32);
  const Doubles losses =
      reference::evaluate(ctc_loss(x, target, two, two, {.reduction = Reduction::none}), {{"x", values}});
  EXPECT_TRUE(std::isinf(losses[0]));
  EXPECT_NEAR(losses[1], -values[8] - values[10], 1e-9);
  const Tensor zeroed = ctc_loss(x, target, two, two, {.zero_infinity = true});
  EXPECT_NEAR(reference::evaluate(zeroed, {{"x", values}})[0], losses[1] / 4, 1e-9);
  const auto slope = gradients(zeroed, std::vector<Tensor>{x});
  ASSERT_TRUE(slope);
  const Doubles g = reference::evaluate((*slope)[0], {{"x", values}});
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(g[i], 0) << i;
  EXPECT_EQ(g[8], -0.25);
  EXPECT_NE(ctc_loss(x, x, two, two).error().message.find("ctc_loss: found x [2, 2, 3]"), std::string::npos);
}

// Sums over the ways through the lattice of steps and labels.
double rnnt_by_paths(const std::function<double(std::size_t, std::size_t, std::int32_t)>& log_of,
                     std::size_t steps, const Ints& target, std::int32_t blank) {
  std::function<double(std::size_t, std::size_t)> rest = [&](std::size_t t, std::size_t u) -> double {
    double total = 0;
    if (t + 1 < steps) total += std::exp(log_of(t, u, blank)) * rest(t + 1, u);
    if (t + 1 == steps && u == target.size()) total += std::exp(log_of(t, u, blank));
    if (u < target.size()) total += std::exp(log_of(t, u, target[u])) * rest(t, u + 1);
    return total;
  };
  return -std::log(rest(0, 0));
}

TEST(Rnnt, SumsOverAllPaths) {
  const std::size_t steps = 4, states = 3, classes = 3;
  const Doubles values = log_rows(3 * steps * states, classes, 3);
  const std::vector<Ints> targets{{1, 2}, {2}, {}};
  const std::vector<std::int32_t> step_lengths{4, 3, 2}, lengths{2, 1, 0};
  const Tensor x = input("x", {3, 4, 3, 3});
  const Tensor losses =
      rnnt_loss(x, Tensor::from_ints(Ints{1, 2, 2, 0, 0, 0}, {3, 2}), Tensor::from_ints(step_lengths, {3}),
                Tensor::from_ints(lengths, {3}), {.reduction = Reduction::none});
  ASSERT_TRUE(losses.ok()) << losses.error().message;
  const Doubles found = reference::evaluate(losses, {{"x", values}});
  for (std::size_t b = 0; b < 3; ++b) {
    const auto log_of = [&](std::size_t t, std::size_t u, std::int32_t c) {
      return values[((b * steps + t) * states + u) * classes + static_cast<std::size_t>(c)];
    };
    EXPECT_NEAR(found[b], rnnt_by_paths(log_of, static_cast<std::size_t>(step_lengths[b]), targets[b], 0),
                1e-9)
        << b;
  }
  test::expect_sound(losses, {.inputs = {x}, .leaves = {x}, .bindings = {{"x", values}}});
}

}  // namespace
}  // namespace imprint::nn
