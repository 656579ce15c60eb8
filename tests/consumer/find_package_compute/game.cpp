// A worm on a line crawls to a berry. One brain learns from all copies of this game.

#include <imprint/studio.h>

#include <algorithm>
#include <cstdio>
#include <imprint/imprint.hpp>
#include <random>
#include <string>

using namespace imprint::game;
namespace studio = imprint::studio;

struct World {
  std::mt19937_64 random;
  int worm = 0, berry = 0, moves = 0;
  float score = 0;
  void begin() {
    worm = static_cast<int>(random() % 11);
    berry = static_cast<int>(random() % 11);
    moves = 0;
    score = 0;
  }
  float move(std::uint32_t choice) {  // left, nothing, right; returns the reward
    worm = std::clamp(worm + static_cast<int>(choice) - 1, 0, 10);
    ++moves;
    const float reward = worm == berry ? 1.0f : -0.02f;
    score += reward;
    return reward;
  }
  bool over() const { return worm == berry || moves == 40; }
};

struct Game {
  Context context;
  Brain brain;
  Agent worm;
  Outcome open() {
    StandaloneDesc device;
    const std::string name = studio::device();  // this copy's, of --devices
    device.device = name.c_str();
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 1'000'000;  // no player waits for these frames
    const Library library(imp_get_api);
    Made<Context> made = Context::create_standalone(library, device, imp_host_init(), limits);
    context = std::move(made.value);
    const BrainDesc desc = BrainDesc::of(PpoOptions(), 2, {3});  // sees 2 numbers, has 3 actions
    imp_brain_desc shared = desc;
    studio::share(shared);
    brain = context.create_brain(shared).value;
    worm = brain.create_agent().value;
    return made ? context.warmup() : made.outcome;  // its message() names the call that failed first
  }
};

int main() {
  Game game;
  if (const Outcome opened = game.open(); !opened) {
    std::fprintf(stderr, "%s\n", opened.message());
    return 1;
  }
  studio::Member member = studio::join(game.context.handle(), game.brain.handle());
  World world;
  Frames clock(2);
  while (member.frame()) {
    Frame frame(game.context, clock.next(1.0 / 60));
    if (member.restarts()) {
      world.random.seed(member.seed());
      world.begin();
      frame.keep(game.worm.end_episode(EpisodeEnd::truncated));
    }
    const Action action = frame.act(game.worm);
    if (action.is_new) {
      frame.keep(game.worm.reward(world.move(action.choices()[0])));
      if (world.over()) {
        frame.keep(game.worm.end_episode(EpisodeEnd::terminated));
        member.episode_ended(world.score);
        world.begin();
      }
    }
    const float sees[] = {static_cast<float>(world.worm) / 10, static_cast<float>(world.berry) / 10};
    if (action.wants_observation) frame.keep(game.worm.observe(sees));
    frame.submit();
    if (const Outcome done = frame.end(); !done) {
      std::fprintf(stderr, "%s\n", done.message());
      return 1;
    }
  }
}
