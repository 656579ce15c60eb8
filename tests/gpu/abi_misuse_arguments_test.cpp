// Wrong arguments to the table: handles, structs, counts and options. Each returns a code and a helpful text,
// and changes nothing.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_misuse.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

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

TEST_F(Misuse, DestroyedHandlesStayRefused) {
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
  EXPECT_FAILS(api()->tools->context_create_standalone(&standalone, nullptr, nullptr, &made),
               IMP_ERROR_NOT_FOUND,
               device_name() == "cpu" ? "no Vulkan device"
                                      : "no such device anywhere");  // gpu_abi_on_cpu hides the others
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
  EXPECT_FAILS(create(host), IMP_ERROR_CORRUPT_FILE,
               "kernel archive: found other bytes, expected an archive");
  host.kernel_archive_size = 0;
  EXPECT_FAILS(create(host), IMP_ERROR_CORRUPT_FILE, "kernel archive: ");
  host.kernel_archive_path = "archive";
  EXPECT_FAILS(create(host), IMP_ERROR_INVALID_ARGUMENT, "both given");
  host.kernel_archive = nullptr;
  host.kernel_archive_path = "/nowhere/archive";
  EXPECT_FAILS(create(host), IMP_ERROR_NOT_FOUND, "/nowhere/archive");
  EXPECT_EQ(made.id, 0u);
}

// Arrays have no end marker, so absurd counts are refused.
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

// A flag is 0 or 1; other values mean uninitialised memory.
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

// Options of each learner, and other structs in their position.
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
               "desc.header.next: found struct type 2, expected imp_network_options,");
  imp_network_options network = imp_network_options_init(), other = network;
  feedback.header.next = &network;
  EXPECT_EQ(create(IMP_LEARNER_FEEDBACK, &feedback), IMP_OK);
  feedback.header.next = nullptr;
  network.header.next = &feedback;
  EXPECT_EQ(create(IMP_LEARNER_FEEDBACK, &network), IMP_OK) << "in any order";
  network.header.next = &other;
  EXPECT_FAILS(create(IMP_LEARNER_FEEDBACK, &network), IMP_ERROR_INVALID_ARGUMENT,
               "found two imp_network_options");
  network.header.next = &network;
  EXPECT_FAILS(create(IMP_LEARNER_NONE, &network), IMP_ERROR_INVALID_ARGUMENT,
               "found two imp_network_options");
  const auto expect_network = [&](imp_learner learner, imp_result code, const char* text, auto change) {
    imp_network_options changed = imp_network_options_init();
    change(changed);
    EXPECT_FAILS(create(learner, &changed), code, text);
  };
  using Network = imp_network_options;
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "stack: found 0, expected 1 to 64",
                 [](Network& n) { n.stack = 0; });
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "cell",
                 [](Network& n) { n.cell = static_cast<imp_cell>(3); });
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "cell_size: found 4097",
                 [](Network& n) { n.cell_size = 4097; });
  expect_network(IMP_LEARNER_DQN, IMP_ERROR_UNSUPPORTED, "Use the PPO learner, or stack",
                 [](Network& n) { n.cell = IMP_CELL_LSTM; });
  const imp_stream streams[] = {{IMP_STREAM_VECTOR, 2, 0, 0, 0, 0, 0, 0},
                                {IMP_STREAM_IDS, 1, 0, 0, 0, 0, 4, 0}};
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "streams",
                 [](Network& n) { n.stream_count = 1; });
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "streams", [&](Network& n) {
    n.streams = streams;
    n.stream_count = 17;
  });
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT,
                 "observation_count: found 4, expected 3, the numbers of all streams", [&](Network& n) {
                   n.streams = streams;
                   n.stream_count = 2;
                 });
  expect_network(IMP_LEARNER_DQN, IMP_ERROR_INVALID_ARGUMENT, "pictures_as_bytes",
                 [](Network& n) { n.pictures_as_bytes = 2; });
  imp_stream odd = streams[0];
  odd.kind = static_cast<imp_stream_kind>(9);
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "streams[0].kind: found 9", [&](Network& n) {
    n.streams = &odd;
    n.stream_count = 1;
  });
  expect_network(IMP_LEARNER_NONE, IMP_ERROR_INVALID_ARGUMENT, "imp_network_options",
                 [](Network& n) { n.header.size = 4; });
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
  ppo.epochs = 0;
  EXPECT_FAILS(api()->brain_create(context, &desc, &made), IMP_ERROR_INVALID_ARGUMENT, "epochs");
}

// Each access mode has its own fields; the others stay empty.
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

}  // namespace
