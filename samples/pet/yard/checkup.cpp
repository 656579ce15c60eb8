#include "samples/pet/yard/checkup.h"

#include <numeric>
#include <utility>

#include "samples/pet/yard/life.h"

namespace pet {

Checkup::Checkup(std::vector<std::vector<Mind*>> probes) {
  for (std::size_t pet = 0; pet < probes.size(); ++pet) {
    for (Mind* mind : probes[pet]) probes_.push_back({mind, pet, 0, World(), Trial(), std::nullopt});
  }
  next_trial_.resize(probes.size());
  marks_.resize(probes.size());
}

void Checkup::begin(std::uint64_t seed) {
  seed_ = seed;
  left_ = static_cast<std::uint32_t>(marks_.size()) * kTrialsPerPet;
  next_trial_.assign(next_trial_.size(), 0);
  marks_.assign(marks_.size(), Marks{});
  decisions_.assign(left_, {});
  for (Probe& probe : probes_) next_trial(probe);
}

bool Checkup::next_trial(Probe& probe) {
  std::uint32_t& next = next_trial_[probe.pet];
  probe.asked_frame.reset();
  probe.trial = Trial();
  if (next == kTrialsPerPet) return false;
  probe.trial_number = next++;
  // Every pet and every brain is examined in the same yards.
  Random random(seed_, probe.trial_number);
  const Cue cue = kTricks[probe.trial_number % kTrickCount];
  probe.world = World();
  probe.world.redraw(random);
  probe.world.set_cue(cue);
  probe.trial.begin(cue);
  probe.mind->set_goal(cue);
  return true;
}

void Checkup::decide(Probe& probe, const Answer& answer) {
  decisions_[probe.pet * kTrialsPerPet + probe.trial_number].push_back(answer.action);
  bool over = !probe.trial.decide(probe.world, answer.action);  // one wrong decision and the trial is lost
  if (!over) {
    probe.world.begin_action(answer.action);
    while (!probe.world.ready()) probe.world.step();
    probe.trial.after(probe.world);
    over = probe.trial.over();
    if (probe.trial.state() == Trial::State::success) ++marks_[probe.pet][probe.trial_number % kTrickCount];
  }
  if (!over) return;
  --left_;
  next_trial(probe);
}

bool Checkup::step(std::uint64_t frame) {
  if (left_ == 0) return false;
  for (Probe& probe : probes_) {
    if (probe.asked_frame && frame >= *probe.asked_frame + kAnswerFrames) {
      if (const std::optional<Answer> answer = probe.mind->answer()) {
        probe.asked_frame.reset();
        decide(probe, *answer);
      }
    }
    if (!probe.trial.over() && !probe.asked_frame) {
      probe.mind->ask(probe.world.observe(), probe.world.mask());
      probe.asked_frame = frame;
    }
  }
  return left_ == 0;
}

float success(const Marks& marks) {
  return static_cast<float>(std::accumulate(marks.begin(), marks.end(), 0u)) /
         static_cast<float>(kTrialsPerPet);
}

float mean_success(const std::vector<Marks>& marks) {
  std::uint32_t good = 0;
  for (const Marks& pet : marks) good += std::accumulate(pet.begin(), pet.end(), 0u);
  return static_cast<float>(good) / static_cast<float>(kTrialsPerPet * marks.size());
}

std::array<float, kTrickCount> mean_per_trick(const std::vector<Marks>& marks) {
  std::array<float, kTrickCount> mean{};
  for (const Marks& pet : marks) {
    for (std::size_t i = 0; i < kTrickCount; ++i) mean[i] += static_cast<float>(pet[i]);
  }
  for (float& value : mean) value /= static_cast<float>(kTrialsPerTrick * marks.size());
  return mean;
}

}  // namespace pet
