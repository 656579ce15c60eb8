#include "compute/kernels/emitter.h"

#include <algorithm>
#include <utility>

#include "compute/graph/fusion.h"
#include "compute/kernels/elementwise_glsl.h"

namespace imprint {
namespace {

std::size_t at(NodeIndex index) { return static_cast<std::size_t>(index); }

std::string fold_start(Op op, DType dtype) {
  switch (op) {
    case Op::reduce_prod: return glsl_literal(1, dtype);
    case Op::reduce_max: case Op::argmax: return dtype == DType::int32 ? "(-2147483647 - 1)" : "uintBitsToFloat(0xff800000u)";
    case Op::reduce_min: case Op::argmin: return dtype == DType::int32 ? "2147483647" : "uintBitsToFloat(0x7f800000u)";
    default: return glsl_literal(0, dtype);
  }
}

bool finds_position(Op op) { return op == Op::argmax || op == Op::argmin; }

}  // namespace

Emitter::Emitter(const Graph& graph, const Schedule& schedule, const Task& task, MemoryNames& memory, std::set<std::string>& includes,
                 int fold_terms)
    : graph_(graph), schedule_(schedule), task_(task), memory_(memory), includes_(includes), fold_terms_(fold_terms) {}

// ---- statements and scopes ----

void Emitter::line(const std::string& text) {
  body_.append(static_cast<std::size_t>(indent_) * 2, ' ');
  body_ += text;
  body_ += '\n';
}

void Emitter::open(const std::string& head) {
  line(head + " {");
  ++indent_;
  scopes_.emplace_back();
}

void Emitter::close() {
  scopes_.pop_back();
  --indent_;
  line("}");
}

const std::string* Emitter::known(const std::string& key) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(key); found != scope->end()) return &found->second;
  return nullptr;
}

std::string Emitter::declare(DType dtype, const std::string& expression) {
  const std::string name = fresh('v');
  line(std::string(glsl_type(dtype)) + " " + name + " = " + expression + ";");
  return name;
}

IndexExpression Emitter::bind(const IndexExpression& index) {
  if (index.is_simple()) return index;
  if (const std::string* name = known("=" + index.text)) return IndexExpression(*name);
  const std::string name = fresh('i');
  line("int " + name + " = " + index.text + ";");
  remember("=" + index.text, name);
  return IndexExpression(name);
}

// ---- indices ----

std::vector<IndexExpression> Emitter::delinearize(const IndexExpression& linear, const Shape& shape) {
  const auto strides = row_major_strides(shape);
  std::vector<IndexExpression> axes;
  bool outermost = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] <= 1) {
      axes.emplace_back(0);
      continue;
    }
    const IndexExpression quotient = linear / strides[static_cast<std::size_t>(axis)];
    axes.push_back(bind(outermost ? quotient : quotient % shape[axis]));
    outermost = false;
  }
  return axes;
}

std::vector<IndexExpression> Emitter::axes_of(const ElementIndex& index, const Shape& shape) {
  if (shape.rank() == 0 || !index.axes.empty()) return index.axes;
  return delinearize(*index.linear, shape);
}

IndexExpression Emitter::linear_of(const ElementIndex& index, const Shape& shape) {
  if (index.linear) return *index.linear;
  const auto strides = row_major_strides(shape);
  IndexExpression sum = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] > 1) sum = sum + index.axes[static_cast<std::size_t>(axis)] * strides[static_cast<std::size_t>(axis)];
  return bind(sum);
}

// Splits both shapes into groups of axes with equal products; inside a group of one axis each the index is the same, and only a real regrouping
// costs divisions.
ElementIndex Emitter::reshaped(const ElementIndex& index, const Shape& from, const Shape& to) {
  if (index.linear) return {index.linear, {}};
  std::vector<IndexExpression> axes;
  int f = 0, t = 0;
  while (f < from.rank() || t < to.rank()) {
    int f_end = f, t_end = t;
    std::int64_t f_product = 1, t_product = 1;
    do {
      if (f_end < from.rank() && (f_product <= t_product || t_end == to.rank())) f_product *= from[f_end++];
      else if (t_end < to.rank()) t_product *= to[t_end++];
      else break;
    } while (f_product != t_product);
    // Axes of extent 1 that follow belong to this group on either side: they are always at 0.
    Shape from_group, to_group;
    IndexExpression linear = 0;
    for (int axis = f; axis < f_end; ++axis) {
      linear = linear * from[axis] + index.axes[static_cast<std::size_t>(axis)];
      from_group.append(from[axis]);
    }
    for (int axis = t; axis < t_end; ++axis) to_group.append(to[axis]);
    const int wide = static_cast<int>(std::ranges::count_if(to_group.extents(), [](std::int64_t extent) { return extent != 1; }));
    if (wide > 1) linear = bind(linear);
    for (const IndexExpression& axis : wide <= 1 ? std::vector<IndexExpression>{} : delinearize(linear, to_group)) axes.push_back(axis);
    if (wide <= 1)
      for (std::int64_t extent : to_group.extents()) axes.push_back(extent == 1 ? IndexExpression(0) : linear);
    f = f_end;
    t = t_end;
  }
  return {to.rank() == 0 ? std::optional<IndexExpression>(0) : std::nullopt, std::move(axes)};
}

std::string Emitter::key_of(NodeIndex node, const ElementIndex& index) {
  std::string key = std::to_string(node);
  if (index.linear) return key + "@" + index.linear->str();
  for (const IndexExpression& axis : index.axes) key += "|" + axis.str();
  return key;
}

// ---- values ----

std::string Emitter::value(NodeIndex node, const ElementIndex& index) {
  if (const auto member = members_.find(node); member != members_.end()) return member->second;
  const std::string key = key_of(node, index);
  if (const std::string* name = known(key)) return *name;
  const std::string name = schedule_.materialized[at(node)] ? load(node, index) : compute(node, index);
  remember(key, name);
  return name;
}

std::string Emitter::load(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const Place& place = schedule_.place[at(node)];
  const std::string element = memory_.array(place, entry.dtype) + "[" + (IndexExpression(memory_.offset(place)) + linear_of(index, entry.shape)).str() + "]";
  return declare(entry.dtype, entry.dtype == DType::boolean ? element + " != 0" : element);
}

std::string Emitter::compute(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  switch (entry.kind()) {
    case OpKind::elementwise: {
      std::vector<std::string> operands;
      for (NodeIndex input : entry.inputs) operands.push_back(value(input, index));
      const DType operand_dtype = graph_[entry.inputs.back()].dtype;
      return declare(entry.dtype, elementwise_glsl(entry.op, operand_dtype, entry.dtype, operands, includes_));
    }
    case OpKind::view: return value(entry.inputs[0], through_view(node, index));
    default: break;
  }
  switch (entry.op) {
    case Op::full: return glsl_literal(entry.floats[0], entry.dtype);
    case Op::iota: return declare(entry.dtype, axes_of(index, entry.shape)[at(static_cast<NodeIndex>(entry.ints[0]))].str());
    case Op::random_uniform: return random_uniform(node, index);
    case Op::pad: return pad(node, index);
    case Op::concat: return concat(node, index);
    case Op::gather: case Op::take: return gather(node, index);
    case Op::scatter_add: return scatter_add(node, index);
    case Op::unwindow: return unwindow(node, index);
    default: {
      const Accumulator result = fold(node, index, "0", "1");
      return finds_position(entry.op) ? result.index : result.value;
    }
  }
}

ElementIndex Emitter::through_view(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const Shape& source = graph_[entry.inputs[0]].shape;
  if (entry.op == Op::reshape) return reshaped(index, entry.shape, source);
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  ElementIndex result;
  result.axes.resize(static_cast<std::size_t>(source.rank()));
  for (int axis = 0; axis < source.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    switch (entry.op) {
      case Op::permute: result.axes[static_cast<std::size_t>(entry.ints[a])] = own[a]; break;
      case Op::expand: result.axes[a] = source[axis] == 1 ? IndexExpression(0) : own[a]; break;
      case Op::slice: result.axes[a] = bind(IndexExpression(entry.ints[2 * a]) + own[a] * entry.ints[2 * a + 1]); break;
      case Op::window:
        result.axes[a] = axis == entry.ints[0] ? bind(own[a] * entry.ints[2] + own.back() * entry.ints[3]) : own[a];
        break;
      default: result.axes[a] = own[a]; break;
    }
  }
  if (source.rank() == 0) result.linear = 0;
  return result;
}

std::string Emitter::pad(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const Shape& source = graph_[entry.inputs[0]].shape;
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  ElementIndex inner;
  std::string inside;
  for (int axis = 0; axis < source.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t before = entry.ints[2 * a], after = entry.ints[2 * a + 1];
    inner.axes.push_back(bind(own[a] - before));
    if (before > 0) inside += (inside.empty() ? "" : " && ") + inner.axes.back().str() + " >= 0";
    if (after > 0) inside += (inside.empty() ? "" : " && ") + inner.axes.back().str() + " < " + std::to_string(source[axis]);
  }
  if (inside.empty()) return value(entry.inputs[0], inner);
  const std::string result = declare(entry.dtype, glsl_literal(entry.floats[0], entry.dtype));
  open("if (" + inside + ")");
  line(result + " = " + value(entry.inputs[0], inner) + ";");
  close();
  return result;
}

std::string Emitter::concat(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  const std::string result = declare(entry.dtype, glsl_literal(0, entry.dtype));
  std::int64_t begin = 0;
  for (NodeIndex input : entry.inputs) {
    const std::int64_t extent = graph_[input].shape[static_cast<int>(axis)];
    if (extent == 0) continue;
    const std::string position = own[axis].str();
    open("if (" + position + " >= " + std::to_string(begin) + " && " + position + " < " + std::to_string(begin + extent) + ")");
    ElementIndex inner{std::nullopt, own};
    inner.axes[axis] = bind(own[axis] - begin);
    line(result + " = " + value(input, inner) + ";");
    close();
    begin += extent;
  }
  return result;
}

std::string Emitter::gather(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const GraphNode& data = graph_[entry.inputs[0]];
  const Shape& indices = graph_[entry.inputs[1]].shape;
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);

  ElementIndex position{std::nullopt, own}, inner{std::nullopt, own};
  if (entry.op == Op::take) {  // the indices' axes stand where `axis` was
    const auto first = own.begin() + static_cast<std::ptrdiff_t>(axis), last = first + indices.rank();
    position.axes.assign(first, last);
    inner.axes.assign(own.begin(), first);
    inner.axes.emplace_back(0);
    inner.axes.insert(inner.axes.end(), last, own.end());
  }
  if (indices.rank() == 0) position.linear = 0;
  const std::string chosen = value(entry.inputs[1], position);
  inner.axes[axis] = IndexExpression(chosen);
  const std::string result = declare(entry.dtype, glsl_literal(0, entry.dtype));
  open("if (" + chosen + " >= 0 && " + chosen + " < " + std::to_string(data.shape[static_cast<int>(axis)]) + ")");
  line(result + " = " + value(entry.inputs[0], inner) + ";");
  close();
  return result;
}

std::string Emitter::random_uniform(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  includes_.insert("philox");
  std::string words;
  for (int word = 0; word < 3; ++word) words += ", " + value(entry.inputs[0], {std::nullopt, {IndexExpression(word)}});
  const auto stream = static_cast<std::uint32_t>(entry.ints[0]);
  return declare(DType::float32, "imp_uniform(" + linear_of(index, entry.shape).str() + ", " + std::to_string(stream) + "u" + words + ")");
}

std::string Emitter::combine(NodeIndex node, const Accumulator& into, const std::string& term, const std::string& position) {
  switch (graph_[node].op) {
    case Op::reduce_prod: return into.value + " *= " + term + ";";
    case Op::reduce_max: includes_.insert("extremes"); return into.value + " = imp_max(" + into.value + ", " + term + ");";
    case Op::reduce_min: includes_.insert("extremes"); return into.value + " = imp_min(" + into.value + ", " + term + ");";
    case Op::argmax: case Op::argmin: {
      // The first of equals wins in any order of combination, and a NaN beats every number.
      const std::string better = term + (graph_[node].op == Op::argmax ? " > " : " < ") + into.value;
      const std::string tie = term + " == " + into.value + " && " + position + " < " + into.index;
      const bool is_float = graph_[graph_[node].inputs[0]].dtype == DType::float32;
      const std::string nan = is_float ? " || (isnan(" + term + ") && (!isnan(" + into.value + ") || " + position + " < " + into.index + "))" : "";
      return "if (" + better + " || (" + tie + ")" + nan + ") { " + into.value + " = " + term + "; " + into.index + " = " + position + "; }";
    }
    default: return into.value + " += " + term + ";";
  }
}

Emitter::Accumulator Emitter::fold(NodeIndex node, const ElementIndex& index, const std::string& first, const std::string& step) {
  const GraphNode& entry = graph_[node];
  const GraphNode& source = graph_[entry.inputs[0]];
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  const DType dtype = source.dtype == DType::boolean ? DType::int32 : source.dtype;
  Accumulator result;
  result.value = declare(dtype, fold_start(entry.op, dtype));
  // Starts past every position, so that whatever comes first wins its tie with the start value.
  if (finds_position(entry.op)) result.index = declare(DType::int32, "2147483647");

  // Several terms a turn: their loads are then under way together, and one invocation's fold is not a chain of memory latencies. Terms are still
  // added in order.
  const std::int64_t length = fold_length(graph_, node);
  const int stride = std::stoi(step);
  const int terms = length / stride < 8 || computes_folds(node) ? 1 : std::min(fold_terms_, length / stride < 32 ? 4 : 8);
  const std::int64_t turns = length / (static_cast<std::int64_t>(stride) * terms);
  const std::string k = fresh('k');
  if (terms > 1) {
    line("int " + k + " = " + first + ";");
    open("for (int turn = 0; turn < " + std::to_string(turns) + "; turn++, " + k + " += " + std::to_string(stride * terms) + ")");
    for (int term = 0; term < terms; ++term) fold_term(node, own, result, bind(IndexExpression(k) + term * stride));
    close();
    if (turns * stride * terms == length) return result;
  }
  open("for (" + (terms > 1 ? std::string() : "int " + k + " = " + first) + "; " + k + " < " + std::to_string(length) + "; " + k + " += " + step + ")");
  fold_term(node, own, result, IndexExpression(k));
  close();
  return result;
}

bool Emitter::computes_folds(NodeIndex node) const {
  return std::ranges::any_of(graph_[node].inputs, [&](NodeIndex input) {
    return !schedule_.materialized[at(input)] && (fold_length(graph_, input) > 1 || computes_folds(input));
  });
}

void Emitter::fold_term(NodeIndex node, const std::vector<IndexExpression>& own, const Accumulator& into, const IndexExpression& k) {
  const GraphNode& entry = graph_[node];
  const GraphNode& source = graph_[entry.inputs[0]];
  if (entry.op == Op::matmul) {
    ElementIndex a{std::nullopt, own}, b{std::nullopt, own};
    a.axes[own.size() - 1] = k;
    b.axes[own.size() - 2] = k;
    const std::string left = value(entry.inputs[0], a), right = value(entry.inputs[1], b);
    line(into.value + " += " + left + " * " + right + ";");
    return;
  }
  Shape folded;
  for (std::int64_t axis : entry.ints) folded.append(source.shape[static_cast<int>(axis)]);
  const std::vector<IndexExpression> inner = delinearize(k, folded);
  ElementIndex position{std::nullopt, own};
  for (std::size_t i = 0; i < entry.ints.size(); ++i) position.axes[static_cast<std::size_t>(entry.ints[i])] = inner[i];
  std::string term = value(entry.inputs[0], position);
  if (source.dtype == DType::boolean) term = "int(" + term + ")";
  line(combine(node, into, term, k.str()));
}

std::string Emitter::scatter_add(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const Shape& updates = graph_[entry.inputs[2]].shape;
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  const std::string result = declare(entry.dtype, value(entry.inputs[0], index));
  // Indices may be shorter than the base along the other axes.
  std::string inside;
  for (int a = 0; a < updates.rank(); ++a)
    if (static_cast<std::size_t>(a) != axis && updates[a] < entry.shape[a])
      inside += (inside.empty() ? "" : " && ") + own[static_cast<std::size_t>(a)].str() + " < " + std::to_string(updates[a]);
  if (!inside.empty()) open("if (" + inside + ")");
  const std::string j = fresh('k');
  open("for (int " + j + " = 0; " + j + " < " + std::to_string(updates[static_cast<int>(axis)]) + "; " + j + "++)");
  ElementIndex position{std::nullopt, own};
  position.axes[axis] = IndexExpression(j);
  const std::string target = value(entry.inputs[1], position);
  open("if (" + target + " == " + own[axis].str() + ")");
  line(result + " += " + value(entry.inputs[2], position) + ";");
  close();
  close();
  if (!inside.empty()) close();
  return result;
}

std::string Emitter::unwindow(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const std::int64_t size = entry.ints[1], stride = entry.ints[2], dilation = entry.ints[3];
  const std::int64_t positions = graph_[entry.inputs[0]].shape[static_cast<int>(axis)];
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  const std::string result = declare(entry.dtype, glsl_literal(0, entry.dtype));
  const std::string s = fresh('k');
  open("for (int " + s + " = 0; " + s + " < " + std::to_string(size) + "; " + s + "++)");
  const IndexExpression start = bind(own[axis] - IndexExpression(s) * dilation);
  const std::string on_stride = stride == 1 ? "" : " && " + start.str() + " % " + std::to_string(stride) + " == 0";
  open("if (" + start.str() + " >= 0 && " + start.str() + " <= " + std::to_string((positions - 1) * stride) + on_stride + ")");
  ElementIndex position{std::nullopt, own};
  position.axes[axis] = bind(start / stride);
  position.axes.emplace_back(s);
  line(result + " += " + value(entry.inputs[0], position) + ";");
  close();
  close();
  return result;
}

// ---- kinds of tasks ----

std::int64_t Emitter::group_count(const Graph& graph, const Task& task, int workgroup_size) {
  if (task.element_count == 0) return 0;
  if (task.kind == TaskKind::group_fold) return task.element_count;
  if (task.kind == TaskKind::matmul_tile) {
    const Shape& shape = graph[task.anchor].shape;
    const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
    return task.element_count / (rows * columns) * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  }
  std::int64_t invocations = task.element_count;
  if (task.kind == TaskKind::scan) invocations /= graph[task.anchor].shape[static_cast<int>(graph[task.anchor].ints[0])];
  return (invocations + workgroup_size - 1) / workgroup_size;
}

std::string Emitter::function(const std::string& name, int workgroup_size) {
  switch (task_.kind) {
    case TaskKind::group_fold: group_fold_body(workgroup_size); break;
    case TaskKind::scan: scan_body(workgroup_size); break;
    case TaskKind::matmul_tile: matmul_tile_body(); break;
    default: map_body(workgroup_size); break;
  }
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

void Emitter::write(const Store& store, const IndexExpression& linear) {
  const GraphNode& entry = graph_[store.node];
  const std::string source = entry.dtype == DType::boolean ? "int(" + members_.at(store.node) + ")" : members_.at(store.node);
  const std::string array = memory_.array(store.place, entry.dtype);
  const IndexExpression offset(memory_.offset(store.place));
  if (store.row_indices < 0) {
    line(array + "[" + (offset + linear).str() + "] = " + source + ";");
    return;
  }
  const Shape& target = schedule_.variables[static_cast<std::size_t>(store.place.index)]->shape;
  const std::int64_t width = target[0] == 0 ? 1 : target.element_count() / target[0];
  // Row numbers are read at the row, not at this element: no register of the task holds them.
  const std::unordered_map<NodeIndex, std::string> registers = std::exchange(members_, {});
  const std::string row = value(store.row_indices, {std::nullopt, {bind(linear / width)}});
  members_ = registers;
  open("if (" + row + " >= 0 && " + row + " < " + std::to_string(target[0]) + ")");
  line(array + "[" + (offset + IndexExpression(row) * width + linear % width).str() + "] = " + source + ";");
  close();
}

void Emitter::evaluate_members(const ElementIndex& index) {
  for (NodeIndex member : task_.members) {
    if (members_.contains(member)) continue;
    // A member that has memory elsewhere is copied; one that this task gives memory is computed.
    const bool elsewhere = schedule_.materialized[at(member)] && std::ranges::find(task_.reads, member, &Read::node) != task_.reads.end();
    const std::string key = key_of(member, index);
    const std::string* ready = known(key);
    const std::string name = ready ? *ready : (elsewhere ? load(member, index) : compute(member, index));
    members_[member] = name;
  }
  for (const Store& store : task_.stores) write(store, *index.linear);
}

void Emitter::map_body(int workgroup_size) {
  line("int i = group * " + std::to_string(workgroup_size) + " + int(gl_LocalInvocationID.x);");
  line("if (i >= " + std::to_string(task_.element_count) + ") return;");
  evaluate_members({IndexExpression(std::string("i")), {}});
}

void Emitter::group_fold_body(int workgroup_size) {
  const GraphNode& anchor = graph_[task_.anchor];
  const DType source_dtype = graph_[anchor.inputs[0]].dtype;
  const bool is_float = source_dtype == DType::float32;
  const bool positions = finds_position(anchor.op);
  const std::string shared_values = is_float ? "fold_floats" : "fold_ints";
  const ElementIndex index{IndexExpression(std::string("i")), {}};
  line("int i = group;");
  line("int lane = int(gl_LocalInvocationID.x);");
  const Accumulator own = fold(task_.anchor, index, "lane", std::to_string(workgroup_size));
  line(shared_values + "[lane] = " + own.value + ";");
  if (positions) line("fold_positions[lane] = " + own.index + ";");
  line("barrier();");
  // A tree in fixed order: the same bits whatever the device's subgroups are.
  open("for (int half_size = " + std::to_string(workgroup_size / 2) + "; half_size > 0; half_size >>= 1)");
  open("if (lane < half_size)");
  const Accumulator into{shared_values + "[lane]", "fold_positions[lane]"};
  line(combine(task_.anchor, into, shared_values + "[lane + half_size]", "fold_positions[lane + half_size]"));
  close();
  line("barrier();");
  close();
  line("if (lane != 0) return;");
  members_[task_.anchor] = positions ? "fold_positions[0]" : shared_values + "[0]";
  evaluate_members(index);
}

void Emitter::scan_body(int workgroup_size) {
  const GraphNode& anchor = graph_[task_.anchor];
  const int axis = static_cast<int>(anchor.ints[0]);
  const bool exclusive = anchor.ints[1] != 0, reverse = anchor.ints[2] != 0;
  const std::int64_t length = anchor.shape[axis];
  Shape lines = anchor.shape;
  lines[axis] = 1;
  line("int i = group * " + std::to_string(workgroup_size) + " + int(gl_LocalInvocationID.x);");
  line("if (i >= " + std::to_string(lines.element_count()) + ") return;");
  std::vector<IndexExpression> own = delinearize(IndexExpression(std::string("i")), lines);
  const std::string sum = declare(anchor.dtype, glsl_literal(0, anchor.dtype));
  open("for (int step = 0; step < " + std::to_string(length) + "; step++)");
  own[static_cast<std::size_t>(axis)] = bind(reverse ? IndexExpression(length - 1) - IndexExpression(std::string("step")) : IndexExpression(std::string("step")));
  const ElementIndex index{std::nullopt, own};
  const std::string term = value(anchor.inputs[0], index);
  if (!exclusive) line(sum + " += " + term + ";");
  members_[task_.anchor] = sum;
  const IndexExpression linear = linear_of(index, anchor.shape);
  for (const Store& store : task_.stores) write(store, linear);
  if (exclusive) line(sum + " += " + term + ";");
  close();
}

void Emitter::matmul_tile_body() {
  const GraphNode& anchor = graph_[task_.anchor];
  const int rank = anchor.shape.rank();
  const std::int64_t rows = anchor.shape[rank - 2], columns = anchor.shape[rank - 1], depth = fold_length(graph_, task_.anchor);
  const std::int64_t row_tiles = (rows + kTile - 1) / kTile, column_tiles = (columns + kTile - 1) / kTile;
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  Shape batch_shape;
  for (int axis = 0; axis < rank - 2; ++axis) batch_shape.append(anchor.shape[axis]);

  line("int lane = int(gl_LocalInvocationID.x);");
  line("int batch = group / " + text(row_tiles * column_tiles) + ";");
  line("int row_0 = group / " + text(column_tiles) + " % " + text(row_tiles) + " * " + text(kTile) + ";");
  line("int column_0 = group % " + text(column_tiles) + " * " + text(kTile) + ";");
  const std::vector<IndexExpression> batch = delinearize(IndexExpression(std::string("batch")), batch_shape);
  const auto operand = [&](std::size_t slot, const std::string& first, const std::string& second) {
    ElementIndex index{std::nullopt, batch};
    index.axes.emplace_back(first);
    index.axes.emplace_back(second);
    return value(anchor.inputs[slot], index);
  };

  line("float sums[64];");
  line("for (int e = 0; e < 64; e++) sums[e] = 0.0;");
  open("for (int depth_0 = 0; depth_0 < " + text(depth) + "; depth_0 += " + text(kTileDepth) + ")");
  line("barrier();");
  // Neighbouring lanes read neighbouring elements of either operand; the left tile is stored transposed, one column apart against bank conflicts.
  open("for (int e = lane; e < " + text(kTile * kTileDepth) + "; e += 64)");
  line("int row = row_0 + e / " + text(kTileDepth) + ";");
  line("int term = depth_0 + e % " + text(kTileDepth) + ";");
  line("float element = 0.0;");
  open("if (row < " + text(rows) + " && term < " + text(depth) + ")");
  line("element = " + operand(0, "row", "term") + ";");
  close();
  line("tile_a[e % " + text(kTileDepth) + " * " + text(kTile + 1) + " + e / " + text(kTileDepth) + "] = element;");
  close();
  open("for (int e = lane; e < " + text(kTile * kTileDepth) + "; e += 64)");
  line("int term = depth_0 + e / " + text(kTile) + ";");
  line("int column = column_0 + e % " + text(kTile) + ";");
  line("float element = 0.0;");
  open("if (term < " + text(depth) + " && column < " + text(columns) + ")");
  line("element = " + operand(1, "term", "column") + ";");
  close();
  line("tile_b[e] = element;");
  close();
  line("barrier();");
  open("for (int term = 0; term < " + text(kTileDepth) + "; term++)");
  line("float left[8];");
  line("float right[8];");
  line("for (int e = 0; e < 8; e++) left[e] = tile_a[term * " + text(kTile + 1) + " + lane / 8 + 8 * e];");
  line("for (int e = 0; e < 8; e++) right[e] = tile_b[term * " + text(kTile) + " + lane % 8 + 8 * e];");
  line("for (int r = 0; r < 8; r++) for (int c = 0; c < 8; c++) sums[r * 8 + c] += left[r] * right[c];");
  close();
  close();

  open("for (int e = 0; e < 64; e++)");
  line("int row = row_0 + lane / 8 + e / 8 * 8;");
  line("int column = column_0 + lane % 8 + e % 8 * 8;");
  open("if (row < " + text(rows) + " && column < " + text(columns) + ")");
  line("int i = (batch * " + text(rows) + " + row) * " + text(columns) + " + column;");
  members_[task_.anchor] = "sums[e]";
  evaluate_members({IndexExpression(std::string("i")), {}});
  close();
  close();
}

}  // namespace imprint
