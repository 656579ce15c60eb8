#include "compute/graph/passes/window_products.h"

#include <algorithm>
#include <utility>

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/tensor.h"

namespace imprint::graph {
namespace {

constexpr double kMostExtra = 2;  // multiply-adds of the product over windows, relative to the first

// A factor of an axis of the product's result: positions are multiplied by `stride` along that axis.
struct Factor {
  int axis = 0;
  std::int64_t extent = 1, stride = 1;
};
using Factors = std::vector<Factor>;  // of one axis, outermost first

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<std::vector<NodeIndex>>& consumers)
      : graph_(graph), consumers_(consumers) {}

  std::optional<WindowProduct> find(NodeIndex index, const FusionOptions& options) {
    found_.shape = graph_[index].shape;
    starts_.assign(at(found_.shape.rank()), 0);
    NodeIndex node = index;
    while (graph_[node].op == Op::slice || graph_[node].op == Op::unwindow) {
      if (node != index && consumers_[at(node)].size() != 1) return std::nullopt;
      if (!(graph_[node].op == Op::slice ? add_slice(graph_[node]) : add_windows(graph_[node])))
        return std::nullopt;
      node = graph_[node].inputs[0];
    }
    if (found_.axes.empty() || !take_product(node) || !places_follow() || !pays(options)) return std::nullopt;
    return found_;
  }

 private:
  WindowAxis* axis_at(int axis) {
    const auto found = std::ranges::find(found_.axes, axis, &WindowAxis::axis);
    return found == found_.axes.end() ? nullptr : &*found;
  }

  bool add_slice(const GraphNode& node) {
    for (int axis = 0; axis < node.shape.rank(); ++axis) {
      const std::int64_t start = node.ints[2 * at(axis)], step = node.ints[2 * at(axis) + 1];
      const bool whole = start == 0 && node.shape[axis] == graph_[node.inputs[0]].shape[axis];
      if (node.shape[axis] > 1 && step != 1) return false;
      if (!whole && (axis >= found_.shape.rank() || axis_at(axis))) return false;
      if (!whole) starts_[at(axis)] += start;
    }
    return true;
  }

  bool add_windows(const GraphNode& node) {
    WindowAxis windows{.axis = static_cast<int>(node.ints[0]),
                       .kernel = node.ints[1],
                       .stride = node.ints[2],
                       .dilation = node.ints[3],
                       .places = graph_[node.inputs[0]].shape[static_cast<int>(node.ints[0])]};
    if (windows.axis >= found_.shape.rank() || axis_at(windows.axis)) return false;
    if (windows.stride > 1 && windows.dilation > 1) return false;
    windows.first = std::exchange(starts_[at(windows.axis)], 0);
    windows.count = found_.shape[windows.axis];
    found_.axes.push_back(windows);
    return true;
  }

  // Through the views between the windows and the product, from the product up.
  bool take_product(NodeIndex node) {
    std::vector<NodeIndex> views;
    while (graph_[node].op == Op::reshape || graph_[node].op == Op::permute) {
      if (consumers_[at(node)].size() != 1) return false;
      views.push_back(node);
      node = graph_[node].inputs[0];
    }
    const GraphNode& product = graph_[node];
    if (product.op != Op::matmul || product.blocks > 0 || consumers_[at(node)].size() != 1) return false;
    found_.left = product.inputs[0];
    found_.right = product.inputs[1];
    found_.shares_left = repeats_over_batches(found_.left);
    product_ = node;
    std::vector<Factors> axes;
    for (int axis = 0; axis < product.shape.rank(); ++axis)
      axes.push_back(product.shape[axis] == 1 ? Factors{} : Factors{{axis, product.shape[axis], 1}});
    for (auto view = views.rbegin(); view != views.rend(); ++view)
      if (!follow(graph_[*view], axes)) return false;
    return take_factors(axes);
  }

  // Whether the left operand is one matrix for all batches.
  bool repeats_over_batches(NodeIndex left) const {
    const int batches = graph_[left].shape.rank() - 2;
    for (;; left = graph_[left].inputs[0]) {
      const GraphNode& node = graph_[left];
      if (node.op == Op::expand) {
        const std::span<const std::int64_t> source = graph_[node.inputs[0]].shape.extents();
        return std::ranges::all_of(source.first(at(batches)),
                                   [](std::int64_t extent) { return extent == 1; });
      }
      if (node.op != Op::permute) return false;
      for (int axis = 0; axis < batches; ++axis)
        if (node.ints[at(axis)] != axis) return false;
    }
  }

  static bool follow(const GraphNode& view, std::vector<Factors>& axes) {
    std::vector<Factors> result;
    if (view.op == Op::permute) {
      for (std::int64_t source : view.ints) result.push_back(axes[at(source)]);
      axes = std::move(result);
      return true;
    }
    Factors all;
    for (const Factors& axis : axes) all.insert(all.end(), axis.begin(), axis.end());
    std::size_t next = 0;
    for (std::int64_t extent : view.shape.extents()) {
      Factors own;
      while (extent > 1) {
        if (next == all.size()) return false;
        Factor& factor = all[next];
        if (extent % factor.extent == 0) {
          own.push_back(factor);
          extent /= factor.extent;
          ++next;
        } else if (factor.extent % extent == 0) {
          const std::int64_t rest = factor.extent / extent;
          own.push_back({factor.axis, extent, factor.stride * rest});
          factor.extent = rest;
          extent = 1;
        } else {
          return false;
        }
      }
      result.push_back(std::move(own));
    }
    axes = std::move(result);
    return true;
  }

  // axes: of what the innermost windows are added from. The last ones are the kernels', the first axes' last.
  bool take_factors(const std::vector<Factors>& axes) {
    const Shape& product = graph_[product_].shape;
    const int rank = found_.shape.rank(), rows = product.rank() - 2;
    std::vector<std::pair<Factor, int>> of_rows;
    Factors before;  // of all other axes, in order
    std::size_t next_place = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const Factors& own = axes[at(axis)];
      if (!axis_at(axis)) {
        std::int64_t extent = 1;
        for (const Factor& factor : own) extent *= factor.extent;
        if (extent != found_.shape[axis] || (next_place > 0 && extent > 1)) return false;
        before.insert(before.end(), own.begin(), own.end());
        continue;
      }
      ++next_place;
      places_.insert(places_.end(), own.begin(), own.end());
      if (own.size() > 1 || (own.size() == 1 && own[0].axis != rows + 1)) return false;
    }
    for (std::size_t i = 0; i < found_.axes.size(); ++i) {
      const Factors& own = axes[at(rank) + i];
      if (own.size() > 1 || (own.size() == 1 && own[0].axis != rows)) return false;
      if (own.size() == 1) of_rows.emplace_back(own[0], static_cast<int>(i));
    }
    // Batches in the product's order, then the channels.
    int last = -1;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool channels = before[i].axis == rows;
      if (channels ? i + 1 != before.size()
                   : before[i].axis > rows || before[i].axis <= last ||
                         before[i].extent != product[before[i].axis])
        return false;
      last = before[i].axis;
      if (!channels) continue;
      of_rows.emplace_back(before[i], -1);
      found_.channels = before[i].extent;
    }
    order_rows(std::move(of_rows));
    return true;
  }

  void order_rows(std::vector<std::pair<Factor, int>> of_rows) {
    std::ranges::stable_sort(of_rows, std::greater(), [](const auto& entry) { return entry.first.stride; });
    std::vector<std::size_t> order;  // ascending by axis
    for (std::size_t i = 0; i < found_.axes.size(); ++i) order.push_back(i);
    std::ranges::sort(order, {}, [&](std::size_t i) { return found_.axes[i].axis; });
    std::vector<int> position(order.size());
    std::vector<WindowAxis> axes;
    for (std::size_t i = 0; i < order.size(); ++i) {
      position[order[i]] = static_cast<int>(i);
      axes.push_back(found_.axes[order[i]]);
    }
    found_.axes = std::move(axes);
    for (const auto& [factor, kind] : of_rows) found_.rows.push_back(kind < 0 ? -1 : position[at(kind)]);
    // Axes of one element have no factor.
    for (int i = -1; i < static_cast<int>(position.size()); ++i)
      if (std::ranges::find(found_.rows, i) == found_.rows.end()) found_.rows.push_back(i);
  }

  // Whether the columns of the product are the places, in order, and nothing was cut but places.
  bool places_follow() const {
    for (std::size_t i = 1; i < places_.size(); ++i)
      if (places_[i - 1].stride <= places_[i].stride) return false;
    std::int64_t kernels = found_.channels, places = 1;
    for (const WindowAxis& one : found_.axes) {
      kernels *= one.kernel;
      places *= one.places;
    }
    const Shape& product = graph_[product_].shape;
    return std::ranges::all_of(starts_, [](std::int64_t start) { return start == 0; }) &&
           product[product.rank() - 2] == kernels && product[product.rank() - 1] == places;
  }

  bool pays(const FusionOptions& options) const {
    const Shape& first = graph_[product_].shape;
    const Shape& left = graph_[found_.left].shape;
    const int batches = first.rank() - 2, axes = static_cast<int>(found_.axes.size());
    std::int64_t rows = found_.channels, terms = left[left.rank() - 1], columns = 1;
    bool strides = false;
    for (const WindowAxis& one : found_.axes) {
      const std::int64_t from = one.first / one.stride, to = (one.first + one.count - 1) / one.stride;
      rows *= one.stride;
      terms *= (one.kernel + one.stride - 1) / one.stride;
      columns *= to - from + 1;
      strides = strides || one.stride > 1;
    }
    const int rank = std::max(batches + 2 + (strides ? 2 : 1) * axes, batches + 1 + 2 * axes);
    const double before = static_cast<double>(first[batches]) * static_cast<double>(first[batches + 1]) *
                          static_cast<double>(left[left.rank() - 1]),
                 after =
                     static_cast<double>(rows) * static_cast<double>(terms) * static_cast<double>(columns);
    std::int64_t batch = 1;
    for (int axis = 0; axis < batches; ++axis) batch *= first[axis];
    return rank <= Shape::kMaxRank && rows >= 16 && columns >= 16 && after <= kMostExtra * before &&
           after * static_cast<double>(batch) >= static_cast<double>(options.product_operations);
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeIndex>>& consumers_;
  WindowProduct found_;
  NodeIndex product_ = -1;
  std::vector<std::int64_t> starts_;  // per axis of the sums: cut, above its windows
  Factors places_;
};

Shape batches_of(const Tensor& operand) {
  return Shape(operand.shape().extents().first(at(operand.rank() - 2)));
}

Axes axes_from(int first, int count) {
  Axes axes;
  for (int i = 0; i < count; ++i) axes.push_back(first + i);
  return axes;
}

void append(Axes& axes, const Axes& more) { axes.insert(axes.end(), more.begin(), more.end()); }

std::int64_t windows_of(const WindowAxis& one) { return (one.kernel + one.stride - 1) / one.stride; }
std::int64_t first_of(const WindowAxis& one) { return one.first / one.stride; }
std::int64_t count_of(const WindowAxis& one) {
  return (one.first + one.count - 1) / one.stride - first_of(one) + 1;
}

// [batches..., channels * remainders, mirrored elements * terms].
Tensor mirrored(const WindowProduct& product, const Tensor& left) {
  const int batches = left.rank() - 2, count = static_cast<int>(product.axes.size());
  Shape split = batches_of(left);
  for (int kind : product.rows) split.append(kind < 0 ? product.channels : product.axes[at(kind)].kernel);
  split.append(left.extent(-1));
  Axes order = axes_from(0, batches);
  const auto position = [&](int kind) {
    return batches + static_cast<int>(std::ranges::find(product.rows, kind) - product.rows.begin());
  };
  order.push_back(position(-1));
  for (int i = 0; i < count; ++i) order.push_back(position(i));
  order.push_back(batches + count + 1);
  Tensor kernel = permute(reshape(left, split), order);  // [batches..., channels, elements..., terms]
  Shape flat = batches_of(left);
  std::int64_t rows = product.channels, terms = left.extent(-1);
  bool strides = false;
  for (int i = 0; i < count; ++i) {
    const WindowAxis& one = product.axes[at(i)];
    strides = strides || one.stride > 1;
    rows *= one.stride;
    terms *= windows_of(one);
    std::vector<std::pair<std::int64_t, std::int64_t>> more(at(kernel.rank()));
    more[at(batches + 1 + i)].second = windows_of(one) * one.stride - one.kernel;
    if (more[at(batches + 1 + i)].second > 0) kernel = pad(kernel, more, 0);
  }
  if (strides) {
    Shape parts = batches_of(left);
    parts.append(product.channels);
    Axes remainders, elements;
    for (int i = 0; i < count; ++i) {
      parts.append(windows_of(product.axes[at(i)]));
      parts.append(product.axes[at(i)].stride);
      elements.push_back(batches + 1 + 2 * i);
      remainders.push_back(batches + 2 + 2 * i);
    }
    parts.append(left.extent(-1));
    Axes apart = axes_from(0, batches + 1);
    append(apart, remainders);
    append(apart, elements);
    apart.push_back(batches + 1 + 2 * count);
    kernel = permute(reshape(kernel, parts), apart);
  }
  for (int i = 0; i < count; ++i) kernel = flip(kernel, kernel.rank() - 1 - count + i);
  flat.append(rows);
  flat.append(terms);
  return reshape(kernel, flat);
}

// [batches..., elements * terms, places].
Tensor windows_over(const WindowProduct& product, const Tensor& right) {
  const int batches = right.rank() - 2, count = static_cast<int>(product.axes.size());
  Shape split = batches_of(right);
  split.append(right.extent(-2));
  for (const WindowAxis& one : product.axes) split.append(one.places);
  Tensor seen = reshape(right, split);
  std::vector<std::pair<std::int64_t, std::int64_t>> sides(at(seen.rank()));
  Shape flat = batches_of(right);
  std::int64_t terms = right.extent(-2), places = 1;
  for (int i = 0; i < count; ++i) {
    const WindowAxis& one = product.axes[at(i)];
    const int axis = batches + 1 + i;
    const std::int64_t before = (windows_of(one) - 1) * one.dilation - first_of(one),
                       after = first_of(one) + count_of(one) - one.places;
    const std::int64_t from = std::max<std::int64_t>(0, -before),
                       to = one.places - std::max<std::int64_t>(0, -after);
    if (from > 0 || to < one.places) seen = narrow(seen, axis, from, to - from);
    sides[at(axis)] = {std::max<std::int64_t>(0, before), std::max<std::int64_t>(0, after)};
    terms *= windows_of(one);
    places *= count_of(one);
  }
  seen = pad(seen, sides, 0);
  Axes order = axes_from(0, batches);
  for (int i = 0; i < count; ++i) {
    const WindowAxis& one = product.axes[at(i)];
    seen = window(seen, batches + 1 + i, windows_of(one), 1, one.dilation);
    order.push_back(batches + 1 + count + i);
  }
  append(order, axes_from(batches, 1 + count));
  flat.append(terms);
  flat.append(places);
  return reshape(permute(seen, order), flat);
}

}  // namespace

std::optional<WindowProduct> find_window_product(const Graph& graph,
                                                 const std::vector<std::vector<NodeIndex>>& consumers,
                                                 NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.element_count() == 0 || (node.op != Op::unwindow && node.op != Op::slice)) return std::nullopt;
  if (node.op == Op::slice && graph[node.inputs[0]].op != Op::unwindow) return std::nullopt;
  // Its only reader is part of the sums, or cuts them.
  if (node.op == Op::unwindow && consumers[at(index)].size() == 1) {
    const Op reader = graph[consumers[at(index)][0]].op;
    if (reader == Op::unwindow || reader == Op::slice) return std::nullopt;
  }
  return Finder(graph, consumers).find(index, options);
}

Tensor sums_over_windows(const WindowProduct& product, const Tensor& left, const Tensor& right) {
  const int batches = right.rank() - 2, count = static_cast<int>(product.axes.size());
  Tensor kernel = left;
  for (int axis = 0; product.shares_left && axis < batches; ++axis) kernel = narrow(kernel, axis, 0, 1);
  const Tensor sums = matmul(mirrored(product, kernel), windows_over(product, right));
  if (std::ranges::all_of(product.axes, [](const WindowAxis& one) { return one.stride == 1; }))
    return reshape(sums, product.shape);
  // Places of each remainder, side by side.
  Shape parts = batches_of(right), joined = batches_of(right);
  parts.append(product.channels);
  joined.append(product.channels);
  Axes order = axes_from(0, batches + 1);
  for (const WindowAxis& one : product.axes) parts.append(one.stride);
  for (int i = 0; i < count; ++i) {
    const WindowAxis& one = product.axes[at(i)];
    parts.append(count_of(one));
    joined.append(count_of(one) * one.stride);
    order.push_back(batches + 1 + count + i);
    order.push_back(batches + 1 + i);
  }
  Tensor result = reshape(permute(reshape(sums, parts), order), joined);
  for (int i = 0; i < count; ++i) {
    const WindowAxis& one = product.axes[at(i)];
    result = narrow(result, batches + 1 + i, one.first - first_of(one) * one.stride, one.count);
  }
  return reshape(result, product.shape);
}

}  // namespace imprint::graph
