// A plain Vulkan game whose creature learns to walk to a light. Its reward says whether a step led nearer.
// Only guest.c knows Imprint. Usage: 03-plain-host [DEVICE]. Exit status 1 when the creature has not learned.

#include <cmath>
#include <cstdio>

#include "guest.h"
#include "host.h"

namespace {

constexpr std::uint64_t kFrames = 1800;
constexpr std::uint64_t kJudged = 100;  // number of first and last decisions that are compared
constexpr float kStep = 0.05f;

// A light and a creature on a square. The creature knows the direction of the light and walks east, west,
// north or south.
struct Meadow {
  float light[2] = {0.5f, -0.5f}, creature[2] = {0, 0};
  std::uint32_t random = 1;

  float place() {
    return static_cast<float>((random = random * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  }
  float distance() const { return std::hypot(light[0] - creature[0], light[1] - creature[1]); }
  void look(float seen[2]) const {
    for (int i = 0; i < 2; ++i) seen[i] = (light[i] - creature[i]) / (distance() + 0.01f);
  }
  // 1 nearer, -1 farther.
  float walk(std::uint32_t action) {
    const float before = distance();
    creature[action / 2] += action % 2 ? -kStep : kStep;
    const float reward = distance() < before ? 1.0f : -1.0f;
    if (distance() < 2 * kStep || std::fabs(creature[0]) > 1.5f || std::fabs(creature[1]) > 1.5f)
      for (int i = 0; i < 2; ++i) light[i] = place(), creature[i] = place();
    return reward;
  }
};

int fail(const char* what, const char* why) {
  return std::fprintf(stderr, "03-plain-host: %s: %s\n", what, why), 1;
}

}  // namespace

int main(int argc, char** argv) {
  Host host;
  if (!host.open(argc > 1 ? argv[1] : "")) return fail("no device", host.error().c_str());
  const imp_vk_device_info device = host.declare();
  if (const char* what = guest_open(&device, 2, 4)) return fail(what, guest_error());

  Meadow meadow;
  std::uint64_t decided = 0, first = 0, last = 0;
  float reward = 0;
  imp_frame_info frame = imp_frame_info_init();
  for (std::uint64_t number = 1; number <= kFrames; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    if (!commands) return fail("begin_frame", host.error().c_str());
    frame.frame = number;
    frame.safe_frame = host.safe_frame();
    frame.time_s = static_cast<double>(number) / 60;
    float seen[2];
    meadow.look(seen);
    std::uint32_t action = 0;
    std::uint64_t decision = decided;
    const bool asks = number % 3 == 1;  // the answer comes two frames later, its reward one frame after that
    if (const char* what = guest_frame(&frame, commands, asks ? seen : nullptr, reward, &action, &decision))
      return fail(what, guest_error());
    reward = 0;
    if (decision != decided) {
      decided = decision;
      reward = meadow.walk(action);
      if (decided <= kJudged) first += reward > 0;
      if (decided > kFrames / 3 - kJudged) last += reward > 0;
    }
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }

  host.wait_for_all();
  frame.frame = kFrames + 1;
  frame.safe_frame = host.safe_frame();
  if (const char* what = guest_close(&frame)) return fail(what, guest_error());
  std::printf("%s: of the first %llu steps %llu led to the light, of the last %llu %llu\n",
              host.device_name(), static_cast<unsigned long long>(kJudged),
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(kJudged),
              static_cast<unsigned long long>(last));
  return last < kJudged * 9 / 10
             ? fail("it has not learned", "fewer than 90 of its last 100 steps led to the light")
             : 0;
}
