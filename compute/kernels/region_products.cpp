// A region's products: each invocation takes a tile of the outputs.

#include "compute/graph/schedule/cost.h"
#include "compute/kernels/region_emitter.h"

#include <algorithm>

#include "compute/graph/plan/fusion.h"

namespace imprint::kernels {

using namespace graph;

namespace {

// Products with at most this many terms, and this many multiply-adds per invocation, are written without a
// loop where workgroups take turns. Measured.
constexpr std::int64_t kShortProduct = 16, kShortWork = 160;

}  // namespace

// The rows and columns that each tile of a product takes, as functions of its number.
struct RegionEmitter::Tiling {
  std::int64_t row_lanes, lanes;  // tiles along the rows and along the columns
  std::int64_t columns;           // of the product
  std::int32_t tile_rows, tile_columns;
  bool rows_first, rows_beside, columns_beside;

  std::int64_t count() const { return row_lanes * lanes; }
  IndexExpression row_lane(const IndexExpression& tile) const {
    return rows_first ? tile % row_lanes : tile / lanes;
  }
  IndexExpression lane(const IndexExpression& tile) const {
    return rows_first ? tile / row_lanes : tile % lanes;
  }
  IndexExpression row(const IndexExpression& row_lane, const IndexExpression& i) const {
    return rows_beside ? row_lane * tile_rows + i : row_lane + i * row_lanes;
  }
  IndexExpression column(const IndexExpression& lane, const IndexExpression& j) const {
    return columns_beside ? lane * tile_columns + j : lane + j * lanes;
  }
};

RegionEmitter::Tiling RegionEmitter::tiling_of(const RegionStage& stage) const {
  const std::int64_t columns = region_.find(stage.anchor)->width;
  Tiling tiling{region_.row_block / stage.tile_rows,
                (columns + stage.tile_columns - 1) / stage.tile_columns,
                columns,
                stage.tile_rows,
                stage.tile_columns,
                false,
                !region_.vectors,
                stage.columns_beside};
  // Neighbouring invocations share columns, and with them the loads of weights, where their rows lie in
  // different banks of shared memory. Where rows come from device memory they share rows instead.
  tiling.rows_first = region_.vectors && is_shared(side(stage.anchor, true));
  return tiling;
}

NodeIndex RegionEmitter::side(NodeIndex product, bool of_rows) const {
  const GraphNode& node = graph_[product];
  NodeIndex side = node.inputs[(region_.find(product)->row_axis == node.shape.rank() - 2) == of_rows ? 0 : 1];
  while (!schedule_.materialized[at(side)] && graph_[side].kind() == OpKind::view)
    side = graph_[side].inputs[0];
  return side;
}

// Terms per turn of the loop, unrolled.
std::int64_t RegionEmitter::unrolled_terms(const RegionStage& stage, std::int64_t terms) const {
  const bool is_short = region_.turns > 1 && stage.parts == 1 &&
                        terms <= std::min<std::int64_t>(kShortProduct, 2 * fold_terms_) &&
                        terms * stage.tile_rows * stage.tile_columns <= kShortWork;
  if (is_short) return terms;
  return std::min<std::int64_t>(fold_terms_, terms % 8 == 0 && terms >= 8 * stage.parts ? 8
                                             : terms % 4 == 0                           ? 4
                                                                                        : 1);
}

// The value of one operand, of rows or of columns, for one term of the product.
std::string RegionEmitter::operand(NodeIndex product, bool of_rows, const IndexExpression& position,
                                   const IndexExpression& term) {
  const GraphNode& node = graph_[product];
  const auto rank = static_cast<std::size_t>(node.shape.rank());
  const bool rows_left = region_.find(product)->row_axis == node.shape.rank() - 2;
  const std::size_t slot = of_rows == rows_left ? 0 : 1;
  ElementIndex index = element(product, IndexExpression(0), IndexExpression(0));
  index.axes[rank - 2] = slot == 0 ? position : term;
  index.axes[rank - 1] = slot == 0 ? term : position;
  return Emitter::value(node.inputs[slot], index);
}

std::vector<std::string> RegionEmitter::column_operands(const OwnTile& tile, const IndexExpression& term) {
  std::vector<std::string> values;
  for (const IndexExpression& column : tile.columns)
    values.push_back(operand(tile.products[0], false, column, term));
  return values;
}

void RegionEmitter::multiply(const OwnTile& tile, const IndexExpression& term,
                             const std::vector<std::string>& column_values) {
  for (std::size_t p = 0; p < tile.products.size(); ++p) {
    std::vector<std::string> row_values;
    for (const Row& row : tile.rows) row_values.push_back(operand(tile.products[p], true, row.global, term));
    for (std::size_t i = 0; i < row_values.size(); ++i)
      for (std::size_t j = 0; j < column_values.size(); ++j)
        line(text(tile.sum(p, i, j), " += ", row_values[i], " * ", column_values[j], ";"));
  }
}

// The loop over the terms, which loads the weights of its next half before it multiplies this one. The
// caller closes it.
void RegionEmitter::open_terms_ahead(const OwnTile& tile, const std::string& k, std::int64_t terms,
                                     std::int64_t unroll) {
  const std::int64_t half = unroll / 2;
  std::vector<std::vector<std::string>> weights;  // of the first half
  for (std::int64_t u = 0; u < half; ++u) {
    weights.emplace_back();
    for (const std::string& value : column_operands(tile, u))
      weights.back().push_back(declare(DType::float32, value));
  }
  open(text("for (int ", k, " = 0; ", k, " < ", terms, "; ", k, " += ", unroll, ")"));
  const IndexExpression here(k, unroll);
  std::vector<std::vector<std::string>> second, then;
  for (std::int64_t u = 0; u < half; ++u) second.push_back(column_operands(tile, here + (half + u)));
  for (std::int64_t u = 0; u < half; ++u) multiply(tile, here + u, weights[at(u)]);
  const std::string next = fresh('k');  // the last turn loads its own terms again
  line(text("int ", next, " = min(", k, " + ", unroll, ", ", terms - unroll, ");"));
  for (std::int64_t u = 0; u < half; ++u)
    then.push_back(column_operands(tile, IndexExpression(next, unroll) + u));
  for (std::int64_t u = 0; u < half; ++u) multiply(tile, here + (half + u), second[at(u)]);
  for (std::size_t u = 0; u < weights.size(); ++u)
    for (std::size_t j = 0; j < tile.columns.size(); ++j) line(text(weights[u][j], " = ", then[u][j], ";"));
}

// Where there are fewer outputs than invocations, several invocations share the terms of one output. Their
// sums meet in shared memory and are added in order.
void RegionEmitter::product(const RegionStage& stage) {
  const std::int64_t terms = fold_length(graph_, stage.anchor);
  const Tiling tiling = tiling_of(stage);
  const std::string t = fresh('t'), k = fresh('k');
  invocations_take(tiling.count() * stage.parts, t);
  const IndexExpression number = stage.parts > 1 ? bind(named(t) % tiling.count()) : named(t);
  const IndexExpression row_lane = bind(tiling.row_lane(number)), lane = bind(tiling.lane(number));
  OwnTile tile{.products = {stage.anchor}};
  tile.products.insert(tile.products.end(), stage.beside.begin(), stage.beside.end());
  for (int i = 0; i < stage.tile_rows; ++i) tile.rows.push_back(row(bind(tiling.row(row_lane, i))));
  for (int j = 0; j < stage.tile_columns; ++j) {
    IndexExpression column = bind(tiling.column(lane, j));
    if (!tiling.columns_beside && (j + 1) * tiling.lanes > tiling.columns)
      column = bind(named(text("min(", column.str(), ", ", tiling.columns - 1, ")")));
    tile.columns.push_back(column);
  }
  for (std::int64_t e = 0; e < stage.products() * stage.tile_rows * stage.tile_columns; ++e)
    tile.sums.push_back(declare(DType::float32, "0.0"));

  const std::int64_t unroll = unrolled_terms(stage, terms);
  // Half a turn ahead where workgroups take turns: few of them share a multiprocessor, and nothing else hides
  // the latency of weights in its cache.
  const bool is_ahead = region_.turns > 1 && stage.parts == 1 && stage.tile_columns == 4 && unroll == 8 &&
                        terms >= 4 * unroll && !is_shared(side(stage.anchor, false));
  if (is_ahead) {
    open_terms_ahead(tile, k, terms, unroll);
  } else {
    const std::string first = stage.parts > 1 ? (named(t) / tiling.count() * unroll).str() : "0";
    open(text("for (int ", k, " = ", first, "; ", k, " < ", terms, "; ", k, " += ", unroll * stage.parts,
              ")"));
    for (std::int64_t u = 0; u < unroll; ++u)
      multiply(tile, IndexExpression(k, unroll) + u, column_operands(tile, IndexExpression(k, unroll) + u));
  }
  close();
  if (stage.parts > 1) {
    for (std::size_t e = 0; e < tile.sums.size(); ++e) {
      const IndexExpression part =
          named(t) / tiling.count() * (tiling.count() * static_cast<std::int64_t>(tile.sums.size()));
      const IndexExpression position =
          bind(part + number) + static_cast<std::int64_t>(e) * tiling.count() + stage.scratch;
      line(text(cell("rows_f", position), " = ", tile.sums[e], ";"));
    }
    close();
    return;  // stages_from() adds the parts
  }
  if (stage.barrier_within) barrier();  // every invocation gets here: each has one tile
  evaluate_tile(stage, tiling, tile, lane);
  close();
}

// Evaluates what follows from the sums of one tile, which the invocation holds.
void RegionEmitter::evaluate_tile(const RegionStage& stage, const Tiling& tiling, const OwnTile& tile,
                                  const IndexExpression& lane) {
  for (std::size_t i = 0; i < tile.rows.size(); ++i)
    for (std::size_t j = 0; j < tile.columns.size(); ++j) {
      const std::int64_t end = static_cast<std::int64_t>(j + 1) * tiling.lanes;
      const bool cut =
          !tiling.columns_beside && end > tiling.columns;  // some invocations have no such column
      if (cut) open(text("if (", lane.str(), " < ", tiling.columns - end + tiling.lanes, ")"));
      for (std::size_t p = 0; p < tile.products.size(); ++p) members_[tile.products[p]] = tile.sum(p, i, j);
      evaluate(stage, tile.columns[j], tile.rows[i]);
      if (cut || j + 1 == tile.columns.size()) store_vectors();
      if (cut) close();
    }
}

void RegionEmitter::add_parts(const RegionStage& stage) {
  const Tiling tiling = tiling_of(stage);
  const std::int64_t outputs = tiling.count() * stage.tile_rows * stage.tile_columns;
  const std::string o = fresh('e');
  invocations_take(outputs, o);
  const IndexExpression tile = bind(named(o) % tiling.count()), e = bind(named(o) / tiling.count());
  const Row own = row(bind(tiling.row(tiling.row_lane(tile), e / stage.tile_columns)));
  for (std::int64_t p = 0; p < stage.products(); ++p) {
    const IndexExpression first = named(o) + (stage.scratch + p * outputs);
    const std::string sum = declare(DType::float32, cell("rows_f", first));
    for (int part = 1; part < stage.parts; ++part)
      line(sum + " += " + cell("rows_f", first + part * stage.products() * outputs) + ";");
    members_[p == 0 ? stage.anchor : stage.beside[at(p - 1)]] = sum;
  }
  evaluate(stage, bind(tiling.column(tiling.lane(tile), e % stage.tile_columns)), own);
  store_vectors();
  close();
}

}  // namespace imprint::kernels
