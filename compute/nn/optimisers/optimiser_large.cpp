// Rules for large models and large batches, and optimisers side by side.

#include <algorithm>
#include <cmath>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser_step.h"
#include "compute/nn/optimisers/step_kernel.h"

namespace imprint::nn {
namespace {

Tensor blend(const Tensor& old, const Tensor& next, double beta) {
  return Tensor(beta) * old + Tensor(1 - beta) * next;
}

Tensor square_sum(const Tensor& x, const Axes& axes) {
  return axes.empty() ? square(x) : sum(square(x), axes, true);
}

double elements_of(const Tensor& x, const Axes& axes) {
  double count = 1;
  for (const int axis : axes) count *= static_cast<double>(x.extent(axis));
  return count;
}

Tensor root_mean_square(const Tensor& x, const Axes& axes) {
  return sqrt(square_sum(x, axes) * Tensor(1 / std::max(1.0, elements_of(x, axes))));
}

template <class Rules>
std::int64_t most_numbers(const Rules& rules) {
  std::int64_t most = 1;
  for (const auto& rule : rules) most = std::max(most, rule.value.shape().element_count());
  return most;
}

}  // namespace

Lion::Lion(const Parameters& parameters, const LionOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .decoupled = true,
                                 .moments = {{.name = "first_moment"}}}),
      options_(options) {}

Tensor Lion::next(Rule& rule) const {
  const Tensor direction = sign(blend(rule.moments[0], rule.gradient, options_.beta1));
  rule.moments[0] = blend(rule.moments[0], rule.gradient, options_.beta2);
  return rule.value - rule.rate * direction;
}

Lamb::Lamb(const Parameters& parameters, const LambOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .moments = {{.name = "first_moment"}, {.name = "second_moment"}},
                                 .counts = true}),
      options_(options) {}

void Lamb::share(Shared& shared) const {
  shared.factors = {recip(bias_correction(shared.t, options_.beta1)),
                    rsqrt(bias_correction(shared.t, options_.beta2))};
}

Tensor Lamb::next(Rule& rule) const {
  Tensor &mean = rule.moments[0], &square_mean = rule.moments[1];
  mean = blend(mean, rule.gradient, options_.beta1);
  square_mean = blend(square_mean, square(rule.gradient), options_.beta2);
  Tensor direction =
      mean * rule.factors[0] / (sqrt(square_mean) * rule.factors[1] + Tensor(options_.epsilon));
  if (options_.weight_decay != 0) direction = direction + Tensor(options_.weight_decay) * rule.value;
  const Tensor size = square_sum(rule.value, rule.axes), step = square_sum(direction, rule.axes);
  const Tensor usable = logical_and(size > 0.0f, step > 0.0f);
  const Tensor trust = where(usable, sqrt(size / where(usable, step, 1.0f)), 1.0f);
  return rule.value - rule.rate * trust * direction;
}

std::vector<Tensor> Lamb::next_of_all(std::span<Rule> rules) const {
  if (groups_ > 0 || !suits_step_kernel(parameters_)) return one_by_one(rules);
  const StepKernel kernel{.name = "step_lamb",
                          .moments = {"first_moment", "second_moment"},
                          .includes = {"expm1"},
                          .numbers = {{"kLog1", std::log(options_.beta1)},
                                      {"kLog2", std::log(options_.beta2)},
                                      {"kBeta1", options_.beta1},
                                      {"kFresh1", 1 - options_.beta1},
                                      {"kBeta2", options_.beta2},
                                      {"kFresh2", 1 - options_.beta2},
                                      {"kEpsilon", options_.epsilon},
                                      {"kDecay", options_.weight_decay}}};
  return in_one_kernel(kernel, rules, std::make_shared<Lamb>(*this));
}

Adan::Adan(const Parameters& parameters, const AdanOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .moments = {{.name = "first_moment"},
                                             {.name = "difference"},
                                             {.name = "second_moment"},
                                             {.name = "negative_gradient"}},
                                 .counts = true}),
      options_(options) {}

void Adan::share(Shared& shared) const {
  const Tensor decay = 1.0f + shared.rate * Tensor(options_.weight_decay);
  shared.factors = {recip(bias_correction(shared.t, options_.beta1)),
                    Tensor(options_.beta2) / bias_correction(shared.t, options_.beta2),
                    rsqrt(bias_correction(shared.t, options_.beta3)), recip(decay),
                    cast(shared.t > 1.0f, DType::float32)};
}

Tensor Adan::next(Rule& rule) const {
  Tensor &mean = rule.moments[0], &difference = rule.moments[1], &square_mean = rule.moments[2],
         &last = rule.moments[3];
  const Tensor change = where(rule.factors[4] > 0.0f, rule.gradient + last, 0.0f);
  mean = blend(mean, rule.gradient, options_.beta1);
  difference = blend(difference, change, options_.beta2);
  square_mean = blend(square_mean, square(rule.gradient + Tensor(options_.beta2) * change), options_.beta3);
  last = -rule.gradient;  // negated, so that the kernel of the moments writes it too
  const Tensor direction = (mean * rule.factors[0] + difference * rule.factors[1]) /
                           (sqrt(square_mean) * rule.factors[2] + Tensor(options_.epsilon));
  return (rule.value - rule.rate * direction) * rule.factors[3];
}

namespace {

// The axes of a network's own parameter that are factored: the last two, if there are two.
bool is_factored(int rank, std::int64_t groups) { return rank - (groups > 0 ? 1 : 0) >= 2; }

Shape row_shape(const Parameter& parameter, std::int64_t groups) {
  Shape shape = parameter.variable.shape();
  if (is_factored(shape.rank(), groups)) shape[shape.rank() - 1] = 1;
  return shape;
}
Shape column_shape(const Parameter& parameter, std::int64_t groups) {
  Shape shape = parameter.variable.shape();
  if (!is_factored(shape.rank(), groups)) return Shape{groups > 0 ? groups : 1};  // not used
  shape[shape.rank() - 2] = 1;
  return shape;
}

}  // namespace

Adafactor::Adafactor(const Parameters& parameters, const AdafactorOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .decoupled = true,
                                 .moments = {{.name = "rows", .shape = row_shape},
                                             {.name = "columns", .shape = column_shape}},
                                 .counts = true}),
      options_(options) {}

void Adafactor::share(Shared& shared) const {
  shared.factors = {exp(log(shared.t) * Tensor(-options_.decay)), minimum(shared.rate, rsqrt(shared.t))};
}

Tensor Adafactor::next(Rule& rule) const {
  const Tensor fresh = rule.factors[0];
  const Tensor squares = square(rule.gradient);
  Tensor &rows = rule.moments[0], &columns = rule.moments[1];
  Tensor estimate;
  if (is_factored(rule.value.rank(), groups_)) {
    rows = lerp(rows, mean(squares, {-1}, true), fresh);
    columns = lerp(columns, mean(squares, {-2}, true), fresh);
    estimate = rows * columns / clamp_min(mean(rows, {-2}, true), options_.epsilon1);
  } else {
    estimate = rows = lerp(rows, squares, fresh);
  }
  const Tensor change = rule.gradient * rsqrt(clamp_min(estimate, options_.epsilon1 * options_.epsilon1));
  const Tensor scale =
      clamp_min(root_mean_square(rule.value, rule.axes), options_.epsilon2) * rule.factors[1];
  const Tensor excess = clamp_min(root_mean_square(change, rule.axes) * Tensor(1 / options_.clip), 1);
  return rule.value - scale / excess * change;
}

std::vector<Tensor> Adafactor::next_of_all(std::span<Rule> rules) const {
  constexpr std::int64_t kMostShared = 3840;  // numbers in a workgroup's memory
  if (groups_ > 0 || !suits_step_kernel(parameters_)) return one_by_one(rules);
  std::vector<double> matrices, rows, columns;
  std::int64_t most_rows = 1, most_columns = 1, most_matrices = 1;
  for (const Rule& rule : rules) {
    const bool factored = is_factored(rule.value.rank(), 0);
    const std::int64_t own_rows = factored ? rule.value.extent(-2) : 0,
                       own_columns = factored ? rule.value.extent(-1) : 0,
                       count = rule.value.shape().element_count(),
                       own_matrices = factored ? count / (own_rows * own_columns) : 0;
    most_rows = std::max(most_rows, factored ? own_matrices * own_rows : count);
    most_columns = std::max(most_columns, own_matrices * own_columns);
    most_matrices = std::max(most_matrices, own_matrices);
    matrices.push_back(static_cast<double>(own_matrices));
    rows.push_back(static_cast<double>(own_rows));
    columns.push_back(static_cast<double>(own_columns));
  }
  if (most_numbers(rules) + most_rows + most_columns + most_matrices > kMostShared) return one_by_one(rules);
  const StepKernel kernel{.name = "step_adafactor",
                          .moments = {"rows_moment", "columns_moment"},
                          .numbers = {{"kPower", -options_.decay},
                                      {"kEpsilon1", options_.epsilon1},
                                      {"kEpsilon2", options_.epsilon2},
                                      {"kClip", 1 / options_.clip}},
                          .constants = {{"MOST", most_numbers(rules)},
                                        {"MOST_ROWS", most_rows},
                                        {"MOST_COLUMNS", most_columns},
                                        {"MOST_MATRICES", most_matrices}},
                          .tables = {{"matrices_of", matrices}, {"rows_of", rows}, {"columns_of", columns}}};
  return in_one_kernel(kernel, rules, std::make_shared<Adafactor>(*this));
}

Muon::Muon(const Parameters& parameters, const MuonOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .decoupled = true,
                                 .moments = {{.name = "momentum"}}}),
      options_(options) {}

Result<> Muon::validate() const {
  for (const Parameter& parameter : parameters_)
    if (!is_factored(parameter.variable.shape().rank(), groups_))
      return make_error(ErrorCode::invalid_argument,
                        text("muon: found ", parameter.name, " ", parameter.variable.shape().text(),
                             ", expected a matrix. Give vectors to another optimiser (CombinedOptimiser)."));
  return {};
}

Tensor Muon::next(Rule& rule) const {
  rule.moments[0] = blend(rule.moments[0], rule.gradient, options_.momentum);
  const Tensor direction =
      options_.nesterov ? blend(rule.gradient, rule.moments[0], 1 - options_.momentum) : rule.moments[0];
  const Shape shape = rule.value.shape();
  const int first = groups_ > 0 ? 1 : 0;
  Shape matrix = groups_ > 0 ? Shape{groups_} : Shape{};
  matrix.append(shape[first]);
  matrix.append(-1);
  Tensor x = reshape(direction, matrix);
  const bool tall = x.extent(-2) > x.extent(-1);
  if (tall) x = transpose(x);
  x = x / clamp_min(sqrt(sum(square(x), {-2, -1}, true)), options_.epsilon);
  for (int i = 0; i < options_.iterations; ++i) {
    const Tensor gram = matmul(x, transpose(x));
    x = Tensor(3.4445) * x + matmul(Tensor(-4.775) * gram + Tensor(2.0315) * matmul(gram, gram), x);
  }
  return rule.value - rule.rate * Tensor(scale_of(rule.parameter)) * reshape(tall ? transpose(x) : x, shape);
}

// The factor of the rate.
double Muon::scale_of(const Parameter& parameter) const {
  const Shape& shape = parameter.variable.shape();
  const int first = groups_ > 0 ? 1 : 0;
  const auto out = static_cast<double>(parameter.transposed ? shape[shape.rank() - 1] : shape[first]);
  const double in = static_cast<double>(shape.element_count()) /
                    static_cast<double>(std::max<std::int64_t>(groups_, 1)) / out;
  return options_.rate == MuonRate::original ? std::sqrt(std::max(1.0, out / in))
                                             : 0.2 * std::sqrt(std::max(out, in));
}

std::vector<Tensor> Muon::next_of_all(std::span<Rule> rules) const {
  constexpr double kMostProducts = 4096;  // of a matrix; more are faster in several workgroups
  if (groups_ > 0 || !suits_step_kernel(parameters_)) return one_by_one(rules);
  std::vector<double> rows, columns, scales;
  double most_rows = 1;
  bool is_small = true;
  for (const Rule& rule : rules) {
    rows.push_back(static_cast<double>(rule.value.extent(0)));
    columns.push_back(static_cast<double>(rule.value.shape().element_count()) / rows.back());
    scales.push_back(scale_of(rule.parameter));
    const double least = std::min(rows.back(), columns.back());
    is_small = is_small && least * rows.back() * columns.back() <= kMostProducts;
    most_rows = std::max(most_rows, least);
  }
  if (!is_small) return one_by_one(rules);
  const StepKernel kernel{.name = "step_muon",
                          .moments = {"momentum"},
                          .numbers = {{"kMomentum", options_.momentum},
                                      {"kFresh", 1 - options_.momentum},
                                      {"kEpsilon", options_.epsilon}},
                          .constants = {{"MOST", most_numbers(rules)},
                                        {"ROWS", static_cast<std::int64_t>(most_rows)},
                                        {"ITERATIONS", options_.iterations},
                                        {"NESTEROV", options_.nesterov ? 1 : 0}},
                          .tables = {{"rows_of", rows}, {"columns_of", columns}, {"scale_of", scales}}};
  return in_one_kernel(kernel, rules, std::make_shared<Muon>(*this));
}

namespace {

Parameters all_parameters(const std::vector<CombinedOptimiser::Part>& parts) {
  Parameters all;
  for (const CombinedOptimiser::Part& part : parts) all.add("", part.optimiser->parameters());
  return all;
}

}  // namespace

CombinedOptimiser::CombinedOptimiser(std::vector<Part> parts)
    : Optimiser(all_parameters(parts), 0), parts_(std::move(parts)) {
  for (std::size_t i = 0; i < parts_.size(); ++i) state_.add(text(i), parts_[i].optimiser->state());
}

Result<std::vector<Update>> CombinedOptimiser::step(std::span<const Tensor> gradients,
                                                    const Tensor& learning_rate, const Tensor& active) const {
  if (gradients.size() != parameters_.size())
    return make_error(ErrorCode::invalid_argument,
                      text("optimiser: found ", amount(gradients.size(), "gradient"), ", expected ",
                           parameters_.size(), ", one per parameter in order"));
  std::vector<Update> all;
  std::size_t first = 0;
  for (const Part& part : parts_) {
    const std::size_t count = part.optimiser->parameters().size();
    const Tensor rate = part.rate_factor == 1 ? learning_rate : learning_rate * Tensor(part.rate_factor);
    IMPRINT_ASSIGN(const std::vector<Update> updates,
                   part.optimiser->step(gradients.subspan(first, count), rate, active));
    all.insert(all.end(), updates.begin(), updates.end());
    first += count;
  }
  return all;
}

}  // namespace imprint::nn
