// A region's folds over its rows: partial results of each workgroup's block, weight gradients and sums.

#include "compute/kernels/region_emitter.h"

#include <algorithm>

namespace imprint::kernels {

using namespace graph;

namespace {

// Rows per turn of a loop over them, and floats that an invocation loads per turn.
constexpr std::int64_t kMostRows = 8, kRowLoads = 64;

// From this many rows on, a fold gives each row its own invocation. With fewer rows, adding the parts costs
// more than it saves.
constexpr std::int64_t kFoldBeside = 16;

}  // namespace

void RegionEmitter::store_partial(NodeIndex member, const std::string& name, const IndexExpression& feature) {
  members_[member] = name;
  const GraphNode& node = graph_[member];
  ElementIndex index = element(member, IndexExpression(0), feature);
  index.axes[0] = named("block");
  for (const Store& store : task_.stores)
    if (store.node == member) write(store, linear_of(index, node.shape));
}

// Positions of a tile along one axis: neighbours, which load and store as vectors, or `lanes` apart, so that
// neighbouring invocations read neighbours.
std::vector<IndexExpression> RegionEmitter::tile_positions(const IndexExpression& lane, std::int64_t lanes,
                                                           std::int32_t count, std::int64_t extent,
                                                           bool beside) {
  std::vector<IndexExpression> positions;
  const IndexExpression first = bind(beside ? lane * count : lane);
  for (int i = 0; i < count; ++i) {
    IndexExpression own = first + (beside ? i : i * lanes);
    if (!beside && (i + 1) * lanes > extent)
      own = bind(named("min(" + own.str() + ", " + text(extent - 1) + ")"));
    positions.push_back(own);
  }
  return positions;
}

// The outputs of a partial weight gradient that one invocation takes.
struct RegionEmitter::OuterTile {
  std::int64_t height, width, bands, lanes;  // extents of the gradient; tiles along both axes
  bool rows_beside;
  IndexExpression band, lane;
  std::vector<IndexExpression> rows, columns;
};

// The outputs of the invocation that takes the tile with this name.
RegionEmitter::OuterTile RegionEmitter::outer_tile(const RegionStage& stage, const std::string& tile) {
  const Shape& shape = graph_[stage.anchor].shape;
  OuterTile own{shape[shape.rank() - 2], shape[shape.rank() - 1], 0, 0, false, {}, {}, {}, {}};
  own.bands = (own.height + stage.tile_rows - 1) / stage.tile_rows;
  own.lanes = (own.width + stage.tile_columns - 1) / stage.tile_columns;
  own.rows_beside = region_.vectors && stage.tile_rows % 4 == 0 && own.height % stage.tile_rows == 0;
  if (tile.empty()) return own;
  own.band = bind(named(tile) / own.lanes);
  own.lane = bind(named(tile) % own.lanes);
  own.rows = tile_positions(own.band, own.bands, stage.tile_rows, own.height, own.rows_beside);
  own.columns = tile_positions(own.lane, own.lanes, stage.tile_columns, own.width, stage.columns_beside);
  return own;
}

void RegionEmitter::outer_product(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const OuterTile counts = outer_tile(stage, {});
  const std::string t = fresh('t'), r = fresh('l');
  invocations_take(counts.lanes * counts.bands, t);
  const OuterTile tile = outer_tile(stage, t);
  std::vector<std::string> names;
  for (std::size_t e = 0; e < tile.rows.size() * tile.columns.size(); ++e)
    names.push_back(declare_sum(DType::float32, "0.0"));
  std::vector<std::vector<std::string>> sides;  // of the folds computed with it
  for (std::size_t fold = 1; fold < stage.members.size(); ++fold) {
    sides.emplace_back();
    for (std::size_t j = 0; j < tile.columns.size(); ++j)
      sides.back().push_back(declare_sum(DType::float32, "0.0"));
  }
  const std::vector<Row> rows =
      open_rows_loop(r, kRowLoads / static_cast<std::int64_t>(tile.rows.size() + tile.columns.size()));
  const auto operand = [&](std::size_t slot, const IndexExpression& position, const Row& own) {
    const Shape& shape = graph_[anchor.inputs[slot]].shape;
    ElementIndex index{std::nullopt, std::vector<IndexExpression>(static_cast<std::size_t>(shape.rank()),
                                                                  IndexExpression(0))};
    if (shape.rank() == 3 && region_.groups > 1) index.axes[0] = named("network");
    const auto last = static_cast<std::size_t>(shape.rank() - 1);
    index.axes[slot == 0 ? last : last - 1] = own.global;
    index.axes[slot == 0 ? last - 1 : last] = position;
    return Emitter::value(anchor.inputs[slot], index);
  };
  std::vector<std::vector<std::string>> lefts, rights;  // by row
  for (const Row& own : rows) {
    lefts.emplace_back();
    rights.emplace_back();
    for (const IndexExpression& position : tile.rows) lefts.back().push_back(operand(0, position, own));
    for (const IndexExpression& position : tile.columns) rights.back().push_back(operand(1, position, own));
  }
  for (std::size_t next = 0; next < rows.size(); ++next) {
    const std::vector<std::string>&left = lefts[next], &right = rights[next];
    for (const std::vector<std::string>& side : sides)
      for (std::size_t j = 0; j < right.size(); ++j) line(side[j] + " += " + right[j] + ";");
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < right.size(); ++j)
        line(names[i * right.size() + j] + " += " + left[i] + " * " + right[j] + ";");
  }
  close();
  if (region_.turns == 1) {
    store_outer(stage, tile, names, sides);
    close();
    return;
  }
  close();
  partial_stores_.push_back([this, stage, names, sides, first = first_, count = counts.lanes * counts.bands] {
    const std::string own_tile = fresh('t');
    take_from(first, count, own_tile);
    store_outer(stage, outer_tile(stage, own_tile), names, sides);
    close();
    members_.clear();
  });
}

void RegionEmitter::store_outer(const RegionStage& stage, const OuterTile& tile,
                                const std::vector<std::string>& names,
                                const std::vector<std::vector<std::string>>& sides) {
  for (std::size_t i = 0; i < tile.rows.size(); ++i)
    for (std::size_t j = 0; j < tile.columns.size(); ++j) {
      const auto row_end = static_cast<std::int64_t>(i + 1) * tile.bands,
                 column_end = static_cast<std::int64_t>(j + 1) * tile.lanes;
      std::string inside;
      if (!tile.rows_beside && row_end > tile.height)
        inside = tile.band.str() + " < " + text(tile.height - row_end + tile.bands);
      if (!stage.columns_beside && column_end > tile.width)
        inside += (inside.empty() ? "" : " && ") + tile.lane.str() + " < " +
                  text(tile.width - column_end + tile.lanes);
      if (!inside.empty()) open("if (" + inside + ")");
      store_partial(stage.anchor, names[i * tile.columns.size() + j],
                    bind(tile.rows[i] * tile.width + tile.columns[j]));
      if (!inside.empty() || j + 1 == tile.columns.size()) store_vectors();
      if (!inside.empty()) close();
    }
  if (sides.empty()) return;
  open("if (" + tile.band.str() + " == 0)");  // equal in all bands
  for (std::size_t fold = 0; fold < sides.size(); ++fold)
    for (std::size_t j = 0; j < tile.columns.size(); ++j) {
      const auto column_end = static_cast<std::int64_t>(j + 1) * tile.lanes;
      const bool cut = !stage.columns_beside && column_end > tile.width;
      if (cut) open("if (" + tile.lane.str() + " < " + text(tile.width - column_end + tile.lanes) + ")");
      store_partial(stage.members[fold + 1], sides[fold][j], tile.columns[j]);
      if (cut || j + 1 == tile.columns.size()) store_vectors();
      if (cut) close();
    }
  close();
}

bool RegionEmitter::folds_beside(const RegionStage& stage) const {
  const std::int64_t count = region_.find(stage.anchor)->width * region_.row_block;
  return region_.vectors && region_.row_block >= kFoldBeside && count <= region_.invocations &&
         graph_[graph_[stage.anchor].inputs[0]].dtype == DType::float32 &&
         beside_floats_ + count <= region_.shared_floats;
}

// One invocation per row, so that no invocation evaluates the terms of many rows.
void RegionEmitter::fold_beside(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const std::int64_t width = region_.find(stage.anchor)->width;
  const std::string e = fresh('e');
  invocations_take(width * region_.row_block, e);
  const Accumulator sum{declare_lasting(DType::float32, fold_start(anchor.op, DType::float32)), {}};
  const IndexExpression local = bind(named(e) / width);
  const Row own = row(local);
  ElementIndex index = element(stage.anchor, IndexExpression(0), bind(named(e) % width));
  index.axes.erase(index.axes.begin());  // the blocks
  index.axes[at(anchor.ints[0])] = own.global;
  const std::string term = Emitter::value(anchor.inputs[0], index);
  line((ragged_ ? "if (" + local.str() + " < rows_here) " : std::string()) +
       combine(stage.anchor, sum, term, {}));
  close();
  beside_.push_back({stage.anchor, sum.value, first_, beside_floats_});
  beside_floats_ += width * region_.row_block;
}

// At the end, when shared memory is free again; added in the order of the rows.
void RegionEmitter::add_rows_beside() {
  if (beside_.empty()) return;
  if (region_.turns == 1) barrier();
  for (const Beside& own : beside_) {
    const std::string e = fresh('e');
    take_from(own.first, region_.find(own.fold)->width * region_.row_block, e);
    line(cell("rows_f", named(e) + own.offset) + " = " + own.sum + ";");
    close();
  }
  barrier();
  for (const Beside& own : beside_) {
    const std::int64_t width = region_.find(own.fold)->width;
    const std::string e = fresh('e');
    invocations_take(width, e);
    const IndexExpression feature = width == 1 ? IndexExpression(0) : named(e);
    const Accumulator sum{declare(DType::float32, load_float("rows_f", feature + own.offset)), {}};
    for (std::int64_t row = 1; row < region_.row_block; ++row)
      line(combine(own.fold, sum, load_float("rows_f", feature + (row * width + own.offset)), {}));
    store_partial(own.fold, sum.value, named(e));
    store_vectors();
    close();
    members_.clear();
  }
}

void RegionEmitter::row_fold(const RegionStage& stage) {
  if (folds_beside(stage)) return fold_beside(stage);
  const GraphNode& anchor = graph_[stage.anchor];
  const RegionValue& value = *region_.find(stage.anchor);
  const NodeIndex source = anchor.inputs[0];
  const std::string e = fresh('e'), r = fresh('l');
  invocations_take(value.width, e);
  const DType dtype = graph_[source].dtype == DType::boolean ? DType::int32 : graph_[source].dtype;
  const Accumulator sum{declare_sum(dtype, fold_start(anchor.op, dtype)), {}};
  std::vector<std::string> terms;
  for (const Row& own : open_rows_loop(r, kMostRows)) {
    ElementIndex index = element(stage.anchor, IndexExpression(0), named(e));
    index.axes.erase(index.axes.begin());  // the blocks
    index.axes[at(anchor.ints[0])] = own.global;
    terms.push_back(Emitter::value(source, index));
  }
  for (const std::string& term : terms)
    line(combine(stage.anchor, sum, graph_[source].dtype == DType::boolean ? "int(" + term + ")" : term, {}));
  close();
  if (region_.turns == 1) {
    store_partial(stage.anchor, sum.value, named(e));
    store_vectors();
    close();
    return;
  }
  close();
  partial_stores_.push_back([this, node = stage.anchor, sum, first = first_, width = value.width] {
    const std::string feature = fresh('e');
    take_from(first, width, feature);
    store_partial(node, sum.value, named(feature));
    store_vectors();
    close();
    members_.clear();
  });
}

}  // namespace imprint::kernels
