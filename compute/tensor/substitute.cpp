#include <unordered_map>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites.h"

namespace imprint {

using namespace tensor;

namespace {

using Replaced = std::unordered_map<const Node*, Tensor>;

// Inputs before what uses them, without recursion: training graphs are deep. A replaced node's inputs play no
// part: what lies behind them costs nothing.
std::vector<const NodeRef*> in_order(std::span<const Tensor> outputs, const Replaced& replaced) {
  std::vector<const NodeRef*> order;
  std::unordered_map<const Node*, bool> done;  // false: its inputs are pending
  std::vector<const NodeRef*> pending;
  for (const Tensor& output : outputs) pending.push_back(&output.node());
  while (!pending.empty()) {
    const NodeRef* node = pending.back();
    const auto [found, is_new] = done.try_emplace(node->get(), false);
    if (is_new && !replaced.contains(node->get())) {
      for (const NodeRef& input : (*node)->inputs)
        if (!done.contains(input.get())) pending.push_back(&input);
      continue;
    }
    pending.pop_back();
    if (found->second) continue;
    found->second = true;
    order.push_back(node);
  }
  return order;
}

}  // namespace

std::vector<Tensor> substitute(std::span<const Tensor> outputs, std::span<const Tensor> from,
                               std::span<const Tensor> to) {
  const auto failed = [&](Tensor error) { return std::vector<Tensor>(outputs.size(), error); };
  for (const std::span<const Tensor> list : {outputs, from, to})
    if (const Tensor* error = first_error(list)) return failed(*error);
  Replaced replaced;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i >= to.size() || from[i].shape() != to[i].shape() || from[i].dtype() != to[i].dtype())
      return failed(failure(ErrorCode::shape_mismatch, "substitute",
                            text("found ", i < to.size() ? describe(to[i]) : "nothing", " for ",
                                 describe(from[i]), ", expected equal shapes and dtypes")));
    replaced.insert_or_assign(from[i].node().get(), to[i]);
  }
  for (const NodeRef* ref : in_order(outputs, replaced)) {
    const Node& node = **ref;
    if (replaced.contains(&node)) continue;
    bool changes = false;
    std::vector<NodeRef> inputs = node.inputs;
    for (NodeRef& input : inputs) {
      const auto found = replaced.find(input.get());
      if (found == replaced.end()) continue;
      changes = true;
      input = found->second.node();
    }
    if (changes) replaced.insert_or_assign(&node, Tensor(with_inputs(node, std::move(inputs))));
  }
  std::vector<Tensor> out;
  for (const Tensor& output : outputs) {
    const auto found = replaced.find(output.node().get());
    out.push_back(found != replaced.end() ? found->second : output);
  }
  return out;
}

Tensor substitute(const Tensor& output, std::span<const Tensor> from, std::span<const Tensor> to) {
  return substitute(std::span<const Tensor>(&output, 1), from, to)[0];
}

}  // namespace imprint
