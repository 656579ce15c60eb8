#include "tests/reference/interpreter.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "compute/base/at.h"
#include "compute/base/text.h"
#include "compute/tensor/loop.h"

namespace imprint::reference {

using namespace tensor;

namespace {

std::vector<double> decode(std::span<const std::byte> bytes, DType dtype) {
  const std::size_t count = bytes.size() / dtype_size(dtype);
  if (dtype == DType::int64) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      values.push_back(static_cast<double>(value));
    }
    return values;
  }
  if (dtype_is_float(dtype)) {
    std::vector<float> floats(count);
    unpack_elements(bytes.data(), count, dtype, floats.data());
    return {floats.begin(), floats.end()};
  }
  std::vector<std::int32_t> ints(count);
  unpack_elements(bytes.data(), count, dtype, ints.data());
  std::vector<double> values(ints.begin(), ints.end());
  if (dtype == DType::uint32)
    for (double& value : values) value += value < 0 ? 4294967296.0 : 0;
  return values;
}

std::vector<double> leaf(const Node& node, const Bindings& bindings) {
  if (node.op == Op::constant) return decode(node.constant->bytes, node.dtype);
  if (const auto bound = bindings.find(node.label); bound != bindings.end()) {
    if (static_cast<std::int64_t>(bound->second.size()) != node.shape.element_count())
      throw std::runtime_error(
          text(node.label, " ", node.shape.text(), " is bound to ", bound->second.size(), " values"));
    return bound->second;
  }
  if (node.op == Op::variable) return decode(node.variable->initial, node.dtype);
  throw std::runtime_error("input " + node.label + " is not bound");
}

std::vector<double> compute(const Node& node, std::span<const Operand> operands, const Bindings& bindings) {
  switch (op_info(node.op).kind) {
    case OpKind::leaf:
      return leaf(node, bindings);
    case OpKind::generate:
      return generate(node, operands);
    case OpKind::elementwise:
      return elementwise(node, operands);
    case OpKind::view:
    case OpKind::select:
      return arrange(node, operands);
    case OpKind::reduce:
    case OpKind::contract:
    case OpKind::scan:
    case OpKind::scatter:
      return fold(node, operands);
    case OpKind::page:
      return page(node, operands);
  }
  throw std::runtime_error("unknown kind of op");
}

// All outputs of a loop: its body runs step by step, with the placeholders bound.
std::vector<std::vector<double>> run_loop(const Node& node, std::span<const Operand> operands,
                                          Bindings bindings) {
  const Loop& loop = *node.loop;
  const std::size_t carries = loop.carry.size();
  std::vector<Tensor> roots;
  for (const auto* list : {&loop.next, &loop.results})
    for (const NodeRef& root : *list) roots.emplace_back(root);
  std::vector<std::vector<double>> outputs(roots.size());
  for (std::size_t i = 0; i < carries; ++i) outputs[i] = operands[i].values;
  for (std::size_t i = carries; i < outputs.size(); ++i)
    outputs[i].resize(static_cast<std::size_t>(loop.steps * roots[i].shape().element_count()));
  for (std::size_t i = 0; i < loop.shared.size(); ++i)
    bindings[loop.shared[i]->label] = operands[carries + loop.rows.size() + i].values;
  for (std::int64_t step = 0; step < loop.steps; ++step) {
    const std::int64_t row = loop.reverse ? loop.steps - 1 - step : step;
    for (std::size_t i = 0; i < carries; ++i) bindings[loop.carry[i]->label] = outputs[i];
    for (std::size_t i = 0; i < loop.rows.size(); ++i) {
      const std::vector<double>& stack = operands[carries + i].values;
      const auto first = stack.begin() + row * loop.rows[i]->shape.element_count();
      bindings[loop.rows[i]->label].assign(first, first + loop.rows[i]->shape.element_count());
    }
    const std::vector<std::vector<double>> found = evaluate_all(roots, bindings);
    for (std::size_t i = 0; i < carries; ++i) outputs[i] = found[i];
    for (std::size_t i = carries; i < found.size(); ++i)
      std::ranges::copy(found[i], outputs[i].begin() + row * static_cast<std::int64_t>(found[i].size()));
  }
  return outputs;
}

}  // namespace

std::vector<std::vector<double>> evaluate_all(std::span<const Tensor> tensors, const Bindings& bindings) {
  std::unordered_map<const Node*, std::vector<double>> done;
  std::unordered_map<const Node*, std::vector<std::vector<double>>> loops;
  std::map<std::string, const VariableState*> variables;
  std::vector<const Node*> pending;
  for (const Tensor& tensor : tensors) {
    if (!tensor.ok()) throw std::runtime_error(tensor.error().message);
    pending.push_back(tensor.node().get());
  }
  while (!pending.empty()) {
    const Node* node = pending.back();
    if (done.contains(node)) {
      pending.pop_back();
      continue;
    }
    bool ready = true;
    for (const NodeRef& input : node->inputs) {
      if (done.contains(input.get())) continue;
      pending.push_back(input.get());
      ready = false;
    }
    if (!ready) continue;
    if (node->op == Op::variable &&
        variables.try_emplace(node->label, node->variable.get()).first->second != node->variable.get())
      throw std::runtime_error("two variables are called " + node->label);
    pending.pop_back();
    std::vector<Operand> operands;
    const Node& source = node->op == Op::page_output ? *node->inputs[0] : *node;
    for (const NodeRef& input : source.inputs) operands.push_back({*input, done.at(input.get())});
    if (node->op == Op::loop) {
      loops.emplace(node, run_loop(*node, operands, bindings));
      done.emplace(node, std::vector<double>{});
      continue;
    }
    std::vector<double> values = node->op == Op::loop_output
                                     ? loops.at(node->inputs[0].get())[at(node->ints[0])]
                                     : compute(*node, operands, bindings);
    if (static_cast<std::int64_t>(values.size()) != node->shape.element_count())
      throw std::runtime_error(
          text(op_info(node->op).name, " computed ", values.size(), " values for ", node->shape.text()));
    done.emplace(node, std::move(values));
  }
  std::vector<std::vector<double>> out;
  for (const Tensor& tensor : tensors) out.push_back(done.at(tensor.node().get()));
  return out;
}

std::vector<double> evaluate(const Tensor& tensor, const Bindings& bindings) {
  return std::move(evaluate_all(std::span<const Tensor>(&tensor, 1), bindings)[0]);
}

std::vector<double> initial_values(const Variable& variable) {
  return decode(variable.state()->initial, variable.dtype());
}

}  // namespace imprint::reference
