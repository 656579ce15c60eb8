// A pet that is only led by hand: its success, and the replay of its log.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "samples/pet/yard/lessons.h"
#include "tests/learning/learning.h"

namespace learning {
namespace {

using pet::Cue;
using pet::SignalKind;

constexpr std::array kLed = {Cue::come, Cue::fetch, Cue::bed};  // the other tricks have no place to lead to

// Gives a command, drags the pet to each thing that it needs and lets go there. Then gives the next command
// in a new yard.
class LeadingHand {
 public:
  explicit LeadingHand(std::uint64_t seed) : random_(seed, 99) {}

  void frame(pet::Game& game) {
    const pet::WorldView& yard = game.yard(0);
    if (wait_ > 0) {
      --wait_;
    } else if (!commanded_) {
      game.input(pet::signal(SignalKind::redraw, random_.next()));
      game.input(pet::give_cue(kLed[lesson_++ % kLed.size()]));
      commanded_ = true;
      wait_ = 10;
    } else if (yard.cue == Cue::none) {
      commanded_ = false;
      wait_ = 30;
    } else if (!yard.pet.acting || yard.lure.active) {
      lead(game, yard);
    }
  }

  std::size_t lessons() const { return lesson_; }

 private:
  void lead(pet::Game& game, const pet::WorldView& yard) {
    const bool takes = yard.cue == Cue::fetch && !yard.pet.holding;
    const pet::Vec2 thing = yard.cue == Cue::bed ? yard.bed : takes ? yard.ball : yard.player.position;
    const bool there =
        yard.lure.active && std::hypot(thing.x - yard.pet.position.x, thing.y - yard.pet.position.y) < 1.0f;
    game.input(there ? pet::signal(SignalKind::let_go) : pet::move(SignalKind::lure, thing));
    if (there) wait_ = 5;
  }

  pet::Random random_;
  std::size_t lesson_ = 0;
  int wait_ = 0;
  bool commanded_ = false;
};

}  // namespace

void Table::lure() {
  const double seconds = plan_.fast ? 30.0 : 60.0;
  const std::string file = (std::filesystem::temp_directory_path() /
                            ("imprint-learning-" + std::to_string(getpid()) + "-lure.log"))
                               .string();
  double success = 0.0, lowest = 1.0;
  std::string played;
  for (std::uint64_t seed = plan_.first_seed; seed <= plan_.last_seed(); ++seed) {
    pet::Options wanted = options(seed, pet::TeacherKind::none, seconds);
    if (seed == plan_.first_seed) wanted.log = file;
    LeadingHand hand(seed);
    const pet::Report report = play(wanted, [&](pet::Game& game) { hand.frame(game); }).report;
    double of_seed = 0.0;
    for (const Cue cue : kLed)
      of_seed += static_cast<double>(report.checks.back().per_trick[pet::trick_index(cue)]) /
                 static_cast<double>(kLed.size());
    std::printf(
        "    lure      seed %2llu: %zu lessons, %llu demonstrations, then %5.1f %% of come, fetch and bed\n",
        static_cast<unsigned long long>(seed), hand.lessons(),
        static_cast<unsigned long long>(report.demonstrations), of_seed * 100.0);
    std::fflush(stdout);
    success += of_seed / static_cast<double>(plan_.seeds);
    lowest = std::min(lowest, of_seed);
    if (seed == plan_.first_seed) played = report.weights_hash;
  }
  at_least("led by hand, " + std::to_string(static_cast<int>(seconds)) + " s: come, fetch and bed", success,
           0.85);
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", lowest * 100.0);
  row("the same, lowest seed", text, ">= 70.0 %", lowest >= 0.7);
  pet::Options again = options(99, pet::TeacherKind::none, 0.0);
  again.replay = file;
  const std::string replayed = play(again).report.weights_hash;
  std::filesystem::remove(file);
  row("a log of that, played again", played == replayed ? "same hash" : "another hash", "same hash",
      !played.empty() && played == replayed);
}

}  // namespace learning
