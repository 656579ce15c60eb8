#include "compute/graph/gradients/autodiff.h"

#include <algorithm>
#include <unordered_map>

#include "compute/base/text.h"
#include "compute/graph/gradients/derivatives.h"
#include "compute/graph/gradients/loop_gradient.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace graph;
using namespace tensor;

namespace {

// State of the walk per node that the loss depends on.
struct Visit {
  NodeRef node;
  bool leads_to_target = false;  // a requested target depends on gradients here
  Tensor gradient;               // empty until one arrives
  // Of a page or loop: the gradients of its outputs, empty or up to the last that arrived.
  std::vector<Tensor> of_outputs;
};

using Visits = std::unordered_map<const Node*, Visit>;

// All nodes that `loss` depends on, inputs before users.
std::vector<NodeRef> ancestors_in_order(const NodeRef& loss, Visits& visits) {
  std::vector<NodeRef> order;
  std::vector<NodeRef> pending{loss};
  while (!pending.empty()) {
    NodeRef node = std::move(pending.back());
    pending.pop_back();
    if (!visits.try_emplace(node.get(), Visit{.node = node}).second) continue;
    for (const NodeRef& input : node->inputs) pending.push_back(input);
    order.push_back(std::move(node));
  }
  std::ranges::sort(order, {}, [](const NodeRef& node) { return node->id; });
  return order;
}

// Per input of the node: whether a gradient passes to it and a target needs it.
std::vector<bool> needed_inputs(const Node& node, const Visits& visits) {
  std::vector<bool> needed(node.inputs.size(), false);
  if (node.op == Op::page_output || node.op == Op::loop_output) {
    needed[0] = dtype_is_float(node.dtype) && visits.at(node.inputs[0].get()).leads_to_target;
    return needed;
  }
  // Another output may be a float.
  const bool has_outputs = node.op == Op::page || node.op == Op::loop;
  if (!has_outputs && (!dtype_is_float(node.dtype) || !is_differentiable(node.op))) return needed;
  for (std::size_t i = 0; i < needed.size(); ++i)
    needed[i] = dtype_is_float(node.inputs[i]->dtype) && visits.at(node.inputs[i].get()).leads_to_target;
  return needed;
}

// Adds views at their source, where both may be in one kernel with what they show: rows of a batch again.
Tensor added(const Tensor& a, const Tensor& b) {
  if (is_op(a, Op::reshape) && is_op(b, Op::reshape)) {
    const Tensor x(a.node()->inputs[0]), y(b.node()->inputs[0]);
    if (x.shape() == y.shape() && x.dtype() == y.dtype())
      if (const Tensor sum = reshape(added(x, y), a.shape()); sum.ok() && sum.shape() == a.shape())
        return sum;
  }
  return a + b;
}

// Keeps the gradient of an output for the page or loop itself, which comes later in the walk.
void give_to_owner(const Node& output, const Tensor& gradient, Visits& visits) {
  std::vector<Tensor>& list = visits.at(output.inputs[0].get()).of_outputs;
  const auto position = static_cast<std::size_t>(output.ints[0]);
  if (list.size() <= position) list.resize(position + 1);
  list[position] = is_empty(list[position]) ? gradient : added(list[position], gradient);
}

Result<> differentiate_page(Adjoint& adjoint, const std::vector<Tensor>& of_outputs) {
  const Page& page = *adjoint.node().page;
  if (!page.backward)
    return make_error(ErrorCode::invalid_argument,
                      "gradients: page '" + page.name +
                          "': found no backward, expected one, since a gradient "
                          "arrives. Set Page::backward, or stop_gradient() its inputs.");
  std::vector<Tensor> inputs, outputs, gradients;
  for (std::size_t i = 0; i < adjoint.input_count(); ++i) inputs.push_back(adjoint.input(i));
  for (std::size_t k = 0; k < page.outputs.size(); ++k) {
    outputs.push_back(page_output(adjoint.output().node(), k));
    Tensor gradient = k == 0 ? adjoint.gradient() : k < of_outputs.size() ? of_outputs[k] : Tensor();
    gradients.push_back(is_empty(gradient) ? zeros(page.outputs[k].shape) : gradient);
  }
  const std::vector<Tensor> given = page.backward(inputs, outputs, gradients);
  if (given.size() != inputs.size())
    return make_error(ErrorCode::invalid_argument,
                      text("gradients: page '", page.name, "': found ", given.size(),
                           " gradients from backward, expected one per input, ", inputs.size()));
  for (std::size_t i = 0; i < given.size(); ++i)
    if (adjoint.needs(i)) adjoint.give(i, is_empty(given[i]) ? zeros_like(inputs[i]) : given[i]);
  return {};
}

Result<> differentiate_loop(const NodeRef& node, const std::vector<bool>& needed,
                            const std::vector<Tensor>& of_outputs, Adjoint& adjoint) {
  IMPRINT_ASSIGN(const std::vector<Tensor> given, loop_gradients(node, of_outputs, needed));
  for (std::size_t i = 0; i < given.size(); ++i)
    if (needed[i]) adjoint.give(i, is_empty(given[i]) ? zeros_like(adjoint.input(i)) : given[i]);
  return {};
}

Result<> propagate(const NodeRef& node, Visits& visits) {
  const Visit& visit = visits.at(node.get());
  if (is_empty(visit.gradient) && visit.of_outputs.empty()) return {};
  const std::vector<bool> needed = needed_inputs(*node, visits);
  if (std::ranges::find(needed, true) == needed.end()) return {};
  if (node->op == Op::page_output || node->op == Op::loop_output) {
    give_to_owner(*node, visit.gradient, visits);
    return {};
  }
  Adjoint adjoint(node, visit.gradient, needed);
  if (node->op == Op::page)
    IMPRINT_CHECK(differentiate_page(adjoint, visit.of_outputs));
  else if (node->op == Op::loop)
    IMPRINT_CHECK(differentiate_loop(node, needed, visit.of_outputs, adjoint));
  else
    derivative_of(node->op)(adjoint);
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    if (!adjoint.needs(i)) continue;
    const Tensor& given = adjoint.given(i);
    if (!given.ok() || given.shape() != node->inputs[i]->shape)
      return make_error(
          ErrorCode::internal,
          "gradients: derivative of " + describe(*node) + " by " + describe(*node->inputs[i]) + ": found " +
              (given.ok() ? "shape " + given.shape().text() : "an error: " + given.error().message));
    Tensor& sum = visits.at(node->inputs[i].get()).gradient;
    sum = is_empty(sum) ? given : added(sum, given);
  }
  return {};
}

Result<> check_arguments(const Tensor& loss, std::span<const Tensor> targets) {
  if (!loss.ok()) return loss.error();
  if (loss.dtype() != DType::float32 || loss.shape().element_count() != 1)
    return make_error(ErrorCode::invalid_argument,
                      "gradients: loss: found " + std::string(dtype_name(loss.dtype())) + " " +
                          describe(loss) + ", expected one float32 element. Sum or average it first.");
  for (const Tensor& target : targets) {
    if (!target.ok()) return target.error();
    if (!dtype_is_float(target.dtype()))
      return make_error(ErrorCode::invalid_argument, "gradients: target: found " +
                                                         std::string(dtype_name(target.dtype())) + " " +
                                                         describe(target) + ", expected a float");
  }
  return {};
}

}  // namespace

Result<std::vector<Tensor>> gradients(const Tensor& loss, std::span<const Tensor> with_respect_to) {
  IMPRINT_CHECK(check_arguments(loss, with_respect_to));

  Visits visits;
  const std::vector<NodeRef> order = ancestors_in_order(loss.node(), visits);
  for (const Tensor& target : with_respect_to)
    if (auto found = visits.find(target.node().get()); found != visits.end())
      found->second.leads_to_target = true;
  for (const NodeRef& node : order) {
    const std::vector<bool> needed = needed_inputs(*node, visits);
    if (std::ranges::find(needed, true) != needed.end()) visits.at(node.get()).leads_to_target = true;
  }

  visits.at(loss.node().get()).gradient = ones_like(loss);
  for (auto node = order.rbegin(); node != order.rend(); ++node) IMPRINT_CHECK(propagate(*node, visits));

  std::vector<Tensor> out;
  out.reserve(with_respect_to.size());
  for (const Tensor& target : with_respect_to) {
    const auto found = visits.find(target.node().get());
    const bool reached = found != visits.end() && !is_empty(found->second.gradient);
    out.push_back(reached ? found->second.gradient : zeros_like(target));
  }
  return out;
}

namespace {

// The sum of a[i] * b[i] over all elements.
Result<Tensor> inner_product(std::string_view name, std::span<const Tensor> a, std::span<const Tensor> b) {
  bool fits = a.size() == b.size();
  for (std::size_t i = 0; fits && i < a.size(); ++i) {
    if (!a[i].ok()) return a[i].error();
    if (!b[i].ok()) return b[i].error();
    fits = a[i].shape() == b[i].shape();
  }
  if (!fits)
    return make_error(ErrorCode::shape_mismatch,
                      text(name, ": found ", b.size(), " directions for ", a.size(),
                           " tensors, expected one of the same shape for each"));
  Tensor total = zeros({});
  for (std::size_t i = 0; i < a.size(); ++i) total = total + sum(a[i] * b[i]);
  return total;
}

}  // namespace

Result<std::vector<Tensor>> vjp(std::span<const Tensor> outputs, std::span<const Tensor> with_respect_to,
                                std::span<const Tensor> cotangents) {
  IMPRINT_ASSIGN(const Tensor total, inner_product("vjp", outputs, cotangents));
  return gradients(total, with_respect_to);
}

Result<std::vector<Tensor>> jvp(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                std::span<const Tensor> tangents) {
  std::vector<Tensor> directions;  // vjp is linear in them, so its derivative contains none
  for (const Tensor& output : outputs) directions.push_back(input("direction", output.shape()));
  IMPRINT_ASSIGN(const std::vector<Tensor> pulled, vjp(outputs, inputs, directions));
  IMPRINT_ASSIGN(const Tensor total, inner_product("jvp", pulled, tangents));
  return gradients(total, directions);
}

}  // namespace imprint
