// A creature that learns to walk to a light from a picture alone. The game draws the picture each frame and
// copies it into a buffer that Imprint reads. No pixel passes through the CPU, in play or in learning. Usage:
// 04-see-pictures [DEVICE [feedback | dqn | ppo]]. The last two have pictures of 84 x 84 and an encoder for
// them, and need a GPU. Exit status 1 when the creature has not learned.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "declare.h"
#include "drawn_picture.h"
#include "host.h"
#include "imprint/imprint.hpp"

namespace {

using namespace imprint::game;

constexpr int kJudged = 100;        // number of first and last steps that are compared
constexpr std::int32_t kReach = 4;  // fields that the creature sees in each direction
constexpr std::int32_t kFields = kReach + 1;

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
  // 1 nearer, -1 not. An episode ends at the light.
  float step(std::uint32_t action, bool& over) {
    const std::int32_t before = distance();
    std::int32_t& place = creature[action / 2];
    place = std::clamp(place + (action % 2 ? -1 : 1), 0, kFields - 1);
    const float reward = distance() < before ? 1.0f : -1.0f;
    over = distance() == 0;
    while (distance() == 0) light[0] = field(), light[1] = field();
    return reward;
  }
};

// The creature's picture: the light, as it lies around the creature.
struct View {
  std::int32_t field, light;  // their sides, in pixels

  std::uint32_t side() const { return static_cast<std::uint32_t>(2 * kReach * field + light); }
  VkRect2D bright(const Meadow& meadow) const {
    const auto at = [&](int axis) { return (meadow.light[axis] - meadow.creature[axis] + kReach) * field; };
    const auto size = static_cast<std::uint32_t>(light);
    return {{at(0), at(1)}, {size, size}};
  }
};
constexpr View kSmall{1, 3}, kLarge{9, 12};  // 11 x 11 and 84 x 84

int fail(const char* what, const char* why) {
  return std::fprintf(stderr, "04-see-pictures: %s: %s\n", what, why), 1;
}

// How the creature learns, and for how many frames.
struct Way {
  Learner learner;
  std::uint64_t frames = 0;
};
Way way_of(const std::string& name) {
  if (name == "dqn") {
    DqnOptions options;
    options.replay_capacity = 2000;  // two pictures per step
    options.learning_rate = 2.5e-4f;
    options.discount = 0.9f;  // the light is at most 8 steps away
    return {options, 40'000};
  }
  if (name == "ppo") return {PpoOptions(), 60'000};
  FeedbackOptions options;
  options.learn_period_frames = 1;
  return {options, 2400};
}

int live(Host& host, const View& view, const DrawnPicture& drawn, const Way& way) {
  Limits limits;
  limits.memory_cap_bytes = std::uint64_t{1} << 30;  // pictures of 84 x 84 are 28 KB each
  Made<Context> context = Context::create(Library(imp_get_api), declare(host), HostDesc(), limits);
  if (!context) return fail("context", context.outcome.message());
  Made<Tensor> picture = context->import_tensor(
      TensorDesc{.name = "picture", .shape = {view.side(), view.side()}}, declare(drawn));
  if (!picture) return fail("picture", picture.outcome.message());
  BrainDesc desc = BrainDesc::of(way.learner, view.side() * view.side(), {4});
  desc.observations = picture->handle();
  desc.snapshot_count = 0;
  const imp_stream eye[] = {picture_stream(1, view.side(), view.side())};
  if (view.side() > 11) desc.network.set_streams(eye);
  Made<Brain> brain = context->create_brain(desc);
  if (!brain) return fail("brain", brain.outcome.message());
  Made<Agent> creature = brain->create_agent();
  if (!creature) return fail("agent", creature.outcome.message());
  if (const Outcome warm = context->warmup(); !warm) return fail("warmup", warm.message());

  Meadow meadow;
  Frames clock(Host::kFramesInFlight);
  std::vector<float> rewards;
  for (std::uint64_t number = 1; number <= way.frames; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    if (!commands) return fail("begin_frame", host.error().c_str());
    Frame frame(*context, clock.next(1.0 / 60));
    const Action action = frame.act(*creature);
    if (action.is_new) {
      bool over = false;
      rewards.push_back(meadow.step(action.choices()[0], over));
      frame.keep(creature->reward(rewards.back()));
      if (over) frame.keep(creature->end_episode(EpisodeEnd::terminated));
    }
    const VkRect2D bright[] = {view.bright(meadow)};
    drawn.draw(commands, bright);
    if (action.wants_observation) frame.keep(creature->observe_in_place(0));
    frame.record(commands);  // after the picture, which it reads
    if (const Outcome outcome = frame.end(); !outcome) return fail("frame", outcome.message());
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }
  host.wait_for_all();
  if (const Outcome closed = context->close(); !closed) return fail("close", closed.message());
  if (rewards.size() < 2 * kJudged) return fail("it has not learned", "it took too few steps");
  const auto first = std::count(rewards.begin(), rewards.begin() + kJudged, 1.0f);
  const auto last = std::count(rewards.end() - kJudged, rewards.end(), 1.0f);
  std::printf("%s: of the first %d steps %td led to the light, of the last %d %td\n", host.device_name(),
              kJudged, first, kJudged, last);
  return last < 90 ? fail("it has not learned", "fewer than 90 of its last 100 steps led to the light") : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Host host;
  if (!host.open(argc > 1 ? argv[1] : "")) return fail("no device", host.error().c_str());
  const std::string learner = argc > 2 ? argv[2] : "feedback";
  const View view = learner == "feedback" ? kSmall : kLarge;
  DrawnPicture drawn;
  if (!drawn.make(host.physical_device(), host.device(), view.side(), view.side()))
    return fail("picture", "Vulkan refused to make a picture or a buffer");
  const int status = live(host, view, drawn, way_of(learner));
  host.wait_for_all();
  drawn.destroy();
  return status;
}
