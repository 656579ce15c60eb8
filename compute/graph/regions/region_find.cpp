#include "compute/graph/regions/region_find.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compute/graph/axis_map.h"
#include "compute/graph/number_set.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/product.h"
#include "compute/graph/schedule/request_queries.h"

namespace imprint::graph {
namespace {

// Weights of a product that every workgroup could read from end to end: 512 x 512.
constexpr std::int64_t kMostPartials = 1 << 19;  // elements of all partial results of one weight gradient
constexpr std::int64_t kMostWeights = 1 << 18;

class RegionFinder {
 public:
  RegionFinder(const Graph& graph, const FusionRequest& request, const FusionOptions& options,
               const RegionLimits& limits)
      : graph_(graph),
        request_(request),
        learns_(learns(graph, request)),
        options_(options),
        limits_(limits),
        classes_(graph),
        consumers_(graph.consumers()) {
    role.assign(graph.nodes.size(), RowRole::outside);
    row_class_.assign(graph.nodes.size(), -1);
    region_of.assign(graph.nodes.size(), -1);
    phase.assign(graph.nodes.size(), 0);
  }

  void run() {
    find_batches();
    const std::vector<std::vector<NodeIndex>> candidates = nodes_of_batches();
    for (std::size_t b = 0; b < batches_.size(); ++b)
      for (NodeIndex i : candidates[b])
        if (role[at(i)] == RowRole::outside) classify(batches_[b], i);
    number_phases();
    sink();
    cut();
    make_regions();
  }

  int row_axis(NodeIndex i) const {
    return role[at(i)] == RowRole::row ? classes_.axis_in(graph_, i, regions[at(region_of[at(i)])].row_class)
                                       : -1;
  }
  int group_axis(NodeIndex i) const {
    if (role[at(i)] != RowRole::row) return -1;
    const RegionNodes& region = regions[at(region_of[at(i)])];
    return region.group_class < 0 ? -1 : classes_.axis_in(graph_, i, region.group_class);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = notes_;
    if (large_.size() > 0)
      notes.push_back(std::to_string(large_.size()) +
                      " products stay outside of row-local regions, each of more than " +
                      std::to_string(options_.region_weights) +
                      " weights, which kernels of their own compute faster, in more dispatches");
    return notes;
  }

  std::vector<RegionNodes> regions;
  std::vector<RowRole> role;
  std::vector<std::int32_t> region_of, phase;

 private:
  struct Batch {
    AxisClass rows, groups;
  };  // groups: the axis of parallel networks; -1: none
  static constexpr AxisClass kDisagree = -2;

  // ---- batches ----

  // A batch runs through contractions with weights and is never an axis of the weights. Weights on the right
  // are found first, as in layers: this tells what a batch is. Then the program's own data (a data set) is
  // not mistaken for left-hand weights in a weight gradient.
  void find_batches() {
    std::unordered_set<AxisClass> features;
    std::unordered_map<AxisClass, std::size_t> batch_of;
    const std::vector<std::uint8_t> is_weight = graph_.own_memory();
    for (const bool right : {true, false})
      for (NodeIndex i = 0; i < graph_.size(); ++i) {
        const GraphNode& node = graph_[i];
        if (node.op != Op::matmul || !is_weight[at(node.inputs[right ? 1 : 0])]) continue;
        const int rank = node.shape.rank();
        const NodeIndex weights = node.inputs[right ? 1 : 0];
        const auto is_batch = [&](int axis) { return batch_of.contains(classes_.of(weights, axis)); };
        if (!right && (is_weight[at(node.inputs[1])] || is_batch(rank - 2) || is_batch(rank - 1))) continue;
        features.insert(classes_.of(weights, rank - 2));
        features.insert(classes_.of(weights, rank - 1));
        if (rank > 3) continue;
        const Batch batch{classes_.of(i, right ? rank - 2 : rank - 1), rank == 3 ? classes_.of(i, 0) : -1};
        const auto [known, fresh] = batch_of.try_emplace(batch.rows, batches_.size());
        if (fresh)
          batches_.push_back(batch);
        else if (batches_[known->second].groups != batch.groups)
          batches_[known->second].groups = kDisagree;
      }
    std::erase_if(batches_, [&](const Batch& batch) {
      return features.contains(batch.rows) || batch.rows == batch.groups || batch.groups == kDisagree;
    });
    for (const GraphNode& node : graph_.nodes)
      if (node.op == Op::matmul)
        learned_.insert(classes_.of(node.inputs[0], graph_[node.inputs[0]].shape.rank() - 1));
  }

  // Per batch, ascending: the nodes that could belong to it, which have its rows or read a value that has.
  // A product is also looked at once for a batch that it has nothing to do with, to note its size. Linear in
  // the axes of all nodes and their inputs.
  std::vector<std::vector<NodeIndex>> nodes_of_batches() const {
    std::unordered_map<AxisClass, std::size_t> batch_of;
    for (std::size_t b = 0; b < batches_.size(); ++b) batch_of.emplace(batches_[b].rows, b);
    std::vector<std::vector<NodeIndex>> result(batches_.size());
    if (batches_.empty()) return result;
    std::set<std::size_t> own;
    const auto add = [&](NodeIndex node) {
      for (int axis = 0; axis < graph_[node].shape.rank(); ++axis)
        if (const auto found = batch_of.find(classes_.of(node, axis)); found != batch_of.end())
          own.insert(found->second);
    };
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      own.clear();
      add(i);
      for (NodeIndex input : graph_[i].inputs) add(input);
      if (graph_[i].op == Op::matmul) {
        std::size_t other = 0;
        while (own.contains(other)) ++other;
        if (other < batches_.size()) own.insert(other);
      }
      for (std::size_t b : own) result[b].push_back(i);
      count_steps(options_, 1 + static_cast<std::int64_t>(graph_[i].inputs.size()));
    }
    return result;
  }

  // ---- membership ----

  void classify(const Batch& batch, NodeIndex index) {
    const GraphNode& node = graph_[index];
    if (is_memory_leaf(node) || classes_.is_wildcard(index) || node.element_count() == 0 ||
        node.kind() == OpKind::scan || node.kind() == OpKind::page || stays_apart(node, options_))
      return;
    const int row = classes_.axis_in(graph_, index, batch.rows);
    if (row == -2) return;
    if (node.op == Op::matmul && is_left_out(batch, index, row)) return;
    if (batch.groups >= 0 && row >= 0) {
      const int group = classes_.axis_in(graph_, index, batch.groups);
      if (group < 0 || !keeps_axis(index, group, batch.groups)) return;
    }
    if (row >= 0) {
      if (!keeps_axis(index, row, batch.rows)) return;
      // Accepts products of one matrix per network; products with more leading axes get their own kernels.
      const bool is_plain = batch.groups >= 0
                                ? node.shape.rank() == 3 && classes_.of(index, 0) == batch.groups
                                : node.shape.rank() == 2;
      if (node.op == Op::matmul && !is_plain) return;
      role[at(index)] = RowRole::row;
    } else {
      if (!folds_rows(batch, index)) return;
      role[at(index)] = RowRole::fold;
    }
    row_class_[at(index)] = batch.rows;
  }

  // Whether the product is left to tiled kernels.
  bool is_left_out(const Batch& batch, NodeIndex index, int row) {
    const std::int64_t weights = weight_count(index, row);
    if (weights > kMostWeights || graph_[index].stays_tiled) return true;
    if (row < 0 && wants_tiles(graph_, index, options_)) {
      // Each workgroup would leave a partial result of all weights.
      const std::int64_t groups = std::min(options_.region_groups, fold_length(graph_, index) / 2);
      if (groups * weights > kMostPartials) return true;
    }
    if (weights <= options_.region_weights || !wants_tiles(graph_, index, options_) ||
        !tiles_are_faster(batch, index, row))
      return false;
    large_.insert(index);
    return true;
  }

  // For a layer as a whole: its product, and where the batch is learned from both gradients.
  bool tiles_are_faster(const Batch& batch, NodeIndex index, int row) const {
    const GraphNode& node = graph_[index];
    const int rank = node.shape.rank();
    const std::int64_t terms = fold_length(graph_, index);
    if (options_.product_turn_operations > 0)
      return node.element_count() * terms >= options_.region_operations;
    const std::int64_t groups = batch.groups >= 0 && rank == 3 ? node.shape[0] : 1;
    const std::int64_t rows = row < 0 ? terms : node.shape[row];
    const std::int64_t in = row < 0 ? node.shape[rank - 2] : terms,
                       out = row < 0 ? node.shape[rank - 1] : node.element_count() / (groups * rows);
    RegionLayer layer{.rows = rows, .in = in, .out = out, .groups = groups, .infers = !learns_};
    // Attention folds the rows of a single sequence too, which is no learning.
    layer.learns = learned_.contains(batch.rows) && (learns_ || !options_.channels_last);
    layer.row_block = std::min(std::clamp(wanted_rows(rows, groups, layer.learns).first,
                                          layer.learns ? options_.region_fold_rows : 1, options_.region_rows),
                               power_of(rows));
    return tiles_are_faster_than_region(layer, options_);
  }

  static std::int64_t power_of(std::int64_t n) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n))));
  }

  // Rows of a workgroup that fills the device together with the others, and whether there are more workgroups
  // than that, since each still has enough rows for its partial results.
  std::pair<std::int64_t, bool> wanted_rows(std::int64_t rows, std::int64_t groups, bool folds) const {
    constexpr std::int64_t kEnough = 8;
    const auto rows_for = [&](std::int64_t workgroups) {
      return power_of((rows * groups + workgroups - 1) / workgroups);
    };
    const std::int64_t many = rows_for(options_.region_fold_groups);
    const bool are_many = folds && groups == 1 && many >= kEnough;
    return {are_many ? many : rows_for(options_.region_groups), are_many};
  }

  // Elements of the single matrix that a product with rows along this axis reads, or that a sum over all rows
  // gives; -1: neither.
  std::int64_t weight_count(NodeIndex index, int row) const {
    const Shape& shape = graph_[index].shape;
    const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
    return row < 0 ? rows * columns : (row + 1 == shape.rank() ? rows : columns) * fold_length(graph_, index);
  }

  bool is_row(NodeIndex index, AxisClass rows) const {
    return role[at(index)] == RowRole::row && row_class_[at(index)] == rows;
  }

  bool folds_rows(const Batch& batch, NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (node.op == Op::matmul) {
      const int rank = node.shape.rank();
      if (rank != (batch.groups >= 0 ? 3 : 2)) return false;
      if (batch.groups >= 0 && classes_.of(index, 0) != batch.groups) return false;
      const bool any = is_row(node.inputs[0], batch.rows) || is_row(node.inputs[1], batch.rows);
      return any && classes_.axis_in(graph_, node.inputs[0], batch.rows) == rank - 1 &&
             classes_.axis_in(graph_, node.inputs[1], batch.rows) == rank - 2;
    }
    if (!tensor::is_plain_fold(node.op)) return false;
    const NodeIndex input = node.inputs[0];
    if (!is_row(input, batch.rows)) return false;
    return std::ranges::find(node.ints, classes_.axis_in(graph_, input, batch.rows)) != node.ints.end();
  }

  // Whether the element at one position along the axis depends only on the inputs' elements at that position,
  // for inputs that have the axis.
  bool keeps_axis(NodeIndex index, int axis, AxisClass axis_class) const {
    const GraphNode& node = graph_[index];
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const NodeIndex input = node.inputs[slot];
      const int from_axis = classes_.is_wildcard(input) ? -1 : classes_.axis_in(graph_, input, axis_class);
      if (from_axis == -1) continue;
      if (from_axis == -2 || !is_same_axis(node, graph_[input].shape, slot, from_axis, axis)) return false;
    }
    return true;
  }

  // ---- order ----

  void number_phases() {
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      for (NodeIndex input : graph_[i].inputs) {
        const RowRole from = role[at(input)];
        const bool leaves =
            from == RowRole::fold || (from == RowRole::row && row_class_[at(input)] != row_class_[at(i)]);
        phase[at(i)] = std::max(phase[at(i)], phase[at(input)] + (leaves ? 1 : 0));
      }
  }

  // A node that only later phases need moves to the first of them. A fold between forward and backward pass
  // then does not separate the two.
  void sink() {
    std::vector<std::uint8_t> asked(graph_.nodes.size(), 0);
    for (const GraphOutput& output : request_.outputs) asked[at(output.node)] = 1;
    for (const GraphUpdate& update : request_.updates)
      for (const NodeIndex node : {update.value, update.rows})
        if (node >= 0) asked[at(node)] = 1;
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      if (role[at(i)] != RowRole::row || asked[at(i)] || consumers_[at(i)].empty()) continue;
      std::int32_t first = INT32_MAX;
      for (NodeIndex consumer : consumers_[at(i)])
        first = std::min(first,
                         row_class_[at(consumer)] == row_class_[at(i)] ? phase[at(consumer)] : phase[at(i)]);
      phase[at(i)] = std::max(phase[at(i)], first);
    }
  }

  // Nodes of one batch and phase: a region if one of them is a product.
  using Key = std::pair<AxisClass, std::int32_t>;

  // Cuts what does not fit into one region into parts of consecutive nodes. Each part begins with a product,
  // where the least is in flight. Phases of parts follow one another, before the next phase.
  void cut() {
    uncut_phase_ = phase;
    part_.assign(graph_.nodes.size(), 0);
    std::map<Key, std::vector<NodeIndex>> nodes;
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (role[at(i)] != RowRole::outside) nodes[{row_class_[at(i)], phase[at(i)]}].push_back(i);
    for (const auto& [key, own] : nodes) {
      for (NodeIndex i : own)
        if (role[at(i)] == RowRole::fold) partial_elements_[key] += graph_[i].element_count();
      const auto limit = limits_.find(key);
      std::size_t parts = limit == limits_.end() ? 1 : at(limit->second.parts);
      if (parts > 1 || own.size() > options_.region_nodes)
        parts = std::max({parts, std::size_t{2}, own.size() / options_.region_part_nodes});
      std::int32_t part = 0;
      for (std::size_t n = 0; parts > 1 && n < own.size(); ++n) {
        if (is_row_product(own[n]) && n * parts / own.size() > at(part)) ++part;
        part_[at(own[n])] = part;
      }
      parts_[key] = part + 1;
    }
    count_steps(options_, graph_.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> order;
    for (NodeIndex i = 0; i < graph_.size(); ++i) order.emplace_back(phase[at(i)], part_[at(i)]);
    std::ranges::sort(order);
    order.erase(std::ranges::unique(order).begin(), order.end());
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      phase[at(i)] = static_cast<std::int32_t>(
          std::ranges::lower_bound(order, std::pair(uncut_phase_[at(i)], part_[at(i)])) - order.begin());
  }

  bool is_row_product(NodeIndex i) const { return graph_[i].op == Op::matmul && role[at(i)] == RowRole::row; }

  void make_regions() {
    for (std::size_t b = 0; b < batches_.size(); ++b) batch_at_.emplace(batches_[b].rows, b);
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (role[at(i)] != RowRole::outside) nodes_[{row_class_[at(i)], phase[at(i)]}].push_back(i);
    std::map<Key, std::int32_t> region_at;  // -1: the rows of this key cannot form a region
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      if (!is_row_product(i)) continue;
      const Key key{row_class_[at(i)], phase[at(i)]};
      const auto [known, fresh] = region_at.try_emplace(key, -1);
      if (fresh && add_region(key, i)) known->second = static_cast<std::int32_t>(regions.size()) - 1;
    }
    for (const auto& [key, nodes] : nodes_) {
      const auto found = region_at.find(key);
      const std::int32_t region = found == region_at.end() ? -1 : found->second;
      for (NodeIndex i : nodes) {
        region_of[at(i)] = region;
        if (region < 0) role[at(i)] = RowRole::outside;
      }
    }
  }

  // Linear in the nodes of the key. False: no row, or too much memory, for a workgroup.
  bool add_region(const Key& key, NodeIndex matmul) {
    if (is_of_lone_products(key)) return false;
    const Batch& batch = batches_[batch_at_.at(key.first)];
    RegionNodes region;
    region.row_class = batch.rows;
    region.group_class = batch.groups;
    region.phase = key.second;
    region.uncut_phase = uncut_phase_[at(matmul)];
    region.part = part_[at(matmul)];
    region.parts = parts_.at(region.uncut());
    region.nodes = static_cast<std::int64_t>(nodes_.at(key).size());
    region.products = std::ranges::count_if(nodes_.at(key), [&](NodeIndex i) { return is_row_product(i); });
    region.rows = graph_[matmul].shape[classes_.axis_in(graph_, matmul, batch.rows)];
    if (batch.groups >= 0)
      region.groups = graph_[matmul].shape[classes_.axis_in(graph_, matmul, batch.groups)];
    std::int64_t partial_elements = 0;
    for (NodeIndex i : nodes_.at(key))
      if (role[at(i)] == RowRole::fold) partial_elements += graph_[i].element_count();
    count_steps(options_, static_cast<std::int64_t>(nodes_.at(key).size()));
    const bool folds = partial_elements > 0;

    // First enough workgroups to fill the device. Then more rows each, so that weights are read and partial
    // results stored less often.
    const std::int64_t fewest = !folds ? 1
                                : partial_elements <= options_.region_few_partials
                                    ? options_.region_fold_rows / 2
                                    : options_.region_fold_rows;
    const auto [wanted, few_leave_results] = wanted_rows(region.rows, region.groups, folds);
    // A single layer keeps no rows between products: more workgroups hide memory latency.
    const std::int64_t most = folds || chains_products(key) ? options_.region_rows : options_.region_rows / 2;
    std::int64_t block = std::clamp<std::int64_t>(wanted, fewest, most);
    block = std::min(block, power_of(region.rows));
    const std::int64_t wanted_block = few_leave_results ? std::max(wanted, block) : block;  // of all turns
    block = std::min<std::int64_t>(block, most_rows(region));
    if (block < 1) return false;
    if (nodes_.at(key).size() > options_.region_nodes) {
      notes_.push_back("a row-local region over " + std::to_string(region.rows) + " rows has " +
                       std::to_string(nodes_.at(key).size()) +
                       " nodes behind one product, expected at most " +
                       std::to_string(options_.region_nodes) + "; it becomes separate kernels");
      return false;
    }
    region.kernel = kernel_of(key, region);
    region.row_block = choose_rows(static_cast<std::int32_t>(block), partial_elements, region);
    block = region.row_block;
    region.blocks = (region.rows + block - 1) / block;
    region.invocations = choose_invocations(usual_invocations(key, region, folds), region);
    region.may_turn = folds && sums_fit(region);
    if (region.may_turn) {
      region.turns =
          choose_turns(static_cast<std::int32_t>(std::max<std::int64_t>(1, wanted_block / block)), region);
      region.blocks = (region.rows + block * region.turns - 1) / (block * region.turns);
    }
    // Counts all parts: cutting spares no partial results.
    const std::int64_t all_partials = folds ? partial_elements_.at(region.uncut()) : 0;
    if (!partials_fit(all_partials, region.blocks)) {
      notes_.push_back("a row-local region over " + std::to_string(region.rows) + " rows needs " +
                       std::to_string(4 * all_partials * region.blocks) +
                       " bytes for partial results, expected at most " +
                       std::to_string(options_.region_partial_bytes) + "; it becomes separate kernels");
      return false;
    }
    regions.push_back(region);
    return true;
  }

  // Whether a product of the region uses results of another product.
  bool chains_products(const Key& key) const {
    NumberSet follows;
    for (NodeIndex i : nodes_.at(key)) {
      if (role[at(i)] != RowRole::row) continue;
      const bool is_product = graph_[i].op == Op::matmul;
      const bool is_behind =
          std::ranges::any_of(graph_[i].inputs, [&](NodeIndex input) { return follows.contains(input); });
      if (is_product && is_behind) return true;
      if (is_product || is_behind) follows.insert(i);
    }
    return false;
  }

  // Products that use no other's results. Without learning, kernels of their own also compute what follows.
  bool is_of_lone_products(const Key& key) const {
    return !learns_ && options_.product_turn_operations == 0 && !chains_products(key) &&
           std::ranges::all_of(nodes_.at(key), [&](NodeIndex i) {
             return graph_[i].kind() == OpKind::view || wants_tiles(graph_, i, options_);
           });
  }

  bool partials_fit(std::int64_t elements, std::int64_t blocks) const {
    return blocks == 1 || 4 * elements * blocks <= options_.region_partial_bytes;
  }

  std::string kernel_of(const Key& key, const RegionNodes& region) const {
    return "region " + std::to_string(region.rows) + " rows" +
           (region.groups > 1 ? " of " + std::to_string(region.groups) : std::string()) + " " +
           signature(graph_, nodes_.at(key));
  }

  // The largest block of rows that earlier attempts leave.
  std::int32_t most_rows(const RegionNodes& region) const {
    const auto limit = limits_.find(region.uncut());
    if (limit == limits_.end()) return INT32_MAX;
    const auto rows = limit->second.row_blocks.find(region.part);
    return rows == limit->second.row_blocks.end() ? INT32_MAX : rows->second;
  }

  std::int32_t choose_rows(std::int32_t usual, std::int64_t partial_elements, RegionNodes& region) const {
    std::vector<Variant> variants;
    std::vector<std::int32_t> numbers;
    for (std::int32_t rows = std::max(1, usual / 4);
         rows <= std::min<std::int64_t>(4 * usual, power_of(region.rows)); rows *= 2) {
      if (rows > most_rows(region)) break;
      if (rows != usual && !partials_fit(partial_elements, (region.rows + rows - 1) / rows)) continue;
      numbers.push_back(rows);
      variants.push_back({std::to_string(rows) + " rows a workgroup",
                          std::abs(std::log2(static_cast<double>(rows) / usual))});
    }
    return numbers[choose_variant(options_.variants, region.kernel + " rows", variants, region.choices)];
  }

  // If only products take long and workgroups wait for each other, uses no more invocations than the largest
  // product has 4 x 4 tiles. A workgroup with a multiprocessor to itself divides long products further. On
  // matrix units every subgroup takes its own rows.
  std::int32_t usual_invocations(const Key& key, const RegionNodes& region, bool folds) const {
    const bool on_units =
        options_.narrow_products && options_.matrix_units && region.rows >= options_.region_narrow_rows;
    if (folds || on_units || !options_.region_vectors) return options_.region_invocations;
    std::int64_t outputs = 64 * 16, operations = 0;  // at least 64 tiles
    for (NodeIndex i : nodes_.at(key)) {
      if (role[at(i)] != RowRole::row || graph_[i].op != Op::matmul) continue;
      const std::int64_t count = graph_[i].element_count() / (region.rows * region.groups) * region.row_block;
      outputs = std::max(outputs, count);
      operations = std::max(operations, count * fold_length(graph_, i));
    }
    const std::int32_t usual = options_.region_invocations, twice = 2 * usual;
    if (region.blocks * region.groups <= options_.region_groups)
      return operations / usual >= 64 && twice <= options_.most_invocations ? twice : usual;
    return static_cast<std::int32_t>(std::min<std::int64_t>(power_of(outputs / 16), usual));
  }

  // Whether a workgroup's registers can keep the sums over its rows from one block of rows to the next.
  bool sums_fit(const RegionNodes& region) const {
    // Sums of a tile of four columns, of one column, and of an invocation.
    constexpr std::int64_t kMostTile = 32, kMostColumn = 16, kMostSums = 56;
    if (!options_.region_vectors) return false;
    std::int64_t sums = 0;
    for (NodeIndex i : nodes_.at({region.row_class, region.phase})) {
      const GraphNode& node = graph_[i];
      if (role[at(i)] != RowRole::fold) continue;
      std::int64_t tiles = 0;
      if (node.op == Op::matmul) {
        const std::int64_t rows = node.shape[node.shape.rank() - 2],
                           columns = node.shape[node.shape.rank() - 1];
        const std::int64_t wide = columns % 4 == 0 ? 4 : 1,
                           most_rows = wide == 4 ? kMostTile / 4 : kMostColumn;
        tiles = (rows + most_rows - 1) / most_rows * (columns / wide);
        sums += rows * columns;
      } else {
        const int group =
            region.group_class < 0 ? -1 : classes_.axis_in(graph_, node.inputs[0], region.group_class);
        const bool by_network = group >= 0 && std::ranges::find(node.ints, group) == node.ints.end();
        tiles = node.element_count() / (by_network ? region.groups : 1);
        sums += tiles;
      }
      if (tiles > region.invocations) return false;
    }
    return sums <= kMostSums * region.invocations;
  }

  // Blocks of rows that a workgroup processes in sequence.
  std::int32_t choose_turns(std::int32_t usual, RegionNodes& region) const {
    std::vector<Variant> variants;
    std::vector<std::int32_t> numbers;
    for (std::int32_t turns = 1;
         turns <= std::max(4, 2 * usual) && (turns - 1) * std::int64_t{region.row_block} < region.rows;
         turns *= 2) {
      numbers.push_back(turns);
      variants.push_back(
          {std::to_string(turns) + " turns", std::abs(std::log2(static_cast<double>(turns) / usual))});
    }
    return numbers[choose_variant(options_.variants,
                                  region.kernel + " turns of " + std::to_string(region.row_block) + " rows",
                                  variants, region.choices)];
  }

  std::int32_t choose_invocations(std::int32_t usual, RegionNodes& region) const {
    std::vector<Variant> variants;
    std::vector<std::int32_t> numbers;
    for (std::int32_t number = std::max(16, options_.region_invocations / 4);
         number <= 2 * options_.region_invocations; number *= 2) {
      if (number != usual && number > options_.most_invocations) continue;
      numbers.push_back(number);
      variants.push_back({std::to_string(number) + " invocations",
                          std::abs(std::log2(static_cast<double>(number) / usual))});
    }
    return numbers[choose_variant(options_.variants, region.kernel + " invocations", variants,
                                  region.choices)];
  }

  const Graph& graph_;
  const FusionRequest& request_;
  const bool learns_;
  const FusionOptions& options_;
  const RegionLimits& limits_;
  AxisClasses classes_;
  std::vector<std::vector<NodeIndex>> consumers_;
  std::vector<Batch> batches_;
  std::unordered_set<AxisClass> learned_;  // axes that a product folds: of a batch, by a weight gradient
  std::vector<AxisClass> row_class_;
  std::vector<std::int32_t> uncut_phase_, part_;         // per node
  std::map<Key, std::int64_t> partial_elements_;         // of all folds, by the phase before cuts
  std::map<Key, std::int32_t> parts_;                    // the same key
  std::vector<std::string> notes_;                       // regions that were not made, and why
  NumberSet large_;                                      // products that were candidates for a region
  std::unordered_map<AxisClass, std::size_t> batch_at_;  // by rows: position in batches_
  std::map<Key, std::vector<NodeIndex>> nodes_;          // ascending
};

}  // namespace

RowRegions find_row_regions(const Graph& graph, const FusionRequest& request, const FusionOptions& options,
                            const RegionLimits& limits) {
  RegionFinder finder(graph, request, options, limits);
  finder.run();
  RowRegions found;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    found.row_axis.push_back(finder.row_axis(i));
    found.group_axis.push_back(finder.group_axis(i));
  }
  found.notes = finder.notes();
  found.regions = std::move(finder.regions);
  found.role = std::move(finder.role);
  found.region_of = std::move(finder.region_of);
  found.phase = std::move(finder.phase);
  return found;
}

RegionMembers find_regions(const Graph& graph, const FusionRequest& request, const FusionOptions& options) {
  RowRegions found = find_row_regions(graph, request, options, {});
  return {std::move(found.regions), std::move(found.region_of), std::move(found.row_axis)};
}

}  // namespace imprint::graph
