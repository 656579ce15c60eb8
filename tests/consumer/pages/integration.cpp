// A game without a window that follows plugin/docs/integration.md: it creates its device with the features
// that Imprint wants, records a creature's frames, saves and closes.

#include <volk.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include <imprint/imprint_vulkan.h>

struct game {
  float seen[2] = {0.5f, -0.5f};
  int steps = 0;
};

extern "C" {
const float* game_look(const game* game) { return game->seen; }
float game_step(game* game, std::uint32_t action) { return ++game->steps, action == 1 ? 1.0f : -1.0f; }
int game_over(const game* game) { return game->steps % 5 == 0; }

VkDevice make_device(const imp_api* api, VkInstance instance, VkPhysicalDevice gpu, uint32_t family,
                     const VkDeviceCreateInfo* mine, imp_vk_merged* merged, imp_vk_device_info* declared);
imp_result creature_frame(const imp_api* api, imp_context context, imp_agent agent, const imp_frame_info* now,
                          VkCommandBuffer commands, game* game);
imp_result save_and_close(const imp_api* api, imp_context context, imp_brain brain, const char* path,
                          imp_frame_info* now, VkCommandBuffer (*begin)(imp_frame_info* now),
                          void (*end)(void), void (*wait_idle)(void));
}

namespace {

const imp_api* api = nullptr;
VkDevice device = VK_NULL_HANDLE;
VkQueue queue = VK_NULL_HANDLE;
VkCommandBuffer commands = VK_NULL_HANDLE;

int fail(const char* what) {
  return std::fprintf(stderr, "integration: %s: %s\n", what, api ? api->last_error() : ""), 1;
}

// One frame in flight: the frame before is safe.
VkCommandBuffer begin_frame(imp_frame_info* now) {
  now->safe_frame = now->frame++;
  now->time_s = static_cast<double>(now->frame) / 60;
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  vkBeginCommandBuffer(commands, &begin);
  return commands;
}

void end_frame() {
  vkEndCommandBuffer(commands);
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE);
  vkQueueWaitIdle(queue);
}

void wait_idle() { vkDeviceWaitIdle(device); }

// Takes the first GPU and its first family with compute.
bool choose(VkInstance instance, VkPhysicalDevice& gpu, std::uint32_t& family) {
  std::uint32_t count = 1;
  vkEnumeratePhysicalDevices(instance, &count, &gpu);
  if (count == 0) return false;
  vkGetPhysicalDeviceQueueFamilyProperties(gpu, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(gpu, &count, families.data());
  for (family = 0; family < count; ++family)
    if (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) return true;
  return false;
}

void make_commands(std::uint32_t family) {
  vkGetDeviceQueue(device, family, 0, &queue);
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = family;
  VkCommandPool pool = VK_NULL_HANDLE;
  vkCreateCommandPool(device, &pool_info, nullptr, &pool);
  VkCommandBufferAllocateInfo buffers{};
  buffers.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffers.commandPool = pool;
  buffers.commandBufferCount = 1;
  vkAllocateCommandBuffers(device, &buffers, &commands);
}

int play(const imp_vk_device_info& declared) {
  imp_context context{};
  imp_brain brain{};
  imp_agent agent{};
  const std::uint32_t actions = 3;
  const imp_brain_desc desc = imp_brain_desc_of(IMP_LEARNER_FEEDBACK, 2, &actions, 1);
  if (api->context_create(&declared, nullptr, nullptr, &context) < 0) return fail("context_create");
  if (api->brain_create(context, &desc, &brain) < 0) return fail("brain_create");
  if (api->agent_create(brain, 0, &agent) < 0) return fail("agent_create");
  if (api->context_warmup(context, nullptr, nullptr) < 0) return fail("context_warmup");

  game played;
  imp_frame_info now = imp_frame_info_init();
  for (int frame = 0; frame < 60; ++frame) {
    const VkCommandBuffer into = begin_frame(&now);
    if (creature_frame(api, context, agent, &now, into, &played) < 0) return fail("creature_frame");
    end_frame();
  }
  if (played.steps < 20) return fail("the creature rarely decided");
  if (save_and_close(api, context, brain, "integration.brain", &now, begin_frame, end_frame, wait_idle) !=
      IMP_OK)
    return fail("save_and_close");
  return 0;
}

}  // namespace

int main() {
  if (imp_get_api(IMP_ABI_VERSION, &api) < 0 || volkInitialize() != VK_SUCCESS) return fail("no Vulkan");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_info{};
  instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance_info.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  if (vkCreateInstance(&instance_info, nullptr, &instance) != VK_SUCCESS) return fail("vkCreateInstance");
  volkLoadInstance(instance);
  VkPhysicalDevice gpu = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  if (!choose(instance, gpu, family)) return fail("no GPU with compute");

  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo mine{};
  mine.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  mine.queueCreateInfoCount = 1;
  mine.pQueueCreateInfos = &queue_info;
  imp_vk_merged merged;
  imp_vk_device_info declared;
  device = make_device(api, instance, gpu, family, &mine, &merged, &declared);
  if (!device) return fail("make_device");
  make_commands(family);
  const int status = play(declared);
  api->vulkan->merged_free(&merged);
  return status;
}
