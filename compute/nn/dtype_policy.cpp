#include "compute/nn/dtype_policy.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compute/base/columns.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/library_page.h"
#include "compute/tensor/walk.h"

namespace imprint::nn {

using tensor::Node;
using tensor::NodeRef;
using tensor::Op;
using tensor::OpKind;

// Computes outputs again with the types of a policy.
class DtypeRewriter {
 public:
  explicit DtypeRewriter(const DtypePolicy& policy) : policy_(policy) {}

  std::vector<Tensor> run(std::span<const Tensor> outputs) {
    for (const NodeRef* ref : tensor::nodes_in_order(outputs, [](const Node&) { return true; })) visit(*ref);
    std::vector<Tensor> found;
    for (const Tensor& output : outputs) found.push_back(next(output.node()));
    return found;
  }

 private:
  using Entry = DtypePolicy::Entry;

  Tensor next(const NodeRef& node) const {
    if (in_page_ && node->op == Op::variable) return Tensor(node);
    const auto found = next_.find(node.get());
    return found != next_.end() ? found->second : Tensor(node);
  }

  void visit(const NodeRef& ref) {
    const Node& node = *ref;
    if (next_.contains(&node)) return;  // a page's tensors reach back to those of the whole
    if (node.op != Op::input && std::ranges::all_of(node.inputs, [&](const NodeRef& input) {
          return of_parameters_.contains(input.get());
        }))
      of_parameters_.insert(&node);
    if (node.op == Op::variable) {
      const auto found = policy_.entry_of_.find(node.variable.get());
      if (found == policy_.entry_of_.end()) return;
      const Entry& entry = policy_.entries_[found->second];
      weights_.emplace(&node, &entry);
      if (entry.stored.ok()) next_.emplace(&node, cast(entry.stored.value(), DType::float32));
      return;
    }
    if (const Entry* entry = weight_of(node)) weights_.emplace(&node, entry);
    std::vector<NodeRef> inputs;
    for (const NodeRef& input : node.inputs) inputs.push_back(next(input).node());
    if (node.op == Op::matmul) narrow_operands(node, inputs);
    if (node.page != nullptr && node.page->rewritten) return visit_page(node, std::move(inputs));
    if (inputs != node.inputs) next_.emplace(&node, Tensor(tensor::with_inputs(node, std::move(inputs))));
  }

  // A page that computes tensors again for its derivative: those have the same types. Its weights stay
  // variables there, since the page puts its operands in their place.
  void visit_page(const Node& node, std::vector<NodeRef> inputs) {
    const bool was_in_page = std::exchange(in_page_, true);
    auto page = node.page->rewritten([this](std::span<const Tensor> again) { return run(again); });
    in_page_ = was_in_page;
    next_.emplace(&node, Tensor(tensor::with_inputs(node, std::move(inputs), std::move(page))));
  }

  // The weight that this tensor is a form of, computed from parameters and constants alone: its transpose,
  // its direction times its magnitude, or its sum with a change (Lora).
  const Entry* weight_of(const Node& node) const {
    if (node.op == Op::matmul || node.inputs.empty()) return nullptr;
    const Entry* found = nullptr;
    bool is_changed = false;
    for (const NodeRef& input : node.inputs) {
      const tensor::OpInfo& info = tensor::op_info(input->op);
      if (input->op == Op::constant || (info.kind == OpKind::generate && input->inputs.empty())) continue;
      const auto weight = weights_.find(input.get());
      if (weight != weights_.end()) {
        if (found == nullptr) found = weight->second;
        continue;
      }
      if (node.op != Op::add || !of_parameters_.contains(input.get())) return nullptr;
      is_changed = true;
    }
    if (is_changed && found != nullptr && found->parameter.variable.shape() != node.shape) return nullptr;
    return found;
  }

  void narrow_operands(const Node& node, std::vector<NodeRef>& inputs) {
    DType dtype = DType::float32;
    for (const NodeRef& input : node.inputs) {
      const auto weight = weights_.find(input.get());
      if (weight != weights_.end() && weight->second->types.compute != DType::float32)
        dtype = weight->second->types.compute;
    }
    const bool is_wide =
        std::ranges::all_of(inputs, [](const NodeRef& input) { return input->dtype == DType::float32; });
    if (dtype == DType::float32 || !is_wide) return;
    for (NodeRef& input : inputs) input = narrowed(input, dtype).node();
  }

  // Rounds where there are the fewest elements: before views, which repeat them. Windows of an image then
  // read one copy.
  Tensor narrowed(const NodeRef& ref, DType dtype) {
    const auto [known, is_new] = narrowed_.try_emplace({ref, dtype});
    if (!is_new) return known->second;
    const Node& node = *ref;
    const bool is_view = tensor::op_info(node.op).kind == OpKind::view ||
                         (node.op == Op::pad && !node.floats.empty() && node.floats[0] == 0);
    Tensor result;
    if (node.op == Op::cast && node.inputs[0]->dtype == dtype)
      result = Tensor(node.inputs[0]);
    else if (is_view && node.inputs[0]->shape.element_count() <= node.shape.element_count())
      result = tensor::make(node.op, {narrowed(node.inputs[0], dtype)},
                            {.ints = node.ints, .floats = node.floats, .shape = node.shape, .dtype = dtype});
    if (!result.ok() || tensor::is_empty(result)) result = cast(Tensor(ref), dtype);
    return narrowed_[{ref, dtype}] = result;
  }

  struct KeyHash {
    std::size_t operator()(const std::pair<NodeRef, DType>& key) const {
      return std::hash<const Node*>()(key.first.get()) * 31 + static_cast<std::size_t>(key.second);
    }
  };

  const DtypePolicy& policy_;
  std::unordered_map<const Node*, Tensor> next_;           // nodes that change
  std::unordered_map<const Node*, const Entry*> weights_;  // forms of a weight
  std::unordered_set<const Node*> of_parameters_;          // of variables and constants alone
  bool in_page_ = false;
  std::unordered_map<std::pair<NodeRef, DType>, Tensor, KeyHash> narrowed_;
};

DtypePolicy::DtypePolicy(const std::string& name, const Parameters& parameters,
                         const std::vector<DtypeRule>& rules) {
  const auto refuse = [&](const std::string& found) {
    if (!error_)
      error_ = make_error(ErrorCode::invalid_argument, text("dtype policy '", name, "': found ", found));
  };
  std::unordered_map<const void*, ParameterTypes> types;
  for (const DtypeRule& rule : rules) {
    for (const DType dtype : {rule.types.storage, rule.types.compute})
      if (!dtype_is_float(dtype))
        refuse(text(dtype_name(dtype), " for '", rule.pattern, "', expected float32, float16 or bfloat16"));
    const Parameters matched = parameters.matching(rule.pattern);
    if (matched.empty()) refuse(text("no parameter for '", rule.pattern, "', expected one or more"));
    for (const Parameter& parameter : matched) types[parameter.variable.state().get()] = rule.types;
  }
  for (const Parameter& parameter : parameters) {
    if (!parameter.variable.ok() || parameter.variable.dtype() != DType::float32) {
      state_.add(parameter.name, parameter.variable, parameter.transposed);
      continue;
    }
    Entry entry{.parameter = parameter, .types = types[parameter.variable.state().get()], .stored = {}};
    if (entry.types.storage != DType::float32 && !error_)
      entry.stored =
          Variable::zeros(name + "." + parameter.name, parameter.variable.shape(), entry.types.storage);
    state_.add(parameter.name, entry.stored.ok() ? entry.stored : parameter.variable, parameter.transposed);
    entry_of_.emplace(parameter.variable.state().get(), entries_.size());
    entries_.push_back(std::move(entry));
  }
}

std::vector<Tensor> DtypePolicy::operator()(std::span<const Tensor> outputs) const {
  if (error_) return std::vector<Tensor>(outputs.size(), Tensor(*error_));
  for (const Tensor& output : outputs)
    if (!output.ok()) return {outputs.begin(), outputs.end()};
  return DtypeRewriter(*this).run(outputs);
}

std::vector<Tensor> DtypePolicy::operator()(std::span<const Tensor> outputs, Pass& pass) const {
  std::vector<Tensor> all(outputs.begin(), outputs.end());
  for (const Update& update : pass.updates_) all.push_back(update.value);
  all = (*this)(std::span<const Tensor>(all));
  for (std::size_t i = 0; i < pass.updates_.size(); ++i) pass.updates_[i].value = all[outputs.size() + i];
  all.resize(outputs.size());
  return all;
}

Tensor DtypePolicy::operator()(const Tensor& output) const {
  return (*this)(std::span<const Tensor>(&output, 1))[0];
}

Tensor DtypePolicy::operator()(const Tensor& output, Pass& pass) const {
  return (*this)(std::span<const Tensor>(&output, 1), pass)[0];
}

std::vector<Update> DtypePolicy::pack() const {
  std::vector<Update> updates;
  for (const Entry& entry : entries_)
    if (entry.stored.ok())
      updates.push_back(Update::assign(entry.stored, cast(entry.parameter.value(), entry.stored.dtype())));
  return updates;
}

std::uint64_t DtypePolicy::bytes() const {
  std::uint64_t total = 0;
  for (const Entry& entry : entries_)
    total += entry.stored.ok() ? entry.stored.bytes() : entry.parameter.variable.bytes();
  return total;
}

bool DtypePolicy::computes_in(DType dtype) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.types.compute == dtype; });
}

ParameterTypes DtypePolicy::types_of(const Variable& parameter) const {
  const auto found = entry_of_.find(parameter.state().get());
  return found == entry_of_.end() ? ParameterTypes() : entries_[found->second].types;
}

std::string DtypePolicy::summary() const {
  if (error_) return error_->message + "\n";
  std::vector<std::vector<std::string>> rows{{"parameter", "shape", "storage", "compute", "bytes"}};
  for (const Entry& entry : entries_) {
    const Variable& read = entry.stored.ok() ? entry.stored : entry.parameter.variable;
    rows.push_back({entry.parameter.name, read.shape().text(), std::string(dtype_name(entry.types.storage)),
                    std::string(dtype_name(entry.types.compute)), text(read.bytes())});
  }
  rows.push_back({"total", "", "", "", text(bytes())});
  return columns(rows);
}

}  // namespace imprint::nn
