#include "compute/program/program.h"

#include <algorithm>

#include "compute/program/program_impl.h"

namespace imprint {

Update Update::assign(Variable target, Tensor value) { return {std::move(target), std::move(value), Tensor(), false}; }

Update Update::scatter_rows(Variable target, Tensor rows, Tensor value) { return {std::move(target), std::move(value), std::move(rows), true}; }

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Result<Program> Program::compile(Runtime& runtime, const ProgramDescription& description) {
  IMPRINT_ASSIGN(ProgramGraph source, build_program_graph(description));
  IMPRINT_ASSIGN(std::unique_ptr<Impl> impl, Impl::compile(static_cast<RuntimeImpl&>(runtime), std::move(source)));
  return Program(std::move(impl));
}

const std::string& Program::name() const { return impl_->source.name; }
const ProgramStats& Program::stats() const { return impl_->stats; }

std::vector<std::string> Program::glsl() const {
  std::vector<std::string> sources;
  for (const DispatchSource& dispatch : impl_->dispatches) sources.push_back(dispatch.glsl);
  for (const Impl::Part& part : impl_->parts)
    for (const DispatchSource& dispatch : part.impl->dispatches) sources.push_back(dispatch.glsl);
  return sources;
}

std::uint32_t Program::slot_count() const { return impl_->source.slots; }

std::span<std::byte> Program::input_bytes(std::uint32_t slot, std::size_t index) {
  if (slot >= impl_->source.slots || index >= impl_->source.inputs.size()) return {};
  const Port& port = impl_->source.inputs[index];
  if (port.bytes == 0) return {};
  return {static_cast<std::byte*>(impl_->upload_slots[slot].mapped) + port.offset, static_cast<std::size_t>(port.bytes)};
}

std::span<const std::byte> Program::output_bytes(std::uint32_t slot, std::size_t index) const {
  if (slot >= impl_->source.slots || index >= impl_->source.outputs.size()) return {};
  const Port& port = impl_->source.outputs[index];
  if (port.bytes == 0) return {};
  return {static_cast<const std::byte*>(impl_->readback_slots[slot].mapped) + port.offset, static_cast<std::size_t>(port.bytes)};
}

const Shape& Program::output_shape(std::size_t index) const { return impl_->source.outputs[index].shape; }
const Shape& Program::input_shape(std::size_t index) const { return impl_->source.inputs[index].shape; }

std::uint32_t Program::piece_count() const { return impl_->stats.dispatches + 2; }

std::uint32_t Program::first_state_write() const { return std::min(impl_->first_write({}) + 1, piece_count()); }
std::uint32_t Program::first_shared_write() const { return std::min(impl_->first_write(impl_->own) + 1, piece_count()); }

// Counted in dispatches; past the end when none does.
std::uint32_t Program::Impl::first_write(std::span<const Variable> but) const {
  const auto counts = [&](const Place& place) {
    if (place.kind != PlaceKind::variable) return false;
    const VariableState* written = schedule.variables[static_cast<std::size_t>(place.index)].get();
    return std::ranges::none_of(but, [&](const Variable& variable) { return variable.state().get() == written; });
  };
  for (std::size_t i = 0; i < dispatches.size(); ++i)
    for (std::int32_t t : dispatches[i].tasks)
      for (const Store& store : schedule.tasks[static_cast<std::size_t>(t)].stores)
        if (counts(store.place)) return static_cast<std::uint32_t>(i);
  std::uint32_t before = 0;
  for (const Part& part : parts) {
    const auto own_dispatches = static_cast<std::uint32_t>(part.impl->dispatches.size());
    const std::uint32_t first = part.impl->first_write(but);
    if (part.repeat > 0 && first < own_dispatches) return before + first;
    before += own_dispatches * part.repeat;
  }
  return stats.dispatches + 1;
}

std::span<const VkCommandBuffer> Program::pieces(std::uint32_t slot, VkCommandBufferLevel level) const {
  if (slot >= impl_->source.slots) return {};
  return level == VK_COMMAND_BUFFER_LEVEL_PRIMARY ? impl_->primary_pieces[slot] : impl_->secondary_pieces[slot];
}

VkCommandBuffer Program::whole(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < impl_->source.slots ? impl_->whole_commands[slot].get(level) : VK_NULL_HANDLE;
}

}  // namespace imprint
