// T11. Memory: the host's allocation callbacks and device memory balance, reaching the cap is an error that
// harms nothing, and trim gives empty blocks back. bridge_pressure_test.cpp tests pressure.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

#define ASSERT_WORKS(call) ASSERT_EQ(call, IMP_OK) << api->last_error()

// Host memory that the driver asks for.
struct HostMemory {
  std::atomic<std::int64_t> alive{0}, ever{0};

  VkAllocationCallbacks callbacks() {
    VkAllocationCallbacks c{};
    c.pUserData = this;
    c.pfnAllocation = [](void* user, std::size_t size, std::size_t alignment,
                         VkSystemAllocationScope) -> void* {
      auto& self = *static_cast<HostMemory*>(user);
      ++self.alive;
      ++self.ever;
      alignment = alignment < sizeof(void*) ? sizeof(void*) : alignment;
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    c.pfnReallocation = [](void* user, void* old, std::size_t size, std::size_t,
                           VkSystemAllocationScope) -> void* {
      auto& self = *static_cast<HostMemory*>(user);
      if (!old) ++self.alive, ++self.ever;
      return std::realloc(old, size);
    };
    c.pfnFree = [](void* user, void* memory) {
      if (memory) --static_cast<HostMemory*>(user)->alive;
      std::free(memory);
    };
    return c;
  }
};

// The host's device memory.
struct DeviceMemory {
  VkDevice device = VK_NULL_HANDLE;
  PFN_vkAllocateMemory allocate = nullptr;
  PFN_vkFreeMemory free = nullptr;
  std::mutex mutex;
  std::map<std::uint64_t, VkDeviceSize> alive;
  std::size_t ever = 0;

  explicit DeviceMemory(const vk::DeviceDescription& d) : device(d.device) {
    const auto get = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        d.get_instance_proc_addr(d.instance, "vkGetDeviceProcAddr"));
    allocate = reinterpret_cast<PFN_vkAllocateMemory>(get(device, "vkAllocateMemory"));
    free = reinterpret_cast<PFN_vkFreeMemory>(get(device, "vkFreeMemory"));
  }
  std::uint64_t bytes() {
    const std::lock_guard lock(mutex);
    std::uint64_t sum = 0;
    for (const auto& [memory, size] : alive) sum += size;
    return sum;
  }
};

struct Host {
  DeviceMemory& memory;
  std::vector<std::string> log;
};

imp_host lend(Host& host) {
  imp_host lent = imp_host_init();
  lent.user = &host;
  lent.log = [](void* user, imp_log_level, const char* text) {
    static_cast<Host*>(user)->log.emplace_back(text);
  };
  return lent;
}

// The host's own device memory.
void lend_memory(Host& host, imp_vk_device_info& info) {
  info.memory_user = &host;
  info.allocate_device_memory = [](void* user, const void* wanted, std::uint64_t* number) -> std::int32_t {
    DeviceMemory& self = static_cast<Host*>(user)->memory;
    VkDeviceMemory made = VK_NULL_HANDLE;
    const auto& asked = *static_cast<const VkMemoryAllocateInfo*>(wanted);
    const VkResult result = self.allocate(self.device, &asked, nullptr, &made);
    if (result != VK_SUCCESS) return result;
    *number = 0;
    std::memcpy(number, &made, sizeof made);
    const std::lock_guard lock(self.mutex);
    self.alive[*number] = asked.allocationSize;
    ++self.ever;
    return VK_SUCCESS;
  };
  info.free_device_memory = [](void* user, std::uint64_t number) {
    DeviceMemory& self = static_cast<Host*>(user)->memory;
    VkDeviceMemory gone = VK_NULL_HANDLE;
    std::memcpy(&gone, &number, sizeof gone);
    {
      const std::lock_guard lock(self.mutex);
      EXPECT_EQ(self.alive.erase(number), 1u) << "freed twice, or never the host's";
    }
    self.free(self.device, gone, nullptr);
  };
}

game::BrainDesc desc_of(std::uint32_t observations, std::uint32_t replay) {
  game::BrainDesc desc;
  desc.observation_count = observations;
  desc.branch_sizes = {3};
  desc.hidden_sizes = {8};
  game::FeedbackOptions options;
  options.replay_capacity = replay;
  desc.learner = options;
  desc.snapshot_count = 0;
  return desc;
}

void frame(const imp_api* api, imp_context context, imp_agent agent, std::uint64_t number) {
  imp_frame_info info = imp_frame_info_init();
  info.frame = number;
  info.time_s = static_cast<double>(number) / 60;
  ASSERT_WORKS(api->frame_begin(context, &info));
  const float seen[4] = {1, 0, -1, static_cast<float>(number % 3)};
  const std::uint32_t choice = static_cast<std::uint32_t>(number % 3);
  imp_demonstration shown = imp_demonstration_init();
  shown.observation = seen;
  shown.observation_count = 4;
  shown.branches = &choice;
  shown.branch_count = 1;
  ASSERT_WORKS(api->agent_observe(agent, seen, 4));
  ASSERT_WORKS(api->agent_demonstrate(agent, &shown));
  ASSERT_WORKS(api->frame_submit(context, UINT32_MAX));
  ASSERT_WORKS(api->frame_end(context));
  ASSERT_WORKS(api->context_quiesce(context, 60000));
  ASSERT_WORKS(api->context_resume(context));
}

TEST(T11Memory, TheHostsCallbacksBalance) {
  const imp_api* api = table();
  HostMemory host_memory;
  {
    PlainHost plain({"counting", VK_API_VERSION_1_3, true});
    ASSERT_TRUE(plain.ok());
    const vk::DeviceDescription device = plain.describe();
    DeviceMemory device_memory(device);
    Host host{device_memory, {}};
    const imp_host lent = lend(host);
    imp_context context{};
    {
      const VkAllocationCallbacks callbacks = host_memory.callbacks();  // read during the call only
      imp_vk_device_info info = device_info(plain, device, IMP_QUEUE_SINGLE_THREAD);
      lend_memory(host, info);
      info.allocation_callbacks = &callbacks;
      ASSERT_WORKS(api->context_create(&info, &lent, nullptr, &context));
    }
    const game::BrainDesc desc = desc_of(4, 64);
    imp_brain brain{};
    imp_agent agent{};
    ASSERT_WORKS(api->brain_create(context, c_form(desc), &brain));
    ASSERT_WORKS(api->agent_create(brain, 0, &agent));
    ASSERT_WORKS(api->context_warmup(context, nullptr, nullptr));
    for (std::uint64_t number = 1; number <= 20; ++number)
      ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, number));
    imp_context_stats stats = imp_context_stats_init();
    ASSERT_WORKS(api->tools->context_get_stats(context, &stats));
    EXPECT_EQ(device_memory.bytes(), stats.bytes_reserved) << "all device memory is the host's";
    EXPECT_EQ(device_memory.ever, stats.allocations);
    ASSERT_WORKS(api->brain_destroy(brain));
    ASSERT_WORKS(api->context_drain(context, 60000));
    std::uint64_t freed = 0;
    ASSERT_WORKS(api->context_trim(context, &freed));
    EXPECT_GT(freed, 0u);
    EXPECT_EQ(device_memory.bytes(), stats.bytes_reserved - freed);
    ASSERT_WORKS(api->context_destroy(context));
    EXPECT_EQ(device_memory.bytes(), 0u);
    EXPECT_GT(device_memory.ever, 0u);
  }
  EXPECT_GT(host_memory.ever, 0);
  EXPECT_EQ(host_memory.alive, 0);
}

TEST(T11Memory, HalfOfThePairIsRefused) {
  const imp_api* api = table();
  PlainHost plain({"counting", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(plain.ok());
  const vk::DeviceDescription device = plain.describe();
  DeviceMemory device_memory(device);
  Host host{device_memory, {}};
  const imp_host lent = lend(host);
  imp_vk_device_info info = device_info(plain, device, IMP_QUEUE_SINGLE_THREAD);
  lend_memory(host, info);
  info.free_device_memory = nullptr;
  imp_context context{};
  EXPECT_EQ(api->context_create(&info, &lent, nullptr, &context), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(api->last_error()).find("free_device_memory"), std::string::npos)
      << api->last_error();
}

// The memory reserved follows the memory used, from a first small brain on. IMPRINT_MEMORY_BRAINS: other
// counts.
TEST(T11Memory, ReservesAsMuchAsIsUsed) {
  const imp_api* api = table();
  PlainHost plain({"modest", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(plain.ok());
  const vk::DeviceDescription device = plain.describe();
  const imp_vk_device_info info = device_info(plain, device, IMP_QUEUE_SINGLE_THREAD);
  std::vector<std::uint32_t> counts{1, 16};
  if (const char* const given = std::getenv("IMPRINT_MEMORY_BRAINS"))
    counts = {static_cast<std::uint32_t>(std::atoi(given))};
  for (const std::uint32_t count : counts) {
    imp_context context{};
    ASSERT_WORKS(api->context_create(&info, nullptr, nullptr, &context));
    game::BrainDesc desc = desc_of(4, 64);
    desc.snapshot_count = 4;
    imp_brain brain{};
    imp_agent agent{};
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_WORKS(api->brain_create(context, c_form(desc), &brain));
    ASSERT_WORKS(api->agent_create(brain, 0, &agent));
    ASSERT_WORKS(api->context_warmup(context, nullptr, nullptr));
    for (std::uint64_t number = 1; number <= 10; ++number)
      ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, number));
    imp_context_stats stats = imp_context_stats_init();
    ASSERT_WORKS(api->tools->context_get_stats(context, &stats));
    std::printf("%u small brains: %.3f MiB in use, %.3f MiB reserved in %u blocks\n", count,
                static_cast<double>(stats.bytes_in_use) / (1 << 20),
                static_cast<double>(stats.bytes_reserved) / (1 << 20), stats.blocks);
    EXPECT_LE(stats.bytes_reserved, 2 * stats.bytes_in_use + (2 << 20));
    EXPECT_LE(stats.blocks, 64u);
    EXPECT_EQ(stats.frame_allocations, 0u);
    ASSERT_WORKS(api->context_destroy(context));
  }
}

// Creates and destroys brains at random up to the cap: it is never passed, the error names it, and the first
// brain keeps learning.
TEST(T11Memory, TheCapHoldsUnderFragmentation) {
  const imp_api* api = table();
  constexpr std::uint64_t kCap = 24u << 20;
  PlainHost plain({"capped", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(plain.ok());
  const vk::DeviceDescription device = plain.describe();
  DeviceMemory device_memory(device);
  Host host{device_memory, {}};
  const imp_host lent = lend(host);
  imp_limits limits = imp_limits_init();
  limits.memory_cap_bytes = kCap;
  imp_vk_device_info info = device_info(plain, device, IMP_QUEUE_SINGLE_THREAD);
  lend_memory(host, info);
  imp_context context{};
  ASSERT_WORKS(api->context_create(&info, &lent, &limits, &context));
  const game::BrainDesc desc = desc_of(4, 64);
  imp_brain brain{};
  imp_agent agent{};
  ASSERT_WORKS(api->brain_create(context, c_form(desc), &brain));
  ASSERT_WORKS(api->agent_create(brain, 0, &agent));
  ASSERT_WORKS(api->context_warmup(context, nullptr, nullptr));
  std::uint64_t number = 0;
  std::uint32_t state = 7, refused = 0;
  std::vector<imp_brain> others;
  for (int round = 0; round < 60; ++round) {
    state = state * 1664525u + 1013904223u;
    if (!others.empty() && state >> 30 == 0) {
      const std::size_t which = (state >> 8) % others.size();
      ASSERT_WORKS(api->brain_destroy(others[which]));
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const game::BrainDesc other = desc_of(4 + (state >> 16) % 200, 1024 << ((state >> 12) % 4));
      imp_brain made{};
      const imp_result result = api->brain_create(context, c_form(other), &made);
      if (result == IMP_OK) {
        others.push_back(made);
      } else {
        ++refused;
        ASSERT_EQ(result, IMP_ERROR_OUT_OF_DEVICE_MEMORY) << api->last_error();
        EXPECT_NE(std::string(api->last_error()).find(std::to_string(kCap)), std::string::npos)
            << api->last_error();
      }
    }
    EXPECT_LE(device_memory.bytes(), kCap);
    if (round % 10 == 0) ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, ++number));
  }
  EXPECT_GT(refused, 0u) << "the cap was never reached";
  imp_context_stats memory = imp_context_stats_init();
  ASSERT_WORKS(api->tools->context_get_stats(context, &memory));
  EXPECT_LE(memory.blocks, 24u) << "a pool at its cap must not be cut into crumbs";
  for (int i = 0; i < 12; ++i) ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, ++number));
  imp_brain_stats stats = imp_brain_stats_init();
  ASSERT_WORKS(api->tools->brain_get_stats(brain, &stats));
  EXPECT_GT(stats.minibatches, 0u);
  ASSERT_WORKS(api->context_destroy(context));
  EXPECT_EQ(device_memory.bytes(), 0u);
}

}  // namespace
}  // namespace imprint::bridge
