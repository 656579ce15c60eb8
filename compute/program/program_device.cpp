// A device's program as a Program::Body: pieces, memory and commands.

#include "compute/base/text.h"
#include "compute/program/program_impl.h"
#include "compute/program/task_work.h"

namespace imprint {

using namespace kernels;
using namespace program;

std::vector<std::string> Program::Impl::glsl() const {
  std::vector<std::string> sources;
  for (const DispatchSource& dispatch : dispatches) sources.push_back(dispatch.glsl);
  for (const Part& part : parts)
    for (const DispatchSource& dispatch : part.impl->dispatches) sources.push_back(dispatch.glsl);
  return sources;
}

void Program::Impl::add_pipelines(std::vector<VkPipeline>& list) const {
  for (const vk::Kernel& kernel : kernels) list.push_back(kernel.pipeline);
  for (const Part& part : parts) part.impl->add_pipelines(list);
}

std::byte* Program::Impl::input_memory(std::uint32_t slot) {
  return static_cast<std::byte*>(upload_slots[slot].mapped);
}
const std::byte* Program::Impl::output_memory(std::uint32_t slot) const {
  return static_cast<const std::byte*>(readback_slots[slot].mapped);
}

std::uint32_t Program::Impl::first_write(std::span<const Variable> except) const {
  for (std::size_t i = 0; i < dispatches.size(); ++i)
    for (std::int32_t t : dispatches[i].tasks)
      if (writes_state(schedule, schedule.tasks[static_cast<std::size_t>(t)], except))
        return static_cast<std::uint32_t>(i);
  std::uint32_t before = 0;
  for (const PartRun& run : runs) {
    const Impl& part = *parts[run.part].impl;
    const auto own_dispatches = static_cast<std::uint32_t>(part.dispatches.size());
    const std::uint32_t first = part.first_write(except);
    if (first < own_dispatches) return before + first;
    before += own_dispatches * run.turns;
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

Result<> Program::Impl::run_pieces(std::uint32_t, std::uint32_t, std::uint32_t) {
  return make_error(
      ErrorCode::unsupported,
      text("run_pieces '", source.name,
           "': found a program for a device, expected one for the CPU. Submit its command buffers."));
}

}  // namespace imprint
