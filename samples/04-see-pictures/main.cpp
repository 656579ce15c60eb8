// A creature that learns to walk to a light from a picture alone. The game draws the picture each frame and
// copies it into a buffer that Imprint reads. No pixel passes through the CPU, in play or in learning. Usage:
// 04-see-pictures [DEVICE]. Exit status 1 when the creature has not learned.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host.h"
#include "imprint/imprint.hpp"
#include "view.h"

namespace {

using namespace imprint::game;

constexpr std::uint64_t kFrames = 2400;
constexpr std::uint64_t kJudged = 100;  // number of first and last decisions that are compared
constexpr std::int32_t kFields = View::kReach + 1;

// A light and a creature on a board of 5 x 5 fields. The creature walks east, west, south or north; walls
// stop it.
struct Meadow {
  std::int32_t light[2] = {4, 0}, creature[2] = {2, 2};
  std::uint32_t random = 1;

  std::int32_t field() {
    return static_cast<std::int32_t>((random = random * 1664525u + 1013904223u) >> 16) % kFields;
  }
  std::int32_t distance() const {
    return std::abs(light[0] - creature[0]) + std::abs(light[1] - creature[1]);
  }
  // 1 nearer, -1 not.
  float walk(std::uint32_t action) {
    const std::int32_t before = distance();
    std::int32_t& place = creature[action / 2];
    place = std::clamp(place + (action % 2 ? -1 : 1), 0, kFields - 1);
    const float reward = distance() < before ? 1.0f : -1.0f;
    while (distance() == 0) light[0] = field(), light[1] = field();
    return reward;
  }
};

int fail(const char* what, const char* why) {
  return std::fprintf(stderr, "04-see-pictures: %s: %s\n", what, why), 1;
}

// Declares the buffer as it was created, and the stage that writes it.
imp_vk_buffer declare(VkBuffer buffer) {
  imp_vk_buffer declared = imp_vk_buffer_init();
  std::memcpy(&declared.buffer, &buffer, sizeof buffer);
  declared.size = View::kBytes;
  declared.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  declared.memory_flags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  declared.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
  declared.access = VK_ACCESS_TRANSFER_WRITE_BIT;
  return declared;
}

int live(Host& host, const View& view) {
  Made<Context> context = Context::create(Library(imp_get_api), host.declare());
  if (!context) return fail("context", context.outcome.message());
  Made<Tensor> picture = context->import_tensor(
      TensorDesc{.name = "picture", .shape = {View::kSide, View::kSide}}, declare(view.buffer()));
  if (!picture) return fail("picture", picture.outcome.message());
  FeedbackOptions options;
  options.learn_period_frames = 1;
  BrainDesc desc;
  desc.observation_count = View::kSide * View::kSide;
  desc.observations = picture->handle();
  desc.branch_sizes = {4};
  desc.learner = options;
  Made<Brain> brain = context->create_brain(desc);
  if (!brain) return fail("brain", brain.outcome.message());
  Made<Agent> creature = brain->create_agent();
  if (!creature) return fail("agent", creature.outcome.message());
  if (const Outcome warm = context->warmup(); !warm) return fail("warmup", warm.message());

  Meadow meadow;
  std::uint64_t decided = 0, first = 0, last = 0;
  for (std::uint64_t number = 1; number <= kFrames; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    if (!commands) return fail("begin_frame", host.error().c_str());
    view.draw(commands, meadow.light[0] - meadow.creature[0], meadow.light[1] - meadow.creature[1]);
    if (const Outcome begun =
            context->frame_begin(number, static_cast<double>(number) / 60, host.safe_frame());
        !begun)
      return fail("frame_begin", begun.message());
    const Made<Action> action = creature->act();
    if (action.outcome.ready() && action.value.decision != decided) {
      decided = action.value.decision;
      const float reward = meadow.walk(action.value.branches[0]);
      if (const Outcome told = creature->reward(reward); !told) return fail("reward", told.message());
      if (decided <= kJudged) first += reward > 0;
      if (decided > kFrames / 3 - kJudged) last += reward > 0;
    }
    // Every third frame: the answer comes two frames later, and the picture shows its effect one frame after
    // that.
    if (number % 3 == 1)
      if (const Outcome looked = creature->observe_in_place(0); !looked)
        return fail("observe", looked.message());
    if (const Made<std::uint32_t> recorded = context->record(commands); !recorded.outcome)
      return fail("record", recorded.outcome.message());
    if (const Outcome ended = context->frame_end(); !ended) return fail("frame_end", ended.message());
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }
  host.wait_for_all();
  if (!context->frame_begin(kFrames + 1, kFrames, host.safe_frame()) || !context->frame_end())
    return fail("the last frame", "refused");
  std::printf("%s: of the first %llu steps %llu led to the light, of the last %llu %llu\n",
              host.device_name(), static_cast<unsigned long long>(kJudged),
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(kJudged),
              static_cast<unsigned long long>(last));
  return last < kJudged * 9 / 10
             ? fail("it has not learned", "fewer than 90 of its last 100 steps led to the light")
             : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Host host;
  if (!host.open(argc > 1 ? argv[1] : "")) return fail("no device", host.error().c_str());
  View view;
  if (!view.make(host.declare().physical_device, host.declare().device))
    return fail("view", "Vulkan refused to make a picture or a buffer");
  const int status = live(host, view);
  host.wait_for_all();
  view.destroy();
  return status;
}
