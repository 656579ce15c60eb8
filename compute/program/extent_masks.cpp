#include "compute/program/extent_masks.h"

#include <algorithm>
#include <unordered_map>

#include "compute/base/text.h"
#include "compute/program/loop_parts.h"
#include "compute/tensor/build.h"
#include "compute/tensor/extent_sums.h"
#include "compute/tensor/named_axes.h"

namespace imprint::program {

using namespace tensor;

namespace {

// `value` where an element is used along the axes, else `other`. All of it has a meaning along them: it has
// no names there, so that no part of the mask is left out.
Tensor masked(const Tensor& value, std::span<const int> axes, std::span<const AxisName> names, double other) {
  Shape whole = value.shape();
  for (const int axis : axes) whole.set_name(axis, {});
  Tensor used;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!names[i]) continue;
    // One row of positions, broadcast: the position of each element would take divisions.
    Shape row;
    for (int axis = axes[i]; axis < whole.rank(); ++axis) row.append(axis == axes[i] ? whole[axis] : 1);
    const Tensor along = used_positions(iota(row, 0), names[i]);
    used = is_empty(used) ? along : logical_and(used, along);
  }
  if (is_empty(used)) return value;
  const Tensor result = where(used, value, full({}, other, value.dtype()));
  if (result.ok()) const_cast<Node&>(*result.node()).shape = whole;  // not shared yet
  return result;
}

Tensor masked(const Tensor& value, std::span<const int> axes, double other) {
  std::vector<AxisName> names;
  for (const int axis : axes) names.push_back(value.shape().name(axis));
  return masked(value, axes, names, other);
}

Tensor masked(const Tensor& value, int axis, double other) {
  const int axes[] = {axis};
  return masked(value, axes, other);
}

// Positions beyond the extent become -1, where operations read 0 and drop updates.
Tensor inside(const Tensor& positions, const AxisName& name) {
  return name ? where(used_positions(positions, name), positions, -1) : positions;
}

// A run's padding begins where its own places end, before the bound's: those between must have the value.
std::vector<int> axes_padded_after(const Node& pad) {
  std::vector<int> axes;
  for (int axis = 0; axis < pad.shape.rank(); ++axis)
    if (pad.ints[2 * static_cast<std::size_t>(axis) + 1] > 0) axes.push_back(axis);
  return axes;
}

// The node's inputs, masked where it joins elements along a named axis.
std::vector<Tensor> masked_inputs(const Node& node, std::vector<Tensor> inputs) {
  const auto& ints = node.ints;
  switch (node.op) {
    case Op::matmul: {
      const int rank = inputs[0].rank(), left = rank - 1, right = rank - 2;
      // A product of 0 and a value that is not finite is NaN, so both operands are masked.
      AxisName name = inputs[0].shape().name(left);
      if (!name) name = inputs[1].shape().name(right);
      if (!name) break;
      for (const auto& [input, axis] : {std::pair{std::size_t{0}, left}, std::pair{std::size_t{1}, right}}) {
        const int axes[] = {axis};
        const AxisName names[] = {name};
        inputs[input] = masked(inputs[input], axes, names, 0);
      }
      break;
    }
    case Op::cumsum:
      if (ints[2] != 0) inputs[0] = masked(inputs[0], static_cast<int>(ints[0]), 0);
      break;
    case Op::linear_recurrence:
      if (ints[2] == 0) break;
      inputs[0] = masked(inputs[0], static_cast<int>(ints[0]), 0);
      inputs[1] = masked(inputs[1], static_cast<int>(ints[0]), 1);
      break;
    case Op::gather:
    case Op::take:
      inputs[1] = inside(inputs[1], inputs[0].shape().name(static_cast<int>(ints[0])));
      break;
    case Op::pad:
      inputs[0] = masked(inputs[0], axes_padded_after(node), node.floats[0]);
      break;
    case Op::unwindow:
      inputs[0] = masked(inputs[0], static_cast<int>(ints[0]), 0);
      break;
    case Op::scatter_add: {
      inputs[1] = inside(inputs[1], inputs[0].shape().name(static_cast<int>(ints[0])));
      inputs[1] = masked(inputs[1], static_cast<int>(ints[0]), -1);
      break;
    }
    default:
      if (const Fold* fold = fold_of(node.op)) {
        std::vector<int> axes(ints.begin(), ints.end());
        inputs[0] = masked(inputs[0], axes, fold->start(inputs[0].dtype()));
      }
  }
  return inputs;
}

bool joins_named(const Node& node) {
  return !node.inputs.empty() &&
         std::ranges::any_of(node.inputs, [](const NodeRef& input) { return input->shape.is_named(); });
}

Result<std::vector<Tensor>> masked_roots(std::span<const Tensor> roots,
                                         std::span<const NodeRef* const> nodes) {
  std::vector<Tensor> result(roots.begin(), roots.end());
  std::unordered_map<const Node*, NodeRef> replaced;
  for (const NodeRef* place : nodes) {
    const NodeRef& node = *place;
    std::vector<Tensor> inputs;
    for (const NodeRef& input : node->inputs) {
      const auto found = replaced.find(input.get());
      inputs.emplace_back(found == replaced.end() ? input : found->second);
    }
    if (joins_named(*node)) inputs = masked_inputs(*node, std::move(inputs));
    bool changed = false;
    std::vector<NodeRef> refs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].ok()) return inputs[i].error();
      refs.push_back(inputs[i].node());
      changed = changed || refs.back() != node->inputs[i];
    }
    if (changed) replaced.emplace(node.get(), with_inputs(*node, std::move(refs)));
  }
  for (Tensor& root : result)
    if (const auto found = replaced.find(root.node().get()); found != replaced.end())
      root = Tensor(found->second);
  return result;
}

Result<std::vector<ProgramExtent>> extents_of(std::span<const NodeRef* const> nodes,
                                              std::span<const Tensor> ports) {
  std::vector<ProgramExtent> found;
  Result<> sound;
  std::unordered_map<std::string, std::size_t> places;
  const auto add = [&](const std::string& name, std::int64_t bound) {
    const auto [place, fresh] = places.emplace(name, found.size());
    if (fresh) return found.push_back({name, bound});
    ProgramExtent& known = found[place->second];
    if (known.bound == 0) known.bound = bound;
    if (known.bound != bound && bound != 0 && sound.ok())
      sound = make_error(ErrorCode::invalid_argument, text("extent '", name, "': found bounds ", known.bound,
                                                           " and ", bound, ", expected one"));
  };
  const auto add_axes = [&](const Shape& shape) {
    if (!shape.is_named()) return;
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const AxisPart& part : shape.parts(axis))
        if (!part.extent.empty()) add(part.extent, part.bound);
  };
  for (const Tensor& port : ports) add_axes(port.shape());
  for (const NodeRef* node : nodes) add_axes((*node)->shape);
  for (const NodeRef* node : nodes)
    if ((*node)->op == Op::input)
      if (const std::string name(extent_of_input((*node)->label)); !name.empty()) {
        const auto quotient = quotient_of(name);
        add(name, quotient ? quotient->sum.most() / quotient->by : 0);
      }
  // A run sets the terms of a sum or quotient, so the program needs them too.
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const SumTerm& term : terms_of(found[i].name)) add(term.extent, term.bound);
  IMPRINT_CHECK(sound);
  for (const ProgramExtent& extent : found)
    if (extent.bound == 0)
      return make_error(
          ErrorCode::invalid_argument,
          text("extent '", extent.name, "': found its value alone, expected an input with such an axis"));
  return found;
}

}  // namespace

Result<MaskedRoots> with_extent_masks(std::span<const Tensor> roots, std::span<const Tensor> ports) {
  MaskedRoots out{{roots.begin(), roots.end()}, {}};
  std::vector<const NodeRef*> nodes = reachable(roots);
  if (std::ranges::any_of(nodes, [](const NodeRef* node) { return (*node)->shape.is_named(); })) {
    IMPRINT_ASSIGN(out.roots, masked_roots(roots, nodes));
    nodes = reachable(out.roots);
  }
  IMPRINT_ASSIGN(out.extents, extents_of(nodes, ports));
  return out;
}

Tensor used_elements(const Tensor& tensor) {
  Tensor used;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (!tensor.shape().is_named(axis)) continue;
    const Tensor along = used_positions(iota(tensor.shape(), axis), tensor.shape().name(axis));
    used = is_empty(used) ? along : logical_and(used, along);
  }
  return used;
}

Tensor used_rows(const Tensor& rows) {
  return rows.ok() && rows.shape().is_named() ? masked(rows, 0, -1) : rows;
}

}  // namespace imprint::program
