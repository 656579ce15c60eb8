// A game without a window that follows plugin/docs/integration.md: it creates its device with the features
// that Imprint wants, records a creature's frames, saves and closes. A second creature's frames are submitted
// between timeline semaphores of the host, three frames in flight.

#include <volk.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <imprint/imprint.hpp>

namespace timelines {
namespace game = imprint::game;
#include "integration-timelines.inc"
}  // namespace timelines

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

VkSemaphore make_timeline() {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  VkSemaphore made = VK_NULL_HANDLE;
  vkCreateSemaphore(device, &info, nullptr, &made);
  return made;
}

// The host's own submit of frame n: nothing but the semaphores.
void draw(VkSemaphore learned, VkSemaphore drawn, std::uint64_t n) {
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = values.signalSemaphoreValueCount = 1;
  values.pWaitSemaphoreValues = values.pSignalSemaphoreValues = &n;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.pNext = &values;
  submit.waitSemaphoreCount = submit.signalSemaphoreCount = 1;
  submit.pWaitSemaphores = &learned;
  submit.pWaitDstStageMask = &stage;
  submit.pSignalSemaphores = &drawn;
  vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE);
}

int play_between_timelines(imp_vk_device_info declared) {
  namespace game = imprint::game;
  declared.queue = game::QueueDesc::single_thread(queue, declared.queue.family);
  auto context = game::Context::create(game::Library(imp_get_api), declared);
  auto brain = context->create_brain(game::BrainDesc::of(game::DqnOptions(), 2, {3}));
  auto agent = brain->create_agent();
  if (!agent || !context->warmup()) return fail("timelines");
  const VkSemaphore drawn = make_timeline(), learned = make_timeline();
  game::Frames clock(0);
  for (std::uint64_t n = 1; n <= 60; ++n) {
    if (n > 3) {
      const std::uint64_t oldest = n - 3;
      VkSemaphoreWaitInfo wait{};
      wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
      wait.semaphoreCount = 1;
      wait.pSemaphores = &drawn;
      wait.pValues = &oldest;
      vkWaitSemaphores(device, &wait, UINT64_MAX);
      clock.completed(oldest);
    }
    game::Frame frame(*context, clock.next(1.0 / 60));
    const game::Action action = frame.act(*agent);
    if (action.is_new) frame.keep(agent->reward(action.choices()[0] == 1 ? 1.0f : -1.0f));
    if (action.wants_observation) frame.keep(agent->observe(std::array{0.5f, -0.5f}));
    timelines::submit_between(frame, drawn, learned, n);
    if (!frame.end()) return fail("submit_between");
    draw(learned, drawn, n);
  }
  vkDeviceWaitIdle(device);
  std::uint64_t last = 0;
  vkGetSemaphoreCounterValue(device, drawn, &last);
  if (last != 60 || brain->stats()->decisions < 15 || brain->stats()->late_actions != 0)
    return fail("found another order of frames");
  if (!context->close()) return fail("close");
  vkDestroySemaphore(device, drawn, nullptr);
  vkDestroySemaphore(device, learned, nullptr);
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
  const int status = play(declared) || play_between_timelines(declared);
  api->vulkan->merged_free(&merged);
  return status;
}
