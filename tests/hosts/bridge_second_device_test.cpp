// T2, R5. Imprint's own device beside a host's that does not serve, and memory that both share. Agents
// observe what a shader on the host's device wrote, and act where another shader reads, to the same bits as
// through host memory; fences order it. Without such memory Imprint says so, and numbers pass through host
// memory.

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/buffer_host.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint32_t kAgents = 6, kStride = 5, kSenses = 4, kWidth = 1 + 2;
constexpr std::uint64_t kTurns = 60;
constexpr VkPipelineStageFlags kShader = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;

#define ASSERT_WORKS(call) ASSERT_EQ(call, IMP_OK) << api_->last_error()
#define EXPECT_WORKS(call) EXPECT_EQ(call, IMP_OK) << api_->last_error()

// Makes functions of the host's device fail, or the GPU name itself another. One at a time: Vulkan's
// functions have no user pointer.
struct Trouble {
  std::string fails;  // name of a function of the host's device
  VkResult with = VK_SUCCESS;
  bool other_gpu = false;
  PFN_vkGetInstanceProcAddr real = nullptr;
  PFN_vkGetDeviceProcAddr real_device = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 real_properties = nullptr;
  PFN_vkVoidFunction real_function = nullptr;  // of the function that fails
} trouble;

// The function that `trouble` names: it fails as long as it is to.
template <class F>
struct Failing;
template <class... Arguments>
struct Failing<VkResult(VKAPI_PTR*)(Arguments...)> {
  static VkResult VKAPI_CALL call(Arguments... arguments) {
    if (trouble.with != VK_SUCCESS) return trouble.with;
    return reinterpret_cast<VkResult(VKAPI_PTR*)(Arguments...)>(trouble.real_function)(arguments...);
  }
};

VKAPI_ATTR void VKAPI_CALL properties_of_another(VkPhysicalDevice device,
                                                 VkPhysicalDeviceProperties2* properties) {
  trouble.real_properties(device, properties);
  for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link; link = link->pNext)
    if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)
      reinterpret_cast<VkPhysicalDeviceIDProperties*>(link)->deviceUUID[0] ^= 1;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  if (trouble.fails == name) {
    trouble.real_function = trouble.real_device(device, name);
#define X(function)               \
  if (trouble.fails == #function) \
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##function>(Failing<PFN_##function>::call));
    X(vkCreateBuffer)
    X(vkAllocateMemory)
    X(vkBindBufferMemory)
#undef X
    ADD_FAILURE() << name << " has no way to fail";
  }
  return trouble.real_device(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  // The instance is of 1.1 and has only the core names of functions that 1.0 has as extensions.
  if (std::string(name) == "vkGetPhysicalDeviceProperties2KHR") name = "vkGetPhysicalDeviceProperties2";
  const PFN_vkVoidFunction real = trouble.real(instance, name);
  if (real && std::string("vkGetDeviceProcAddr") == name) {
    trouble.real_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  }
  if (real && trouble.other_gpu && std::string(name) == "vkGetPhysicalDeviceProperties2") {
    trouble.real_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(properties_of_another);
  }
  return real;
}

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count;
}

// A host queue with one command buffer; the CPU orders it.
class HostQueue {
 public:
  explicit HostQueue(PlainHost& host) : host_(host), vk_(host.vk()) {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = host.family();
    EXPECT_EQ(vk_.vkCreateCommandPool(host.device(), &pool, nullptr, &pool_), VK_SUCCESS);
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    EXPECT_EQ(vk_.vkAllocateCommandBuffers(host.device(), &allocate, &commands_), VK_SUCCESS);
    const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    EXPECT_EQ(vk_.vkCreateFence(host.device(), &fence, nullptr, &fence_), VK_SUCCESS);
  }
  ~HostQueue() {
    host_.wait_idle();
    vk_.vkDestroyFence(host_.device(), fence_, nullptr);
    vk_.vkDestroyCommandPool(host_.device(), pool_, nullptr);
  }

  VkCommandBuffer begin() {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    EXPECT_EQ(vk_.vkResetCommandPool(host_.device(), pool_, 0), VK_SUCCESS);
    EXPECT_EQ(vk_.vkBeginCommandBuffer(commands_, &begin), VK_SUCCESS);
    return commands_;
  }

  // From Imprint to the host, or back.
  void hand(const HostBuffer& buffer, bool to_host) {
    VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
    barrier.srcAccessMask = to_host ? 0 : VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = to_host ? VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT : 0;
    barrier.srcQueueFamilyIndex = to_host ? VK_QUEUE_FAMILY_EXTERNAL : host_.family();
    barrier.dstQueueFamilyIndex = to_host ? host_.family() : VK_QUEUE_FAMILY_EXTERNAL;
    barrier.buffer = buffer.buffer;
    barrier.offset = buffer.offset;
    barrier.size = buffer.size;
    vk_.vkCmdPipelineBarrier(commands_, kShader,
                             to_host ? kShader : VkPipelineStageFlags(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT),
                             0, 0, nullptr, 1, &barrier, 0, nullptr);
  }

  void submit() {
    EXPECT_EQ(vk_.vkEndCommandBuffer(commands_), VK_SUCCESS);
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    EXPECT_EQ(host_.submit(1, &info, fence_), VK_SUCCESS);
    EXPECT_EQ(vk_.vkWaitForFences(host_.device(), 1, &fence_, VK_TRUE, ~0ull), VK_SUCCESS);
    EXPECT_EQ(vk_.vkResetFences(host_.device(), 1, &fence_), VK_SUCCESS);
  }

 private:
  PlainHost& host_;
  const VolkDeviceTable& vk_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

const std::vector<const char*> kMemory = {"VK_KHR_external_memory_fd"};

struct Learned {
  std::uint64_t low = 0, high = 0;
  std::vector<std::uint32_t> choices;
  bool operator==(const Learned&) const = default;
};

// A layer older than the driver reports features and limits of newer extensions as errors. The environment
// may name a layer of any age.
std::string without_unknown_structures(const std::string& said) {
  std::string kept;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const char* text) { return line.find(text) != std::string::npos; };
    const bool is_age =
        has("unknown VkStructureType") &&
        (has("VUID-VkDeviceCreateInfo-pNext-pNext") || has("VUID-VkPhysicalDeviceProperties2-pNext-pNext"));
    if (!is_age) kept += line + "\n";
  }
  return kept;
}

class T2SecondDevice : public testing::Test {
 protected:
  // The second device has its own instance. The environment turns its validation on; its messages go to the
  // standard output.
  void SetUp() override {
    setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation", 1);
    setenv("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT", 1);
    trouble = {};
    testing::internal::CaptureStdout();
  }
  void TearDown() override {
    if (context_.id != 0) close();
    const std::string said = without_unknown_structures(testing::internal::GetCapturedStdout());
    EXPECT_THAT(said, Not(HasSubstr("Validation"))) << said;
    EXPECT_THAT(said, Not(HasSubstr("VUID"))) << said;
    unsetenv("VK_INSTANCE_LAYERS");
    unsetenv("VK_LAYER_ENABLES");
  }

  // A host that declares Vulkan 1.0; what 1.1 made core then comes from extensions.
  void open(const std::vector<const char*>& enabled, bool declares_what_is_core = true) {
    HostProfile profile{"old", VK_API_VERSION_1_1};
    profile.bonuses = enabled;
    host_ = std::make_unique<PlainHost>(profile);
    ASSERT_TRUE(host_->ok());
    const vk::DeviceDescription device = host_->describe();
    trouble.real = device.get_instance_proc_addr;
    imp_vk_device_info info = device_info(*host_, device, IMP_QUEUE_SINGLE_THREAD);
    info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(instance_function);
    info.api_version = VK_API_VERSION_1_0;
    std::vector<const char*> instance_extensions(device.instance_extensions.begin(),
                                                 device.instance_extensions.end());
    for (const char* name : {"VK_KHR_get_physical_device_properties2", "VK_KHR_external_memory_capabilities"})
      instance_extensions.push_back(name);
    info.instance_extensions = instance_extensions.data();
    info.instance_extension_count = static_cast<std::uint32_t>(instance_extensions.size());
    std::vector<const char*> device_extensions(device.device_extensions.begin(),
                                               device.device_extensions.end());
    if (declares_what_is_core) device_extensions.push_back("VK_KHR_external_memory");
    info.device_extensions = device_extensions.data();
    info.device_extension_count = static_cast<std::uint32_t>(device_extensions.size());
    info.allow_own_device = 1;
    imp_host lent = imp_host_init();
    lent.user = this;
    lent.log = [](void* user, imp_log_level, const char* message) {
      static_cast<T2SecondDevice*>(user)->log_ += std::string(message) + "\n";
    };
    // The host's memory callbacks: never used for the second device.
    info.allocate_device_memory = [](void*, const void*, std::uint64_t*) -> std::int32_t {
      return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    };
    info.free_device_memory = [](void*, std::uint64_t) { ADD_FAILURE() << "frees what is not the host's"; };
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = UINT32_MAX;
    ASSERT_WORKS(api_->context_create(&info, &lent, &limits, &context_));
    report_ = imp_report_init();
    ASSERT_WORKS(api_->tools->context_get_report(context_, &report_));
    EXPECT_EQ(report_.own_device, 1u);
  }

  void close() {
    queue_.reset();
    EXPECT_WORKS(api_->context_destroy(context_));
    context_ = {};
    shaders_.reset();
    EXPECT_EQ(host_->messages(), 0u) << host_->first_message();
    host_.reset();
  }

  std::string text() {
    std::size_t size = 0;
    EXPECT_WORKS(api_->tools->context_get_report_text(context_, nullptr, &size));
    std::string text(size, '\0');
    EXPECT_WORKS(api_->tools->context_get_report_text(context_, text.data(), &size));
    return text;
  }

  imp_result create(std::initializer_list<std::uint64_t> shape, imp_tensor* tensor,
                    const imp_vk_buffer& wish = imp_vk_buffer_init()) {
    const imp_tensor_desc desc = [&] {
      imp_tensor_desc made = imp_tensor_desc_init();
      made.rank = static_cast<std::uint32_t>(shape.size());
      std::copy(shape.begin(), shape.end(), made.shape);
      return made;
    }();
    return api_->vulkan->tensor_create_vk(context_, &desc, &wish, tensor);
  }

  HostBuffer place(imp_tensor tensor) {
    imp_vk_buffer where = imp_vk_buffer_init();
    EXPECT_WORKS(api_->vulkan->tensor_export_vk(tensor, &where));
    EXPECT_NE(where.memory, 0u);
    HostBuffer found;
    std::memcpy(&found.buffer, &where.buffer, sizeof found.buffer);
    found.offset = where.offset;
    found.size = where.size;
    return found;
  }

  void begin(std::uint64_t frame) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = frame;
    info.time_s = static_cast<double>(frame) / 60;
    EXPECT_WORKS(api_->frame_begin(context_, &info));
  }

  // Returns when the submitted work is complete. (drain would end minibatches early, in both games alike.)
  void end() {
    EXPECT_WORKS(api_->frame_submit(context_, UINT32_MAX));
    EXPECT_WORKS(api_->frame_end(context_));
    EXPECT_WORKS(api_->context_quiesce(context_, 60'000));
    EXPECT_WORKS(api_->context_resume(context_));
  }

  static std::array<float, kSenses> senses(std::uint64_t turn, std::uint32_t agent) {
    std::array<float, kSenses> values{};
    for (std::uint32_t c = 0; c < kSenses; ++c)
      values[c] = number_of(static_cast<std::uint32_t>(turn), agent * kSenses + c);
    return values;
  }

  void expect_counts(imp_brain brain) {
    imp_brain_stats stats = imp_brain_stats_init();
    EXPECT_WORKS(api_->tools->brain_get_stats(brain, &stats));
    EXPECT_GT(stats.minibatches, 20u);
    EXPECT_EQ(stats.late_actions, 0u);
    imp_context_stats counted = imp_context_stats_init();
    EXPECT_WORKS(api_->tools->context_get_stats(context_, &counted));
    EXPECT_EQ(counted.frame_allocations + counted.frame_compiles + counted.frame_waits, 0u);
  }

  // Turns of a game that learns, each a host frame and an Imprint frame.
  Learned live(bool in_place) {
    Learned learned;
    game::BrainDesc desc = small_brain(2, 0, 7, 128);
    desc.branch_sizes = {2};
    desc.hidden_sizes = {16};
    desc.agents_per_brain = kAgents;
    HostBuffer seen, done;
    if (in_place) {
      EXPECT_WORKS(create({kAgents, kStride}, &desc.observations));
      EXPECT_WORKS(create({kAgents, kWidth}, &desc.actions));
      seen = place(desc.observations);
      done = place(desc.actions);
      shaders_ = std::make_unique<BufferHost>(*host_);
      queue_ = std::make_unique<HostQueue>(*host_);
    }
    imp_brain brain{};
    EXPECT_WORKS(api_->brain_create(context_, c_form(desc), &brain));
    std::vector<imp_agent> agents(kAgents);
    for (imp_agent& agent : agents) EXPECT_WORKS(api_->agent_create(brain, 0, &agent));
    EXPECT_WORKS(api_->context_warmup(context_, nullptr, nullptr));

    std::uint64_t frame = 1;
    begin(frame);  // Imprint owns everything at first
    if (in_place) EXPECT_WORKS(api_->vulkan->tensor_release(desc.observations));
    if (in_place) EXPECT_WORKS(api_->vulkan->tensor_release(desc.actions));
    end();
    std::vector<std::vector<float>> rows(kTurns +
                                         1);  // of each turn's answers, as the host's shader read them
    for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
      if (in_place) {
        if (turn > 2)
          rows[turn - 2].assign(shaders_->result().begin(), shaders_->result().begin() + kAgents * kWidth);
        const VkCommandBuffer commands = queue_->begin();
        for (const HostBuffer& each : {seen, done}) queue_->hand(each, true);
        shaders_->double_and_add_one(commands, done, kAgents * kWidth);
        shaders_->write_rows(commands, seen, static_cast<std::uint32_t>(turn), kAgents);
        for (const HostBuffer& each : {seen, done}) queue_->hand(each, false);
        queue_->submit();
      }
      begin(++frame);
      if (in_place) EXPECT_WORKS(api_->vulkan->tensor_acquire(desc.observations));
      if (in_place) EXPECT_WORKS(api_->vulkan->tensor_acquire(desc.actions));
      for (std::uint32_t i = 0; i < kAgents; ++i) {
        if (in_place)
          EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agents[i], i * kStride));
        else
          EXPECT_WORKS(api_->agent_observe(agents[i], senses(turn, i).data(), kSenses));
        imp_action action = imp_action_init();
        if (api_->agent_act(agents[i], &action) != IMP_OK || action.requested_frame + 2 != frame) continue;
        learned.choices.push_back(action.branches[0]);
        EXPECT_WORKS(
            api_->agent_reward(agents[i], action.branches[0] == (senses(turn - 2, i)[0] > 0) ? 1.0f : -0.5f));
        if (!in_place || rows[turn - 2].empty()) continue;
        const float* row = &rows[turn - 2][i * kWidth];
        EXPECT_EQ(row[0], 2 * static_cast<float>(action.branches[0]) + 1)
            << "turn " << turn << ", agent " << i;
        for (std::uint32_t v = 0; v < action.value_count; ++v)
          EXPECT_FLOAT_EQ(row[1 + v], 2 * action.values[v] + 1);
      }
      if (in_place) EXPECT_WORKS(api_->vulkan->tensor_release(desc.observations));
      if (in_place) EXPECT_WORKS(api_->vulkan->tensor_release(desc.actions));
      end();
    }
    EXPECT_GT(learned.choices.size(), kAgents * (kTurns - 4));
    EXPECT_WORKS(api_->context_drain(context_, 60'000));
    EXPECT_WORKS(api_->tools->brain_hash(brain, &learned.low, &learned.high));
    expect_counts(brain);
    EXPECT_WORKS(api_->brain_destroy(brain));
    if (in_place) {
      queue_.reset();
      shaders_.reset();
      EXPECT_WORKS(api_->vulkan->tensor_destroy(desc.observations));
      EXPECT_WORKS(api_->vulkan->tensor_destroy(desc.actions));
    }
    return learned;
  }

  // Twice, by numbers and in place, each on a context of its own.
  void expect_equal_lives() {
    Learned learned[2];
    for (const bool in_place : {false, true}) {
      open(kMemory);
      if (HasFatalFailure()) return;
      if (!host_->enabled("VK_KHR_external_memory_fd")) GTEST_SKIP() << "this device exports no memory";
      EXPECT_EQ(report_.tensor_sharing, IMP_TENSORS_ACROSS_DEVICES);
      EXPECT_THAT(text(), HasSubstr("tensors lie in memory that both devices share"));
      EXPECT_THAT(log_, HasSubstr("tensors lie in memory that both devices share"));
      learned[in_place] = live(in_place);
      close();
    }
    EXPECT_TRUE(learned[0] == learned[1]) << "the same numbers, in the same order, are the same brain";
  }

  const imp_api* api_ = table();
  std::unique_ptr<PlainHost> host_;
  std::unique_ptr<BufferHost> shaders_;
  std::unique_ptr<HostQueue> queue_;
  imp_context context_{};
  imp_report report_{};
  std::string log_;
};

TEST_F(T2SecondDevice, HasTheHostsMemoryInTheOrderOfFences) { expect_equal_lives(); }

// Reports and errors of a context without shared memory.
TEST_F(T2SecondDevice, SaysWhereNumbersHaveToPassThroughHostMemory) {
  struct Case {
    std::vector<const char*> enabled;
    bool declares_what_is_core, other_gpu;
    const char* why;
  };
  const Case cases[] = {
      {{}, true, false, "the host's device does not declare VK_KHR_external_memory_fd"},
      {kMemory, false, false, "does not declare VK_KHR_external_memory, which Vulkan 1.0 needs"},
      {kMemory, true, true, "the two devices are not of the same GPU and driver"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.why);
    trouble.other_gpu = each.other_gpu;
    log_.clear();
    open(each.enabled, each.declares_what_is_core);
    if (HasFatalFailure()) return;
    if (!each.enabled.empty() && !host_->enabled("VK_KHR_external_memory_fd")) {
      close();
      continue;
    }
    EXPECT_EQ(report_.tensor_sharing, IMP_TENSORS_NOT_SHARED);
    EXPECT_THAT(text(),
                HasSubstr("observations and actions pass through host memory, and no tensors are shared"));
    EXPECT_THAT(text(), HasSubstr(each.why));
    EXPECT_THAT(log_, HasSubstr(each.why));
    imp_tensor tensor{};
    EXPECT_EQ(create({4}, &tensor), IMP_ERROR_UNSUPPORTED);
    EXPECT_THAT(api_->last_error(), HasSubstr(each.why));
    (void)live(false);
    // Semaphores of another device.
    imp_vk_semaphore semaphore{};
    EXPECT_EQ(api_->vulkan->context_get_semaphore(context_, &semaphore), IMP_ERROR_UNSUPPORTED);
    begin(kTurns + 10);
    semaphore.semaphore = 1;
    imp_submit_info info = imp_submit_info_init();
    info.wait_count = 1;
    info.waits = &semaphore;
    EXPECT_EQ(api_->vulkan->frame_submit_with(context_, &info), IMP_ERROR_UNSUPPORTED);
    EXPECT_WORKS(api_->frame_submit(context_, UINT32_MAX));
    EXPECT_WORKS(api_->frame_end(context_));
    close();
  }
}

TEST_F(T2SecondDevice, ImportsNoHostBuffer) {
  open(kMemory);
  if (HasFatalFailure()) return;
  const imp_tensor_desc desc = [] {
    imp_tensor_desc made = imp_tensor_desc_init();
    made.rank = 1;
    made.shape[0] = 4;
    return made;
  }();
  imp_vk_buffer buffer = imp_vk_buffer_init();
  buffer.buffer = 0x1234;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  imp_tensor tensor{};
  EXPECT_EQ(api_->vulkan->tensor_import_vk(context_, &desc, &buffer, &tensor), IMP_ERROR_UNSUPPORTED);
  EXPECT_THAT(api_->last_error(), HasSubstr("a context with its own device"));
}

// Any failure on the host's device gives no tensor and leaves nothing behind, and the next attempt works.
TEST_F(T2SecondDevice, GivesAllBackWhenTheHostsDeviceDoesNotTakeIt) {
  const std::size_t files_at_first = open_files();
  for (const char* fails : {"vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory"}) {
    for (const auto& [result, code] :
         {std::pair{VK_ERROR_OUT_OF_DEVICE_MEMORY, IMP_ERROR_OUT_OF_DEVICE_MEMORY},
          std::pair{VK_ERROR_OUT_OF_HOST_MEMORY, IMP_ERROR_OUT_OF_HOST_MEMORY},
          std::pair{VK_ERROR_INVALID_EXTERNAL_HANDLE, IMP_ERROR_UNSUPPORTED}}) {
      SCOPED_TRACE(std::string(fails) + " gives " + std::to_string(result));
      trouble.fails = fails;
      trouble.with = result;
      open(kMemory);
      if (HasFatalFailure()) return;
      if (!host_->enabled("VK_KHR_external_memory_fd")) GTEST_SKIP() << "this device exports no memory";
      imp_context_stats before = imp_context_stats_init(), after = before;
      EXPECT_WORKS(api_->tools->context_get_stats(context_, &before));
      const std::size_t files = open_files();
      imp_tensor tensor{};
      log_.clear();
      EXPECT_EQ(create({1000}, &tensor), code) << api_->last_error();
      EXPECT_THAT(api_->last_error(), HasSubstr(fails));
      EXPECT_THAT(log_, HasSubstr("observations and actions pass through host memory"));
      EXPECT_EQ(open_files(), files);
      EXPECT_WORKS(api_->tools->context_get_stats(context_, &after));
      EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
      trouble.with = VK_SUCCESS;
      EXPECT_WORKS(create({1000}, &tensor));
      close();
    }
  }
  EXPECT_EQ(open_files(), files_at_first);
}

TEST_F(T2SecondDevice, RefusesObjectsThatTwoDevicesCannotShare) {
  open(kMemory);
  if (HasFatalFailure()) return;
  if (!host_->enabled("VK_KHR_external_memory_fd")) GTEST_SKIP() << "this device exports no memory";
  imp_tensor tensor{};
  log_.clear();
  const std::uint32_t families[] = {0, 0};
  imp_vk_buffer wish = imp_vk_buffer_init();
  wish.sharing = VK_SHARING_MODE_CONCURRENT;
  wish.families = families;
  wish.family_count = 2;
  EXPECT_EQ(create({4}, &tensor, wish), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(api_->last_error(), HasSubstr("sharing: found VK_SHARING_MODE_CONCURRENT"));
  wish = imp_vk_buffer_init();
  wish.usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  EXPECT_EQ(create({4}, &tensor, wish), IMP_ERROR_UNSUPPORTED);
  EXPECT_THAT(api_->last_error(), HasSubstr("VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT"));
  wish.usage = VK_BUFFER_USAGE_TRANSFORM_FEEDBACK_BUFFER_BIT_EXT;
  EXPECT_EQ(create({4}, &tensor, wish), IMP_ERROR_UNSUPPORTED);
  EXPECT_THAT(api_->last_error(), HasSubstr("newer than Vulkan 1.0"));
  EXPECT_THAT(log_, Not(HasSubstr("cannot import"))) << "the two devices are not to blame";
  wish.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  EXPECT_WORKS(create({4}, &tensor, wish));
}

// Destroyed before its initial zeros and its change of owner were submitted.
TEST_F(T2SecondDevice, ATensorMayBeDestroyedBeforeItsWorkIsSubmitted) {
  open(kMemory);
  if (HasFatalFailure()) return;
  if (!host_->enabled("VK_KHR_external_memory_fd")) GTEST_SKIP() << "this device exports no memory";
  imp_tensor tensor{};
  ASSERT_WORKS(create({1000}, &tensor));
  begin(1);
  ASSERT_WORKS(api_->vulkan->tensor_release(tensor));
  ASSERT_WORKS(api_->frame_end(context_));
  ASSERT_WORKS(api_->vulkan->tensor_destroy(tensor));
  begin(2);
  end();
}

// Silence of the second device's layer proves something only if its messages arrive.
TEST_F(T2SecondDevice, ReportsMessagesOfItsValidationLayer) {
  const VkApplicationInfo application{
      VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "test", 1, nullptr, 0, VK_API_VERSION_1_1};
  VkInstanceCreateInfo make{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  make.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateInstance(&make, nullptr, &instance), VK_SUCCESS);
  std::uint32_t count = 1;
  VkPhysicalDevice device = VK_NULL_HANDLE;
  const auto enumerate = reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(
      vkGetInstanceProcAddr(instance, "vkEnumeratePhysicalDevices"));
  ASSERT_GE(enumerate(instance, &count, &device), VK_SUCCESS);
  const auto ask = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(
      vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceProperties2"));
  VkPhysicalDeviceProperties2 of_no_type{};
  ask(device, &of_no_type);
  reinterpret_cast<PFN_vkDestroyInstance>(vkGetInstanceProcAddr(instance, "vkDestroyInstance"))(instance,
                                                                                                nullptr);
  const std::string said = testing::internal::GetCapturedStdout();
  testing::internal::CaptureStdout();
  EXPECT_THAT(said, HasSubstr("VUID"));
}

}  // namespace
}  // namespace imprint::bridge
