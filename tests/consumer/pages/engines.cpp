// The snippets of plugin/docs/engines.md for plain Vulkan, in a host of a few frames that saves at its end
// and loads when it starts again.

#include <volk.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "engines_world.h"

#include "engines-creature.inc"
#include "engines-vulkan.inc"

#include "engines-merge.inc"

namespace {

// One frame at a time: it waits for each.
struct Game {
  VkApplicationInfo application{};
  VkInstanceCreateInfo instance_info{};
  VkDeviceCreateInfo device_info{};
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice gpu = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;

  // merging: makes the device with what Imprint would use.
  bool make(imprint::adapters::VulkanGuest* merging = nullptr) {
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_1;
    instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance_info.pApplicationInfo = &application;
    if (volkInitialize() || vkCreateInstance(&instance_info, nullptr, &instance)) return false;
    volkLoadInstance(instance);
    std::uint32_t count = 1;
    if (vkEnumeratePhysicalDevices(instance, &count, &gpu) < 0 || count == 0) return false;
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{};
    queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queues;
    if (merging) {
      merging->made_instance(instance_info, instance, vkGetInstanceProcAddr);
      device = make_device(*merging, gpu, device_info);
      return device != VK_NULL_HANDLE;
    }
    if (vkCreateDevice(gpu, &device_info, nullptr, &device)) return false;
    vkGetDeviceQueue(device, 0, 0, &queue);
    VkCommandPoolCreateInfo pool_info{};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    VkCommandBufferAllocateInfo buffer{};
    buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    buffer.commandBufferCount = 1;
    if (vkCreateCommandPool(device, &pool_info, nullptr, &pool)) return false;
    buffer.commandPool = pool;
    return vkAllocateCommandBuffers(device, &buffer, &commands) == VK_SUCCESS;
  }
  template <class Calls>
  bool frame(Calls&& calls) {
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    if (vkBeginCommandBuffer(commands, &begin)) return false;
    calls(commands);
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    return !vkEndCommandBuffer(commands) && !vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE) &&
           !vkQueueWaitIdle(queue);
  }
  ~Game() {
    if (pool) vkDestroyCommandPool(device, pool, nullptr);
    if (device) vkDestroyDevice(device, nullptr);
    if (instance) vkDestroyInstance(instance, nullptr);
  }
};

int fail(const char* what) { return std::fprintf(stderr, "engines: %s\n", what), 1; }

int merge() {
  imprint::adapters::VulkanGuest vulkan;
  Game host;
  if (!host.make(&vulkan)) return fail("no merged device");
  auto context = game::Context::create(game::Library(imp_get_api), vulkan.record_only(0));
  if (!context) return fail(context.outcome.message());
  for (std::uint32_t i = 0; i < context->report()->missing_feature_count; ++i) {
    const imp_missing_feature missing = *context->missing_feature(i);
    if (!std::strcmp(missing.cause, "not declared") &&
        !std::strstr(missing.cost, "the plugin loses nothing") &&
        std::strcmp(missing.item, "VK_EXT_debug_utils"))
      return fail(missing.item);
  }
  return context->close() ? 0 : fail("close");
}

}  // namespace

int main() {
  std::filesystem::remove("creature.brain");
  std::uint64_t decisions = 0;
  for (int session = 0; session < 2; ++session) {
    Game host;
    if (!host.make()) return fail("no device");
    Guest guest;
    if (!guest.open(host.instance_info, host.instance, host.gpu, host.device_info, host.device, 0))
      return fail("open");
    if (guest.creature.brain.stats()->decisions != decisions) return fail("the brain was not loaded");
    for (int i = 0; i < 60; ++i)
      if (!host.frame([&](VkCommandBuffer commands) { guest.frame(commands); })) return fail("frame");
    decisions = guest.creature.brain.stats()->decisions;
    if (guest.creature.world.steps < 20) return fail("it rarely decided");
    if (!guest.close(host.queue, 0) || guest.creature.context) return fail("close");
  }
  return merge();
}
