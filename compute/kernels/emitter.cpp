#include "compute/kernels/emitter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>

#include "compute/graph/axis_map.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/cost.h"
#include "compute/kernels/elementwise_glsl.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::kernels {

using namespace graph;
using namespace tensor;

std::string fold_start(Op op, DType dtype) {
  const Fold* fold = fold_of(op);
  return glsl_literal(fold ? fold->start(dtype) : 0, dtype);
}

std::string callers_text(std::string_view name, std::string_view glsl) {
  std::string line(name);  // a name with line breaks must not leave its comment
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\\'; }, ' ');
  return text(vk::kCallersText, line, "\n", glsl, "\n", vk::kCallersTextEnd, "\n");
}

Emitter::Emitter(const Graph& graph, const Schedule& schedule, const Task& task, MemoryNames& memory,
                 std::set<std::string>& includes, int fold_terms)
    : graph_(graph),
      schedule_(schedule),
      task_(task),
      memory_(memory),
      includes_(includes),
      fold_terms_(fold_terms) {}

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

std::string Emitter::qualifier(DType dtype) const {
  return is_exact_ && dtype_is_float(dtype) ? "precise " : "";
}

std::string Emitter::declare(DType dtype, const std::string& expression) {
  const std::string name = fresh('v');
  line(qualifier(dtype) + std::string(glsl_type(dtype)) + " " + name + " = " + expression + ";");
  return name;
}

IndexExpression Emitter::bind(const IndexExpression& index) {
  if (index.is_simple()) return index;
  std::string name;
  if (const std::string* before = known("=" + index.text)) {
    name = *before;
  } else {
    name = fresh('i');
    line("int " + name + " = " + index.text + ";");
    remember("=" + index.text, name);
  }
  IndexExpression bound = index;
  bound.text = name;
  return bound;
}

// ---- indices ----

std::vector<IndexExpression> Emitter::delinearize(const IndexExpression& linear, const Shape& shape) {
  std::vector<IndexExpression> axes;
  if (shape.element_count() == 0) {  // never executed, but it must compile
    axes.assign(static_cast<std::size_t>(shape.rank()), IndexExpression(0));
    return axes;
  }
  const auto strides = row_major_strides(shape);
  bool outermost = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] <= 1) {
      axes.emplace_back(0);
      continue;
    }
    const IndexExpression quotient = linear / strides[at(axis)];
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
    if (shape[axis] > 1) sum = sum + index.axes[at(axis)] * strides[at(axis)];
  return bind(sum);
}

// Splits both shapes into groups of axes with equal products. In a group with one axis on each side the index
// is the same; only a real regrouping costs divisions.
ElementIndex Emitter::reshaped(const ElementIndex& index, const Shape& from, const Shape& to) {
  if (index.linear) return {index.linear, {}};
  std::vector<IndexExpression> axes;
  int f = 0, t = 0;
  while (f < from.rank() || t < to.rank()) {
    int f_end = f, t_end = t;
    std::int64_t f_product = 1, t_product = 1;
    do {
      if (f_end < from.rank() && (f_product <= t_product || t_end == to.rank()))
        f_product *= from[f_end++];
      else if (t_end < to.rank())
        t_product *= to[t_end++];
      else
        break;
    } while (f_product != t_product);
    // Following axes of extent 1 belong to this group on either side: their index is always 0.
    Shape from_group, to_group;
    IndexExpression linear = 0;
    for (int axis = f; axis < f_end; ++axis) {
      linear = linear * from[axis] + index.axes[at(axis)];
      from_group.append(from[axis]);
    }
    for (int axis = t; axis < t_end; ++axis) to_group.append(to[axis]);
    const int wide = static_cast<int>(
        std::ranges::count_if(to_group.extents(), [](std::int64_t extent) { return extent != 1; }));
    if (wide > 1) linear = bind(linear);
    for (const IndexExpression& axis :
         wide <= 1 ? std::vector<IndexExpression>{} : delinearize(linear, to_group))
      axes.push_back(axis);
    if (wide <= 1)
      for (std::int64_t extent : to_group.extents())
        axes.push_back(extent == 1 ? IndexExpression(0) : linear);
    f = f_end;
    t = t_end;
  }
  return {to.rank() == 0 ? std::optional<IndexExpression>(0) : std::nullopt, std::move(axes)};
}

std::string Emitter::key_of(NodeIndex node, const ElementIndex& index) {
  std::string key = text(node);
  const auto add = [&](char mark, const IndexExpression& part) {
    key += mark + part.str() + (part.lane != 0 ? text("~", part.lane) : "");
  };
  if (index.linear)
    add('@', *index.linear);
  else
    for (const IndexExpression& axis : index.axes) add('|', axis);
  return key;
}

// ---- values ----

std::string Emitter::value(NodeIndex node, const ElementIndex& index) {
  if (const auto member = members_.find(node); member != members_.end()) return member->second;
  if (const auto uniform = uniforms_.find(node); uniform != uniforms_.end()) return uniform->second;
  const std::string key = key_of(node, index);
  if (const std::string* name = known(key)) return *name;
  const std::string name = schedule_.materialized[at(node)] ? load(node, index) : compute(node, index);
  remember(key, name);
  return name;
}

std::string Emitter::load(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const Place& place = schedule_.place[at(node)];
  const IndexExpression linear = linear_of(index, entry.shape);
  if (linear.is_irregular) return refuse();
  if (linear.lane != 0) return load_wide(node, linear);
  return declare(entry.dtype,
                 load_element(place, entry.dtype, (start_of(place, entry.dtype) + linear).str()));
}

std::string Emitter::compute(NodeIndex node, const ElementIndex& index) {
  const bool before = std::exchange(is_exact_, schedule_.exact[at(node)] != 0);
  std::string name = computed(node, index);
  is_exact_ = before;
  return name;
}

std::string Emitter::computed(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  switch (entry.kind()) {
    case OpKind::elementwise: {
      std::vector<std::string> operands;
      for (NodeIndex input : entry.inputs) operands.push_back(value(input, index));
      return elementwise(node, operands);
    }
    case OpKind::view:
      return value(entry.inputs[0], through_view(node, index));
    default:
      break;
  }
  switch (entry.op) {
    case Op::full:
      return glsl_literal(entry.floats[0], entry.dtype);
    case Op::iota:
      return position(axes_of(index, entry.shape)[at(static_cast<NodeIndex>(entry.ints[0]))]);
    case Op::random_uniform:
      return random_uniform(node, index);
    case Op::random_permutation:
      return random_permutation(node, index);
    case Op::pad:
      return pad(node, index);
    case Op::concat:
      return concat(node, index);
    case Op::gather:
    case Op::take:
      return gather(node, index);
    case Op::scatter_add:
      return scatter_add(node, index);
    case Op::unwindow:
      return unwindow(node, index);
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
  std::array<bool, Shape::kMaxRank> is_set{}, is_computed{};
  for (int axis = 0; axis < entry.shape.rank(); ++axis) {
    const AxisSource from = axis_source(entry, source, 0, axis);
    IndexExpression& position = result.axes[at(from.axis)];
    const bool is_first = !is_set[at(from.axis)];
    const IndexExpression term = from.step == 1 ? own[at(axis)] : own[at(axis)] * from.step;
    position = is_first ? (from.start == 0 ? term : IndexExpression(from.start) + term) : position + term;
    is_set[at(from.axis)] = true;
    if (!is_first || from.start != 0 || from.step != 1) is_computed[at(from.axis)] = true;
  }
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis)
    if (is_computed[axis]) result.axes[axis] = bind(result.axes[axis]);
  if (source.rank() == 0) result.linear = 0;
  return result;
}

// ---- folds ----

std::string Emitter::combine(NodeIndex node, const Accumulator& into, const std::string& term,
                             const std::string& position) {
  const Fold* fold = fold_of(graph_[node].op);
  const Op combination = fold ? fold->combination : Op::add;
  const DType dtype = graph_[graph_[node].inputs[0]].dtype;
  const std::string symbol = operator_glsl(combination, dtype);
  if (fold && fold->finds_position) {
    // The first of equals wins in any order of combination; NaN wins over every number.
    const std::string first = position + " < " + into.index;
    std::string better =
        text(term, " ", symbol, " ", into.value, " || (", term, " == ", into.value, " && ", first, ")");
    if (dtype == DType::float32) {
      includes_.insert("special_values");
      const std::string known = "imp_is_nan(" + into.value + ")";
      better = text("imp_is_nan(", term, ") ? !", known, " || ", first, " : !", known, " && (", better, ")");
    }
    return text("if (", better, ") { ", into.value, " = ", term, "; ", into.index, " = ", position, "; }");
  }
  const bool whole = !is_wide(into.value) || takes_vectors(combination, dtype);
  if (!symbol.empty() && whole) return text(into.value, " ", symbol, "= ", term, ";");
  const std::string operands[] = {into.value, term};
  const auto combined = [&](std::span<const std::string> pair) {
    return elementwise_glsl(combination, dtype, dtype, pair, includes_);
  };
  return into.value + " = " + (whole ? combined(operands) : componentwise(dtype, operands, combined)) + ";";
}

std::vector<Emitter::Accumulator> Emitter::fold(std::span<const NodeIndex> nodes, const ElementIndex& index,
                                                const std::string& first, const std::string& step,
                                                bool along) {
  const NodeIndex node = nodes[0];
  const GraphNode& entry = graph_[node];
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  std::vector<Accumulator> results(nodes.size());
  IndexExpression wide_term;
  if (along) wide_term.lane = 1;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Op op = graph_[nodes[n]].op;
    const DType source = graph_[graph_[nodes[n]].inputs[0]].dtype,
                dtype = source == DType::boolean ? DType::int32 : source;
    results[n].value = declare_like(along ? ElementIndex{wide_term, {}} : ElementIndex{std::nullopt, own},
                                    dtype, fold_start(op, dtype));
    if (finds_position(op) && is_wide(results[n].value)) refuse();
    // Starts after every position, so that the first term wins its tie with the start value.
    if (finds_position(op)) results[n].index = declare(DType::int32, "2147483647");
  }
  const auto add_terms = [&](const IndexExpression& k) {
    for (std::size_t n = 0; n < nodes.size(); ++n) fold_term(nodes[n], own, results[n], k);
  };

  // Several terms per turn, so that their loads overlap instead of forming a chain of memory latencies. Terms
  // are still added in order.
  const std::int64_t length = fold_length(graph_, node);
  const int stride = std::stoi(step);
  if (first == "0" && stride == 1 && !along && writes_terms_out(node)) {
    for (std::int64_t term = 0; term < length; ++term) add_terms(term);
    return results;
  }
  const std::int64_t turns_alone = length / stride;
  int terms = turns_alone < 8 ? 1 : std::min(fold_terms_, turns_alone < 32 ? 4 : 8);
  if (stride > 1 && turns_alone > 1)  // a workgroup's fold is bound by latency
    terms = std::min(fold_terms_, static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(turns_alone))));
  if (computes_folds(node)) terms = 1;
  const std::int64_t turns = length / (static_cast<std::int64_t>(stride) * terms);
  const std::string k = fresh('k');
  const std::string used = used_terms(node);
  const auto stop_at_end = [&] {
    if (!used.empty()) line(text("if (", k, " >= ", used, ") break;"));
  };
  IndexExpression position(k, along ? kWide : 1);
  position.lane = wide_term.lane;
  if (terms > 1) {
    line("int " + k + " = " + first + ";");
    open(text("for (int turn = 0; turn < ", turns, "; turn++, ", k, " += ", stride * terms, ")"));
    stop_at_end();
    for (int term = 0; term < terms; ++term) add_terms(bind(position + term * stride));
    close();
    const std::int64_t done = turns * stride * terms, rest = (length - done + stride - 1) / stride;
    if (rest == 0) return results;
    // The same for the rest; some invocations have one term less.
    if (stride > 1 && rest <= terms && !along && entry.op != Op::matmul && !finds_position(entry.op) &&
        nodes.size() == 1) {
      std::vector<std::string> last;
      for (std::int64_t term = 0; term < rest; ++term) {
        const IndexExpression own_k = position + term * stride;
        const bool is_cut = done + (term + 1) * stride > length;
        last.push_back(reduced_term(
            node, own,
            is_cut ? bind(IndexExpression(text("min(", own_k.str(), ", ", length - 1, ")"))) : bind(own_k)));
      }
      for (std::int64_t term = 0; term < rest; ++term) {
        const std::string k_text = (position + term * stride).str();
        const bool is_cut = done + (term + 1) * stride > length;
        line((is_cut ? text("if (", k_text, " < ", length, ") ") : std::string()) +
             combine(node, results[0], last[at(term)], k_text));
      }
      return results;
    }
  }
  open(text("for (", (terms > 1 ? std::string() : "int " + k + " = " + first), "; ", k, " < ", length, "; ",
            k, " += ", step, ")"));
  stop_at_end();
  add_terms(position);
  close();
  return results;
}

bool Emitter::writes_terms_out(NodeIndex node) {
  constexpr int kGpuTerms = 8;  // CPU drivers take fewer at once
  constexpr std::int64_t kMostTerms = 25;
  return fold_terms_ >= kGpuTerms && fold_length(graph_, node) <= kMostTerms && used_terms(node).empty() &&
         !computes_folds(node) && reads_windows(node);
}

bool Emitter::reads_windows(NodeIndex node) const {
  std::vector<NodeIndex> stack{node};
  std::set<NodeIndex> seen;
  while (!stack.empty()) {
    const NodeIndex reader = stack.back();
    stack.pop_back();
    for (NodeIndex input : graph_[reader].inputs) {
      if (schedule_.materialized[at(input)] || !seen.insert(input).second) continue;
      if (graph_[input].op == Op::window) return true;
      stack.push_back(input);
    }
  }
  return false;
}

bool Emitter::computes_folds(NodeIndex node) const {
  return std::ranges::any_of(graph_[node].inputs, [&](NodeIndex input) {
    return !schedule_.materialized[at(input)] && (fold_length(graph_, input) > 1 || computes_folds(input));
  });
}

bool Emitter::reads_members(NodeIndex node) const {
  return std::ranges::any_of(graph_[node].inputs, [&](NodeIndex input) {
    return std::ranges::find(task_.members, input) != task_.members.end() ||
           (!schedule_.materialized[at(input)] && reads_members(input));
  });
}

bool Emitter::folds_alike(NodeIndex one, NodeIndex other) const {
  const GraphNode &a = graph_[one], &b = graph_[other];
  return a.shape == b.shape && a.ints == b.ints && graph_[a.inputs[0]].shape == graph_[b.inputs[0]].shape &&
         schedule_.exact[at(one)] == schedule_.exact[at(other)];
}

// Members that fold equal terms, such as the gradients of a layer norm's weight and bias, share a loop.
void Emitter::fold_alike_members(const ElementIndex& index) {
  std::vector<NodeIndex> folds;
  for (NodeIndex member : task_.members)
    if (tensor::is_plain_fold(graph_[member].op) && !members_.contains(member) &&
        !uniforms_.contains(member) && !wants_lanes(graph_, member) && !computes_folds(member) &&
        !reads_members(member) && std::ranges::find(task_.reads, member, &Read::node) == task_.reads.end())
      folds.push_back(member);
  while (!folds.empty()) {
    std::vector<NodeIndex> alike;
    const NodeIndex first = folds[0];
    const auto is_alike = [&](NodeIndex other) { return folds_alike(first, other); };
    std::ranges::copy_if(folds, std::back_inserter(alike), is_alike);
    std::erase_if(folds, is_alike);
    if (alike.size() < 2) continue;
    const bool before = std::exchange(is_exact_, schedule_.exact[at(first)] != 0);
    const std::vector<Accumulator> found = fold(alike, own_index(first, index), "0", "1");
    is_exact_ = before;
    for (std::size_t n = 0; n < alike.size(); ++n) members_[alike[n]] = found[n].value;
  }
}

void Emitter::fold_term(NodeIndex node, const std::vector<IndexExpression>& own, const Accumulator& into,
                        const IndexExpression& k) {
  const GraphNode& entry = graph_[node];
  if (entry.op == Op::matmul) {
    ElementIndex a{std::nullopt, own}, b{std::nullopt, own};
    a.axes[own.size() - 1] = k;
    b.axes[own.size() - 2] = k;
    const std::string left = value(entry.inputs[0], a), right = value(entry.inputs[1], b);
    line(into.value + " += " + left + " * " + right + ";");
    return;
  }
  line(combine(node, into, reduced_term(node, own, k), k.str()));
}

std::string Emitter::reduced_term(NodeIndex node, const std::vector<IndexExpression>& own,
                                  const IndexExpression& k) {
  const GraphNode& entry = graph_[node];
  const GraphNode& source = graph_[entry.inputs[0]];
  Shape folded;
  for (std::int64_t axis : entry.ints) folded.append(source.shape[static_cast<int>(axis)]);
  const std::vector<IndexExpression> inner = delinearize(k, folded);
  ElementIndex position{std::nullopt, own};
  for (std::size_t i = 0; i < entry.ints.size(); ++i) position.axes[at(entry.ints[i])] = inner[i];
  std::string term = value(entry.inputs[0], position);
  if (source.dtype == DType::boolean) term = (is_wide(term) ? "ivec4(" : "int(") + term + ")";
  return term;
}

}  // namespace imprint::kernels
