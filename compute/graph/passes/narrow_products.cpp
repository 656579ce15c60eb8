#include "compute/graph/passes/narrow_products.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "compute/graph/passes/narrow_constants.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {
namespace {

class Narrower {
 public:
  Narrower(Graph& graph, FusionRequest& request) : graph_(graph), request_(request) {}

  // tiled: products that stay in kernels of their own.
  void run(const std::vector<std::uint8_t>& chosen, const std::vector<std::uint8_t>& tiled) {
    std::vector<NodeIndex> new_index;
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      GraphNode node = graph_[i];
      for (NodeIndex& input : node.inputs) input = new_index[at(input)];
      if (chosen[at(i)])
        for (NodeIndex& input : node.inputs) input = narrowed(input);
      node.stays_tiled = node.stays_tiled || tiled[at(i)];
      new_index.push_back(add(std::move(node)));
    }
    graph_.nodes = std::move(nodes_);
    for (NodeIndex& root : graph_.roots) root = new_index[at(root)];
    request_.renumber(new_index);
  }

 private:
  NodeIndex add(GraphNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }

  // A view with no fewer elements than its source, so rounding can happen before or after it.
  bool is_as_small_behind(const GraphNode& node) const {
    const bool rearranges = node.kind() == OpKind::view || (node.op == Op::pad && node.floats[0] == 0);
    return rearranges && nodes_[at(node.inputs[0])].element_count() <= node.element_count();
  }

  // The value as float16, rounded where it has the fewest elements. Products that read it through different
  // views then share one copy.
  NodeIndex narrowed(NodeIndex index) {
    if (const auto known = narrowed_.find(index); known != narrowed_.end()) return known->second;
    GraphNode node = nodes_[at(index)];
    NodeIndex result = -1;
    constexpr std::int64_t kMany = 1 << 14;  // more than a region keeps in its memory
    if (node.op == Op::constant && node.element_count() >= kMany) {
      const auto& bytes = node.source->constant->bytes;
      std::vector<float> elements(bytes.size() / sizeof(float));
      std::memcpy(elements.data(), bytes.data(), bytes.size());
      result = add(narrow_constant(elements, node.shape, node.source));
    } else if (node.op == Op::cast && nodes_[at(node.inputs[0])].dtype == DType::float16) {
      result = node.inputs[0];
    } else if (is_as_small_behind(node)) {
      node.inputs[0] = narrowed(node.inputs[0]);
      node.dtype = DType::float16;
      result = add(std::move(node));
    } else {
      result = add({Op::cast, DType::float16, node.shape, {index}, {}, {}, node.source});
    }
    narrowed_.emplace(index, result);
    return result;
  }

  Graph& graph_;
  FusionRequest& request_;
  std::vector<GraphNode> nodes_;
  std::unordered_map<NodeIndex, NodeIndex> narrowed_;  // by index of the new nodes
};

}  // namespace

std::string narrow_products(Graph& graph, FusionRequest& request, const FusionOptions& options) {
  RegionMembers found;
  if (options.fuse && options.regions) found = find_regions(graph, request, options);
  std::vector<std::vector<NodeIndex>> nodes_of(found.regions.size());
  for (std::size_t i = 0; i < found.region_of.size(); ++i)
    if (found.region_of[i] >= 0) nodes_of[at(found.region_of[i])].push_back(static_cast<NodeIndex>(i));
  std::vector<std::uint8_t> suits;  // per region
  for (std::size_t r = 0; r < nodes_of.size(); ++r)
    suits.push_back(suits_matrix_units(graph, found, static_cast<std::int32_t>(r), nodes_of[r], options));
  std::vector<std::uint8_t> chosen(graph.nodes.size(), 0), tiled(graph.nodes.size(), 0);
  std::int64_t products = 0;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const GraphNode& node = graph[i];
    if (node.op != Op::matmul) continue;
    ++products;
    const std::int32_t region = found.region_of.empty() ? -1 : found.region_of[at(i)];
    const bool serves = region < 0 ? wants_tiles(graph, i, options) : suits[at(region)] != 0;
    chosen[at(i)] = serves && std::ranges::all_of(node.inputs, [&](NodeIndex input) {
                      return graph[input].dtype == DType::float32;
                    });
  }
  // Programs that do not train have the tiles of convolutions (product.h).
  for (NodeIndex i = 0; i < graph.size() && options.channels_last && request.updates.empty(); ++i)
    tiled[at(i)] = chosen[at(i)] && (found.region_of.empty() || found.region_of[at(i)] < 0);
  const std::int64_t narrowed = std::ranges::count(chosen, 1);
  if (narrowed > 0) Narrower(graph, request).run(chosen, tiled);
  return "mixed precision: " + std::to_string(narrowed) + " of " + std::to_string(products) +
         " products read float16";
}

}  // namespace imprint::graph
