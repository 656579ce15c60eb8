// Trials of learners whose world is on the device.

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "tests/learning/ppo_trial.h"

namespace imprint::learning {

Curve run_resident_trial(Session& session, const Setting& setting, std::uint64_t seed) {
  const nn::World world = setting.resident();
  nn::PpoOptions options = setting.options;
  options.observations = world.observations;
  options.action = world.action;
  options.seed = seed;
  const nn::Ppo ppo = must(nn::Ppo::create(options));
  const nn::Worlds worlds(world, options.agents, seed), fair(world, kEpisodes, seed + (1ull << 32));

  ProgramSequence sequence = must(ppo.update());
  const std::uint32_t turns = sequence.parts[1].repeat;
  sequence.parts.insert(sequence.parts.begin(), must(ppo.rollout(worlds)));
  sequence.slots = 1;
  Program start = must(Program::compile(session.runtime(), must(ppo.start(worlds))));
  Program practice = must(Program::compile(session.runtime(), sequence));
  Program rollout = must(Program::compile(session.runtime(), sequence.parts[0].description));
  Program judge = must(Program::compile(session.runtime(), must(ppo.judge(fair, static_cast<std::uint32_t>(world.step_limit)))));
  must(session.run(start));

  Curve curve;
  curve.step_dispatches = rollout.stats().dispatches;
  curve.update_dispatches = practice.stats().dispatches - curve.step_dispatches * static_cast<std::uint32_t>(options.steps);
  curve.minibatch_dispatches = curve.update_dispatches / turns;
  const std::int64_t per_update = options.agents * options.steps, updates = (setting.total_steps + per_update - 1) / per_update;
  std::int64_t next_check = setting.check_every > 0 ? setting.check_every : setting.total_steps;
  double ended_sum = 0, ended_count = 0;
  auto begin = std::chrono::steady_clock::now();
  for (std::int64_t u = 0; u < updates; ++u) {
    const std::int64_t done = (u + 1) * per_update;
    const double progress = std::min(1.0, static_cast<double>(done) / static_cast<double>(setting.total_steps));
    const HostTensor rates[] = {HostTensor::from({static_cast<float>(setting.learning_rate.at(progress))}, {}),
                                HostTensor::from({static_cast<float>(setting.clip_range.at(progress))}, {})};
    curve.metrics = must(session.run(practice, rates))[0].floats;
    if (done < next_check && u + 1 < updates) continue;
    const auto now = std::chrono::steady_clock::now();
    curve.seconds += std::chrono::duration<double>(now - begin).count();
    const std::vector<float> ended = must(session.read(std::span(&worlds.ended(), 1)))[0].floats;
    double sum = -ended_sum, count = -ended_count;
    for (std::size_t i = 0; i < ended.size(); i += 2) sum += ended[i], count += ended[i + 1];
    ended_sum += sum;
    ended_count += count;
    curve.checks.push_back({done, must(session.run(judge))[0].floats[0], count > 0 ? sum / count : 0});
    next_check += setting.check_every;
    begin = std::chrono::steady_clock::now();
    if (curve.checks.back().greedy >= setting.enough) break;
  }
  return curve;
}

}  // namespace imprint::learning
