#include "tests/reference/interpreter.h"

#include <cstring>
#include <stdexcept>

#include "compute/base/text.h"

namespace imprint::reference {

using namespace tensor;

namespace {

std::vector<double> decode(std::span<const std::byte> bytes, DType dtype) {
  std::vector<double> values(bytes.size() / 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::float32) {
      float value;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values[i] = value;
    } else {
      std::int32_t value;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values[i] = value;
    }
  }
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

}  // namespace

std::vector<std::vector<double>> evaluate_all(std::span<const Tensor> tensors, const Bindings& bindings) {
  std::unordered_map<const Node*, std::vector<double>> done;
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
    std::vector<double> values = compute(*node, operands, bindings);
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
