#include "samples/pet/yard/checkup.h"

#include <numeric>
#include <utility>

#include "samples/pet/yard/life.h"

namespace pet {

Checkup::Checkup(std::vector<std::vector<Mind*>> probes) {
  for (std::size_t pet = 0; pet < probes.size(); ++pet) {
    for (Mind* mind : probes[pet]) seats_.push_back({mind, pet, 0, World(), Trial(), std::nullopt});
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
  for (Seat& seat : seats_) next_trial(seat);
}

bool Checkup::next_trial(Seat& seat) {
  std::uint32_t& next = next_trial_[seat.pet];
  seat.asked_frame.reset();
  seat.trial = Trial();
  if (next == kTrialsPerPet) return false;
  seat.trial_number = next++;
  // Every pet and every brain is examined in the same yards.
  Random random(seed_, seat.trial_number);
  const Cue cue = kTricks[seat.trial_number % kTrickCount];
  seat.world = World();
  seat.world.redraw(random);
  seat.world.set_cue(cue);
  seat.trial.begin(cue);
  seat.mind->set_goal(cue);
  return true;
}

void Checkup::decide(Seat& seat, const Answer& answer) {
  decisions_[seat.pet * kTrialsPerPet + seat.trial_number].push_back(answer.action);
  bool over = !seat.trial.decide(seat.world, answer.action);  // one wrong decision and the trial is lost
  if (!over) {
    seat.world.begin_action(answer.action);
    while (!seat.world.ready()) seat.world.step();
    seat.trial.after(seat.world);
    over = seat.trial.over();
    if (seat.trial.state() == Trial::State::success) ++marks_[seat.pet][seat.trial_number % kTrickCount];
  }
  if (!over) return;
  --left_;
  next_trial(seat);
}

bool Checkup::step(std::uint64_t frame) {
  if (left_ == 0) return false;
  for (Seat& seat : seats_) {
    if (seat.asked_frame && frame >= *seat.asked_frame + kAnswerFrames) {
      if (const std::optional<Answer> answer = seat.mind->answer()) {
        seat.asked_frame.reset();
        decide(seat, *answer);
      }
    }
    if (!seat.trial.over() && !seat.asked_frame) {
      seat.mind->ask(seat.world.observe(), seat.world.mask());
      seat.asked_frame = frame;
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
