#include <algorithm>

#include "compute/graph/gradients/derivatives.h"
#include "compute/tensor/build.h"
#include "compute/tensor/extent_sums.h"

namespace imprint::graph {

using namespace tensor;

namespace {

// ---- helpers ----

using Amounts = std::vector<std::pair<std::int64_t, std::int64_t>>;

Tensor pad_axis(const Tensor& x, int axis, std::int64_t before, std::int64_t after, double value = 0) {
  Amounts amounts(static_cast<std::size_t>(x.rank()), {0, 0});
  amounts[static_cast<std::size_t>(axis)] = {before, after};
  return pad(x, amounts, value);
}

Tensor permuted_back(const Tensor& g, const Node& node) {
  Axes inverse(node.ints.size());
  for (std::size_t axis = 0; axis < node.ints.size(); ++axis)
    inverse[static_cast<std::size_t>(node.ints[axis])] = static_cast<int>(axis);
  return permute(g, inverse);
}

Tensor summed_to(const Tensor& g, const Shape& source) {
  Axes repeated;
  for (int axis = 0; axis < source.rank(); ++axis)
    if (source[axis] != g.extent(axis)) repeated.push_back(axis);
  return sum(g, repeated, true);
}

// Inserts `step - 1` zeros after each element of the axis.
Tensor spread_axis(const Tensor& g, int axis, std::int64_t step) {
  Shape spread = g.shape();
  spread[axis] *= step;
  std::int64_t inner = 1;
  for (int k = axis + 1; k < g.rank(); ++k) inner *= g.extent(k);
  std::int64_t outer = 1;
  for (int k = 0; k <= axis; ++k) outer *= g.extent(k);
  return reshape(pad_axis(reshape(g, {outer, 1, inner}), 1, 0, step - 1), spread);
}

// The gradient of a slice is placed at the slice's position, with zeros elsewhere.
Tensor placed(const Tensor& gradient, const Node& node) {
  const Shape& source = node.inputs[0]->shape;
  if (node.shape.element_count() == 0) return zeros(source);
  Tensor g = gradient;
  for (int axis = 0; axis < source.rank(); ++axis) {
    std::int64_t start = node.ints[2 * static_cast<std::size_t>(axis)],
                 step = node.ints[2 * static_cast<std::size_t>(axis) + 1];
    const std::int64_t count = node.shape[axis];
    if (step < 0) {
      g = flip(g, axis);
      start += (count - 1) * step;
      step = -step;
    }
    if (step > 1 && count > 1) {
      g = spread_axis(g, axis, step);
      g = narrow(g, axis, 0, std::min(g.extent(axis), source[axis] - start));
    }
    g = pad_axis(g, axis, start, source[axis] - start - g.extent(axis));
  }
  return g;
}

Tensor inside_of_pad(const Tensor& gradient, const Node& node) {
  Tensor g = gradient;
  for (int axis = 0; axis < g.rank(); ++axis) {
    const std::size_t sides = 2 * static_cast<std::size_t>(axis);
    g = trimmed(g, axis, node.ints[sides], node.ints[sides + 1]);
  }
  return g;
}

// Shifts elements of the last axis by `distance` towards its end (or start), and fills the gap with ones.
Tensor shifted(const Tensor& rows, std::int64_t distance, bool to_end) {
  const std::int64_t kept = rows.extent(1) - distance;
  return to_end ? pad_axis(narrow(rows, 1, 0, kept), 1, distance, 0, 1)
                : pad_axis(narrow(rows, 1, distance, kept), 1, 0, distance, 1);
}

// The product of all elements before (or after) each element of a row. A scan by doubling distances; source:
// Hillis, Steele, Data Parallel Algorithms, 1986.
Tensor product_of_others(const Tensor& rows, bool before) {
  const std::int64_t count = rows.extent(1);
  Tensor product = shifted(rows, 1, before);
  for (std::int64_t distance = 1; distance < count; distance *= 2)
    product = product * shifted(product, distance, before);
  return product;
}

}  // namespace

// ---- elementwise ----

void derivatives::uncast(Adjoint& adjoint) { adjoint.give(0, adjoint.gradient()); }

void derivatives::unchoose(Adjoint& adjoint) {
  const Tensor condition = adjoint.input(0);
  if (adjoint.needs(1)) adjoint.give(1, where(condition, adjoint.gradient(), 0.0f));
  if (adjoint.needs(2)) adjoint.give(2, where(condition, 0.0f, adjoint.gradient()));
}

// ---- views and selects ----

void derivatives::unreshape(Adjoint& adjoint) {
  adjoint.give(0, reshape(adjoint.gradient(), adjoint.input(0).shape()));
}

void derivatives::unpermute(Adjoint& adjoint) {
  adjoint.give(0, permuted_back(adjoint.gradient(), adjoint.node()));
}

void derivatives::unexpand(Adjoint& adjoint) {
  adjoint.give(0, summed_to(adjoint.gradient(), adjoint.input(0).shape()));
}

void derivatives::unslice(Adjoint& adjoint) { adjoint.give(0, placed(adjoint.gradient(), adjoint.node())); }

void derivatives::unview_windows(Adjoint& adjoint) {
  std::vector<std::int64_t> ints = adjoint.node().ints;
  ints.push_back(adjoint.input(0).extent(adjoint.axis()));
  // The shape: several extents of an image have as many windows.
  adjoint.give(0, make(Op::unwindow, {adjoint.gradient()},
                       {.ints = std::move(ints), .shape = adjoint.input(0).shape()}));
}

void derivatives::rewindow(Adjoint& adjoint) {
  const std::vector<std::int64_t>& ints = adjoint.node().ints;
  adjoint.give(0, make(Op::window, {adjoint.gradient()}, {.ints = {ints.begin(), ints.begin() + 4}}));
}

void derivatives::unpad(Adjoint& adjoint) {
  adjoint.give(0, inside_of_pad(adjoint.gradient(), adjoint.node()));
}

void derivatives::unconcat(Adjoint& adjoint) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i < adjoint.input_count(); ++i) {
    const std::int64_t extent = adjoint.node().inputs[i]->shape[adjoint.axis()];
    if (adjoint.needs(i)) adjoint.give(i, narrow(adjoint.gradient(), adjoint.axis(), start, extent));
    start += extent;
  }
}

void derivatives::ungather(Adjoint& adjoint) {
  adjoint.give(
      0, scatter_add(zeros(adjoint.input(0).shape()), adjoint.axis(), adjoint.input(1), adjoint.gradient()));
}

// take reads whole slabs of the axis. Its indices, flattened to one axis, say where each slab of the gradient
// goes.
void derivatives::untake(Adjoint& adjoint) {
  const Shape& data = adjoint.node().inputs[0]->shape;
  Shape slabs = data;
  slabs[adjoint.axis()] = adjoint.input(1).shape().element_count();
  Shape aligned;
  for (int axis = 0; axis < data.rank(); ++axis) aligned.append(axis == adjoint.axis() ? slabs[axis] : 1);
  const Tensor indices = expand(reshape(adjoint.input(1), aligned), slabs);
  adjoint.give(0, scatter_add(zeros(data), adjoint.axis(), indices, reshape(adjoint.gradient(), slabs)));
}

// ---- reductions and contraction ----

void derivatives::unreduce_sum(Adjoint& adjoint) {
  adjoint.give(0, expand(adjoint.gradient(), adjoint.input(0).shape()));
}

// Equal parts go to all elements that attain the extreme.
void derivatives::unreduce_extreme(Adjoint& adjoint) {
  const Tensor x = adjoint.input(0);
  const Tensor attained = equal(x, expand(adjoint.output(), x.shape()));
  const Axes axes(adjoint.node().ints.begin(), adjoint.node().ints.end());
  const Tensor share = adjoint.gradient() / sum(cast(attained, DType::float32), axes, true);
  adjoint.give(0, where(attained, expand(share, x.shape()), 0.0f));
}

// The product of the other elements, without dividing by this element, which may be zero.
void derivatives::unreduce_prod(Adjoint& adjoint) {
  const Tensor x = adjoint.input(0);
  if (x.shape().element_count() == 0) return adjoint.give(0, zeros(x.shape()));
  Axes order, inverse(static_cast<std::size_t>(x.rank()));
  Shape moved;
  std::int64_t folded = 1;
  const std::vector<std::int64_t>& axes = adjoint.node().ints;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) order.push_back(axis);
  for (std::int64_t axis : axes) {
    order.push_back(static_cast<int>(axis));
    folded *= x.extent(static_cast<int>(axis));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    moved.append(x.extent(order[i]));
  }
  const Tensor rows = reshape(permute(x, order), {-1, folded});
  const Tensor others = product_of_others(rows, true) * product_of_others(rows, false);
  adjoint.give(0, expand(adjoint.gradient(), x.shape()) * permute(reshape(others, moved), inverse));
}

void derivatives::uncontract(Adjoint& adjoint) {
  // Gradients are float32; the contraction uses the operands' width.
  const Tensor g = cast(adjoint.gradient(), adjoint.input(0).dtype());
  if (adjoint.needs(0)) adjoint.give(0, matmul(g, transpose(adjoint.input(1))));
  if (adjoint.needs(1)) adjoint.give(1, matmul(transpose(adjoint.input(0)), g));
}

// ---- scans and scatters ----

void derivatives::uncumsum(Adjoint& adjoint) {
  const std::vector<std::int64_t>& ints = adjoint.node().ints;
  adjoint.give(0, cumsum(adjoint.gradient(), adjoint.axis(), ints[1] != 0, ints[2] == 0));
}

// The gradient runs through the same recurrence backwards, with the factor of the following step: a factor
// scales what came before it.
void derivatives::unrecur(Adjoint& adjoint) {
  const int axis = adjoint.axis();
  const bool reverse = adjoint.node().ints[2] != 0;
  const std::int64_t length = adjoint.output().extent(axis);
  if (length == 0) {
    adjoint.give(0, adjoint.gradient());
    return adjoint.give(1, adjoint.gradient());
  }
  const auto shifted = [&](const Tensor& x, bool forward) {  // by one along the axis; a zero enters
    std::vector<std::pair<std::int64_t, std::int64_t>> sides(static_cast<std::size_t>(x.rank()));
    sides[static_cast<std::size_t>(axis)] =
        forward ? std::pair<std::int64_t, std::int64_t>{1, 0} : std::pair<std::int64_t, std::int64_t>{0, 1};
    return pad(narrow(x, axis, forward ? 0 : 1, length - 1), sides);
  };
  const Tensor through =
      linear_recurrence(adjoint.gradient(), shifted(adjoint.input(1), reverse), axis, !reverse);
  if (adjoint.needs(0)) adjoint.give(0, through);
  if (adjoint.needs(1)) adjoint.give(1, through * shifted(adjoint.output(), !reverse));
}

void derivatives::unscatter(Adjoint& adjoint) {
  if (adjoint.needs(0)) adjoint.give(0, adjoint.gradient());
  if (adjoint.needs(2)) adjoint.give(2, gather(adjoint.gradient(), adjoint.axis(), adjoint.input(1)));
}

}  // namespace imprint::graph
