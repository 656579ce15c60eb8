// A game of two sides that plays in a league: both name one of five cards, and the higher one wins.

#include <CLI/CLI.hpp>

#include <imprint/studio.h>
#include <cstdio>
#include <exception>
#include <imprint/imprint.hpp>
#include <string>
#include <utility>

#include "tests/must.h"

namespace {

using namespace imprint::game;
namespace studio = imprint::studio;

constexpr std::uint32_t kCards = 5;
constexpr int kMatches = 32;  // against one opponent

// One side: a card per match.
struct Side {
  Brain brain;  // none: it acts by the other side's
  Agent agent;
  bool asked = false;
  int card = -1;  // named in this match; -1: not yet

  void begin_match() { card = -1; }
  void turn() {
    if (card >= 0) return;
    if (!asked) {
      const float sees[1] = {1};
      must(agent.observe(sees));
      asked = true;
      return;
    }
    const Made<Action> made = agent.act();
    must(made.outcome);
    if (!made.outcome.ready()) return;
    card = static_cast<int>(made.value.branches[0]);
    asked = false;
  }
};

Side make_side(Context& context, bool learns, std::uint64_t seed) {
  BrainDesc desc;
  desc.name = learns ? "player" : "opponent";
  desc.observation_count = 1;
  desc.branch_sizes = {kCards};
  desc.seed = seed;
  desc.hidden_sizes = {16};
  desc.agents_per_brain = learns ? 2 : 1;
  PpoOptions ppo;
  ppo.rollout_steps = ppo.batch_size = 64;
  ppo.learning_rate = 0.003f;
  if (learns)
    desc.learner = ppo;
  else
    desc.learner = NoLearner();
  imp_brain_desc shared = desc;
  if (learns) studio::share(shared);
  Side side;
  side.brain = must(context.create_brain(shared));
  side.agent = must(side.brain.create_agent());
  return side;
}

int play(std::uint64_t seed) {
  StandaloneDesc device;
  device.device = "cpu";
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = 1'000'000'000;
  Context context = must(Context::create_standalone(Library(imp_get_api), device, imp_host_init(), limits));
  Side player = make_side(context, true, seed), opponent = make_side(context, false, seed);
  Side mirror;  // the newest weights
  mirror.agent = must(player.brain.create_agent());
  must(mirror.agent.set_mode(Mode::inference));
  must(context.warmup());
  studio::Member member = studio::join(context.handle(), player.brain.handle());
  studio::Opponent against;
  int matches = 0, drawn = -1;
  std::uint64_t frame = 0;
  while (member.frame()) {
    if (member.restarts()) {
      matches = 0;
      drawn = -1;
      for (Side* side : {&player, &opponent, &mirror}) side->begin_match();
    }
    if (matches % kMatches == 0 && std::exchange(drawn, matches) != matches) {
      against = member.draw_opponent();
      if (!against.brain.empty()) must(opponent.brain.load_weights(against.brain.c_str()));
    }
    Side& other = against.brain.empty() ? mirror : opponent;
    ++frame;
    must(context.frame_begin(frame, static_cast<double>(frame) / 60));
    player.turn();
    other.turn();
    if (player.card >= 0 && other.card >= 0) {
      const int won = (player.card > other.card) - (player.card < other.card);
      must(player.agent.reward(static_cast<float>(won)));
      must(player.agent.end_episode(EpisodeEnd::terminated));
      member.match_ended(against, 0.5 + 0.5 * won);
      member.episode_ended(won);
      player.begin_match();
      other.begin_match();
      ++matches;
    }
    must(context.submit());
    must(context.frame_end());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  CLI::App app{"Plays high card, as one of the games of imprint studio."};
  app.add_option("--seed", seed, "of the brain");
  CLI11_PARSE(app, argc, argv);
  try {
    return play(seed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_duel: %s\n", error.what());
    return 1;
  }
}
