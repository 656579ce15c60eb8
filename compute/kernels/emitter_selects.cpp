// Values that read other elements than their own index names, and random numbers.

#include <algorithm>

#include "compute/kernels/elementwise_glsl.h"
#include "compute/kernels/emitter.h"

namespace imprint::kernels {

using namespace graph;
using namespace tensor;

namespace {

// Whether an innermost axis of four is partly padding: three channels of a place become four.
bool pads_a_four(const GraphNode& pad) {
  const int last = pad.shape.rank() - 1;
  return dtype_is_float(pad.dtype) && last >= 0 && pad.shape[last] == kWide &&
         (pad.ints[2 * at(last)] > 0 || pad.ints[2 * at(last) + 1] > 0);
}

}  // namespace

std::string Emitter::pad(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const Shape& source = graph_[entry.inputs[0]].shape;
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  if (const int last = source.rank() - 1; pads_a_four(entry) && own[at(last)].lane == 1) {
    // Channels of a place: each of the four has its own condition.
    std::vector<std::string> four;
    for (int e = 0; e < kWide; ++e) {
      ElementIndex one{std::nullopt, own};
      one.axes[at(last)] = IndexExpression(e);
      four.push_back(pad(node, one));  // not value(), which would load a pad that has memory
    }
    return declare_wide(entry.dtype,
                        text("vec4(", four[0], ", ", four[1], ", ", four[2], ", ", four[3], ")"));
  }
  ElementIndex inner;
  std::string inside;
  for (int axis = 0; axis < source.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t before = entry.ints[2 * a], after = entry.ints[2 * a + 1];
    inner.axes.push_back(bind(own[a] - before));
    if ((before > 0 || after > 0) && !(divides(own[a], before) && divides(own[a], before + source[axis])))
      return refuse();
    const std::string position = inner.axes.back().str(), also = inside.empty() ? "" : " && ";
    if (before > 0 && after > 0)  // as unsigned, a negative position is beyond all others
      inside += text(also, "uint(", position, ") < ", source[axis], "u");
    else if (before > 0)
      inside += text(also, position, " >= 0");
    else if (after > 0)
      inside += text(also, position, " < ", source[axis]);
  }
  if (inside.empty()) return value(entry.inputs[0], inner);
  if (const std::string chosen = pad_of_memory(node, inner, inside); !chosen.empty()) return chosen;
  const std::string result = declare_like(index, entry.dtype, glsl_literal(entry.floats[0], entry.dtype));
  open("if (" + inside + ")");
  assign(result, value(entry.inputs[0], inner), entry.dtype);
  close();
  return result;
}

// In a map, where what is padded is in memory: loads from a place inside in any case, instead of a branch
// with a load, so that the loads of a window are in flight together. Empty: not here.
std::string Emitter::pad_of_memory(NodeIndex node, const ElementIndex& inner, const std::string& inside) {
  constexpr int kTermsOfGpu = 8;  // a CPU has no loads to wait for together
  const GraphNode& entry = graph_[node];
  const NodeIndex source = entry.inputs[0];
  const Place& place = schedule_.place[at(source)];
  if (task_.kind != TaskKind::map || fold_terms_ < kTermsOfGpu || !in_memory(source) ||
      memory_.is_long(place) || graph_[source].element_count() == 0)
    return {};
  const IndexExpression linear = linear_of(inner, graph_[source].shape);
  const bool wide = linear.lane != 0;
  if (linear.is_irregular || (wide && (linear.lane != 1 || !linear.is_multiple_of(kWide)))) return {};
  const std::string is_inside = declare(DType::boolean, inside), element = fresh('i');
  line(text("int ", element, " = ", is_inside, " ? ", linear.str(), " : 0;"));
  const IndexExpression first = start_of(place, entry.dtype) + IndexExpression(element, wide ? kWide : 1);
  const std::string loaded = wide ? declare_wide(entry.dtype, load_four(place, entry.dtype, first / kWide))
                                  : declare(entry.dtype, load_element(place, entry.dtype, first.str()));
  const std::string outside = glsl_literal(entry.floats[0], entry.dtype);
  return wide ? declare_wide(entry.dtype,
                             text("(", is_inside, " ? ", loaded, " : ", widened(outside, entry.dtype), ")"))
              : declare(entry.dtype, text("(", is_inside, " ? ", loaded, " : ", outside, ")"));
}

std::string Emitter::concat(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  const auto inner_of = [&](std::int64_t begin) {
    ElementIndex inner{std::nullopt, own};
    inner.axes[axis] = bind(own[axis] - begin);
    return inner;
  };
  std::int64_t begin = 0;
  for (NodeIndex input : entry.inputs) {
    begin += graph_[input].shape[static_cast<int>(axis)];
    if (!divides(own[axis], begin)) return refuse();
  }
  begin = 0;
  const bool is_wide_index = own[axis].lane != 0 || (index.linear && index.linear->lane != 0);
  if (const std::string array = is_wide_index ? std::string() : array_of_all(entry.inputs);
      !array.empty()) {  // one load from a selected offset instead of a chain of branches with loads
    const std::string place = fresh('i');
    line("int " + place + " = 0;");
    for (NodeIndex input : entry.inputs) {
      const std::int64_t extent = graph_[input].shape[static_cast<int>(axis)];
      if (extent == 0) continue;
      const IndexExpression source = IndexExpression(memory_.offset(schedule_.place[at(input)])) +
                                     linear_of(inner_of(begin), graph_[input].shape);
      line((begin > 0 ? text("if (", own[axis].str(), " >= ", begin, ") ") : std::string()) + place + " = " +
           source.str() + ";");
      begin += extent;
    }
    return declare(entry.dtype, array + "[" + place + "]");
  }
  const std::string result = declare_like(index, entry.dtype, glsl_literal(0, entry.dtype));
  for (NodeIndex input : entry.inputs) {
    const std::int64_t extent = graph_[input].shape[static_cast<int>(axis)];
    if (extent == 0) continue;
    const std::string position = own[axis].str();
    open(text("if (", position, " >= ", begin, " && ", position, " < ", begin + extent, ")"));
    assign(result, value(input, inner_of(begin)), entry.dtype);
    close();
    begin += extent;
  }
  return result;
}

std::string Emitter::array_of_all(const std::vector<NodeIndex>& nodes) {
  std::string array;
  for (NodeIndex node : nodes) {
    if (graph_[node].element_count() == 0) continue;
    if (!in_memory(node) || dtype_size(graph_[node].dtype) < 4 || memory_.is_long(schedule_.place[at(node)]))
      return {};
    const std::string own = memory_.array(schedule_.place[at(node)], graph_[node].dtype);
    if (!array.empty() && own != array) return {};
    array = own;
  }
  return array;
}

std::string Emitter::gather(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const GraphNode& data = graph_[entry.inputs[0]];
  const Shape& indices = graph_[entry.inputs[1]].shape;
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);

  ElementIndex position{std::nullopt, own}, inner{std::nullopt, own};
  if (entry.op == Op::take) {  // the indices' axes replace `axis`
    const auto first = own.begin() + static_cast<std::ptrdiff_t>(axis), last = first + indices.rank();
    position.axes.assign(first, last);
    inner.axes.assign(own.begin(), first);
    inner.axes.emplace_back(0);
    inner.axes.insert(inner.axes.end(), last, own.end());
  }
  if (indices.rank() == 0) position.linear = 0;
  const std::string chosen = value(entry.inputs[1], position);
  if (is_wide(chosen)) return refuse();
  inner.axes[axis] = IndexExpression(chosen);
  const std::string result = declare_like(inner, entry.dtype, glsl_literal(0, entry.dtype));
  open(text("if (", chosen, " >= 0 && ", chosen, " < ", data.shape[static_cast<int>(axis)], ")"));
  assign(result, value(entry.inputs[0], inner), entry.dtype);
  close();
  return result;
}

std::string Emitter::random_uniform(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  includes_.insert("philox");
  std::string words;
  for (int word = 0; word < 3; ++word)
    words += ", " + value(entry.inputs[0], {std::nullopt, {IndexExpression(word)}});
  const auto stream = static_cast<std::uint32_t>(entry.ints[0]);
  const IndexExpression linear = linear_of(index, entry.shape);
  const auto draw = [&](std::span<const std::string> element) {
    return text("imp_uniform(", element[0], ", ", stream, "u", words, ")");
  };
  if (linear.lane == 0) return declare(DType::float32, draw(std::vector{linear.str()}));
  const std::string own[] = {position(linear)};
  return declare_wide(DType::float32, componentwise(DType::float32, own, draw));
}

std::string Emitter::random_permutation(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  includes_.insert("philox");
  includes_.insert("shuffle");
  std::string words;
  for (int word = 0; word < 3; ++word)
    words += ", " + value(entry.inputs[0], {std::nullopt, {IndexExpression(word)}});
  const IndexExpression linear = bind(linear_of(index, entry.shape));
  if (!is_uniform(linear)) return refuse();
  const std::int64_t count = entry.shape[entry.shape.rank() - 1];
  const auto stream = static_cast<std::uint32_t>(entry.ints[0]);
  return declare(DType::int32, text("imp_permuted(", (linear % count).str(), ", ", count, ", ",
                                    (linear / count).str(), ", ", stream, "u", words, ")"));
}

std::string Emitter::scatter_add(NodeIndex node, const ElementIndex& index) {
  const GraphNode& entry = graph_[node];
  const auto axis = static_cast<std::size_t>(entry.ints[0]);
  const Shape& updates = graph_[entry.inputs[2]].shape;
  const std::vector<IndexExpression> own = axes_of(index, entry.shape);
  if (!std::ranges::all_of(own, [&](const IndexExpression& position) { return is_uniform(position); }))
    return refuse();
  const std::string result = declare(entry.dtype, value(entry.inputs[0], index));
  // Along the other axes the indices may be shorter than the base.
  std::string inside;
  for (int a = 0; a < updates.rank(); ++a)
    if (static_cast<std::size_t>(a) != axis && updates[a] < entry.shape[a])
      inside += text((inside.empty() ? "" : " && "), own[at(a)].str(), " < ", updates[a]);
  if (!inside.empty()) open("if (" + inside + ")");
  const std::string j = fresh('k');
  open(text("for (int ", j, " = 0; ", j, " < ", updates[static_cast<int>(axis)], "; ", j, "++)"));
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
  if (!std::ranges::all_of(own, [&](const IndexExpression& position) { return is_uniform(position); }))
    return refuse();
  const std::string result = declare(entry.dtype, glsl_literal(0, entry.dtype));
  const std::string s = fresh('k');
  open(text("for (int ", s, " = 0; ", s, " < ", size, "; ", s, "++)"));
  const IndexExpression start = bind(own[axis] - IndexExpression(s) * dilation);
  const std::string on_stride = stride == 1 ? "" : text(" && ", start.str(), " % ", stride, " == 0");
  open(text("if (", start.str(), " >= 0 && ", start.str(), " <= ", (positions - 1) * stride, on_stride, ")"));
  ElementIndex position{std::nullopt, own};
  position.axes[axis] = bind(start / stride);
  position.axes.emplace_back(s);
  line(result + " += " + value(entry.inputs[0], position) + ";");
  close();
  close();
  return result;
}

}  // namespace imprint::kernels
