// Wide values: four neighbouring elements in one register of one invocation. Index arithmetic tracks how far
// apart the four are; values that are equal for all four stay scalar.

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "compute/graph/schedule/cost.h"
#include "compute/kernels/elementwise_glsl.h"
#include "compute/kernels/emitter.h"

namespace imprint::kernels {

using namespace graph;

namespace {

std::string_view wide_type(DType dtype) {
  constexpr std::string_view kTypes[] = {"vec4", "ivec4", "bvec4"};  // by DTypeRegisters
  return kTypes[static_cast<std::size_t>(dtype_registers(dtype))];
}

bool is_wide_index(const IndexExpression& index) { return index.lane != 0; }

constexpr std::int64_t kCrossingTile =
    8;  // invocations along each axis, of four by four elements each: 128 contiguous bytes

}  // namespace

std::string Emitter::declare_wide(DType dtype, const std::string& expression) {
  const std::string name = fresh('v');
  line(qualifier(dtype) + std::string(wide_type(dtype)) + " " + name + " = " + expression + ";");
  wide_names_.insert(name);
  return name;
}

std::string Emitter::declare_like(const ElementIndex& index, DType dtype, const std::string& expression) {
  const bool wide =
      (index.linear && is_wide_index(*index.linear)) || std::ranges::any_of(index.axes, is_wide_index);
  return wide ? declare_wide(dtype, std::string(wide_type(dtype)) + "(" + expression + ")")
              : declare(dtype, expression);
}

void Emitter::assign(const std::string& name, const std::string& value, DType dtype) {
  if (is_wide(value) && !is_wide(name)) refuse();
  line(name + " = " + (is_wide(name) ? widened(value, dtype) : value) + ";");
}

std::string Emitter::component(const std::string& name, int element) const {
  return is_wide(name) ? name + "." + "xyzw"[element] : name;
}

std::string Emitter::widened(const std::string& name, DType dtype) const {
  return is_wide(name) ? name : std::string(wide_type(dtype)) + "(" + name + ")";
}

std::string Emitter::componentwise(
    DType dtype, std::span<const std::string> operands,
    const std::function<std::string(std::span<const std::string>)>& expression) const {
  std::string vector(wide_type(dtype));
  for (int element = 0; element < kWide; ++element) {
    std::vector<std::string> components;
    for (const std::string& operand : operands) components.push_back(component(operand, element));
    vector += (element == 0 ? "(" : ", ") + expression(components);
  }
  return vector + ")";
}

// The literal that a maximum or minimum of floats has as its second operand.
std::optional<float> Emitter::literal_bound(NodeIndex node) const {
  const GraphNode& entry = graph_[node];
  if (entry.op != Op::maximum && entry.op != Op::minimum) return std::nullopt;
  const GraphNode& bound = graph_[graph_.without_views(entry.inputs[1])];
  if (bound.op != Op::full || bound.dtype != DType::float32 || std::isnan(bound.floats[0]))
    return std::nullopt;
  return static_cast<float>(bound.floats[0]);
}

std::string Emitter::elementwise(NodeIndex node, std::span<const std::string> operands) {
  const GraphNode& entry = graph_[node];
  const DType operand_dtype = graph_[entry.inputs.back()].dtype;
  // A minimum of a maximum, or a maximum of a minimum, both with literals, tests for NaN once.
  const std::optional<float> bound = literal_bound(node);
  const bool is_floor = entry.op == Op::maximum;
  const auto inner = bound ? origins_.find(operands[0]) : origins_.end();
  const bool clamps = inner != origins_.end() && inner->second.op == (is_floor ? Op::minimum : Op::maximum) &&
                      (is_floor ? *bound <= inner->second.bound : inner->second.bound <= *bound);
  std::vector<std::string> of(operands.begin(), operands.end());
  if (clamps) {
    const Origin& from = inner->second;
    of = is_floor ? std::vector{from.of, of[1], from.literal} : std::vector{from.of, from.literal, of[1]};
  }
  const auto expression = [&](std::span<const std::string> x) {
    return clamps ? text("imp_clamp(", x[0], ", ", x[1], ", ", x[2], ")")
                  : elementwise_glsl(entry.op, operand_dtype, entry.dtype, x, includes_);
  };
  const bool wide = std::ranges::any_of(of, [&](const std::string& operand) { return is_wide(operand); });
  const std::string name = !wide
                               ? declare(entry.dtype, expression(of))
                               : declare_wide(entry.dtype, takes_vectors(entry.op, operand_dtype)
                                                               ? expression(of)
                                                               : componentwise(entry.dtype, of, expression));
  if (bound && !clamps) origins_[name] = {entry.op, operands[0], operands[1], *bound};
  const bool rounds = entry.op == Op::cast && entry.dtype == DType::float16 && dtype_is_float(operand_dtype);
  if (rounds && operands[0].starts_with('v'))  // a register
    origins_[name] = {.op = Op::cast, .of = operands[0]};
  return name;
}

std::string Emitter::position(const IndexExpression& index) {
  if (index.is_irregular) return refuse();
  if (!is_wide_index(index)) return declare(DType::int32, index.str());
  return declare_wide(DType::int32, text(index.str(), " + ivec4(0, 1, 2, 3) * ", index.lane));
}

std::string Emitter::folded(NodeIndex fold, const std::string& sums) {
  if (!is_wide(sums)) return sums;
  const std::string result =
      declare(graph_[fold].dtype == DType::float32 ? DType::float32 : DType::int32, component(sums, 0));
  for (int element = 1; element < kWide; ++element)
    line(combine(fold, {result, {}}, component(sums, element), {}));
  return result;
}

std::string Emitter::refuse() {
  is_refused_ = true;
  return "0";
}

bool Emitter::is_uniform(const IndexExpression& index) {
  if (index.lane == 0 && !index.is_irregular) return true;
  refuse();
  return false;
}

bool Emitter::divides(const IndexExpression& index, std::int64_t bound) {
  if (index.lane == 0 && !index.is_irregular) return true;
  if (index.lane == 1 && !index.is_irregular && index.is_multiple_of(kWide) && bound % kWide == 0)
    return true;
  refuse();
  return false;
}

std::string Emitter::load_wide(NodeIndex node, const IndexExpression& linear) {
  const GraphNode& entry = graph_[node];
  const Place& place = schedule_.place[at(node)];
  const IndexExpression element = start_of(place, entry.dtype) + linear;
  const auto quad_at = [&](const IndexExpression& first) {
    return declare_wide(entry.dtype, load_four(place, entry.dtype, first / kWide));
  };
  if (element.lane == 1 && element.is_multiple_of(kWide)) return quad_at(element);

  const std::int64_t past = (element.constant % kWide + kWide) % kWide;
  const IndexExpression first = element - past;
  const bool in_quads = crosses_ && element.lane % kWide == 0 && first.is_multiple_of(kWide);
  std::vector<std::string> components;
  for (std::int64_t e = 0; e < kWide; ++e) {
    if (!in_quads) {
      components.push_back(load_element(place, entry.dtype, (element + e * element.lane).str()));
      continue;
    }
    const IndexExpression start = first + e * element.lane;
    const std::string key = text("quad", node, "@", start.str());
    if (!known(key)) remember(key, quad_at(start));
    components.push_back(component(*known(key), static_cast<int>(past)));
  }
  return declare_wide(entry.dtype, std::string(wide_type(entry.dtype)) + "(" + components[0] + ", " +
                                       components[1] + ", " + components[2] + ", " + components[3] + ")");
}

void Emitter::write_wide(const Store& store, const IndexExpression& element, const std::string& value) {
  const DType dtype = graph_[store.node].dtype;
  if (element.lane == 1 && element.is_multiple_of(kWide))
    return store_four(store.place, dtype, element / kWide, widened(value, dtype));
  for (int e = 0; e < kWide; ++e)
    store_element(store.place, dtype, (element + e * element.lane).str(), component(value, e));
}

// ---- maps ----

// The output axis along which the task's inputs are contiguous in memory, where that is not the last; -1:
// none. Decided by the first such input, seen through views that keep or permute axes.
int Emitter::crossing_axis() const {
  const Shape& shape = graph_[task_.members.front()].shape;
  const int rank = shape.rank();
  if (rank < 2 || shape[rank - 1] % kWide != 0) return -1;
  if (!std::ranges::all_of(task_.members, [&](NodeIndex member) { return graph_[member].shape == shape; }))
    return -1;
  struct Visit {
    NodeIndex node;
    std::vector<int> axes;
  };  // axes: the output axis of each axis of the node
  std::vector<int> own(static_cast<std::size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) own[at(axis)] = axis;
  std::vector<Visit> stack;
  for (NodeIndex member : task_.members) stack.push_back({member, own});
  constexpr std::size_t kMostVisits = 256;
  for (std::size_t visits = 0; !stack.empty() && visits < kMostVisits; ++visits) {
    const Visit visit = std::move(stack.back());
    stack.pop_back();
    const GraphNode& node = graph_[visit.node];
    const bool is_read = std::ranges::find(task_.reads, visit.node, &Read::node) != task_.reads.end();
    if (is_read) {
      if (visit.axes.empty()) continue;
      const int axis = visit.axes.back();
      if (axis >= 0 && axis != rank - 1 && shape[axis] % kWide == 0 &&
          shape[axis] == node.shape[node.shape.rank() - 1])
        return axis;
      continue;
    }
    std::vector<int> axes = visit.axes;
    if (node.op == Op::permute) {
      for (std::size_t a = 0; a < axes.size(); ++a) axes[at(node.ints[a])] = visit.axes[a];
    } else if (node.op == Op::expand) {
      for (int a = 0; a < node.shape.rank(); ++a)
        if (graph_[node.inputs[0]].shape[a] != node.shape[a]) axes[at(a)] = -1;
    } else if (node.kind() != OpKind::elementwise) {
      continue;
    }
    for (NodeIndex input : node.inputs) stack.push_back({input, axes});
  }
  return -1;
}

void Emitter::wide_map_body(int workgroup_size) {
  if (const int axis = crossing_axis(); axis >= 0 && uniform_folds().empty())
    return crossing_map_body(axis, workgroup_size);
  if (const std::int64_t places = neighbouring_places(); places > 1)
    return neighbours_map_body(places, workgroup_size);
  const std::int64_t count = task_.element_count, rest = count % kWide;
  group_count_ = (count / kWide + (rest > 0) + workgroup_size - 1) / workgroup_size;
  IndexExpression i("i", kWide);
  i.lane = 1;
  line("int lane = int(gl_LocalInvocationID.x);");
  first_of_map(text("(group * ", workgroup_size, " + lane) * ", kWide), count - rest, {i, {}},
               workgroup_size);
  if (rest > 0) {
    open(text("if (i >= ", count - rest, ")"));
    open(text("for (; i < ", count, "; i++)"));
    evaluate_members({IndexExpression(std::string("i")), {}});
    close();
    line("return;");
    close();
    members_.clear();
  } else {
    line(text("if (i >= ", count, ") return;"));
  }
  leave_unused(IndexExpression("i", kWide), kWide);
  evaluate_members({i, {}});
}

// Reads along one axis and writes along another: an invocation takes four by four elements, so that both are
// wide, and a workgroup takes a tile of them.
void Emitter::crossing_map_body(int axis, int workgroup_size) {
  const Shape& shape = graph_[task_.members.front()].shape;
  const int last = shape.rank() - 1;
  const std::int64_t along = shape[last] / kWide, across = shape[axis] / kWide;
  const std::int64_t tile_across =
      std::min<std::int64_t>(workgroup_size / kCrossingTile,
                             static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(across))));
  const std::int64_t tile_along = workgroup_size / tile_across;
  const std::int64_t tiles_along = (along + tile_along - 1) / tile_along,
                     tiles_across = (across + tile_across - 1) / tile_across;
  group_count_ = tiles_along * tiles_across * (task_.element_count / (shape[last] * shape[axis]));
  line("int lane = int(gl_LocalInvocationID.x);");
  line("int along = (group % " + text(tiles_along) + " * " + text(tile_along) + " + lane % " +
       text(tile_along) + ") * 4;");
  line("int across = (group / " + text(tiles_along) + " % " + text(tiles_across) + " * " + text(tile_across) +
       " + lane / " + text(tile_along) + ") * 4;");
  line("int batch = group / " + text(tiles_along * tiles_across) + ";");
  line("if (along >= " + text(shape[last]) + " || across >= " + text(shape[axis]) + ") return;");
  Shape batch_shape = shape;
  batch_shape[last] = batch_shape[axis] = 1;
  crosses_ = true;
  for (std::int64_t e = 0; e < kWide; ++e) {
    ElementIndex index{std::nullopt, delinearize(IndexExpression(std::string("batch")), batch_shape)};
    index.axes[at(last)] = IndexExpression("along", kWide);
    index.axes[at(last)].lane = 1;
    index.axes[at(axis)] = IndexExpression("across", kWide) + e;
    index.linear = linear_of(index, shape);
    members_.clear();
    evaluate_members(index);
  }
}

// The last axis of several elements; -1: none.
int Emitter::last_axis() const {
  const Shape& shape = graph_[task_.members.front()].shape;
  int last = shape.rank() - 1;
  while (last >= 0 && shape[last] == 1) --last;
  return last;
}

// How many neighbours along the axis before the last one, such as places of a row of an image whose channels
// are last, an invocation computes: their windows overlap, and read the same weights.
std::int64_t Emitter::neighbouring_places() {
  constexpr std::int64_t kLeastInvocations = 1 << 16;  // that are left
  const Shape& shape = graph_[task_.members.front()].shape;
  const int last = last_axis();
  if (last < 1 || shape[last] % kWide != 0 || !schedule_.extents.empty() || !uniform_folds().empty())
    return 1;
  for (const NodeIndex member : task_.members)
    if (!(graph_[member].shape == shape)) return 1;
  for (const Store& store : task_.stores)
    if (store.row_indices >= 0 || graph_[store.node].dtype != DType::float16) return 1;
  if (!folds_only_windows()) return 1;
  for (const std::int64_t places : {4, 2})
    if (shape[last - 1] % places == 0 && task_.element_count / (kWide * places) >= kLeastInvocations)
      return places;
  return 1;
}

// Whether the task folds windows, few terms each, and nothing else.
bool Emitter::folds_only_windows() {
  std::vector<NodeIndex> stack(task_.members.begin(), task_.members.end());
  std::set<NodeIndex> seen(stack.begin(), stack.end());
  bool found = false;
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (fold_length(graph_, node) > 1 && !writes_terms_out(node)) return false;
    found = found || fold_length(graph_, node) > 1;
    for (NodeIndex input : graph_[node].inputs)
      if (!schedule_.materialized[at(input)] && seen.insert(input).second) stack.push_back(input);
  }
  return found;
}

// All are computed before any is stored: memory may be the same, so that drivers would not load what comes
// later before a store.
void Emitter::neighbours_map_body(std::int64_t places, int workgroup_size) {
  const Shape& shape = graph_[task_.members.front()].shape;
  const int last = last_axis(), along = last - 1;
  const std::int64_t invocations = task_.element_count / (kWide * places);
  group_count_ = (invocations + workgroup_size - 1) / workgroup_size;
  line("int lane = int(gl_LocalInvocationID.x);");
  line(text("int i = group * ", workgroup_size, " + lane;"));
  line(text("if (i >= ", invocations, ") return;"));
  Shape firsts = shape;
  firsts[last] /= kWide;
  firsts[along] /= places;
  std::vector<IndexExpression> axes = delinearize(IndexExpression(std::string("i")), firsts);
  axes[at(last)] = bind(axes[at(last)] * kWide);
  axes[at(last)].lane = 1;
  axes[at(along)] = bind(axes[at(along)] * places);
  std::vector<std::unordered_map<NodeIndex, std::string>> members;
  std::vector<IndexExpression> elements;
  for (std::int64_t place = 0; place < places; ++place) {
    ElementIndex index{std::nullopt, axes};
    index.axes[at(along)] = axes[at(along)] + place;
    members_.clear();
    compute_members(index);  // by its axes: neighbours then share what depends on other axes
    members.push_back(std::exchange(members_, {}));
    elements.push_back(linear_of(index, shape));
  }
  for (std::size_t place = 0; place < elements.size(); ++place) {
    members_ = members[place];
    store_members(elements[place]);
  }
}

}  // namespace imprint::kernels
