#include "compute/kernels/row_emitter.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <unordered_map>

#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/cost.h"
#include "compute/kernels/elementwise_glsl.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr std::int64_t kMostKept = 64;  // floats per invocation
constexpr double kWorthKeeping = 4;     // operations

}  // namespace

RowEmitter::RowEmitter(const Graph& graph, const Schedule& schedule, const Task& task, MemoryNames& memory,
                       std::set<std::string>& includes, int fold_terms)
    : Emitter(graph, schedule, task, memory, includes, fold_terms),
      shape_(graph[graph[task.anchor].inputs[0]].shape),
      first_folded_(static_cast<int>(graph[task.anchor].ints.front())),
      length_(fold_length(graph, task.anchor)),
      rows_(task.element_count) {
  for (NodeIndex member : task.members) own_.insert(member);
}

std::string RowEmitter::function(const std::string& name, int workgroup_size, bool wide) {
  if (wide && length_ % kWide != 0) return {};
  width_ = wide ? kWide : 1;
  lanes_ = std::min(task_.row_lanes, workgroup_size);
  turns_ = static_cast<int>((length_ + lanes_ * width_ - 1) / (lanes_ * width_));
  ragged_ = length_ % (lanes_ * width_) != 0;
  const std::int64_t rows_here = workgroup_size / lanes_;
  group_count_ = (rows_ + rows_here - 1) / rows_here;

  line("int lane = int(gl_LocalInvocationID.x);");
  line("int part = lane % " + text(lanes_) + ";");
  line("int own_row = group * " + text(rows_here) + " + lane / " + text(lanes_) + ";");
  line("int row = " +
       (rows_ % rows_here == 0 ? std::string("own_row") : "min(own_row, " + text(rows_ - 1) + ")") + ";");
  Shape leading = shape_;
  for (int axis = first_folded_; axis < shape_.rank(); ++axis) leading[axis] = 1;
  row_axes_ = delinearize(IndexExpression(std::string("row")), leading);
  choose_kept();
  numbers_ = find_numbers();
  compute_numbers(-1);
  for (std::size_t pass = 0; pass < task_.folds.size(); ++pass) fold_row(pass);
  if (rows_ % rows_here != 0) line("if (own_row >= " + text(rows_) + ") return;");
  store_row();
  if (is_refused_) return {};
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

bool RowEmitter::is_read(NodeIndex node) const {
  return schedule_.materialized[at(node)] && !is_member(node);
}

// Whether each pass over the row would load the value again, directly or behind views.
bool RowEmitter::is_loaded(NodeIndex node) const {
  while (graph_[node].kind() == OpKind::view && graph_[node].op != Op::expand) node = graph_[node].inputs[0];
  return is_read(node);
}

// A value that this task stores for others is in its own registers.
std::string RowEmitter::load(NodeIndex node, const ElementIndex& index) {
  return is_member(node) ? compute(node, index) : Emitter::load(node, index);
}

// ---- values kept in registers ----

std::vector<NodeIndex> RowEmitter::pass_roots(std::size_t pass) const {
  if (pass < task_.folds.size()) return {graph_[task_.folds[pass]].inputs[0]};
  std::vector<NodeIndex> roots;
  std::ranges::copy_if(task_.members, std::back_inserter(roots),
                       [&](NodeIndex member) { return is_row(member); });
  return roots;
}

std::vector<std::vector<NodeIndex>> RowEmitter::visits() const {
  std::vector<std::vector<NodeIndex>> passes;
  std::set<NodeIndex> before;
  for (std::size_t pass = 0; pass <= task_.folds.size(); ++pass) {
    std::vector<NodeIndex> stack = pass_roots(pass), seen;
    NumberSet known;
    while (!stack.empty()) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      if (!is_row(node) || !known.insert(node)) continue;
      seen.push_back(node);
      const bool is_at_hand =
          before.contains(node) && std::ranges::find(kept_, node, &Kept::node) != kept_.end();
      if (!is_at_hand && !is_read(node) && graph_[node].kind() == OpKind::elementwise)
        stack.insert(stack.end(), graph_[node].inputs.begin(), graph_[node].inputs.end());
    }
    before.insert(seen.begin(), seen.end());
    passes.push_back(std::move(seen));
  }
  return passes;
}

// From the last value to the first: a kept value spares later passes the values that it is computed from. The
// passes change with each kept value, of which there are at most kMostKept.
void RowEmitter::choose_kept() {
  if (turns_ == 1 && !ragged_) return;  // without loops every computed value is still in a register
  std::set<NodeIndex, std::greater<>> candidates;
  std::unordered_map<NodeIndex, int> passes;  // per value: those that visit it
  const auto count_passes = [&] {
    passes.clear();
    for (const std::vector<NodeIndex>& pass : visits())
      for (NodeIndex node : pass) ++passes[node];
  };
  count_passes();
  for (const auto& [node, count] : passes) candidates.insert(node);
  for (NodeIndex node : candidates) {
    if (static_cast<std::int64_t>(kept_.size() + 1) * turns_ * width_ > kMostKept) break;
    if (!is_loaded(node) && (graph_[node].op == Op::expand || op_cost(graph_, node) < kWorthKeeping))
      continue;
    if (passes[node] < 2) continue;
    static constexpr const char* kVectors[] = {"vec4", "ivec4", "bvec4"};  // by DTypeRegisters
    const DType dtype = graph_[node].dtype;
    const std::string array = fresh('r');
    const std::string type = width_ == 1 ? std::string(glsl_type(dtype))
                                         : kVectors[static_cast<std::size_t>(dtype_registers(dtype))];
    line(type + " " + array + "[" + text(turns_) + "];");
    kept_.push_back({node, array});
    count_passes();
  }
}

// ---- passes ----

// body takes the index of the elements that the lane has in this turn.
template <class Body>
void RowEmitter::take_turns(const Body& body) {
  const bool loops = turns_ > 1;
  if (loops) open("[[unroll]] for (int turn = 0; turn < " + text(turns_) + "; turn++)");
  const std::string column = loops ? "(turn * " + text(lanes_) + " + part)" : std::string("part");
  IndexExpression c = IndexExpression(column) * width_;
  if (loops || width_ > 1) c = bind(c);
  if (ragged_) open("if (" + c.str() + " < " + text(length_) + ")");
  c.lane = width_ > 1 ? 1 : 0;

  Shape folded;
  for (int axis = first_folded_; axis < shape_.rank(); ++axis) folded.append(shape_[axis]);
  ElementIndex index{bind(IndexExpression(std::string("row")) * length_ + c), row_axes_};
  const std::vector<IndexExpression> columns = delinearize(c, folded);
  std::ranges::copy(columns, index.axes.begin() + first_folded_);
  const std::string turn = loops ? "[turn]" : "[0]";
  for (const Kept& kept : kept_) {
    if (!kept.is_there) continue;
    remember(key_of(kept.node, index), kept.array + turn);
    if (width_ > 1) wide_names_.insert(kept.array + turn);
  }
  body(index);
  for (Kept& kept : kept_) {
    const std::string* name = kept.is_there ? nullptr : known(key_of(kept.node, index));
    if (!name) continue;
    line(kept.array + turn + " = " + (width_ > 1 ? widened(*name, graph_[kept.node].dtype) : *name) + ";");
    kept.is_there = true;
  }
  if (ragged_) close();
  if (loops) close();
}

void RowEmitter::fold_row(std::size_t pass) {
  const NodeIndex node = task_.folds[pass];
  const GraphNode& entry = graph_[node];
  IndexExpression turn_index;
  turn_index.lane = width_ > 1 ? 1 : 0;
  const std::string own = declare_like({turn_index, {}}, entry.dtype, fold_start(entry.op, entry.dtype));
  take_turns([&](const ElementIndex& index) {
    line(combine(node, {own, {}}, value(entry.inputs[0], index), {}));
  });
  const std::string sum = folded(node, own);
  if (lanes_ == 1) {
    uniforms_[node] = sum;
  } else {
    if (pass > 0) line("barrier();");
    line("fold_floats[lane] = " + sum + ";");
    line("barrier();");
    // All lanes take the last step, which spares a barrier.
    const int left = fold_lanes(node, "fold_floats", lanes_, 1, "part", false);
    uniforms_[node] = folded_ways(node, "fold_floats", "lane - part", left, 1);
  }
  compute_numbers(node);
}

ElementIndex RowEmitter::number_index() const { return {std::nullopt, row_axes_}; }

std::vector<std::pair<NodeIndex, NodeIndex>> RowEmitter::find_numbers() const {
  const Shape& numbers = graph_[task_.anchor].shape;
  std::vector<NodeIndex> stack(task_.members.begin(), task_.members.end()), found;
  stack.insert(stack.end(), task_.folds.begin(), task_.folds.end());
  NumberSet seen, folds;
  for (NodeIndex fold : task_.folds) folds.insert(fold);
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (!seen.insert(node)) continue;
    if (graph_[node].shape == numbers && (is_read(node) || graph_[node].kind() == OpKind::elementwise))
      found.push_back(node);
    if (!is_read(node)) stack.insert(stack.end(), graph_[node].inputs.begin(), graph_[node].inputs.end());
  }
  std::ranges::sort(found);
  std::vector<std::pair<NodeIndex, NodeIndex>> result;
  for (NodeIndex node : found) {
    std::vector<NodeIndex> waits{node};
    NumberSet before;
    NodeIndex last = -1;
    while (!waits.empty()) {
      const NodeIndex input = waits.back();
      waits.pop_back();
      if (!before.insert(input)) continue;
      if (folds.contains(input))
        last = std::max(last, input);
      else if (!is_read(input))  // what it reads never waits for its own folds
        waits.insert(waits.end(), graph_[input].inputs.begin(), graph_[input].inputs.end());
    }
    result.emplace_back(node, last);
  }
  return result;
}

// Once per row, not once per element: outside the loops that use them.
void RowEmitter::compute_numbers(NodeIndex last_fold) {
  for (const auto& [node, last] : numbers_)
    if (last == last_fold) value(node, number_index());
}

void RowEmitter::store_row() {
  const std::vector<NodeIndex> rows = pass_roots(task_.folds.size());
  const auto write_all = [&](NodeIndex member, const IndexExpression& linear) {
    for (const Store& store : task_.stores)
      if (store.node == member) write(store, linear);
  };
  if (!rows.empty())
    take_turns([&](const ElementIndex& index) {
      for (NodeIndex member : rows) {
        const std::string name = value(member, index);
        members_[member] = name;
        write_all(member, *index.linear);
      }
      members_.clear();
    });
  if (rows.size() == task_.members.size()) return;
  open("if (part == 0)");
  for (NodeIndex member : task_.members) {
    if (is_row(member)) continue;
    const std::string name = value(member, number_index());
    members_[member] = name;
    write_all(member, IndexExpression(std::string("row")));
    members_.clear();
  }
  close();
}

}  // namespace imprint::kernels
