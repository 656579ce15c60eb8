// A plain Vulkan game whose creature learns to walk to a light. Its reward says whether a step led nearer.
// Only guest.c knows Imprint. Usage: 03-plain-host [DEVICE]. Exit status 1 when the creature has not learned.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "declare.h"
#include "guest.h"
#include "host.h"

namespace {

constexpr std::uint64_t kFrames = 1800;
constexpr std::size_t kJudged = 100;  // number of first and last steps that are compared
constexpr float kStep = 0.05f;

// A light and a creature on a square. The creature knows the direction of the light and walks east, west,
// north or south. An episode ends at the light, or off the square.
struct Meadow {
  float light[2] = {0.5f, -0.5f}, creature[2] = {0, 0};
  std::uint32_t random = 1;
  std::vector<float> rewards;  // of all steps

  float place() {
    return static_cast<float>((random = random * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  }
  float distance() const { return std::hypot(light[0] - creature[0], light[1] - creature[1]); }
  void look(float* seen) const {
    for (int i = 0; i < 2; ++i) seen[i] = (light[i] - creature[i]) / (distance() + 0.01f);
  }
  // 1 nearer, -1 farther.
  float step(std::uint32_t action, bool& over) {
    const float before = distance();
    creature[action / 2] += action % 2 ? -kStep : kStep;
    rewards.push_back(distance() < before ? 1.0f : -1.0f);
    over = distance() < 2 * kStep || std::fabs(creature[0]) > 1.5f || std::fabs(creature[1]) > 1.5f;
    if (over)
      for (int i = 0; i < 2; ++i) light[i] = place(), creature[i] = place();
    return rewards.back();
  }
};

// The functions that guest.c calls.
guest_world world_of(Meadow& meadow) {
  guest_world world{};
  world.user = &meadow;
  world.look = [](void* user, float* seen) { static_cast<Meadow*>(user)->look(seen); };
  world.step = [](void* user, std::uint32_t action, int* over) {
    bool ends = false;
    const float reward = static_cast<Meadow*>(user)->step(action, ends);
    *over = ends ? 1 : 0;
    return reward;
  };
  return world;
}

int fail(const char* what, const char* why) {
  return std::fprintf(stderr, "03-plain-host: %s: %s\n", what, why), 1;
}

}  // namespace

int main(int argc, char** argv) {
  Host host;
  if (!host.open(argc > 1 ? argv[1] : "")) return fail("no device", host.error().c_str());
  const imp_vk_device_info device = declare(host);
  if (const char* what = guest_open(&device, Host::kFramesInFlight, 2, 4)) return fail(what, guest_error());

  Meadow meadow;
  const guest_world world = world_of(meadow);
  for (std::uint64_t number = 1; number <= kFrames; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    if (!commands) return fail("begin_frame", host.error().c_str());
    if (const char* what = guest_frame(1.0 / 60, commands, &world)) return fail(what, guest_error());
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }

  host.wait_for_all();
  if (const char* what = guest_close()) return fail(what, guest_error());
  if (meadow.rewards.size() < 2 * kJudged) return fail("it has not learned", "it took too few steps");
  const auto first = std::count(meadow.rewards.begin(), meadow.rewards.begin() + kJudged, 1.0f);
  const auto last = std::count(meadow.rewards.end() - kJudged, meadow.rewards.end(), 1.0f);
  std::printf("%s: of the first %zu steps %td led to the light, of the last %zu %td\n", host.device_name(),
              kJudged, first, kJudged, last);
  return last < 90 ? fail("it has not learned", "fewer than 90 of its last 100 steps led to the light") : 0;
}
