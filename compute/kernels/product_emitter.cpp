#include "compute/kernels/product_emitter.h"

#include <algorithm>
#include <utility>

#include "compute/graph/product.h"
#include "compute/graph/strides.h"
#include "compute/kernels/elementwise_glsl.h"
#include "compute/kernels/embedded_shaders.h"

namespace imprint {
namespace {

constexpr std::int64_t kBand = 8;   // rows of tiles that run together

std::string text(std::int64_t number) { return std::to_string(number); }
IndexExpression named(const std::string& name) { return IndexExpression(name); }

std::string define(const std::string& name, const std::string& value) { return "#define " + name + " " + value + "\n"; }

Shape batch_shape(const Shape& shape) { return Shape(shape.extents().first(static_cast<std::size_t>(shape.rank() - 2))); }

}  // namespace

std::string ProductEmitter::declarations(const ProductTile& tile) {
  std::string out = define("TILE_ROWS", text(tile.rows)) + define("TILE_COLUMNS", text(tile.columns)) + define("TILE_DEPTH", text(tile.depth)) +
                    define("THREAD_ROWS", text(tile.thread_rows)) + define("THREAD_COLUMNS", text(tile.thread_columns)) +
                    define("LANE_ROWS", text(tile.rows / tile.thread_rows)) + define("LANE_COLUMNS", text(tile.columns / tile.thread_columns)) +
                    define("INVOCATIONS", text(tile.invocations()));
  for (const auto& [side, lines] : {std::pair("left", tile.rows), std::pair("right", tile.columns)})
    out += "shared vec4 tile_" + std::string(side) + "[" + text(tile.depth * (lines / 4 + 1)) + "];\n";
  return out + "\n";
}

std::string ProductEmitter::function(const std::string& name) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const Loads left = loads(0), right = loads(1);
  std::string out = load_function(name + "_left", 0, left) + load_function(name + "_right", 1, right) + store_function(name + "_store");
  std::vector<std::pair<std::string, std::string>> defines{{"PRODUCT", name},
                                                           {"ROW_TILES", text(row_tiles(shape, task_.tile))},
                                                           {"COLUMN_TILES", text(column_tiles(shape, task_.tile))},
                                                           {"DEPTH", text(shape.depth)},
                                                           {"BAND", text(kBand)},
                                                           {"LEFT", name + "_left"},
                                                           {"RIGHT", name + "_right"},
                                                           {"STORE", name + "_store"}};
  for (const auto& [side, how] : {std::pair(std::string("LEFT"), left), std::pair(std::string("RIGHT"), right)}) {
    defines.emplace_back(side + "_TYPE", how.width == 4 ? "vec4" : "float");
    defines.emplace_back(side + "_WIDTH", text(how.width));
    defines.emplace_back(side + "_TURNS", text(how.turns));
    defines.emplace_back(side + "_ALONG_TERMS", how.along_terms ? "1" : "0");
    defines.emplace_back(side + "_KEEP", how.width == 1 ? "KEEP_ONE" : how.along_terms ? "KEEP_TERMS" : "KEEP_LINES");
  }
  for (const auto& [key, value] : defines) out += define(key, value);
  out += "// " + task_text(graph_, task_) + "\n" + std::string(embedded_shader("products/tiles"));
  for (const auto& [key, value] : defines) out += "#undef " + key + "\n";
  return out;
}

std::string ProductEmitter::take_body() {
  scopes_.assign(1, {});
  members_.clear();
  return std::exchange(body_, {});
}

// ---- operands ----

// Whether neighbours along the axis are neighbours in memory, wherever the views on the way put them.
bool ProductEmitter::is_contiguous(NodeIndex index, int axis) const {
  const GraphNode& node = graph_[index];
  std::int64_t behind = 1;
  for (int i = axis + 1; i < node.shape.rank(); ++i) behind *= node.shape[i];
  if (schedule_.materialized[static_cast<std::size_t>(index)]) return behind == 1;
  const auto a = static_cast<std::size_t>(axis);
  switch (node.op) {
    case Op::permute: return is_contiguous(node.inputs[0], static_cast<int>(node.ints[a]));
    case Op::expand: return graph_[node.inputs[0]].shape[axis] != 1 && is_contiguous(node.inputs[0], axis);
    case Op::slice: return node.ints[2 * a + 1] == 1 && is_contiguous(node.inputs[0], axis);
    case Op::window:
      if (axis + 1 == node.shape.rank()) return node.ints[3] == 1 && is_contiguous(node.inputs[0], static_cast<int>(node.ints[0]));
      return (axis != node.ints[0] || node.ints[2] == 1) && is_contiguous(node.inputs[0], axis);
    case Op::reshape: {
      const Shape& source = graph_[node.inputs[0]].shape;
      std::int64_t behind_source = 1;
      for (int i = source.rank() - 1; i >= 0; behind_source *= source[i--])
        if (behind_source == behind && source[i] > 1) return is_contiguous(node.inputs[0], i);
      return false;
    }
    case Op::pad: return is_contiguous(node.inputs[0], axis);
    default:
      return node.kind() == OpKind::elementwise &&
             std::ranges::any_of(node.inputs, [&](NodeIndex input) { return is_contiguous(input, axis); });
  }
}

ProductEmitter::Loads ProductEmitter::finished(Loads loads, std::size_t slot) const {
  const ProductTile& tile = task_.tile;
  const std::int32_t lines = slot == 0 ? tile.rows : tile.columns;
  loads.turns = lines * tile.depth / loads.width / tile.invocations();
  loads.lines_apart = loads.along_terms ? tile.invocations() / (tile.depth / loads.width) : 0;
  return loads;
}

// Four elements are loaded at once where they lie in memory side by side, at a multiple of four.
ProductEmitter::Loads ProductEmitter::loads(std::size_t slot) const {
  const NodeIndex operand = graph_[task_.anchor].inputs[slot];
  const Shape& shape = graph_[operand].shape;
  const int rank = shape.rank(), terms = slot == 0 ? rank - 1 : rank - 2, lines = slot == 0 ? rank - 2 : rank - 1;
  // Where neither has neighbours in memory, it is the left operand's terms that are nearer to each other: weights of a convolution.
  Loads result{.along_terms = !is_contiguous(operand, lines) && (slot == 0 || is_contiguous(operand, terms))};
  const std::optional<Strides> strides = strides_of(graph_, schedule_.materialized, operand);
  if (!strides || graph_[strides->memory].dtype != DType::float32) return finished(result, slot);
  const int vector_axis = result.along_terms ? terms : lines;
  bool aligned = strides->start % 4 == 0 && strides->axis[static_cast<std::size_t>(vector_axis)] == 1 && shape[vector_axis] % 4 == 0;
  for (int axis = 0; axis < rank; ++axis) aligned = aligned && (axis == vector_axis || shape[axis] == 1 || strides->axis[static_cast<std::size_t>(axis)] % 4 == 0);
  if (aligned) result.width = 4;
  return finished(result, slot);
}

// All of an invocation's turns in one function: what their addresses and conditions share is computed once.
std::string ProductEmitter::load_function(const std::string& name, std::size_t slot, const Loads& loads) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const NodeIndex operand = graph_[task_.anchor].inputs[slot];
  const std::string line_name = slot == 0 ? "row" : "column", type = loads.width == 4 ? "vec4" : "float";
  const std::int64_t lines = slot == 0 ? shape.rows : shape.columns;
  const bool ragged_lines = lines % (slot == 0 ? task_.tile.rows : task_.tile.columns) != 0, ragged_terms = shape.depth % task_.tile.depth != 0;
  const std::string past_lines = ragged_lines ? line_name + " >= " + text(lines) : "", past_terms = ragged_terms ? "term >= " + text(shape.depth) : "";
  // Turns go along one of the two; the other one is the same for all.
  if (ragged_lines || ragged_terms) line("[[unroll]] for (int turn = 0; turn < " + text(loads.turns) + "; turn++) loaded[turn] = " + type + "(0.0);");
  if (const std::string& past = loads.along_terms ? past_terms : past_lines; !past.empty()) line("if (" + past + ") return;");

  const std::vector<IndexExpression> batch = delinearize(named("batch"), batch_shape(graph_[operand].shape));
  const std::optional<Strides> strides = loads.width == 4 ? strides_of(graph_, schedule_.materialized, operand) : std::nullopt;
  for (std::int32_t turn = 0; turn < loads.turns; ++turn) {
    const IndexExpression at_line = IndexExpression(line_name, loads.along_terms ? 1 : loads.width) + turn * loads.lines_apart;
    const IndexExpression at_term = IndexExpression("term", loads.along_terms ? loads.width : loads.turns) + (loads.along_terms ? 0 : turn);
    const bool checked = loads.along_terms ? ragged_lines : ragged_terms;
    if (checked) open("if (" + (loads.along_terms ? at_line : at_term).str() + " < " + text(loads.along_terms ? lines : shape.depth) + ")");
    ElementIndex index{std::nullopt, batch};
    index.axes.push_back(slot == 0 ? at_line : at_term);
    index.axes.push_back(slot == 0 ? at_term : at_line);
    std::string element;
    if (strides) {
      const Place& place = schedule_.place[static_cast<std::size_t>(strides->memory)];
      IndexExpression first = IndexExpression(memory_.offset(place), kWide) + strides->start;
      for (std::size_t axis = 0; axis < index.axes.size(); ++axis) first = first + index.axes[axis] * strides->axis[axis];
      element = memory_.vectors(place) + "[" + (first / kWide).str() + "]";
    } else {
      element = value(operand, index);
    }
    line("loaded[" + text(turn) + "] = " + element + ";");
    if (checked) close();
  }
  return "void " + name + (slot == 0 ? "(int batch, int row, int term, " : "(int batch, int term, int column, ") + "out " + type + " loaded[" +
         text(loads.turns) + "]) {\n" + take_body() + "}\n";
}

// ---- outputs ----

void ProductEmitter::write(const Store& store, const IndexExpression& linear) {
  const auto position = static_cast<std::size_t>(&store - task_.stores.data());
  if (together_.empty() || together_[position].empty()) return Emitter::write(store, linear);
  line(together_[position] + "[" + text(component_) + "] = " + members_.at(store.node) + ";");
}

std::string ProductEmitter::store_function(const std::string& name) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const bool fours = shape.columns % 4 == 0;
  const bool ragged_rows = shape.rows % task_.tile.rows != 0, ragged_columns = shape.columns % task_.tile.columns != 0;
  std::string outside = ragged_rows ? "row >= " + text(shape.rows) : "";
  if (ragged_columns) outside += (outside.empty() ? "column >= " : " || column >= ") + text(shape.columns);
  if (!outside.empty()) line("if (" + outside + ") return;");
  line("int element = (batch * " + text(shape.rows) + " + row) * " + text(shape.columns) + " + column;");

  together_.assign(task_.stores.size(), {});
  for (std::size_t i = 0; fours && i < task_.stores.size(); ++i) {
    if (graph_[task_.stores[i].node].dtype != DType::float32 || task_.stores[i].row_indices >= 0) continue;
    together_[i] = "stored_" + std::to_string(i);
    line("vec4 " + together_[i] + ";");
  }
  const std::vector<IndexExpression> batch = delinearize(named("batch"), batch_shape(graph_[task_.anchor].shape));
  for (component_ = 0; component_ < 4; ++component_) {
    open(fours || component_ == 0 ? "" : "if (column + " + text(component_) + " < " + text(shape.columns) + ")");
    ElementIndex index{bind(named("element") + component_), batch};
    index.axes.emplace_back("row");
    index.axes.push_back(bind(named("column") + component_));
    members_ = {{task_.anchor, "sums[" + text(component_) + "]"}};
    evaluate_members(index);
    close();
  }
  for (std::size_t i = 0; i < task_.stores.size(); ++i) {
    if (together_[i].empty()) continue;
    const Place& place = task_.stores[i].place;
    line(memory_.vectors(place) + "[" + (IndexExpression(memory_.offset(place)) + named("element")).str() + " >> 2] = " + together_[i] + ";");
  }
  return "void " + name + "(int batch, int row, int column, vec4 sums) {\n" + take_body() + "}\n";
}

}  // namespace imprint
