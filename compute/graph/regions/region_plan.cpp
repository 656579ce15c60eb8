// Turns the values of a region into stages of a workgroup: which values are computed together, how
// invocations share them, where they lie.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "compute/graph/regions/region_barriers.h"
#include "compute/graph/regions/region_order.h"
#include "compute/graph/regions/region_room.h"
#include "compute/graph/regions/region_tiles.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/element_reads.h"
#include "compute/graph/schedule/memory_plan.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {
namespace {

constexpr std::int32_t kAllStages = INT32_MAX;  // end of a lifetime that lasts through all stages

struct StageRead {
  NodeIndex node;
  bool aligned;
  NodeIndex by;
};

class Planner {
 public:
  Planner(const Graph& graph, const Schedule& schedule, const RegionSplit& split,
          const FusionOptions& options, RegionScratch& scratch, Task& task, Region& region,
          Arrangement arrangement)
      : graph_(graph),
        schedule_(schedule),
        split_(split),
        options_(options),
        task_(task),
        region_(region),
        scratch_(scratch),
        stage_of_(scratch.stage_of),
        last_reader_(scratch.last_reader),
        arrangement_(region.vectors && region.matrix_groups == 0 ? arrangement : Arrangement::none) {
    stage_of_.resize(graph.nodes.size(), -1);
    last_reader_.resize(graph.nodes.size(), -1);
  }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;
  ~Planner() {
    for (NodeIndex node : touched_) stage_of_[at(node)] = last_reader_[at(node)] = -1;
  }

  bool run() {
    region_.stages.push_back({RegionStage::Kind::load, -1, {}});
    stage_reads_.resize(1);
    place_members();
    std::ranges::sort(region_.values, {}, &RegionValue::node);
    const std::int32_t rows = rows_that_could_fit(graph_, region_, scratch_, options_);
    scratch_.is_too_large = rows < region_.row_block;
    region_.row_block = rows;
    if (scratch_.is_too_large) return false;
    for (std::size_t s = 0; s < region_.stages.size(); ++s) choose_tiles(region_.stages[s]);
    if (is_arranged_) join_stages();
    if (!plan_shared()) return false;
    load_weights();
    place_barriers();
    return true;
  }
  // Whether products are beside each other, or together.
  bool is_arranged() const { return is_arranged_; }

 private:
  // Elements, elements per row, whether it has networks of its own. -1: not one value per row.
  using Layout = std::array<std::int64_t, 3>;

  Layout layout_of(NodeIndex node) const {
    const std::int32_t row = split_.row_axis[at(node)];
    if (row < 0) return {-1, -1, -1};
    std::int64_t behind = 1;
    for (int axis = row + 1; axis < graph_[node].shape.rank(); ++axis) behind *= graph_[node].shape[axis];
    return {graph_[node].element_count(), behind, region_.groups > 1 && split_.group_axis[at(node)] >= 0};
  }

  // Whether both have a row's features in the same order, so the same invocation can compute them.
  bool same_layout(NodeIndex a, NodeIndex b) const {
    const Layout layout = layout_of(a);
    return layout[0] >= 0 && layout == layout_of(b);
  }

  // Which members and which memory a member's evaluation reads, and whether only at its own index.
  std::vector<Read> reads_of(NodeIndex index) const {
    const auto keeps = [&](NodeIndex node) {
      return graph_[node].kind() == OpKind::elementwise ||
             (graph_[node].op == Op::reshape && same_layout(node, graph_[node].inputs[0]));
    };
    return reads_by_element(
        graph_, index, keeps,
        [&](NodeIndex node) { return stage_of_[at(node)] >= 0 || schedule_.materialized[at(node)] != 0; },
        options_.steps);
  }

  RegionStage::Kind kind_of(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (node.blocks > 0)
      return node.op == Op::matmul ? RegionStage::Kind::outer_product : RegionStage::Kind::row_fold;
    return node.op == Op::matmul ? RegionStage::Kind::product : RegionStage::Kind::spread;
  }

  // Places members in order, except folds over the rows: they come as soon as their inputs exist, so that the
  // inputs occupy memory for less time. Linear in what the members read.
  void place_members() {
    std::vector<NodeIndex> folds;  // products first; sums can then join them
    for (NodeIndex member : task_.members)
      if (graph_[member].blocks > 0) folds.push_back(member);
    if (region_.vectors)
      std::ranges::stable_partition(folds, [&](NodeIndex fold) { return graph_[fold].op == Op::matmul; });

    std::vector<std::size_t> missing(folds.size(), 0);  // per fold: members that it reads, not yet placed
    std::unordered_map<NodeIndex, std::vector<std::size_t>> folds_of;  // per member: those that read it
    std::set<std::size_t> ready;
    for (std::size_t f = 0; f < folds.size(); ++f) {
      for (const Read& read : reads_of(folds[f]))
        if (std::ranges::binary_search(task_.members, read.node)) {
          ++missing[f];
          folds_of[read.node].push_back(f);
        }
      if (missing[f] == 0) ready.insert(f);
    }
    const auto place_one = [&](NodeIndex member, NodeIndex lead) {
      place(member, lead);
      if (const auto found = folds_of.find(member); found != folds_of.end())
        for (std::size_t f : found->second)
          if (--missing[f] == 0) ready.insert(f);
    };
    // In order of `folds`. One that becomes ready behind its turn waits for the next call.
    const auto place_ready_folds = [&] {
      for (auto f = ready.begin(); f != ready.end();) {
        const std::size_t position = *f;
        ready.erase(f);
        place_one(folds[position], folds[position]);
        f = ready.upper_bound(position);
      }
    };
    for (const auto& [group, depth] : groups_of_members()) {
      const bool is_product = kind_of(group[0]) == RegionStage::Kind::product;
      if (is_product) place_ready_folds();
      for (const NodeIndex member : group) place_one(member, group[0]);
      if (!is_product) continue;
      depth_of_.resize(region_.stages.size(), -1);
      depth_of_.back() = depth;
      region_.stages.back().beside.assign(group.begin() + 1, group.end());
    }
    place_ready_folds();
    // In the order of the nodes, which makes_room_for() relies on.
    for (RegionStage& stage : region_.stages)
      if (!stage.beside.empty()) std::ranges::sort(stage.members);
  }

  // The members except folds over the rows. Products that need equally many others before them are beside
  // each other, so that few barriers separate them, and those with the same weights together.
  std::vector<MemberGroup> groups_of_members() {
    std::vector<NodeIndex> members;
    std::vector<std::pair<NodeIndex, std::int64_t>> weights;  // of each product
    for (NodeIndex member : task_.members) {
      if (graph_[member].blocks > 0) continue;
      members.push_back(member);
      if (kind_of(member) != RegionStage::Kind::product) continue;
      const Weights own = weights_of(member);
      const bool rows_left = split_.row_axis[at(member)] == graph_[member].shape.rank() - 2;
      weights.emplace_back(member, 4 * std::int64_t{own.node} + (own.across ? 2 : 0) + (rows_left ? 1 : 0));
    }
    const auto reads = [&](NodeIndex member) { return reads_of(member); };
    std::vector<MemberGroup> groups = arrange_members(arrangement_, members, weights, reads);
    is_arranged_ = std::ranges::any_of(
        groups, [](const MemberGroup& group) { return group.depth >= 0 || group.members.size() > 1; });
    return groups;
  }

  // lead: the product whose stage the value joins, or itself.
  void place(NodeIndex index, NodeIndex lead) {
    const std::vector<Read> reads = reads_of(index);
    const RegionStage::Kind kind = kind_of(index);
    std::int32_t stage = lead != index                         ? stage_of_[at(lead)]
                         : kind == RegionStage::Kind::spread   ? stage_for(index, reads)
                         : kind == RegionStage::Kind::row_fold ? product_beside(index)
                                                               : -1;
    if (stage < 0) {
      stage = static_cast<std::int32_t>(region_.stages.size());
      region_.stages.push_back({kind, kind == RegionStage::Kind::spread ? -1 : index, {}});
      if (kind == RegionStage::Kind::spread && split_.row_axis[at(index)] >= 0)
        last_spread_[layout_of(index)] = stage;
      if (kind == RegionStage::Kind::outer_product) products_of_[graph_[index].inputs[1]].push_back(stage);
    }
    region_.stages[at(stage)].members.push_back(index);
    stage_of_[at(index)] = stage;
    touched_.push_back(index);
    RegionValue value;
    value.node = index;
    value.row_axis = split_.row_axis[at(index)];
    value.group_axis = split_.group_axis[at(index)];
    value.height = region_.row_block;
    value.width = graph_[index].element_count() / (value.row_axis >= 0 ? region_.rows : region_.blocks) /
                  (value.group_axis >= 0 ? region_.groups : 1);
    region_.values.push_back(value);
    for (const Read& read : reads)
      if (stage_of_[at(read.node)] != stage) {
        last_reader_[at(read.node)] = std::max(last_reader_[at(read.node)], stage);
        touched_.push_back(read.node);
      }
    stage_reads_.resize(region_.stages.size());
    for (const Read& read : reads)
      if (stage_of_[at(read.node)] != stage)
        stage_reads_[at(stage)].push_back({read.node, read.aligned, index});
  }

  // The weight gradient whose invocations already hold the columns that this sum over the rows adds; -1:
  // none. Example: a layer's bias joins its weights.
  std::int32_t product_beside(NodeIndex fold) const {
    const GraphNode& node = graph_[fold];
    const NodeIndex source = node.inputs[0];
    if (!region_.vectors || node.op != Op::reduce_sum || graph_[source].dtype != DType::float32) return -1;
    const auto found = products_of_.find(source);
    if (found == products_of_.end()) return -1;
    for (std::int32_t s : found->second) {
      const NodeIndex anchor = region_.stages[at(s)].anchor;
      const Shape& product = graph_[anchor].shape;
      if (node.element_count() * product[product.rank() - 2] == graph_[anchor].element_count()) return s;
    }
    return -1;
  }

  // The last stage that can also compute this value: a spread after everything that it reads, or the stage of
  // its last read, at its own index.
  std::int32_t stage_for(NodeIndex index, const std::vector<Read>& reads) const {
    if (split_.row_axis[at(index)] < 0) return -1;
    std::int32_t earliest = 0;
    for (const Read& read : reads) earliest = std::max(earliest, stage_of_[at(read.node)]);
    count_steps(options_, 1 + static_cast<std::int64_t>(reads.size()));
    if (const auto last = last_spread_.find(layout_of(index));
        last != last_spread_.end() && last->second > earliest)
      return last->second;
    const RegionStage& stage = region_.stages[at(earliest)];
    if (stage.kind != RegionStage::Kind::spread && stage.kind != RegionStage::Kind::product) return -1;
    if (!same_layout(stage.members[0], index) || is_of_several(earliest, reads)) return -1;
    const bool possible = std::ranges::all_of(
        reads, [&](const Read& read) { return stage_of_[at(read.node)] < earliest || read.aligned; });
    return possible ? earliest : -1;
  }

  // Whether the value would keep products of one depth from waiting at one barrier.
  bool is_of_several(std::int32_t stage, const std::vector<Read>& reads) const {
    return depth_of(stage) >= 0 && std::ranges::any_of(reads, [&](const Read& read) {
             const std::int32_t other = stage_of_[at(read.node)];
             return other >= 0 && other != stage && depth_of(other) == depth_of(stage);
           });
  }
  std::int32_t depth_of(std::int32_t stage) const {
    return at(stage) < depth_of_.size() ? depth_of_[at(stage)] : -1;
  }

  // The first and the last stage of the products of one depth.
  std::pair<std::int32_t, std::int32_t> stages_beside(std::int32_t stage) const {
    std::int32_t first = stage, last = stage;
    while (depth_of(stage) >= 0 && depth_of(first - 1) == depth_of(stage)) --first;
    while (depth_of(stage) >= 0 && depth_of(last + 1) == depth_of(stage)) ++last;
    return {first, last};
  }

  // The side of a product without rows, as it lies in memory, and whether its terms rather than its columns
  // are contiguous.
  struct Weights {
    NodeIndex node;
    bool across;
  };
  Weights weights_of(NodeIndex index) const {
    const GraphNode& product = graph_[index];
    const bool rows_left = split_.row_axis[at(index)] == product.shape.rank() - 2;
    Weights weights{product.inputs[rows_left ? 1 : 0], !rows_left};
    for (; !schedule_.materialized[at(weights.node)]; weights.node = graph_[weights.node].inputs[0]) {
      const GraphNode& node = graph_[weights.node];
      if (node.op == Op::permute)
        weights.across = !weights.across;
      else if (node.op != Op::reshape || !are_same_matrix(node.shape, graph_[node.inputs[0]].shape))
        break;
    }
    return weights;
  }

  // ---- tiles ----

  void choose_tiles(RegionStage& stage) {
    if (stage.kind != RegionStage::Kind::product && stage.kind != RegionStage::Kind::outer_product) return;
    const bool outer = stage.kind == RegionStage::Kind::outer_product;
    const GraphNode& node = graph_[stage.anchor];
    const int rank = node.shape.rank();
    std::int64_t rows = region_.row_block, columns = 0;
    if (outer) {
      rows = node.shape[rank - 2];
      columns = node.shape[rank - 1];
    } else {
      columns = node.shape[split_.row_axis[at(stage.anchor)] == rank - 2 ? rank - 1 : rank - 2];
    }
    if (!outer && region_.vectors) return choose_vector_tiles(stage, rows, columns);
    choose_other_tiles(stage, region_, rows, columns, fold_length(graph_, stage.anchor));
  }

  // Chooses the cheapest tile and number of invocations that share its terms.
  void choose_vector_tiles(RegionStage& stage, std::int64_t rows, std::int64_t columns) {
    VectorProduct product{.rows = rows,
                          .columns = columns,
                          .terms = fold_length(graph_, stage.anchor),
                          .products = stage.products(),
                          .invocations = region_.invocations};
    product.is_far = product.terms * columns * 4 > options_.region_shared_bytes / 2;
    // Small if workgroups wait for each other: shared memory decides how many of them run at a time.
    const bool wait = region_.blocks * region_.turns * region_.groups > 2 * options_.region_groups;
    product.most_scratch = options_.region_shared_bytes / (wait ? 80 : product.is_far ? 12 : 16);
    for (NodeIndex member : stage.members)
      if (!stage.is_anchor(member)) product.operations_behind += op_cost(graph_, member);
    const std::vector<VectorTile> tiles = vector_tiles(product);
    std::vector<Variant> variants;
    for (const VectorTile& tile : tiles)
      variants.push_back({std::to_string(tile.rows) + " x " + std::to_string(tile.columns) + " in " +
                              std::to_string(tile.parts) + " parts",
                          tile.cost});
    const std::string kernel = region_.kernel + " stage " + std::to_string(&stage - region_.stages.data()) +
                               " product " + std::to_string(rows) + " x " + std::to_string(columns) + " of " +
                               std::to_string(product.terms) + " by " + std::to_string(region_.invocations);
    const VectorTile& chosen = tiles[choose_variant(options_.variants, kernel, variants, task_.choices)];
    stage.tile_rows = chosen.rows;
    stage.tile_columns = chosen.columns;
    stage.parts = chosen.parts;
    stage.columns_beside = stage.tile_columns == 4 && !weights_of(stage.anchor).across;
  }

  void join_stages() {
    std::vector<std::int64_t> scratch;
    std::vector<std::int32_t> latest_reads;
    for (std::size_t s = 0; s < region_.stages.size(); ++s) {
      scratch.push_back(region_.stages[s].parts > 1 ? scratch_of(region_.stages[s]) : 0);
      latest_reads.push_back(-1);
      for (const StageRead& read : stage_reads_[s])
        latest_reads.back() = std::max(latest_reads.back(), stage_of_[at(read.node)]);
    }
    join_products(region_.stages, scratch, latest_reads, options_.region_shared_bytes / 12);
  }

  // ---- shared memory ----

  // Floats: one sum per part and output.
  std::int64_t scratch_of(const RegionStage& stage) const {
    return stage.products() * stage.parts * region_.row_block * region_.find(stage.anchor)->width;
  }

  // Lifetimes count two moments per stage: its reads, and the late writes of a product that keeps all sums in
  // registers until every invocation has read.
  bool writes_late(std::int32_t stage) const {
    const RegionStage& entry = region_.stages[at(stage)];
    if (entry.kind != RegionStage::Kind::product || !region_.vectors) return false;
    const std::int64_t outputs = region_.row_block * region_.find(entry.anchor)->width;
    return entry.parts > 1 ||
           outputs == static_cast<std::int64_t>(region_.invocations) * entry.tile_rows * entry.tile_columns;
  }

  // No value takes the place of one that a stage beside its own reads: no barrier would be between them.
  std::int32_t first_write(NodeIndex node) const {
    const std::int32_t stage = stage_of_[at(node)];
    const auto [first, last] = stages_beside(stage);
    return first < last ? 2 * first : 2 * stage + writes_late(stage);
  }

  std::int32_t last_read(NodeIndex node) const {
    const std::int32_t stage = last_reader_[at(node)];
    if (const auto [first, last] = stages_beside(stage); first < last) return 2 * last + 1;
    const RegionStage& entry = region_.stages[at(stage)];
    const bool by_sums_alone =
        writes_late(stage) && std::ranges::all_of(stage_reads_[at(stage)], [&](const StageRead& read) {
          return read.node != node || entry.is_anchor(read.by);
        });
    return 2 * stage + !by_sums_alone;
  }

  // Weights that the next turn reads again.
  bool lasts(const RegionValue& value) const { return region_.turns > 1 && value.row_axis < 0; }

  // A value that this stage reads for the last time, and only at the element that the new value is computed
  // for: the new value can take its place.
  NodeIndex makes_room_for(const RegionValue& fresh) const {
    const std::int32_t s = stage_of_[at(fresh.node)];
    const RegionStage& stage = region_.stages[at(s)];
    if (fresh.row_axis < 0 || stage.parts > 1 || !same_layout(fresh.node, stage.members[0])) return -1;
    for (const StageRead& read : stage_reads_[at(s)]) {
      const RegionValue* old = region_.find(read.node);
      if (!old || old->row_axis < 0 || last_reader_[at(read.node)] != s || old->width != fresh.width ||
          dtype_is_float(graph_[old->node].dtype) != dtype_is_float(graph_[fresh.node].dtype))
        continue;
      const bool only_here = std::ranges::all_of(stage_reads_[at(s)], [&](const StageRead& other) {
        return other.node != read.node || (other.aligned && other.by <= fresh.node);
      });
      if (only_here && !makes_room_.contains(read.node)) return read.node;
    }
    return -1;
  }

  bool plan_shared() {
    makes_room_.clear();
    for (const bool floats : {true, false}) {
      std::vector<Lifetime> lifetimes;
      std::vector<std::int64_t*> targets;
      std::unordered_map<NodeIndex, std::size_t> owners;           // per value: its lifetime
      std::vector<std::pair<RegionValue*, std::size_t>> in_place;  // and the lifetime that it extends
      std::vector<RegionValue*> values;
      for (RegionValue& value : region_.values) values.push_back(&value);
      std::ranges::stable_sort(values, {},
                               [&](const RegionValue* value) { return stage_of_[at(value->node)]; });
      for (RegionValue* entry : values) {
        RegionValue& value = *entry;
        if (dtype_is_float(graph_[value.node].dtype) != floats) continue;
        value.offset = -1;
        if (last_reader_[at(value.node)] < 0) continue;
        value.stride = stride_of(region_, value.width);
        const std::int32_t first = first_write(value.node),
                           last = lasts(value) ? kAllStages : last_read(value.node);
        if (const NodeIndex old = makes_room_for(value); old >= 0) {
          makes_room_.insert(old);
          const std::size_t owner = owners.at(old);
          lifetimes[owner].last = last;
          in_place.emplace_back(&value, owner);
          owners.emplace(value.node, owner);
          continue;
        }
        owners.emplace(value.node, lifetimes.size());
        lifetimes.push_back({static_cast<std::uint64_t>(value.stride * value.height), first, last});
        targets.push_back(&value.offset);
      }
      if (floats)
        for (std::size_t s = 0; s < region_.stages.size(); ++s)
          if (region_.stages[s].parts > 1) {
            std::size_t first = s, last = s;  // of those that wait at the same barrier
            while (region_.stages[first].joins_before) --first;
            while (last + 1 < region_.stages.size() && region_.stages[last + 1].joins_before) ++last;
            lifetimes.push_back({static_cast<std::uint64_t>(scratch_of(region_.stages[s])),
                                 2 * static_cast<std::int32_t>(first),
                                 2 * static_cast<std::int32_t>(last) + 1});
            targets.push_back(&region_.stages[s].scratch);
          }
      const std::uint64_t alignment = floats && region_.vectors ? 4 : 1;
      const MemoryPlan plan = plan_memory(lifetimes, alignment);
      count_steps(options_, plan.steps);
      for (std::size_t i = 0; i < targets.size(); ++i)
        *targets[i] = static_cast<std::int64_t>(plan.offsets[i]);
      for (const auto& [value, owner] : in_place)
        value->offset = static_cast<std::int64_t>(plan.offsets[owner]);
      (floats ? region_.shared_floats : region_.shared_ints) =
          static_cast<std::int64_t>((plan.total_bytes + alignment - 1) / alignment * alignment);
    }
    return 4 * (region_.shared_floats + region_.shared_ints) <= shared_bytes_;
  }

  // Weights of products that could lie in shared memory, first those that are read across their rows.
  std::vector<NodeIndex> weights_to_load() {
    if (region_.groups > 1 && scratch_.consumers.empty()) scratch_.consumers = graph_.consumers();
    std::vector<NodeIndex> wanted;
    NumberSet listed;
    for (const bool transposed : {true, false})
      for (const RegionStage& stage : region_.stages) {
        if (stage.kind != RegionStage::Kind::product) continue;
        const auto [weights, across] = weights_of(stage.anchor);
        if (region_.groups > 1 && !reads_own_network(graph_, schedule_, split_, scratch_.consumers, weights))
          continue;
        const Shape& shape = graph_[weights].shape;
        const bool is_free = (region_.groups > 1 ? shape.rank() == 3 : is_matrix(shape)) &&
                             schedule_.materialized[at(weights)] && stage_of_[at(weights)] < 0;
        if (is_free && across == transposed && graph_[weights].dtype == DType::float32 &&
            graph_[weights].element_count() > 0 && listed.insert(weights))
          wanted.push_back(weights);
      }
    return wanted;
  }

  // Adds weights that could fit beside what lies in shared memory. held: floats_before_stages, kept up to
  // date.
  bool add_weights(NodeIndex weights, std::vector<std::int64_t>& held) {
    const Shape& shape = graph_[weights].shape;
    const std::size_t last = at(last_reader_[at(weights)]);
    if (4 * (held[last] + graph_[weights].element_count()) > shared_bytes_) return false;
    RegionValue value;
    value.node = weights;
    value.group_axis = region_.groups > 1 ? 0 : -1;
    value.height = shape[shape.rank() - 2];
    value.width = shape[shape.rank() - 1];
    add_from_start(held, last, stride_of(region_, value.width) * value.height);
    region_.values.insert(std::ranges::upper_bound(region_.values, weights, {}, &RegionValue::node), value);
    stage_of_[at(weights)] = 0;
    touched_.push_back(weights);
    return true;
  }

  // Loads weights of products into shared memory while there is room. They are then read from memory once,
  // and in any direction from there. Skipped if more than one workgroup should fit on a multiprocessor. Plans
  // many weights at once, and fewer where they do not fit.
  void load_weights() {
    if (region_.row_block > options_.region_load_rows ||
        region_.blocks * region_.groups > options_.region_groups)
      return;
    // Folds of few workgroups share the region's dispatch: their arrays keep their room.
    shared_bytes_ -= kFoldBytes * options_.fold_invocations;
    const std::vector<NodeIndex> wanted = weights_to_load();
    std::size_t most = wanted.size();
    bool is_planned = true;
    for (std::size_t next = 0; next < wanted.size();) {
      const std::vector<RegionValue> before = region_.values;
      std::vector<std::int64_t> held = floats_before_stages(graph_, region_, scratch_);
      std::vector<NodeIndex> added;
      std::size_t end = next;
      for (; end < wanted.size() && added.size() < most; ++end)
        if (add_weights(wanted[end], held)) added.push_back(wanted[end]);
      if (added.empty()) break;
      is_planned = plan_shared();
      if (is_planned) {
        region_.stages[0].members.insert(region_.stages[0].members.end(), added.begin(), added.end());
        next = end;
        most *= 2;
        continue;
      }
      region_.values = before;
      for (NodeIndex weights : added) stage_of_[at(weights)] = -1;
      if (added.size() == 1) next = end;
      most = std::max<std::size_t>(1, added.size() / 2);
    }
    shared_bytes_ = options_.region_shared_bytes;
    if (!is_planned) plan_shared();
  }

  SharedRange range_of(const RegionValue& value) const {
    return {value.offset, value.offset + value.stride * value.height,
            dtype_is_float(graph_[value.node].dtype)};
  }

  void place_barriers() {
    std::vector<StageAccess> accesses(region_.stages.size());
    for (std::size_t s = 0; s < region_.stages.size(); ++s) {
      const RegionStage& stage = region_.stages[s];
      StageAccess& own = accesses[s];
      for (const StageRead& entry : stage_reads_[s])
        if (const RegionValue* value = region_.find(entry.node); value && value->offset >= 0)
          (stage.is_anchor(entry.by) ? own.summed : own.reads).push_back(range_of(*value));
      for (NodeIndex member : stage.members)
        if (const RegionValue* value = region_.find(member); value->offset >= 0)
          own.writes.push_back(range_of(*value));
      own.writes_late = writes_late(static_cast<std::int32_t>(s));
      if (stage.scratch >= 0) own.scratch.push_back({stage.scratch, stage.scratch + scratch_of(stage), true});
    }
    place_stage_barriers(region_.stages, accesses);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const RegionSplit& split_;
  const FusionOptions& options_;
  Task& task_;
  Region& region_;
  RegionScratch& scratch_;
  std::vector<std::int32_t>& stage_of_;     // per node
  std::vector<std::int32_t>& last_reader_;  // per node
  std::vector<NodeIndex> touched_;          // nodes of which these are set
  std::unordered_map<NodeIndex, std::vector<std::int32_t>>
      products_of_;                             // outer products by their right side
  std::map<Layout, std::int32_t> last_spread_;  // stage
  Arrangement arrangement_;
  bool is_arranged_ = false;
  std::int64_t shared_bytes_ = options_.region_shared_bytes;  // that the plan may take
  std::vector<std::int32_t> depth_of_;               // per stage; -1: no product, or not arranged by depth
  std::set<NodeIndex> makes_room_;                   // values whose place a later value takes
  std::vector<std::vector<StageRead>> stage_reads_;  // per stage, of earlier stages
};

}  // namespace

bool plan_region(const Graph& graph, const Schedule& schedule, const RegionSplit& split,
                 const FusionOptions& options, RegionScratch& scratch, Task& task, Region& region) {
  const std::pair bare(task, region);
  for (const Arrangement arrangement :
       {Arrangement::by_depth, Arrangement::shared_weights, Arrangement::none}) {
    scratch.is_too_large = false;
    Planner planner(graph, schedule, split, options, scratch, task, region, arrangement);
    if (planner.run()) return true;
    if (!planner.is_arranged()) break;
    std::tie(task, region) = bare;
  }
  return false;
}

}  // namespace imprint::graph
