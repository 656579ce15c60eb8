// The C++ code of plugin/docs/learners.md makes its brains on the CPU.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

using namespace imprint::game;

#include "learners-continuous.inc"
#include "learners-curves.inc"
#include "learners-demonstrations.inc"
#include "learners-es.inc"
#include "learners-groups.inc"
#include "learners-memory.inc"
#include "learners-observation.inc"
#include "learners-policy.inc"
#include "learners-self-play.inc"
#include "learners-signals.inc"
#include "learners-streams.inc"
#include "learners-truncated.inc"

namespace {

// The ball is out after every seventh step; time is over after every fifth.
struct Court {
  int steps = 0, truncated = 0;
  float step(std::uint32_t) { return ++steps % 2 ? 1.0f : -1.0f; }
  bool ball_out() const { return steps % 7 == 0; }
  bool time_over() { return steps % 5 == 0 && ++truncated; }
  void serve() {}
  std::array<float, 2> look() const { return {static_cast<float>(steps % 7), 0}; }
};

int play_rallies(Context& context, Brain& brain, Agent& player) {
  Court court;
  Frames clock(0);
  for (int i = 0; i < 200; ++i) {
    Frame frame(context, clock.next(1.0 / 60));
    take_turn(frame, player, court);
    frame.submit();
    if (const Outcome outcome = frame.end(); !outcome)
      return std::fprintf(stderr, "learners: %s\n", outcome.message()), 1;
  }
  note(brain);
  const Made<imp_brain_stats> stats = brain.stats();
  if (!stats || court.truncated == 0 || stats->dropped_unfollowed != 0 || stats->minibatches == 0)
    return std::fputs("learners: rallies\n", stderr), 1;
  return 0;
}

std::vector<std::byte> bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

extern "C" int run_learners_cpp(void) {
  StandaloneDesc cpu;
  cpu.device = "cpu";
  Made<Context> rallies = Context::create_standalone(Library(imp_get_api), cpu);
  Made<Brain> brain = rallies->create_brain(BrainDesc::of(DqnOptions(), 2, {3}));
  Made<Agent> player = brain->create_agent();
  if (!player || !rallies->warmup()) return std::fputs("learners: player\n", stderr), 1;
  if (play_rallies(*rallies, *brain, *player) != 0) return 1;

  Made<Context> context = Context::create_standalone(Library(imp_get_api), cpu);
  Made<Brain> cat = context->create_brain(describe_cat()), car = context->create_brain(describe_car()),
              runner = context->create_brain(describe_maze_runner()),
              scout = context->create_brain(describe_scout()),
              pupil = context->create_brain(describe_pupil()),
              explorer = context->create_brain(describe_explorer()),
              duellist = context->create_brain(describe_duellist()),
              swarm = context->create_brain(describe_swarm());
  Made<Agent> agents[] = {cat->create_agent(),      car->create_agent(),     runner->create_agent(),
                          scout->create_agent(),    pupil->create_agent(),   explorer->create_agent(),
                          duellist->create_agent(), duellist->create_agent()};
  for (const Made<Agent>& agent : agents)
    if (!agent) return std::fprintf(stderr, "learners: %s\n", agent.outcome.message()), 1;
  if (!context->warmup()) return std::fputs("learners: warmup\n", stderr), 1;
  hatch_opens(*agents[0]);   // refused: no frame is open
  gets_through(*agents[1]);  // nor groups
  next_match(*agents[6], *agents[7], 1);
  if (!agents[7]->set_opponent(IMP_OPPONENT_NEWEST)) return std::fputs("learners: no pool\n", stderr), 1;
  const std::vector<std::byte> file = bytes_of(PAGE_ROOT "/samples/02-run-policy/models/BallChase.onnx");
  if (const Made<Brain> policy = load_policy(*context, file); !policy)
    return std::fprintf(stderr, "learners: %s\n", policy.outcome.message()), 1;
  if (!context->warmup()) return std::fputs("learners: warmup of the policy\n", stderr), 1;
  Action driven;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    Frame frame(*context, [&] {
      imp_frame_info now = imp_frame_info_init();
      now.frame = number;
      return now;
    }());
    frame.act(*agents[0]);
    driven = frame.act(*agents[1]);
    frame.keep(agents[0]->observe(look(23.5f, 40)));
    frame.keep(agents[1]->observe(std::array<float, 6>{}));
    frame.keep(agents[2]->observe(std::array<float, 3>{}));
    frame.keep(agents[3]->observe(std::array<float, 50>{}));
    frame.submit();
    if (const Outcome outcome = frame.end(); !outcome)
      return std::fprintf(stderr, "learners: %s\n", outcome.message()), 1;
  }
  return driven.is_new && std::abs(throttle(driven)) <= 1 ? 0 : 1;
}
