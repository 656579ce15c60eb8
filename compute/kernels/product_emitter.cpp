#include "compute/kernels/product_emitter.h"

#include <algorithm>
#include <utility>

#include "compute/graph/schedule/product.h"
#include "compute/graph/schedule/winograd.h"
#include "compute/graph/strides.h"
#include "compute/kernels/elementwise_glsl.h"
#include "compute/kernels/embedded_shaders.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr std::int32_t kEights = 8;  // float16 in a vector of 16 bytes
constexpr std::int64_t kSubgroupLanes = 32;
constexpr std::int64_t kBand = 8;  // rows of tiles that run at the same time

std::string define(const std::string& name, const std::string& value) {
  return "#define " + name + " " + value + "\n";
}

// Rows of which an invocation stores four neighbours at once, and how far apart they are. What the sums are
// combined with is loaded for all of them before any is stored.
std::int64_t store_rows(const ProductTile& tile) {
  if (tile.units == MatrixUnits::none) return tile.thread_rows * tile.thread_columns == 64 ? 2 : 1;
  const std::int64_t rows = unit_memory(tile).scratch_rows * 16 * tile.thread_columns / kSubgroupLanes;
  return std::min<std::int64_t>(rows, 2);  // four need more registers: 152 instead of 139 us
}

std::int64_t rows_apart(const ProductTile& tile) {
  return tile.units == MatrixUnits::none ? 1 : kSubgroupLanes / tile.thread_columns;
}

Shape batch_shape(const Shape& shape) {
  return Shape(shape.extents().first(static_cast<std::size_t>(shape.rank() - 2)));
}

}  // namespace

std::string ProductEmitter::declarations(const ProductTile& tile) {
  std::string out = define("TILE_ROWS", text(tile.rows)) + define("TILE_COLUMNS", text(tile.columns)) +
                    define("TILE_DEPTH", text(tile.depth)) + define("THREAD_ROWS", text(tile.thread_rows)) +
                    define("THREAD_COLUMNS", text(tile.thread_columns)) +
                    define("LANE_ROWS", text(tile.rows / tile.thread_rows)) +
                    define("LANE_COLUMNS", text(tile.columns / tile.thread_columns)) +
                    define("INVOCATIONS", text(tile.invocations()));
  if (tile.units == MatrixUnits::workgroup) return out + "\n";
  if (tile.of_patches)
    return out + define("TILE_PATCHES", text(tile.columns / 4)) + "shared vec4 tile_memory[" +
           text(patch_memory(tile)) + "];\n\n";
  if (tile.units == MatrixUnits::subgroup) {
    out += define("SUBGROUP_ROWS", text(8 * tile.thread_rows)) +
           define("SUBGROUP_COLUMNS", text(4 * tile.thread_columns));
    const UnitMemory memory = unit_memory(tile);
    return out + define("LEFT_ELEMENTS", text(memory.left, "u")) +
           define("SCRATCH_ROWS", text(memory.scratch_rows)) + define("STORE_ROWS", text(store_rows(tile))) +
           "shared uvec4 tile_memory[" + text(memory.total) + "];\n\n";
  }
  out += define("SLICES", text(tile.slices)) + define("STORE_ROWS", text(store_rows(tile)));
  for (const auto& [side, lines] : {std::pair("left", tile.rows), std::pair("right", tile.columns)})
    out += "shared vec4 tile_" + std::string(side) + "[" + text(tile.depth * (lines / 4 + 1)) + "];\n";
  return out + "\n";
}

std::string ProductEmitter::function(const std::string& name) {
  if (task_.tile.units == MatrixUnits::workgroup) return workgroup_function(name);
  if (task_.tile.of_patches) return patches_function(name);
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const Loads left = loads(0), right = loads(1);
  const auto macro = [&](const std::string& side, std::size_t slot, const Loads& how) {
    return how.packs ? packing_macro(name + side, slot, how) : load_macro(name + side, slot, how);
  };
  std::string out = macro("_left", 0, left) + macro("_right", 1, right) + store_function(name + "_store");
  std::vector<std::pair<std::string, std::string>> defines{
      {"PRODUCT", name},
      {"ROW_TILES", used_row_tiles().empty() ? text(row_tiles(shape, task_.tile)) : used_row_tiles()},
      {"COLUMN_TILES", text(column_tiles(shape, task_.tile))},
      {"DEPTH", used_terms(task_.anchor).empty() ? text(shape.depth) : used_terms(task_.anchor)},
      {"BAND", text(kBand)},
      {"LEFT", name + "_left"},
      {"RIGHT", name + "_right"},
      {"STORE", name + "_store"}};
  for (const auto& [side, how] :
       {std::pair(std::string("LEFT"), left), std::pair(std::string("RIGHT"), right)}) {
    defines.emplace_back(side + "_TYPE", how.type());
    defines.emplace_back(side + "_WIDTH", text(how.width));
    defines.emplace_back(side + "_TURNS", text(how.turns));
    defines.emplace_back(side + "_ALONG_TERMS", how.along_terms ? "1" : "0");
    defines.emplace_back(side + "_KEEP", how.width == 1    ? "KEEP_ONE"
                                         : how.along_terms ? "KEEP_TERMS"
                                                           : "KEEP_LINES");
  }
  for (const auto& [key, value] : defines) out += define(key, value);
  if (stores_matrices()) {
    const Place& place = task_.stores[0].place;
    const std::string columns = text(own_columns());
    const bool joins = joins_columns(graph_, task_.anchor);
    const std::string batch = joins ? "(column) / " + columns : "batch",
                      column = joins ? "(column) % " + columns : "column";
    const std::string element =
        (start_of(place, DType::float32) +
         named("(" + batch + " * " + text(shape.rows) + " + row) * " + columns + " + " + column))
            .str();
    out += define(
        "STORE_MATRIX(sums, batch, row, column)",
        "MATRIX_STORE(sums, " + memory_.array(place, DType::float32) + ", " + element + ", " + columns + ")");
    defines.emplace_back("STORE_MATRIX", "");
  }
  out += "// " + task_text(graph_, task_) + "\n" +
         std::string(embedded_shader(task_.tile.units == MatrixUnits::subgroup ? "products/matrix_units"
                                                                               : "products/tiles"));
  for (const auto& [key, value] : defines) out += "#undef " + key + "\n";
  return out;
}

// The tiles of a single matrix whose rows begin with those that a run uses; empty: all.
std::string ProductEmitter::used_row_tiles() {
  const Shape& shape = graph_[task_.anchor].shape;
  const int row = shape.rank() - 2;
  if (schedule_.extents.empty() || task_.tile.units == MatrixUnits::workgroup) return {};
  for (int axis = 0; axis < row; ++axis)
    if (shape[axis] != 1) return {};
  const std::string used = used_places(shape, row);
  if (used.empty() || !leading_task_extent(graph_, schedule_, task_)) return {};
  return text("((", used, " + ", task_.tile.rows - 1, ") / ", task_.tile.rows, ")");
}

std::string ProductEmitter::used_groups() {
  const std::string tiles = used_row_tiles();
  return tiles.empty() ? tiles
                       : text(tiles, " * ", column_tiles(product_shape(graph_, task_.anchor), task_.tile));
}

// ---- one matrix of a workgroup ----

std::string ProductEmitter::workgroup_function(const std::string& name) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const ProductTile& tile = task_.tile;
  const bool ragged_rows = shape.rows % tile.rows != 0, ragged_columns = shape.columns % tile.columns != 0,
             ragged_terms = shape.depth % tile.depth != 0;
  const auto clamp = [](bool ragged) {
    return ragged ? "gl_CooperativeMatrixClampModeConstantNV" : "gl_CooperativeMatrixClampModeUndefinedNV";
  };
  std::vector<std::pair<std::string, std::string>> defines{{"PRODUCT", name},
                                                           {"ROW_TILES", text(row_tiles(shape, tile))},
                                                           {"COLUMN_TILES", text(column_tiles(shape, tile))},
                                                           {"ROWS", text(shape.rows)},
                                                           {"COLUMNS", text(shape.columns)},
                                                           {"DEPTH", text(shape.depth)},
                                                           {"BAND", text(kBand)}};
  const auto add = [&](const std::string& key, const std::string& value) {
    defines.emplace_back(key, value);
  };
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const std::string side = slot == 0 ? "LEFT" : "RIGHT";
    const MatrixOperand operand = *matrix_operand(graph_, schedule_.materialized, task_.anchor, slot);
    add(side + "_ARRAY", memory_.array(schedule_.place[at(operand.strides.memory)], DType::float16));
    add(side + "_PLACE(batch)", operand_place(operand, slot));
    add(side + "_STRIDE", text(operand.stride));
    add(side + "_ALONG_TERMS", operand.along_terms ? "1" : "0");
    add(side + "_CLAMP", clamp(ragged_terms || (slot == 0 ? ragged_rows : ragged_columns)));
  }
  std::string out;
  if (stores_sums()) {
    const Place& place = task_.stores[0].place;
    add("STORE_ARRAY", memory_.array(place, DType::float32));
    add("STORE_PLACE(batch)",
        (start_of(place, DType::float32) + named("(batch)") * (shape.rows * shape.columns)).str());
    add("STORE_CLAMP", clamp(ragged_rows || ragged_columns));
  } else {
    add("STORE", name + "_store");
    out = element_function(name + "_store");
  }
  for (const auto& [key, value] : defines) out += define(key, value);
  out +=
      "// " + task_text(graph_, task_) + "\n" + std::string(embedded_shader("products/workgroup_matrices"));
  for (const auto& [key, value] : defines) out += "#undef " + key.substr(0, key.find('(')) + "\n";
  return out;
}

// The first element of an operand in memory. Offsets that are multiples of 16 bytes say so in the text, since
// the driver only sees them at run time.
std::string ProductEmitter::operand_place(const MatrixOperand& operand, std::size_t slot) {
  const Place& place = schedule_.place[at(operand.strides.memory)];
  const Shape batch = batch_shape(graph_[graph_[task_.anchor].inputs[slot]].shape);
  IndexExpression element = start_of(place, DType::float16) + operand.strides.start;
  std::int64_t inner = batch.element_count();  // binds no names: this is the text of a macro
  for (int axis = 0; axis < batch.rank(); ++axis) {
    inner /= batch[axis];
    const IndexExpression along = named("(batch)") / inner;
    element = element + (axis == 0 ? along : along % batch[axis]) * operand.strides.axis[at(axis)];
  }
  return operand.in_eights ? "((" + (element / 8).str() + ") * 8)" : "(" + element.str() + ")";
}

// The function that turns one sum into the task's result.
std::string ProductEmitter::element_function(const std::string& name) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  line("int row = row_0 + int(tile_row), column = column_0 + int(tile_column);");
  std::string outside = shape.rows % task_.tile.rows != 0 ? "row >= " + text(shape.rows) : "";
  if (shape.columns % task_.tile.columns != 0)
    outside += (outside.empty() ? "column >= " : " || column >= ") + text(shape.columns);
  if (!outside.empty()) line("if (" + outside + ") return sum;");
  line("int element = (batch * " + text(shape.rows) + " + row) * " + text(shape.columns) + " + column;");
  ElementIndex index{named("element"), delinearize(named("batch"), batch_shape(graph_[task_.anchor].shape))};
  index.axes.emplace_back("row");
  index.axes.emplace_back("column");
  members_ = {{task_.anchor, "sum"}};
  evaluate_members(index);
  line("return sum;");
  return "float " + name +
         "(const in uint tile_row, const in uint tile_column, const in float sum, const in int batch, const "
         "in int row_0, const in int column_0) {\n" +
         take_body() + "}\n";
}

std::string ProductEmitter::take_body() {
  scopes_.assign(1, {});
  members_.clear();
  return std::exchange(body_, {});
}

// ---- operands ----

ProductEmitter::Loads ProductEmitter::loads(std::size_t slot) const {
  const ProductTile& tile = task_.tile;
  const bool on_units = tile.units == MatrixUnits::subgroup;
  const auto [along_terms, width] =
      operand_layout(graph_, schedule_.materialized, task_.anchor, slot, on_units ? kEights : 4);
  Loads loads{
      .along_terms = along_terms, .width = on_units ? kEights : width, .packs = on_units && width < kEights};
  loads.turns = (slot == 0 ? tile.rows : tile.columns) * tile.depth / loads.width / tile.invocations();
  loads.lines_apart = along_terms ? tile.invocations() / (tile.depth / loads.width) : 0;
  return loads;
}

// All loads of an invocation. A macro, because the page uses it twice and drivers may not keep the results of
// a function that is not inlined in registers.
std::string ProductEmitter::load_macro(const std::string& name, std::size_t slot, const Loads& loads) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const NodeIndex operand = graph_[task_.anchor].inputs[slot];
  const std::optional<Strides> strides =
      loads.width > 1 ? strides_of(graph_, schedule_.materialized, operand) : std::nullopt;
  const std::string line_name = slot == 0 ? "row" : "column",
                    turns = "[[unroll]] for (int turn = 0; turn < " + text(loads.turns) + "; turn++)";
  const std::int64_t lines = slot == 0 ? shape.rows : shape.columns;
  const bool ragged_lines = lines % (slot == 0 ? task_.tile.rows : task_.tile.columns) != 0,
             ragged_terms = shape.depth % task_.tile.depth != 0;
  const bool joins = slot == 1 && joins_columns(graph_, task_.anchor);
  // Turns advance along one axis; the position on the other axis is the same for all.
  const bool turns_ragged = loads.along_terms ? ragged_lines : ragged_terms,
             others_ragged = loads.along_terms ? ragged_terms : ragged_lines;
  const auto load_turn = [&](const IndexExpression& line_at, const IndexExpression& term_at,
                             const std::string& turn) {
    if (turns_ragged)
      open("if (" + (loads.along_terms ? line_at : term_at).str() + " < " +
           text(loads.along_terms ? lines : shape.depth) + ")");
    const IndexExpression batch = joins ? line_at / own_columns() : named("batch"),
                          own_line = joins ? line_at % own_columns() : line_at;
    ElementIndex index{std::nullopt, delinearize(batch, batch_shape(graph_[operand].shape))};
    index.axes.push_back(slot == 0 ? own_line : term_at);
    index.axes.push_back(slot == 0 ? term_at : own_line);
    line("loaded[" + turn + "] = " +
         (strides           ? vector_at(*strides, index, loads.width)
          : loads.width > 1 ? vector_behind(operand, index)
                            : value(operand, index)) +
         ";");
    if (turns_ragged) close();
  };

  // Positions on matrix units are unsigned, and names for what is computed of them are not.
  const std::string line_at = !strides ? line_name : (joins ? "int(" : "(") + line_name + "_at)",
                    term_at = strides ? "(term_at)" : "term";
  if (!strides) line("int " + line_name + " = int(" + line_name + "_at), term = int(term_at);");
  if (ragged_lines || ragged_terms) line(turns + " loaded[turn] = " + loads.type() + "(0);");
  open(others_ragged
           ? "if (" +
                 (loads.along_terms ? term_at + " < " + text(shape.depth) : line_at + " < " + text(lines)) +
                 ")"
           : "");
  const IndexExpression first_line(line_at, loads.along_terms ? 1 : loads.width),
      first_term(term_at, loads.along_terms ? loads.width : loads.turns);
  const auto at_turn = [&](const IndexExpression& turn, const std::string& position) {
    load_turn(first_line + turn * loads.lines_apart,
              first_term + (loads.along_terms ? IndexExpression(0) : turn), position);
  };
  if (strides) {
    // A loop without names for what its turns share: NVIDIA's compiler then issues the loads together (47
    // instead of 38 TFLOP/s).
    open(turns);
    at_turn(named("turn"), "turn");
    close();
  } else {
    for (std::int32_t turn = 0; turn < loads.turns; ++turn)
      at_turn(turn, text(turn));  // addresses and conditions share what is computed once
  }
  close();
  return macro_of_body(name, slot);
}

std::string ProductEmitter::macro_of_body(const std::string& name, std::size_t slot) {
  return parameterised(name,
                       slot == 0 ? "batch, row_at, term_at, loaded" : "batch, term_at, column_at, loaded");
}

std::string ProductEmitter::parameterised(const std::string& name, const std::string& parameters) {
  std::string body = take_body();
  for (std::size_t end = body.find('\n'); end != std::string::npos; end = body.find('\n', end + 3))
    body.replace(end, 1, " \\\n");
  return "#define " + name + "(" + parameters + ") { \\\n" + body + "}\n";
}

// Eight neighbours one by one, packed into a vector: windows of an image, and lines that are no whole
// vectors. Zero outside.
std::string ProductEmitter::packing_macro(const std::string& name, std::size_t slot, const Loads& loads) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const NodeIndex operand = graph_[task_.anchor].inputs[slot];
  const std::string line_name = slot == 0 ? "row" : "column";
  const std::int64_t lines = slot == 0 ? shape.rows : shape.columns;
  const bool joined = slot == 1 && joins_columns(graph_, task_.anchor),
             ragged_lines = lines % (slot == 0 ? task_.tile.rows : task_.tile.columns) != 0,
             ragged_terms = shape.depth % task_.tile.depth != 0;
  line("int " + line_name + " = int(" + line_name + "_at), term = int(term_at);");
  const IndexExpression first_line(line_name, loads.along_terms ? 1 : kEights),
      first_term("term", loads.along_terms ? kEights : loads.turns);
  for (std::int32_t turn = 0; turn < loads.turns; ++turn) {
    std::string halves[kEights];
    for (std::int32_t i = 0; i < kEights; ++i) {
      const IndexExpression line_at = first_line + (loads.along_terms ? turn * loads.lines_apart : i),
                            term_at = first_term + (loads.along_terms ? i : turn);
      halves[i] = "half_" + text(turn) + "_" + text(i);
      line("float " + halves[i] + " = 0.0;");
      std::string inside = ragged_lines ? line_at.str() + " < " + text(lines) : "";
      if (ragged_terms) inside += (inside.empty() ? "" : " && ") + term_at.str() + " < " + text(shape.depth);
      open(inside.empty() ? "" : "if (" + inside + ")");
      ElementIndex index{std::nullopt, delinearize(joined ? line_at / own_columns() : named("batch"),
                                                   batch_shape(graph_[operand].shape))};
      const IndexExpression own_line = joined ? line_at % own_columns() : line_at;
      index.axes.push_back(slot == 0 ? own_line : term_at);
      index.axes.push_back(slot == 0 ? term_at : own_line);
      line(halves[i] + " = " + value(operand, index) + ";");
      close();
    }
    std::string packed;
    for (std::int32_t i = 0; i < kEights; i += 2)
      packed += (i == 0 ? "" : ", ") + ("packHalf2x16(vec2(" + halves[i] + ", " + halves[i + 1] + "))");
    line("loaded[" + text(turn) + "] = uvec4(" + packed + ");");
  }
  return macro_of_body(name, slot);
}

// Neighbours of which the index names the first, where reads_in_vectors() holds: eight float16 or four
// float32.
std::string ProductEmitter::vector_behind(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  if (in_memory(node)) {
    const Place& place = schedule_.place[at(node)];
    const IndexExpression first = start_of(place, entry.dtype) + linear_of(index, entry.shape);
    if (entry.dtype == DType::float32) return load_four(place, entry.dtype, first / kWide);
    return memory_.quads(place) + "[" + (first / kEights).str() + "]";
  }
  if (entry.op != Op::pad) return vector_behind(entry.inputs[0], through_view(node, index));
  const Shape& source = graph_[entry.inputs[0]].shape;
  ElementIndex inner{std::nullopt, axes_of(index, entry.shape)};
  std::string inside;
  for (int axis = 0; axis < source.rank(); ++axis) {
    const std::int64_t before = entry.ints[2 * at(axis)], after = entry.ints[2 * at(axis) + 1];
    IndexExpression& position = inner.axes[at(axis)];
    position = bind(position - before);
    if (before == 0 && after == 0) continue;
    // As unsigned, a negative position is beyond all others.
    inside += text(inside.empty() ? "" : " && ", "uint(", position.str(), ") < ", source[axis], "u");
  }
  if (inside.empty()) return vector_behind(entry.inputs[0], inner);
  const std::string eight = fresh('e');
  line("uvec4 " + eight + " = uvec4(0);");
  open("if (" + inside + ")");
  line(eight + " = " + vector_behind(entry.inputs[0], inner) + ";");
  close();
  return eight;
}

// `width` neighbours, as one vector element of the value's buffer.
std::string ProductEmitter::vector_at(const Strides& strides, const ElementIndex& index, std::int32_t width) {
  const Place& place = schedule_.place[at(strides.memory)];
  const DType dtype = graph_[strides.memory].dtype;
  IndexExpression vector = (start_of(place, dtype) + strides.start) / width;
  for (std::size_t axis = 0; axis < index.axes.size(); ++axis) {
    const std::int64_t stride = strides.axis[axis];
    vector = vector +
             (stride % width == 0 ? index.axes[axis] * (stride / width) : index.axes[axis] * stride / width);
  }
  return width == 8 ? memory_.quads(place) + "[" + vector.str() + "]" : load_four(place, dtype, vector);
}

// ---- outputs ----

bool ProductEmitter::stores_sums() const {
  return task_.members.size() == 1 && task_.stores.size() == 1 && task_.stores[0].row_indices < 0;
}

std::int64_t ProductEmitter::own_columns() const {
  const Shape& shape = graph_[task_.anchor].shape;
  return shape[shape.rank() - 1];
}

bool ProductEmitter::stores_matrices() const {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const bool whole = shape.rows % task_.tile.rows == 0 && shape.columns % task_.tile.columns == 0 &&
                     own_columns() % kMatrixExtent == 0;
  return task_.tile.units == MatrixUnits::subgroup && whole && stores_sums();
}

std::string ProductEmitter::store_function(const std::string& name) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const bool ragged_rows = shape.rows % task_.tile.rows != 0,
             ragged_columns = shape.columns % task_.tile.columns != 0;
  const std::int64_t rows = store_rows(task_.tile), apart = rows_apart(task_.tile);
  if (!ragged_rows && !ragged_columns && !joins_columns(graph_, task_.anchor) && own_columns() % kWide == 0) {
    write_fours(rows, apart);
    if (!std::exchange(is_refused_, false))
      return "void " + name + "(int batch, int row, int column, vec4 sums[" + text(rows) + "]) {\n" +
             take_body() + "}\n";
    take_body();
  }
  std::string outside = ragged_rows ? "row >= " + text(shape.rows) : "";
  if (ragged_columns) outside += (outside.empty() ? "column >= " : " || column >= ") + text(shape.columns);
  if (!outside.empty()) line("if (" + outside + ") return;");
  const std::string columns = text(own_columns());
  const bool joins = joins_columns(graph_, task_.anchor), in_fours = own_columns() % kWide == 0;
  if (joins && in_fours) line("batch = column / " + columns + "; column %= " + columns + ";");
  const std::string element = "(batch * " + text(shape.rows) + " + row) * " + columns + " + column";
  if (!joins || in_fours) line("int element = " + element + ";");
  const std::string head = body_;
  if (in_fours) write_four();
  if (!in_fours || is_refused_) {
    is_refused_ = false;
    take_body();
    body_ = head;
    if (joins && !in_fours)
      write_one_by_one_of_joined(shape);
    else
      write_one_by_one(own_columns());
  }
  const std::string one = name + "_row";
  std::string function =
      "void " + one + "(int batch, int row, int column, vec4 sums) {\n" + take_body() + "}\n";
  for (std::int64_t i = 0; i < rows; ++i)
    line(text(one, "(batch, row + ", i * apart, ", column, sums[", i, "]);"));
  return function + "void " + name + "(int batch, int row, int column, vec4 sums[" + text(rows) + "]) {\n" +
         take_body() + "}\n";
}

void ProductEmitter::write_four() {
  ElementIndex index{IndexExpression("element", kWide),
                     delinearize(named("batch"), batch_shape(graph_[task_.anchor].shape))};
  index.linear->lane = 1;
  index.axes.emplace_back("row");
  index.axes.emplace_back("column", kWide);
  index.axes.back().lane = 1;
  wide_names_.insert("sums");
  members_ = {{task_.anchor, "sums"}};
  evaluate_members(index);
}

// Four neighbours of each of several rows. All are computed before any is stored: memory may be the same, so
// that drivers would not load what comes later before a store.
void ProductEmitter::write_fours(std::int64_t rows, std::int64_t apart) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const std::vector<IndexExpression> batch =
      delinearize(named("batch"), batch_shape(graph_[task_.anchor].shape));
  std::vector<std::unordered_map<NodeIndex, std::string>> members;
  std::vector<IndexExpression> elements;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::string row = text("row_", i), element = text("element_", i), sums = text("sums_", i);
    line(text("int ", row, " = row + ", i * apart, ", ", element, " = (batch * ", shape.rows, " + ", row,
              ") * ", own_columns(), " + column;"));
    line(text("vec4 ", sums, " = sums[", i, "];"));
    ElementIndex index{IndexExpression(element, kWide), batch};
    index.linear->lane = 1;
    index.axes.emplace_back(row);
    index.axes.emplace_back("column", kWide);
    index.axes.back().lane = 1;
    wide_names_.insert(sums);
    members_ = {{task_.anchor, sums}};
    compute_members(index);
    members.push_back(std::exchange(members_, {}));
    elements.push_back(*index.linear);
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    members_ = members[i];
    store_members(elements[i]);
  }
}

// The four may belong to two products of the batch.
void ProductEmitter::write_one_by_one_of_joined(const ProductShape& shape) {
  const std::string columns = text(own_columns());
  for (int component = 0; component < kWide; ++component) {
    const std::string own = text(component);
    open(component == 0 ? "" : "if (column + " + own + " < " + text(shape.columns) + ")");
    line("int batch_" + own + " = (column + " + own + ") / " + columns + ", column_" + own + " = (column + " +
         own + ") % " + columns + ";");
    line("int element_" + own + " = (batch_" + own + " * " + text(shape.rows) + " + row) * " + columns +
         " + column_" + own + ";");
    ElementIndex index{named("element_" + own),
                       delinearize(named("batch_" + own), batch_shape(graph_[task_.anchor].shape))};
    index.axes.emplace_back("row");
    index.axes.push_back(named("column_" + own));
    members_ = {{task_.anchor, "sums[" + own + "]"}};
    evaluate_members(index);
    close();
  }
}

void ProductEmitter::write_one_by_one(std::int64_t columns) {
  const std::vector<IndexExpression> batch =
      delinearize(named("batch"), batch_shape(graph_[task_.anchor].shape));
  for (int component = 0; component < kWide; ++component) {
    open(component == 0 ? "" : "if (column + " + text(component) + " < " + text(columns) + ")");
    ElementIndex index{bind(named("element") + component), batch};
    index.axes.emplace_back("row");
    index.axes.push_back(bind(named("column") + component));
    members_ = {{task_.anchor, "sums[" + text(component) + "]"}};
    evaluate_members(index);
    close();
  }
}

}  // namespace imprint::kernels
