#pragma once
// GPU time of the parts of a frame, by timestamps. Every command it needs is recorded at create time; results
// are read only once they are there.

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
  static constexpr std::uint32_t kFrames = 8;  // that may be in flight and timed; further ones are not timed
  static constexpr std::uint32_t kSections = 4;  // of a frame; what goes beyond is timed with the last one

  struct Times {
    std::uint32_t entry = 0;            // as open() gave it
    std::array<float, kSections> us{};  // 0 for a section that was not used
  };

  // Without timestamps in the queue family all is well too: open() then never gives an entry.
  static Result<std::unique_ptr<GpuTimer>> create(vk::Device& device);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  Status set_host_use(
      const HostUse& host);  // create-time: what finish's barrier is towards; at first, nothing of the host's

  // ---- frame thread ----
  std::optional<std::uint32_t> open();  // a place in the ring for this frame; empty when all are in flight
  // begin: a global barrier, then the time. end: the time when everything before is done. Once each for a
  // section. turn: the end of the section before and the begin of this one, where nothing stands between
  // them. finish: an end with the frame's exit barrier.
  VkCommandBuffer begin(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level);
  VkCommandBuffer turn(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level);
  VkCommandBuffer end(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level) const;
  VkCommandBuffer finish(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level) const;
  void forget(std::uint32_t entry,
              std::uint32_t first_section);            // sections from this one on were not issued after all
  void close(std::uint32_t entry, vk::Ticket ticket);  // complete with the ticket; {0}: nothing was issued

  // The oldest frame whose work is complete and whose times were not yet read.
  std::optional<Times> read(vk::Ticket complete);

 private:
  struct Entry {
    std::array<Commands, kSections> begin, turn, end, finish;  // no turn to the first section
    std::uint32_t used = 0;                                    // bit by section
    vk::Ticket ticket;
  };

  explicit GpuTimer(vk::Device& device) : device_(device) {}
  void record_time(VkCommandBuffer commands, std::uint32_t query) const;
  Status record_finishes(const HostUse& host);  // all, or none

  vk::Device& device_;
  HostUse host_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::unique_ptr<CommandSet> commands_;
  std::vector<Entry> entries_;
  std::uint32_t next_ = 0, oldest_ = 0, open_count_ = 0;
};

// A timestamp difference in microseconds, for counters of fewer than 64 bits too.
float timestamp_us(const vk::Capabilities& capabilities, std::uint64_t begin, std::uint64_t end);

}  // namespace imprint::bridge
