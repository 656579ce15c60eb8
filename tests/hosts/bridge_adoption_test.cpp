// T1, T2, T6 through the C ABI: requirements before the device, the report after adoption, Imprint's own
// device when the host's does not serve, and two contexts on one queue.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "engine-bridge/own/own_device.h"
#include "engine-bridge/own/own_instance.h"
#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string failure() { return table()->last_error(); }

// ---- T1 ----

class T1Table : public testing::Test {
 protected:
  void SetUp() override {
    auto made = OwnInstance::create({true, false, VK_API_VERSION_1_2, {}});
    ASSERT_TRUE(made) << made.error().message;
    instance_ = std::move(*made);
    const auto list = candidates(*instance_);
    ASSERT_TRUE(list);
    const auto chosen = choose(*list, "");
    ASSERT_TRUE(chosen);
    candidate_ = (*list)[*chosen];
    plan_.get_instance_proc_addr =
        reinterpret_cast<imp_get_instance_proc_addr>(instance_->get_instance_proc_addr());
    plan_.instance = instance_->handle();
    plan_.physical_device = candidate_.physical_device;
    plan_.api_version = instance_->api_version();
  }
  void TearDown() override {
    EXPECT_EQ(instance_->validation_messages(), 0u) << instance_->first_validation_message();
  }

  std::unique_ptr<OwnInstance> instance_;
  Candidate candidate_;
  imp_vk_plan plan_ = imp_vk_plan_init();
};

TEST_F(T1Table, WishesAreAskedInTwoCalls) {
  std::uint32_t count = 0;
  ASSERT_EQ(table()->vulkan->plan_query_requirements(&plan_, &count, nullptr), IMP_OK) << failure();
  ASSERT_GT(count, 0u);
  std::vector<imp_vk_wish> wishes(count + 1);
  std::memset(&wishes[count], 0x5a, sizeof wishes[count]);
  const imp_vk_wish untouched = wishes[count];
  ASSERT_EQ(table()->vulkan->plan_query_requirements(&plan_, &count, wishes.data()), IMP_OK) << failure();
  EXPECT_EQ(std::memcmp(&wishes[count], &untouched, sizeof untouched), 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_NE(std::strlen(wishes[i].feature) + std::strlen(wishes[i].extension), 0u);
    EXPECT_GT(std::strlen(wishes[i].cost), 10u);
    EXPECT_LT(std::strlen(wishes[i].cost), sizeof wishes[i].cost - 1) << "cut off";
  }
  std::uint32_t fewer = count - 1;
  EXPECT_EQ(table()->vulkan->plan_query_requirements(&plan_, &fewer, wishes.data()),
            IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(failure(), HasSubstr("room for"));
}

TEST_F(T1Table, ExtraQueuesAreFamiliesThatComputeBesideGraphics) {
  std::uint32_t count = ~0u;
  ASSERT_EQ(table()->vulkan->plan_query_extra_queues(&plan_, &count, nullptr), IMP_OK) << failure();
  std::uint32_t family_count = 0;
  instance_->vkGetPhysicalDeviceQueueFamilyProperties(candidate_.physical_device, &family_count, nullptr);
  std::vector<VkQueueFamilyProperties> families(family_count);
  instance_->vkGetPhysicalDeviceQueueFamilyProperties(candidate_.physical_device, &family_count,
                                                      families.data());
  std::vector<imp_vk_extra_queue> queues(count);
  ASSERT_EQ(table()->vulkan->plan_query_extra_queues(&plan_, &count, queues.data()), IMP_OK) << failure();
  std::set<std::uint32_t> told, expected;
  for (std::uint32_t i = 0; i < family_count; ++i) {
    const VkQueueFlags both = families[i].queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT);
    if (both == VK_QUEUE_COMPUTE_BIT) expected.insert(i);
  }
  for (const imp_vk_extra_queue& queue : queues) {
    told.insert(queue.family);
    ASSERT_LT(queue.family, family_count);
    EXPECT_EQ(queue.queue_count, families[queue.family].queueCount);
    EXPECT_EQ(queue.priority, 0.0f);
  }
  EXPECT_EQ(told, expected);
  if (count > 0) {
    std::uint32_t none = 0;
    EXPECT_EQ(table()->vulkan->plan_query_extra_queues(&plan_, &none, queues.data()),
              IMP_ERROR_INVALID_ARGUMENT);
  }
}

TEST_F(T1Table, BadPlansAreRefused) {
  std::uint32_t count = 0;
  imp_vk_merged merged = imp_vk_merged_init();
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  const auto refused = [&](const imp_vk_plan* plan, imp_result code, const char* text) {
    EXPECT_EQ(table()->vulkan->plan_query_requirements(plan, &count, nullptr), code);
    EXPECT_THAT(failure(), HasSubstr(text));
    EXPECT_EQ(table()->vulkan->plan_query_extra_queues(plan, &count, nullptr), code);
    EXPECT_THAT(failure(), HasSubstr(text));
    EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(plan, &info, &merged), code);
    EXPECT_THAT(failure(), HasSubstr(text));
    EXPECT_EQ(merged.owner, nullptr);
  };
  refused(nullptr, IMP_ERROR_INVALID_ARGUMENT, "plan: found null");
  imp_vk_plan bad = plan_;
  bad.header.type = IMP_STRUCT_LIMITS;
  refused(&bad, IMP_ERROR_INVALID_ARGUMENT, "struct type");
  bad = plan_;
  bad.physical_device = nullptr;
  refused(&bad, IMP_ERROR_INVALID_ARGUMENT, "physical_device");
  bad = plan_;
  bad.api_version = VK_API_VERSION_1_0;
  refused(&bad, IMP_ERROR_UNSUPPORTED, "apiVersion");
  EXPECT_EQ(table()->vulkan->plan_query_requirements(&plan_, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(table()->vulkan->plan_query_extra_queues(&plan_, nullptr, nullptr), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, nullptr, &merged),
            IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, nullptr),
            IMP_ERROR_INVALID_ARGUMENT);
  info.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, &merged),
            IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(failure(), HasSubstr("sType"));
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  const char* const names[] = {nullptr};
  for (const std::uint32_t names_given : {1u, UINT32_MAX}) {
    info.enabledExtensionCount = names_given;
    EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, &merged),
              IMP_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(failure(), HasSubstr(names_given == 1 ? "ppEnabledExtensionNames: found null"
                                                      : "enabledExtensionCount: found 4294967295"));
  }
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = names;
  EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, &merged),
            IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(failure(), HasSubstr("ppEnabledExtensionNames[0]: found null"));
  EXPECT_EQ(merged.owner, nullptr);
  info.enabledExtensionCount = 0;
  EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, &merged), IMP_OK) << failure();
  const void* const first = merged.owner;
  EXPECT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, &merged),
            IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(failure(), HasSubstr("merged: found a filled one, expected an empty one"));
  EXPECT_EQ(merged.owner, first);
  table()->vulkan->merged_free(nullptr);
  table()->vulkan->merged_free(&merged);
}

// As the header advises: merge, create the device, declare what was merged. Then no wish is missing.
TEST_F(T1Table, AMergedDeviceHasTheWishes) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = candidate_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  imp_vk_merged merged = imp_vk_merged_init();
  ASSERT_EQ(table()->vulkan->plan_merge_device_create_info(&plan_, &info, &merged), IMP_OK) << failure();
  VkDevice device = VK_NULL_HANDLE;
  ASSERT_EQ(
      instance_->vkCreateDevice(candidate_.physical_device,
                                static_cast<const VkDeviceCreateInfo*>(merged.create_info), nullptr, &device),
      VK_SUCCESS);
  imp_vk_device_info declared = imp_vk_device_info_init();
  declared.get_instance_proc_addr = plan_.get_instance_proc_addr;
  declared.instance = plan_.instance;
  declared.physical_device = plan_.physical_device;
  declared.api_version = plan_.api_version;
  declared.device = device;
  declared.instance_extension_count = static_cast<std::uint32_t>(instance_->extensions().size());
  declared.instance_extensions = instance_->extensions().data();
  declared.device_extension_count = merged.device_extension_count;
  declared.device_extensions = merged.device_extensions;
  declared.features = merged.features;
  declared.queue.family = candidate_.queue_family;
  imp_context context{};
  ASSERT_EQ(table()->context_create(&declared, nullptr, nullptr, &context), IMP_OK) << failure();
  table()->vulkan->merged_free(&merged);
  EXPECT_EQ(merged.create_info, nullptr);

  std::set<std::string> lost;
  imp_report report = imp_report_init();
  ASSERT_EQ(table()->tools->context_get_report(context, &report), IMP_OK) << failure();
  for (std::uint32_t i = 0; i < report.missing_feature_count; ++i) {
    imp_missing_feature feature = imp_missing_feature_init();
    ASSERT_EQ(table()->tools->context_get_missing_feature(context, i, &feature), IMP_OK) << failure();
    lost.insert(feature.item);
  }
  std::uint32_t count = 0;
  ASSERT_EQ(table()->vulkan->plan_query_requirements(&plan_, &count, nullptr), IMP_OK);
  std::vector<imp_vk_wish> wishes(count);
  ASSERT_EQ(table()->vulkan->plan_query_requirements(&plan_, &count, wishes.data()), IMP_OK);
  for (const imp_vk_wish& wish : wishes)
    EXPECT_FALSE(lost.contains(wish.feature[0] ? wish.feature : wish.extension))
        << wish.feature << wish.extension;

  EXPECT_EQ(table()->context_destroy(context), IMP_OK) << failure();
  reinterpret_cast<PFN_vkDestroyDevice>(instance_->vkGetDeviceProcAddr(device, "vkDestroyDevice"))(device,
                                                                                                   nullptr);
}

// ---- T2 ----

const HostProfile kBare{"bare", VK_API_VERSION_1_1};
const HostProfile kFull{"full", VK_API_VERSION_1_3, true};

imp_vk_device_info shared_info(const PlainHost& host, const vk::DeviceDescription& device) {
  return device_info(host, device, IMP_QUEUE_SINGLE_THREAD);
}

TEST(T2Report, TellsTheSameAsTextAndAsStructs) {
  std::uint32_t missing_from_bare = 0;
  bool different = false;  // remedies of engines
  for (const HostProfile& profile : {kBare, kFull}) {
    PlainHost host(profile);
    ASSERT_TRUE(host.ok());
    const vk::DeviceDescription device = host.describe();
    const imp_vk_device_info info = shared_info(host, device);
    auto context = game::Context::create(game::Library(imp_get_api), info);
    ASSERT_TRUE(context) << context.outcome.message();
    std::string text(context->report_text().value, '\0');
    ASSERT_TRUE(context->report_text(text));
    const auto report = context->report();
    ASSERT_TRUE(report.outcome) << report.outcome.message();
    EXPECT_THAT(text, HasSubstr(report.value.device));
    EXPECT_THAT(text, HasSubstr(report.value.driver));
    EXPECT_EQ(report.value.queue_family, host.family());
    EXPECT_EQ(report.value.submits, 1u);
    EXPECT_EQ(report.value.own_device, 0u);
    EXPECT_EQ(report.value.completion,
              profile.everything ? IMP_COMPLETED_BY_TIMELINE : IMP_COMPLETED_BY_FENCES);
    EXPECT_LE(report.value.api_version, profile.api_version | 0xFFFu);
    for (std::uint32_t i = 0; i < report.value.missing_feature_count; ++i) {
      const auto feature = context->missing_feature(i);
      ASSERT_TRUE(feature.outcome) << feature.outcome.message();
      EXPECT_THAT(text, HasSubstr(std::string("without ") + feature.value.item + " (" + feature.value.cause +
                                  "): " + feature.value.cost));
      std::set<std::string> remedies;
      for (const game::Engine engine : {game::Engine::own, game::Engine::unity, game::Engine::unreal,
                                        game::Engine::godot, game::Engine::vulkan_scene_graph}) {
        const auto remedy = context->missing_feature_remedy(i, engine);
        ASSERT_TRUE(remedy.outcome) << remedy.outcome.message();
        EXPECT_GT(std::strlen(remedy.value), 10u) << feature.value.item;
        EXPECT_THAT(text, engine == game::Engine::own ? HasSubstr(remedy.value) : HasSubstr(""));
        remedies.insert(remedy.value);
      }
      different = different || remedies.size() > 1;
    }
    EXPECT_EQ(context->missing_feature(report.value.missing_feature_count).outcome.code(),
              game::Code::not_found);
    if (profile.everything) EXPECT_LT(report.value.missing_feature_count, missing_from_bare);
    const std::uint32_t end = report.value.missing_feature_count;
    EXPECT_EQ(context->missing_feature_remedy(end).outcome.code(), game::Code::not_found);
    EXPECT_EQ(context->missing_feature_remedy(0, static_cast<game::Engine>(5)).outcome.code(),
              game::Code::invalid_argument);
    missing_from_bare = end;
  }
  EXPECT_TRUE(different);
}

game::BrainDesc small_brain() {
  game::BrainDesc desc;
  desc.observation_count = 3;
  desc.branch_sizes = {4};
  game::FeedbackOptions options;
  options.replay_capacity = 64;
  desc.learner = options;
  return desc;
}

// Learns for some frames, each after the GPU has finished the one before. Returns the number of decisions, or
// the failure, since it may run on any thread.
int live(game::Context& context, std::uint32_t frames, std::string& problem) {
  const auto fails = [&](const game::Outcome& status, const char* what) {
    if (!status && problem.empty()) problem = std::string(what) + ": " + status.message();
    return !problem.empty();
  };
  auto brain = context.create_brain(small_brain());
  if (fails(brain.outcome, "create_brain")) return 0;
  auto agent = brain->create_agent();
  if (fails(agent.outcome, "create_agent") || fails(context.warmup(), "warmup")) return 0;
  int decisions = 0;
  std::uint64_t last = 0;
  const float seen[] = {1, 0.5f, -1};
  for (std::uint32_t frame = 1; frame <= frames; ++frame) {
    const double now = frame / 60.0;
    if (fails(context.frame_begin(frame, now), "frame_begin") || fails(agent->observe(seen), "observe"))
      return decisions;
    if (const auto made = agent->act(); made.outcome.ready() && made.value.decision != last) {
      last = made.value.decision;
      ++decisions;
      if (fails(agent->feedback(made.value.branches[0] == 1 ? 1.0f : -1.0f, now, game::Credit::current),
                "feedback"))
        return decisions;
    }
    if (fails(context.submit(), "submit") || fails(context.frame_end(), "frame_end") ||
        fails(context.drain(10'000), "drain"))
      return decisions;
  }
  return decisions;
}

TEST(T2OwnDevice, IsTakenOnlyWhenTheHostsDoesNotServeAndTheHostAllowsIt) {
  PlainHost host(kBare);
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  imp_vk_device_info info = shared_info(host, device);
  info.allow_own_device = 1;
  {
    auto served = game::Context::create(game::Library(imp_get_api), info);
    ASSERT_TRUE(served) << served.outcome.message();
    EXPECT_EQ(served->report().value.own_device, 0u) << "the host's serves";
  }
  info.api_version = VK_API_VERSION_1_0;
  info.allow_own_device = 0;
  EXPECT_EQ(game::Context::create(game::Library(imp_get_api), info).outcome.code(), game::Code::unsupported);
  EXPECT_THAT(failure(), HasSubstr("api_version"));

  info.allow_own_device = 1;
  auto context = game::Context::create(game::Library(imp_get_api), info);
  ASSERT_TRUE(context) << context.outcome.message();
  const auto report = context->report();
  EXPECT_EQ(report.value.own_device, 1u);
  EXPECT_EQ(report.value.submits, 1u);
  std::string problem;
  EXPECT_GT(live(*context, 60, problem), 20);
  EXPECT_EQ(problem, "");
  // Never into a command buffer of the host's device.
  ASSERT_TRUE(context->frame_begin(100, 2.0));
  const VkCommandBuffer commands = host.begin_frame(1);
  EXPECT_EQ(context->record(commands).outcome.code(), game::Code::unsupported);
  host.end_frame();
  EXPECT_TRUE(context->submit());
  EXPECT_TRUE(context->frame_end());
}

// ---- T6: equal handles are one queue ----

TEST(T6SharedQueue, TwoContextsOnTwoThreadsKeepOutOfEachOthersSubmissions) {
  PlainHost host(kFull);
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  const imp_vk_device_info info = shared_info(host, device);
  std::atomic<int> decisions = 0;
  std::string problems[2];
  std::vector<std::thread> threads;
  std::vector<game::Context> contexts;
  for (int i = 0; i < 2; ++i) {
    auto context = game::Context::create(game::Library(imp_get_api), info);
    ASSERT_TRUE(context) << context.outcome.message();
    contexts.push_back(std::move(context.value));
  }
  for (int i = 0; i < 2; ++i)
    threads.emplace_back(
        [&, i] { decisions += live(contexts[static_cast<std::size_t>(i)], 200, problems[i]); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  EXPECT_GT(decisions, 200);
  contexts.clear();
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

TEST(T6SharedQueue, IsSubmittedToInOneWay) {
  PlainHost host(kBare);
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  const imp_vk_device_info alone = shared_info(host, device);
  const imp_vk_device_info locked = locked_info(host, device);
  const imp_vk_device_info recording = device_info(host, device, IMP_QUEUE_RECORD_ONLY);
  {
    auto first = game::Context::create(game::Library(imp_get_api), alone);
    ASSERT_TRUE(first) << first.outcome.message();
    EXPECT_EQ(game::Context::create(game::Library(imp_get_api), locked).outcome.code(),
              game::Code::invalid_argument);
    EXPECT_THAT(
        failure(),
        HasSubstr("found IMP_QUEUE_LOCK, but another context shares this queue by IMP_QUEUE_SINGLE_THREAD"));
    EXPECT_TRUE(game::Context::create(game::Library(imp_get_api), recording))
        << "records without touching a queue";
    EXPECT_TRUE(game::Context::create(game::Library(imp_get_api), alone));
  }
  auto later = game::Context::create(game::Library(imp_get_api), locked);
  EXPECT_TRUE(later) << "the queue was given up: " << later.outcome.message();
}

}  // namespace
}  // namespace imprint::bridge
