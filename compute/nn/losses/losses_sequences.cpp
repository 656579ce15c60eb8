#include "compute/nn/losses/losses_sequences.h"

#include <array>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

// The logarithm of nothing. Finite: differences of infinities would be NaN.
constexpr double kImpossible = -1e30;

std::optional<Tensor> refuse_sequences(std::string_view loss, const Tensor& log_probabilities, int rank,
                                       const Tensor& target, const Tensor& step_lengths,
                                       const Tensor& target_lengths) {
  for (const Tensor& operand : {log_probabilities, target, step_lengths, target_lengths})
    if (!operand.ok()) return operand;
  const std::int64_t batch = log_probabilities.extent(0);
  const auto is_ints = [](const Tensor& t, const Shape& shape) {
    return t.dtype() == DType::int32 && t.shape() == shape;
  };
  const bool fits = log_probabilities.dtype() == DType::float32 && log_probabilities.rank() == rank &&
                    target.rank() == 2 && is_ints(target, {batch, target.extent(1)}) &&
                    (rank == 3 || log_probabilities.extent(2) == target.extent(1) + 1) &&
                    log_probabilities.extent(1) >= 1 && is_ints(step_lengths, {batch}) &&
                    is_ints(target_lengths, {batch});
  if (fits) return std::nullopt;
  return failure(
      ErrorCode::shape_mismatch, loss,
      text("found ", describe(log_probabilities), ", target ", describe(target), ", step lengths ",
           describe(step_lengths), " and target lengths ", describe(target_lengths), ", expected float32 ",
           rank == 3 ? "[batch, steps, classes]" : "[batch, steps, length + 1, classes]",
           ", int32 [batch, length], [batch] and [batch]"));
}

// log(exp(a) + exp(b)) of finite numbers.
Tensor log_sum(const Tensor& a, const Tensor& b) {
  const Tensor larger = maximum(a, b), smaller = minimum(a, b);
  return larger + log1p(exp(smaller - larger));
}

// The states of a row move one to the right.
Tensor moved_right(const Tensor& states, std::int64_t distance) {
  const std::array<std::pair<std::int64_t, std::int64_t>, 2> amounts{{{0, 0}, {distance, 0}}};
  return pad(narrow(states, 1, 0, states.extent(1) - distance), amounts, kImpossible);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& step_lengths,
                const Tensor& target_lengths, const CtcOptions& options) {
  if (std::optional<Tensor> refused =
          refuse_sequences("ctc_loss", log_probabilities, 3, target, step_lengths, target_lengths))
    return *refused;
  const std::int64_t batch = log_probabilities.extent(0), steps = log_probabilities.extent(1);
  const std::int64_t length = target.extent(1), states = 2 * length + 1;
  // Blank, first label, blank, second label, ..., blank.
  const Tensor blanks = full({batch, length, 1}, options.blank, DType::int32);
  const Tensor pairs = reshape(concat({blanks, unsqueeze(target, 2)}, 2), {batch, 2 * length});
  const Tensor labels = concat({pairs, full({batch, 1}, options.blank, DType::int32)}, 1);
  const Tensor emitted = gather(log_probabilities, 2, expand(unsqueeze(labels, 1), {batch, steps, states}));
  // A label may follow the label before it without a blank, if they differ.
  const Tensor place = expand(unsqueeze(arange(states), 0), {batch, states});
  Tensor skips = logical_and(place >= 2, not_equal(labels, options.blank));
  if (states > 2) {
    const std::array<std::pair<std::int64_t, std::int64_t>, 2> two{{{0, 0}, {2, 0}}};
    skips = logical_and(skips, not_equal(labels, pad(narrow(labels, 1, 0, states - 2), two, -1)));
  }
  const auto at = [&](std::int64_t step) { return squeeze(narrow(emitted, 1, step, 1), 1); };
  Tensor alpha = where(place < 2, at(0), Tensor(kImpossible));
  for (std::int64_t step = 1; step < steps; ++step) {
    Tensor reached = alpha;
    if (states > 1) reached = log_sum(reached, moved_right(alpha, 1));
    if (states > 2) reached = log_sum(reached, where(skips, moved_right(alpha, 2), Tensor(kImpossible)));
    const Tensor runs = unsqueeze(step_lengths, 1) > static_cast<int>(step);
    alpha = where(runs, reached + at(step), alpha);
  }
  const Tensor last = unsqueeze(2 * target_lengths, 1);
  const auto ending = [&](const Tensor& state) { return sum(where(equal(place, state), alpha, 0.0f), {1}); };
  const Tensor by_label = where(target_lengths > 0, ending(last - 1), Tensor(kImpossible));
  const Tensor likelihood = log_sum(ending(last), by_label);
  const Tensor is_possible = likelihood > Tensor(0.1 * kImpossible);
  const double otherwise = options.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  const Tensor losses = where(is_possible, -likelihood, Tensor(otherwise));
  if (options.reduction != Reduction::mean) return reduce_loss(losses, options.reduction);
  return mean(losses / cast(maximum(target_lengths, 1), DType::float32));
}

// States of one diagonal step + label = d are computed together: T + U steps instead of T U.
Tensor rnnt_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& step_lengths,
                 const Tensor& target_lengths, const RnntOptions& options) {
  if (std::optional<Tensor> refused =
          refuse_sequences("rnnt_loss", log_probabilities, 4, target, step_lengths, target_lengths))
    return *refused;
  const std::int64_t batch = log_probabilities.extent(0), steps = log_probabilities.extent(1);
  const std::int64_t states = target.extent(1) + 1, diagonals = steps + states - 1;
  // [batch, steps, states] of the blank, and of each state's next label; after the last none.
  const Tensor blank = squeeze(narrow(log_probabilities, 3, options.blank, 1), 3);
  const Tensor next = concat({target, full({batch, 1}, -1, DType::int32)}, 1);
  const Tensor chosen =
      gather(log_probabilities, 3, expand(reshape(next, {batch, 1, states, 1}), {batch, steps, states, 1}));
  const Tensor label = where(expand(reshape(next >= 0, {batch, 1, states}), {batch, steps, states}),
                             squeeze(chosen, 3), Tensor(kImpossible));
  // Diagonal d of state u is step d - u.
  const Tensor step_of = unsqueeze(arange(diagonals), 1) - arange(states);
  const Tensor is_inside = logical_and(step_of >= 0, step_of < static_cast<int>(steps));
  const Tensor places = expand(unsqueeze(step_of, 0), {batch, diagonals, states});
  const auto skewed = [&](const Tensor& by_step) {
    return where(is_inside, gather(by_step, 1, places), Tensor(kImpossible));
  };
  const Tensor blanks = skewed(blank), labels = skewed(label);
  const auto row = [](const Tensor& t, std::int64_t d) { return squeeze(narrow(t, 1, d, 1), 1); };
  Tensor alpha =
      where(equal(expand(unsqueeze(arange(states), 0), {batch, states}), 0), 0.0f, Tensor(kImpossible));
  std::vector<Tensor> alphas{alpha};
  for (std::int64_t d = 1; d < diagonals; ++d) {
    const Tensor by_blank = alpha + row(blanks, d - 1);
    const Tensor by_label = moved_right(alpha + row(labels, d - 1), states > 1 ? 1 : 0);
    // Numbers below kImpossible would run away.
    alpha = clamp_min(states > 1 ? log_sum(by_blank, by_label) : by_blank, 2 * kImpossible);
    alphas.push_back(alpha);
  }
  const Tensor ends = logical_and(
      equal(arange(states), reshape(target_lengths, {batch, 1, 1})),
      equal(unsqueeze(arange(diagonals), 1), reshape(step_lengths + target_lengths - 1, {batch, 1, 1})));
  const Tensor likelihood = sum(where(ends, stack(alphas, 1) + blanks, 0.0f), {1, 2});
  return reduce_loss(-likelihood, options.reduction);
}

}  // namespace imprint::nn
