#pragma once
// GPU time of the sections of a frame, by timestamps. All commands are recorded at create time. Results are
// read only after the work has completed.

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"
#include "engine-bridge/frame/command_set.h"

namespace imprint::bridge {

class GpuTimer {
 public:
  static constexpr std::uint32_t kFrames = 8;    // timed at once; more frames in flight are not timed
  static constexpr std::uint32_t kSections = 4;  // per frame; the last one times everything that is left

  struct Times {
    std::uint32_t entry = 0;            // from open()
    std::array<float, kSections> us{};  // 0 for a section that was not used
  };

  // Without timestamps in the queue family, open() never gives an entry.
  static Result<std::unique_ptr<GpuTimer>> create(vk::Device& device);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  // Timestamps without a reader: a driver may take memory at the first ones. Null without timestamps.
  VkCommandBuffer rehearsal() const { return rehearsal_.primary; }

  Result<> set_host_use(const HostUse& host);  // create-time: for the exit barrier in finish; none at first

  // ---- frame thread ----
  std::optional<std::uint32_t> open();  // an entry for this frame; empty when all are in flight
  // begin: a global barrier, then the start time. end: the end time, after everything before. Once each per
  // section. next_section: the end of the section before and the start of this one in one. finish: an end
  // with the frame's exit barrier.
  VkCommandBuffer begin(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level);
  VkCommandBuffer next_section(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level);
  VkCommandBuffer end(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level) const;
  VkCommandBuffer finish(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level) const;
  void forget(std::uint32_t entry, std::uint32_t first_section);  // from this section on, nothing was issued
  void close(std::uint32_t entry, vk::Ticket ticket);  // complete with the ticket; {0}: nothing was issued

  // The oldest complete frame that has not been read.
  std::optional<Times> read(vk::Ticket complete);

 private:
  struct Entry {
    std::array<Commands, kSections> begin, next, end, finish;  // no next for section 0
    std::uint32_t used = 0;                                    // a bit per section
    vk::Ticket ticket;
  };

  explicit GpuTimer(vk::Device& device) : device_(device) {}
  void record_time(VkCommandBuffer commands, std::uint32_t query) const;
  Result<> record_finishes(const HostUse& host);  // all, or none

  vk::Device& device_;
  HostUse host_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::unique_ptr<CommandSet> commands_;
  std::vector<Entry> entries_;
  Commands rehearsal_;
  std::uint32_t next_ = 0, oldest_ = 0, open_count_ = 0;
};

// Microseconds between two timestamps. Counters may have fewer than 64 bits.
float timestamp_us(const vk::Capabilities& capabilities, std::uint64_t begin, std::uint64_t end);

}  // namespace imprint::bridge
