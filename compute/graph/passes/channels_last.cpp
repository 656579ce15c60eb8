#include "compute/graph/passes/channels_last.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "compute/base/number_format.h"
#include "compute/graph/passes/narrow_constants.h"
#include "compute/graph/passes/reshape_groups.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/request_queries.h"

namespace imprint::graph {
namespace {

using AxisOrder = std::vector<int>;  // the axis of a value at each position of an arranged one

AxisOrder unchanged(int rank) {
  AxisOrder order(at(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}
bool is_unchanged(const AxisOrder& order) { return std::ranges::is_sorted(order); }
std::int64_t position_of(const AxisOrder& order, std::int64_t axis) {
  return std::ranges::find(order, axis) - order.begin();
}
Shape shape_in_order(const Shape& shape, const AxisOrder& order) {
  Shape result;
  for (int axis : order) result.append(shape[axis]);
  return result;
}

// A value in the new graph, with its axes in some order: as float16, as its own type, or as both.
struct Arranged {
  AxisOrder order;
  NodeIndex full = -1, half = -1;
  NodeIndex plain = -1;  // in the axes' own order, once asked for
};

class Arranger {
 public:
  Arranger(Graph& graph, FusionRequest& request, const FusionOptions& options)
      : graph_(graph),
        request_(request),
        options_(options),
        learns_(learns(graph, request)),
        half_values_(options.half_values && !learns_),
        values_(graph.nodes.size()) {}

  std::int64_t run() {
    find_products();
    const std::int64_t found = std::ranges::count(chosen_, 1);
    if (found == 0) return 0;
    find_halves();
    if (half_values_) find_joined();
    for (NodeIndex i = 0; i < graph_.size(); ++i) arrange(i);
    std::vector<NodeIndex> new_index(graph_.nodes.size(), -1);
    for (NodeIndex root : graph_.roots) new_index[at(root)] = plain(root);
    for (const GraphOutput& output : request_.outputs) new_index[at(output.node)] = plain(output.node);
    for (const GraphUpdate& update : request_.updates)
      for (const NodeIndex node : {update.value, update.rows, update.own_rows})
        if (node >= 0) new_index[at(node)] = plain(node);
    for (NodeIndex input : request_.inputs)
      if (input >= 0) new_index[at(input)] = plain(input);
    leave_out_unread(new_index);
    graph_.nodes = std::move(nodes_);
    for (NodeIndex& root : graph_.roots) root = new_index[at(root)];
    request_.renumber(new_index);
    return found;
  }

 private:
  // ---- what to arrange ----

  // The one matrix that all products of a batch have on the left; -1: they have several.
  NodeIndex left_matrix(const GraphNode& product) const {
    NodeIndex left = product.inputs[0];
    while (graph_[left].op == Op::expand) left = graph_[left].inputs[0];
    for (int axis = 0; axis < graph_[left].shape.rank() - 2; ++axis)
      if (graph_[left].shape[axis] != 1) return -1;
    return left;
  }

  // The graph's own memory. In programs that learn also what pads it: the kernel of a gradient with strides.
  std::vector<std::uint8_t> find_weights() const {
    std::vector<std::uint8_t> result = graph_.own_memory();
    for (NodeIndex i = 0; i < graph_.size() && learns_; ++i)
      if (const GraphNode& node = graph_[i]; node.op == Op::pad || node.kind() == OpKind::view)
        result[at(i)] = result[at(node.inputs[0])];
    return result;
  }

  // Whether the product reads windows of an image of whole eights of channels: all of a program's readers of
  // such an image, which are gradients too, then load eight at a time.
  bool has_windows_of_eights(NodeIndex right) const {
    if (graph_[right].op != Op::reshape || graph_[graph_[right].inputs[0]].op != Op::permute) return false;
    const GraphNode& turned = graph_[graph_[right].inputs[0]];
    NodeIndex node = turned.inputs[0];
    while (graph_[node].kind() == OpKind::view && graph_[node].op != Op::window)
      node = graph_[node].inputs[0];
    return graph_[node].op == Op::window && turned.shape.rank() >= 3 &&
           turned.shape[turned.shape.rank() - 3] % 8 == 0;
  }

  // Weights on the left and computed columns on the right: a convolution.
  void find_products() {
    const std::vector<std::uint8_t> is_weight = find_weights();
    chosen_.assign(graph_.nodes.size(), 0);
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const GraphNode& node = graph_[i];
      if (node.op != Op::matmul || node.blocks > 0 || !wants_tiles(graph_, i, options_)) continue;
      const NodeIndex left = left_matrix(node);
      chosen_[at(i)] = left >= 0 && is_weight[at(left)] && !is_weight[at(node.inputs[1])] &&
                       graph_[left].dtype == DType::float32 &&
                       graph_[node.inputs[1]].dtype == DType::float32 &&
                       node.shape[node.shape.rank() - 2] % (learns_ ? 8 : 4) == 0 &&
                       (!learns_ || has_windows_of_eights(node.inputs[1]));
    }
  }

  static bool passes_elements(const GraphNode& node) {
    return node.kind() == OpKind::view || node.op == Op::pad || node.op == Op::concat;
  }

  // Values that are rounded: those that a product reads through views, and with half_values those that are
  // read through windows, which have memory in any case.
  void find_halves() {
    std::vector<std::uint8_t> feeds(graph_.nodes.size(), 0);
    rounds_.assign(graph_.nodes.size(), 0);
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      const GraphNode& node = graph_[i];
      const bool windows = node.op == Op::pad || node.op == Op::window;
      if (chosen_[at(i)]) feeds[at(node.inputs[1])] = 1;
      if (passes_elements(node) && (feeds[at(i)] || (windows && half_values_)))
        for (NodeIndex input : node.inputs) feeds[at(input)] = 1;
      rounds_[at(i)] = feeds[at(i)] && node.dtype == DType::float32 && !passes_elements(node) &&
                       node.op != Op::constant && node.op != Op::full;
    }
  }

  // With half_values: of two convolutions whose results are joined, such as a shortcut's and the last one of
  // its block, the one that waits for fewer convolutions stores its result, rounded, and the other's kernel
  // reads it. Two bare products may be exact parts of one, of whole numbers: they stay.
  void find_joined() {
    std::vector<std::int32_t> depth(graph_.nodes.size(), 0);
    joined_.assign(graph_.nodes.size(), 0);
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const GraphNode& node = graph_[i];
      for (NodeIndex input : node.inputs) depth[at(i)] = std::max(depth[at(i)], depth[at(input)]);
      depth[at(i)] += chosen_[at(i)];
      if (node.kind() != OpKind::elementwise || node.inputs.size() != 2) continue;
      const NodeIndex first = product_behind(node.inputs[0]), second = product_behind(node.inputs[1]);
      if (first < 0 || second < 0 || first == second) continue;
      NodeIndex stored = node.inputs[depth[at(second)] < depth[at(first)] ? 1 : 0];
      while (passes_elements(graph_[stored])) stored = graph_[stored].inputs[0];
      const bool is_bare =
          graph_.without_views(node.inputs[0]) == first && graph_.without_views(node.inputs[1]) == second;
      if (is_bare || is_result(request_, stored)) continue;
      rounds_[at(stored)] = joined_[at(stored)] = 1;
    }
  }

  // The convolution whose result the value is computed from in its kernel, one element from one; -1: none.
  NodeIndex product_behind(NodeIndex value) const {
    while (value >= 0 && !chosen_[at(value)]) {
      const GraphNode& node = graph_[value];
      if (node.dtype != DType::float32 || rounds_[at(value)]) return -1;
      if (node.op != Op::reshape && node.op != Op::permute && node.kind() != OpKind::elementwise) return -1;
      NodeIndex source = -1;
      for (NodeIndex input : node.inputs) {
        if (graph_[graph_.without_views(input)].kind() == OpKind::leaf ||
            graph_[graph_.without_views(input)].op == Op::full)
          continue;
        if (source >= 0) return -1;
        source = input;
      }
      value = source;
    }
    return value;
  }

  // ---- nodes of the new graph ----

  NodeIndex add(GraphNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }
  NodeIndex made(Op op, DType dtype, Shape shape, std::vector<NodeIndex> inputs,
                 std::vector<std::int64_t> ints, const NodeRef& source) {
    return add({op, dtype, std::move(shape), std::move(inputs), std::move(ints), {}, source});
  }
  NodeIndex permuted(NodeIndex index, const AxisOrder& order) {
    if (is_unchanged(order)) return index;
    const GraphNode& node = nodes_[at(index)];
    if (node.op == Op::full) {
      GraphNode literal = node;
      literal.shape = shape_in_order(node.shape, order);
      return add(std::move(literal));
    }
    return made(Op::permute, node.dtype, shape_in_order(node.shape, order), {index},
                {order.begin(), order.end()}, node.source);
  }
  NodeIndex cast(NodeIndex index, DType dtype) {
    const GraphNode& node = nodes_[at(index)];
    return made(Op::cast, dtype, node.shape, {index}, {}, node.source);
  }

  NodeIndex full(NodeIndex old) {
    Arranged& value = values_[at(old)];
    if (value.full < 0) value.full = cast(value.half, graph_[old].dtype);
    return value.full;
  }
  // The value's axes in the wanted order, as its own type or as float16.
  NodeIndex arranged(NodeIndex old, const AxisOrder& wanted, bool as_half = false) {
    const bool has_half = as_half && values_[at(old)].half >= 0;
    const NodeIndex index = has_half ? values_[at(old)].half : full(old);
    const AxisOrder own = values_[at(old)].order;
    if (!is_unchanged(wanted) && is_unchanged(own) && own.size() > 1)
      if (const NodeIndex constant = arranged_constant(old, wanted); constant >= 0) return constant;
    AxisOrder order;
    for (int axis : wanted) order.push_back(static_cast<int>(position_of(own, axis)));
    return permuted(as_half && !has_half ? cast(index, DType::float16) : index, order);
  }
  // Constants that are repeated along axes, such as the kernels of a depthwise convolution; else -1. Channels
  // are neighbours in memory, wherever their axis is.
  NodeIndex arranged_constant(NodeIndex old, const AxisOrder& wanted) {
    constexpr int kChannels = 1;
    const NodeIndex repeated = graph_[old].op == Op::expand ? graph_[old].inputs[0] : old;
    const Shape& shape = graph_[repeated].shape;
    AxisOrder stored;
    for (int axis : wanted)
      if (axis != kChannels) stored.push_back(axis);
    stored.push_back(kChannels);
    std::optional<std::vector<float>> elements = constant_elements(graph_, repeated, stored);
    if (!elements) return -1;
    const NodeRef& source = graph_[old].source;
    AxisOrder order;
    for (int axis : wanted) order.push_back(static_cast<int>(position_of(stored, axis)));
    const NodeIndex constant =
        permuted(add(constant_node(*elements, shape_in_order(shape, stored), source)), order);
    if (repeated == old) return constant;
    return made(Op::expand, DType::float32, shape_in_order(graph_[old].shape, wanted), {constant}, {},
                source);
  }
  NodeIndex plain(NodeIndex old) {
    if (values_[at(old)].plain < 0)
      values_[at(old)].plain = arranged(old, unchanged(graph_[old].shape.rank()));
    return values_[at(old)].plain;
  }

  // ---- nodes of the old one ----

  void arrange(NodeIndex i) {
    const GraphNode& node = graph_[i];
    if (chosen_[at(i)]) return arrange_product(i);
    if (node.op == Op::concat) return arrange_concat(i);
    if (passes_elements(node)) return arrange_view(i);
    const AxisOrder order = usual_order(node);
    if (node.kind() == OpKind::elementwise) {
      GraphNode copy = node;
      copy.shape = shape_in_order(node.shape, order);
      for (NodeIndex& input : copy.inputs) input = arranged(input, order);
      return keep(i, order, add(std::move(copy)));
    }
    if (tensor::is_plain_fold(node.op) && node.blocks == 0) {
      GraphNode copy = node;
      copy.shape = shape_in_order(node.shape, order);
      copy.inputs[0] = arranged(node.inputs[0], order);
      for (std::int64_t& axis : copy.ints) axis = position_of(order, axis);
      std::ranges::sort(copy.ints);
      return keep(i, order, add(std::move(copy)));
    }
    GraphNode copy = node;
    for (NodeIndex& input : copy.inputs) input = plain(input);
    keep(i, unchanged(node.shape.rank()), add(std::move(copy)));
  }

  // That of the first input which is arranged.
  AxisOrder usual_order(const GraphNode& node) const {
    for (NodeIndex input : node.inputs)
      if (const AxisOrder& order = values_[at(input)].order;
          static_cast<int>(order.size()) == node.shape.rank() && !is_unchanged(order))
        return order;
    return unchanged(node.shape.rank());
  }

  void keep(NodeIndex old, AxisOrder order, NodeIndex index) {
    Arranged& value = values_[at(old)];
    value.order = std::move(order);
    value.full = index;
    if (!rounds_[at(old)]) return;
    // An image that nothing has arranged yet.
    const Shape& shape = graph_[old].shape;
    if (is_unchanged(value.order) && shape.rank() >= 3 && shape[1] % 8 == 0) {
      value.plain = index;
      std::rotate(value.order.begin() + 1, value.order.begin() + 2, value.order.end());
      value.full = index = permuted(index, value.order);
    }
    value.half = cast(index, DType::float16);
    nodes_[at(value.half)].stays_tiled = !joined_.empty() && joined_[at(old)] != 0;  // has memory
    const bool is_program_memory = graph_[old].kind() == OpKind::leaf;
    if (half_values_ && !is_program_memory) value.full = value.plain = -1;
  }

  // make: the same view of an arranged input.
  template <class Make>
  void keep_view(NodeIndex old, AxisOrder order, const Arranged& input, bool may_be_half, const Make& make) {
    Arranged& value = values_[at(old)];
    value.order = std::move(order);
    if (may_be_half && input.half >= 0) value.half = make(input.half);
    if (value.half < 0 || (!half_values_ && input.full >= 0)) value.full = make(full(graph_[old].inputs[0]));
  }

  void arrange_view(NodeIndex i) {
    const GraphNode& node = graph_[i];
    const Arranged input = values_[at(node.inputs[0])];
    if (node.op == Op::reshape) return arrange_reshape(i, input);
    AxisOrder order = input.order;
    // The result of another product, such as a gradient of weights, has its axes in the order of its reader.
    const bool is_arranged = !learns_ || !is_unchanged(input.order) || input.half >= 0;
    if (node.op == Op::permute && is_arranged) {
      for (int& axis : order) axis = static_cast<int>(std::ranges::find(node.ints, axis) - node.ints.begin());
      return keep_view(i, order, input, true, [](NodeIndex index) { return index; });
    }
    GraphNode copy = node;
    if (node.op == Op::window) {
      copy.ints[0] = position_of(order, node.ints[0]);
      order.push_back(node.shape.rank() - 1);
    } else if (node.op == Op::slice || node.op == Op::pad) {
      for (std::size_t p = 0; p < order.size(); ++p)
        for (std::size_t part : {0u, 1u}) copy.ints[2 * p + part] = node.ints[2 * at(order[p]) + part];
    }
    copy.shape = shape_in_order(node.shape, order);
    const bool exact = node.op != Op::pad || half_values_ || is_half(node.floats[0]);
    keep_view(i, order, input, exact, [&](NodeIndex index) {
      copy.inputs = {index};
      copy.dtype = nodes_[at(index)].dtype;
      return add(copy);
    });
  }

  static bool is_half(double value) {
    const auto number = static_cast<float>(value);
    return float_from_half(half_from_float(number)) == number;
  }

  void arrange_reshape(NodeIndex i, const Arranged& input) {
    const GraphNode& node = graph_[i];
    const Shape& source = graph_[node.inputs[0]].shape;
    std::vector<AxisGroup> groups = reshape_groups(source, node.shape);
    if (is_unchanged(input.order) || groups.empty()) {
      AxisOrder back;
      for (int axis = 0; axis < source.rank(); ++axis)
        back.push_back(static_cast<int>(position_of(input.order, axis)));
      return keep_view(i, unchanged(node.shape.rank()), input, true, [&](NodeIndex index) {
        const NodeIndex from = permuted(index, back);
        return made(Op::reshape, nodes_[at(from)].dtype, node.shape, {from}, {}, node.source);
      });
    }
    // Groups follow each other as they are arranged; axes of one group are first brought together.
    const auto first = [&](const AxisGroup& group) {
      std::int64_t position = source.rank();
      for (int axis : group.from)
        if (source[axis] != 1) position = std::min(position, position_of(input.order, axis));
      return position == source.rank() ? std::int64_t{-1} : position;
    };
    std::ranges::stable_sort(groups, {}, first);
    AxisOrder together, order;
    for (const AxisGroup& group : groups) {
      together.insert(together.end(), group.from.begin(), group.from.end());
      order.insert(order.end(), group.to.begin(), group.to.end());
    }
    AxisOrder moves;
    for (int axis : together) moves.push_back(static_cast<int>(position_of(input.order, axis)));
    // Axes of one element may stand anywhere.
    AxisOrder real;
    for (int axis : moves)
      if (source[input.order[at(axis)]] != 1) real.push_back(axis);
    keep_view(i, order, input, true, [&](NodeIndex index) {
      const NodeIndex from = is_unchanged(real) ? index : permuted(index, moves);
      return made(Op::reshape, nodes_[at(from)].dtype, shape_in_order(node.shape, order), {from}, {},
                  node.source);
    });
  }

  void arrange_concat(NodeIndex i) {
    const GraphNode& node = graph_[i];
    const AxisOrder order = usual_order(node);
    const bool halves =
        std::ranges::all_of(node.inputs, [&](NodeIndex input) { return values_[at(input)].half >= 0; });
    const auto join = [&](bool as_half) {
      GraphNode copy = node;
      copy.shape = shape_in_order(node.shape, order);
      copy.ints[0] = position_of(order, node.ints[0]);
      copy.dtype = as_half ? DType::float16 : node.dtype;
      for (NodeIndex& input : copy.inputs) input = arranged(input, order, as_half);
      return add(std::move(copy));
    };
    values_[at(i)].order = order;
    if (halves) values_[at(i)].half = join(true);
    if (!halves || !half_values_) values_[at(i)].full = join(false);
  }

  // [places of all images, terms] x [terms, channels].
  void arrange_product(NodeIndex i) {
    const GraphNode& node = graph_[i];
    const int rank = node.shape.rank();
    const std::int64_t channels = node.shape[rank - 2], terms = fold_length(graph_, i),
                       places = node.element_count() / channels;
    AxisOrder order = unchanged(rank);
    std::swap(order[at(rank - 2)], order[at(rank - 1)]);
    const NodeIndex left = left_matrix(node);
    NodeIndex windows = -1, weights = -1;
    if (const std::optional<FewChannels> few = few_channels(node.inputs[1], terms)) {
      windows = windows_of(*few, node.source);
      weights = weights_of(*few, left, channels);
    }
    if (windows < 0 || weights < 0) {
      windows = made(Op::reshape, DType::float16, {places, terms}, {arranged(node.inputs[1], order, true)},
                     {}, node.source);
      weights = weights_of(left, channels, terms);
    }
    const NodeIndex sums =
        made(Op::matmul, DType::float32, {places, channels}, {windows, weights}, {}, node.source);
    nodes_[at(sums)].stays_tiled = true;
    keep(i, order,
         made(Op::reshape, DType::float32, shape_in_order(node.shape, order), {sums}, {}, node.source));
  }

  // ---- images of few channels ----

  // A convolution over pictures, whose three or four channels are too few for eight neighbours of one place:
  // channels are filled up with zeros to `padded`, and a window's columns and channels become one axis, of
  // which eight neighbours start at a multiple of eight.
  struct FewChannels {
    NodeIndex image = -1;  // [batch, channels, rows, columns]
    std::array<std::int64_t, 4> before{}, after{};
    std::int64_t kernel_rows = 0, kernel_columns = 0, row_stride = 0, column_stride = 0;
    std::int64_t rows = 0, columns = 0;           // of places
    std::int64_t padded = 0, padded_columns = 0;  // channels; columns of the kernel
  };

  std::optional<FewChannels> few_channels(NodeIndex right, std::int64_t terms) const {
    const auto input = [&](NodeIndex index) { return graph_[index].inputs[0]; };
    if (graph_[right].op != Op::reshape) return std::nullopt;
    const GraphNode& turned = graph_[input(right)];
    // [batch, groups, kernel rows and columns, channels, rows, columns] of patches_of().
    if (turned.op != Op::permute || turned.ints != std::vector<std::int64_t>{0, 1, 5, 6, 2, 3, 4} ||
        turned.shape[1] != 1 || graph_[turned.inputs[0]].op != Op::reshape)
      return std::nullopt;
    const NodeIndex last = input(turned.inputs[0]);
    if (graph_[last].op != Op::window || graph_[last].ints[0] != 3 || graph_[last].ints[3] != 1)
      return std::nullopt;
    const NodeIndex first = input(last);
    if (graph_[first].op != Op::window || graph_[first].ints[0] != 2 || graph_[first].shape.rank() != 5)
      return std::nullopt;
    FewChannels found{.image = input(first),
                      .kernel_rows = graph_[first].ints[1],
                      .kernel_columns = graph_[last].ints[1],
                      .row_stride = graph_[first].ints[2],
                      .column_stride = graph_[last].ints[2],
                      .rows = graph_[last].shape[2],
                      .columns = graph_[last].shape[3]};
    if (const GraphNode& pad = graph_[found.image]; pad.op == Op::pad) {
      if (pad.floats[0] != 0) return std::nullopt;
      for (std::size_t axis = 0; axis < 4; ++axis) {
        found.before[axis] = pad.ints[2 * axis];
        found.after[axis] = pad.ints[2 * axis + 1];
      }
      found.image = pad.inputs[0];
    }
    const std::int64_t channels = graph_[found.image].shape[1];
    if (graph_[first].ints[3] != 1 || channels < 3 || channels > 7 || found.before[1] + found.after[1] > 0 ||
        terms != channels * found.kernel_rows * found.kernel_columns)
      return std::nullopt;
    found.padded = channels <= 4 && found.column_stride % 2 == 0 ? 4 : 8;
    const std::int64_t in_eight = 8 / found.padded;  // columns
    found.padded_columns = (found.kernel_columns + in_eight - 1) / in_eight * in_eight;
    return found;
  }

  // [places, terms]: the padded image has memory, from which windows load.
  NodeIndex windows_of(const FewChannels& few, const NodeRef& source) {
    const auto& [image, before, after, kernel_rows, kernel_columns, row_stride, column_stride, rows, columns,
                 padded, padded_columns] = few;
    const Shape& shape = graph_[image].shape;
    const std::int64_t height = before[2] + shape[2] + after[2];
    std::int64_t width = before[3] + shape[3] + after[3] + padded_columns - kernel_columns;
    width += width * padded % 8 == 0 ? 0 : 1;
    GraphNode pad;
    pad.op = Op::pad;
    pad.dtype = DType::float16;
    pad.shape = {before[0] + shape[0] + after[0], height, width, padded};
    pad.inputs = {arranged(image, {0, 2, 3, 1}, true)};
    pad.ints = {before[0], after[0],         before[2], after[2], before[3], width - before[3] - shape[3],
                0,         padded - shape[1]};
    pad.floats = {0.0};
    pad.source = source;
    pad.stays_tiled = true;
    const std::int64_t batch = pad.shape[0], line = width * padded, size = padded_columns * padded,
                       step = column_stride * padded, along = (line - size) / step + 1;
    NodeIndex seen =
        made(Op::reshape, DType::float16, {batch, height, line}, {add(std::move(pad))}, {}, source);
    seen = made(Op::window, DType::float16, {batch, rows, line, kernel_rows}, {seen},
                {1, kernel_rows, row_stride, 1}, source);
    seen = made(Op::window, DType::float16, {batch, rows, along, kernel_rows, size}, {seen},
                {2, size, step, 1}, source);
    if (along > columns)
      seen = made(Op::slice, DType::float16, {batch, rows, columns, kernel_rows, size}, {seen},
                  {0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, source);
    return made(Op::reshape, DType::float16, {batch * rows * columns, kernel_rows * size}, {seen}, {},
                source);
  }

  NodeIndex weights_of(const FewChannels& few, NodeIndex left, std::int64_t channels) {
    const std::optional<std::vector<float>> elements = constant_elements(graph_, left);
    if (!elements) return -1;
    const std::int64_t in = graph_[few.image].shape[1],
                       terms = few.kernel_rows * few.padded_columns * few.padded;
    std::vector<float> filled(at(channels * terms), 0.0f);
    std::size_t next = 0;
    for (std::int64_t line = 0; line < channels * few.kernel_rows; ++line)
      for (std::int64_t column = 0; column < few.kernel_columns; ++column)
        for (std::int64_t c = 0; c < in; ++c)
          filled[at((line * few.padded_columns + column) * few.padded + c)] = (*elements)[next++];
    return permuted(add(narrow_constant(filled, {channels, terms}, graph_[left].source)), {1, 0});
  }

  // [terms, channels], with eight neighbours in memory along either.
  NodeIndex weights_of(NodeIndex left, std::int64_t channels, std::int64_t terms) {
    const NodeRef& source = graph_[left].source;
    if (std::optional<std::vector<float>> elements = constant_elements(graph_, left)) {
      if (terms % 8 == 0) return permuted(add(narrow_constant(*elements, {channels, terms}, source)), {1, 0});
      std::vector<float> turned(elements->size());
      for (std::size_t c = 0; c < at(channels); ++c)
        for (std::size_t t = 0; t < at(terms); ++t)
          turned[t * at(channels) + c] = (*elements)[c * at(terms) + t];
      return add(narrow_constant(turned, {terms, channels}, source));
    }
    const NodeIndex matrix =
        made(Op::reshape, DType::float16, {channels, terms}, {narrowed(left)}, {}, source);
    return permuted(matrix, {1, 0});
  }

  // Weights that are no constants, rounded before they are arranged.
  NodeIndex narrowed(NodeIndex old) {
    const GraphNode& node = graph_[old];
    if (node.op != Op::reshape && node.op != Op::permute) return cast(plain(old), DType::float16);
    GraphNode copy = node;
    copy.inputs = {narrowed(node.inputs[0])};
    copy.dtype = DType::float16;
    return add(std::move(copy));
  }

  // Views that were made and are not read, and constants that were replaced.
  void leave_out_unread(std::vector<NodeIndex>& new_index) {
    std::vector<std::uint8_t> read(nodes_.size(), 0);
    for (NodeIndex index : new_index)
      if (index >= 0) read[at(index)] = 1;
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (read[i])
        for (NodeIndex input : nodes_[i].inputs) read[at(input)] = 1;
    std::vector<NodeIndex> moved(nodes_.size(), -1);
    std::vector<GraphNode> left;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!read[i]) continue;
      moved[i] = static_cast<NodeIndex>(left.size());
      for (NodeIndex& input : nodes_[i].inputs) input = moved[at(input)];
      left.push_back(std::move(nodes_[i]));
    }
    nodes_ = std::move(left);
    for (NodeIndex& index : new_index)
      if (index >= 0) index = moved[at(index)];
  }

  Graph& graph_;
  FusionRequest& request_;
  const FusionOptions& options_;
  const bool learns_;
  const bool half_values_;                     // FusionOptions::half_values; gradients stay float32
  std::vector<Arranged> values_;               // per old node
  std::vector<std::uint8_t> chosen_, rounds_;  // per old node: products to turn; values to round
  std::vector<std::uint8_t> joined_;           // and those of them that a kernel of its own stores
  std::vector<GraphNode> nodes_;
};

}  // namespace

std::string arrange_channels_last(Graph& graph, FusionRequest& request, const FusionOptions& options) {
  const bool is_named =
      std::ranges::any_of(graph.nodes, [](const GraphNode& node) { return node.shape.is_named(); });
  if (is_named) return {};
  const std::int64_t products = Arranger(graph, request, options).run();
  if (products == 0) return {};
  return "channels last: " + std::to_string(products) + " products of places by channels read float16";
}

}  // namespace imprint::graph
