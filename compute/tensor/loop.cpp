#include "compute/tensor/loop.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "compute/base/amount.h"
#include "compute/base/pointer_map.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/named_axes.h"

namespace imprint {

using namespace tensor;

namespace {

using NodeSet = PointerSet<Node>;

// The nodes of a body in the order of their creation, and which of them change from step to step.
struct BodyNodes {
  std::vector<const NodeRef*> order;  // of the loop, or of nodes in it
  NodeSet changing;
};

// A node is younger than its inputs. A node that is older than every placeholder does not change, and lies
// outside the body. Its inputs are left out, so that a loop's cost does not depend on the graph around it.
BodyNodes nodes_of(const Loop& loop) {
  BodyNodes body;
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const auto* placeholders : {&loop.carry, &loop.rows, &loop.shared})
    for (const NodeRef& placeholder : *placeholders) {
      body.changing.insert(placeholder.get());
      first = std::min<std::uint64_t>(first, placeholder->id);
    }
  NodeSet seen;
  std::vector<const NodeRef*> stack;
  for (const auto* roots : {&loop.next, &loop.results})
    for (const NodeRef& root : *roots) stack.push_back(&root);
  while (!stack.empty()) {
    const NodeRef* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node->get())) continue;
    body.order.push_back(node);
    if ((*node)->id < first) continue;
    for (const NodeRef& input : (*node)->inputs) stack.push_back(&input);
  }
  std::ranges::sort(body.order, {}, [](const NodeRef* node) { return (*node)->id; });
  for (const NodeRef* node : body.order)
    if (std::ranges::any_of((*node)->inputs,
                            [&](const NodeRef& input) { return body.changing.contains(input.get()); }))
      body.changing.insert(node->get());
  return body;
}

bool is_literal(const Node& node) {
  return node.op == Op::full || node.op == Op::iota || node.op == Op::constant;
}

// The values from outside that steps read, ordered by creation.
std::vector<NodeRef> captured(const Loop& loop, const BodyNodes& body) {
  std::vector<NodeRef> found;
  NodeSet seen;
  const auto add = [&](const NodeRef& node) {
    if (!body.changing.contains(node.get()) && !is_literal(*node) && seen.insert(node.get()))
      found.push_back(node);
  };
  for (const NodeRef* node : body.order)
    if (body.changing.contains(node->get()))
      for (const NodeRef& input : (*node)->inputs) add(input);
  for (const auto* roots : {&loop.next, &loop.results})
    for (const NodeRef& root : *roots) add(root);
  std::ranges::sort(found, {}, [](const NodeRef& node) { return node->id; });
  return found;
}

// Puts placeholders where the body reads values from outside. A derivative of the body then ends at them.
void share_captured(Loop& loop, LoopInputs& inputs) {
  std::vector<Tensor> from, to, roots;
  for (const NodeRef& node : captured(loop, nodes_of(loop))) {
    loop.shared.push_back(loop_placeholder(node->shape, node->dtype));
    from.emplace_back(node);
    to.emplace_back(loop.shared.back());
  }
  if (from.empty()) return;
  inputs.shared.insert(inputs.shared.end(), from.begin(), from.end());
  for (auto* nodes : {&loop.next, &loop.results})
    for (const NodeRef& node : *nodes) roots.emplace_back(node);
  roots = substitute(roots, from, to);
  auto root = roots.begin();
  for (auto* nodes : {&loop.next, &loop.results})
    for (NodeRef& node : *nodes) node = (root++)->node();
}

void keep_used(std::vector<NodeRef>& placeholders, std::vector<Tensor>& values, const NodeSet& used) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    if (!used.contains(placeholders[i].get())) continue;
    placeholders[kept] = placeholders[i];
    values[kept++] = values[i];
  }
  placeholders.resize(kept);
  values.resize(kept);
}

Shape stacked(const Loop& loop, const Shape& shape) {
  Shape result{loop.steps};
  result.set_name(0, loop.name);
  for (int axis = 0; axis < shape.rank(); ++axis) result.append(shape, axis);
  return result;
}

Shape row_of(const Shape& stack) {
  Shape result;
  for (int axis = 1; axis < stack.rank(); ++axis) result.append(stack, axis);
  return result;
}

Error refused(ErrorCode code, std::string_view what, const std::string& found) {
  return make_error(code, text(what, ": ", found));
}

Result<> check_carry(std::string_view what, std::span<const Tensor> before, std::span<const Tensor> after) {
  if (before.size() != after.size())
    return refused(ErrorCode::shape_mismatch, what,
                   text("found ", amount(after.size(), "tensor"), ", expected ", before.size()));
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (!after[i].ok()) return after[i].error();
    if (!(after[i].shape() == before[i].shape()) || after[i].dtype() != before[i].dtype())
      return refused(ErrorCode::shape_mismatch, what,
                     text("tensor ", i, ": found ", dtype_name(after[i].dtype()), after[i].shape().text(),
                          ", expected ", dtype_name(before[i].dtype()), before[i].shape().text()));
  }
  return {};
}

Result<std::int64_t> count_steps(std::span<const Tensor> stacks, std::int64_t steps) {
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    if (!stacks[i].ok()) return stacks[i].error();
    if (stacks[i].rank() == 0)
      return refused(ErrorCode::shape_mismatch, "scan", text("stack ", i, ": found a scalar, expected rows"));
    if (i == 0 && steps == 0) steps = stacks[i].extent(0);
    if (stacks[i].extent(0) != steps)
      return refused(ErrorCode::shape_mismatch, "scan",
                     text("stack ", i, ": found ", stacks[i].extent(0), " rows, expected ", steps));
  }
  if (steps < 1)
    return refused(ErrorCode::invalid_argument, "scan",
                   text("steps: found ", steps, ", expected at least 1"));
  return steps;
}

// The name of the stacks' first axis.
Result<AxisName> name_of_steps(std::span<const Tensor> stacks) {
  AxisName found;
  for (const Tensor& stack : stacks) {
    const AxisName name = stack.shape().name(0);
    if (name && found && name != found)
      return refused(ErrorCode::shape_mismatch, "scan",
                     text("found stacks over '", named_axis(found).text(), "' and '", named_axis(name).text(),
                          "', expected one name"));
    if (name) found = name;
  }
  return found;
}

// The body for steps over a named axis. The last row is the step's number.
ScanBody over_used_steps(const ScanBody& body, const AxisName& name) {
  return [&body, name](std::span<const Tensor> carry, std::span<const Tensor> rows) {
    const Tensor used = used_positions(rows.back(), name);
    std::vector<Tensor> own;
    for (const Tensor& row : rows.first(rows.size() - 1))
      own.push_back(row.dtype() == DType::float32 ? where(used, row, 0.0f) : row);
    ScanStep step = body(carry, own);
    for (std::size_t i = 0; i < step.carry.size() && i < carry.size(); ++i)
      step.carry[i] = where(used, step.carry[i], carry[i]);
    return step;
  };
}

// loop: its steps, direction and name.
Result<Scanned> recorded(Loop loop, const ScanBody& body, std::span<const Tensor> carry,
                         std::span<const Tensor> stacks) {
  std::vector<Tensor> carries, rows;
  for (const Tensor& value : carry) {
    if (!value.ok()) return value.error();
    loop.carry.push_back(loop_placeholder(value.shape(), value.dtype()));
    carries.emplace_back(loop.carry.back());
  }
  for (const Tensor& stack : stacks) {
    loop.rows.push_back(loop_placeholder(row_of(stack.shape()), stack.dtype()));
    rows.emplace_back(loop.rows.back());
  }
  const ScanStep step = body(carries, rows);
  IMPRINT_CHECK(check_carry("scan: the body's carry", carry, step.carry));
  for (const Tensor& value : step.carry) loop.next.push_back(value.node());
  for (const Tensor& value : step.results) {
    if (!value.ok()) return value.error();
    if (value.rank() == Shape::kMaxRank)
      return refused(ErrorCode::shape_mismatch, "scan",
                     text("a result: found ", value.rank(), " axes, expected at most ", value.rank() - 1));
    loop.results.push_back(value.node());
  }
  const std::size_t carry_count = carry.size(), result_count = step.results.size();
  IMPRINT_ASSIGN(
      const std::vector<Tensor> outputs,
      make_loop(std::move(loop), {{carry.begin(), carry.end()}, {stacks.begin(), stacks.end()}, {}}));
  const auto first = outputs.begin(), middle = first + static_cast<std::ptrdiff_t>(carry_count);
  return Scanned{{first, middle}, {middle, middle + static_cast<std::ptrdiff_t>(result_count)}};
}

}  // namespace

NodeRef tensor::loop_placeholder(const Shape& shape, DType dtype) {
  static std::atomic<std::uint64_t> next{0};
  return input(text("loop value ", next.fetch_add(1, std::memory_order_relaxed)), shape, dtype).node();
}

Tensor tensor::loop_output(const NodeRef& loop, std::size_t position) {
  const Loop& body = *loop->loop;
  const bool is_carry = position < body.carry.size();
  const Node& value = is_carry ? *body.carry[position] : *body.results[position - body.carry.size()];
  return make(Op::loop_output, {Tensor(loop)},
              {.ints = {static_cast<std::int64_t>(position)},
               .shape = is_carry ? value.shape : stacked(body, value.shape),
               .dtype = value.dtype});
}

Result<std::vector<Tensor>> tensor::make_loop(Loop loop, LoopInputs inputs) {
  share_captured(loop, inputs);
  NodeSet used;
  for (const NodeRef* node : nodes_of(loop).order) {
    used.insert(node->get());
    if ((*node)->op == Op::loop)
      return refused(ErrorCode::unsupported, "scan",
                     "found a loop inside of the body, expected none that depends on the carry or the rows");
  }
  keep_used(loop.rows, inputs.stacks, used);
  keep_used(loop.shared, inputs.shared, used);
  loop.results.insert(loop.results.end(), loop.carry.begin(), loop.carry.end());

  std::vector<Tensor> all = std::move(inputs.carry);
  all.insert(all.end(), inputs.stacks.begin(), inputs.stacks.end());
  all.insert(all.end(), inputs.shared.begin(), inputs.shared.end());
  const Tensor made = make(Op::loop, all, {});
  if (!made.ok()) return made.error();
  const std::size_t count = loop.carry.size() + loop.results.size();
  const_cast<Node&>(*made.node()).loop = std::make_shared<const Loop>(std::move(loop));  // not shared yet
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(loop_output(made.node(), i));
  return outputs;
}

Result<Scanned> scan(const ScanBody& body, std::span<const Tensor> carry, std::span<const Tensor> stacks,
                     const ScanOptions& options) {
  Loop loop;
  loop.reverse = options.reverse;
  loop.label = options.label;
  IMPRINT_ASSIGN(loop.steps, count_steps(stacks, options.steps));
  IMPRINT_ASSIGN(loop.name, name_of_steps(stacks));
  if (!loop.name) return recorded(std::move(loop), body, carry, stacks);
  std::vector<Tensor> numbered(stacks.begin(), stacks.end());
  numbered.push_back(iota({loop.steps}, 0));
  const AxisName name = loop.name;
  return recorded(std::move(loop), over_used_steps(body, name), carry, numbered);
}

// A carry that the condition has left stays as it is, so the condition stays false.
Result<std::vector<Tensor>> while_loop(const LoopCondition& condition, const LoopBody& body,
                                       std::span<const Tensor> carry, std::int64_t most_steps) {
  const auto step = [&](std::span<const Tensor> now, std::span<const Tensor>) {
    const Tensor goes_on = reshape(condition(now), {});
    ScanStep next{body(now), {}};
    for (std::size_t i = 0; i < next.carry.size() && i < now.size(); ++i)
      next.carry[i] = where(goes_on, next.carry[i], now[i]);
    return next;
  };
  IMPRINT_ASSIGN(Scanned scanned, scan(step, carry, {}, {.steps = most_steps}));
  return std::move(scanned.carry);
}

Result<std::vector<Tensor>> cond(const Tensor& chosen, const Branch& if_true, const Branch& if_false) {
  std::vector<Tensor> results = if_true();
  const std::vector<Tensor> others = if_false();
  for (const Tensor& value : results)
    if (!value.ok()) return value.error();
  IMPRINT_CHECK(check_carry("cond: the second branch", results, others));
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i] = where(reshape(chosen, {}), results[i], others[i]);
    if (!results[i].ok()) return results[i].error();
  }
  return results;
}

}  // namespace imprint
