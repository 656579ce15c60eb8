// T7. Imprint holds no lock while it calls the host. Inside each callback, another host thread calls every
// [any] function and gets its answer before the callback returns.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

#define ASSERT_OK(call) ASSERT_EQ(call, IMP_OK) << api->last_error()

// A thread that calls Imprint while a callback waits for it.
class Asker {
 public:
  Asker() : thread_([this] { work(); }) {}
  ~Asker() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Called in a callback. Frequent callbacks are sampled.
  void ask(const char* callback) {
    constexpr std::uint64_t kAll = 40, kEvery = 16;
    std::unique_lock lock(mutex_);
    const std::uint64_t count = ++counts_[callback];
    if (count > kAll && count % kEvery != 0) return;
    if (!held_.empty()) return;  // the test has failed already, and the thread may still be stuck
    const std::uint64_t mine = ++asked_;
    changed_.notify_all();
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return answered_ >= mine; }))
      held_.insert(callback);
  }

  void know(imp_context context, imp_brain brain) {
    context_ = context.id;
    brain_ = brain.id;
  }
  std::set<std::string> held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  std::set<std::string> called() const {
    const std::lock_guard lock(mutex_);
    std::set<std::string> names;
    for (const auto& [name, count] : counts_) names.insert(name);
    return names;
  }

 private:
  // A context in creation has no handle yet, but the registry can be called.
  void call_everything() const {
    const imp_api* api = table();
    const imp_context context{context_};
    const imp_brain brain{brain_};
    imp_context_stats stats = imp_context_stats_init();
    imp_brain_stats of_brain = imp_brain_stats_init();
    imp_brain_info info = imp_brain_info_init();
    for (const imp_result result :
         {api->tools->context_get_stats(context, &stats), api->tools->tuning_stop(context),
          api->tools->brain_get_stats(brain, &of_brain), api->brain_get_info(brain, &info)})
      EXPECT_TRUE(result == IMP_OK || result == IMP_ERROR_INVALID_HANDLE) << api->result_name(result);
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return over_ || answered_ < asked_; });
      if (over_) return;
      const std::uint64_t upto = asked_;
      lock.unlock();
      call_everything();
      lock.lock();
      answered_ = upto;
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t asked_ = 0, answered_ = 0;
  bool over_ = false;
  std::map<std::string, std::uint64_t> counts_;
  std::set<std::string> held_;
  std::atomic<std::uint64_t> context_{0}, brain_{0};
  std::thread thread_;
};

enum class Lent { lock, submit, run_on_queue, exclusive };

// A host that provides every callback.
struct Lender {
  explicit Lender(bool timeline)
      : host({"lending", timeline ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, timeline}),
        device(host.describe()) {
    const auto get = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        device.get_instance_proc_addr(device.instance, "vkGetDeviceProcAddr"));
    allocate = reinterpret_cast<PFN_vkAllocateMemory>(get(device.device, "vkAllocateMemory"));
    free = reinterpret_cast<PFN_vkFreeMemory>(get(device.device, "vkFreeMemory"));
    callbacks.pUserData = this;
    callbacks.pfnAllocation = [](void* user, std::size_t size, std::size_t alignment,
                                 VkSystemAllocationScope) -> void* {
      static_cast<Lender*>(user)->asker.ask("pfnAllocation");
      alignment = alignment < sizeof(void*) ? sizeof(void*) : alignment;
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    callbacks.pfnReallocation = [](void* user, void* old, std::size_t size, std::size_t,
                                   VkSystemAllocationScope) -> void* {
      static_cast<Lender*>(user)->asker.ask("pfnReallocation");
      return std::realloc(old, size);
    };
    callbacks.pfnFree = [](void* user, void* memory) {
      static_cast<Lender*>(user)->asker.ask("pfnFree");
      std::free(memory);
    };
  }

  imp_vk_device_info info(Lent way) {
    const imp_queue_access access = way == Lent::lock        ? IMP_QUEUE_LOCK
                                    : way == Lent::exclusive ? IMP_QUEUE_EXCLUSIVE
                                    : way == Lent::submit    ? IMP_QUEUE_SUBMIT_CALLBACK
                                                             : IMP_QUEUE_RUN_ON_QUEUE;
    imp_vk_device_info info = device_info(host, device, access);
    info.allocation_callbacks = &callbacks;
    info.queue.user = this;
    if (way == Lent::lock || way == Lent::exclusive) {
      info.queue.lock = [](void* user, VkQueue) { static_cast<Lender*>(user)->asker.ask("lock"); };
      info.queue.unlock = [](void* user, VkQueue) { static_cast<Lender*>(user)->asker.ask("unlock"); };
    } else if (way == Lent::submit) {
      info.queue.submit = [](void* user, VkQueue, std::uint32_t count, const void* submits,
                             std::uint64_t number) -> std::int32_t {
        auto& self = *static_cast<Lender*>(user);
        self.asker.ask("submit");
        if (self.lost) return VK_ERROR_DEVICE_LOST;
        VkFence fence = VK_NULL_HANDLE;
        std::memcpy(&fence, &number, sizeof fence);
        return self.host.submit(count, static_cast<const VkSubmitInfo*>(submits), fence);
      };
    } else {
      info.queue.run_on_queue = [](void* user, void (*work)(void* data, VkQueue queue), void* data) {
        auto& self = *static_cast<Lender*>(user);
        self.asker.ask("run_on_queue");
        work(data, self.host.queue());
      };
    }
    info.memory_user = this;
    info.allocate_device_memory = [](void* user, const void* wanted, std::uint64_t* memory) -> std::int32_t {
      auto& self = *static_cast<Lender*>(user);
      self.asker.ask("allocate_device_memory");
      VkDeviceMemory made = VK_NULL_HANDLE;
      const VkResult result =
          self.allocate(self.device.device, static_cast<const VkMemoryAllocateInfo*>(wanted), nullptr, &made);
      std::memcpy(memory, &made, sizeof made);
      return result;
    };
    info.free_device_memory = [](void* user, std::uint64_t number) {
      auto& self = *static_cast<Lender*>(user);
      self.asker.ask("free_device_memory");
      VkDeviceMemory memory = VK_NULL_HANDLE;
      std::memcpy(&memory, &number, sizeof memory);
      self.free(self.device.device, memory, nullptr);
    };
    return info;
  }

  imp_host lend(Lent way) {
    imp_host lent = imp_host_init();
    lent.user = this;
    lent.log = [](void* user, imp_log_level, const char*) { static_cast<Lender*>(user)->asker.ask("log"); };
    lent.device_lost = [](void* user, const char*) { static_cast<Lender*>(user)->asker.ask("device_lost"); };
    if (way == Lent::submit) {  // else the threads are Imprint's
      lent.job_submit = [](void* user, void (*run)(void* data), void* data) {
        static_cast<Lender*>(user)->asker.ask("job_submit");
        run(data);
      };
    }
    return lent;
  }

  Asker asker;
  PlainHost host;
  vk::DeviceDescription device;
  PFN_vkAllocateMemory allocate = nullptr;
  PFN_vkFreeMemory free = nullptr;
  VkAllocationCallbacks callbacks{};
  bool lost = false;
};

class T7Callbacks : public testing::TestWithParam<Lent> {};

TEST_P(T7Callbacks, FindNoLockHeld) {
  const imp_api* api = table();
  const Lent way = GetParam();
  const std::string path = testing::TempDir() + "imprint-callbacks.brain";
  Lender lender(way != Lent::lock);  // by fences once
  ASSERT_TRUE(lender.host.ok());
  const imp_vk_device_info info = lender.info(way);
  const imp_host lent = lender.lend(way);
  imp_limits limits = imp_limits_init();
  limits.host_copy_period_frames = 8;
  imp_context context{};
  ASSERT_OK(api->context_create(&info, &lent, &limits, &context));
  lender.asker.know(context, {});
  imp_tensor_desc observations = imp_tensor_desc_init();
  observations.rank = 1;
  observations.shape[0] = 4;
  imp_vk_buffer wish = imp_vk_buffer_init();
  imp_tensor tensor{};
  ASSERT_OK(api->vulkan->tensor_create_vk(context, &observations, &wish, &tensor));
  game::BrainDesc desc = small_brain(2, 1, 3);
  desc.observations = tensor;
  imp_brain brain{};
  imp_agent agent{};
  ASSERT_OK(api->brain_create(context, c_form(desc), &brain));
  lender.asker.know(context, brain);
  ASSERT_OK(api->agent_create(brain, 0, &agent));
  ASSERT_OK(api->context_warmup(
      context, [](void* user, float) { static_cast<Lender*>(user)->asker.ask("progress"); }, &lender));
  std::uint64_t snapshot = 0;
  const auto frame = [&](std::uint64_t number, imp_result expected = IMP_OK) {
    imp_frame_info begin = imp_frame_info_init();
    begin.frame = number;
    begin.time_s = static_cast<double>(number) / 60;
    ASSERT_OK(api->frame_begin(context, &begin));
    const float seen[4] = {1, 0, -1, static_cast<float>(number % 3)};
    const std::uint32_t choice = 0;
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = seen;
    shown.observation_count = 4;
    shown.branches = &choice;
    shown.branch_count = 1;
    ASSERT_OK(api->vulkan->agent_observe_in_place(agent, 0));
    ASSERT_OK(api->agent_demonstrate(agent, &shown));
    if (number == 10) ASSERT_OK(api->brain_save(brain, path.c_str()));
    if (number == 20) ASSERT_OK(api->brain_snapshot(brain, &snapshot));
    ASSERT_EQ(api->frame_submit(context, UINT32_MAX), expected) << api->last_error();
    ASSERT_EQ(api->frame_end(context), expected) << api->last_error();
    if (expected != IMP_OK) return;
    ASSERT_OK(api->context_quiesce(context, 60'000));
    ASSERT_OK(api->context_resume(context));
  };
  std::uint64_t number = 0;
  while (number < 30) ASSERT_NO_FATAL_FAILURE(frame(++number));
  limits.memory_cap_bytes = 1;  // learning leaves the device, and logs it
  ASSERT_OK(api->context_set_limits(context, &limits));
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(frame(++number));
  limits.memory_cap_bytes = 0;
  ASSERT_OK(api->context_set_limits(context, &limits));
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(frame(++number));
  // A tensor whose memory is freed at once.
  imp_tensor other{};
  ASSERT_OK(api->vulkan->tensor_create_vk(context, &observations, &wish, &other));
  ASSERT_OK(api->context_drain(context, 60'000));
  ASSERT_OK(api->vulkan->tensor_destroy(other));
  ASSERT_OK(api->context_drain(context, 60'000));
  ASSERT_OK(api->context_trim(context, nullptr));
  if (way == Lent::submit) {
    lender.lost = true;
    ASSERT_NO_FATAL_FAILURE(frame(++number, IMP_ERROR_DEVICE_LOST));
  }
  ASSERT_OK(api->context_destroy(context));
  EXPECT_THAT(lender.asker.held(), testing::IsEmpty()) << "a lock was held while the host was called";
  std::set<std::string> expected = {
      "allocate_device_memory", "free_device_memory", "log", "pfnAllocation", "pfnFree", "progress"};
  if (way == Lent::lock || way == Lent::exclusive) expected.insert({"lock", "unlock"});
  if (way == Lent::submit) expected.insert({"submit", "job_submit", "device_lost"});
  if (way == Lent::run_on_queue) expected.insert("run_on_queue");
  EXPECT_THAT(lender.asker.called(), testing::IsSupersetOf(expected));
  EXPECT_EQ(lender.host.messages(), 0u) << lender.host.first_message();
}

constexpr const char* kLent[] = {"lock", "submit", "run_on_queue", "exclusive"};
INSTANTIATE_TEST_SUITE_P(Of, T7Callbacks,
                         testing::Values(Lent::lock, Lent::submit, Lent::run_on_queue, Lent::exclusive),
                         [](const auto& one) { return std::string(kLent[static_cast<int>(one.param)]); });

}  // namespace
}  // namespace imprint::bridge
