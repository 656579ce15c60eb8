#include "engine-bridge/frame/gpu_timer.h"

#include <bit>
#include <utility>

#include "compute/vk/timestamps.h"

namespace imprint::bridge {

float timestamp_us(const vk::Capabilities& capabilities, std::uint64_t begin, std::uint64_t end) {
  return static_cast<float>(vk::elapsed_us(capabilities, begin, end));
}

Result<std::unique_ptr<GpuTimer>> GpuTimer::create(vk::Device& device) {
  std::unique_ptr<GpuTimer> timer(new GpuTimer(device));
  if (device.capabilities().timestamp_valid_bits == 0) return timer;
  const vk::Functions& f = device.functions();
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  constexpr std::uint32_t kRehearsal = kFrames * kSections * 2;
  info.queryCount = kRehearsal + 2;
  const VkResult result =
      f.vkCreateQueryPool(device.handle(), &info, device.allocation_callbacks(), &timer->queries_);
  if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkCreateQueryPool", result);
  IMPRINT_ASSIGN(timer->commands_, CommandSet::create(device));

  // Shared: a run that could not be waited for may still be pending when the next one is submitted.
  IMPRINT_ASSIGN(timer->rehearsal_, timer->commands_->record(true, [&](VkCommandBuffer commands) {
    f.vkCmdResetQueryPool(commands, timer->queries_, kRehearsal, 2);
    record_global_barrier(f, commands);
    timer->record_time(commands, kRehearsal);
    timer->record_time(commands, kRehearsal + 1);
  }));
  timer->entries_.resize(kFrames);
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    for (std::uint32_t section = 0; section < kSections; ++section) {
      const std::uint32_t query = (i * kSections + section) * 2;
      // Timestamps are of the compute stage, not of the whole pipe: the host's drawing may still be running
      // and must not count. The barriers make the stage wait for Imprint's copies too.
      const auto record = [&](bool ends_one, bool begins_one) {
        return timer->commands_->record(false, [&](VkCommandBuffer commands) {
          if (begins_one && !f.vkResetQueryPool) f.vkCmdResetQueryPool(commands, timer->queries_, query, 2);
          record_global_barrier(f, commands);
          if (ends_one) timer->record_time(commands, begins_one ? query - 1 : query + 1);
          if (begins_one) timer->record_time(commands, query);
        });
      };
      IMPRINT_ASSIGN(timer->entries_[i].begin[section], record(false, true));
      IMPRINT_ASSIGN(timer->entries_[i].end[section], record(true, false));
      if (section > 0) {
        IMPRINT_ASSIGN(timer->entries_[i].next[section], record(true, true));
      }
    }
  }
  IMPRINT_CHECK(timer->record_finishes({}));
  return timer;
}

void GpuTimer::record_time(VkCommandBuffer commands, std::uint32_t query) const {
  device_.functions().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, queries_, query);
}

// The exit barrier waits for all stages that the barrier of an end waits for, and for the host's.
Result<> GpuTimer::record_finishes(const HostUse& host) {
  std::vector<Commands> finishes;
  const auto record = [&](std::uint32_t place) -> Result<> {
    IMPRINT_ASSIGN(const Commands finish, commands_->record(false, [&](VkCommandBuffer commands) {
      record_exit_barrier(device_.functions(), commands, host);
      record_time(commands, place * 2 + 1);
    }));
    finishes.push_back(finish);
    return {};
  };
  Result<> recorded;
  for (std::uint32_t place = 0; place < entries_.size() * kSections && recorded.ok(); ++place)
    recorded = record(place);
  if (recorded.ok()) {
    host_ = host;
    for (std::uint32_t place = 0; place < finishes.size(); ++place)
      std::swap(entries_[place / kSections].finish[place % kSections], finishes[place]);
  }
  for (const Commands& unused : finishes) commands_->retire(unused);
  return recorded;
}

Result<> GpuTimer::set_host_use(const HostUse& host) {
  if (host.stages == host_.stages && host.access == host_.access) return {};
  return record_finishes(host);
}

GpuTimer::~GpuTimer() {
  if (queries_)
    device_.functions().vkDestroyQueryPool(device_.handle(), queries_, device_.allocation_callbacks());
}

std::optional<std::uint32_t> GpuTimer::open() {
  if (entries_.empty() || open_count_ == kFrames) return {};
  const std::uint32_t entry = next_;
  next_ = (next_ + 1) % kFrames;
  ++open_count_;
  entries_[entry].used = 0;
  entries_[entry].ticket = {~0ull};
  // The GPU has finished with the entry. Resetting here saves a command per section.
  constexpr std::uint32_t kQueries = kSections * 2;
  if (const vk::Functions& f = device_.functions(); f.vkResetQueryPool && !device_.lost())
    f.vkResetQueryPool(device_.handle(), queries_, entry * kQueries, kQueries);
  return entry;
}

VkCommandBuffer GpuTimer::begin(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level) {
  entries_[entry].used |= 1u << section;
  return entries_[entry].begin[section].get(level);
}

VkCommandBuffer GpuTimer::next_section(std::uint32_t entry, std::uint32_t section,
                                       VkCommandBufferLevel level) {
  entries_[entry].used |= 1u << section;
  return entries_[entry].next[section].get(level);
}

VkCommandBuffer GpuTimer::finish(std::uint32_t entry, std::uint32_t section,
                                 VkCommandBufferLevel level) const {
  return entries_[entry].finish[section].get(level);
}

VkCommandBuffer GpuTimer::end(std::uint32_t entry, std::uint32_t section, VkCommandBufferLevel level) const {
  return entries_[entry].end[section].get(level);
}

void GpuTimer::forget(std::uint32_t entry, std::uint32_t first_section) {
  entries_[entry].used &= (1u << first_section) - 1;
}

void GpuTimer::close(std::uint32_t entry, vk::Ticket ticket) {
  entries_[entry].ticket = ticket;
  if (ticket.value == 0) entries_[entry].used = 0;
}

std::optional<GpuTimer::Times> GpuTimer::read(vk::Ticket complete) {
  if (open_count_ == 0 || entries_[oldest_].ticket > complete) return {};
  Times times;
  times.entry = oldest_;
  oldest_ = (oldest_ + 1) % kFrames;
  --open_count_;
  const std::uint32_t used = entries_[times.entry].used;
  if (used == 0 || device_.lost()) return times;
  // Used sections are contiguous, so one call reads them all.
  const auto first = static_cast<std::uint32_t>(std::countr_zero(used)),
             count = static_cast<std::uint32_t>(std::popcount(used));
  std::array<std::uint64_t, 2 * kSections> stamps{};
  const VkResult result = device_.functions().vkGetQueryPoolResults(
      device_.handle(), queries_, (times.entry * kSections + first) * 2, 2 * count,
      2 * count * sizeof stamps[0], stamps.data(), sizeof stamps[0], VK_QUERY_RESULT_64_BIT);
  if (result < 0) vk::vulkan_error(device_, "vkGetQueryPoolResults", result);
  if (result != VK_SUCCESS) return times;
  for (std::uint32_t i = 0; i < count; ++i)
    times.us[first + i] = timestamp_us(device_.capabilities(), stamps[2 * i], stamps[2 * i + 1]);
  return times;
}

}  // namespace imprint::bridge
