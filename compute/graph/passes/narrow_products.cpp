#include "compute/graph/passes/narrow_products.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "compute/graph/passes/narrow_constants.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/product.h"
#include "compute/graph/schedule/region.h"
#include "compute/graph/schedule/request_queries.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {
namespace {

// The inputs that a page's kernel reads as float16.
std::vector<std::size_t> eights_of(const GraphNode& node) {
  return node.op == Op::page ? node.source->page->eights : std::vector<std::size_t>();
}

bool is_listed(const std::vector<std::size_t>& slots, std::size_t slot) {
  return std::ranges::find(slots, slot) != slots.end();
}

// Rounding can happen before or after such a node.
bool rearranges(const GraphNode& node) {
  return node.kind() == OpKind::view || (node.op == Op::pad && node.floats[0] == 0);
}

// One with all elements of its source.
bool keeps_all(const Graph& graph, const GraphNode& node) {
  return rearranges(node) && graph[node.inputs[0]].element_count() <= node.element_count();
}

// Where values are rounded, by nodes of the graph before.
class RoundedValues {
 public:
  RoundedValues(const Graph& graph, const FusionRequest& request, const std::vector<std::uint8_t>& chosen)
      : graph_(graph), chosen_(chosen), wanted_(graph.nodes.size()), whole_(graph.nodes.size()) {
    for (NodeIndex root : graph.roots) kept_.insert(root);
    for (const GraphOutput& output : request.outputs) kept_.insert(output.node);
    for (const GraphUpdate& update : request.updates)
      kept_.insert({update.value, update.rows, update.own_rows});
    std::vector<std::int64_t> parts(graph.nodes.size(), 0);
    for (NodeIndex i = graph.size() - 1; i >= 0; --i) {
      const GraphNode& node = graph[i];
      if (chosen[at(i)])
        for (NodeIndex input : node.inputs) wanted_[at(input)] = 1;
      for (const std::size_t slot : eights_of(node)) wanted_[at(node.inputs[slot])] = 1;
      if (!wanted_[at(i)] || node.inputs.empty()) continue;
      const NodeIndex source = node.inputs[0];
      if (keeps_all(graph, node)) {
        wanted_[at(source)] = 1;
      } else if (node.kind() == OpKind::view) {
        parts[at(source)] += node.element_count();
        whole_[at(source)] = parts[at(source)] >= graph[source].element_count();
        if (whole_[at(source)]) wanted_[at(source)] = 1;
      }
    }
  }

  // Whether parts of the value that are rounded, such as query, key and value of one product, are together no
  // smaller than the value.
  bool is_whole(NodeIndex index) const { return whole_[at(index)] != 0; }

  // A sum takes the rounded copy of a value that else only rounded operands read, such as a bias's gradient:
  // the value itself then needs no memory.
  bool is_sum_of_rounded(NodeIndex index) {
    if (graph_[index].op != Op::reduce_sum) return false;
    NodeIndex value = graph_[index].inputs[0];
    while (!wanted_[at(value)] && keeps_all(graph_, graph_[value])) value = graph_[value].inputs[0];
    while (wanted_[at(value)] && keeps_all(graph_, graph_[value])) value = graph_[value].inputs[0];
    if (!wanted_[at(value)] || graph_[value].kind() == OpKind::leaf || graph_[value].dtype != DType::float32)
      return false;
    return serves_rounded_only(value);
  }

  // An output of a kernel on matrix units whose readers all round it, such as the gradients of query, key and
  // value, which are parts of one value: the kernel stores it rounded.
  bool is_stored_rounded(NodeIndex index) {
    const GraphNode& node = graph_[index];
    const bool is_output = node.op == Op::page || node.op == Op::page_output;
    const NodeIndex page = node.op == Op::page_output ? node.inputs[0] : index;
    return is_output && node.dtype == DType::float32 && !eights_of(graph_[page]).empty() &&
           is_part_of_rounded(index);
  }

 private:
  bool is_part_of_rounded(NodeIndex value) {
    std::size_t readers = 0;
    for (const NodeIndex consumer : consumers_of(value)) {
      const GraphNode& node = graph_[consumer];
      if (node.op == Op::page_output) continue;  // another output
      ++readers;
      const bool joins_parts = node.op == Op::add && std::ranges::all_of(node.inputs, [&](NodeIndex input) {
                                 return graph_[input].op == Op::pad || graph_[input].op == Op::add;
                               });
      if (keeps_all(graph_, node) || joins_parts ? !is_part_of_rounded(consumer)
                                                 : !chosen_[at(consumer)] && !is_sum_of_rounded(consumer))
        return false;
    }
    return readers > 0 && !kept_.contains(value);
  }

  const std::vector<NodeIndex>& consumers_of(NodeIndex value) {
    if (consumers_.empty()) consumers_ = graph_.consumers();
    return consumers_[at(value)];
  }

  bool serves_rounded_only(NodeIndex value) {
    return !kept_.contains(value) && std::ranges::all_of(consumers_of(value), [&](NodeIndex consumer) {
      const GraphNode& node = graph_[consumer];
      const bool rounds = node.op == Op::cast && node.dtype == DType::float16;
      return chosen_[at(consumer)] || rounds || node.op == Op::reduce_sum ||
             (keeps_all(graph_, node) && serves_rounded_only(consumer));
    });
  }

  const Graph& graph_;
  const std::vector<std::uint8_t>& chosen_;
  std::vector<std::uint8_t> wanted_, whole_;
  std::set<NodeIndex> kept_;
  std::vector<std::vector<NodeIndex>> consumers_;
};

// Results of products, with their bias, that later kernels read: what an activation takes in, for its
// derivative, and gradients that a norm or an attention passes on. Later kernels read a rounded copy, half as
// many bytes, and compute cheap functions of it again. The product's own kernel does not round. Residual
// sums, scores and logits stay float32.
class RoundedResults {
 public:
  // chosen: the products that read float16, of a program that learns; empty: no results are rounded.
  RoundedResults(const Graph& graph, const FusionRequest& request, const FusionOptions& options,
                 const std::vector<std::uint8_t>& chosen)
      : graph_(graph),
        options_(options),
        chosen_(chosen),
        stage_(graph.nodes.size(), 0),
        stored_(graph.nodes.size(), 0),
        early_(graph.nodes.size(), 0) {
    if (chosen.empty()) return;
    consumers_ = graph.consumers();
    for (NodeIndex root : graph.roots) kept_.insert(root);
    for (const GraphOutput& output : request.outputs) kept_.insert(output.node);
    for (const GraphUpdate& update : request.updates)
      kept_.insert({update.value, update.rows, update.own_rows});
    for (NodeIndex i = 0; i < graph.size(); ++i) {
      for (NodeIndex input : graph[i].inputs) stage_[at(i)] = std::max(stage_[at(i)], stage_[at(input)]);
      stage_[at(i)] += !is_cheap(i) && graph[i].kind() != OpKind::leaf;
    }
    for (NodeIndex i = 0; i < graph.size(); ++i)
      if (chosen[at(i)] && is_finished_at_once(i))
        if (const NodeIndex value = with_bias(i); !kept_.contains(value) && is_read_later(value))
          stored_[at(value)] = 1;
    for (NodeIndex i = 0; i < graph.size(); ++i)
      early_[at(i)] = is_cheap(i) && std::ranges::any_of(graph[i].inputs, [&](NodeIndex input) {
                        return is_result(input) && stage_[at(input)] == stage_[at(i)];
                      });
  }

  bool is_stored(NodeIndex node) const { return stored_[at(node)] != 0; }
  // One that is stored, or what its kernel can compute from it.
  bool is_result(NodeIndex node) const { return stored_[at(node)] != 0 || early_[at(node)] != 0; }
  // Whether the reader of a result is in a later kernel.
  bool is_later(NodeIndex reader, NodeIndex result) const {
    return stage_[at(reader)] > stage_[at(result)] && !chosen_[at(reader)];
  }

 private:
  static constexpr std::int64_t kLeast = 1 << 16;  // elements

  bool is_cheap(NodeIndex node) const {
    return graph_[node].kind() == OpKind::elementwise || graph_[node].kind() == OpKind::view;
  }

  // Not in stretches (product_split.h), and not a convolution: images have rules of their own
  // (channels_last.h).
  bool is_finished_at_once(NodeIndex product) const {
    const Stretched kind = options_.matrix_units ? Stretched::on_matrix_units : Stretched::tiles;
    return !graph_[product].stays_tiled && graph_[product].element_count() >= kLeast &&
           !reads_windows(product) && product_stretches(product_shape(graph_, product), options_, kind) == 1;
  }

  bool reads_windows(NodeIndex product) const {
    return std::ranges::any_of(graph_[product].inputs, [&](NodeIndex input) {
      while (rearranges(graph_[input]) && graph_[input].op != Op::window) input = graph_[input].inputs[0];
      return graph_[input].op == Op::window;
    });
  }

  // The product plus a variable that its rows share, if nothing else reads the product.
  NodeIndex with_bias(NodeIndex product) const {
    NodeIndex sum = product;
    do {
      if (kept_.contains(sum) || consumers_[at(sum)].size() != 1) return product;
      sum = consumers_[at(sum)].front();
    } while (keeps_all(graph_, graph_[sum]));
    const bool has_bias =
        graph_[sum].op == Op::add && std::ranges::any_of(graph_[sum].inputs, [&](NodeIndex input) {
          const GraphNode& source = graph_[graph_.without_views(input)];
          return source.op == Op::variable && source.element_count() < graph_[sum].element_count();
        });
    return has_bias ? sum : product;
  }

  // Whether later kernels read the value as well, and it has several readers.
  bool is_read_later(NodeIndex value) const {
    std::vector<NodeIndex> stack{value};
    std::size_t readers = 0;
    bool is_late = false;
    while (!stack.empty()) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      for (const NodeIndex consumer : consumers_[at(node)]) {
        const GraphNode& reader = graph_[consumer];
        if (kept_.contains(consumer) || reader.op == Op::reduce_max) return false;
        if (keeps_all(graph_, reader)) {
          stack.push_back(consumer);
        } else {
          ++readers;
          is_late = is_late || is_later(consumer, value) || feeds_later(consumer, value);
        }
      }
    }
    return readers > 1 && is_late;
  }

  // Whether a later kernel reads what an early one computes from the value, not rounded as an operand.
  bool feeds_later(NodeIndex reader, NodeIndex value) const {
    return is_cheap(reader) && std::ranges::any_of(consumers_[at(reader)], [&](NodeIndex consumer) {
             return is_later(consumer, value);
           });
  }

  const Graph& graph_;
  const FusionOptions& options_;
  const std::vector<std::uint8_t>& chosen_;
  std::vector<std::vector<NodeIndex>> consumers_;
  std::vector<std::int32_t> stage_;  // per node: kernels, at least, on the longest path to it
  std::vector<std::uint8_t> stored_, early_;
  std::set<NodeIndex> kept_;
};

class Narrower {
 public:
  // has_arranged_images: of a program that learns (channels_last.h).
  Narrower(Graph& graph, FusionRequest& request, bool has_arranged_images)
      : graph_(graph), request_(request), has_arranged_images_(has_arranged_images) {}

  // tiled: products that stay in kernels of their own.
  void run(const std::vector<std::uint8_t>& chosen, const std::vector<std::uint8_t>& tiled,
           const RoundedResults& results) {
    RoundedValues rounded(graph_, request_, chosen);
    std::vector<NodeIndex>& new_index = new_index_;
    std::unordered_map<NodeIndex, NodeIndex>
        pages;  // whose own output is rounded, by index of the graph before
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      GraphNode node = graph_[i];
      const bool is_of_page = node.op == Op::page_output && pages.contains(node.inputs[0]);
      for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
        NodeIndex& input = node.inputs[slot];
        const bool reads_copy =
            results.is_result(input) && results.is_later(i, input) && !is_listed(eights_of(node), slot);
        input = is_of_page ? pages.at(input) : reads_copy ? copied(input, results) : new_index[at(input)];
      }
      if (chosen[at(i)])
        for (NodeIndex& input : node.inputs) input = narrowed(input);
      for (const std::size_t slot : eights_of(node)) node.inputs[slot] = narrowed(node.inputs[slot]);
      if (rounded.is_sum_of_rounded(i)) {
        const NodeIndex copy = narrowed(node.inputs[0]);
        node.inputs[0] = add({Op::cast, DType::float32, nodes_[at(copy)].shape, {copy}, {}, {}, node.source});
      }
      node.stays_tiled = node.stays_tiled || tiled[at(i)];
      const bool is_rounded = rounded.is_stored_rounded(i);
      if (is_rounded) node.dtype = DType::float16;
      const NodeIndex source = node.op == Op::cast && node.dtype == DType::float16 ? node.inputs[0] : -1;
      new_index.push_back(add(std::move(node)));
      // Products turned before (channels_last.h) read a copy that others can share.
      if (source >= 0 && nodes_[at(source)].dtype == DType::float32)
        narrowed_.emplace(source, new_index.back());
      if (is_rounded) {
        if (graph_[i].op == Op::page) pages.emplace(i, new_index.back());
        new_index.back() =
            add({Op::cast, DType::float32, graph_[i].shape, {new_index.back()}, {}, {}, graph_[i].source});
      }
      if (results.is_stored(i)) store_rounded(i);
      if (rounded.is_whole(i)) whole_.insert(new_index.back());
    }
    graph_.nodes = std::move(nodes_);
    for (NodeIndex& root : graph_.roots) root = new_index[at(root)];
    request_.renumber(new_index);
    if (!copies_.empty()) drop_unread();
  }

 private:
  NodeIndex add(GraphNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }

  // Functions of results whose readers all read those of the copies.
  void drop_unread() {
    std::vector<std::uint8_t> is_read(graph_.nodes.size(), 0);
    for (NodeIndex root : graph_.roots) is_read[at(root)] = 1;
    for (const GraphOutput& output : request_.outputs) is_read[at(output.node)] = 1;
    for (const GraphUpdate& update : request_.updates)
      for (NodeIndex node : {update.value, update.rows, update.own_rows})
        if (node >= 0) is_read[at(node)] = 1;
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      const OpKind kind = graph_[i].kind();
      is_read[at(i)] = is_read[at(i)] || (kind != OpKind::elementwise && kind != OpKind::view);
      if (is_read[at(i)])
        for (NodeIndex input : graph_[i].inputs) is_read[at(input)] = 1;
    }
    std::vector<NodeIndex> kept(graph_.nodes.size(), -1);
    nodes_.clear();
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      if (!is_read[at(i)]) continue;
      GraphNode node = std::move(graph_.nodes[at(i)]);
      for (NodeIndex& input : node.inputs) input = kept[at(input)];
      kept[at(i)] = add(std::move(node));
    }
    graph_.nodes = std::move(nodes_);
    for (NodeIndex& root : graph_.roots) root = kept[at(root)];
    request_.renumber(kept);
  }

  // Adds the result's rounded copy, for products and for later kernels.
  void store_rounded(NodeIndex result) {
    const GraphNode& node = graph_[result];
    GraphNode copy{Op::cast, DType::float16, node.shape, {new_index_[at(result)]}, {}, {}, node.source};
    copy.stays_tiled = true;  // has memory
    const NodeIndex narrow = add(std::move(copy));
    narrowed_.insert_or_assign(new_index_[at(result)], narrow);
    copies_.emplace(result, add({Op::cast, DType::float32, node.shape, {narrow}, {}, {}, node.source}));
  }

  // The result of a product, or a function of it, computed from the rounded copy.
  NodeIndex copied(NodeIndex result, const RoundedResults& results) {
    if (const auto known = copies_.find(result); known != copies_.end()) return known->second;
    GraphNode node = graph_[result];
    for (NodeIndex& input : node.inputs)
      input = results.is_result(input) ? copied(input, results) : new_index_[at(input)];
    const NodeIndex copy = add(std::move(node));
    copies_.emplace(result, copy);
    return copy;
  }

  // A view with no fewer elements than what is rounded, so rounding can happen before or after it.
  bool is_as_small_behind(const GraphNode& node) const {
    return rearranges(node) && !joins_scattered(node) &&
           (whole_.contains(node.inputs[0]) ||
            nodes_[at(node.inputs[0])].element_count() <= node.element_count());
  }

  // Whether a reshape joins axes that lie apart in memory, such as an image whose channels are last that a
  // linear layer reads: rounded behind it, the copy is in the layer's order.
  bool joins_scattered(const GraphNode& reshape) const {
    if (!has_arranged_images_ || reshape.op != Op::reshape) return false;
    const GraphNode& turned = nodes_[at(reshape.inputs[0])];
    if (turned.op != Op::permute) return false;
    NodeIndex source = turned.inputs[0];
    for (; rearranges(nodes_[at(source)]); source = nodes_[at(source)].inputs[0])
      if (nodes_[at(source)].op == Op::window) return false;
    if (nodes_[at(source)].kind() == OpKind::leaf) return false;
    const Shape& whole = nodes_[at(turned.inputs[0])].shape;
    int from = 0;
    for (std::int64_t extent : reshape.shape.extents()) {
      std::int64_t next = -1;  // axis of the source that lies behind the last one
      for (; extent > 1 && from < turned.shape.rank(); ++from) {
        if (turned.shape[from] == 1) continue;
        if (extent % turned.shape[from] != 0) return false;
        if (next >= 0 && turned.ints[at(from)] != next) return true;
        extent /= turned.shape[from];
        next = turned.ints[at(from)] + 1;
        while (next < whole.rank() && whole[static_cast<int>(next)] == 1) ++next;
      }
    }
    return false;
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
  const bool has_arranged_images_;
  std::vector<GraphNode> nodes_;
  std::vector<NodeIndex> new_index_;                   // per node of the graph before
  std::unordered_map<NodeIndex, NodeIndex> copies_;    // by index of the graph before
  std::unordered_map<NodeIndex, NodeIndex> narrowed_;  // by index of the new nodes
  std::set<NodeIndex> whole_;                          // RoundedValues::is_whole, of the new nodes
};

// Values that have a rounded copy, arranged for products before (channels_last.h).
std::vector<std::uint8_t> values_with_copies(const Graph& graph) {
  std::vector<std::uint8_t> result(graph.nodes.size(), 0);
  for (const GraphNode& node : graph.nodes)
    if (node.op == Op::cast && node.dtype == DType::float16) result[at(node.inputs[0])] = 1;
  return result;
}

// Whether matrix units are faster for the product of a program that learns: windows of images that are not
// arranged are packed one by one.
bool serves_learning(const Graph& graph, NodeIndex product, const std::vector<std::uint8_t>& has_copy,
                     const FusionOptions& options) {
  const bool is_arranged = std::ranges::any_of(graph[product].inputs, [&](NodeIndex input) {
    bool windows = false;
    while (!(windows && has_copy[at(input)])) {
      if (!rearranges(graph[input])) return false;
      windows = windows || graph[input].op == Op::window;
      input = graph[input].inputs[0];
    }
    return true;
  });
  return is_arranged || packing_is_faster(graph, product, options);
}

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
  const bool is_step = learns(graph, request);
  const std::vector<std::uint8_t> has_copy = values_with_copies(graph);
  std::int64_t products = 0;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const GraphNode& node = graph[i];
    if (node.op != Op::matmul) continue;
    ++products;
    const std::int32_t region = found.region_of.empty() ? -1 : found.region_of[at(i)];
    const Shape& shape = node.shape;
    const bool serves = region < 0
                            ? wants_tiles(graph, i, options) &&
                                  fills_tiles(shape[shape.rank() - 2], shape[shape.rank() - 1], 1, options)
                            : suits[at(region)] != 0;
    chosen[at(i)] = serves && (region >= 0 || !is_step || serves_learning(graph, i, has_copy, options)) &&
                    std::ranges::all_of(
                        node.inputs, [&](NodeIndex input) { return graph[input].dtype == DType::float32; });
  }
  // Programs that do not train have the tiles of convolutions (product.h).
  for (NodeIndex i = 0; i < graph.size() && options.channels_last && !is_step; ++i)
    tiled[at(i)] = chosen[at(i)] && (found.region_of.empty() || found.region_of[at(i)] < 0);
  const std::int64_t narrowed = std::ranges::count(chosen, 1);
  const bool has_pages =
      std::ranges::any_of(graph.nodes, [](const GraphNode& node) { return !eights_of(node).empty(); });
  if (narrowed > 0 || has_pages)
    Narrower(graph, request, is_step && std::ranges::count(has_copy, 1) > 0)
        .run(chosen, tiled,
             RoundedResults(graph, request, options, is_step ? chosen : std::vector<std::uint8_t>()));
  return "mixed precision: " + std::to_string(narrowed) + " of " + std::to_string(products) +
         " products read float16";
}

}  // namespace imprint::graph
