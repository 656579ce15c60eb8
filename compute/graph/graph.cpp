#include "compute/graph/graph.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>

#include "compute/base/name_hash.h"
#include "compute/base/pointer_map.h"
#include "compute/tensor/int64_words.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {
namespace {

void add_page(Hasher& hasher, const tensor::LibraryPage& page) {
  hasher.text(page.name).text(page.glsl).text(page.shader).number(page.groups).number(page.group_size);
  hasher.number(page.outputs.size());
  for (const PageOutput& output : page.outputs) {
    hasher.number(output.dtype).number(output.shape.rank());
    for (std::int64_t extent : output.shape.extents()) hasher.number(extent);
  }
  hasher.number(page.constants.size());
  for (const auto& [name, value] : page.constants) hasher.text(name).number(value);
}

constexpr std::size_t kShortConstant = 1 << 16;  // bytes

void add_axis(Hasher& hasher, const std::vector<tensor::AxisPart>& parts) {
  hasher.number(parts.size());
  for (const tensor::AxisPart& part : parts) hasher.text(part.extent).number(part.bound).number(part.factor);
}

// Everything that determines the value of a node, given merged inputs.
// by_content: of constants; else the long ones by their place, so that a mapped file is not read.
Hash128 node_key(const GraphNode& node, std::int64_t lifted_position, bool by_content) {
  Hasher hasher;
  hasher.number(node.op).number(node.dtype).number(node.shape.rank());
  for (std::int64_t extent : node.shape.extents()) hasher.number(extent);
  if (node.shape.is_named())
    for (int axis = 0; axis < node.shape.rank(); ++axis) add_axis(hasher, node.shape.parts(axis));
  hasher.number(node.inputs.size());
  for (NodeIndex input : node.inputs) hasher.number(input);
  hasher.number(node.ints.size());
  for (std::int64_t value : node.ints) hasher.number(value);
  hasher.number(node.floats.size());
  for (double value : node.floats) hasher.number(value);
  if ((node.op == Op::constant || node.op == Op::custom) && node.source->constant) {
    const SharedBytes& bytes = node.source->constant->bytes;
    if (by_content || bytes.size() <= kShortConstant)
      hasher.bytes(bytes);
    else
      hasher.number(reinterpret_cast<std::uintptr_t>(bytes.data())).number(bytes.size());
  }
  if (node.op == Op::page) add_page(hasher, *node.source->page);
  if (node.op == Op::variable) hasher.number(reinterpret_cast<std::uintptr_t>(node.source->variable.get()));
  if (node.op == Op::input)
    hasher.text(node.source->label).number(node.source->constant ? lifted_position : -1);
  return hasher.digest();
}

using IndexOf = PointerMap<Node, NodeIndex>;

bool is_word(Op op) { return op == Op::int64_low || op == Op::int64_high; }
bool is_pair(const Node& node) {
  return node.op == Op::int64_pair || (node.op == Op::full && node.dtype == DType::int64);
}

// Graphs have no int64: its leaves are int32 [..., 2], and the words of a pair are values of their own.
class WordsOfInt64 {
 public:
  using Add = std::function<NodeIndex(GraphNode)>;
  WordsOfInt64(const IndexOf& index_of, Add add) : index_of_(index_of), add_(std::move(add)) {}

  // The word that a node int64_low or int64_high reads.
  NodeIndex word(const Node& node) { return word_of(node.inputs[0], node.op == Op::int64_low ? 0 : 1); }

  // All words of a pair that a program writes.
  Result<NodeIndex> together(const NodeRef& pair) {
    const Shape& shape = pair->shape;
    if (shape.rank() == Shape::kMaxRank)
      return make_error(ErrorCode::unsupported, "output: found int64 " + shape.text() +
                                                    ", expected at most 7 axes of int64. Reshape it first.");
    GraphNode all{Op::concat, DType::int32, tensor::shape_of_words(shape), {}, {shape.rank()}, {}, pair};
    for (const int place : {0, 1})
      all.inputs.push_back(
          add_({Op::reshape, DType::int32, with_last_axis(shape), {word_of(pair, place)}, {}, {}, pair}));
    return add_(std::move(all));
  }

 private:
  static Shape with_last_axis(Shape shape) {
    shape.append(1);
    return shape;
  }

  NodeIndex word_of(const NodeRef& of, int place) {
    if (of->op == Op::int64_pair) return *index_of_.find(of->inputs[at(place)].get());
    if (of->op == Op::full) {
      const double word = tensor::word_of_full(of->floats[0], place);
      return add_({Op::full, DType::int32, of->shape, {}, {}, {word}, of});
    }
    const NodeIndex leaf = *index_of_.find(of.get());
    std::vector<std::int64_t> starts_and_steps;
    for (int axis = 0; axis < of->shape.rank(); ++axis)
      starts_and_steps.insert(starts_and_steps.end(), {0, 1});
    starts_and_steps.insert(starts_and_steps.end(), {place, 1});
    const NodeIndex cut = add_(
        {Op::slice, DType::int32, with_last_axis(of->shape), {leaf}, std::move(starts_and_steps), {}, of});
    return add_({Op::reshape, DType::int32, of->shape, {cut}, {}, {}, of});
  }

  const IndexOf& index_of_;
  Add add_;
};

// Gives each an entry in `index_of`, still without its index.
std::vector<const NodeRef*> reachable_in_order(std::span<const Tensor> roots, IndexOf& index_of) {
  std::vector<const NodeRef*> found, stack;
  for (const Tensor& root : roots) stack.push_back(&root.node());
  while (!stack.empty()) {
    const NodeRef* node = stack.back();
    stack.pop_back();
    if (!index_of.try_emplace(node->get(), -1).second) continue;
    found.push_back(node);
    for (const NodeRef& input : (*node)->inputs) stack.push_back(&input);
  }
  // Creation order is a topological order: inputs exist before their users.
  std::ranges::sort(found, {}, [](const NodeRef* node) { return (*node)->id; });
  return found;
}

// The first node of each key. Without an allocation per node: graphs are large. A file can choose keys, so
// their slots follow from a number that each process draws.
class FirstOfKey {
 public:
  explicit FirstOfKey(std::size_t count) { resize(std::bit_ceil(2 * count + 2)); }

  // The node of the key; `next`, which is the number of keys so far, for a new one.
  NodeIndex find_or_add(const Hash128& key, NodeIndex next) {
    if (2 * (keys_.size() + 1) > table_.size()) resize(2 * table_.size());
    NodeIndex& slot = slot_of(key);
    if (slot >= 0) return slot;
    keys_.push_back(key);
    return slot = next;
  }

 private:
  NodeIndex& slot_of(const Hash128& key) {
    static const std::uint64_t kFactor = detail::drawn_key().low | 1;
    std::size_t slot = Hash128Hasher()(key) * kFactor >> 32 & (table_.size() - 1);
    while (table_[slot] >= 0 && keys_[at(table_[slot])] != key) slot = (slot + 1) & (table_.size() - 1);
    return table_[slot];
  }

  void resize(std::size_t size) {
    table_.assign(size, -1);
    for (std::size_t i = 0; i < keys_.size(); ++i) slot_of(keys_[i]) = static_cast<NodeIndex>(i);
  }

  std::vector<Hash128> keys_;     // per node
  std::vector<NodeIndex> table_;  // -1: free; its size is a power of two
};

// relu is where(x <= 0, 0, x), and its derivative tests x <= 0 again. relu(x) <= 0 gives the same answer, for
// NaN too. Then only relu needs x. Otherwise a kernel would keep x until the derivative.
class ReluConditions {
 public:
  void look_at(const Graph& graph, NodeIndex index) {
    const GraphNode& node = graph[index];
    if (node.op != Op::where || !is_zero(graph, node.inputs[1])) return;
    const GraphNode& condition = graph[node.inputs[0]];
    if (condition.op == Op::less_equal && condition.inputs[0] == node.inputs[2] &&
        is_zero(graph, condition.inputs[1]) && condition.shape == node.shape)
      relu_of_.try_emplace(node.inputs[0], index);
  }

  // The relu whose output can replace x in this condition, or -1.
  NodeIndex relu_of(NodeIndex condition) const {
    const auto found = relu_of_.find(condition);
    return found == relu_of_.end() ? -1 : found->second;
  }

 private:
  static bool is_zero(const Graph& graph, NodeIndex index) {
    return graph[index].op == Op::full && graph[index].floats[0] == 0;
  }

  std::unordered_map<NodeIndex, NodeIndex> relu_of_;
};

}  // namespace

Result<Graph> build_graph(std::span<const Tensor> roots, std::vector<NodeRef>* lifted) {
  for (const Tensor& root : roots)
    if (!root.ok()) return root.error();

  Graph graph;
  IndexOf index_of;
  const std::vector<const NodeRef*> found = reachable_in_order(roots, index_of);
  graph.nodes.reserve(found.size());
  FirstOfKey known(found.size());
  ReluConditions conditions;
  const auto add = [&](GraphNode node) {
    const NodeIndex index = known.find_or_add(
        node_key(node, lifted ? static_cast<std::int64_t>(lifted->size()) : 0, false), graph.size());
    if (index == graph.size()) {
      graph.nodes.push_back(std::move(node));
      conditions.look_at(graph, index);
    }
    return index;
  };
  WordsOfInt64 words(index_of, add);
  for (const NodeRef* reference : found) {
    const Node& node = **reference;
    if (node.op == Op::loop)
      return make_error(ErrorCode::unsupported,
                        "loop: found it in one graph, expected a program, which takes it apart");
    if (node.op == Op::stop_gradient) {  // only autodiff needs it
      *index_of.find(&node) = *index_of.find(node.inputs[0].get());
      continue;
    }
    if (is_pair(node)) continue;
    if (is_word(node.op)) {
      *index_of.find(&node) = words.word(node);
      continue;
    }
    GraphNode entry{node.op, node.dtype, node.shape, {}, node.ints, node.floats, *reference};
    if (node.dtype == DType::int64) {
      entry.dtype = DType::int32;
      entry.shape = tensor::shape_of_words(node.shape);
    }
    entry.inputs.reserve(node.inputs.size());
    for (const NodeRef& input : node.inputs) {
      const NodeIndex condition = *index_of.find(input.get()), relu = conditions.relu_of(condition);
      const bool is_relu_again =
          node.op == Op::where && relu >= 0 && *index_of.find(node.inputs[2].get()) == graph[relu].inputs[2];
      if (relu < 0 || is_relu_again) {
        entry.inputs.push_back(condition);
        continue;
      }
      GraphNode asked = graph[condition];
      asked.inputs[0] = relu;
      entry.inputs.push_back(add(std::move(asked)));
    }
    if (lifted && node.op == Op::constant) {
      entry.op = Op::input;
      lifted->push_back(*reference);
    }
    *index_of.find(&node) = add(std::move(entry));
  }
  for (const Tensor& root : roots) {
    graph.roots.push_back(*index_of.find(root.node().get()));
    if (is_pair(*root.node())) {
      IMPRINT_ASSIGN(graph.roots.back(), words.together(root.node()));
    }
  }
  return graph;
}

std::vector<std::vector<NodeIndex>> Graph::consumers() const {
  std::vector<std::vector<NodeIndex>> result(nodes.size());
  for (NodeIndex index = 0; index < size(); ++index)
    for (NodeIndex input : (*this)[index].inputs) result[static_cast<std::size_t>(input)].push_back(index);
  return result;
}

NodeIndex Graph::without_views(NodeIndex index) const {
  while ((*this)[index].kind() == OpKind::view) index = (*this)[index].inputs[0];
  return index;
}

std::vector<std::uint8_t> Graph::own_memory() const {
  std::vector<std::uint8_t> result(nodes.size(), 0);
  for (NodeIndex i = 0; i < size(); ++i) {
    const GraphNode& node = (*this)[i];
    result[at(i)] = node.kind() == OpKind::view || node.op == Op::cast
                        ? result[at(node.inputs[0])]
                        : node.op == Op::variable || node.op == Op::constant;
  }
  return result;
}

NodeIndex Graph::without_reshape(NodeIndex index) const {
  while ((*this)[index].op == Op::reshape) index = (*this)[index].inputs[0];
  return index;
}

Hash128 Graph::hash() const {
  Hasher hasher;
  std::int64_t lifted = 0;
  for (const GraphNode& node : nodes) {
    const Hash128 key = node_key(node, node.op == Op::input && node.source->constant ? ++lifted : 0, true);
    hasher.number(key.low).number(key.high);
  }
  for (NodeIndex root : roots) hasher.number(root);
  return hasher.digest();
}

std::string node_text(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  std::string text = node.source && !node.source->label.empty()
                         ? node.source->label
                         : std::string(op_info(node.op).name) + "#" + std::to_string(index);
  // Names come from files and games. Kernels contain them in comments, which end with the line.
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text + " " + std::string(dtype_name(node.dtype)) + node.shape.text();
}

}  // namespace imprint::graph
