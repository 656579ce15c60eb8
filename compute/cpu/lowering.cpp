#include "compute/cpu/lowering.h"

#include <algorithm>
#include <unordered_set>

#include "compute/base/large_pages.h"
#include "compute/base/text.h"
#include "compute/graph/schedule/cost.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

// The least work of a program whose steps threads share. In a smaller one data takes longer from core to core
// than a step on one of them; in a larger one small steps are shared too, where their data is.
constexpr std::int64_t kLeastShared = std::int64_t{1} << 18;

bool has_one_matrix(const Strided& value) {
  const int last = value.shape.rank() - 1;
  return value.shape.element_count() == value.shape[last] * value.shape[last - 1];
}

// A column of numbers as a row.
Strided row_of(const Strided& column) {
  const int rank = column.shape.rank();
  Strided row{column.buffer, column.offset, Shape{1, column.shape[rank - 2]}, {}};
  row.strides[1] = column.strides[at(rank - 2)];
  return row;
}

}  // namespace

Lowering::Lowering(const Graph& graph, const Schedule& schedule, Executable& into, bool few_copies)
    : graph_(graph),
      schedule_(schedule),
      executable_(into),
      kernels_(kernels()),
      few_copies_(few_copies),
      most_copied_(few_copies ? kSecondCache : kMostCopied),
      written_(graph.nodes.size(), 0),
      readers_(graph.nodes.size(), kNoReader) {
  std::int64_t constants = 0, others = graph.size();
  const auto read = [&](NodeIndex node, std::int64_t reader) {
    std::int64_t& known = readers_[at(node)];
    if (reader != kNoReader) known = known == kNoReader || known == reader ? reader : kSeveralReaders;
  };
  std::unordered_set<NodeIndex> computed_twice;  // with the rows that their task stores, and for their place
  for (const Task& task : schedule.tasks) {
    const bool stores_rows =
        std::ranges::any_of(task.stores, [](const Store& store) { return store.row_indices >= 0; });
    for (const Store& store : task.stores) {
      if (store.row_indices >= 0) {
        read(store.node, others++);
        read(store.row_indices, others++);
      } else {
        if (store.place.kind != PlaceKind::temporary) read(store.node, store.node);
        if (stores_rows) computed_twice.insert(store.node);
      }
    }
  }
  for (NodeIndex i = graph.size(); i-- > 0;) {
    const GraphNode& node = graph[i];
    if (is_memory_leaf(node)) constants += node.element_count();
    const bool is_elementwise = node.kind() == OpKind::elementwise,
               is_inside = schedule.place[at(i)].kind == PlaceKind::none &&
                           (is_elementwise || node.op == Op::reshape);
    for (const NodeIndex input : node.inputs)
      read(input, computed_twice.contains(i) ? kSeveralReaders
                  : is_inside                ? readers_[at(i)]
                  : is_elementwise           ? i
                                             : others++);
  }
  constants_stay_ = constants <= kSecondCache;
}

Result<> Lowering::run(std::uint64_t memory_limit) {
  for (const Task& task : schedule_.tasks) {
    const std::size_t begin = executable_.steps_.size();
    if (task.element_count > 0) IMPRINT_CHECK(lower(task));
    executable_.kernels_.push_back({begin, executable_.steps_.size()});
    for (const Store& store : task.stores)
      if (store.row_indices < 0) written_[at(store.node)] = 1;
  }
  std::int64_t work = 0;
  for (const std::unique_ptr<Step>& step : executable_.steps_) work += step->work();
  executable_.is_shared_ = executable_.pool_ && work >= kLeastShared;
  return plan_arena(memory_limit);
}

// Values that are stored element by element share a chain. Inputs that must be in memory are computed before
// it.
Result<> Lowering::lower(const Task& task) {
  if (task.kind == TaskKind::region)
    return make_error(ErrorCode::internal, "found a row-local region in a schedule for the CPU");
  task_ = &task;
  IMPRINT_ASSIGN(const bool is_copy, keep_constant(task));
  if (is_copy) return {};
  // Rows first: their inputs may be overwritten by the chain, and their targets are not read by the task.
  for (const Store& store : task.stores)
    if (store.row_indices >= 0) IMPRINT_CHECK(store_rows(store));
  if (task.kind == TaskKind::page) return lower_page(task);
  ChainBuilder chain(*this, task.element_count);
  std::vector<std::int32_t> targets;
  for (const Store& store : task.stores) {
    if (store.row_indices >= 0) continue;
    IMPRINT_ASSIGN(const std::int32_t result, chain.value(store.node));
    targets.push_back(unpacked_buffer_of(store));
    chain.store(result, targets.back());
  }
  if (chain.has_stores()) {
    std::vector<std::int32_t> buffers;
    Chain finished = chain.finish(-1, buffers);
    add(std::move(finished), used_elements(task), buffers);
  }
  std::size_t target = 0;
  for (const Store& store : task.stores)
    if (store.row_indices < 0) pack(store, targets[target++]);
  return {};
}

// A constant in another layout, as a convolution reads it, is copied once.
Result<bool> Lowering::keep_constant(const Task& task) {
  if (task.stores.size() != 1 || task.kind == TaskKind::page) return false;
  const Store& store = task.stores[0];
  if (store.row_indices >= 0 || store.place.kind != PlaceKind::temporary) return false;
  if (graph_[store.node].kind() != OpKind::view) return false;
  if (schedule_.place[at(graph_.without_views(store.node))].kind != PlaceKind::constant) return false;
  IMPRINT_ASSIGN(const Strided input, find(graph_[store.node].inputs[0]));
  // Without strides of its own the view is a reshape, which keeps the order of elements.
  const Strided source = through_view(graph_[store.node], input).value_or(input);
  const auto copy = constant_copy(source, graph_[store.node].shape);
  if (copy) buffer_of_place_[key_of(store.place)] = copy->buffer;
  return copy.has_value();
}

Result<> Lowering::store_rows(const Store& store) {
  IMPRINT_ASSIGN(const Strided values, find_row_major(store.node));
  IMPRINT_ASSIGN(const Strided rows, find_row_major(store.row_indices));
  const std::int32_t into = buffer_of(store.place);
  const DType dtype = graph_[store.node].dtype;
  Strided stored = values;
  if (is_packed(store.node, store.place)) {
    stored = row_major(arena_buffer(values.shape), values.shape);
    add(pack_step(values, dtype, stored.buffer), {values.buffer, stored.buffer});
  }
  add(store_rows_step(stored, rows, schedule_.variables[at(store.place.index)]->kernel_shape(),
                      dtype_size(dtype), into),
      {stored.buffer, rows.buffer, into});
  return {};
}

// ---- values ----

bool Lowering::in_memory(NodeIndex node) const {
  return is_memory_leaf(graph_[node]) ||
         (written_[at(node)] && schedule_.place[at(node)].kind != PlaceKind::none);
}

Result<Strided> Lowering::find(NodeIndex node) {
  const Place& place = schedule_.place[at(node)];
  const bool must_unpack = in_memory(node) && is_packed(node, place);
  if (in_memory(node) && !must_unpack) return row_major(buffer_of(place), graph_[node].shape);
  if (const auto known = computed_.find(node); known != computed_.end()) return known->second;
  if (must_unpack) {
    const Strided into = row_major(arena_buffer(graph_[node].shape), graph_[node].shape);
    const std::int32_t from = buffer_of(place);
    add(unpack_step(from, graph_[node].dtype, into), {from, into.buffer});
    return computed_.emplace(node, into).first->second;
  }
  if (graph_[node].kind() == OpKind::view) {
    IMPRINT_ASSIGN(const Strided source, find(graph_[node].inputs[0]));
    if (const auto view = through_view(graph_[node], source)) return *view;
    if (const auto copy = constant_copy(source, graph_[node].shape))
      return computed_.emplace(node, *copy).first->second;
  }
  const std::int32_t into = destination(node);
  IMPRINT_CHECK(compute(node, into));
  return computed_.emplace(node, row_major(into, graph_[node].shape)).first->second;
}

Result<Strided> Lowering::find_row_major(NodeIndex node) {
  IMPRINT_ASSIGN(const Strided found, find(node));
  if (found.is_row_major()) return found;
  if (const auto known = dense_.find(node); known != dense_.end()) return known->second;
  const std::int32_t into = arena_buffer(found.shape);
  IMPRINT_CHECK(compute_copy(found, into));
  return dense_.emplace(node, row_major(into, found.shape)).first->second;
}

Result<> Lowering::compute(NodeIndex node, std::int32_t into) {
  const GraphNode& entry = graph_[node];
  if (entry.op == Op::custom)
    return make_error(ErrorCode::unsupported,
                      text("custom_rows '", entry.source->label,
                           "': found the CPU device, expected a Vulkan device, since it is GLSL"));
  switch (entry.kind()) {
    case OpKind::view: {  // a reshape that moves elements
      IMPRINT_ASSIGN(const Strided source, find(entry.inputs[0]));
      return compute_copy(source, into);
    }
    case OpKind::reduce:
      if (is_plain_fold(entry.op)) return compute_reduce(node, into);
      break;
    case OpKind::select:
      if (entry.op == Op::pad) return compute_pad(node, into);
      if (entry.op == Op::concat) return compute_concat(node, into);
      break;
    case OpKind::contract:
    case OpKind::scan:
    case OpKind::scatter:
      break;
    case OpKind::page:
      return make_error(ErrorCode::internal, "found a page outside of its kernel");
    default: {
      ChainBuilder chain(*this, entry.element_count());
      IMPRINT_ASSIGN(const std::int32_t result, chain.value(node));
      chain.store(result, into);
      std::vector<std::int32_t> buffers;
      Chain finished = chain.finish(-1, buffers);
      add(std::move(finished), used_elements(entry.shape), buffers);
      return {};
    }
  }
  if (entry.op == Op::matmul) return compute_product(node, into);
  std::vector<Strided> operands;
  std::vector<std::int32_t> buffers{into};
  for (std::size_t slot = 0; slot < entry.inputs.size(); ++slot) {
    // Scans and the indices of a gather need row-major operands.
    const bool dense = entry.kind() == OpKind::scan || (entry.op == Op::take && slot == 1);
    IMPRINT_ASSIGN(const Strided operand,
                   dense ? find_row_major(entry.inputs[slot]) : find(entry.inputs[slot]));
    operands.push_back(operand);
    buffers.push_back(operand.buffer);
  }
  if (entry.element_count() == 0) return {};
  if (entry.kind() == OpKind::reduce)
    add(arg_reduce_step(entry, graph_[entry.inputs[0]].dtype, operands[0], into), buffers);
  else if (entry.kind() == OpKind::select)
    add(gather_step(entry, operands[0], operands[1], into), buffers);
  else if (entry.kind() == OpKind::scan)
    add(scan_step(entry, operands, into), buffers);
  else if (entry.op == Op::unwindow)
    add(unwindow_step(entry, operands[0], into), buffers);
  else {
    add(copy_step(operands[0], row_major(into, entry.shape)), {operands[0].buffer, into});
    add(scatter_add_step(entry, operands[1], operands[2], into), buffers);
  }
  return {};
}

Result<> Lowering::compute_product(NodeIndex node, std::int32_t into) {
  const NodeIndex of_left = graph_[node].inputs[0], of_right = graph_[node].inputs[1];
  IMPRINT_ASSIGN(const auto windows, find_windows(of_right));
  const std::size_t copies = executable_.constant_copies_.size();
  const std::uint64_t before = executable_.constant_copy_bytes_;
  IMPRINT_ASSIGN(const Strided left, find(of_left));
  const std::uint64_t copied = executable_.constant_copy_bytes_ - before;
  if (windows) {
    ProductOptions options = product_options(node, find_whole(of_left, left, true));
    if (find_patches(of_left, left, *windows, options) && executable_.constant_copies_.size() > copies) {
      executable_.constant_copy_bytes_ -= copied;
      executable_.constant_copies_.resize(copies);  // it was made for this product
      forget(of_left);
    }
    const Strided rows = tiled_left(of_left, left, windows->columns, options);
    add_open(node, product_step(rows, *windows, into, kernels_, options),
             std::array{into, rows.buffer, windows->matrices.buffer});
    return {};
  }
  IMPRINT_ASSIGN(Strided right, find(of_right));
  auto whole = find_whole(of_right, right, false);
  if (!whole) whole = find_whole(of_left, left, true);
  ProductOptions options = product_options(node, std::move(whole));
  if (const auto turned = options.whole ? std::nullopt : turned_weights(of_left, left, right)) {
    const Strided vector = row_of(right);
    options.is_convolution = false;
    add_open(node, product_step(vector, *turned, into, kernels_, options),
             std::array{into, vector.buffer, turned->buffer});
    return {};
  }
  if (const auto panels = options.whole ? std::nullopt : constant_panels(of_right, left, right)) {
    right.buffer = panels->buffer;
    right.offset = 0;
    options.panel = panels->shape[1] * panels->shape[2];
  } else {
    right = near_right(of_right, right);
  }
  const Strided rows = tiled_left(of_left, left, right.shape[right.shape.rank() - 1], options);
  add_product(node, product_step(rows, right, into, kernels_, options), rows, right, into);
  return {};
}

void Lowering::add_product(NodeIndex node, std::unique_ptr<ProductStep> step, const Strided& left,
                           const Strided& right, std::int32_t into) {
  const std::int64_t blocks = step ? step->blocks_of_terms() : 0;
  if (blocks == 0) return add_open(node, std::move(step), std::array{into, left.buffer, right.buffer});
  const std::int32_t sums = arena_buffer(Shape{blocks, step->elements()});
  add(step->sums_of_blocks(sums), {left.buffer, right.buffer, sums});
  add(step->sum_of_blocks(sums), {sums, into});
}

// The right operand of a product. Constants that stay in the caches are copied row by row, each once:
// otherwise each run would transpose them.
Strided Lowering::near_right(NodeIndex node, const Strided& found) {
  if (!constants_stay_ || !has_one_matrix(found) || found.strides[at(found.shape.rank() - 1)] == 1)
    return found;
  return turned_copy(dense_, node, found).value_or(found);
}

// Once, instead of in each run: the panels of such constants that a product of many rows reads.
std::optional<Strided> Lowering::constant_panels(NodeIndex node, const Strided& left, const Strided& found) {
  constexpr std::int64_t kManyRows = 16;
  const int last = found.shape.rank() - 1;
  const std::int64_t width = kernels_.constant_panel, depth = found.shape[last - 1],
                     columns = found.shape[last], rows = left.shape[last - 1];
  if (!has_one_matrix(found) || rows <= kManyRows) return {};
  if (columns < 2 * kernels_.panel_columns || columns % width != 0) return {};
  Strided panels{found.buffer, found.offset, Shape{columns / width, depth, width}, {}};
  panels.strides[0] = width * found.strides[at(last)];
  panels.strides[1] = found.strides[at(last - 1)];
  panels.strides[2] = found.strides[at(last)];
  return turned_copy(panels_, node, panels);
}

// Constant rows of a product of few columns, copied once in the order of its tiles: each tile reads its rows
// as one stream. More columns read them from the caches anyway, and long rows are streams by themselves.
Strided Lowering::tiled_left(NodeIndex node, const Strided& found, std::int64_t columns,
                             ProductOptions& options) {
  constexpr std::int64_t kLeastRows = 16, kLeastColumns = 16, kMostColumns = 1024;
  const int last = found.shape.rank() - 1;
  const std::int64_t tile = kernels_.tile_rows, rows = found.shape[last - 1], depth = found.shape[last],
                     tiles = (rows + tile - 1) / tile, whole = rows / tile;
  if (options.whole || options.patches || options.used.depth.extent >= 0 ||
      !constants_.contains(found.buffer) || !has_one_matrix(found) || rows < kLeastRows || rows < depth ||
      columns < kLeastColumns || columns > kMostColumns)
    return found;
  auto known = tiles_.find(node);
  if (known == tiles_.end()) {
    const std::int64_t row = found.strides[at(last - 1)], term = found.strides[at(last)];
    if (turned_ + tiles * tile * depth > most_copied_) return found;
    const auto copy = constant_copy(
        {found.buffer, found.offset, {whole, depth, tile}, {tile * row, term, row}}, {tiles, depth, tile});
    if (!copy) return found;
    turned_ += tiles * tile * depth;
    if (tiles > whole) {
      const auto rest = copy_step(
          {found.buffer, found.offset + whole * tile * row, {depth, rows - whole * tile}, {term, row}},
          {copy->buffer, whole * tile * depth, {depth, rows - whole * tile}, {tile, 1}});
      rest->run({executable_.buffers_.data(), nullptr}, {0, rest->part_count()});
    }
    known = tiles_.emplace(node, copy->buffer).first;
  }
  options.left_tile = tile;
  return {known->second, 0, found.shape, {}};
}

// Weights times one vector: the vector times the transposed weights, whose rows are whole vectors.
std::optional<Strided> Lowering::turned_weights(NodeIndex node, const Strided& left, const Strided& right) {
  constexpr std::int64_t kLeastRows = 4, kMostWeights = std::int64_t{1} << 17;
  const int last = left.shape.rank() - 1;
  const std::int64_t elements = left.shape.element_count();
  if (!schedule_.extents.empty() || right.shape[last] != 1 || elements > kMostWeights) return {};
  if (!has_one_matrix(left) || !has_one_matrix(right) || left.shape[last - 1] < kLeastRows) return {};
  Strided turned{left.buffer, left.offset, Shape{left.shape[last], left.shape[last - 1]}, {}};
  turned.strides[0] = left.strides[at(last)];
  turned.strides[1] = left.strides[at(last - 1)];
  return turned_copy(turned_weights_, node, turned);
}

// A copy of a constant for products, unless all copies would take too much memory.
std::optional<Strided> Lowering::turned_copy(std::unordered_map<NodeIndex, Strided>& known, NodeIndex node,
                                             const Strided& from) {
  if (const auto found = known.find(node); found != known.end()) return found->second;
  const std::int64_t elements = from.shape.element_count();
  if (turned_ + elements > most_copied_) return {};
  const auto copy = constant_copy(from, from.shape);
  if (!copy) return {};
  turned_ += elements;
  return known.emplace(node, *copy).first->second;
}

// Windows are views whose last axes are short. A fold over those runs along them at every position. With the
// positions innermost it is a few passes over whole rows instead. Each position folds its window in order.
std::vector<int> Lowering::fold_order(const GraphNode& node) const {
  constexpr std::int64_t kLongWindow = 64,
                         kMostPositions = 4096;  // in the innermost loop: their sums stay near
  const NodeIndex source = node.inputs[0];
  const Shape& shape = graph_[source].shape;
  const auto folds = [&](int axis) { return std::ranges::find(node.ints, axis) != node.ints.end(); };
  int axis = shape.rank() - 1;
  std::int64_t window = 1, positions = 1;
  for (; axis >= 0 && (folds(axis) || shape[axis] == 1); --axis) window *= shape[axis];
  if (window == 1 || window > kLongWindow || axis < 0 || !reads_windows(source)) return {};
  int first = axis + 1;  // of the positions in the innermost loop
  while (first > 0 && !folds(first - 1) && (positions == 1 || positions * shape[first - 1] <= kMostPositions))
    positions *= shape[--first];
  if (positions < 4) return {};
  std::vector<int> order;
  for (int a = 0; a < first; ++a) order.push_back(a);
  for (int a = axis + 1; a < shape.rank(); ++a) order.push_back(a);
  for (int a = first; a <= axis; ++a) order.push_back(a);
  return order;
}

bool Lowering::reads_windows(NodeIndex node) const {
  std::vector<NodeIndex> open{node};
  std::unordered_set<NodeIndex> seen{node};
  while (!open.empty()) {
    const NodeIndex next = open.back();
    open.pop_back();
    const GraphNode& entry = graph_[next];
    if (in_memory(next) || computed_.contains(next)) continue;
    if (entry.op == Op::window) return true;
    if (entry.kind() != OpKind::view && entry.kind() != OpKind::elementwise) continue;
    for (const NodeIndex input : entry.inputs)
      if (seen.insert(input).second) open.push_back(input);
  }
  return false;
}

// sum(windows), max(windows) and sum(windows * factors).
Result<bool> Lowering::compute_windows(NodeIndex node, std::int32_t into) {
  const GraphNode& fold = graph_[node];
  const NodeIndex source = fold.inputs[0];
  if (graph_[source].dtype != DType::float32 || graph_[source].element_count() == 0) return false;
  if (fold.op != Op::reduce_sum && fold.op != Op::reduce_max) return false;
  if (!reads_windows(source)) return false;
  // A view, or a value in memory: nothing is computed at every position of every window.
  const auto is_plain = [&](NodeIndex value) {
    return in_memory(value) || computed_.contains(value) || graph_[value].kind() == OpKind::view;
  };
  Strided image, factors;
  bool fuses = false;
  if (is_plain(source)) {
    IMPRINT_ASSIGN(image, find(source));
  } else {
    const GraphNode& product = graph_[source];
    if (fold.op != Op::reduce_sum || product.op != Op::mul) return false;
    const bool second = !reads_windows(product.inputs[0]);
    const NodeIndex windows = product.inputs[second ? 1 : 0], other = product.inputs[second ? 0 : 1];
    if (!is_plain(windows) || !is_plain(other)) return false;
    IMPRINT_ASSIGN(image, find(windows));
    IMPRINT_ASSIGN(factors, find(other));
    fuses = is_constant(other);
  }
  auto plan = plan_windows(fold, image, factors);
  if (!plan) return false;
  plan->fuses = fuses;
  std::vector<std::int32_t> buffers{image.buffer, into};
  if (factors.buffer >= 0) buffers.push_back(factors.buffer);
  add_open(node, window_step(*plan, kernels_, into), buffers);
  return true;
}

Result<> Lowering::compute_reduce(NodeIndex node, std::int32_t into) {
  IMPRINT_ASSIGN(const bool is_done, compute_windows(node, into));
  if (is_done) return {};
  const NodeIndex source = graph_[node].inputs[0];
  std::vector<int> order = fold_order(graph_[node]);
  ChainBuilder chain(*this, graph_[source].element_count(), order);
  IMPRINT_ASSIGN(const std::int32_t result, chain.value(source));
  std::vector<std::int32_t> buffers;
  Chain finished = chain.finish(result, buffers);
  buffers.push_back(into);
  auto step = std::make_unique<ReduceStep>(graph_[node], graph_[source].shape, order, std::move(finished),
                                           result, kernels_, into);
  if (!step->has_kernels())
    return make_error(ErrorCode::internal, text("found no CPU kernel for ", op_info(graph_[node].op).name,
                                                " of ", dtype_name(graph_[node].dtype)));
  use_parts(*step, shape_behind_mask(graph_, source), order);
  add(std::move(step), buffers);
  return {};
}

Result<> Lowering::compute_pad(NodeIndex node, std::int32_t into) {
  const GraphNode& entry = graph_[node];
  Strided inside = row_major(into, entry.shape);
  inside.shape = graph_[entry.inputs[0]].shape;
  for (int axis = 0; axis < inside.shape.rank(); ++axis)
    inside.offset += inside.strides[at(axis)] * entry.ints[2 * static_cast<std::size_t>(axis)];
  if (inside.shape.element_count() > 0) IMPRINT_CHECK(compute_into(entry.inputs[0], inside));
  add_border(entry, border_step(entry, inside.shape, kernels_, into), into);
  return {};
}

Result<> Lowering::compute_concat(NodeIndex node, std::int32_t into) {
  const GraphNode& entry = graph_[node];
  const int axis = static_cast<int>(entry.ints[0]);
  Strided part = row_major(into, entry.shape);
  const std::int32_t before = std::exchange(assembled_, into);
  for (NodeIndex input : entry.inputs) {
    part.shape = graph_[input].shape;
    IMPRINT_CHECK(compute_into(input, part));
    part.offset += part.strides[at(axis)] * part.shape[axis];
  }
  assembled_ = before;
  return {};
}

Result<> Lowering::compute_into(NodeIndex node, const Strided& to) {
  const bool has_memory = in_memory(node) || computed_.contains(node) ||
                          std::ranges::find(task_->stores, node, &Store::node) != task_->stores.end();
  if (has_memory || graph_[node].kind() != OpKind::elementwise) {
    IMPRINT_ASSIGN(const Strided source, find(node));
    add(copy_step(source, to), {source.buffer, to.buffer});
    return {};
  }
  ChainBuilder chain(*this, to.shape.element_count());
  IMPRINT_ASSIGN(const std::int32_t result, chain.value(node));
  chain.store(result, to);
  std::vector<std::int32_t> buffers;
  Chain finished = chain.finish(-1, buffers);
  add(std::move(finished), {}, buffers);
  return {};
}

// Kernels whose layout is not the one that products read, such as a convolution's.
std::optional<Strided> Lowering::constant_copy(const Strided& from, const Shape& shape) {
  if (!constants_.contains(from.buffer) || shape.element_count() == 0) return {};
  const Strided to = row_major(buffer_count_++, shape);
  arena_index_.push_back(-1);
  is_variable_.push_back(0);
  constants_.insert(to.buffer);
  const std::uint64_t bytes = at(shape.element_count()) * sizeof(Word);
  executable_.constant_copies_.push_back(make_zeroed_bytes(bytes));
  prefer_large_pages(executable_.constant_copies_.back().get(), bytes);
  executable_.constant_copy_bytes_ += bytes;
  executable_.buffers_.push_back(executable_.constant_copies_.back().get());
  const auto step = copy_step(from, row_major(to.buffer, from.shape));
  step->run({executable_.buffers_.data(), nullptr}, {0, step->part_count()});
  return to;
}

void Lowering::forget(NodeIndex node) {
  for (; graph_[node].kind() == OpKind::view; node = graph_[node].inputs[0]) computed_.erase(node);
}

std::shared_ptr<const WholeOperand> Lowering::find_whole(NodeIndex node, const Strided& operand, bool left) {
  if (!constants_.contains(operand.buffer)) return nullptr;
  const auto [known, fresh] = whole_.try_emplace({node, left});
  if (!fresh) return known->second;
  const auto* const buffer = reinterpret_cast<const float*>(executable_.buffers_[at(operand.buffer)]);
  known->second = whole_operand(buffer, operand, left, kernels_);
  if (known->second) executable_.constant_copy_bytes_ += known->second->numbers.size() * sizeof(std::int32_t);
  return known->second;
}

bool Lowering::find_patches(NodeIndex node, const Strided& left, const WindowMatrix& windows,
                            ProductOptions& options) {
  const UsedProduct& used = options.used;
  if (options.whole || used.elements.extent >= 0 || used.depth.extent >= 0) return false;
  if (!constants_.contains(left.buffer)) return false;
  const auto* const buffer = reinterpret_cast<const float*>(executable_.buffers_[at(left.buffer)]);
  auto& known = patches_[node];
  options.patches = PatchOperand::make(buffer, left, windows, kernels_, few_copies_, known);
  if (!options.patches) return false;
  if (options.patches != known) executable_.constant_copy_bytes_ += options.patches->bytes();
  known = options.patches;
  workspace_ = std::max(workspace_, known->scratch());
  return true;
}

Result<std::optional<WindowMatrix>> Lowering::find_windows(NodeIndex node) {
  NodeIndex source = node;
  while (graph_[source].op == Op::reshape && !in_memory(source) && !computed_.contains(source))
    source = graph_[source].inputs[0];
  if (source == node || !reads_windows(source)) return std::optional<WindowMatrix>();
  IMPRINT_ASSIGN(const Strided found, find(source));
  if (reshaped(found, graph_[node].shape)) return std::optional<WindowMatrix>();
  return window_matrix(found, graph_[node].shape);
}

// Threads share the columns of weights that each run reads from far away. Elsewhere they share rows, as steps
// before and after share the elements of the result: data takes longer from core to core than a second copy
// of the right operand's panels.
bool Lowering::is_constant(NodeIndex node) const {
  const NodeIndex source = graph_.without_views(node);
  return is_memory_leaf(graph_[source]) && schedule_.place[at(source)].kind == PlaceKind::constant;
}

ProductOptions Lowering::product_options(NodeIndex node, std::shared_ptr<const WholeOperand> whole) const {
  ProductOptions options{used_product(node), std::move(whole)};
  if (executable_.pool_) options.threads = executable_.pool_->threads();
  const bool has_weights = is_memory_leaf(graph_[graph_.without_views(graph_[node].inputs[1])]);
  options.by_columns = has_weights && !constants_stay_;
  options.is_convolution =
      !has_weights && is_memory_leaf(graph_[graph_.without_views(graph_[node].inputs[0])]);
  options.fuses = is_constant(graph_[node].inputs[0]) || is_constant(graph_[node].inputs[1]);
  return options;
}

Result<> Lowering::compute_copy(const Strided& from, std::int32_t into) {
  add(copy_step(from, row_major(into, from.shape), used_elements(from.shape)), {from.buffer, into});
  return {};
}

}  // namespace imprint::cpu
