// T7. Ten thousand frames: the host draws, uses its queue from another thread, waits for an idle device as on
// a resize, and destroys brains and tensors in use, while a pet learns. Validation with thread-safety checks
// stays silent, memory does not grow, and the pet has learned.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"
#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kFrames = 10'000, kResize = 97, kGuest = 250, kAsk = 3;
constexpr std::uint32_t kWanted = 2;

game::BrainDesc pet(std::uint32_t observations) {
  game::BrainDesc desc;
  desc.observation_count = observations;
  desc.branch_sizes = {4};
  game::FeedbackOptions options;
  options.replay_capacity = 256;
  desc.learner = options;
  desc.hidden_sizes = {64};
  return desc;
}

// A brain that observes and acts through its own tensors, begins to learn, and is destroyed with them in the
// frame that submitted its work.
struct Visitor {
  game::Tensor observations, actions;
  game::Brain brain;
  game::Agent agent;

  void come(game::Context& context) {
    imp_vk_buffer wish = imp_vk_buffer_init();
    wish.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
    wish.access = VK_ACCESS_TRANSFER_WRITE_BIT;
    auto seen = context.create_tensor(game::TensorDesc{.name = "seen", .shape = {kSeen}}, wish);
    ASSERT_TRUE(seen) << seen.outcome.message();
    observations = std::move(*seen);
    auto acted = context.create_tensor(game::TensorDesc{.name = "acted", .shape = {1, 1 + 4}}, wish);
    ASSERT_TRUE(acted) << acted.outcome.message();
    actions = std::move(*acted);
    game::BrainDesc desc = pet(3);
    desc.observations = observations.handle();
    desc.actions = actions.handle();
    auto made = context.create_brain(desc);
    ASSERT_TRUE(made) << made.outcome.message();
    brain = std::move(*made);
    auto created = brain.create_agent();
    ASSERT_WORKS(created.outcome);
    agent = std::move(*created);
    ASSERT_WORKS(context.warmup());
  }
  void live(std::uint64_t frame, std::span<const float> seen) {
    ASSERT_WORKS(agent.observe_in_place(frame % (kSeen - 2)));
    const std::uint32_t choice = 1;
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = seen.data();
    shown.observation_count = 3;
    shown.branches = &choice;
    shown.branch_count = 1;
    ASSERT_WORKS(agent.demonstrate(shown));
  }
  void go() {
    const imp_api* api = table();
    agent.reset();
    ASSERT_EQ(api->brain_destroy(brain.release()), IMP_OK) << api->last_error();
    for (game::Tensor* tensor : {&observations, &actions})
      ASSERT_EQ(api->vulkan->tensor_destroy(tensor->release()), IMP_OK) << api->last_error();
  }

  static constexpr std::uint64_t kSeen = 64 << 10;  // 256 KiB each, so that a leak shows
};

enum class Way { timeline, fences, exclusive };
constexpr const char* kWays[] = {"timeline", "fences", "on_a_queue_of_its_own"};

class T7Stress : public testing::TestWithParam<Way> {};

TEST_P(T7Stress, TenThousandFramesOfHostActions) {
  const bool rich = GetParam() != Way::fences;
  HostProfile profile{"", rich ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, rich};
  profile.second_queue = GetParam() == Way::exclusive;
  PlainHost host(profile);
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  imp_vk_device_info info = locked_info(host, device);
  if (host.second_queue()) {
    info = device_info(host, device, IMP_QUEUE_EXCLUSIVE);
    info.queue.queue = host.second_queue();
    info.queue.family = host.second_family();
  } else if (GetParam() == Way::exclusive) {
    info.queue.access = IMP_QUEUE_EXCLUSIVE;
  }
  auto context = game::Context::create(game::Library(imp_get_api), info);
  ASSERT_TRUE(context) << context.outcome.message();
  auto brain = context->create_brain(pet(5));
  ASSERT_TRUE(brain) << brain.outcome.message();
  auto agent = brain->create_agent();
  ASSERT_WORKS(agent.outcome);
  ASSERT_WORKS(context->warmup());

  host.start_busy_thread();
  Visitor visitor;
  const float seen[] = {1, 0, 0.5f, -1, 0.25f};
  std::uint64_t decision = 0, reserved = 0;
  std::uint32_t right = 0, late = 0;
  for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
    const double time_s = static_cast<double>(frame) / 60;
    (void)host.begin_frame(frame);
    ASSERT_WORKS(context->frame_begin(frame, time_s, host.safe_frame()));
    if (frame % kAsk == 1) ASSERT_WORKS(agent->observe(seen));
    if (game::Made<game::Action> act = agent->act(); act.outcome.ready() && act->decision != decision) {
      decision = act->decision;
      if (frame > kFrames * 9 / 10) ++late, right += act->branches[0] == kWanted;
      ASSERT_WORKS(
          agent->feedback(act->branches[0] == kWanted ? 1.0f : -1.0f, time_s, game::Credit::current));
      ASSERT_WORKS(agent->set_goal(0));  // a new goal: scolded actions are allowed again
    }
    if (visitor.agent) ASSERT_NO_FATAL_FAILURE(visitor.live(frame, std::span(seen, 3)));
    ASSERT_WORKS(context->submit());
    ASSERT_WORKS(context->frame_end());
    host.end_frame();
    if (visitor.agent && frame % kGuest == 20) ASSERT_NO_FATAL_FAILURE(visitor.go());
    if (frame % kGuest == 0) ASSERT_NO_FATAL_FAILURE(visitor.come(*context));
    if (frame % kResize == 0) {
      ASSERT_WORKS(context->quiesce(60'000));
      host.stop_busy_thread();  // the host stops its own threads
      host.wait_idle();
      host.start_busy_thread();
      ASSERT_WORKS(context->resume());
    }
    if (frame == 4 * kGuest + 1) reserved = context->stats()->bytes_reserved;
  }
  host.stop_busy_thread();
  const game::Made<imp_context_stats> stats = context->stats();
  EXPECT_EQ(stats.value.bytes_reserved, reserved) << "memory grew";
  EXPECT_EQ(stats.value.frame_compiles + stats.value.frame_allocations + stats.value.frame_waits, 0u);
  EXPECT_GT(late, 50u);  // how many answers come in a thousand frames depends on the machine
  EXPECT_GE(right * 10, late * 6) << right << " of " << late << ": explores one action in a few";
  EXPECT_GT(brain->stats()->minibatches, kFrames / 12);
  if (visitor.agent) ASSERT_NO_FATAL_FAILURE(visitor.go());
  ASSERT_WORKS(context->drain(60'000));
  ASSERT_WORKS(context->destroy());
  host.finish_frames();
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

INSTANTIATE_TEST_SUITE_P(By, T7Stress, testing::Values(Way::timeline, Way::fences, Way::exclusive),
                         [](const auto& way) { return std::string(kWays[static_cast<int>(way.param)]); });

}  // namespace
}  // namespace imprint::bridge
