// Every wrong call that a game can make through the table: a code, a text that helps, and nothing changed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

const imp_api* api() {
  static const imp_api* table = Library(imp_get_api).api();
  return table;
}

void expect_failure(imp_result result, imp_result code, const char* text, const char* call) {
  EXPECT_EQ(result, code) << call << ": " << api()->result_name(result);
  EXPECT_THAT(api()->last_error(), HasSubstr(text)) << call;
}
void expect_success(imp_result result, const char* call) {
  EXPECT_EQ(result, IMP_OK) << call << ": " << api()->result_name(result) << ": " << api()->last_error();
}
#define EXPECT_FAILS(call, code, text) expect_failure(call, code, text, #call)
#define EXPECT_WORKS(call) expect_success(call, #call)

std::string device_name() {
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  return name ? name : "";
}

imp_feedback_options small_options() {
  imp_feedback_options options = imp_feedback_options_init();
  options.replay_capacity = 32;
  return options;
}

imp_brain_desc small_desc() {
  static const std::uint32_t branch = 3;
  static const imp_feedback_options options = small_options();
  imp_brain_desc desc = imp_brain_desc_init();
  desc.header.next = &options;
  desc.observation_count = 4;
  desc.branch_count = 1;
  desc.branch_sizes = &branch;
  desc.goal_count = 2;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.agents_per_brain = 2;
  desc.snapshot_count = 1;
  return desc;
}

class Misuse : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_NE(api(), nullptr);
    const std::string name = device_name();
    imp_standalone_info device = imp_standalone_info_init();
    device.device = name.empty() ? nullptr : name.c_str();
    ASSERT_EQ(api()->tools->context_create_standalone(&device, nullptr, nullptr, &context), IMP_OK)
        << api()->last_error();
    const imp_brain_desc desc = small_desc();
    ASSERT_EQ(api()->brain_create(context, &desc, &brain), IMP_OK) << api()->last_error();
    ASSERT_EQ(api()->agent_create(brain, 0, &agent), IMP_OK);
    ASSERT_EQ(api()->context_warmup(context, nullptr, nullptr), IMP_OK) << api()->last_error();
  }
  static void TearDownTestSuite() {
    EXPECT_WORKS(api()->context_destroy(context));
    EXPECT_FAILS(api()->context_destroy(context), IMP_ERROR_INVALID_HANDLE, "context");
    EXPECT_FAILS(api()->agent_set_goal(agent, 0), IMP_ERROR_INVALID_HANDLE, "agent");
  }
  void TearDown() override {
    if (open) end();
  }

  void begin() {
    imp_frame_info info = imp_frame_info_init();
    info.frame = ++frame;
    info.time_s = static_cast<double>(frame) / 60;
    EXPECT_WORKS(api()->frame_begin(context, &info));
    open = true;
  }
  void end() {
    if (!submitted) EXPECT_WORKS(api()->frame_submit(context, UINT32_MAX));
    EXPECT_WORKS(api()->frame_end(context));
    open = submitted = false;
  }

  static inline imp_context context{};
  static inline imp_brain brain{};
  static inline imp_agent agent{};
  static inline std::uint64_t frame = 0;
  bool open = false, submitted = false;
};

TEST_F(Misuse, TheTable) {
  const imp_api* table = nullptr;
  EXPECT_FAILS(imp_get_api(IMP_ABI_VERSION, nullptr), IMP_ERROR_INVALID_ARGUMENT, "api: found null");
  EXPECT_FAILS(imp_get_api(99, &table), IMP_ERROR_UNSUPPORTED, "ABI version");
  EXPECT_EQ(table, nullptr);
  EXPECT_EQ(api()->size, sizeof(imp_api));
  EXPECT_STREQ(api()->result_name(IMP_NOT_READY), "IMP_NOT_READY");
  EXPECT_STREQ(api()->result_name(12345), "unknown result");
  std::thread([] { EXPECT_STREQ(api()->last_error(), "") << "each thread has its own"; }).join();
}

TEST_F(Misuse, HandlesThatNameNothing) {
  const imp_context no_context{}, odd_context{0x1234567812345678ull}, brain_as_context{brain.id};
  for (const imp_context handle : {no_context, odd_context, brain_as_context}) {
    EXPECT_FAILS(api()->frame_end(handle), IMP_ERROR_INVALID_HANDLE, "frame_end");
    imp_context_stats stats = imp_context_stats_init();
    EXPECT_FAILS(api()->tools->context_get_stats(handle, &stats), IMP_ERROR_INVALID_HANDLE,
                 "context_get_stats");
    EXPECT_FAILS(api()->context_destroy(handle), IMP_ERROR_INVALID_HANDLE, "context_destroy");
  }
  imp_brain_stats stats = imp_brain_stats_init();
  EXPECT_FAILS(api()->tools->brain_get_stats(imp_brain{}, &stats), IMP_ERROR_INVALID_HANDLE, "brain");
  EXPECT_FAILS(api()->tools->brain_get_stats(imp_brain{agent.id}, &stats), IMP_ERROR_INVALID_HANDLE, "brain");
  EXPECT_FAILS(api()->brain_save(imp_brain{context.id}, "x"), IMP_ERROR_INVALID_HANDLE, "brain");
  EXPECT_FAILS(api()->agent_destroy(imp_agent{}), IMP_ERROR_INVALID_HANDLE, "agent");
  EXPECT_FAILS(api()->agent_set_goal(imp_agent{brain.id}, 0), IMP_ERROR_INVALID_HANDLE, "agent");
}

TEST_F(Misuse, WhatWasDestroyedStaysDestroyed) {
  const imp_brain_desc desc = small_desc();
  imp_brain short_lived{};
  imp_agent first{}, second{};
  EXPECT_WORKS(api()->brain_create(context, &desc, &short_lived));
  EXPECT_WORKS(api()->agent_create(short_lived, 0, &first));
  EXPECT_WORKS(api()->agent_destroy(first));
  EXPECT_FAILS(api()->agent_set_goal(first, 0), IMP_ERROR_INVALID_HANDLE, "agent");
  EXPECT_WORKS(api()->agent_create(short_lived, 0, &second));
  EXPECT_NE(first.id, second.id);
  EXPECT_FAILS(api()->agent_set_goal(first, 0), IMP_ERROR_INVALID_HANDLE, "agent");
  EXPECT_WORKS(api()->brain_destroy(short_lived));
  EXPECT_FAILS(api()->brain_destroy(short_lived), IMP_ERROR_INVALID_HANDLE, "brain");
  EXPECT_FAILS(api()->agent_set_goal(second, 0), IMP_ERROR_INVALID_HANDLE, "agent");
}

TEST_F(Misuse, Structs) {
  imp_brain_desc desc = small_desc();
  imp_brain made{};
  EXPECT_FAILS(api()->brain_create(context, nullptr, &made), IMP_ERROR_INVALID_ARGUMENT, "desc: found null");
  EXPECT_FAILS(api()->brain_create(context, &desc, nullptr), IMP_ERROR_INVALID_ARGUMENT, "brain: found null");
  desc.header.size = offsetof(imp_brain_desc, snapshot_count);  // shorter than it ever was
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT, "size");
  desc = small_desc();
  desc.header.type = IMP_STRUCT_ACTION;
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT, "struct type");
  desc = small_desc();
  desc.header.next = &desc;
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT, "next");
  imp_limits chained = imp_limits_init();
  chained.header.next = &desc;
  EXPECT_FAILS(api()->context_set_limits(context, &chained), IMP_ERROR_INVALID_ARGUMENT, "next");
  EXPECT_EQ(made.id, 0u) << "written on success only";

  imp_brain_stats stats{};
  EXPECT_FAILS(api()->tools->brain_get_stats(brain, &stats), IMP_ERROR_INVALID_ARGUMENT, "struct type");
  EXPECT_FAILS(api()->tools->brain_get_stats(brain, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  imp_brain_info info{};
  EXPECT_FAILS(api()->brain_get_info(brain, &info), IMP_ERROR_INVALID_ARGUMENT, "struct type");
  imp_context_stats context_stats{};
  EXPECT_FAILS(api()->tools->context_get_stats(context, &context_stats), IMP_ERROR_INVALID_ARGUMENT,
               "struct type");
  imp_limits limits = imp_limits_init();
  limits.worker_threads = 65;
  EXPECT_FAILS(api()->context_set_limits(context, &limits), IMP_ERROR_INVALID_ARGUMENT, "worker_threads");
  EXPECT_FAILS(api()->context_set_limits(context, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  imp_frame_info frame_info{};
  EXPECT_FAILS(api()->frame_begin(context, &frame_info), IMP_ERROR_INVALID_ARGUMENT, "struct type");
}

TEST_F(Misuse, Devices) {
  imp_context made{};
  EXPECT_FAILS(api()->context_create(nullptr, nullptr, nullptr, &made), IMP_ERROR_INVALID_ARGUMENT,
               "device: found null");
  imp_vk_device_info info = imp_vk_device_info_init();
  EXPECT_FAILS(api()->context_create(&info, nullptr, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "context: found null");
  EXPECT_FAILS(api()->context_create(&info, nullptr, nullptr, &made), IMP_ERROR_INVALID_ARGUMENT,
               "get_instance_proc_addr");
  info.device_extension_count = 3;
  EXPECT_FAILS(api()->context_create(&info, nullptr, nullptr, &made), IMP_ERROR_INVALID_ARGUMENT,
               "device_extensions");
  imp_standalone_info standalone = imp_standalone_info_init();
  standalone.device = "no such device anywhere";
  EXPECT_FAILS(
      api()->tools->context_create_standalone(&standalone, nullptr, nullptr, &made), IMP_ERROR_NOT_FOUND,
      device_name() == "cpu" ? "no Vulkan device"
                             : "no such device anywhere");  // gpu_abi_on_cpu hides those that there are
  imp_host host{};
  standalone.device = nullptr;
  EXPECT_FAILS(api()->tools->context_create_standalone(&standalone, &host, nullptr, &made),
               IMP_ERROR_INVALID_ARGUMENT, "host");
  EXPECT_EQ(made.id, 0u);
}

TEST_F(Misuse, KernelArchives) {
  const std::string name = device_name();
  imp_standalone_info device = imp_standalone_info_init();
  device.device = name.empty() ? nullptr : name.c_str();
  imp_context made{};
  const auto create = [&](const imp_host& host) {
    return api()->tools->context_create_standalone(&device, &host, nullptr, &made);
  };
  imp_host host = imp_host_init();
  const std::vector<std::byte> bytes(100, std::byte{42});
  host.kernel_archive = bytes.data();
  host.kernel_archive_size = bytes.size();
  EXPECT_FAILS(create(host), IMP_ERROR_CORRUPT_FILE, "kernel archive: it does not begin as one");
  host.kernel_archive_size = 0;
  EXPECT_FAILS(create(host), IMP_ERROR_CORRUPT_FILE, "kernel archive: ");
  host.kernel_archive_path = "archive";
  EXPECT_FAILS(create(host), IMP_ERROR_INVALID_ARGUMENT, "both given");
  host.kernel_archive = nullptr;
  host.kernel_archive_path = "/nowhere/archive";
  EXPECT_FAILS(create(host), IMP_ERROR_NOT_FOUND, "/nowhere/archive");
  EXPECT_EQ(made.id, 0u);
}

// Where nothing tells an array's end, its count has to be believable.
TEST_F(Misuse, CountsThatNothingHas) {
  imp_context made{};
  const char* const name[] = {"VK_KHR_timeline_semaphore"};
  imp_vk_device_info info = imp_vk_device_info_init();
  info.device_extensions = name;
  info.device_extension_count = 4'000'000'000u;
  EXPECT_FAILS(api()->context_create(&info, nullptr, nullptr, &made), IMP_ERROR_INVALID_ARGUMENT,
               "device_extensions: found a count of 4000000000, expected at most");
  info.device_extension_count = 0;
  info.instance_extensions = name;
  info.instance_extension_count = UINT32_MAX;
  EXPECT_FAILS(api()->context_create(&info, nullptr, nullptr, &made), IMP_ERROR_INVALID_ARGUMENT,
               "instance_extensions: found a count of 4294967295, expected at most");
  begin();
  const imp_vk_semaphore semaphore{};
  imp_submit_info submission = imp_submit_info_init();
  submission.waits = &semaphore;
  submission.wait_count = UINT32_MAX;
  EXPECT_FAILS(api()->vulkan->frame_submit_with(context, &submission), IMP_ERROR_INVALID_ARGUMENT,
               "info.waits: found a count of 4294967295, expected at most");
  end();
  const std::uint32_t family = 0;
  imp_tensor_desc shape = TensorDesc{.name = "counted", .shape = {4}};
  imp_vk_buffer wish = imp_vk_buffer_init();
  wish.families = &family;
  wish.family_count = UINT32_MAX;
  imp_tensor tensor{};
  EXPECT_FAILS(api()->vulkan->tensor_create_vk(context, &shape, &wish, &tensor), IMP_ERROR_INVALID_ARGUMENT,
               "wish.families: found a count of 4294967295, expected at most");
  shape.name = "gar\xE7on";
  EXPECT_FAILS(api()->vulkan->tensor_create_vk(context, &shape, &wish, &tensor), IMP_ERROR_INVALID_ARGUMENT,
               "desc.name: found bytes that are not UTF-8");
}

// A flag is 0 or 1: what else it holds was never initialised.
TEST_F(Misuse, FlagsAreZeroOrOne) {
  imp_brain_desc desc = small_desc();
  imp_dqn_options options = imp_dqn_options_init();
  options.double_estimate = 9;
  desc.learner = IMP_LEARNER_DQN;
  desc.header.next = &options;
  imp_brain made{};
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT,
               "double_estimate: found 9, expected 0 or 1");
  imp_limits limits = imp_limits_init();
  limits.deterministic = 2;
  EXPECT_FAILS(api()->context_set_limits(context, &limits), IMP_ERROR_INVALID_ARGUMENT,
               "limits.deterministic: found 2, expected 0 or 1");
}

// The options of each learner, and what else may stand in their place.
TEST_F(Misuse, OptionsThatAreNotTheLearners) {
  const auto create = [&](imp_learner learner, const void* next) {
    imp_brain_desc desc = small_desc();
    desc.learner = learner;
    desc.header.next = next;
    imp_brain made{};
    const imp_result result = api()->brain_create(context, &desc, &made);
    if (result == IMP_OK) EXPECT_WORKS(api()->brain_destroy(made));
    return result;
  };
  imp_feedback_options feedback = small_options(), second = small_options();
  imp_dqn_options dqn = imp_dqn_options_init();
  EXPECT_FAILS(create(IMP_LEARNER_FEEDBACK, &dqn), IMP_ERROR_INVALID_ARGUMENT,
               "desc.header.next: found imp_dqn_options, but desc.learner is feedback");
  EXPECT_FAILS(create(IMP_LEARNER_NONE, &feedback), IMP_ERROR_INVALID_ARGUMENT,
               "found imp_feedback_options, but desc.learner is none");
  feedback.header.next = &second;
  EXPECT_FAILS(create(IMP_LEARNER_FEEDBACK, &feedback), IMP_ERROR_INVALID_ARGUMENT,
               "found two imp_feedback_options");
  feedback.header.next = &feedback;
  EXPECT_FAILS(create(IMP_LEARNER_FEEDBACK, &feedback), IMP_ERROR_INVALID_ARGUMENT,
               "found two imp_feedback_options");
  const imp_limits limits = imp_limits_init();
  feedback.header.next = &limits;
  EXPECT_FAILS(create(IMP_LEARNER_FEEDBACK, &feedback), IMP_ERROR_INVALID_ARGUMENT,
               "desc.header.next: found struct type 2, expected the learner's option struct");
  second.header.size = sizeof(imp_header);
  EXPECT_FAILS(create(IMP_LEARNER_FEEDBACK, &second), IMP_ERROR_INVALID_ARGUMENT, "imp_feedback_options");
  EXPECT_EQ(create(IMP_LEARNER_NONE, nullptr), IMP_OK);
}

// Zero is a value like any other.
TEST_F(Misuse, ZeroCanBeSaid) {
  imp_brain_desc desc = small_desc();
  imp_brain made{};
  imp_dqn_options dqn = imp_dqn_options_init();
  dqn.discount = dqn.epsilon = dqn.exploration = dqn.max_gradient_norm = 0;
  dqn.replay_capacity = 32;
  desc.learner = IMP_LEARNER_DQN;
  desc.header.next = &dqn;
  EXPECT_WORKS(api()->brain_create(context, &desc, &made));
  EXPECT_WORKS(api()->brain_destroy(made));
  dqn.target_period = 0;
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT, "target_period");
  imp_ppo_options ppo = imp_ppo_options_init();
  ppo.entropy_coefficient = ppo.advantage_decay = ppo.discount = 0;
  desc.learner = IMP_LEARNER_PPO;
  desc.header.next = &ppo;
  EXPECT_WORKS(api()->brain_create(context, &desc, &made));
  EXPECT_WORKS(api()->brain_destroy(made));
  ppo.rollout_steps = 0;
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT, "rollout_steps");
}

// Each way to use a queue has its fields; the others stay empty.
TEST_F(Misuse, QueueFieldsThatTheAccessDoesNotUse) {
  int something = 0;
  const auto create = [&](imp_queue_access access, auto change) {
    imp_vk_device_info info = imp_vk_device_info_init();
    info.queue.access = access;
    if (access != IMP_QUEUE_RECORD_ONLY) info.queue.queue = reinterpret_cast<VkQueue>(&something);
    change(info.queue);
    imp_context made{};
    return api()->context_create(&info, nullptr, nullptr, &made);
  };
  const auto lock = [](imp_vk_queue& q) { q.lock = q.unlock = [](void*, VkQueue) {}; };
  const auto nothing = [](imp_vk_queue&) {};
  constexpr imp_result kInvalid = IMP_ERROR_INVALID_ARGUMENT;
  EXPECT_FAILS(create(static_cast<imp_queue_access>(7), nothing), kInvalid, "device.queue.access: found 7");
  EXPECT_FAILS(create(IMP_QUEUE_RECORD_ONLY,
                      [&](imp_vk_queue& q) { q.queue = reinterpret_cast<VkQueue>(&something); }),
               kInvalid, "device.queue.queue: found a value, but IMP_QUEUE_RECORD_ONLY does not use it");
  EXPECT_FAILS(create(IMP_QUEUE_RECORD_ONLY, lock), kInvalid, "device.queue.lock: found a value");
  EXPECT_FAILS(create(IMP_QUEUE_SINGLE_THREAD, [](imp_vk_queue& q) { q.queue = nullptr; }), kInvalid,
               "device.queue.queue: found null, but IMP_QUEUE_SINGLE_THREAD needs it");
  EXPECT_FAILS(create(IMP_QUEUE_SINGLE_THREAD, [&](imp_vk_queue& q) { q.user = &something; }), kInvalid,
               "device.queue.user: found a value");
  EXPECT_FAILS(create(IMP_QUEUE_SINGLE_THREAD, lock), kInvalid, "device.queue.lock: found a value");
  EXPECT_FAILS(create(IMP_QUEUE_LOCK, nothing), kInvalid, "device.queue.lock: found null");
  EXPECT_FAILS(create(IMP_QUEUE_LOCK, [](imp_vk_queue& q) { q.lock = [](void*, VkQueue) {}; }), kInvalid,
               "device.queue.unlock: found null");
  EXPECT_FAILS(create(IMP_QUEUE_EXCLUSIVE, [](imp_vk_queue& q) { q.lock = [](void*, VkQueue) {}; }), kInvalid,
               "device.queue.lock, unlock: found one, expected both or neither");
  EXPECT_FAILS(create(IMP_QUEUE_SUBMIT_CALLBACK, nothing), kInvalid, "device.queue.submit: found null");
  EXPECT_FAILS(create(IMP_QUEUE_RUN_ON_QUEUE, nothing), kInvalid, "device.queue.run_on_queue: found null");
  EXPECT_FAILS(create(IMP_QUEUE_SINGLE_THREAD, [](imp_vk_queue& q) { q.submit_without_fence = 1; }), kInvalid,
               "device.queue.submit_without_fence: found a value");
}

// However long a name is, what was asked and what to do about it are told.
TEST_F(Misuse, NamesWithoutEndLeaveTheRestOfTheMessage) {
  const std::string name(1 << 16, 'n');
  imp_brain_desc desc = small_desc();
  desc.name = name.c_str();
  imp_brain made{};
  EXPECT_WORKS(api()->brain_create(context, &desc, &made));
  imp_agent cold{};
  EXPECT_WORKS(api()->agent_create(made, 0, &cold));
  begin();
  const float seen[4] = {};
  EXPECT_FAILS(api()->agent_observe(cold, seen, 4), IMP_ERROR_WRONG_STATE, "agent_observe: brain 'nnn");
  EXPECT_THAT(api()->last_error(), HasSubstr("Call context_warmup before the first frame"));
  end();
  EXPECT_WORKS(api()->brain_destroy(made));
  EXPECT_FAILS(api()->brain_load(brain, name.c_str()), IMP_ERROR_IO, "cannot read 'nnn");
  EXPECT_THAT(api()->last_error(), HasSubstr("too long"));
}

// Threads that go on asking of a context that is being destroyed: told so, and nothing worse.
TEST_F(Misuse, ADestroyedContextMayBeAskedMeanwhile) {
  std::atomic<std::uint64_t> newest{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      imp_result odd = IMP_OK;
      while (!over) {
        std::size_t size = 0;
        for (const imp_result result :
             {api()->frame_end({newest}), api()->tools->context_get_report_text({newest}, nullptr, &size),
              api()->frame_submit({newest}, 0)})
          if (result != IMP_OK && result != IMP_ERROR_INVALID_HANDLE && result != IMP_ERROR_WRONG_STATE)
            odd = result;
      }
      EXPECT_EQ(odd, IMP_OK);
    });
  }
  imp_standalone_info device = imp_standalone_info_init();
  device.device = "cpu";
  for (int i = 0; i < 200; ++i) {
    imp_context made{};
    EXPECT_WORKS(api()->tools->context_create_standalone(&device, nullptr, nullptr, &made));
    newest = made.id;
    imp_result result = api()->context_destroy(made);
    while (result == IMP_ERROR_WRONG_STATE) result = api()->context_destroy(made);  // an asker was in it
    EXPECT_EQ(result, IMP_OK) << api()->last_error();
  }
  over = true;
  for (std::thread& asker : askers) asker.join();
}

TEST_F(Misuse, Brains) {
  const auto expect = [&](imp_result code, const char* text, auto change) {
    imp_brain_desc desc = small_desc();
    change(desc);
    imp_brain made{};
    EXPECT_FAILS(api()->brain_create(context, &desc, &made), code, text);
    EXPECT_EQ(made.id, 0u);
  };
  const std::uint32_t sizes[] = {3, 1, 3};
  const float scale[] = {1, 2, std::nanf(""), 4};
  expect(IMP_ERROR_INVALID_ARGUMENT, "observation_count", [](imp_brain_desc& d) { d.observation_count = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "observation_scale",
         [&](imp_brain_desc& d) { d.observation_scale = scale; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "branch_sizes", [](imp_brain_desc& d) { d.branch_sizes = nullptr; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "branch_count", [](imp_brain_desc& d) { d.branch_count = 9; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "branch_sizes[1]: found 1, expected 2 to",
         [&](imp_brain_desc& d) { d.branch_count = 2, d.branch_sizes = sizes; });
  expect(IMP_ERROR_UNSUPPORTED, "exactly one branch",
         [&](imp_brain_desc& d) { d.branch_count = 0, d.continuous_count = 2; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "hidden_count", [](imp_brain_desc& d) { d.hidden_count = 17; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "activation",
         [](imp_brain_desc& d) { d.activation = static_cast<imp_activation>(7); });
  expect(IMP_ERROR_INVALID_ARGUMENT, "learner",
         [](imp_brain_desc& d) { d.learner = static_cast<imp_learner>(7), d.header.next = nullptr; });
  const auto expect_options = [&](imp_result code, const char* text, auto change) {
    imp_feedback_options options = small_options();
    expect(code, text, [&](imp_brain_desc& d) { change(d, options), d.header.next = &options; });
  };
  using Desc = imp_brain_desc;
  using Options = imp_feedback_options;
  expect_options(IMP_ERROR_INVALID_ARGUMENT, "learning_rate",
                 [](Desc&, Options& o) { o.learning_rate = std::nanf(""); });
  expect_options(IMP_ERROR_INVALID_ARGUMENT, "exploration", [](Desc&, Options& o) { o.exploration = -1; });
  expect_options(IMP_ERROR_INVALID_ARGUMENT, "credit_width_s",
                 [](Desc&, Options& o) { o.credit_width_s = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "action_latency_frames",
         [](imp_brain_desc& d) { d.action_latency_frames = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "brain_count", [](imp_brain_desc& d) { d.brain_count = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "decision_period_frames",
         [](imp_brain_desc& d) { d.decision_period_frames = 1u << 21; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "decision_period_frames",
         [](imp_brain_desc& d) { d.decision_period_frames = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "UTF-8", [](imp_brain_desc& d) { d.name = "gar\xE7on"; });
  if (device_name() != "cpu")
    expect_options(IMP_ERROR_UNSUPPORTED, "replay_capacity",
                   [](Desc& d, Options& o) { o.replay_capacity = 1u << 20, d.brain_count = 1024; });
  imp_brain made{};
  imp_policy_desc policy = imp_policy_desc_init();
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_INVALID_ARGUMENT,
               "size: found 0 bytes, expected an ONNX file");
  const char text[] = "this is not a model";
  policy.data = text;
  policy.size = sizeof text;
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_CORRUPT_FILE, "");
  policy.name = "\xFF";
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_INVALID_ARGUMENT, "UTF-8");
  policy.data = nullptr;
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_INVALID_ARGUMENT, "null");
}

TEST_F(Misuse, Agents) {
  imp_agent made{};
  EXPECT_FAILS(api()->agent_create(brain, 1, &made), IMP_ERROR_INVALID_ARGUMENT, "brain_index");
  EXPECT_FAILS(api()->agent_create(brain, 0, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_WORKS(api()->agent_create(brain, 0, &made));
  imp_agent third{};
  EXPECT_FAILS(api()->agent_create(brain, 0, &third), IMP_ERROR_UNSUPPORTED,
               "found all 2 taken, expected a free one");
  EXPECT_FAILS(api()->agent_set_mode(made, static_cast<imp_mode>(9)), IMP_ERROR_INVALID_ARGUMENT, "mode");
  EXPECT_FAILS(api()->agent_set_goal(made, 2), IMP_ERROR_INVALID_ARGUMENT, "goal: found 2, expected 0 to 1");
  const std::uint8_t none[] = {0, 0, 0};
  EXPECT_FAILS(api()->agent_set_mask(made, none, 3), IMP_ERROR_INVALID_ARGUMENT, "at least one");
  EXPECT_FAILS(api()->agent_set_mask(made, none, 2), IMP_ERROR_INVALID_ARGUMENT,
               "count: found 2, expected 3");
  EXPECT_FAILS(api()->agent_set_mask(made, none, 0), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_WORKS(api()->agent_set_mask(made, nullptr, 0));
  EXPECT_WORKS(api()->agent_destroy(made));
}

TEST_F(Misuse, WrongOrder) {
  const float seen[4] = {};
  imp_action action = imp_action_init();
  EXPECT_FAILS(api()->frame_submit(context, 0), IMP_ERROR_WRONG_STATE, "no frame is open");
  EXPECT_FAILS(api()->frame_end(context), IMP_ERROR_WRONG_STATE, "no frame is open");
  EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_WRONG_STATE, "no frame is open");
  EXPECT_FAILS(api()->agent_act(agent, &action), IMP_ERROR_WRONG_STATE, "no frame is open");
  begin();
  imp_frame_info info = imp_frame_info_init();
  info.frame = frame + 1;
  info.time_s = 1e9;
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_WRONG_STATE, "a frame is open");
  imp_brain made{};
  imp_agent made_agent{};
  const imp_brain_desc desc = small_desc();
  std::uint64_t low = 0, high = 0;
  std::size_t size = 0;
  imp_limits limits = imp_limits_init();
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->brain_destroy(brain), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->brain_load(brain, "x"), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->brain_load_weights(brain, "x"), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->tools->brain_hash(brain, &low, &high), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->agent_create(brain, 0, &made_agent), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->agent_destroy(agent), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->context_warmup(context, nullptr, nullptr), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->context_drain(context, 1), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->context_set_limits(context, &limits), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_FAILS(api()->tools->context_get_report_text(context, nullptr, &size), IMP_ERROR_WRONG_STATE,
               "a frame is open");
  EXPECT_FAILS(api()->context_destroy(context), IMP_ERROR_WRONG_STATE, "a frame is open");
  EXPECT_WORKS(api()->frame_submit(context, UINT32_MAX));
  submitted = true;
  EXPECT_FAILS(api()->frame_submit(context, UINT32_MAX), IMP_ERROR_WRONG_STATE, "already");
  EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_WRONG_STATE, "already");
  end();
  info.frame = frame;
  const std::string last = std::to_string(frame);
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT,
               ("frame: found " + last + ", expected above the last frame, " + last).c_str());
  for (const std::uint64_t beyond : {std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()}) {
    info.frame = beyond;
    EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT,
                 "expected at most 9223372036854775807");
  }
  info.frame = frame + 1;
  info.time_s = 0;
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT,
               "time_s: found 0, expected at least the last frame's");
  info.time_s = std::numeric_limits<double>::infinity();
  EXPECT_FAILS(api()->frame_begin(context, &info), IMP_ERROR_INVALID_ARGUMENT, "finite");
  begin();
}

TEST_F(Misuse, AFrameThatSubmitsNothingIsAFrame) {
  begin();
  submitted = true;  // end() has nothing to do but to end
  end();
  const float seen[4] = {};
  imp_action action = imp_action_init();
  begin();
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  submitted = true;
  end();
  begin();
  EXPECT_EQ(api()->agent_act(agent, &action), IMP_NOT_READY)
      << "asked in a frame without submit: carried by the next";
  end();
  EXPECT_WORKS(api()->context_drain(context, 10000));
  begin();
  EXPECT_WORKS(api()->agent_act(agent, &action));
  EXPECT_WORKS(api()->agent_end_episode(agent, IMP_EPISODE_TERMINATED));
}

TEST_F(Misuse, WrongThread) {
  begin();
  std::thread([] {
    const float seen[4] = {};
    EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_WRONG_STATE, "another thread");
    EXPECT_FAILS(api()->frame_submit(context, 0), IMP_ERROR_WRONG_STATE, "another thread");
    EXPECT_FAILS(api()->frame_end(context), IMP_ERROR_WRONG_STATE, "another thread");
    EXPECT_FAILS(api()->brain_set_learning(brain, 1), IMP_ERROR_WRONG_STATE, "another thread");
    imp_brain_stats stats = imp_brain_stats_init();
    EXPECT_WORKS(api()->tools->brain_get_stats(brain, &stats));
    imp_context_stats context_stats = imp_context_stats_init();
    EXPECT_WORKS(api()->tools->context_get_stats(context, &context_stats));
  }).join();
}

TEST_F(Misuse, CallsFromCallbacks) {
  imp_brain made{};
  const imp_brain_desc desc = small_desc();
  EXPECT_WORKS(api()->brain_create(context, &desc, &made));
  EXPECT_WORKS(api()->context_warmup(
      context,
      [](void*, float) {
        EXPECT_FAILS(api()->context_warmup(context, nullptr, nullptr), IMP_ERROR_WRONG_STATE, "callback");
        imp_context_stats stats = imp_context_stats_init();
        EXPECT_WORKS(api()->tools->context_get_stats(context, &stats));
      },
      nullptr));
  EXPECT_WORKS(api()->brain_destroy(made));
}

TEST_F(Misuse, BeforeWarmup) {
  imp_brain cold{};
  imp_agent cold_agent{};
  std::uint64_t snapshot = 0;
  const imp_brain_desc desc = small_desc();
  EXPECT_WORKS(api()->brain_create(context, &desc, &cold));
  EXPECT_WORKS(api()->agent_create(cold, 0, &cold_agent));
  EXPECT_FAILS(api()->brain_snapshot(cold, &snapshot), IMP_ERROR_WRONG_STATE, "warmup");
  begin();
  const float seen[4] = {};
  EXPECT_FAILS(api()->agent_observe(cold_agent, seen, 4), IMP_ERROR_WRONG_STATE, "warmup");
  end();
  EXPECT_WORKS(api()->brain_destroy(cold));
}

TEST_F(Misuse, NumbersThatAreNone) {
  begin();
  for (const float bad :
       {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    const float seen[4] = {0, 0, bad, 0};
    EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_INVALID_ARGUMENT, "observation[2]");
    EXPECT_FAILS(api()->agent_reward(agent, bad), IMP_ERROR_INVALID_ARGUMENT, "reward");
    imp_feedback feedback = imp_feedback_init();
    feedback.value = bad;
    EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "value");
    feedback.value = 1;
    feedback.weight = bad;
    EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "weight");
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = seen;
    shown.observation_count = 4;
    EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT, "observation[2]");
  }
  const float seen[5] = {};
  EXPECT_FAILS(api()->agent_observe(agent, seen, 5), IMP_ERROR_INVALID_ARGUMENT,
               "count: found 5, expected 4");
  EXPECT_FAILS(api()->agent_observe(agent, nullptr, 4), IMP_ERROR_INVALID_ARGUMENT, "null");
  imp_feedback feedback = imp_feedback_init();
  feedback.value = 1.5f;
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "-1 to 1");
  feedback.value = 1;
  feedback.time_s = 1e6;
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "time_s");
  feedback.time_s = 0;
  feedback.credit = static_cast<imp_credit>(5);
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "credit");
  imp_demonstration shown = imp_demonstration_init();
  shown.observation = seen;
  shown.observation_count = 4;
  shown.branches[0] = 3;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT,
               "branches[0]: found 3, expected 0 to 2");
  shown.branches[0] = 0;
  shown.goal = 2;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT, "goal");
  EXPECT_FAILS(api()->agent_end_episode(agent, static_cast<imp_episode_end>(4)), IMP_ERROR_INVALID_ARGUMENT,
               "end");
}

TEST_F(Misuse, Modes) {
  const std::uint32_t choice[] = {1};
  const float seen[4] = {};
  imp_feedback feedback = imp_feedback_init();
  imp_action action = imp_action_init();
  begin();
  EXPECT_FAILS(api()->agent_heuristic(agent, choice, 1, nullptr, 0), IMP_ERROR_WRONG_STATE, "mode");
  EXPECT_WORKS(api()->agent_set_mode(agent, IMP_MODE_HEURISTIC));
  EXPECT_FAILS(api()->agent_heuristic(agent, choice, 1, nullptr, 0), IMP_ERROR_WRONG_STATE, "agent_observe");
  EXPECT_FAILS(api()->agent_heuristic(agent, nullptr, 1, nullptr, 0), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(api()->agent_heuristic(agent, choice, 2, nullptr, 0), IMP_ERROR_INVALID_ARGUMENT,
               "branches: found a count of 2, expected 1");
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  EXPECT_WORKS(api()->agent_heuristic(agent, choice, 1, nullptr, 0));
  EXPECT_WORKS(api()->agent_act(agent, &action));
  EXPECT_EQ(action.branches[0], 1u);
  EXPECT_WORKS(api()->agent_set_mode(agent, IMP_MODE_INFERENCE));
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_WRONG_STATE, "inference");
  EXPECT_WORKS(api()->agent_reward(agent, 1.0f));
  EXPECT_WORKS(api()->agent_set_mode(agent, IMP_MODE_LEARNING));
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  EXPECT_EQ(api()->agent_act(agent, &action), IMP_NOT_READY);
  end();
  EXPECT_FAILS(api()->brain_restore(brain, 77), IMP_ERROR_NOT_FOUND, "77");
  EXPECT_FAILS(api()->brain_load(brain, "/nowhere/at/all"), IMP_ERROR_NOT_FOUND, "/nowhere/at/all");
  EXPECT_FAILS(api()->brain_load_weights(brain, "/nowhere/at/all"), IMP_ERROR_NOT_FOUND, "/nowhere/at/all");
  EXPECT_FAILS(api()->brain_load_weights(brain, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(api()->brain_save(brain, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(api()->brain_save(brain, ""), IMP_ERROR_INVALID_ARGUMENT, "empty");
  EXPECT_FAILS(api()->brain_save_status(brain), IMP_ERROR_NOT_FOUND, "never saved");
}

TEST_F(Misuse, RecordWithoutACommandBuffer) {
  begin();
  imp_record_info info = imp_record_info_init();
  EXPECT_FAILS(api()->vulkan->frame_record(context, &info, nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "command_buffer");
  EXPECT_FAILS(api()->vulkan->frame_record(context, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
}

TEST_F(Misuse, Estimates) {
  imp_estimate estimate = imp_estimate_init();
  EXPECT_FAILS(api()->tools->frame_estimate(context, &estimate), IMP_ERROR_WRONG_STATE, "frame_begin");
  begin();
  EXPECT_FAILS(api()->tools->frame_estimate(context, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  const float seen[] = {0, 1, 0, 1};
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  EXPECT_WORKS(api()->tools->frame_estimate(context, &estimate));
  EXPECT_GT(estimate.due_us, 0u) << "an inference";
  EXPECT_WORKS(api()->frame_submit(context, UINT32_MAX));
  submitted = true;
  EXPECT_FAILS(api()->tools->frame_estimate(context, &estimate), IMP_ERROR_WRONG_STATE, "already submitted");
}

TEST_F(Misuse, ThePipelineCacheComesInTwoCallsAndOnlyWhole) {
  std::size_t size = 0;
  if (device_name() == "cpu") {
    EXPECT_FAILS(api()->tools->pipeline_cache_get(context, nullptr, &size), IMP_ERROR_UNSUPPORTED,
                 "on the CPU");
    return;
  }
  EXPECT_WORKS(api()->tools->pipeline_cache_get(context, nullptr, &size));
  ASSERT_GT(size, 24u);
  std::vector<char> cache(size);
  std::size_t small = size - 1;
  EXPECT_FAILS(api()->tools->pipeline_cache_get(context, cache.data(), &small), IMP_ERROR_INVALID_ARGUMENT,
               "bytes");
  EXPECT_FAILS(api()->tools->pipeline_cache_get(context, cache.data(), nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "size");
  EXPECT_WORKS(api()->tools->pipeline_cache_get(context, cache.data(), &size));
  EXPECT_WORKS(api()->tools->pipeline_cache_set(context, cache.data(), size));
  EXPECT_FAILS(api()->tools->pipeline_cache_set(context, cache.data(), size - 1), IMP_ERROR_CORRUPT_FILE,
               "damaged");
  EXPECT_FAILS(api()->tools->pipeline_cache_set(context, "nonsense", 8), IMP_ERROR_CORRUPT_FILE,
               "none of ours");
  EXPECT_FAILS(api()->tools->pipeline_cache_set(context, nullptr, 8), IMP_ERROR_INVALID_ARGUMENT, "data");
  begin();
  EXPECT_FAILS(api()->tools->pipeline_cache_get(context, nullptr, &size), IMP_ERROR_WRONG_STATE, "frame");
}

TEST_F(Misuse, TheReportComesInTwoCalls) {
  std::size_t size = 0;
  EXPECT_WORKS(api()->tools->context_get_report_text(context, nullptr, &size));
  ASSERT_GT(size, 10u);
  std::string text(size, '?');
  std::size_t small = 3;
  EXPECT_FAILS(api()->tools->context_get_report_text(context, text.data(), &small),
               IMP_ERROR_INVALID_ARGUMENT, "bytes");
  EXPECT_WORKS(api()->tools->context_get_report_text(context, text.data(), &size));
  EXPECT_EQ(text[size - 1], '\0');
  EXPECT_THAT(text, HasSubstr("device"));
  EXPECT_FAILS(api()->tools->context_get_report_text(context, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT,
               "size");
}

// Whatever a descriptor of the coat says is what the library is told.
TEST(Coat, DescriptorsSayWhatTheirCFormsSay) {
  const std::string name = device_name();
  StandaloneDesc device;
  device.device = name.empty() ? nullptr : name.c_str();
  struct Services {
    void log(LogLevel, const char*) { ++lines; }
    int lines = 0;
  } services;
  Limits limits;
  limits.gpu_us_per_frame = 700;
  Made<Context> context =
      Context::create_standalone(Library(imp_get_api), device, HostDesc(services), limits);
  ASSERT_TRUE(context) << context.outcome.message();
  const float scale[] = {1, 2, 3, 4};
  BrainDesc desc;
  desc.observation_count = 4;
  desc.observation_scale = scale;
  desc.branch_sizes = {3};
  desc.hidden_sizes = {16, 8};
  desc.goal_count = 2;
  PpoOptions options;
  options.rollout_steps = 96;
  desc.learner = options;
  Made<Brain> brain = context->create_brain(desc);
  EXPECT_EQ(brain.outcome.code(), Code::invalid_argument);
  EXPECT_THAT(brain.outcome.message(), HasSubstr("divisor of rollout_steps"));
  options.batch_size = 32;
  desc.learner = options;
  brain = context->create_brain(desc);
  ASSERT_TRUE(brain) << brain.outcome.message();
  const Made<imp_brain_info> info = brain->info();
  EXPECT_EQ(info.value.parameter_count, (4u + 1) * 16 + (16u + 1) * 8 + (8u + 1) * 6);
  desc.observation_scale = std::span(scale).first(3);
  EXPECT_THAT(context->create_brain(desc).outcome.message(), HasSubstr("observation_scale"));
  desc.observation_scale = {};
  desc.branch_sizes = {2, 2, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_THAT(context->create_brain(desc).outcome.message(), HasSubstr("branch_count"));
  desc.branch_sizes = {3};
  desc.learner = FeedbackOptions();
  Made<Brain> taught = context->create_brain(desc);
  Made<Agent> agent = taught->create_agent();
  ASSERT_TRUE(agent) << agent.outcome.message();
  ASSERT_TRUE(context->warmup());
  ASSERT_TRUE(context->frame_begin(1, 0.1));
  Demonstration shown;
  shown.observation = scale;
  shown.branches = {2};
  shown.goal = 1;
  EXPECT_TRUE(agent->demonstrate(shown)) << agent->demonstrate(shown).message();
  shown.branches = {3};
  EXPECT_EQ(agent->demonstrate(shown).code(), Code::invalid_argument);
  ASSERT_TRUE(context->submit());
  ASSERT_TRUE(context->frame_end());
  context->reset();
  EXPECT_GT(services.lines, 0) << "what was destroyed with it";
}

TEST(Coat, OwnsAndMoves) {
  const std::string name = device_name();
  imp_standalone_info device = imp_standalone_info_init();
  device.device = name.empty() ? nullptr : name.c_str();
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device);
  ASSERT_TRUE(context) << context.outcome.message();
  Made<Brain> brain = context->create_brain(small_desc());
  ASSERT_TRUE(brain) << brain.outcome.message();
  Made<Agent> agent = brain->create_agent();
  ASSERT_TRUE(agent);
  EXPECT_FALSE(brain->create_agent(9));
  ASSERT_TRUE(context->warmup());
  Agent moved = std::move(*agent);
  EXPECT_FALSE(*agent);
  ASSERT_TRUE(context->frame_begin(1, 0.1));
  const float seen[4] = {1, 0, 0, 0};
  ASSERT_TRUE(moved.observe(seen));
  EXPECT_EQ(moved.act().outcome.code(), Code::not_ready);
  ASSERT_TRUE(context->submit());
  ASSERT_TRUE(context->frame_end());
  ASSERT_TRUE(context->drain(10000));
  for (std::uint64_t frame = 2; frame <= 3; ++frame) {
    ASSERT_TRUE(context->frame_begin(frame, 0.1 * static_cast<double>(frame)));
    const Made<Action> action = moved.act();
    EXPECT_EQ(action.outcome.ready(), frame == 3);
    ASSERT_TRUE(context->submit());
    ASSERT_TRUE(context->frame_end());
  }
  const Made<BrainHash> hash = brain->hash(), again = brain->hash();
  ASSERT_TRUE(hash.outcome.ready() && again.outcome.ready());
  EXPECT_EQ(hash.value, again.value);
  Context taken = std::move(*context);
  EXPECT_TRUE(taken.destroy());
  EXPECT_FALSE(taken);
  EXPECT_EQ(moved.set_goal(0).code(), Code::invalid_handle);
  EXPECT_FALSE(Context::create_standalone(Library(nullptr), device));
}

}  // namespace
