// Trials of learners whose environment is on the device.

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "tools/trials/ppo_trial.h"

namespace imprint::trials {
namespace {

class ResidentTrial final : public Trial {
 public:
  ResidentTrial(Session& session, const Setting& setting, Variable ended, Program start, Program practice,
                std::optional<Program> judge)
      : session_(session),
        setting_(setting),
        ended_(std::move(ended)),
        start_(std::move(start)),
        practice_(std::move(practice)),
        judge_(std::move(judge)) {}

  Result<Curve> learn() override {
    IMPRINT_CHECK(session_.run(start_));
    const std::int64_t per_update = setting_.options.agents * setting_.options.steps,
                       updates = (setting_.total_steps + per_update - 1) / per_update;
    std::int64_t next_check = setting_.check_every > 0 ? setting_.check_every : setting_.total_steps;
    auto begin = std::chrono::steady_clock::now();
    for (std::int64_t u = 0; u < updates; ++u) {
      curve_.steps = (u + 1) * per_update;
      const double progress =
          std::min(1.0, static_cast<double>(curve_.steps) / static_cast<double>(setting_.total_steps));
      const HostTensor rates[] = {
          HostTensor::from({static_cast<float>(setting_.learning_rate.at(progress))}, {}),
          HostTensor::from({static_cast<float>(setting_.clip_range.at(progress))}, {})};
      IMPRINT_ASSIGN(std::vector<HostTensor> outputs, session_.run(practice_, rates));
      curve_.metrics = std::move(outputs[0].floats);
      curve_.dispatches += practice_.stats().dispatches;
      curve_.barriers += practice_.stats().barriers;
      if (curve_.steps < next_check && u + 1 < updates) continue;
      const auto now = std::chrono::steady_clock::now();
      curve_.seconds += std::chrono::duration<double>(now - begin).count();
      if (judge_) {
        IMPRINT_CHECK(check());
        if (curve_.checks.back().greedy >= setting_.enough) break;
      }
      next_check += std::max<std::int64_t>(setting_.check_every, 0);
      begin = std::chrono::steady_clock::now();
    }
    return curve_;
  }
  Program& update() override { return practice_; }
  Curve& curve() { return curve_; }

 private:
  Result<> check() {
    IMPRINT_ASSIGN(const std::vector<HostTensor> read, session_.read(std::span(&ended_, 1)));
    const std::vector<float>& ended = read[0].floats;
    double sum = -ended_sum_, count = -ended_count_;
    for (std::size_t i = 0; i < ended.size(); i += 2) sum += ended[i], count += ended[i + 1];
    ended_sum_ += sum;
    ended_count_ += count;
    IMPRINT_ASSIGN(const std::vector<HostTensor> judged, session_.run(*judge_));
    curve_.checks.push_back({curve_.steps, judged[0].floats[0], count > 0 ? sum / count : 0});
    return {};
  }

  Session& session_;
  Setting setting_;
  Variable ended_;
  Program start_, practice_;
  std::optional<Program> judge_;  // none where nothing is checked
  double ended_sum_ = 0, ended_count_ = 0;
  Curve curve_;
};

}  // namespace

nn::PpoOptions resident_options(const Setting& setting, std::uint64_t seed) {
  const nn::Environment world = setting.resident();
  nn::PpoOptions options = setting.options;
  options.observations = world.observations;
  options.action = world.action;
  options.seed = seed;
  return options;
}

Result<std::unique_ptr<Trial>> make_resident_trial(Session& session, const Setting& setting,
                                                   std::uint64_t seed) {
  const nn::Environment world = setting.resident();
  const nn::PpoOptions options = resident_options(setting, seed);
  IMPRINT_ASSIGN(const nn::Ppo ppo, nn::Ppo::create(options));
  const nn::Environments worlds(world, options.agents, seed), fair(world, kEpisodes, seed + (1ull << 32));

  IMPRINT_ASSIGN(ProgramSequence sequence, ppo.update());
  const std::uint32_t minibatches = sequence.parts[1].repeat;
  IMPRINT_ASSIGN(ProgramPart rollout, ppo.rollout(worlds));
  IMPRINT_ASSIGN(const Program step, Program::compile(session.runtime(), rollout.description));
  sequence.parts.insert(sequence.parts.begin(), std::move(rollout));
  sequence.slot_count = 1;
  IMPRINT_ASSIGN(const ProgramDescription first, ppo.start(worlds));
  IMPRINT_ASSIGN(Program start, Program::compile(session.runtime(), first));
  IMPRINT_ASSIGN(Program practice, Program::compile(session.runtime(), sequence));
  std::optional<Program> judge;
  if (setting.check_every != kNeverChecked) {
    IMPRINT_ASSIGN(const ProgramSequence greedy,
                   ppo.judge(fair, static_cast<std::uint32_t>(world.step_limit)));
    IMPRINT_ASSIGN(judge, Program::compile(session.runtime(), greedy));
  }

  auto trial = std::make_unique<ResidentTrial>(session, setting, worlds.ended(), std::move(start),
                                               std::move(practice), std::move(judge));
  Curve& curve = trial->curve();
  curve.step_dispatches = step.stats().dispatches;
  curve.update_dispatches =
      trial->update().stats().dispatches - curve.step_dispatches * static_cast<std::uint32_t>(options.steps);
  curve.minibatch_dispatches = curve.update_dispatches / minibatches;
  return {std::move(trial)};
}

}  // namespace imprint::trials
