#include "compute/base/pointer_map.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/walk.h"

namespace imprint {

using namespace tensor;

namespace tensor {

std::vector<const NodeRef*> nodes_in_order(std::span<const Tensor> outputs,
                                           const std::function<bool(const Node&)>& enters) {
  std::vector<const NodeRef*> order;
  PointerMap<Node, bool> done;  // false: its inputs are pending
  std::vector<const NodeRef*> pending;
  for (const Tensor& output : outputs) pending.push_back(&output.node());
  while (!pending.empty()) {
    const NodeRef* node = pending.back();
    const auto [found, is_new] = done.try_emplace(node->get(), false);
    if (is_new && enters(**node)) {
      for (const NodeRef& input : (*node)->inputs)
        if (!done.contains(input.get())) pending.push_back(&input);
      continue;
    }
    pending.pop_back();
    if (*found) continue;
    *found = true;
    order.push_back(node);
  }
  return order;
}

}  // namespace tensor

std::vector<Tensor> substitute(std::span<const Tensor> outputs, std::span<const Tensor> from,
                               std::span<const Tensor> to) {
  const auto failed = [&](Tensor error) { return std::vector<Tensor>(outputs.size(), error); };
  for (const std::span<const Tensor> list : {outputs, from, to})
    if (const Tensor* error = first_error(list)) return failed(*error);
  PointerMap<Node, NodeRef> replaced;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i >= to.size() || from[i].shape() != to[i].shape() || from[i].dtype() != to[i].dtype())
      return failed(failure(ErrorCode::shape_mismatch, "substitute",
                            text("found ", i < to.size() ? describe(to[i]) : "nothing", " for ",
                                 describe(from[i]), ", expected equal shapes and dtypes")));
    replaced[from[i].node().get()] = to[i].node();
  }
  // A replaced node's inputs play no part.
  const PointerMap<Node, NodeRef> given = replaced;
  for (const NodeRef* ref :
       nodes_in_order(outputs, [&](const Node& node) { return !given.contains(&node); })) {
    const Node& node = **ref;
    if (replaced.contains(&node)) continue;
    bool changes = false;
    std::vector<NodeRef> inputs = node.inputs;
    for (NodeRef& input : inputs) {
      const NodeRef* found = replaced.find(input.get());
      if (!found) continue;
      changes = true;
      input = *found;
    }
    if (changes) replaced[&node] = with_inputs(node, std::move(inputs));
  }
  std::vector<Tensor> out;
  for (const Tensor& output : outputs) {
    const NodeRef* found = replaced.find(output.node().get());
    out.push_back(found ? Tensor(*found) : output);
  }
  return out;
}

Tensor substitute(const Tensor& output, std::span<const Tensor> from, std::span<const Tensor> to) {
  return substitute(std::span<const Tensor>(&output, 1), from, to)[0];
}

}  // namespace imprint
