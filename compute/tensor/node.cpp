#include "compute/tensor/node.h"

#include "compute/tensor/build.h"
#include "compute/tensor/int64_nodes.h"
#include "compute/tensor/made_nodes.h"

namespace imprint::tensor {

Node::~Node() {
  // A training graph is a chain of thousands of nodes. Releasing it recursively would overflow a small stack.
  std::vector<NodeRef> pending = std::move(inputs);
  while (!pending.empty()) {
    NodeRef node = std::move(pending.back());
    pending.pop_back();
    if (node.use_count() != 1) continue;
    // The last owner may take the node apart: no other code sees it.
    std::vector<NodeRef>& inputs_of_last = const_cast<Node&>(*node).inputs;
    for (NodeRef& input : inputs_of_last) pending.push_back(std::move(input));
    inputs_of_last.clear();
  }
}

std::string describe(const Node& node) {
  const std::string name = node.label.empty() ? std::string(op_info(node.op).name) : node.label;
  return name + " " + node.shape.text();
}

std::string describe(const Tensor& tensor) {
  return tensor.ok() ? describe(*tensor.node()) : "a failed tensor";
}

namespace {

thread_local std::uint64_t made_here = 0;

std::uint64_t next_id() {
  ++made_here;
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::uint64_t made_nodes() { return made_here; }

void count_table(std::int64_t elements) {
  made_here += static_cast<std::uint64_t>(elements / kElementsPerNode);
}

NodeRef with_inputs(const Node& node, std::vector<NodeRef> inputs) {
  return with_inputs(node, std::move(inputs), node.page);
}

NodeRef with_inputs(const Node& node, std::vector<NodeRef> inputs, std::shared_ptr<const LibraryPage> page) {
  auto made = std::make_shared<Node>();
  made->op = node.op;
  made->dtype = node.dtype;
  made->shape = node.shape;
  made->inputs = std::move(inputs);
  made->ints = node.ints;
  made->floats = node.floats;
  made->constant = node.constant;
  made->variable = node.variable;
  made->page = std::move(page);
  made->loop = node.loop;
  made->label = node.label;
  made->id = next_id();
  return made;
}

Tensor make(Op op, std::span<const Tensor> inputs, Attributes attributes) {
  if (const Tensor* failed = first_error(inputs)) return *failed;
  if (std::optional<Tensor> made = made_of_words(op, inputs, attributes)) return *made;
  std::vector<NodeRef> refs;
  refs.reserve(inputs.size());
  for (const Tensor& input : inputs) refs.push_back(input.node());

  Result<Inferred> inferred = infer(op, refs, attributes);
  if (!inferred) return Tensor(std::move(inferred).error());
  if (has_named_axes(refs, attributes)) {
    if (Result<> named = name_axes(op, refs, attributes, inferred->shape); !named)
      return Tensor(named.error());
  }

  auto node = std::make_shared<Node>();
  node->op = op;
  node->dtype = inferred->dtype;
  node->shape = inferred->shape;
  node->inputs = std::move(refs);
  node->ints = std::move(attributes.ints);
  node->floats = std::move(attributes.floats);
  node->id = next_id();
  return Tensor(NodeRef(std::move(node)));
}

Tensor make(Op op, std::initializer_list<Tensor> inputs, Attributes attributes) {
  return make(op, std::span<const Tensor>(inputs.begin(), inputs.size()), std::move(attributes));
}

}  // namespace imprint::tensor
