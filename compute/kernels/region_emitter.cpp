#include "compute/kernels/region_emitter.h"

#include <algorithm>

#include "compute/graph/fusion.h"
#include "compute/kernels/elementwise_glsl.h"

namespace imprint {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }
IndexExpression named(const std::string& name) { return IndexExpression(name); }

}  // namespace

RegionEmitter::RegionEmitter(const Graph& graph, const Schedule& schedule, const Task& task, MemoryNames& memory, std::set<std::string>& includes,
                             int fold_terms)
    : Emitter(graph, schedule, task, memory, includes, fold_terms),
      region_(schedule.regions[static_cast<std::size_t>(task.region)]),
      ragged_(region_.rows % region_.row_block != 0) {}

std::string RegionEmitter::shared_arrays() const {
  std::string declarations;
  if (region_.shared_floats > 0) declarations += "shared float rows_f[" + text(region_.shared_floats) + "];\n";
  if (region_.shared_ints > 0) declarations += "shared int rows_i[" + text(region_.shared_ints) + "];\n";
  return declarations + "\n";
}

std::string RegionEmitter::function(const std::string& name) {
  line("int lane = int(gl_LocalInvocationID.x);");
  if (region_.groups > 1) line("int network = group / " + text(region_.blocks) + ";");
  line("int block = " + std::string(region_.groups > 1 ? "group % " + text(region_.blocks) : "group") + ";");
  line("int row_0 = block * " + text(region_.row_block) + ";");
  if (ragged_) line("int rows_here = min(" + text(region_.row_block) + ", " + text(region_.rows) + " - row_0);");
  for (const RegionStage& entry : region_.stages) stage(entry);
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

void RegionEmitter::stage(const RegionStage& stage) {
  if (stage.members.empty()) return;
  if (stage.barrier_before) line("barrier();");
  std::string title = "//";
  for (NodeIndex member : stage.members) title += " " + node_text(graph_, member) + ",";
  title.pop_back();
  line(title);
  switch (stage.kind) {
    case RegionStage::Kind::load: load_weights(stage); break;
    case RegionStage::Kind::spread: spread(stage); break;
    case RegionStage::Kind::product: stage.parts > 1 ? product_parts(stage) : product(stage); break;
    case RegionStage::Kind::outer_product: outer_product(stage); break;
    case RegionStage::Kind::row_fold: row_fold(stage); break;
  }
  members_.clear();
}

// ---- rows and elements ----

void RegionEmitter::invocations_take(std::int64_t count, const std::string& name) {
  if (count <= region_.invocations) {
    open(count == region_.invocations ? "" : "if (lane < " + text(count) + ")");
    line("int " + name + " = lane;");
  } else {
    open("for (int " + name + " = lane; " + name + " < " + text(count) + "; " + name + " += " + text(region_.invocations) + ")");
  }
}

RegionEmitter::Row RegionEmitter::row(const std::string& local) {
  const std::string global = fresh('r');
  line("int " + global + " = " + (ragged_ ? "min(row_0 + " + local + ", " + text(region_.rows - 1) + ")" : "row_0 + " + local) + ";");
  local_row_[global] = local;
  return {local, named(global)};
}

void RegionEmitter::open_rows_loop(const std::string& name) {
  open("for (int " + name + " = 0; " + name + " < " + (ragged_ ? "rows_here" : text(region_.row_block)) + "; " + name + "++)");
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

std::string RegionEmitter::shared_element(const RegionValue& value, const ElementIndex& index, const std::string& local_row) {
  const IndexExpression position = IndexExpression(value.offset) + named(local_row) * value.stride + feature_of(value, index);
  return (graph_[value.node].dtype == DType::float32 ? "rows_f[" : "rows_i[") + position.str() + "]";
}

std::string RegionEmitter::load(NodeIndex node, const ElementIndex& index) {
  const RegionValue* value = region_.find(node);
  if (!value || value->offset < 0) return Emitter::load(node, index);
  if (value->row_axis < 0) {  // weights
    const std::vector<IndexExpression> axes = axes_of(index, graph_[node].shape);
    const IndexExpression position = IndexExpression(value->offset) + axes[axes.size() - 2] * value->stride + axes.back();
    return declare(DType::float32, "rows_f[" + position.str() + "]");
  }
  const IndexExpression& global = index.axes[static_cast<std::size_t>(value->row_axis)];
  const auto known = local_row_.find(global.str());
  const std::string element = shared_element(*value, index, known != local_row_.end() ? known->second : "(" + global.str() + " - row_0)");
  return declare(graph_[node].dtype, graph_[node].dtype == DType::boolean ? element + " != 0" : element);
}

void RegionEmitter::keep(NodeIndex member, const ElementIndex& index, const Row& row) {
  const RegionValue& value = *region_.find(member);
  const std::string& name = members_.at(member);
  if (value.offset >= 0) line(shared_element(value, index, row.local) + " = " + (graph_[member].dtype == DType::boolean ? "int(" + name + ")" : name) + ";");
  for (const Store& store : task_.stores) {
    if (store.node != member) continue;
    if (ragged_) open("if (" + row.local + " < rows_here)");
    write(store, linear_of(index, graph_[member].shape));
    if (ragged_) close();
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

// Eight loads are under way before the first is stored.
void RegionEmitter::load_weights(const RegionStage& stage) {
  constexpr int kTurn = 8;
  for (NodeIndex weights : stage.members) {
    const RegionValue& value = *region_.find(weights);
    const Place& place = schedule_.place[static_cast<std::size_t>(weights)];
    const std::int64_t count = value.height * value.width, step = region_.invocations;
    IndexExpression source = named(memory_.offset(place));
    if (region_.groups > 1) source = bind(source + named("network") * count);
    const std::string array = memory_.array(place, DType::float32), e = fresh('e');
    open("for (int " + e + " = lane; " + e + " < " + text(count) + "; " + e + " += " + text(step * kTurn) + ")");
    std::vector<IndexExpression> elements;
    std::vector<std::string> loaded;
    for (int turn = 0; turn < kTurn && turn * step < count; ++turn) {
      IndexExpression element = bind(named(e) + turn * step);
      const bool whole = count % (step * kTurn) == 0 || (turn + 1) * step <= count % (step * kTurn);
      if (!whole) element = bind(named("min(" + element.str() + ", " + text(count - 1) + ")"));   // the last one again
      elements.push_back(element);
      loaded.push_back(declare(DType::float32, array + "[" + (source + element).str() + "]"));
    }
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const IndexExpression position = IndexExpression(value.offset) + elements[i] / value.width * value.stride + elements[i] % value.width;
      line("rows_f[" + position.str() + "] = " + loaded[i] + ";");
    }
    close();
  }
}

void RegionEmitter::spread(const RegionStage& stage) {
  const RegionValue& value = *region_.find(stage.members[0]);
  const std::string e = fresh('e'), r = fresh('l');
  invocations_take(region_.row_block * value.width, e);
  line("int " + r + " = " + (named(e) / value.width).str() + ";");
  const Row own = row(r);
  evaluate(stage, bind(named(e) % value.width), own);
  close();
}

void RegionEmitter::product(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const RegionValue& value = *region_.find(stage.anchor);
  const bool rows_left = value.row_axis == anchor.shape.rank() - 2;
  const std::int64_t columns = value.width, terms = fold_length(graph_, stage.anchor);
  const std::int64_t lanes = (columns + stage.tile_columns - 1) / stage.tile_columns;   // that share the columns
  const auto cut = [&](std::size_t j) { return static_cast<std::int64_t>(j + 1) * lanes > columns; };   // some invocations have no such column
  const std::string tile = fresh('t'), k = fresh('k');
  invocations_take(lanes * (region_.row_block / stage.tile_rows), tile);
  std::vector<Row> rows;
  std::vector<IndexExpression> column;
  for (int i = 0; i < stage.tile_rows; ++i) {
    const std::string local = fresh('l');
    line("int " + local + " = " + (named(tile) / lanes * stage.tile_rows + i).str() + ";");
    rows.push_back(row(local));
  }
  for (int j = 0; j < stage.tile_columns; ++j) {
    IndexExpression own = bind(named(tile) % lanes + j * lanes);
    if (cut(static_cast<std::size_t>(j))) own = bind(named("min(" + own.str() + ", " + text(columns - 1) + ")"));
    column.push_back(own);
  }
  std::vector<std::string> names;
  for (int e = 0; e < stage.tile_rows * stage.tile_columns; ++e) names.push_back(declare(DType::float32, "0.0"));

  const auto operand = [&](bool of_rows, const IndexExpression& position, const IndexExpression& term) {
    const std::size_t slot = of_rows == rows_left ? 0 : 1;
    ElementIndex index = element(stage.anchor, IndexExpression(0), IndexExpression(0));
    const auto rank = static_cast<std::size_t>(anchor.shape.rank());
    index.axes[rank - 2] = slot == 0 ? position : term;
    index.axes[rank - 1] = slot == 0 ? term : position;
    return Emitter::value(anchor.inputs[slot], index);
  };
  const int unroll = terms % 8 == 0 ? 8 : terms % 4 == 0 ? 4 : 1;
  open("for (int " + k + " = 0; " + k + " < " + text(terms) + "; " + k + " += " + text(unroll) + ")");
  for (int u = 0; u < unroll; ++u) {
    const IndexExpression term = bind(named(k) + u);
    std::vector<std::string> left, right;
    for (const IndexExpression& own : column) right.push_back(operand(false, own, term));
    for (const Row& own : rows) left.push_back(operand(true, own.global, term));
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < right.size(); ++j) line(names[i * right.size() + j] + " += " + left[i] + " * " + right[j] + ";");
  }
  close();
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < column.size(); ++j) {
      open(cut(j) ? "if (" + (named(tile) % lanes).str() + " < " + text(columns - static_cast<std::int64_t>(j) * lanes) + ")" : "");
      members_[stage.anchor] = names[i * column.size() + j];
      evaluate(stage, column[j], rows[i]);
      close();
    }
  close();
}

// Fewer outputs than invocations: several share the terms of one, and the first of them adds their sums in order.
void RegionEmitter::product_parts(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const RegionValue& value = *region_.find(stage.anchor);
  const bool rows_left = value.row_axis == anchor.shape.rank() - 2;
  const std::int64_t columns = value.width, terms = fold_length(graph_, stage.anchor), outputs = columns * region_.row_block;
  const std::string scratch = "rows_f[" + (stage.scratch > 0 ? text(stage.scratch) + " + " : "");
  const std::string o = fresh('e'), l = fresh('l'), k = fresh('k');
  invocations_take(outputs * stage.parts, fresh('e'));
  line("int " + o + " = lane % " + text(outputs) + ";");
  line("int " + l + " = " + (named(o) / columns).str() + ";");
  const Row own = row(l);
  const IndexExpression column = bind(named(o) % columns);
  const std::string sum = declare(DType::float32, "0.0");
  const auto term_at = [&](const IndexExpression& term) {
    std::string operands[2];
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const bool of_rows = rows_left == (slot == 0);
      ElementIndex index = element(stage.anchor, IndexExpression(0), IndexExpression(0));
      const auto rank = static_cast<std::size_t>(anchor.shape.rank());
      index.axes[rank - 2 + slot] = of_rows ? own.global : column;
      index.axes[rank - 1 - slot] = term;
      operands[slot] = Emitter::value(anchor.inputs[slot], index);
    }
    line(sum + " += " + operands[0] + " * " + operands[1] + ";");
  };
  const std::int64_t turns = terms / stage.parts;
  const int unroll = turns % 8 == 0 ? 8 : turns % 4 == 0 ? 4 : 1;
  line("int " + k + " = lane / " + text(outputs) + ";");
  open("for (; " + k + " < " + text(turns * stage.parts) + "; " + k + " += " + text(stage.parts * unroll) + ")");
  for (int u = 0; u < unroll; ++u) term_at(bind(named(k) + static_cast<std::int64_t>(u) * stage.parts));
  close();
  if (turns * stage.parts < terms) {
    open("if (" + k + " < " + text(terms) + ")");
    term_at(named(k));
    close();
  }
  line(scratch + "lane] = " + sum + ";");
  close();
  line("barrier();");
  const std::string e = fresh('e');
  invocations_take(outputs, e);
  const std::string l2 = fresh('l');
  line("int " + l2 + " = " + (named(e) / columns).str() + ";");
  const Row out = row(l2);
  const std::string whole = declare(DType::float32, scratch + e + "]");
  for (int part = 1; part < stage.parts; ++part) line(whole + " += " + scratch + e + " + " + text(part * outputs) + "];");
  members_[stage.anchor] = whole;
  evaluate(stage, bind(named(e) % columns), out);
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

void RegionEmitter::outer_product(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const int rank = anchor.shape.rank();
  const std::int64_t height = anchor.shape[rank - 2], width = anchor.shape[rank - 1];
  const std::int64_t lanes = (width + stage.tile_columns - 1) / stage.tile_columns, bands = (height + stage.tile_rows - 1) / stage.tile_rows;
  const std::string tile = fresh('t'), r = fresh('l');
  invocations_take(lanes * bands, tile);
  std::vector<IndexExpression> own_rows, own_columns;
  const auto bounded = [&](const IndexExpression& index, std::int64_t extent, bool cut) {
    return bind(cut ? named("min(" + index.str() + ", " + text(extent - 1) + ")") : index);
  };
  for (int i = 0; i < stage.tile_rows; ++i)
    own_rows.push_back(bounded(named(tile) / lanes * stage.tile_rows + i, height, height % stage.tile_rows != 0 && i > 0));
  for (int j = 0; j < stage.tile_columns; ++j)
    own_columns.push_back(bounded(named(tile) % lanes + j * lanes, width, (j + 1) * lanes > width));
  std::vector<std::string> names;
  for (std::size_t e = 0; e < own_rows.size() * own_columns.size(); ++e) names.push_back(declare(DType::float32, "0.0"));
  open_rows_loop(r);
  const Row own = row(r);
  const auto operand = [&](std::size_t slot, const IndexExpression& position) {
    const Shape& shape = graph_[anchor.inputs[slot]].shape;
    ElementIndex index{std::nullopt, std::vector<IndexExpression>(static_cast<std::size_t>(shape.rank()), IndexExpression(0))};
    if (shape.rank() == 3 && region_.groups > 1) index.axes[0] = named("network");
    const auto last = static_cast<std::size_t>(shape.rank() - 1);
    index.axes[slot == 0 ? last : last - 1] = own.global;
    index.axes[slot == 0 ? last - 1 : last] = position;
    return Emitter::value(anchor.inputs[slot], index);
  };
  std::vector<std::string> left, right;
  for (const IndexExpression& position : own_rows) left.push_back(operand(0, position));
  for (const IndexExpression& position : own_columns) right.push_back(operand(1, position));
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = 0; j < right.size(); ++j) line(names[i * right.size() + j] + " += " + left[i] + " * " + right[j] + ";");
  close();
  for (int i = 0; i < stage.tile_rows; ++i)
    for (int j = 0; j < stage.tile_columns; ++j) {
      const IndexExpression row_here = named(tile) / lanes * stage.tile_rows + i, column_here = named(tile) % lanes + j * lanes;
      std::string inside;
      if (i > 0 && height % stage.tile_rows != 0) inside = row_here.str() + " < " + text(height);
      if ((j + 1) * lanes > width) inside += (inside.empty() ? "" : " && ") + column_here.str() + " < " + text(width);
      if (!inside.empty()) open("if (" + inside + ")");
      const auto sum = static_cast<std::size_t>(i * stage.tile_columns + j);
      store_partial(stage.anchor, names[sum], bind(own_rows[sum / own_columns.size()] * width + own_columns[sum % own_columns.size()]));
      if (!inside.empty()) close();
    }
  close();
}

void RegionEmitter::row_fold(const RegionStage& stage) {
  const GraphNode& anchor = graph_[stage.anchor];
  const RegionValue& value = *region_.find(stage.anchor);
  const NodeIndex source = anchor.inputs[0];
  const std::string e = fresh('e'), r = fresh('l');
  invocations_take(value.width, e);
  const DType dtype = graph_[source].dtype == DType::boolean ? DType::int32 : graph_[source].dtype;
  const Accumulator sum{declare(dtype, fold_start(anchor.op, dtype)), {}};
  open_rows_loop(r);
  const Row own = row(r);
  ElementIndex index = element(stage.anchor, IndexExpression(0), named(e));
  index.axes.erase(index.axes.begin());   // the blocks
  index.axes[static_cast<std::size_t>(anchor.ints[0])] = own.global;
  std::string term = Emitter::value(source, index);
  if (graph_[source].dtype == DType::boolean) term = "int(" + term + ")";
  line(combine(stage.anchor, sum, term, {}));
  close();
  store_partial(stage.anchor, sum.value, named(e));
  close();
}

}  // namespace imprint
