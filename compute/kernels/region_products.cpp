// A region's products: each invocation takes a tile of the outputs.

#include "compute/kernels/region_emitter.h"

#include <algorithm>

#include "compute/graph/fusion.h"

namespace imprint::kernels {

using namespace graph;

namespace {

// Terms of a product that workgroups in turns load without a loop, and multiply-adds of an invocation up to
// which that is the faster (by timing).
constexpr std::int64_t kShortProduct = 16, kShortWork = 160;

}  // namespace

// The rows and columns that each tile of a product takes, as functions of its number.
struct RegionEmitter::Tiling {
  std::int64_t row_lanes, lanes,
      columns;  // tiles along the rows and along the columns, and the columns in all
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
  // Neighbouring invocations share columns, and so what they load of the weights, where the rows that they
  // read lie in different banks of shared memory; where rows come from the device's memory they share those.
  tiling.rows_first = region_.vectors && is_shared(side(stage.anchor, true));
  return tiling;
}

NodeIndex RegionEmitter::side(NodeIndex product, bool of_rows) const {
  const GraphNode& node = graph_[product];
  NodeIndex side = node.inputs[(region_.find(product)->row_axis == node.shape.rank() - 2) == of_rows ? 0 : 1];
  while (!schedule_.materialized[static_cast<std::size_t>(side)] && graph_[side].kind() == OpKind::view)
    side = graph_[side].inputs[0];
  return side;
}

// Terms that a turn of the loop adds, written out.
std::int64_t RegionEmitter::unrolled_terms(const RegionStage& stage, std::int64_t terms) const {
  const bool is_short = region_.turns > 1 && stage.parts == 1 &&
                        terms <= std::min<std::int64_t>(kShortProduct, 2 * fold_terms_) &&
                        terms * stage.tile_rows * stage.tile_columns <= kShortWork;
  if (is_short) return terms;
  return std::min<std::int64_t>(fold_terms_, terms % 8 == 0 && terms >= 8 * stage.parts ? 8
                                             : terms % 4 == 0                           ? 4
                                                                                        : 1);
}

// Where outputs are fewer than invocations, several share the terms of one; their sums meet in shared memory
// and are added in order.
void RegionEmitter::product(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const bool rows_left = region_.find(stage.anchor)->row_axis == anchor.shape.rank() - 2;
  const std::int64_t terms = fold_length(graph_, stage.anchor);
  const Tiling tiling = tiling_of(stage);
  const std::string t = fresh('t'), k = fresh('k');
  invocations_take(tiling.count() * stage.parts, t);
  const IndexExpression tile = stage.parts > 1 ? bind(named(t) % tiling.count()) : named(t);
  const IndexExpression row_lane = bind(tiling.row_lane(tile)), lane = bind(tiling.lane(tile));
  std::vector<Row> rows;
  for (int i = 0; i < stage.tile_rows; ++i) rows.push_back(row(bind(tiling.row(row_lane, i))));
  std::vector<IndexExpression> columns;
  for (int j = 0; j < stage.tile_columns; ++j) {
    IndexExpression own = bind(tiling.column(lane, j));
    if (!tiling.columns_beside && (j + 1) * tiling.lanes > tiling.columns)
      own = bind(named("min(" + own.str() + ", " + text(tiling.columns - 1) + ")"));
    columns.push_back(own);
  }
  std::vector<std::string> sums;
  for (int e = 0; e < stage.tile_rows * stage.tile_columns; ++e)
    sums.push_back(declare(DType::float32, "0.0"));

  const auto operand = [&](bool of_rows, const IndexExpression& position, const IndexExpression& term) {
    const std::size_t slot = of_rows == rows_left ? 0 : 1;
    ElementIndex index = element(stage.anchor, IndexExpression(0), IndexExpression(0));
    const auto rank = static_cast<std::size_t>(anchor.shape.rank());
    index.axes[rank - 2] = slot == 0 ? position : term;
    index.axes[rank - 1] = slot == 0 ? term : position;
    return Emitter::value(anchor.inputs[slot], index);
  };
  const std::int64_t unroll = unrolled_terms(stage, terms);
  const std::string first = stage.parts > 1 ? (named(t) / tiling.count() * unroll).str() : "0";
  const auto right_of = [&](const IndexExpression& term) {
    std::vector<std::string> right;
    for (const IndexExpression& own : columns) right.push_back(operand(false, own, term));
    return right;
  };
  const auto multiply = [&](const IndexExpression& term, const std::vector<std::string>& right) {
    std::vector<std::string> left;
    for (const Row& own : rows) left.push_back(operand(true, own.global, term));
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < right.size(); ++j)
        line(sums[i * right.size() + j] + " += " + left[i] + " * " + right[j] + ";");
  };
  // Half a turn ahead where workgroups take turns: few of them share a multiprocessor, and nothing else hides
  // how long weights in its cache take.
  const bool is_ahead = region_.turns > 1 && stage.parts == 1 && stage.tile_columns == 4 && unroll == 8 &&
                        terms >= 4 * unroll && !is_shared(side(stage.anchor, false));
  if (is_ahead) {
    const std::int64_t half = unroll / 2;
    std::vector<std::vector<std::string>> weights;  // of the first half
    for (std::int64_t u = 0; u < half; ++u) {
      weights.emplace_back();
      for (const std::string& value : right_of(u)) weights.back().push_back(declare(DType::float32, value));
    }
    open("for (int " + k + " = 0; " + k + " < " + text(terms) + "; " + k + " += " + text(unroll) + ")");
    const IndexExpression here(k, unroll);
    std::vector<std::vector<std::string>> second, then;
    for (std::int64_t u = 0; u < half; ++u) second.push_back(right_of(here + (half + u)));
    for (std::int64_t u = 0; u < half; ++u) multiply(here + u, weights[static_cast<std::size_t>(u)]);
    const std::string next = fresh('k');
    line("int " + next + " = min(" + k + " + " + text(unroll) + ", " + text(terms - unroll) +
         ");");  // behind the last, the last again
    for (std::int64_t u = 0; u < half; ++u) then.push_back(right_of(IndexExpression(next, unroll) + u));
    for (std::int64_t u = 0; u < half; ++u) multiply(here + (half + u), second[static_cast<std::size_t>(u)]);
    for (std::size_t u = 0; u < weights.size(); ++u)
      for (std::size_t j = 0; j < columns.size(); ++j) line(weights[u][j] + " = " + then[u][j] + ";");
  } else {
    open("for (int " + k + " = " + first + "; " + k + " < " + text(terms) + "; " + k +
         " += " + text(unroll * stage.parts) + ")");
    for (std::int64_t u = 0; u < unroll; ++u)
      multiply(IndexExpression(k, unroll) + u, right_of(IndexExpression(k, unroll) + u));
  }
  close();
  if (stage.parts > 1) {
    for (std::size_t e = 0; e < sums.size(); ++e) {
      const IndexExpression part =
          named(t) / tiling.count() * (tiling.count() * static_cast<std::int64_t>(sums.size()));
      line(cell("rows_f", bind(part + tile) + static_cast<std::int64_t>(e) * tiling.count() + stage.scratch) +
           " = " + sums[e] + ";");
    }
    close();
    barrier();
    add_parts(stage, tiling);
    return;
  }
  if (stage.barrier_within) barrier();  // all invocations are here: each has one tile
  evaluate_tile(stage, tiling, rows, columns, lane, sums);
  close();
}

// What follows from the sums of one tile, which the invocation holds.
void RegionEmitter::evaluate_tile(const RegionStage& stage, const Tiling& tiling,
                                  const std::vector<Row>& rows, const std::vector<IndexExpression>& columns,
                                  const IndexExpression& lane, const std::vector<std::string>& sums) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const std::int64_t end = static_cast<std::int64_t>(j + 1) * tiling.lanes;
      const bool cut =
          !tiling.columns_beside && end > tiling.columns;  // some invocations have no such column
      if (cut) open("if (" + lane.str() + " < " + text(tiling.columns - end + tiling.lanes) + ")");
      members_[stage.anchor] = sums[i * columns.size() + j];
      evaluate(stage, columns[j], rows[i]);
      if (cut || j + 1 == columns.size()) store_vectors();
      if (cut) close();
    }
}

void RegionEmitter::add_parts(const RegionStage& stage, const Tiling& tiling) {
  const std::int64_t outputs = tiling.count() * stage.tile_rows * stage.tile_columns;
  const std::string o = fresh('e');
  invocations_take(outputs, o);
  const IndexExpression tile = bind(named(o) % tiling.count()), e = bind(named(o) / tiling.count());
  const Row own = row(bind(tiling.row(tiling.row_lane(tile), e / stage.tile_columns)));
  const std::string sum = declare(DType::float32, cell("rows_f", named(o) + stage.scratch));
  for (int part = 1; part < stage.parts; ++part)
    line(sum + " += " + cell("rows_f", named(o) + stage.scratch + part * outputs) + ";");
  members_[stage.anchor] = sum;
  evaluate(stage, bind(tiling.column(tiling.lane(tile), e % stage.tile_columns)), own);
  store_vectors();
  close();
}

}  // namespace imprint::kernels
