// T11. Memory that is the host's to count: its allocation callbacks and its device memory come and go in balance, the cap is an error that says so
// and harms nothing, trim gives back what is empty, and under pressure learning pauses, says so, and goes on by itself.

#include <gtest/gtest.h>

#include <atomic>
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

// Host memory as the driver asks for it through us.
struct HostMemory {
  std::atomic<std::int64_t> alive{0}, ever{0};

  VkAllocationCallbacks callbacks() {
    VkAllocationCallbacks c{};
    c.pUserData = this;
    c.pfnAllocation = [](void* user, std::size_t size, std::size_t alignment, VkSystemAllocationScope) -> void* {
      auto& self = *static_cast<HostMemory*>(user);
      ++self.alive;
      ++self.ever;
      alignment = alignment < sizeof(void*) ? sizeof(void*) : alignment;
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    c.pfnReallocation = [](void* user, void* old, std::size_t size, std::size_t, VkSystemAllocationScope) -> void* {
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

// Device memory of the host's.
struct DeviceMemory {
  VkDevice device = VK_NULL_HANDLE;
  PFN_vkAllocateMemory allocate = nullptr;
  PFN_vkFreeMemory free = nullptr;
  std::mutex mutex;
  std::map<std::uint64_t, VkDeviceSize> alive;
  std::size_t ever = 0;

  explicit DeviceMemory(const vk::DeviceDescription& d) : device(d.device) {
    const auto get = reinterpret_cast<PFN_vkGetDeviceProcAddr>(d.get_instance_proc_addr(d.instance, "vkGetDeviceProcAddr"));
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
  lent.log = [](void* user, imp_log_level, const char* text) { static_cast<Host*>(user)->log.emplace_back(text); };
  lent.allocate_device_memory = [](void* user, const void* info, std::uint64_t* number) -> std::int32_t {
    DeviceMemory& self = static_cast<Host*>(user)->memory;
    VkDeviceMemory made = VK_NULL_HANDLE;
    const auto& asked = *static_cast<const VkMemoryAllocateInfo*>(info);
    const VkResult result = self.allocate(self.device, &asked, nullptr, &made);
    if (result != VK_SUCCESS) return result;
    *number = 0;
    std::memcpy(number, &made, sizeof made);
    const std::lock_guard lock(self.mutex);
    self.alive[*number] = asked.allocationSize;
    ++self.ever;
    return VK_SUCCESS;
  };
  lent.free_device_memory = [](void* user, std::uint64_t number) {
    DeviceMemory& self = static_cast<Host*>(user)->memory;
    VkDeviceMemory gone = VK_NULL_HANDLE;
    std::memcpy(&gone, &number, sizeof gone);
    {
      const std::lock_guard lock(self.mutex);
      EXPECT_EQ(self.alive.erase(number), 1u) << "freed twice, or never the host's";
    }
    self.free(self.device, gone, nullptr);
  };
  return lent;
}

imp_brain_desc desc_of(std::uint32_t observations, std::uint32_t replay) {
  static const std::uint32_t branch = 3, hidden = 8;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.observation_count = observations;
  desc.branch_count = 1;
  desc.branch_sizes = &branch;
  desc.hidden_count = 1;
  desc.hidden_sizes = &hidden;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.replay_capacity = replay;
  desc.snapshot_count = 0;
  return desc;
}

void frame(const imp_api* api, imp_context context, imp_agent agent, std::uint64_t number) {
  imp_frame_info info = imp_frame_info_init();
  info.frame = number;
  info.time_s = static_cast<double>(number) / 60;
  ASSERT_WORKS(api->frame_begin(context, &info));
  const float seen[4] = {1, 0, -1, static_cast<float>(number % 3)};
  imp_demonstration shown = imp_demonstration_init();
  shown.observation = seen;
  shown.observation_count = 4;
  shown.branches[0] = static_cast<std::uint32_t>(number % 3);
  ASSERT_WORKS(api->agent_observe(agent, seen, 4));
  ASSERT_WORKS(api->agent_demonstrate(agent, &shown));
  ASSERT_WORKS(api->submit(context, UINT32_MAX));
  ASSERT_WORKS(api->frame_end(context));
  ASSERT_WORKS(api->quiesce(context, 60000));
  ASSERT_WORKS(api->resume(context));
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
      imp_vk_device_info info = device_info(plain, device);
      info.queue.single_thread = 1;
      info.allocation_callbacks = &callbacks;
      ASSERT_WORKS(api->context_create(&info, &lent, nullptr, &context));
    }
    const imp_brain_desc desc = desc_of(4, 64);
    imp_brain brain{};
    imp_agent agent{};
    ASSERT_WORKS(api->brain_create(context, &desc, &brain));
    ASSERT_WORKS(api->agent_create(brain, 0, &agent));
    ASSERT_WORKS(api->warmup(context, nullptr, nullptr));
    for (std::uint64_t number = 1; number <= 20; ++number) ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, number));
    imp_context_stats stats = imp_context_stats_init();
    ASSERT_WORKS(api->context_get_stats(context, &stats));
    EXPECT_EQ(device_memory.bytes(), stats.bytes_reserved) << "all device memory is the host's";
    EXPECT_EQ(device_memory.ever, stats.allocations);
    ASSERT_WORKS(api->brain_destroy(brain));
    ASSERT_WORKS(api->drain(context, 60000));
    std::uint64_t freed = 0;
    ASSERT_WORKS(api->trim(context, &freed));
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
  imp_host lent = lend(host);
  lent.free_device_memory = nullptr;
  imp_vk_device_info info = device_info(plain, device);
  info.queue.single_thread = 1;
  imp_context context{};
  EXPECT_EQ(api->context_create(&info, &lent, nullptr, &context), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(api->last_error()).find("free_device_memory"), std::string::npos) << api->last_error();
}

// Brains come and go at random until the cap stands: it is never passed, says what it is, and the brain that was there learns on.
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
  imp_vk_device_info info = device_info(plain, device);
  info.queue.single_thread = 1;
  imp_context context{};
  ASSERT_WORKS(api->context_create(&info, &lent, &limits, &context));
  const imp_brain_desc desc = desc_of(4, 64);
  imp_brain brain{};
  imp_agent agent{};
  ASSERT_WORKS(api->brain_create(context, &desc, &brain));
  ASSERT_WORKS(api->agent_create(brain, 0, &agent));
  ASSERT_WORKS(api->warmup(context, nullptr, nullptr));
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
      const imp_brain_desc other = desc_of(4 + (state >> 16) % 200, 1024 << ((state >> 12) % 4));
      imp_brain made{};
      const imp_result result = api->brain_create(context, &other, &made);
      if (result == IMP_OK) {
        others.push_back(made);
      } else {
        ++refused;
        ASSERT_EQ(result, IMP_ERROR_OUT_OF_DEVICE_MEMORY) << api->last_error();
        EXPECT_NE(std::string(api->last_error()).find(std::to_string(kCap)), std::string::npos) << api->last_error();
      }
    }
    EXPECT_LE(device_memory.bytes(), kCap);
    if (round % 10 == 0) ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, ++number));
  }
  EXPECT_GT(refused, 0u) << "the cap was never reached";
  imp_context_stats memory = imp_context_stats_init();
  ASSERT_WORKS(api->context_get_stats(context, &memory));
  EXPECT_LE(memory.blocks, 16u) << "a pool at its cap must not be cut into crumbs";
  for (int i = 0; i < 12; ++i) ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, ++number));
  imp_brain_stats stats = imp_brain_stats_init();
  ASSERT_WORKS(api->brain_get_stats(brain, &stats));
  EXPECT_GT(stats.minibatches, 0u);
  ASSERT_WORKS(api->context_destroy(context));
  EXPECT_EQ(device_memory.bytes(), 0u);
}

// A driver whose memory budget the test decides. Vulkan's functions carry no user pointer, so there is one.
struct Budgeted {
  PFN_vkGetInstanceProcAddr real = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties2 properties = nullptr;
  PFN_vkEnumerateDeviceExtensionProperties extensions = nullptr;
  std::atomic<VkDeviceSize> used{0};
  static constexpr VkDeviceSize kBudget = 1000u << 20;
};
Budgeted budgeted;

void VKAPI_CALL budgeted_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* properties) {
  budgeted.properties(device, properties);
  for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link; link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
    auto& budget = *reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(link);
    for (std::uint32_t heap = 0; heap < properties->memoryProperties.memoryHeapCount; ++heap) {
      budget.heapBudget[heap] = Budgeted::kBudget;
      budget.heapUsage[heap] = budgeted.used;
    }
  }
}

// The device's own list, and the extension in the case that it is not in it.
VkResult VKAPI_CALL budgeted_extensions(VkPhysicalDevice device, const char* layer, std::uint32_t* count, VkExtensionProperties* list) {
  std::uint32_t own = 0;
  if (const VkResult result = budgeted.extensions(device, layer, &own, nullptr); result != VK_SUCCESS) return result;
  if (list) {
    std::uint32_t room = own;
    if (const VkResult result = budgeted.extensions(device, layer, &room, list); result != VK_SUCCESS) return result;
    list[own] = {"VK_EXT_memory_budget", 1};
  }
  *count = own + 1;
  return VK_SUCCESS;
}

PFN_vkVoidFunction VKAPI_CALL budgeted_function(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetPhysicalDeviceMemoryProperties2") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkGetPhysicalDeviceMemoryProperties2>(budgeted_properties));
  if (std::strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkEnumerateDeviceExtensionProperties>(budgeted_extensions));
  return budgeted.real(instance, name);
}

TEST(T11Memory, UnderPressureLearningPausesAndGoesOnByItself) {
  const imp_api* api = table();
  PlainHost plain({"squeezed", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(plain.ok());
  const vk::DeviceDescription device = plain.describe();
  budgeted.real = device.get_instance_proc_addr;
  const auto real = [&](const char* name) { return budgeted.real(device.instance, name); };
  budgeted.properties = reinterpret_cast<PFN_vkGetPhysicalDeviceMemoryProperties2>(real("vkGetPhysicalDeviceMemoryProperties2"));
  budgeted.extensions = reinterpret_cast<PFN_vkEnumerateDeviceExtensionProperties>(real("vkEnumerateDeviceExtensionProperties"));
  budgeted.used = 100u << 20;
  DeviceMemory device_memory(device);
  Host host{device_memory, {}};
  const imp_host lent = lend(host);
  imp_vk_device_info info = device_info(plain, device);
  const char* const extension = "VK_EXT_memory_budget";
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(static_cast<PFN_vkGetInstanceProcAddr>(budgeted_function));
  info.device_extensions = &extension;
  info.device_extension_count = 1;
  info.queue.single_thread = 1;
  imp_context context{};
  ASSERT_WORKS(api->context_create(&info, &lent, nullptr, &context));
  const imp_brain_desc desc = desc_of(4, 64);
  imp_brain brain{};
  imp_agent agent{};
  ASSERT_WORKS(api->brain_create(context, &desc, &brain));
  ASSERT_WORKS(api->agent_create(brain, 0, &agent));
  ASSERT_WORKS(api->warmup(context, nullptr, nullptr));
  std::uint64_t number = 0;
  const auto play = [&](int frames) {
    for (int i = 0; i < frames; ++i) ASSERT_NO_FATAL_FAILURE(frame(api, context, agent, ++number));
  };
  const auto minibatches = [&] {
    imp_brain_stats stats = imp_brain_stats_init();
    EXPECT_EQ(api->brain_get_stats(brain, &stats), IMP_OK);
    return stats.minibatches;
  };
  const auto pressure = [&] {
    imp_context_stats stats = imp_context_stats_init();
    EXPECT_EQ(api->context_get_stats(context, &stats), IMP_OK);
    return stats.memory_pressure;
  };
  const auto said = [&](const char* what) {
    std::size_t times = 0;
    for (const std::string& line : host.log) times += line.find(what) != std::string::npos;
    return times;
  };
  play(20);
  const std::uint64_t before = minibatches();
  EXPECT_GT(before, 0u);
  EXPECT_EQ(pressure(), 0u);

  budgeted.used = Budgeted::kBudget + 1;
  play(40);
  const std::uint64_t paused = minibatches();
  EXPECT_EQ(pressure(), 1u);
  EXPECT_EQ(said("learning pauses"), 1u);
  play(40);
  EXPECT_EQ(minibatches(), paused) << "learning went on";
  imp_action action = imp_action_init();
  imp_frame_info again = imp_frame_info_init();
  again.frame = ++number;
  again.time_s = static_cast<double>(number) / 60;
  ASSERT_WORKS(api->frame_begin(context, &again));
  EXPECT_EQ(api->agent_act(agent, &action), IMP_OK) << "acting never pauses";
  ASSERT_WORKS(api->frame_end(context));

  budgeted.used = Budgeted::kBudget * 98 / 100;
  play(40);
  EXPECT_EQ(pressure(), 1u) << "just enough is no room";
  budgeted.used = Budgeted::kBudget / 2;
  play(60);
  EXPECT_EQ(pressure(), 0u);
  EXPECT_EQ(said("learning goes on"), 1u);
  EXPECT_GT(minibatches(), paused);
  ASSERT_WORKS(api->context_destroy(context));
  EXPECT_EQ(device_memory.bytes(), 0u);
  EXPECT_EQ(said("destroyed with it: 1 brains ('brain') and 1 agents"), 1u) << "what is left is counted and named";
}

}  // namespace
}  // namespace imprint::bridge
