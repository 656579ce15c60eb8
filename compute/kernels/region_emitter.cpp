#include "compute/kernels/region_emitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compute/graph/fusion.h"
#include "compute/kernels/elementwise_glsl.h"

namespace imprint {
namespace {

// Rows of one turn of a loop over them, and floats that an invocation then loads.
constexpr std::int64_t kMostRows = 8, kRowLoads = 64;

// Terms of a product that workgroups in turns load without a loop, and multiply-adds of an invocation up to which that is the faster (by timing).
constexpr std::int64_t kShortProduct = 16, kShortWork = 160;

// Rows from which on a fold over them gives each its own invocation; for fewer, adding what those have costs more.
constexpr std::int64_t kFoldBeside = 16;

bool is_vector(const RegionValue& weights, bool vectors) { return vectors && weights.width % 4 == 0; }

}  // namespace

RegionEmitter::RegionEmitter(const Graph& graph, const Schedule& schedule, const Task& task, MemoryNames& memory, std::set<std::string>& includes,
                             int fold_terms)
    : Emitter(graph, schedule, task, memory, includes, fold_terms),
      region_(schedule.regions[static_cast<std::size_t>(task.region)]),
      ragged_(region_.rows % region_.row_block != 0) {}

std::string RegionEmitter::shared_arrays() const {
  std::string declarations;
  if (region_.shared_floats > 0)
    declarations += region_.vectors ? "shared vec4 rows_f[" + text(region_.shared_floats / 4) + "];\n" : "shared float rows_f[" + text(region_.shared_floats) + "];\n";
  if (region_.shared_ints > 0) declarations += "shared int rows_i[" + text(region_.shared_ints) + "];\n";
  return declarations + "\n";
}

std::string RegionEmitter::function(const std::string& name) {
  line("int lane = int(gl_LocalInvocationID.x);");
  if (region_.groups > 1) line("int network = group / " + text(region_.blocks) + ";");
  line("int block = " + std::string(region_.groups > 1 ? "group % " + text(region_.blocks) : "group") + ";");
  const std::string before = std::exchange(body_, {});
  if (region_.turns > 1) {
    write_turns();
  } else {
    line("int row_0 = block * " + text(region_.row_block) + ";");
    write_rows_here();
    for (const RegionStage& entry : region_.stages) stage(entry);
  }
  add_rows_beside();
  body_ = before + sums_ + body_;
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

void RegionEmitter::write_rows_here() {
  if (ragged_) line("int rows_here = min(" + text(region_.row_block) + ", " + text(region_.rows) + " - row_0);");
}

// Weights are loaded before the first turn, sums over the rows declared before it and stored behind the last.
void RegionEmitter::write_turns() {
  stage(region_.stages[0]);
  const std::string before = std::exchange(body_, {});
  open("for (int turn = 0; turn < " + text(region_.turns) + "; turn++)");
  line("int row_0 = (block * " + text(region_.turns) + " + turn) * " + text(region_.row_block) + ";");
  if (region_.rows % (region_.row_block * region_.turns) != 0) line("if (row_0 >= " + text(region_.rows) + ") break;");
  write_rows_here();
  for (std::size_t s = 1; s < region_.stages.size(); ++s) stage(region_.stages[s]);
  barrier();   // the next turn writes where this one reads
  close();
  const std::string turns = std::exchange(body_, {});
  for (const auto& store : partial_stores_) store();
  body_ = before + turns + body_;
}

// A register that starts at the value and lasts through all turns.
std::string RegionEmitter::declare_sum(DType dtype, const std::string& start) {
  return region_.turns == 1 ? declare(dtype, start) : declare_lasting(dtype, start);
}

std::string RegionEmitter::declare_lasting(DType dtype, const std::string& start) {
  const std::string name = fresh('s');
  sums_ += "  " + std::string(glsl_type(dtype)) + " " + name + " = " + start + ";\n";
  return name;
}

void RegionEmitter::stage(const RegionStage& stage) {
  if (stage.members.empty()) return;
  if (stage.barrier_before) barrier();
  std::string title = "//";
  for (NodeIndex member : stage.members) title += " " + node_text(graph_, member) + ",";
  title.pop_back();
  line(title);
  switch (stage.kind) {
    case RegionStage::Kind::load: load_weights(stage); break;
    case RegionStage::Kind::spread: spread(stage); break;
    case RegionStage::Kind::product: product(stage); break;
    case RegionStage::Kind::outer_product: outer_product(stage); break;
    case RegionStage::Kind::row_fold: row_fold(stage); break;
  }
  members_.clear();
}

void RegionEmitter::barrier() {
  line("barrier();");
  taken_ = 0;
}

// ---- rows and elements ----

// Stages that no barrier keeps apart go to subgroups of their own as long as there are some left.
void RegionEmitter::invocations_take(std::int64_t count, const std::string& name) {
  constexpr std::int64_t kSubgroup = 32;   // of most devices; on others stages may share one
  first_ = taken_ + count <= region_.invocations ? taken_ : 0;
  taken_ = (first_ + count + kSubgroup - 1) / kSubgroup * kSubgroup;
  take_from(first_, count, name);
}

void RegionEmitter::take_from(std::int64_t first, std::int64_t count, const std::string& name) {
  if (first > 0) {
    open("if (lane >= " + text(first) + (first + count == region_.invocations ? "" : " && lane < " + text(first + count)) + ")");
    line("int " + name + " = lane - " + text(first) + ";");
  } else if (count <= region_.invocations) {
    open(count == region_.invocations ? "" : "if (lane < " + text(count) + ")");
    line("int " + name + " = lane;");
  } else {
    open("for (int " + name + " = lane; " + name + " < " + text(count) + "; " + name + " += " + text(region_.invocations) + ")");
  }
}

RegionEmitter::Row RegionEmitter::row(const IndexExpression& local) {
  IndexExpression global = bind(IndexExpression("row_0", region_.row_block) + local);
  if (ragged_) {
    const std::string inside = fresh('r');
    line("int " + inside + " = min(" + global.str() + ", " + text(region_.rows - 1) + ");");
    global = named(inside);
  }
  local_row_[global.str()] = local;
  return {local, global};
}

// Rows of one turn of the loop, as many as `most` where their number is known: their loads are under way together. The sums keep their order.
std::vector<RegionEmitter::Row> RegionEmitter::open_rows_loop(const std::string& name, std::int64_t most) {
  const std::int64_t step = ragged_ || !region_.vectors ? 1 : std::min<std::int64_t>(static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most))), region_.row_block);
  open("for (int " + name + " = 0; " + name + " < " + (ragged_ ? "rows_here" : text(region_.row_block)) + "; " + name + (step == 1 ? std::string("++") : " += " + text(step)) + ")");
  std::vector<Row> rows;
  for (std::int64_t next = 0; next < step; ++next) rows.push_back(row(next == 0 ? named(name) : bind(named(name) + next)));
  return rows;
}

// The element of a row's features, counted over all axes but those of rows and networks; of a partial result, over all but the networks'.
ElementIndex RegionEmitter::element(NodeIndex node, const IndexExpression& row, const IndexExpression& feature) {
  const RegionValue& value = *region_.find(node);
  const Shape& shape = graph_[node].shape;
  Shape features;
  for (int axis = 0; axis < shape.rank(); ++axis) features.append(axis == value.row_axis || axis == value.group_axis ? 1 : shape[axis]);
  ElementIndex index{std::nullopt, delinearize(feature, features)};
  if (value.row_axis >= 0) index.axes[static_cast<std::size_t>(value.row_axis)] = row;
  if (value.group_axis >= 0) index.axes[static_cast<std::size_t>(value.group_axis)] = region_.groups > 1 ? named("network") : IndexExpression(0);
  if (shape.rank() == 0) index.linear = 0;
  return index;
}

IndexExpression RegionEmitter::feature_of(const RegionValue& value, const ElementIndex& index) {
  const Shape& shape = graph_[value.node].shape;
  IndexExpression linear = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axis != value.row_axis && axis != value.group_axis && shape[axis] > 1) linear = linear * shape[axis] + index.axes[static_cast<std::size_t>(axis)];
  return linear;
}

IndexExpression RegionEmitter::shared_position(const RegionValue& value, const ElementIndex& index, const IndexExpression& local_row) {
  return local_row * value.stride + value.offset + feature_of(value, index);
}

// ---- memory ----

std::string RegionEmitter::cell(const std::string& array, const IndexExpression& position) {
  if (!region_.vectors) return array + "[" + position.str() + "]";
  const IndexExpression component = position % 4;
  if (component.is_constant()) return array + "[" + (position / 4).str() + "]." + kComponents[component.constant];
  const IndexExpression own = bind(position);
  return array + "[" + (own / 4).str() + "][" + (own % 4).str() + "]";
}

std::string RegionEmitter::load_float(const std::string& array, const IndexExpression& position) {
  const IndexExpression component = position % 4;
  if (!region_.vectors || !component.is_constant()) return declare(DType::float32, cell(array, position));
  const std::string vector = array + "[" + (position / 4).str() + "]";
  const std::string* name = known(vector);
  if (!name) {
    const std::string own = fresh('q');
    line("vec4 " + own + " = " + vector + ";");
    remember(vector, own);
    name = known(vector);
  }
  return *name + "." + kComponents[component.constant];
}

void RegionEmitter::store_float(const std::string& array, const IndexExpression& position, const std::string& value) {
  const IndexExpression component = position % 4;
  if (!region_.vectors || !component.is_constant()) {
    line(cell(array, position) + " = " + value + ";");
    return;
  }
  Vector& vector = vectors_[array + "[" + (position / 4).str() + "]"];
  vector[static_cast<std::size_t>(component.constant)] = value;
}

void RegionEmitter::store_vectors() {
  for (const auto& [place, values] : vectors_) {
    if (std::ranges::none_of(values, &std::string::empty)) {
      line(place + " = vec4(" + values[0] + ", " + values[1] + ", " + values[2] + ", " + values[3] + ");");
      continue;
    }
    for (std::size_t component = 0; component < values.size(); ++component)
      if (!values[component].empty()) line(place + "." + kComponents[component] + " = " + values[component] + ";");
  }
  vectors_.clear();
}

// A last vector that is not whole may reach beyond a buffer of the host's.
bool RegionEmitter::has_vectors(NodeIndex node) const {
  return region_.vectors && graph_[node].dtype == DType::float32 && graph_[node].element_count() % 4 == 0;
}

std::string RegionEmitter::load(NodeIndex node, const ElementIndex& index) {
  const DType dtype = graph_[node].dtype;
  const RegionValue* value = region_.find(node);
  if (!is_shared(node)) {
    if (!has_vectors(node)) return Emitter::load(node, index);
    const Place& place = schedule_.place[static_cast<std::size_t>(node)];
    const IndexExpression position = IndexExpression(memory_.offset(place), kPlaceAlignment) + linear_of(index, graph_[node].shape);
    return (position % 4).is_constant() ? load_float(memory_.vectors(place), position) : Emitter::load(node, index);
  }
  if (value->row_axis < 0) {  // weights
    const std::vector<IndexExpression> axes = axes_of(index, graph_[node].shape);
    return load_float("rows_f", bind(axes[axes.size() - 2] * value->stride + axes.back()) + value->offset);
  }
  const IndexExpression& global = index.axes[static_cast<std::size_t>(value->row_axis)];
  const auto local = local_row_.find(global.str());
  const IndexExpression position = bind(shared_position(*value, index, local != local_row_.end() ? local->second : global - named("row_0")));
  if (dtype_is_float(dtype)) return load_float("rows_f", position);
  const std::string element = "rows_i[" + position.str() + "]";
  return declare(dtype, dtype == DType::boolean ? element + " != 0" : element);
}

bool RegionEmitter::is_shared(NodeIndex node) const {
  const RegionValue* value = region_.find(node);
  return value && value->offset >= 0;
}

bool RegionEmitter::in_memory(NodeIndex node) const {
  return !is_shared(node) && Emitter::in_memory(node);
}

void RegionEmitter::write(const Store& store, const IndexExpression& linear) {
  if (!has_vectors(store.node) || store.row_indices >= 0) return Emitter::write(store, linear);
  const IndexExpression position = IndexExpression(memory_.offset(store.place), kPlaceAlignment) + linear;
  if ((position % 4).is_constant()) store_float(memory_.vectors(store.place), position, members_.at(store.node));
  else Emitter::write(store, linear);
}

void RegionEmitter::keep(NodeIndex member, const ElementIndex& index, const Row& row) {
  const RegionValue& value = *region_.find(member);
  const std::string& name = members_.at(member);
  if (value.offset >= 0) {
    const IndexExpression position = shared_position(value, index, row.local);
    if (dtype_is_float(graph_[member].dtype)) store_float("rows_f", bind(position), name);
    else line("rows_i[" + position.str() + "] = " + (graph_[member].dtype == DType::boolean ? "int(" + name + ")" : name) + ";");
  }
  for (const Store& store : task_.stores) {
    if (store.node != member) continue;
    if (!ragged_) {
      write(store, linear_of(index, graph_[member].shape));
      continue;
    }
    store_vectors();   // those of before are not in this scope
    open("if (" + row.local.str() + " < rows_here)");
    write(store, linear_of(index, graph_[member].shape));
    store_vectors();
    close();
  }
}

void RegionEmitter::evaluate(const RegionStage& stage, const IndexExpression& feature, const Row& row) {
  for (NodeIndex member : stage.members) {
    const ElementIndex index = element(member, row.global, feature);
    if (!members_.contains(member)) {
      const std::string* ready = known(key_of(member, index));
      members_[member] = ready ? *ready : compute(member, index);
    }
    keep(member, index, row);
  }
  std::erase_if(members_, [&](const auto& entry) { return entry.first != stage.anchor; });
}

// ---- stages ----

// All loads of an invocation are under way before it stores the first, as far as registers last.
void RegionEmitter::load_weights(const RegionStage& stage) {
  constexpr std::size_t kTurn = 16;
  struct Loaded { std::string name; const RegionValue* value; IndexExpression element; };
  std::vector<Loaded> loaded;
  const auto store = [&] {
    for (const auto& [name, value, element] : loaded) {
      const IndexExpression position = element / value->width * value->stride + element % value->width + value->offset;
      line((is_vector(*value, region_.vectors) ? "rows_f[" + (position / 4).str() + "]" : cell("rows_f", position)) + " = " + name + ";");
    }
    loaded.clear();
  };
  for (NodeIndex weights : stage.members) {
    const RegionValue& value = *region_.find(weights);
    const Place& place = schedule_.place[static_cast<std::size_t>(weights)];
    const std::int64_t wide = is_vector(value, region_.vectors) ? 4 : 1, count = value.height * value.width / wide, step = region_.invocations;
    IndexExpression source(memory_.offset(place), kPlaceAlignment);
    if (region_.groups > 1) source = source + named("network") * (count * wide);
    const std::string array = wide > 1 ? memory_.vectors(place) : memory_.array(place, DType::float32);
    for (std::int64_t first = 0; first < count; first += step) {
      IndexExpression element = named("lane") + first;
      if (first + step > count) element = bind(named("min(" + element.str() + ", " + text(count - 1) + ")"));   // the last one again
      const std::string name = fresh('w');
      line(std::string(wide > 1 ? "vec4 " : "float ") + name + " = " + array + "[" + (source / wide + element).str() + "];");
      loaded.push_back({name, &value, element * wide});
      if (loaded.size() == kTurn) store();
    }
  }
  store();
}

void RegionEmitter::spread(const RegionStage& stage) {
  const RegionValue& value = *region_.find(stage.members[0]);
  const std::string e = fresh('e'), r = fresh('l');
  // Neighbours load and store as vectors, where that leaves work for every invocation.
  const std::int64_t wide = region_.vectors && value.width % kWide == 0 && region_.row_block * value.width >= kWide * region_.invocations ? kWide : 1;
  invocations_take(region_.row_block * value.width / wide, e);
  line("int " + r + " = " + (named(e) / (value.width / wide)).str() + ";");
  const Row own = row(named(r));
  const IndexExpression first = bind(named(e) % (value.width / wide)) * wide;
  for (std::int64_t next = 0; next < wide; ++next) evaluate(stage, wide == 1 ? first : first + next, own);
  store_vectors();
  close();
}

// The rows and columns that each tile of a product takes, as functions of its number.
struct RegionEmitter::Tiling {
  std::int64_t row_lanes, lanes, columns;   // tiles along the rows and along the columns, and the columns in all
  std::int32_t tile_rows, tile_columns;
  bool rows_first, rows_beside, columns_beside;

  std::int64_t count() const { return row_lanes * lanes; }
  IndexExpression row_lane(const IndexExpression& tile) const { return rows_first ? tile % row_lanes : tile / lanes; }
  IndexExpression lane(const IndexExpression& tile) const { return rows_first ? tile / row_lanes : tile % lanes; }
  IndexExpression row(const IndexExpression& row_lane, const IndexExpression& i) const { return rows_beside ? row_lane * tile_rows + i : row_lane + i * row_lanes; }
  IndexExpression column(const IndexExpression& lane, const IndexExpression& j) const { return columns_beside ? lane * tile_columns + j : lane + j * lanes; }
};

RegionEmitter::Tiling RegionEmitter::tiling_of(const RegionStage& stage) const {
  const std::int64_t columns = region_.find(stage.anchor)->width;
  Tiling tiling{region_.row_block / stage.tile_rows, (columns + stage.tile_columns - 1) / stage.tile_columns, columns, stage.tile_rows, stage.tile_columns,
                false, !region_.vectors, stage.columns_beside};
  // Neighbouring invocations share columns, and so what they load of the weights, where the rows that they read lie in different banks of shared
  // memory; where rows come from the device's memory they share those.
  tiling.rows_first = region_.vectors && is_shared(side(stage.anchor, true));
  return tiling;
}

NodeIndex RegionEmitter::side(NodeIndex product, bool of_rows) const {
  const GraphNode& node = graph_[product];
  NodeIndex side = node.inputs[(region_.find(product)->row_axis == node.shape.rank() - 2) == of_rows ? 0 : 1];
  while (!schedule_.materialized[static_cast<std::size_t>(side)] && graph_[side].kind() == OpKind::view) side = graph_[side].inputs[0];
  return side;
}

// Where outputs are fewer than invocations, several share the terms of one; their sums meet in shared memory and are added in order.
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
    if (!tiling.columns_beside && (j + 1) * tiling.lanes > tiling.columns) own = bind(named("min(" + own.str() + ", " + text(tiling.columns - 1) + ")"));
    columns.push_back(own);
  }
  std::vector<std::string> sums;
  for (int e = 0; e < stage.tile_rows * stage.tile_columns; ++e) sums.push_back(declare(DType::float32, "0.0"));

  const auto operand = [&](bool of_rows, const IndexExpression& position, const IndexExpression& term) {
    const std::size_t slot = of_rows == rows_left ? 0 : 1;
    ElementIndex index = element(stage.anchor, IndexExpression(0), IndexExpression(0));
    const auto rank = static_cast<std::size_t>(anchor.shape.rank());
    index.axes[rank - 2] = slot == 0 ? position : term;
    index.axes[rank - 1] = slot == 0 ? term : position;
    return Emitter::value(anchor.inputs[slot], index);
  };
  const bool is_short = region_.turns > 1 && stage.parts == 1 && terms <= std::min<std::int64_t>(kShortProduct, 2 * fold_terms_) &&
                        terms * stage.tile_rows * stage.tile_columns <= kShortWork;
  const std::int64_t unroll =
      is_short ? terms : std::min<std::int64_t>(fold_terms_, terms % 8 == 0 && terms >= 8 * stage.parts ? 8 : terms % 4 == 0 ? 4 : 1);
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
      for (std::size_t j = 0; j < right.size(); ++j) line(sums[i * right.size() + j] + " += " + left[i] + " * " + right[j] + ";");
  };
  // Half a turn ahead where workgroups take turns: few of them share a multiprocessor, and nothing else hides how long weights in its cache take.
  const bool is_ahead =
      region_.turns > 1 && stage.parts == 1 && stage.tile_columns == 4 && unroll == 8 && terms >= 4 * unroll && !is_shared(side(stage.anchor, false));
  if (is_ahead) {
    const std::int64_t half = unroll / 2;
    std::vector<std::vector<std::string>> weights;   // of the first half
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
    line("int " + next + " = min(" + k + " + " + text(unroll) + ", " + text(terms - unroll) + ");");   // behind the last, the last again
    for (std::int64_t u = 0; u < half; ++u) then.push_back(right_of(IndexExpression(next, unroll) + u));
    for (std::int64_t u = 0; u < half; ++u) multiply(here + (half + u), second[static_cast<std::size_t>(u)]);
    for (std::size_t u = 0; u < weights.size(); ++u)
      for (std::size_t j = 0; j < columns.size(); ++j) line(weights[u][j] + " = " + then[u][j] + ";");
  } else {
    open("for (int " + k + " = " + first + "; " + k + " < " + text(terms) + "; " + k + " += " + text(unroll * stage.parts) + ")");
    for (std::int64_t u = 0; u < unroll; ++u) multiply(IndexExpression(k, unroll) + u, right_of(IndexExpression(k, unroll) + u));
  }
  close();
  if (stage.parts > 1) {
    for (std::size_t e = 0; e < sums.size(); ++e) {
      const IndexExpression part = named(t) / tiling.count() * (tiling.count() * static_cast<std::int64_t>(sums.size()));
      line(cell("rows_f", bind(part + tile) + static_cast<std::int64_t>(e) * tiling.count() + stage.scratch) + " = " + sums[e] + ";");
    }
    close();
    barrier();
    add_parts(stage, tiling);
    return;
  }
  if (stage.barrier_within) barrier();   // all invocations are here: each has one tile
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const std::int64_t end = static_cast<std::int64_t>(j + 1) * tiling.lanes;
      const bool cut = !tiling.columns_beside && end > tiling.columns;   // some invocations have no such column
      if (cut) open("if (" + lane.str() + " < " + text(tiling.columns - end + tiling.lanes) + ")");
      members_[stage.anchor] = sums[i * columns.size() + j];
      evaluate(stage, columns[j], rows[i]);
      if (cut || j + 1 == columns.size()) store_vectors();
      if (cut) close();
    }
  close();
}

void RegionEmitter::add_parts(const RegionStage& stage, const Tiling& tiling) {
  const std::int64_t outputs = tiling.count() * stage.tile_rows * stage.tile_columns;
  const std::string o = fresh('e');
  invocations_take(outputs, o);
  const IndexExpression tile = bind(named(o) % tiling.count()), e = bind(named(o) / tiling.count());
  const Row own = row(bind(tiling.row(tiling.row_lane(tile), e / stage.tile_columns)));
  const std::string sum = declare(DType::float32, cell("rows_f", named(o) + stage.scratch));
  for (int part = 1; part < stage.parts; ++part) line(sum + " += " + cell("rows_f", named(o) + stage.scratch + part * outputs) + ";");
  members_[stage.anchor] = sum;
  evaluate(stage, bind(tiling.column(tiling.lane(tile), e % stage.tile_columns)), own);
  store_vectors();
  close();
}

void RegionEmitter::store_partial(NodeIndex member, const std::string& name, const IndexExpression& feature) {
  members_[member] = name;
  const GraphNode& node = graph_[member];
  ElementIndex index = element(member, IndexExpression(0), feature);
  index.axes[0] = named("block");
  for (const Store& store : task_.stores)
    if (store.node == member) write(store, linear_of(index, node.shape));
}

// Positions of a tile along one axis: beside each other, which loads and stores as vectors, or `lanes` apart, so that neighbouring invocations read
// neighbours.
std::vector<IndexExpression> RegionEmitter::tile_positions(const IndexExpression& lane, std::int64_t lanes, std::int32_t count, std::int64_t extent, bool beside) {
  std::vector<IndexExpression> positions;
  const IndexExpression first = bind(beside ? lane * count : lane);
  for (int i = 0; i < count; ++i) {
    IndexExpression own = first + (beside ? i : i * lanes);
    if (!beside && (i + 1) * lanes > extent) own = bind(named("min(" + own.str() + ", " + text(extent - 1) + ")"));
    positions.push_back(own);
  }
  return positions;
}

// The outputs that one invocation takes of a partial weight gradient.
struct RegionEmitter::OuterTile {
  std::int64_t height, width, bands, lanes;   // of the whole; tiles along both axes
  bool rows_beside;
  IndexExpression band, lane;
  std::vector<IndexExpression> rows, columns;
};

// Of the invocation that takes the tile of this name.
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
  for (std::size_t e = 0; e < tile.rows.size() * tile.columns.size(); ++e) names.push_back(declare_sum(DType::float32, "0.0"));
  std::vector<std::vector<std::string>> sides;   // of the folds beside it
  for (std::size_t fold = 1; fold < stage.members.size(); ++fold) {
    sides.emplace_back();
    for (std::size_t j = 0; j < tile.columns.size(); ++j) sides.back().push_back(declare_sum(DType::float32, "0.0"));
  }
  const std::vector<Row> rows = open_rows_loop(r, kRowLoads / static_cast<std::int64_t>(tile.rows.size() + tile.columns.size()));
  const auto operand = [&](std::size_t slot, const IndexExpression& position, const Row& own) {
    const Shape& shape = graph_[anchor.inputs[slot]].shape;
    ElementIndex index{std::nullopt, std::vector<IndexExpression>(static_cast<std::size_t>(shape.rank()), IndexExpression(0))};
    if (shape.rank() == 3 && region_.groups > 1) index.axes[0] = named("network");
    const auto last = static_cast<std::size_t>(shape.rank() - 1);
    index.axes[slot == 0 ? last : last - 1] = own.global;
    index.axes[slot == 0 ? last - 1 : last] = position;
    return Emitter::value(anchor.inputs[slot], index);
  };
  std::vector<std::vector<std::string>> lefts, rights;   // by row
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
      for (std::size_t j = 0; j < right.size(); ++j) line(names[i * right.size() + j] + " += " + left[i] + " * " + right[j] + ";");
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

void RegionEmitter::store_outer(const RegionStage& stage, const OuterTile& tile, const std::vector<std::string>& names,
                                const std::vector<std::vector<std::string>>& sides) {
  for (std::size_t i = 0; i < tile.rows.size(); ++i)
    for (std::size_t j = 0; j < tile.columns.size(); ++j) {
      const auto row_end = static_cast<std::int64_t>(i + 1) * tile.bands, column_end = static_cast<std::int64_t>(j + 1) * tile.lanes;
      std::string inside;
      if (!tile.rows_beside && row_end > tile.height) inside = tile.band.str() + " < " + text(tile.height - row_end + tile.bands);
      if (!stage.columns_beside && column_end > tile.width)
        inside += (inside.empty() ? "" : " && ") + tile.lane.str() + " < " + text(tile.width - column_end + tile.lanes);
      if (!inside.empty()) open("if (" + inside + ")");
      store_partial(stage.anchor, names[i * tile.columns.size() + j], bind(tile.rows[i] * tile.width + tile.columns[j]));
      if (!inside.empty() || j + 1 == tile.columns.size()) store_vectors();
      if (!inside.empty()) close();
    }
  if (sides.empty()) return;
  open("if (" + tile.band.str() + " == 0)");   // all bands have the same
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
  return region_.vectors && region_.row_block >= kFoldBeside && count <= region_.invocations && graph_[graph_[stage.anchor].inputs[0]].dtype == DType::float32 &&
         beside_floats_ + count <= region_.shared_floats;
}

// Each row has an invocation, so that nobody evaluates the terms of many.
void RegionEmitter::fold_beside(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const std::int64_t width = region_.find(stage.anchor)->width;
  const std::string e = fresh('e');
  invocations_take(width * region_.row_block, e);
  const Accumulator sum{declare_lasting(DType::float32, fold_start(anchor.op, DType::float32)), {}};
  const IndexExpression local = bind(named(e) / width);
  const Row own = row(local);
  ElementIndex index = element(stage.anchor, IndexExpression(0), bind(named(e) % width));
  index.axes.erase(index.axes.begin());   // the blocks
  index.axes[static_cast<std::size_t>(anchor.ints[0])] = own.global;
  const std::string term = Emitter::value(anchor.inputs[0], index);
  line((ragged_ ? "if (" + local.str() + " < rows_here) " : std::string()) + combine(stage.anchor, sum, term, {}));
  close();
  beside_.push_back({stage.anchor, sum.value, first_, beside_floats_});
  beside_floats_ += width * region_.row_block;
}

// At the end, when shared memory is nobody's any more: in the order of the rows.
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
    for (std::int64_t row = 1; row < region_.row_block; ++row) line(combine(own.fold, sum, load_float("rows_f", feature + (row * width + own.offset)), {}));
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
    index.axes.erase(index.axes.begin());   // the blocks
    index.axes[static_cast<std::size_t>(anchor.ints[0])] = own.global;
    terms.push_back(Emitter::value(source, index));
  }
  for (const std::string& term : terms) line(combine(stage.anchor, sum, graph_[source].dtype == DType::boolean ? "int(" + term + ")" : term, {}));
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

}  // namespace imprint
