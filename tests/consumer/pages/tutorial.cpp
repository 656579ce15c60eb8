// The steps of plugin/docs/tutorial.md, unchanged, in a game of a few frames. The final program is compiled
// and run separately.

#include <cstdint>
#include <cstdio>

#include "host.h"

#include "tutorial-device.inc"

#include "tutorial-brain.inc"

#include "tutorial-frame.inc"

namespace {

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
  Turn turn;
  imp_frame_info now = imp_frame_info_init();
  for (now.frame = 1; now.frame <= 30; ++now.frame) {
    const VkCommandBuffer commands = host.begin_frame(now.frame);
    now.safe_frame = host.safe_frame();
    now.time_s = static_cast<double>(now.frame) / 60;
    turn.ask = now.frame % 3 == 1;
    const game::Outcome outcome = take_turn(*context, *agent, now, commands, turn);
    if (!outcome) return fail("take_turn", outcome.message());
    turn.reward = turn.direction == 1 ? 1.0f : -1.0f;
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }
  host.wait_for_all();
  if (!context->frame_begin(now.frame, 1, host.safe_frame()) || !context->frame_end() || !context->destroy())
    return fail("close", "the last frame");
  return turn.decision > 5 ? 0 : fail("it never decided", "fewer than six decisions");
}
