// The sofa: an idle pet's actions, and staying off the sofa after scoldings.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "samples/pet/yard/teacher.h"
#include "tests/learning/learning.h"

namespace learning {
namespace {

using pet::Action;
using pet::Idle;

// Ends of the stages in simulated seconds: tricks; idle, when it finds the sofa; the player forbids the sofa;
// settled; idle again.
constexpr double kLessons = 40.0, kHabit = 140.0, kForbidden = 240.0, kSettled = 440.0, kAlone = 540.0,
                 kEnd = 640.0;
constexpr double kHabitBar = 0.15, kVisitsBar = 0.03, kEntropyBar = 0.8;

// Idle actions within a time.
class Idleness {
 public:
  Idleness(const std::vector<pet::IdleDecision>& decisions, double from_s, double until_s) {
    for (const pet::IdleDecision& decision : decisions)
      if (decision.seconds >= from_s && decision.seconds < until_s)
        ++counts_[static_cast<std::size_t>(decision.action)], ++all_;
  }

  double visits() const {
    return all_ > 0 ? static_cast<double>(on_sofa()) / static_cast<double>(all_) : 0.0;
  }
  // Entropy of the actions that did not lead to the sofa, in nats.
  double entropy() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (i == static_cast<std::size_t>(pet::kSofaAction) || counts_[i] == 0) continue;
      const double share = static_cast<double>(counts_[i]) / static_cast<double>(all_ - on_sofa());
      sum -= share * std::log(share);
    }
    return sum;
  }

 private:
  std::size_t on_sofa() const { return counts_[static_cast<std::size_t>(pet::kSofaAction)]; }

  std::array<std::size_t, pet::kActionCount> counts_{};
  std::size_t all_ = 0;
};

std::string one_digit(const char* format, double a, double b) {
  char text[64];
  std::snprintf(text, sizeof text, format, a * 100.0, b * 100.0);
  return text;
}

}  // namespace

void Table::sofa() {
  struct Life {
    std::vector<pet::IdleDecision> idle;
    std::size_t scolds = 0;
    double success = 0.0;
  };
  const auto live = [&](std::uint64_t seed, Idle rule) {
    pet::Options wanted = options(seed, pet::TeacherKind::demo, kEnd);
    wanted.plan = {{{pet::kTricks.begin(), pet::kTricks.end()}, kLessons, {}},
                   {{}, kForbidden, {}, Idle::free},
                   {{}, kAlone, {}, rule},
                   {{}, kEnd, {}, Idle::free}};
    Life life;
    life.success = static_cast<double>(play(wanted, [&](pet::Game& game) {
                                         if (!game.finished()) return;
                                         life.idle = game.idle_decisions();
                                         for (const pet::FeedbackTick& tick : game.overlay().ticks)
                                           life.scolds +=
                                               tick.kind == pet::FeedbackKind::scold &&
                                                       static_cast<double>(tick.seconds) >= kForbidden
                                                   ? 1
                                                   : 0;
                                       }).report.final_success);
    return life;
  };

  double habit = 0.0, lowest_habit = 1.0, kept = 0.0, highest_kept = 0.0, alone = 0.0, highest_alone = 0.0,
         lowest_entropy = 1e9, success = 0.0;
  std::size_t most_scolds = 0;
  const double share = 1.0 / static_cast<double>(plan_.seeds);
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    const Life life = live(seed, Idle::forbidden);
    const Idleness before(life.idle, kHabit, kForbidden), after(life.idle, kSettled, kAlone),
        later(life.idle, kAlone, kEnd);
    const double entropy = after.entropy() / before.entropy();
    std::printf(
        "    sofa      seed %2llu: %5.1f %% of idle decisions, scolded %zu times, %5.1f %%, alone again "
        "%5.1f %%; entropy of the others %.2f -> %.2f\n",
        static_cast<unsigned long long>(seed), before.visits() * 100.0, life.scolds, after.visits() * 100.0,
        later.visits() * 100.0, before.entropy(), after.entropy());
    std::fflush(stdout);
    habit += before.visits() * share, lowest_habit = std::min(lowest_habit, before.visits());
    kept += after.visits() * share, highest_kept = std::max(highest_kept, after.visits());
    alone += later.visits() * share, highest_alone = std::max(highest_alone, later.visits());
    lowest_entropy = std::min(lowest_entropy, entropy);
    most_scolds = std::max(most_scolds, life.scolds);
    success += life.success * share;
  }
  row("the sofa, left to itself: idle decisions (lowest seed)",
      one_digit("%.1f %% (%.1f %%)", habit, lowest_habit), ">= 15.0 % in each", lowest_habit >= kHabitBar);
  row("the sofa, forbidden: idle decisions (highest seed)",
      one_digit("%.1f %% (%.1f %%)", kept, highest_kept), "<= 3.0 % in each", highest_kept <= kVisitsBar);
  row("the same: most scolds that a seed took", std::to_string(most_scolds),
      "1 to " + std::to_string(pet::kMostScolds), most_scolds > 0 && most_scolds <= pet::kMostScolds);
  row("the same: entropy of its other actions, lowest seed",
      one_digit("%.1f %% of before", lowest_entropy, 0.0), ">= 80.0 % in each",
      lowest_entropy >= kEntropyBar);
  row("the same, left to itself again (highest seed)", one_digit("%.1f %% (%.1f %%)", alone, highest_alone),
      "<= 3.0 % in each", highest_alone <= kVisitsBar);
  at_least("the same: its tricks at the end", success, 0.92);

  // The control: the pet must not lose interest by itself.
  double unforbidden = 1.0;
  const std::uint64_t last_control = std::min(plan_.last_seed(), plan_.first_seed + 2);
  for (std::uint64_t seed = plan_.first_seed; seed <= last_control; ++seed)
    unforbidden = std::min(unforbidden, Idleness(live(seed, Idle::free).idle, kSettled, kAlone).visits());
  row("the sofa, never forbidden: lowest of seeds " + std::to_string(plan_.first_seed) + " to " +
          std::to_string(last_control),
      one_digit("%.1f %%", unforbidden, 0.0), ">= 15.0 %", unforbidden >= kHabitBar);
}

}  // namespace learning
