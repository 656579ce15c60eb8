// The C++ API after the macros of Qt, Xlib and Windows, before and after Vulkan's header.
#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <variant>

#define signals
#define slots
#define emit
#define foreach
#define forever
#define Result <> int
#define None 0L
#define Success 0
#define Bool int
#define True 1
#define False 0
#define Always 2
#define near
#define far
#define small char
#define ERROR 0
#define DELETE 1
#define interface struct
#include <imprint/imprint.hpp>
//
#include <vulkan/vulkan_core.h>
//
#include <imprint/imprint.hpp>

using namespace imprint::game;

static_assert(sizeof(imp_header) == 16);

// Code of a game: no `&`, no `.next`, no pointer.
struct Services {
  void log(LogLevel, std::string_view) {}
  void device_lost(std::string_view) {}
  void submit_job(Job job) { job(); }
};
struct Memory {
  VkResult allocate(const VkMemoryAllocateInfo&, std::uint64_t&) { return VK_SUCCESS; }
  void release(std::uint64_t) {}
};

int use();
int use() {
  const Library library(imp_get_api);
  Services services;
  Memory memory;
  std::mutex mutex;
  DeviceDesc device;
  const VkPhysicalDeviceFeatures2 features{};
  device.features = features;
  const VkPhysicalDeviceFeatures enabled_features{};
  device.enabled_features = enabled_features;
  device.set_memory(memory);
  auto submit = [](VkQueue, std::span<const VkSubmitInfo> submits, std::uint64_t) {
    return submits.empty() ? VK_SUCCESS : VK_ERROR_UNKNOWN;
  };
  auto run = [](auto work) { work(VkQueue{}); };
  for (const QueueDesc& queue :
       {QueueDesc::record_only(0), QueueDesc::single_thread(nullptr, 0),
        QueueDesc::internally_synchronized(nullptr, 0), QueueDesc::exclusive(nullptr, 0),
        QueueDesc::locked(nullptr, 0, mutex), QueueDesc::submitted_by(nullptr, 0, submit),
        QueueDesc::run_by(nullptr, 0, run)})
    device.queue = queue;
  Limits limits;
  limits.gpu_us_per_frame = 300;
  Made<Context> context = Context::create(library, device, HostDesc(services), limits);
  if (!context) return 1;
  const float seen[4] = {};
  DqnOptions options;
  options.epsilon = 0;
  BrainDesc desc;
  desc.observation_count = 4;
  desc.observation_scale = seen;
  desc.branch_sizes = {3};
  desc.hidden_sizes = {32, 32};
  desc.learner = options;
  Made<Brain> brain = context->create_brain(desc);
  Made<Agent> agent = brain->create_agent();
  (void)context->warmup([](float) {});
  (void)agent->observe(seen);
  Demonstration shown;
  shown.observation = seen;
  shown.branches = {1};
  (void)agent->demonstrate(shown);
  Made<Tensor> tensor = context->create_tensor(TensorDesc{.name = "x", .shape = {2, 3}}, BufferDesc());
  (void)tensor->buffer();
  char text[100];
  (void)context->report_text(text);
  (void)context->tuning(text);
  std::byte cache[100];
  (void)context->pipeline_cache(cache);
  (void)context->missing_feature_remedy(0, Engine::godot);
  Made<MergedDevice> merged = merge_device_create_info(library, PlanDesc(), VkDeviceCreateInfo{});
  device.features = merged->create_info();
  device.features = merged->features();
  device.device_extensions = merged->device_extensions();
  const Made<Action> action = agent->act();
  return action.outcome.ready() ? static_cast<int>(action.value.choices()[0]) : 0;
}
