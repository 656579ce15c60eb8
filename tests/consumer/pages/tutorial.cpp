// The steps of plugin/docs/tutorial.md, unchanged, in a game of a few frames. The final program is compiled
// and run separately.

#include <array>
#include <cstdint>
#include <cstdio>

#include "host.h"

#include "tutorial-device.inc"

#include "tutorial-brain.inc"

#include "tutorial-frame.inc"

#include "tutorial-load.inc"
#include "tutorial-save.inc"

namespace {

struct World {
  int steps = 0, episodes = 0;
  std::array<float, 2> look() const { return {1, static_cast<float>(steps % 4)}; }
  float step(std::uint32_t direction) { return ++steps, direction == 1 ? 1.0f : -1.0f; }
  bool over() const { return steps % 4 == 0; }
  void restart() { ++episodes; }
};

int fail(const char* what, const char* why) {
  return std::fprintf(stderr, "tutorial: %s: %s\n", what, why), 1;
}

}  // namespace

int main() {
  Host host;
  if (!host.open("")) return fail("no device", host.error().c_str());
  game::Made<game::Context> context = lend(host);
  if (!context) return fail("context", context.outcome.message());
  game::Made<game::Brain> brain = make_brain(*context);
  if (!brain) return fail("brain", brain.outcome.message());
  game::Made<game::Agent> agent = brain->create_agent();
  if (!agent || !context->warmup()) return fail("agent", agent.outcome.message());
  World world;
  game::Frames clock(Host::kFramesInFlight);
  for (std::uint64_t number = 1; number <= 30; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    const game::Outcome outcome = take_turn(*context, *agent, clock.next(1.0 / 60), commands, world);
    if (!outcome) return fail("take_turn", outcome.message());
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }
#include "tutorial-save-call.inc"
  context = lend(host);
  brain = make_brain(*context);
#include "tutorial-load-call.inc"
  if (brain->stats()->decisions == 0) return fail("load", "nothing was loaded");
  if (!load(*brain, "nothing.brain")) return fail("load", "a missing file is no failure");
  return world.steps > 10 && world.episodes > 2 ? 0 : fail("it rarely decided", "fewer than eleven steps");
}
