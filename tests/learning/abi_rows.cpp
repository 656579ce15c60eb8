#include "tests/learning/abi_rows.h"

#include <imprint/imprint.hpp>

#include "compute/base/text.h"

namespace imprint::trials {
namespace {

using Options = std::map<std::string, double>;

AbiBar reaches(double greedy, std::int64_t steps, double share = 0.9) {
  return {text("greedy >= ", greedy, " within ", steps / 1000, "k"),
          [=](const AbiCurve& curve) { return curve.reached(greedy) >= 0 && curve.reached(greedy) <= steps; },
          share};
}

AbiBar ends(double greedy, double share = 0.9) {
  return {text("greedy >= ", greedy, " at the end"),
          [=](const AbiCurve& curve) { return curve.checks.back().greedy >= greedy; }, share};
}

AbiBar trains(double played) {
  return {text("last 100 episodes of training >= ", played, " at the end"),
          [=](const AbiCurve& curve) { return curve.checks.back().played >= played; }};
}

// A network that does not suit the task.
AbiBar misses(double greedy) {
  return {text("greedy < ", greedy, " all the time"),
          [=](const AbiCurve& curve) { return curve.reached(greedy) < 0; }};
}

AbiTrial trial(const char* learner, const char* game, std::int64_t steps, std::int64_t check) {
  AbiTrial made;
  made.learner = learner;
  made.game = game;
  made.steps = steps;
  made.check_every = check;
  return made;
}

// Settings that others published: agents that share a brain, all of PPO's options, tanh networks.
AbiTrial published_ppo(const char* game, std::int64_t steps, std::int64_t check, std::uint32_t agents,
                       Options options) {
  AbiTrial made = trial("ppo", game, steps, check);
  made.agents = agents;
  made.tanh = true;
  made.window = made.episodes = 100;
  made.options = {{"entropy_coefficient", 0}, {"max_divergence", 0},   {"normalise_observations", 0},
                  {"normalise_rewards", 0},   {"learning_rate", 3e-4}, {"value_coefficient", 0.5}};
  for (const auto& [name, value] : options) made.options[name] = value;
  return made;
}

void add_published_ppo(std::vector<AbiRow>& rows) {
  const auto steps = [](double rollout, double batch, double epochs, double discount, double decay) {
    return Options{{"rollout_steps", rollout},
                   {"batch_size", batch},
                   {"epochs", epochs},
                   {"discount", discount},
                   {"advantage_decay", decay}};
  };
  const auto with = [](Options options, const Options& more) {
    for (const auto& [name, value] : more) options[name] = value;
    return options;
  };
  const Options normalised{{"normalise_observations", 1}, {"normalise_rewards", 1}};
  rows.push_back({"ppo-zoo-cartpole",
                  "CartPole, rl-zoo's settings",
                  published_ppo("cartpole", 100'000, 2'000, 8,
                                with(steps(256, 256, 20, 0.98, 0.8),
                                     {{"learning_rate", 1e-3}, {"rate_decisions", 100'000}})),
                  {reaches(475, 50'000), ends(490, 1)}});
  rows.push_back({"ppo-sb3-cartpole",
                  "CartPole, stable-baselines3's defaults",
                  published_ppo("cartpole", 40'960, 2'048, 1, steps(2048, 64, 10, 0.99, 0.95)),
                  {reaches(475, 40'960)}});
  rows.push_back({"ppo-cleanrl-cartpole",
                  "CartPole, CleanRL's settings, truncated episodes valued",
                  published_ppo("cartpole", 500'000, 50'000, 4,
                                with(steps(512, 128, 4, 0.99, 0.95), {{"learning_rate", 2.5e-4},
                                                                      {"rate_decisions", 500'000},
                                                                      {"entropy_coefficient", 0.01},
                                                                      {"value_coefficient", 0.25},
                                                                      {"clip_values", 1}})),
                  {trains(495)}});
  rows.push_back({"ppo-crowd-cartpole",
                  "1,024 CartPoles",
                  published_ppo("cartpole", 1'200'000, 32'768, 1024,
                                with(steps(16'384, 4096, 4, 0.98, 0.9),
                                     {{"learning_rate", 2.5e-3}, {"rate_decisions", 2'000'000}})),
                  {reaches(475, 1'200'000)}});
  rows.push_back(
      {"ppo-zoo-acrobot",
       "Acrobot, rl-zoo's settings",
       published_ppo("acrobot", 1'000'000, 20'000, 16, with(steps(4096, 64, 4, 0.99, 0.94), normalised)),
       {reaches(-100, 100'000), ends(-85)}});
  rows.push_back(
      {"ppo-zoo-mountain-car",
       "MountainCar, rl-zoo's settings",
       published_ppo("mountain-car", 1'000'000, 100'000, 16, with(steps(256, 64, 4, 0.99, 0.98), normalised)),
       {ends(-130)}});
  rows.push_back({"ppo-zoo-pendulum",
                  "Pendulum, rl-zoo's settings without gSDE",
                  published_ppo("pendulum", 100'000, 20'000, 4,
                                with(steps(4096, 64, 10, 0.9, 0.95), {{"learning_rate", 1e-3}})),
                  {ends(-260, 1)},
                  -210});
}

void add_published_dqn(std::vector<AbiRow>& rows) {
  AbiTrial cleanrl = trial("dqn", "cartpole", 500'000, 50'000);
  cleanrl.hidden = {120, 84};
  cleanrl.window = 100;
  cleanrl.options = {{"learning_rate", 2.5e-4},    {"batch_size", 128},      {"replay_capacity", 10'000},
                     {"learn_period_frames", 20},  {"target_period", 50},    {"epsilon", 0.05},
                     {"epsilon_decisions", 2.5e5}, {"rate_half_life", 0},    {"squared_loss", 1},
                     {"double_estimate", 0},       {"max_gradient_norm", 0}, {"follow_changes", 0}};
  rows.push_back({"dqn-cleanrl-cartpole",
                  "CartPole, CleanRL's settings",
                  cleanrl,
                  {{"last 100 episodes of training >= 450 at the end",
                    [](const AbiCurve& curve) { return curve.checks.back().played >= 450; }}}});
  AbiTrial zoo = trial("dqn", "cartpole", 50'000, 1'000);
  zoo.hidden = {256, 256};
  zoo.options = {{"learning_rate", 2.3e-3},   {"batch_size", 64},     {"replay_capacity", 50'000},
                 {"learn_period_frames", 4},  {"target_period", 128}, {"epsilon", 0.04},
                 {"epsilon_decisions", 8000}, {"rate_half_life", 0},  {"double_estimate", 0},
                 {"max_gradient_norm", 10},   {"follow_changes", 0}};
  rows.push_back({"dqn-zoo-cartpole", "CartPole, rl-zoo's settings", zoo, {reaches(475, 50'000)}});
  AbiTrial hill = trial("dqn", "mountain-car", 120'000, 5'000);
  hill.hidden = {256, 256};
  hill.options = {{"learning_rate", 4e-3}, {"batch_size", 128},           {"replay_capacity", 10'000},
                  {"discount", 0.98},      {"learn_period_frames", 4},    {"target_period", 300},
                  {"epsilon", 0.07},       {"epsilon_decisions", 24'000}, {"rate_half_life", 0},
                  {"double_estimate", 0},  {"follow_changes", 0}};
  // Its reward comes at the goal alone: four rewards per target carry it back sooner.
  AbiTrial stepped = hill;
  stepped.options["n_step"] = 4;
  stepped.options["double_estimate"] = 1;
  stepped.options["rate_half_life"] = 10'000;
  rows.push_back({"dqn-zoo-mountain-car", "MountainCar, rl-zoo's settings", hill, {ends(-130, 0.8)}});
  rows.push_back({"dqn-mountain-car",
                  "the same with 4 steps, double estimates and a falling rate",
                  stepped,
                  {ends(-130, 0.8)}});
}

void add_networks(std::vector<AbiRow>& rows) {
  AbiTrial stacked = trial("ppo", "maze", 60'000, 5'000), remembered = trial("ppo", "maze", 150'000, 10'000),
           blind = trial("ppo", "blind-cartpole", 100'000, 5'000);
  stacked.options = {{"stack", 8}};
  remembered.options = {{"cell", IMP_CELL_GRU}};
  remembered.length = 20;
  blind.options = {{"cell", IMP_CELL_GRU}};
  for (AbiTrial* memory : {&stacked, &remembered, &blind}) memory->agents = 8;
  rows.push_back({"ppo-maze-stack", "T-maze of length 6, stack of 8", stacked, {reaches(0.8, 60'000)}});
  rows.push_back({"ppo-maze-gru", "T-maze of length 20, GRU", remembered, {reaches(0.8, 150'000)}});
  rows.push_back({"ppo-blind-gru", "CartPole without velocities, GRU", blind, {reaches(475, 100'000, 0.8)}});

  AbiTrial caught = trial("dqn", "catch", 40'000, 5'000),
           caught_by_ppo = trial("ppo", "catch", 100'000, 10'000),
           large = trial("dqn", "catch", 15'000, 3'000), large_by_ppo = trial("ppo", "catch", 60'000, 10'000),
           set = trial("ppo", "nearest", 200'000, 20'000), flat = set;
  caught_by_ppo.agents = large_by_ppo.agents = 8;
  large.pixels = large_by_ppo.pixels = 7;
  large.options = {{"replay_capacity", 1000}};
  set.agents = flat.agents = 16;
  flat.streams = false;
  rows.push_back({"dqn-catch", "catch a ball, picture of 12 x 12", caught, {reaches(0.9, 40'000)}});
  rows.push_back({"ppo-catch", "the same", caught_by_ppo, {reaches(0.9, 100'000)}});
  rows.push_back({"dqn-catch-84", "catch a ball, picture of 84 x 84", large, {reaches(0.9, 15'000)}});
  rows.push_back({"ppo-catch-84", "the same", large_by_ppo, {reaches(0.9, 60'000)}});
  rows.push_back(
      {"ppo-nearest-set", "2 to 12 entities: the nearest one's colour", set, {reaches(0.9, 200'000)}});
  rows.push_back({"ppo-nearest-vector", "the same as one vector", flat, {misses(0.9)}});
}

// Signals and demonstrations beside rewards: without them, and with them.
void add_beside(std::vector<AbiRow>& rows) {
  AbiTrial lock = trial("ppo", "lock", 200'000, 10'000), novel = lock, surprised = lock,
           dqn_lock = trial("dqn", "lock", 60'000, 5'000), dqn_novel = dqn_lock,
           dqn_keys = trial("dqn", "keys", 60'000, 5'000), dqn_shown = trial("dqn", "keys", 20'000, 5'000),
           cloned = trial("ppo", "keys", 60'000, 10'000), circle = trial("ppo", "circle", 200'000, 20'000),
           imitated = circle, hill_shown = trial("sac", "shown-mountain-car", 20'000, 5'000);
  for (AbiTrial* crowd : {&lock, &novel, &surprised, &cloned, &circle, &imitated}) crowd->agents = 8;
  novel.signals = dqn_novel.signals = {{"curiosity_strength", 0.5}};
  surprised.signals = {{"curiosity_strength", 0.5}, {"curiosity", IMP_CURIOSITY_SURPRISE}};
  cloned.shown = dqn_shown.shown = imitated.shown = 300;
  hill_shown.shown = 1000;
  cloned.shown_options = {{"pretraining", 200}};
  dqn_shown.shown_options = hill_shown.shown_options = {{"pretraining", 500}};
  circle.tells = imitated.tells = false;
  imitated.signals = {{"imitation_strength", 1}};
  AbiTrial group = trial("ppo", "gate", 400'000, 40'000), alone = group;
  group.agents = alone.agents = 24;
  alone.groups = false;
  rows.push_back({"ppo-lock", "lock of 6 wheels", lock, {}});
  rows.push_back({"ppo-lock-novelty", "the same, novelty 0.5", novel, {reaches(0.9, 200'000)}});
  rows.push_back({"ppo-lock-surprise", "the same, surprise 0.5", surprised, {reaches(0.9, 200'000)}});
  rows.push_back({"dqn-lock", "lock of 6 wheels", dqn_lock, {misses(0.5)}});
  rows.push_back({"dqn-lock-novelty", "the same, novelty 0.5", dqn_novel, {reaches(0.9, 60'000)}});
  rows.push_back({"dqn-keys", "two rooms and a key", dqn_keys, {misses(0.5)}});
  rows.push_back({"dqn-keys-shown", "the same, 300 steps shown", dqn_shown, {reaches(0.9, 20'000)}});
  rows.push_back({"ppo-keys-shown", "two rooms and a key, 300 steps shown", cloned, {reaches(0.9, 20'000)}});
  rows.push_back({"ppo-circle", "circle, no rewards", circle, {misses(0.5)}});
  rows.push_back(
      {"ppo-circle-imitation", "the same, 300 steps to imitate", imitated, {reaches(0.8, 200'000)}});
  rows.push_back({"sac-mountain-car-shown",
                  "MountainCarContinuous, 1,000 steps shown",
                  hill_shown,
                  {reaches(90, 20'000)}});
  rows.push_back({"ppo-gate-alone", "gate, each for itself", alone, {misses(1)}});
  rows.push_back({"ppo-gate-group", "the same, groups of 3", group, {reaches(1, 400'000)}});
}

void add_defaults(std::vector<AbiRow>& rows) {
  const AbiBar alarmed{
      "greedy >= 100 at the end, or an alarm",
      [](const AbiCurve& curve) { return curve.checks.back().greedy >= 100 || !curve.log.empty(); }, 1};
  const std::vector<AbiBar> fights = {
      {"played >= 0.85 of Bayes within 1k",
       [](const AbiCurve& c) { return c.played(0.85) >= 0 && c.played(0.85) <= 1000; }},
      {"again within 4k after the habit changed", [](const AbiCurve& c) {
         const std::int64_t again = c.played(0.85, kHabitChanges + 500);
         return again >= 0 && again <= kHabitChanges + 4000;
       }}};
  AbiTrial zeros = trial("feedback", "fight", 14'500, 250);
  zeros.miss_is_zero = true;
  rows.push_back({"dqn-cartpole",
                  "CartPole, defaults",
                  trial("dqn", "cartpole", 100'000, 2'500),
                  {reaches(475, 100'000), alarmed}});
  rows.push_back({"ppo-cartpole",
                  "CartPole, defaults",
                  trial("ppo", "cartpole", 60'000, 2'500),
                  {reaches(475, 60'000)}});
  AbiTrial few = trial("pqn", "cartpole", 100'000, 5'000), many = trial("pqn", "cartpole", 300'000, 15'000);
  few.agents = 8;
  many.agents = 64;
  AbiTrial poles = trial("es", "cartpole", 1'000'000, 50'000),
           pendulums = trial("es", "pendulum", 5'000'000, 250'000);
  poles.agents = pendulums.agents = 65;
  rows.push_back({"es-cartpole", "65 CartPoles, defaults", poles, {reaches(475, 1'000'000)}});
  rows.push_back({"es-pendulum", "65 pendulums, defaults", pendulums, {}});
  rows.push_back({"pqn-cartpole", "8 CartPoles, defaults", few, {reaches(475, 100'000)}});
  rows.push_back({"pqn-crowd-cartpole", "64 CartPoles, defaults", many, {reaches(475, 300'000)}});
  rows.push_back({"ppo-acrobot",
                  "Acrobot, defaults",
                  trial("ppo", "acrobot", 150'000, 10'000),
                  {reaches(-100, 150'000)}});
  rows.push_back({"dqn-acrobot", "Acrobot, defaults", trial("dqn", "acrobot", 100'000, 10'000), {}});
  rows.push_back(
      {"ppo-mountain-car", "MountainCar, defaults", trial("ppo", "mountain-car", 150'000, 10'000), {}});
  rows.push_back({"sac-pendulum",
                  "Pendulum, defaults",
                  trial("sac", "pendulum", 20'000, 5'000),
                  {reaches(-200, 20'000)}});
  rows.push_back({"sac-mountain-car",
                  "MountainCarContinuous, defaults",
                  trial("sac", "mountain-car-continuous", 50'000, 5'000),
                  {ends(90, 0.8)}});
  for (const char* learner : {"dqn", "bandit", "ppo", "pqn", "feedback"})
    rows.push_back(
        {text(learner, "-fight"), "fight, defaults", trial(learner, "fight", 14'500, 250), fights});
  rows.push_back({"feedback-fight-01", "fight, a miss earns 0", zeros, {fights[0]}});
  // Each choice is paid at once, and habits change.
  AbiTrial policy = trial("ppo", "fight", 14'500, 250), values = trial("pqn", "fight", 14'500, 250);
  policy.options = {{"discount", 0},         {"rollout_steps", 32},         {"batch_size", 32},
                    {"epochs", 10},          {"learning_rate", 2e-3},       {"clip_range", 0.3},
                    {"max_divergence", 0},   {"entropy_coefficient", 0.08}, {"value_coefficient", 2},
                    {"normalise_rewards", 0}};
  values.options = {{"discount", 0}, {"rollout_steps", 32}, {"batch_size", 32}, {"epochs", 16}};
  rows.push_back({"ppo-fight-at-once", "fight, discount 0, short rollouts, more entropy", policy, fights});
  rows.push_back({"pqn-fight-at-once", "fight, discount 0, short rollouts", values, fights});
}

}  // namespace

std::vector<AbiRow> abi_rows() {
  std::vector<AbiRow> rows;
  add_defaults(rows);
  add_published_ppo(rows);
  add_published_dqn(rows);
  add_networks(rows);
  add_beside(rows);
  return rows;
}

}  // namespace imprint::trials
