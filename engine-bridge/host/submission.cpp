#include "engine-bridge/host/submission.h"

namespace imprint::bridge {
namespace {

void list(std::span<const HostSemaphore> from, std::vector<VkSemaphore>& semaphores,
          std::vector<std::uint64_t>& values) {
  semaphores.clear();
  values.clear();
  for (const HostSemaphore& semaphore : from) {
    semaphores.push_back(semaphore.semaphore);
    values.push_back(semaphore.value);
  }
}

void list(std::span<const VkSemaphore> semaphores, std::span<const std::uint64_t> values,
          VkPipelineStageFlags2 stages, std::vector<VkSemaphoreSubmitInfo>& infos) {
  infos.clear();
  for (std::size_t i = 0; i < semaphores.size(); ++i) {
    VkSemaphoreSubmitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
    info.semaphore = semaphores[i];
    info.value = values[i];  // ignored for binary semaphores
    info.stageMask = stages;
    infos.push_back(info);
  }
}

// Null for an empty list: hosts may check that a pointer has a count.
template <class T>
const T* data_of(const std::vector<T>& list) {
  return list.empty() ? nullptr : list.data();
}

}  // namespace

Submission::Submission() {
  commands_.reserve(512);
  commands_2_.reserve(512);
  for (std::vector<VkSemaphore>* semaphores : {&waits_, &completions_}) semaphores->reserve(17);
  for (std::vector<std::uint64_t>* values : {&wait_values_, &signal_values_}) values->reserve(17);
  for (std::vector<VkSemaphoreSubmitInfo>* semaphores : {&waits_2_, &signals_2_}) semaphores->reserve(17);
  wait_stages_.reserve(17);
}

void Submission::fill(vk::Ticket ticket, VkSemaphore timeline, VkFence fence,
                      std::span<const VkCommandBuffer> commands, std::span<const HostSemaphore> waits,
                      std::span<const HostSemaphore> completions, const char* label) {
  label_ = label;
  ticket_ = ticket;
  fence_ = fence;
  has_values_ = timeline != VK_NULL_HANDLE;
  commands_.assign(commands.begin(), commands.end());
  list(waits, waits_, wait_values_);
  list(completions, completions_, signal_values_);
  wait_stages_.assign(waits.size(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                        VK_PIPELINE_STAGE_TRANSFER_BIT);  // all stages that Imprint uses
  if (!timeline) return;
  completions_.push_back(timeline);
  signal_values_.push_back(ticket.value);
}

const VkSubmitInfo& Submission::info() {
  values_ = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values_.waitSemaphoreValueCount = static_cast<std::uint32_t>(wait_values_.size());
  values_.pWaitSemaphoreValues = data_of(wait_values_);
  values_.signalSemaphoreValueCount = static_cast<std::uint32_t>(signal_values_.size());
  values_.pSignalSemaphoreValues = data_of(signal_values_);
  info_ = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  if (has_values_) info_.pNext = &values_;
  info_.waitSemaphoreCount = static_cast<std::uint32_t>(waits_.size());
  info_.pWaitSemaphores = data_of(waits_);
  info_.pWaitDstStageMask = data_of(wait_stages_);
  info_.commandBufferCount = static_cast<std::uint32_t>(commands_.size());
  info_.pCommandBuffers = data_of(commands_);
  info_.signalSemaphoreCount = static_cast<std::uint32_t>(completions_.size());
  info_.pSignalSemaphores = data_of(completions_);
  return info_;
}

const VkSubmitInfo2& Submission::info2() {
  constexpr VkPipelineStageFlags2 kWorkStages2 =
      VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_COPY_BIT | VK_PIPELINE_STAGE_2_CLEAR_BIT;
  list(waits_, wait_values_, kWorkStages2, waits_2_);
  list(completions_, signal_values_, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
       signals_2_);  // timestamps belong to no work stage
  commands_2_.clear();
  for (const VkCommandBuffer commands : commands_) {
    VkCommandBufferSubmitInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
    info.commandBuffer = commands;
    commands_2_.push_back(info);
  }
  info_2_ = {VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  info_2_.waitSemaphoreInfoCount = static_cast<std::uint32_t>(waits_2_.size());
  info_2_.pWaitSemaphoreInfos = data_of(waits_2_);
  info_2_.commandBufferInfoCount = static_cast<std::uint32_t>(commands_2_.size());
  info_2_.pCommandBufferInfos = data_of(commands_2_);
  info_2_.signalSemaphoreInfoCount = static_cast<std::uint32_t>(signals_2_.size());
  info_2_.pSignalSemaphoreInfos = data_of(signals_2_);
  return info_2_;
}

}  // namespace imprint::bridge
