#include "compute/program/program.h"

#include <algorithm>

#include "compute/base/host_memory.h"
#include "compute/graph/cost.h"
#include "compute/program/cpu_program.h"
#include "compute/program/program_impl.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;
using namespace tensor;

Update Update::assign(Variable target, Tensor value) {
  return {std::move(target), std::move(value), Tensor(), false};
}

Update Update::scatter_rows(Variable target, Tensor rows, Tensor value) {
  return {std::move(target), std::move(value), std::move(rows), true};
}

Program::Program(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Result<Program> Program::compile(Runtime& runtime, const ProgramDescription& description) {
  return within_host_memory("program '" + description.name + "'", [&]() -> Result<Program> {
    IMPRINT_ASSIGN(ProgramGraph source, build_program_graph(description));
    IMPRINT_ASSIGN(std::unique_ptr<Body> body, Body::compile(runtime, std::move(source)));
    return Program(std::move(body));
  });
}

Result<Program> Program::compile(Runtime& runtime, const ProgramSequence& sequence) {
  return within_host_memory("program '" + sequence.name + "'", [&]() -> Result<Program> {
    if (runtime.on_cpu()) {
      IMPRINT_ASSIGN(std::unique_ptr<Body> body, CpuProgram::compile(runtime, sequence));
      return Program(std::move(body));
    }
    IMPRINT_ASSIGN(std::unique_ptr<Body> body, Impl::compile(static_cast<RuntimeImpl&>(runtime), sequence));
    return Program(std::move(body));
  });
}

Result<std::unique_ptr<Program::Body>> Program::Body::compile(Runtime& runtime, ProgramGraph source) {
  if (runtime.on_cpu()) return CpuProgram::compile(runtime, std::move(source));
  IMPRINT_ASSIGN(std::unique_ptr<Body> body,
                 Impl::compile(static_cast<RuntimeImpl&>(runtime), std::move(source)));
  return body;
}

const std::string& Program::name() const { return body_->source.name; }
const ProgramStats& Program::stats() const { return body_->stats; }
std::string Program::explain() const { return body_->explain(); }
std::vector<ScheduleFigures> Program::schedule() const { return body_->schedule_figures(); }
std::vector<std::string> Program::glsl() const { return body_->glsl(); }

std::uint32_t Program::slot_count() const { return body_->source.slots; }

std::span<std::byte> Program::input_bytes(std::uint32_t slot, std::size_t index) {
  if (slot >= body_->source.slots || index >= body_->source.inputs.size()) return {};
  const Port& port = body_->source.inputs[index];
  if (port.bytes == 0) return {};
  return {body_->input_memory(slot) + port.offset, static_cast<std::size_t>(port.bytes)};
}

std::span<const std::byte> Program::output_bytes(std::uint32_t slot, std::size_t index) const {
  if (slot >= body_->source.slots || index >= body_->source.outputs.size()) return {};
  const Port& port = body_->source.outputs[index];
  if (port.bytes == 0) return {};
  return {body_->output_memory(slot) + port.offset, static_cast<std::size_t>(port.bytes)};
}

const Shape& Program::output_shape(std::size_t index) const { return body_->source.outputs[index].shape; }
const Shape& Program::input_shape(std::size_t index) const { return body_->source.inputs[index].shape; }

std::uint32_t Program::piece_count() const { return body_->stats.dispatches + 2; }

std::uint32_t Program::first_state_write() const {
  return std::min(body_->first_write({}) + 1, piece_count());
}
std::uint32_t Program::first_shared_write() const {
  return std::min(body_->first_write(body_->own) + 1, piece_count());
}

std::span<const VkCommandBuffer> Program::pieces(std::uint32_t slot, VkCommandBufferLevel level) const {
  if (slot >= body_->source.slots) return {};
  return body_->pieces(slot, level);
}

std::uint32_t Program::commit_piece() const { return std::min(first_shared_write(), piece_count() - 1); }

VkCommandBuffer Program::head(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < body_->source.slots ? body_->head(slot, level) : VK_NULL_HANDLE;
}

VkCommandBuffer Program::tail(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < body_->source.slots ? body_->tail(slot, level) : VK_NULL_HANDLE;
}

VkCommandBuffer Program::whole(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < body_->source.slots ? body_->whole(slot, level) : VK_NULL_HANDLE;
}

void Program::encode(VkCommandBuffer commands, std::uint32_t slot) const {
  if (slot < body_->source.slots) body_->encode(commands, slot);
}

Status Program::run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) {
  if (slot >= body_->source.slots || first > piece_count() || count > piece_count() - first)
    return make_error(ErrorCode::invalid_argument,
                      "run_pieces '" + name() + "': pieces " + std::to_string(first) + " to " +
                          std::to_string(first + count) + " of slot " + std::to_string(slot) +
                          ": there are " + std::to_string(piece_count()) + " pieces and " +
                          std::to_string(slot_count()) + " slots");
  return body_->run_pieces(slot, first, count);
}

bool program::writes_state(const Schedule& schedule, const Task& task, std::span<const Variable> but) {
  return std::ranges::any_of(task.stores, [&](const Store& store) {
    if (store.place.kind != PlaceKind::variable) return false;
    const VariableState* written = schedule.variables[static_cast<std::size_t>(store.place.index)].get();
    return std::ranges::none_of(but,
                                [&](const Variable& variable) { return variable.state().get() == written; });
  });
}

void program::add_work(const Graph& graph, const Schedule& schedule, const Task& task, ProgramStats& stats) {
  const auto bytes = [&](NodeIndex node) {
    return static_cast<std::uint64_t>(graph[node].element_count()) * dtype_size(graph[node].dtype);
  };
  ++stats.kernels;
  for (const Read& read : task.reads) stats.bytes_moved += bytes(read.node);
  for (const Store& store : task.stores) stats.bytes_moved += bytes(store.node);
  stats.flops += static_cast<std::uint64_t>(task_operations(graph, schedule, task));
}

// ---- of a device ----

std::vector<std::string> Program::Impl::glsl() const {
  std::vector<std::string> sources;
  for (const DispatchSource& dispatch : dispatches) sources.push_back(dispatch.glsl);
  for (const Part& part : parts)
    for (const DispatchSource& dispatch : part.impl->dispatches) sources.push_back(dispatch.glsl);
  return sources;
}

std::byte* Program::Impl::input_memory(std::uint32_t slot) {
  return static_cast<std::byte*>(upload_slots[slot].mapped);
}
const std::byte* Program::Impl::output_memory(std::uint32_t slot) const {
  return static_cast<const std::byte*>(readback_slots[slot].mapped);
}

std::uint32_t Program::Impl::first_write(std::span<const Variable> but) const {
  for (std::size_t i = 0; i < dispatches.size(); ++i)
    for (std::int32_t t : dispatches[i].tasks)
      if (writes_state(schedule, schedule.tasks[static_cast<std::size_t>(t)], but))
        return static_cast<std::uint32_t>(i);
  std::uint32_t before = 0;
  for (const Part& part : parts) {
    const auto own_dispatches = static_cast<std::uint32_t>(part.impl->dispatches.size());
    const std::uint32_t first = part.impl->first_write(but);
    if (part.repeat > 0 && first < own_dispatches) return before + first;
    before += own_dispatches * part.repeat;
  }
  return stats.dispatches + 1;
}

std::span<const VkCommandBuffer> Program::Impl::pieces(std::uint32_t slot, VkCommandBufferLevel level) const {
  return level == VK_COMMAND_BUFFER_LEVEL_PRIMARY ? primary_pieces[slot] : secondary_pieces[slot];
}

VkCommandBuffer Program::Impl::head(std::uint32_t slot, VkCommandBufferLevel level) const {
  return head_commands.empty() ? VK_NULL_HANDLE : head_commands[slot].get(level);
}

VkCommandBuffer Program::Impl::tail(std::uint32_t slot, VkCommandBufferLevel level) const {
  return tail_commands.empty() ? VK_NULL_HANDLE : tail_commands[slot].get(level);
}

VkCommandBuffer Program::Impl::whole(std::uint32_t slot, VkCommandBufferLevel level) const {
  return whole_commands[slot].get(level);
}

Status Program::Impl::run_pieces(std::uint32_t, std::uint32_t, std::uint32_t) {
  return make_error(
      ErrorCode::unsupported,
      "run_pieces '" + source.name + "': it was compiled for a Vulkan device: submit its command buffers");
}

}  // namespace imprint
