// The C++ code of plugin/docs/learners.md makes its brains on the CPU.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

using namespace imprint::game;

#include "learners-at-once.inc"
#include "learners-continuous.inc"
#include "learners-crowd.inc"
#include "learners-curves.inc"
#include "learners-demonstrations.inc"
#include "learners-es.inc"
#include "learners-groups.inc"
#include "learners-mask.inc"
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

// Each body is told one of 8 ways and earns the cosine of the angle to the way that it takes.
struct Field {
  std::array<std::uint32_t, Herd::kBodies> told{};
  std::vector<float> worths;
  static float angle(std::uint32_t way) { return static_cast<float>(way) * 0.78539816f; }
  std::array<float, 2> look(std::size_t body) const {
    return {std::cos(angle(told[body])), std::sin(angle(told[body]))};
  }
  float step(std::size_t body, std::uint32_t way) {
    worths.push_back(std::cos(angle(way) - angle(told[body])));
    told[body] = (told[body] * 5 + 3 + static_cast<std::uint32_t>(body + worths.size() / 16)) % 8;
    return worths.back();
  }
};

float mean_of_last(const std::vector<float>& values, std::ptrdiff_t count) {
  return std::accumulate(values.end() - count, values.end(), 0.0f) / static_cast<float>(count);
}

int herd_a_crowd(const StandaloneDesc& device) {
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device);
  Herd herd;
  if (const Outcome opened = herd.open(*context); !opened)
    return std::fprintf(stderr, "learners: herd: %s\n", opened.message()), 1;
  if (!context->warmup()) return std::fputs("learners: herd\n", stderr), 1;
  Field field;
  Frames clock(0);
  for (int i = 0; i < 1500; ++i) {
    Frame frame(*context, clock.next(1.0 / 60));
    herd.take_turns(frame, field);
    frame.submit();
    if (const Outcome outcome = frame.end(); !outcome)
      return std::fprintf(stderr, "learners: herd: %s\n", outcome.message()), 1;
  }
  const float worth = mean_of_last(field.worths, 1600);
  return worth > 0.6f ? 0 : (std::fprintf(stderr, "learners: a herd's step is worth %g\n", double{worth}), 1);
}

// One agent is paid 1 for the choice that it sees, else 0.
template <class Options>
int pay_at_once(const StandaloneDesc& device, const Options& options) {
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device);
  Made<Brain> brain = context->create_brain(BrainDesc::of(options, 4, {4}));
  Made<Agent> agent = brain->create_agent();
  if (!agent || !context->warmup()) return std::fputs("learners: at once\n", stderr), 1;
  std::vector<float> paid;
  std::uint32_t wanted = 0;
  Frames clock(0);
  while (paid.size() < 1000) {
    Frame frame(*context, clock.next(1.0 / 60));
    const Action action = frame.act(*agent);
    if (action.is_new) {
      paid.push_back(action.choices()[0] == wanted ? 1.0f : 0.0f);
      frame.keep(agent->reward(paid.back()));
      wanted = static_cast<std::uint32_t>(paid.size() * paid.size() / 3 % 4);
    }
    std::array<float, 4> seen{};
    seen[wanted] = 1;
    if (action.wants_observation) frame.keep(agent->observe(seen));
    frame.submit();
    if (const Outcome outcome = frame.end(); !outcome)
      return std::fprintf(stderr, "learners: at once: %s\n", outcome.message()), 1;
  }
  const float worth = mean_of_last(paid, 200);
  return worth > 0.75f ? 0 : (std::fprintf(stderr, "learners: paid at once: %g\n", double{worth}), 1);
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
  if (herd_a_crowd(cpu) != 0 || pay_at_once(cpu, policy_at_once()) != 0 ||
      pay_at_once(cpu, values_at_once()) != 0)
    return 1;

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
  Action driven, turned;
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
    turned = frame.act(*agents[2]);
    look_around(frame, *agents[2], {}, {0, 1, 0});
    frame.keep(agents[3]->observe(std::array<float, 50>{}));
    frame.submit();
    if (const Outcome outcome = frame.end(); !outcome)
      return std::fprintf(stderr, "learners: %s\n", outcome.message()), 1;
  }
  if (!turned.is_new || turned.choices()[0] != 1) return std::fputs("learners: mask\n", stderr), 1;
  return driven.is_new && std::abs(throttle(driven)) <= 1 ? 0 : 1;
}
