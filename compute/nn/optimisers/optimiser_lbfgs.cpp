#include <algorithm>

#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser_step.h"
#include "compute/nn/optimisers/step_kernel.h"

namespace imprint::nn {
namespace {

constexpr double kLeastCurvature = 1e-10;  // PyTorch's

Tensor dot(const Tensor& a, const Tensor& b) { return sum(a * b, {}, true); }  // [1]

Tensor flat(std::span<const Tensor> tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) rows.push_back(reshape(tensor, {-1}));
  return concat(rows, 0);
}

// The newest row comes first; the oldest leaves.
Tensor pushed(const Tensor& rows, const Tensor& row) {
  const std::int64_t count = rows.extent(0);
  if (count == 1) return reshape(row, rows.shape());
  Shape one = rows.shape();
  one[0] = 1;
  return concat({reshape(row, one), narrow(rows, 0, 0, count - 1)}, 0);
}

// Operands of a step (given: the learning rate); after them the value and the gradient of each parameter,
// then `active` if it is given. The outputs are the state, from the gradient to the step, then the values.
struct LbfgsIn {
  enum : std::size_t { given, gradient, direction, moves, changes, inverses, scale, rate, step, count };
};

std::vector<Tensor> every_other(std::span<const Tensor> pairs, std::size_t first) {
  std::vector<Tensor> found;
  for (std::size_t i = first; i < pairs.size(); i += 2) found.push_back(pairs[i]);
  return found;
}

// -H g by the two loops: Nocedal, Updating Quasi-Newton Matrices with Limited Storage, 1980. Unused rows of
// the history are 0 and change nothing.
Tensor direction_by(const Tensor& g, const Tensor& moves, const Tensor& changes, const Tensor& inverses,
                    const Tensor& scale) {
  const std::int64_t history = moves.extent(0);
  const auto row = [](const Tensor& rows, std::int64_t i) { return squeeze(narrow(rows, 0, i, 1), 0); };
  std::vector<Tensor> shares;
  Tensor direction = -g;
  for (std::int64_t i = 0; i < history; ++i) {
    shares.push_back(dot(row(moves, i), direction) * narrow(inverses, 0, i, 1));
    direction = direction - shares.back() * row(changes, i);
  }
  direction = direction * scale;
  for (std::int64_t i = history - 1; i >= 0; --i) {
    const Tensor share = dot(row(changes, i), direction) * narrow(inverses, 0, i, 1);
    direction = direction + (shares[static_cast<std::size_t>(i)] - share) * row(moves, i);
  }
  return direction;
}

std::vector<Tensor> step_by_operations(const LbfgsOptions& options, bool is_conditional,
                                       std::span<const Tensor> in) {
  const std::span<const Tensor> pairs =
      in.subspan(LbfgsIn::count, in.size() - LbfgsIn::count - (is_conditional ? 1 : 0));
  const Tensor g = flat(every_other(pairs, 1)), is_first = equal(in[LbfgsIn::step], 0);
  const Tensor change = g - in[LbfgsIn::gradient], move = in[LbfgsIn::direction] * in[LbfgsIn::rate];
  const Tensor curvature = dot(change, move);
  const Tensor grows = logical_and(logical_not(is_first), curvature > Tensor(kLeastCurvature));
  const Tensor safe = where(grows, curvature, 1.0f);
  const Tensor moves = where(unsqueeze(grows, 1), pushed(in[LbfgsIn::moves], move), in[LbfgsIn::moves]);
  const Tensor changes =
      where(unsqueeze(grows, 1), pushed(in[LbfgsIn::changes], change), in[LbfgsIn::changes]);
  const Tensor inverses = where(grows, pushed(in[LbfgsIn::inverses], recip(safe)), in[LbfgsIn::inverses]);
  const Tensor squares = where(grows, dot(change, change), 1.0f);
  const Tensor scale = where(is_first, 1.0f, where(grows, safe / squares, in[LbfgsIn::scale]));
  const Tensor direction = where(is_first, -g, direction_by(g, moves, changes, inverses, scale));
  const Tensor first = minimum(1.0f, recip(sum(abs(g), {}, true)));
  const Tensor rate = where(is_first, first * in[LbfgsIn::given], in[LbfgsIn::given]);

  // Nothing changes near the optimum, as in PyTorch.
  Tensor alive = reshape((max)(abs(g)), {1}) > Tensor(options.least_gradient);
  if (is_conditional) alive = logical_and(alive, reshape(in.back(), {1}) > 0.0f);
  const Tensor goes = logical_and(alive, dot(g, direction) <= Tensor(-options.least_change));
  const Tensor by_row = unsqueeze(alive, 1);
  std::vector<Tensor> next{
      where(alive, g, in[LbfgsIn::gradient]),        where(alive, direction, in[LbfgsIn::direction]),
      where(by_row, moves, in[LbfgsIn::moves]),      where(by_row, changes, in[LbfgsIn::changes]),
      where(alive, inverses, in[LbfgsIn::inverses]), where(alive, scale, in[LbfgsIn::scale]),
      where(alive, rate, in[LbfgsIn::rate]),         where(alive, in[LbfgsIn::step] + 1, in[LbfgsIn::step])};
  std::int64_t at = 0;
  for (const Tensor& value : every_other(pairs, 0)) {
    const std::int64_t count = value.shape().element_count();
    const Tensor along = reshape(narrow(direction, 0, at, count), value.shape());
    next.push_back(where(reshape(goes, {}), value + reshape(rate, {}) * along, value));
    at += count;
  }
  return next;
}

// Element i of the parameters, or of their gradients, one after the other.
std::string load_flat(const std::string& name, std::span<const Tensor> pairs, std::size_t first) {
  std::string out = text("float ", name, "(int i) {\n");
  std::int64_t at = 0;
  for (std::size_t k = first; k < pairs.size(); k += 2) {
    const std::int64_t begin = at;
    at += pairs[k].shape().element_count();
    out += text("  if (i < ", at, ") return imp_load_", LbfgsIn::count + k, "(i - ", begin, ");\n");
  }
  return out + "  return 0.0;\n}\n";
}

std::string store_flat(std::span<const Tensor> pairs) {
  std::string out = "void store_parameter(int i, float x) {\n";
  std::int64_t at = 0;
  for (std::size_t k = 0; k < pairs.size(); k += 2) {
    const std::int64_t begin = at;
    at += pairs[k].shape().element_count();
    out += text("  if (i >= ", begin, " && i < ", at, ") imp_store_", LbfgsIn::count - 1 + k / 2, "(i - ",
                begin, ", x);\n");
  }
  return out + "}\n";
}

// One workgroup for all.
std::vector<Tensor> step_by_kernel(const LbfgsOptions& options, bool is_conditional,
                                   std::span<const Tensor> in) {
  const std::span<const Tensor> pairs =
      in.subspan(LbfgsIn::count, in.size() - LbfgsIn::count - (is_conditional ? 1 : 0));
  tensor::LibraryPage page =
      page_of_kernel({.name = "step_lbfgs",
                      .numbers = {{"kLeastCurvature", kLeastCurvature},
                                  {"kLeastGradient", options.least_gradient},
                                  {"kLeastChange", options.least_change}},
                      .constants = {{"COUNT", in[LbfgsIn::gradient].shape().element_count()},
                                    {"HISTORY", in[LbfgsIn::moves].extent(0)}}});
  const std::string active = is_conditional ? text("imp_load_", in.size() - 1, "(0)") : std::string("1.0");
  page.glsl += load_flat("parameter", pairs, 0) + load_flat("slope", pairs, 1) + store_flat(pairs) +
               text("bool is_active() { return ", active, " > 0.0; }\n");
  for (std::size_t k = LbfgsIn::gradient; k < LbfgsIn::count; ++k)
    page.outputs.push_back({in[k].shape(), in[k].dtype()});
  for (const Tensor& value : every_other(pairs, 0)) page.outputs.push_back({value.shape()});
  page.compose = [options, is_conditional](std::span<const Tensor> inputs) {
    return step_by_operations(options, is_conditional, inputs);
  };
  return tensor::run_page(std::move(page), in);
}

}  // namespace

Lbfgs::Lbfgs(const Parameters& parameters, const LbfgsOptions& options)
    : Optimiser(parameters, 0), options_(options) {
  const std::int64_t n = parameters.element_count(), history = std::max<std::int64_t>(options.history, 1);
  const std::string name = parameters.empty() ? "lbfgs" : parameters[0].variable.name() + ".lbfgs";
  const auto add = [&](const std::string& part, const Shape& shape) {
    const Variable made = Variable::zeros(name + "." + part, shape);
    state_.add(part, made);
    return made;
  };
  gradient_ = add("gradient", {n});
  direction_ = add("direction", {n});
  moves_ = add("moves", {history, n});
  changes_ = add("changes", {history, n});
  inverses_ = add("inverses", {history});
  scale_ = add("scale", {1});
  rate_ = add("rate", {1});
  step_ = Variable::zeros(name + ".step", {1}, DType::int32);
  state_.add("step", step_);
}

Result<std::vector<Update>> Lbfgs::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                        const Tensor& active) const {
  constexpr std::int64_t kMostNumbers = 1024, kMostHistory = 256;  // of a kernel
  IMPRINT_ASSIGN(OptimiserStep step, begin_optimiser_step(gradients, parameters_, 0, learning_rate, active));
  if (gradients.empty()) return std::vector<Update>();
  const Variable* const state[] = {&gradient_, &direction_, &moves_, &changes_,
                                   &inverses_, &scale_,     &rate_,  &step_};
  std::vector<Tensor> operands{reshape(step.learning_rate, {1})};
  for (const Variable* variable : state) operands.push_back(variable->value());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    operands.insert(operands.end(), {parameters_[i].value(), gradients[i]});
  if (active.ok()) operands.push_back(active);
  const bool is_small = suits_step_kernel(parameters_, kMostNumbers) &&
                        parameters_.element_count() <= kMostNumbers && moves_.shape()[0] <= kMostHistory;
  const std::vector<Tensor> next = is_small ? step_by_kernel(options_, active.ok(), operands)
                                            : step_by_operations(options_, active.ok(), operands);
  for (std::size_t k = 0; k < std::size(state); ++k) step.assign(*state[k], next[k], Tensor());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    step.assign(parameters_[i].variable, next[std::size(state) + i], Tensor());
  return step.finish();
}

}  // namespace imprint::nn
