#include "compute/program/program_body.h"

#include <algorithm>

#include "compute/base/text.h"

namespace imprint {

using namespace program;

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

const std::string& Program::name() const { return body_->source.name; }
const ProgramStats& Program::stats() const { return body_->stats; }
std::string Program::explain() const { return body_->explain(); }
std::vector<ScheduleFigures> Program::schedule() const { return body_->schedule_figures(); }
std::vector<std::string> Program::glsl() const { return body_->glsl(); }

std::vector<VkPipeline> Program::pipelines() const {
  std::vector<VkPipeline> list;
  body_->add_pipelines(list);
  return list;
}

std::uint32_t Program::slot_count() const { return body_->source.slot_count; }

std::span<std::byte> Program::input_bytes(std::uint32_t slot, std::size_t index) {
  if (slot >= body_->source.slot_count || index >= body_->source.inputs.size()) return {};
  const Port& port = body_->source.inputs[index];
  if (port.bytes == 0) return {};
  return {body_->input_memory(slot) + port.offset, static_cast<std::size_t>(port.bytes)};
}

std::span<const std::byte> Program::output_bytes(std::uint32_t slot, std::size_t index) const {
  if (slot >= body_->source.slot_count || index >= body_->source.outputs.size()) return {};
  const Port& port = body_->source.outputs[index];
  if (port.bytes == 0) return {};
  return {body_->output_memory(slot) + port.offset, static_cast<std::size_t>(port.bytes)};
}

const Shape& Program::output_shape(std::size_t index) const { return body_->source.outputs[index].shape; }
const Shape& Program::input_shape(std::size_t index) const { return body_->source.inputs[index].shape; }

std::uint32_t Program::piece_count() const { return body_->stats.dispatches + 2; }

bool Program::adds_up() const { return !body_->stretches(0).empty(); }

std::uint32_t Program::first_state_write() const {
  return std::min(body_->first_write({}) + 1, piece_count());
}
std::uint32_t Program::first_shared_write() const {
  return std::min(body_->first_write(body_->own) + 1, piece_count());
}

std::span<const VkCommandBuffer> Program::pieces(std::uint32_t slot, VkCommandBufferLevel level) const {
  if (slot >= body_->source.slot_count) return {};
  return body_->pieces(slot, level);
}

std::uint32_t Program::commit_piece() const { return std::min(first_shared_write(), piece_count() - 1); }

VkCommandBuffer Program::head(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < body_->source.slot_count ? body_->head(slot, level) : VK_NULL_HANDLE;
}

VkCommandBuffer Program::tail(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < body_->source.slot_count ? body_->tail(slot, level) : VK_NULL_HANDLE;
}

VkCommandBuffer Program::whole(std::uint32_t slot, VkCommandBufferLevel level) const {
  return slot < body_->source.slot_count ? body_->whole(slot, level) : VK_NULL_HANDLE;
}

void Program::encode(VkCommandBuffer commands, std::uint32_t slot) const {
  if (slot < body_->source.slot_count) body_->encode(commands, slot);
}

Result<> Program::run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) {
  if (slot >= body_->source.slot_count || first > piece_count() || count > piece_count() - first)
    return make_error(
        ErrorCode::invalid_argument,
        text("run_pieces '", name(), "': found pieces ", first, " .. ", std::uint64_t{first} + count,
             " of slot ", slot, ", expected up to ", piece_count(), " pieces of ", slot_count(), " slots"));
  return body_->run_pieces(slot, first, count);
}

}  // namespace imprint
