#include "samples/pet/yard/reaction_meter.h"

#include <algorithm>
#include <array>

namespace pet {
namespace {

constexpr double kTooEarly = 0.15;  // too quick for a person: a guess
constexpr double kTooLate = 3.0;
constexpr float kShortestRest = 1.0f;  // after an action has ended
constexpr float kLongestRest = 2.5f;

}  // namespace

ReactionMeter::ReactionMeter(std::uint64_t seed) : random_(seed, 7) {
  world_.redraw(random_);
  rest();
}

void ReactionMeter::rest() {
  onset_s_.reset();
  next_s_ = world_.time_s() + static_cast<double>(random_.uniform(kShortestRest, kLongestRest));
}

void ReactionMeter::step() {
  world_.step();
  if (done()) return;
  if (onset_s_ && world_.time_s() > *onset_s_ + kTooLate) rest();
  if (onset_s_ || !world_.ready() || world_.time_s() < next_s_) return;
  constexpr std::array<Action, 3> others = {Action::bark, Action::jump, Action::sit};
  world_.begin_action(random_.chance(0.5f) ? Action::spin : others[random_.below(others.size())]);
  onset_s_ = world_.time_s();
}

void ReactionMeter::press(bool praise) {
  PlayerView& player = world_.edit_view().player;
  player.hand = praise ? Hand::praise : Hand::scold;
  player.hand_since_s = world_.time_s();
  if (!onset_s_ || done()) return;
  const double late = world_.time_s() - *onset_s_;
  if (late < kTooEarly || praise != (world_.view().pet.action == Action::spin)) return;
  times_.push_back(late);
  rest();
}

double ReactionMeter::seconds() const {
  if (times_.empty()) return 0.0;
  std::vector<double> sorted = times_;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2),
                   sorted.end());
  return sorted[sorted.size() / 2];
}

std::string ReactionMeter::words() const {
  return "How quick are you? Praise (P) when it spins, scold (S) when it does anything else: " +
         std::to_string(presses()) + " of " + std::to_string(kPresses) + ". F2 stops.";
}

}  // namespace pet
