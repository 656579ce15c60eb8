// The kernel bodies of each kind of task: how elements are spread over invocations and workgroups.
// emitter.cpp computes one element.

#include <algorithm>
#include <bit>
#include <utility>

#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/product.h"
#include "compute/kernels/elementwise_glsl.h"
#include "compute/kernels/emitter.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr int kUniformSlots = 256;  // floats of the array in which folds meet, at least

// Values that one lane combines between two barriers: as few barriers as with 16, as few values as that
// leaves.
int fold_ways(int values) {
  const int doublings = std::bit_width(static_cast<unsigned>(values)) - 1, rounds = (doublings + 3) / 4;
  return 1 << (doublings + rounds - 1) / rounds;
}

}  // namespace

std::int64_t Emitter::group_count(const Graph& graph, const Task& task, int workgroup_size) {
  if (task.element_count == 0) return 0;
  if (task.kind == TaskKind::group_fold || task.kind == TaskKind::region || task.kind == TaskKind::row_fold)
    return task.element_count;
  if (task.kind == TaskKind::page) return graph[task.anchor].source->page->groups;
  if (task.kind == TaskKind::column_fold) return (task.element_count + kFoldColumns - 1) / kFoldColumns;
  if (task.kind == TaskKind::product) return workgroup_count(graph, task.anchor, task.tile);
  std::int64_t invocations = task.element_count;
  if (task.kind == TaskKind::scan || task.kind == TaskKind::custom)
    invocations /= graph[task.anchor].shape[static_cast<int>(graph[task.anchor].ints[0])];
  return (invocations + workgroup_size - 1) / workgroup_size;
}

std::string Emitter::function(const std::string& name, int workgroup_size, bool wide) {
  group_count_ = group_count(graph_, task_, workgroup_size);
  switch (task_.kind) {
    case TaskKind::group_fold:
      group_fold_body(workgroup_size, wide);
      break;
    case TaskKind::column_fold:
      column_fold_body(workgroup_size);
      break;
    case TaskKind::scan:
      scan_body(workgroup_size);
      break;
    default:
      wide ? wide_map_body(workgroup_size) : map_body(workgroup_size);
      break;
  }
  if (is_refused_) return {};
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

void Emitter::write(const Store& store, const IndexExpression& linear) {
  const GraphNode& entry = graph_[store.node];
  const std::string& element = members_.at(store.node);
  const IndexExpression offset = start_of(store.place, entry.dtype);
  const auto put = [&](const IndexExpression& position) {
    if (position.is_irregular || (linear.lane != 0 && position.lane == 0))
      refuse();
    else if (position.lane != 0)
      write_wide(store, position, element);
    else
      store_element(store.place, entry.dtype, position.str(), element);
  };
  if (store.row_indices < 0) return put(offset + linear);
  const Shape target = schedule_.variables[at(store.place.index)]->kernel_shape();
  const std::int64_t width = target[0] == 0 ? 1 : target.element_count() / target[0];
  // Row numbers are read at the row, not at this element: the task's registers do not hold them.
  const std::unordered_map<NodeIndex, std::string> registers = std::exchange(members_, {});
  const std::int64_t rows = entry.element_count() / width;
  const std::string row =
      value(store.row_indices, {std::nullopt, {rows == 1 ? IndexExpression(0) : bind(linear / width)}});
  members_ = registers;
  if (is_wide(row)) {
    refuse();
    return;
  }
  open(text("if (", row, " >= 0 && ", row, " < ", target[0], ")"));
  put(offset + IndexExpression(row) * width + (rows == 1 ? linear : linear % width));
  close();
}

void Emitter::evaluate_members(const ElementIndex& index) {
  compute_members(index);
  store_members(*index.linear);
}

// The index of a task, for a member.
ElementIndex Emitter::own_index(NodeIndex member, const ElementIndex& index) const {
  const bool has_axes =
      index.axes.empty() || task_.anchor < 0 || graph_[member].shape == graph_[task_.anchor].shape;
  return has_axes ? index : ElementIndex{index.linear, {}};
}

void Emitter::compute_members(const ElementIndex& index) {
  fold_alike_members(index);
  for (NodeIndex member : task_.members) {
    if (members_.contains(member)) continue;
    const ElementIndex own = own_index(member, index);
    // A member that another task stores is copied; one that this task stores is computed.
    const bool elsewhere = schedule_.materialized[at(member)] &&
                           std::ranges::find(task_.reads, member, &Read::node) != task_.reads.end();
    const std::string key = key_of(member, own);
    const std::string* ready = known(key);
    const std::string name = ready ? *ready : (elsewhere ? load(member, own) : compute(member, own));
    members_[member] = name;
  }
}

void Emitter::store_members(const IndexExpression& linear) {
  for (const Store& store : task_.stores)
    if (std::ranges::find(task_.tails, store.node) == task_.tails.end()) write(store, linear);
}

// Folds whose result every invocation needs; others: those that each invocation computes by itself, of stored
// numbers.
std::vector<NodeIndex> Emitter::uniform_folds(bool others) const {
  std::vector<NodeIndex> stack(task_.members.begin(), task_.members.end()), seen, found;
  const auto is_other = [&](NodeIndex node) {
    const GraphNode& entry = graph_[node];
    return entry.op == Op::reduce_sum && entry.element_count() == 1 &&
           schedule_.materialized[at(entry.inputs[0])];
  };
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, node) != seen.end()) continue;
    seen.push_back(node);
    if (wants_lanes(graph_, node) && !schedule_.materialized[at(node)]) {
      if (!others) found.push_back(node);
    } else if (others && is_other(node) && !schedule_.materialized[at(node)]) {
      found.push_back(node);
    } else if (!schedule_.materialized[at(node)] ||
               std::ranges::find(task_.members, node) != task_.members.end()) {
      stack.insert(stack.end(), graph_[node].inputs.begin(), graph_[node].inputs.end());
    }
  }
  std::ranges::sort(found);
  return found;
}

// Each workgroup folds them once. Those that the shared array has room for share their barriers.
void Emitter::fold_uniforms(const std::vector<NodeIndex>& folds, int workgroup_size) {
  std::vector<SlotFold> together;
  int used = 0;
  for (const NodeIndex node : folds) {
    const auto terms = static_cast<std::uint64_t>(std::min<std::int64_t>(fold_length(graph_, node), 1024));
    const int slots = std::clamp(static_cast<int>(std::bit_ceil(terms)), 4, workgroup_size);
    if (used + slots > std::max(workgroup_size, kUniformSlots)) {
      fold_together(std::exchange(together, {}), workgroup_size);
      line("barrier();");
      used = 0;
    }
    used += slots;
    together.push_back({node, slots});
  }
  fold_together(std::move(together), workgroup_size);
}

// Folds with equally many slots lie side by side, and neighbouring lanes add them.
void Emitter::fold_together(std::vector<SlotFold> folds, int workgroup_size) {
  std::ranges::stable_sort(folds, std::ranges::greater(), &SlotFold::slots);
  std::vector<std::string> sums;
  for (const SlotFold& own : folds) sums.push_back(sum_of_lane(own.node, workgroup_size));
  int used = 0;
  for (std::size_t f = 0; f < folds.size(); ++f) {
    folds[f].first = used;
    folds[f].left = folds[f].slots;
    used += folds[f].slots;
    line(text(folds[f].slots < workgroup_size ? text("if (lane < ", folds[f].slots, ") ") : std::string(),
              "fold_floats[", folds[f].first, " + lane] = ", sums[f], ";"));
  }
  fold_slots_ = std::max(fold_slots_, used);
  line("barrier();");
  while (folds.front().left > 1) {
    for (std::size_t f = 0; f < folds.size();) {
      const std::size_t first = f;
      while (f < folds.size() && folds[f].slots == folds[first].slots) ++f;
      add_slots(std::span(folds).subspan(first, f - first));
    }
    line("barrier();");
  }
  for (const SlotFold& own : folds)
    uniforms_[own.node] = declare(DType::float32, text("fold_floats[", own.first, "]"));
}

// A lane's terms of a fold that all lanes share. With few terms each lane has one, and its load waits for
// nothing.
std::string Emitter::sum_of_lane(NodeIndex node, int workgroup_size) {
  const ElementIndex only{IndexExpression(0), {}};
  const std::int64_t length = fold_length(graph_, node);
  if (length > workgroup_size) return fold(node, only, "lane", text(workgroup_size)).value;
  const IndexExpression term = bind(IndexExpression(text("min(lane, ", length - 1, ")")));
  const std::string value = reduced_term(node, axes_of(only, graph_[node].shape), term);
  return text("(lane < ", length, " ? ", value, " : 0.0)");
}

// One round: the lanes that take part combine the values that are left.
void Emitter::add_slots(std::span<SlotFold> folds) {
  const auto [node, slots, first, left] = folds.front();
  if (left == 1) return;
  const int ways = fold_ways(left), apart = left / ways;
  open(text("if (lane < ", static_cast<int>(folds.size()) * apart, ")"));
  const std::string slot = declare(
      DType::int32, folds.size() == 1 ? text(first, " + lane")
                    : apart == 1      ? text(first, " + lane * ", slots)
                                      : text(first, " + lane / ", apart, " * ", slots, " + lane % ", apart));
  line(text("fold_floats[", slot, "] = ", folded_ways(node, "fold_floats", slot, ways, apart), ";"));
  close();
  for (SlotFold& own : folds) own.left = apart;
}

// The values at `first`, `first` + apart, ... in a tree of fixed order.
std::string Emitter::folded_ways(NodeIndex node, const std::string& array, const std::string& first, int ways,
                                 int apart) {
  std::vector<std::string> values;
  for (int way = 0; way < ways; ++way)
    values.push_back(declare(array == "fold_floats" ? DType::float32 : DType::int32,
                             text(array, "[", first, " + ", way * apart, "]")));
  for (std::size_t half = values.size() / 2; half > 0; half /= 2)
    for (std::size_t way = 0; way < half; ++way)
      line(combine(node, {values[way], {}}, values[way + half], {}));
  return values[0];
}

void Emitter::map_body(int workgroup_size) {
  const std::int64_t count = task_.element_count;
  line("int lane = int(gl_LocalInvocationID.x);");
  first_of_map(text("group * ", workgroup_size, " + lane"), count, {IndexExpression(std::string("i")), {}},
               workgroup_size);
  line(text("if (i >= ", count, ") return;"));
  leave_unused(IndexExpression(std::string("i")), 1);
  evaluate_members({IndexExpression(std::string("i")), {}});
}

// Declares the first element that an invocation takes, and folds what all invocations need. Loads are issued
// before the folds, to overlap with them.
void Emitter::first_of_map(const std::string& first, std::int64_t end, const ElementIndex& index,
                           int workgroup_size) {
  const std::vector<NodeIndex> folds = uniform_folds();
  if (folds.empty()) {
    line("int i = " + first + ";");
    return;
  }
  const std::int64_t step = index.linear->lane == 0 ? 1 : kWide;
  line(text("int i = min(", first, ", ", end - step, ");"));
  const ElementIndex only{IndexExpression(0), {}};
  for (const Read& read : task_.reads) {
    const Shape& shape = graph_[read.node].shape;
    if (read.aligned && shape.element_count() == task_.element_count) value(read.node, index);
    if (shape.element_count() != 1) continue;
    const std::string name = value(read.node, only);  // under both forms of its index
    remember(
        key_of(read.node, {std::nullopt, std::vector<IndexExpression>(static_cast<std::size_t>(shape.rank()),
                                                                      IndexExpression(0))}),
        name);
  }
  for (const NodeIndex node : uniform_folds(true)) uniforms_[node] = value(node, only);
  fold_uniforms(folds, workgroup_size);
  line("i = " + first + ";");
}

// Where there are many outputs, a workgroup takes several, with as many lanes each as leave a few terms per
// lane.
void Emitter::group_fold_body(int workgroup_size, bool wide) {
  constexpr std::int64_t kManyOutputs = 1024, kTerms = 16;  // per lane
  const GraphNode& anchor = graph_[task_.anchor];
  const DType source_dtype = graph_[anchor.inputs[0]].dtype;
  const std::int64_t length = fold_length(graph_, task_.anchor), count = task_.element_count;
  const bool positions = finds_position(anchor.op), innermost = folds_innermost(graph_, task_.anchor);
  const bool along = wide && innermost && !positions && length % kWide == 0;
  int lanes = workgroup_size;
  if (innermost && count >= kManyOutputs)
    lanes = static_cast<int>(std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(length / kTerms))), 4,
        workgroup_size));
  const std::int64_t outputs = workgroup_size / lanes;
  group_count_ = (count + outputs - 1) / outputs;

  const std::string shared_values = dtype_is_float(source_dtype) ? "fold_floats" : "fold_ints";
  const ElementIndex index{IndexExpression(std::string("i")), {}};
  const std::string part = outputs > 1 ? "part" : "lane";
  line("int lane = int(gl_LocalInvocationID.x);");
  if (outputs > 1) line(text("int part = lane % ", lanes, ";"));
  const std::string output = outputs > 1 ? text("group * ", outputs, " + lane / ", lanes) : "group";
  const bool ragged = count % outputs != 0;
  line("int i = " + (ragged ? text("min(", output, ", ", count - 1, ")") : output) + ";");
  const Accumulator own = fold(task_.anchor, index, along ? text(part, " * ", kWide) : part,
                               text(along ? lanes * kWide : lanes), along);
  line(shared_values + "[lane] = " + (along ? folded(task_.anchor, own.value) : own.value) + ";");
  if (positions) line("fold_positions[lane] = " + own.index + ";");
  line("barrier();");
  fold_lanes(task_.anchor, shared_values, lanes, 1, part);
  line("if (" + part + " != 0" + (ragged ? text(" || ", output, " >= ", count) : "") + ") return;");
  members_[task_.anchor] = positions ? "fold_positions[lane]" : shared_values + "[lane]";
  evaluate_members(index);
}

void Emitter::column_fold_body(int workgroup_size) {
  const std::string columns = text(kFoldColumns), count = text(task_.element_count);
  const int slices = workgroup_size / kFoldColumns;
  const std::string shared_values =
      dtype_is_float(graph_[graph_[task_.anchor].inputs[0]].dtype) ? "fold_floats" : "fold_ints";
  line("int lane = int(gl_LocalInvocationID.x);");
  line("int slice = lane / " + columns + ";");
  line("int column = group * " + columns + " + lane % " + columns + ";");
  line("int i = min(column, " + count + " - 1);");
  const ElementIndex index{IndexExpression(std::string("i")), {}};
  const Accumulator own = fold(task_.anchor, index, "slice", text(slices));
  line(shared_values + "[lane] = " + own.value + ";");
  line("barrier();");
  fold_lanes(task_.anchor, shared_values, slices, kFoldColumns, "slice");
  std::vector<std::string> tails;
  for (std::size_t tail = 0; tail < task_.tails.size(); ++tail)
    tails.push_back(declare(DType::float32, "0.0"));
  open("if (slice == 0 && column < " + count + ")");
  members_[task_.anchor] = shared_values + "[lane]";
  evaluate_members(index);
  for (std::size_t tail = 0; tail < task_.tails.size(); ++tail) {
    // The fold's input has the members' elements, in their order.
    const GraphNode& node = graph_[task_.tails[tail]];
    line(tails[tail] + " = " + value(node.inputs[0], index) + ";");
  }
  close();
  // After the columns' own sums, which are no longer read.
  const std::string place_of_tails = "fold_floats[" + columns + " + ";
  for (std::size_t tail = 0; tail < task_.tails.size(); ++tail) {
    if (tail > 0) line("barrier();");
    line("if (slice == 0) " + place_of_tails + "lane] = " + tails[tail] + ";");
    line("barrier();");
    open("if (lane == 0)");
    const std::string sum = declare(DType::float32, "0.0");
    open("for (int other = 0; other < " + columns + "; other += 4)");
    line(sum + " += (" + place_of_tails + "other] + " + place_of_tails + "other + 1]) + (" + place_of_tails +
         "other + 2] + " + place_of_tails + "other + 3]);");
    close();
    const Place& place = schedule_.place[at(task_.tails[tail])];
    line(memory_.array(place, DType::float32) + "[" +
         (IndexExpression(memory_.offset(place)) + IndexExpression(std::string("group"))).str() +
         "] = " + sum + ";");
    close();
  }
}

// A tree of fixed order over lanes that are `stride` apart: equal bits whatever the device's subgroups are.
// lane: the position among them. The first of them has the result; others see it after a barrier. Unless it
// is `whole`, it leaves the last step to the caller, and returns over how many lanes.
int Emitter::fold_lanes(NodeIndex node, const std::string& array, int lanes, int stride,
                        const std::string& lane, bool whole) {
  if (finds_position(graph_[node].op)) {
    open(text("for (int half_size = ", lanes / 2, "; half_size > 0; half_size >>= 1)"));
    open("if (" + lane + " < half_size)");
    const std::string partner =
        "[lane + half_size" + (stride > 1 ? text(" * ", stride) : std::string()) + "]";
    line(combine(node, {array + "[lane]", "fold_positions[lane]"}, array + partner,
                 "fold_positions" + partner));
    close();
    line("barrier();");
    close();
    return 1;
  }
  int left = lanes;
  while (left > 1 && (whole || left > fold_ways(left))) {
    const int ways = fold_ways(left), apart = left / ways;
    open(text("if (", lane, " < ", apart, ")"));
    line(array + "[lane] = " + folded_ways(node, array, "lane", ways, apart * stride) + ";");
    close();
    left = apart;
    if (left > 1) line("barrier();");
  }
  return left;
}

void Emitter::scan_body(int workgroup_size) {
  const GraphNode& anchor = graph_[task_.anchor];
  const int axis = static_cast<int>(anchor.ints[0]);
  const bool exclusive = anchor.ints[1] != 0, reverse = anchor.ints[2] != 0;
  const std::int64_t length = anchor.shape[axis];
  Shape lines = anchor.shape;
  lines[axis] = 1;
  line(text("int i = group * ", workgroup_size, " + int(gl_LocalInvocationID.x);"));
  line(text("if (i >= ", lines.element_count(), ") return;"));
  std::vector<IndexExpression> own = delinearize(IndexExpression(std::string("i")), lines);
  const std::string sum = declare(anchor.dtype, glsl_literal(0, anchor.dtype));
  open(text("for (int step = 0; step < ", length, "; step++)"));
  own[at(axis)] = bind(reverse ? IndexExpression(length - 1) - IndexExpression(std::string("step"))
                               : IndexExpression(std::string("step")));
  const ElementIndex index{std::nullopt, own};
  const std::string term = value(anchor.inputs[0], index);
  if (anchor.op == Op::linear_recurrence)
    line(sum + " = " + value(anchor.inputs[1], index) + " * " + sum + " + " + term + ";");
  else if (!exclusive)
    line(sum + " += " + term + ";");
  members_[task_.anchor] = sum;
  const IndexExpression linear = linear_of(index, anchor.shape);
  for (const Store& store : task_.stores) write(store, linear);
  if (exclusive) line(sum + " += " + term + ";");
  close();
}

}  // namespace imprint::kernels
