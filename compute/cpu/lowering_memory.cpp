// Buffers, the memory of those that a run computes, and how much of them it uses.

#include <algorithm>
#include <map>

#include "compute/base/large_pages.h"
#include "compute/base/text.h"
#include "compute/cpu/lowering.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

constexpr std::uint64_t kAlignment = 64;  // a cache line, and the widest vector

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::int32_t Lowering::buffer_of(const Place& place) {
  const auto [known, fresh] = buffer_of_place_.try_emplace(key_of(place), buffer_count_);
  if (!fresh) return known->second;
  if (place.kind == PlaceKind::temporary) return arena_buffer(graph_[place.index].shape);
  const std::int32_t buffer = buffer_count_++;
  arena_index_.push_back(-1);
  is_variable_.push_back(place.kind == PlaceKind::variable);
  executable_.buffers_.push_back(nullptr);
  switch (place.kind) {
    case PlaceKind::input:
      executable_.inputs_.push_back({buffer, place.index});
      break;
    case PlaceKind::output:
      executable_.outputs_.push_back({buffer, place.index});
      break;
    case PlaceKind::variable:
      executable_.variables_.push_back({buffer, place.index});
      break;
    default: {
      const NodeRef& source = graph_[place.index].source;
      executable_.constants_.push_back(source);
      constants_.insert(buffer);
      // Read only.
      executable_.buffers_.back() = const_cast<std::byte*>(source->constant->bytes.data());
    }
  }
  return buffer;
}

bool Lowering::is_packed(NodeIndex node, const Place& place) const {
  return place.kind != PlaceKind::temporary && dtype_size(graph_[node].dtype) < sizeof(Word);
}

std::int32_t Lowering::unpacked_buffer_of(const Store& store) {
  return is_packed(store.node, store.place) ? arena_buffer(graph_[store.node].shape) : buffer_of(store.place);
}

void Lowering::pack(const Store& store, std::int32_t from) {
  if (!is_packed(store.node, store.place)) return;
  const GraphNode& node = graph_[store.node];
  const std::int32_t into = buffer_of(store.place);
  add(pack_step(row_major(from, node.shape), node.dtype, into), {from, into});
}

std::int32_t Lowering::arena_buffer(const Shape& shape) {
  const std::int32_t buffer = buffer_count_++;
  arena_index_.push_back(static_cast<std::int32_t>(arena_.size()));
  is_variable_.push_back(0);
  arena_.push_back({buffer, {at(shape.element_count()) * sizeof(Word), -1, -1}});
  executable_.buffers_.push_back(nullptr);
  return buffer;
}

std::int32_t Lowering::destination(NodeIndex node) {
  for (const Store& store : task_->stores)
    if (store.node == node && store.row_indices < 0 && !is_packed(node, store.place) &&
        (store.place.kind == PlaceKind::temporary || store.place.kind == PlaceKind::output))
      return buffer_of(store.place);
  return arena_buffer(graph_[node].shape);
}

void Lowering::add(std::unique_ptr<Step> step, std::span<const std::int32_t> buffers) {
  executable_.steps_.push_back(std::move(step));
  use_now(buffers);
}

void Lowering::add_open(NodeIndex node, std::unique_ptr<OpenStep> step,
                        std::span<const std::int32_t> buffers) {
  if (!step) return;
  const PlaceKind kind = schedule_.place[at(node)].kind;
  const bool has_one_reader =
      readers_[at(node)] >= 0 && (kind == PlaceKind::none || kind == PlaceKind::temporary);
  const auto index = static_cast<std::int32_t>(executable_.steps_.size());
  open_.insert_or_assign(step->result(), OpenResult{step.get(), index, task_, has_one_reader});
  workspace_ = std::max(workspace_, step->scratch());
  add(std::move(step), buffers);
}

// The chain becomes a part of the step whose result it reads, if it can.
void Lowering::add(Chain chain, UsedPart used, std::span<const std::int32_t> buffers) {
  if (chain.count == 0) return;
  for (const Register& entry : chain.registers) {
    const auto found = used.extent < 0 && entry.offset == 0 ? open_.find(entry.buffer) : open_.end();
    if (found == open_.end()) continue;
    const OpenResult open = found->second;
    const std::int32_t result = found->first;
    if (!can_move(chain, open, buffers)) continue;
    const std::int64_t scratch = chain.scratch;
    if (!open.step->take(chain, open.has_one_reader, open.task != task_)) continue;
    workspace_ = std::max(workspace_, open.step->scratch() + scratch);
    use_at(buffers, open.index);
    open_.erase(found);
    if (open.step->result() != result || !open.step->stores_result())
      arena_[at(arena_index_[at(result)])].lifetime.bytes = 0;
    return;
  }
  add(std::make_unique<MapStep>(std::move(chain), used), buffers);
}

// Whether the chain may run with an earlier step. Steps between must not touch what it reads and writes,
// except other parts of a value that is put together. If the step belongs to an earlier task, the chain must
// not write what a host sees: other work may run between the tasks.
bool Lowering::can_move(const Chain& chain, const OpenResult& open,
                        std::span<const std::int32_t> buffers) const {
  const bool is_next = open.index + 1 == static_cast<std::int32_t>(executable_.steps_.size());
  return std::ranges::all_of(buffers, [&](std::int32_t buffer) {
    const bool is_written = chain.writes(buffer), is_own = arena_index_[at(buffer)] >= 0;
    if (is_next) return is_own || !is_written || open.task == task_;
    if (!is_own) return !is_written && constants_.contains(buffer);
    return buffer == assembled_ || arena_[at(arena_index_[at(buffer)])].lifetime.last <= open.index;
  });
}

// The last step uses them.
void Lowering::use_now(std::span<const std::int32_t> buffers) {
  use_at(buffers, static_cast<std::int32_t>(executable_.steps_.size()) - 1);
}

void Lowering::use_at(std::span<const std::int32_t> buffers, std::int32_t step) {
  for (const std::int32_t buffer : buffers) {
    const std::int32_t index = arena_index_[at(buffer)];
    if (index < 0) continue;
    Lifetime& lifetime = arena_[at(index)].lifetime;
    lifetime.first = lifetime.first < 0 ? step : std::min(lifetime.first, step);
    lifetime.last = std::max(lifetime.last, step);
  }
}

// Each run writes the inside of a padded value again. If only values with the same border share its memory,
// the border stays.
void Lowering::add_border(const GraphNode& pad, std::unique_ptr<Step> step, std::int32_t into) {
  if (arena_index_[at(into)] < 0) return add(std::move(step), {into});
  std::vector<std::int64_t> border{word_of(pad.floats[0], pad.dtype)};
  for (int axis = 0; axis < pad.shape.rank(); ++axis) border.push_back(pad.shape[axis]);
  border.insert(border.end(), pad.ints.begin(), pad.ints.end());
  const auto next = static_cast<std::int64_t>(border_numbers_.size());
  arena_[at(arena_index_[at(into)])].border =
      border_numbers_.try_emplace(std::move(border), next).first->second;
  auto same = std::make_unique<SameStep>(std::move(step));
  borders_.push_back(same.get());
  add(std::move(same), {into});
}

// Threads divide values of one size in the same way. If only these share memory, a thread writes to lines
// that it has in its cache: those of other cores cost ten times as much.
MemoryPlan Lowering::plan(bool by_size, bool keeps_borders) const {
  std::map<std::pair<std::int64_t, std::uint64_t>, std::vector<std::size_t>> values;  // that may share memory
  for (std::size_t i = 0; i < arena_.size(); ++i)
    values[{keeps_borders ? arena_[i].border : -1, by_size ? arena_[i].lifetime.bytes : 0}].push_back(i);
  MemoryPlan all;
  all.offsets.resize(arena_.size());
  for (const auto& [alike, indices] : values) {
    std::vector<Lifetime> lifetimes;
    for (const std::size_t i : indices) lifetimes.push_back(arena_[i].lifetime);
    const MemoryPlan part = plan_memory(lifetimes, kAlignment);
    for (std::size_t i = 0; i < indices.size(); ++i)
      all.offsets[indices[i]] = all.total_bytes + part.offsets[i];
    all.total_bytes += aligned(part.total_bytes);
    all.unplanned_bytes += part.unplanned_bytes;
  }
  return all;
}

Result<> Lowering::plan_arena(std::uint64_t memory_limit) {
  const std::uint64_t workspace = aligned(static_cast<std::uint64_t>(workspace_) * sizeof(Word)),
                      workspaces = workspace * (executable_.is_shared_ ? executable_.pool_->threads() : 1),
                      others = workspaces + kAlignment + executable_.constant_copy_bytes_;
  bool keeps_borders = true;
  MemoryPlan found = plan(executable_.is_shared_, keeps_borders);
  if (!executable_.is_shared_ && !borders_.empty()) {
    MemoryPlan least = plan(false, false);
    keeps_borders = found.total_bytes <= 2 * least.total_bytes + least.total_bytes / 2;
    if (!keeps_borders) found = std::move(least);
  }
  if (found.total_bytes + others > memory_limit) found = plan(false, keeps_borders = false);
  executable_.arena_bytes_ = found.total_bytes;
  executable_.unplanned_bytes_ = found.unplanned_bytes;
  executable_.memory_bytes_ = found.total_bytes + others;
  if (executable_.memory_bytes_ > memory_limit)
    return make_error(ErrorCode::out_of_device_memory,
                      text("intermediates: found ", executable_.memory_bytes_, " bytes, expected at most ",
                           memory_limit, ", which the memory cap leaves"));
  executable_.arena_ = make_zeroed_bytes(executable_.memory_bytes_);
  prefer_large_pages(executable_.arena_.get(), executable_.memory_bytes_);
  std::byte* begin = executable_.arena_.get();
  begin += aligned(reinterpret_cast<std::uintptr_t>(begin)) - reinterpret_cast<std::uintptr_t>(begin);
  executable_.workspace_ = begin;
  executable_.workspace_bytes_ = workspace;
  for (std::size_t i = 0; i < arena_.size(); ++i)
    executable_.buffers_[at(arena_[i].buffer)] = begin + workspaces + found.offsets[i];
  if (keeps_borders)
    for (SameStep* border : borders_) border->run_once(executable_.memory_of(0));
  return {};
}

// ---- named extents ----

UsedPart Lowering::used_part(const AxisPart& part) const {
  for (std::size_t i = 0; i < schedule_.extents.size() && !part.extent.empty(); ++i)
    if (schedule_.extents[i].name == part.extent) return {static_cast<std::int32_t>(i), part.bound};
  return {};
}

UsedPart Lowering::used_along(const Shape& shape, int axis) const {
  return schedule_.extents.empty() ? UsedPart{} : used_part(shape.parts(axis)[0]);
}

UsedPart Lowering::used_elements(const Shape& shape) const {
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) return used_along(shape, axis);
  return {};
}

UsedPart Lowering::used_elements(const Task& task) const {
  std::optional<UsedPart> common;
  for (const Store& store : task.stores) {
    if (store.row_indices >= 0) continue;
    const UsedPart own = used_elements(graph_[store.node].shape);
    if (common && common->extent != own.extent) return {};
    common = own;
  }
  return common.value_or(UsedPart{});
}

UsedProduct Lowering::used_product(NodeIndex node) const {
  const GraphNode& product = graph_[node];
  const int rank = product.shape.rank();
  UsedProduct used;
  for (int axis = 0; axis < rank - 1; ++axis)
    if (product.shape[axis] != 1) {
      used.elements = used_along(product.shape, axis);
      break;
    }
  used.depth = used_along(shape_behind_mask(graph_, product.inputs[0]), rank - 1);
  if (used.depth.extent < 0) used.depth = used_along(shape_behind_mask(graph_, product.inputs[1]), rank - 2);
  return used;
}

// The sums of a program with fixed extents: they have no terms beyond.
void Lowering::use_parts(ReduceStep& step, const Shape& source, std::span<const int> order) const {
  if (order.empty() || order[0] == 0) step.use(used_elements(source));
  if (!order.empty()) return;
  UsedLine line;
  std::int64_t places = 1;  // behind the part, in the line
  for (int axis = source.rank() - 1; axis >= 0 && places < step.line(); --axis) {
    const std::vector<AxisPart> parts = source.parts(axis);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const UsedPart used = used_part(*part);
      if (used.extent >= 0) {
        if (line.digits.empty()) line.run = places;
        line.digits.push_back({places / line.run, part->places(), used});
      }
      places *= part->places();
    }
  }
  if (places == step.line()) step.use_line(std::move(line));
}

}  // namespace imprint::cpu
