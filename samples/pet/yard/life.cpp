#include "samples/pet/yard/life.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pet {
namespace {

constexpr std::size_t kOnsetsKept = 4;
constexpr std::size_t kMarkersKept = 8;
constexpr double kCreditWidth =
    0.6;  // seconds; as the brain spreads credit, so that the ribbon shows the same
constexpr float kUndecided = 0.08f;  // the two best are this close
// A larger difference to the expectation is a surprise. Comfort is one where nothing is expected yet.
constexpr float kSurprise = 0.2f;
static_assert(kSurprise < kComfort);

bool is_walk(Action action) {
  return action == Action::go_player || action == Action::go_ball || action == Action::go_bed ||
         action == Action::go_bowl;
}

}  // namespace

Life::Life(Mind& mind, std::uint64_t seed, const LifeOptions& options)
    : mind_(&mind),
      options_(options),
      reaction_s_(std::max(kUsualReaction, options.brain_reaction_s)),
      random_(seed, 0) {
  world_.redraw(random_);
}

void Life::apply(const Signal& signal) {
  PlayerView& player = world_.edit_view().player;
  const auto hand = [&](Hand shape) { player.hand = shape, player.hand_since_s = world_.time_s(); };
  switch (signal.kind) {
    case SignalKind::redraw: {
      Random random(signal.number);
      world_.redraw(random);
      asked_frame_.reset();
      was_acting_ = false;
      onsets_.clear();
      mind_->end_episode();
      break;
    }
    case SignalKind::cue:
      hand(Hand::cue);
      command(signal.cue);
      break;
    case SignalKind::then:
      hand(Hand::cue);
      if (trial_.over()) {
        command(signal.cue);
      } else if (signal.cue != Cue::none && world_.view().then.size() + 1 < kLongestChain) {
        if (!chained_) chained_ = chain_good_ = true;
        world_.edit_view().then.push_back(signal.cue);
      }
      break;
    case SignalKind::praise:
      hand(Hand::praise), feedback(FeedbackKind::praise);
      break;
    case SignalKind::scold:
      hand(Hand::scold), feedback(FeedbackKind::scold);
      break;
    case SignalKind::treat:
      hand(Hand::treat), feedback(FeedbackKind::treat);
      break;
    case SignalKind::click:
      hand(Hand::click), feedback(FeedbackKind::click, true);
      break;
    case SignalKind::no:
      hand(Hand::scold), refuse();
      break;
    case SignalKind::reaction:
      reaction_s_ =
          std::clamp(static_cast<double>(signal.number) * 1e-3, options_.brain_reaction_s, kSlowestReaction);
      break;
    case SignalKind::show:
      if (trial_.over() || !options_.taught) break;
      hand(Hand::show);
      world_.let_go();
      showing_ = true;
      world_.edit_view().demonstrating = true;
      asked_frame_.reset();
      world_.interrupt();
      break;
    case SignalKind::lure:
      if (!options_.taught || showing_) break;
      if (!world_.view().lure.active) hand(Hand::show), take_hand();
      world_.lead(signal.position);
      break;
    case SignalKind::let_go:
      let_go();
      break;
    case SignalKind::move_player:
      world_.move_player(signal.position);
      break;
    case SignalKind::move_ball:
      world_.move_ball(signal.position);
      break;
    case SignalKind::snapshot:
    case SignalKind::undo:
    case SignalKind::learning:
    case SignalKind::learner:
    case SignalKind::name:
      break;  // for the brain or the screen, not for the body
  }
}

void Life::end_chain(bool success) {
  world_.edit_view().then.clear();
  if (std::exchange(chained_, false) && on_chain_end) on_chain_end(success && chain_good_);
}

// A new command replaces everything that was asked before.
void Life::command(Cue cue) {
  chained_ = false;
  world_.edit_view().then.clear();
  begin_command(cue);
}

void Life::begin_command(Cue cue) {
  world_.set_cue(cue);
  mind_->set_goal(cue);
  asked_frame_.reset();
  showing_ = led_trial_ = false;
  world_.edit_view().demonstrating = false;
  world_.edit_view().trial_over = cue == Cue::none;
  if (cue == Cue::none) {
    trial_ = Trial();
  } else {
    world_.interrupt();
    trial_.begin(cue);
  }
  was_acting_ = false;
  if (world_.view().lure.active) take_hand();  // the demonstration is then for this command
}

// The demonstration is for this situation. While led, the pet decides nothing.
void Life::take_hand() {
  asked_frame_.reset();
  was_acting_ = false;
  led_ = {world_.observe(), world_.view().cue, right_action(world_.view().cue, world_), world_.time_s(),
          world_.view().pet.position};
}

void Life::let_go() {
  const Lure lure = world_.view().lure;
  world_.let_go();
  if (!lure.active || !lure.leads) return;
  mind_->demonstrate(led_.seen, led_.cue, lure.action);
  if (!trial_.over()) {
    trial_.decide(led_.right == lure.action, lure.action);
    led_trial_ = true;
  }
  mark_shown(lure.action, led_.time_s, led_.position);
  begin_action(lure.action);
  led_action_ = true;
  if (on_led) on_led(lure.action);
}

void Life::feedback(FeedbackKind kind, bool exact) {
  // Lying on the sofa lasts, so feedback for it may come at any time.
  const bool on_sofa = world_.lies_on_sofa(), to_sofa = world_.acting() && world_.sofa_bound();
  exact = exact || on_sofa || (options_.uneasy && to_sofa);
  if (options_.taught && (on_sofa || to_sofa)) set_unease(kind == FeedbackKind::scold ? 1.0f : 0.0f);
  double said_s = world_.time_s();
  if (kind == FeedbackKind::treat && !exact && !onsets_.empty()) {
    const double due_s = onsets_.back().time_s + reaction_s_;
    if (said_s >= due_s + kCreditWidth && said_s <= onsets_.back().time_s + kSlowestTreat) said_s = due_s;
  }
  mark(kind, said_s, exact);
  if (options_.taught) {
    const float value = kind == FeedbackKind::scold ? -1.0f : 1.0f;
    const bool caught = options_.uneasy && kind == FeedbackKind::scold && (on_sofa || to_sofa);
    const float weight = kind == FeedbackKind::treat ? 2.0f : caught ? kCaughtWeight : 1.0f;
    // The mind assumes one reaction time. Feedback of a slower player is dated back by the difference.
    const double late_s = exact ? 0.0 : reaction_s_ - options_.brain_reaction_s;
    mind_->feedback(value, weight, exact, said_s - late_s);
  }
  if (kind != FeedbackKind::scold) return;
  if (world_.acting() && !showing_ && (is_walk(world_.view().pet.action) || world_.sofa_bound()))
    world_.interrupt();
  idle_until_s_ = std::min(idle_until_s_, world_.time_s());  // a scolded pet soon does something else
}

void Life::refuse() {
  const bool acts = world_.acting() && !showing_;
  feedback(FeedbackKind::scold, acts);
  if (acts) world_.stop();
}

void Life::mark(FeedbackKind kind, double said_s, bool exact) {
  FeedbackMarker marker;
  marker.kind = kind;
  marker.time_s = world_.time_s();
  marker.position = world_.view().pet.position;
  double best = 0.0;
  for (const Onset& onset : onsets_) {
    const double age = said_s - onset.time_s;
    const double credit = exact ? 1.0 / (1.0 + age) : 1.0 - std::abs(age - reaction_s_) / kCreditWidth;
    if (credit <= best) continue;
    best = credit;
    marker.credited = true;
    marker.action = onset.action;
    marker.onset_s = onset.time_s;
    marker.onset_position = onset.position;
    marker.unasked = onset.unasked;
  }
  add_marker(marker);
}

void Life::mark_shown(Action action, double onset_s, Vec2 onset_position) {
  FeedbackMarker marker;
  marker.kind = FeedbackKind::demonstration;
  marker.time_s = world_.time_s();
  marker.position = world_.view().pet.position;
  marker.credited = true;
  marker.action = action;
  marker.onset_s = onset_s;
  marker.onset_position = onset_position;
  add_marker(marker);
}

void Life::add_marker(const FeedbackMarker& marker) {
  auto& markers = world_.edit_view().markers;
  if (markers.size() == kMarkersKept) markers.erase(markers.begin());
  markers.push_back(marker);
}

void Life::act(std::uint64_t frame) {
  if (!asked_frame_ || frame < *asked_frame_ + kAnswerFrames) return;
  const std::optional<Answer> answer = mind_->answer();
  if (!answer) return;  // the GPU is late: the pet waits
  asked_frame_.reset();
  think(*answer);
  expected_ = answer->expected[static_cast<std::size_t>(answer->action)];
  const bool unasked = trial_.over();
  const bool right = !unasked && trial_.decide(world_, answer->action);
  begin_action(answer->action);
  onsets_.push_back({world_.time_s(), answer->action, world_.view().pet.position, unasked});
  if (onsets_.size() > kOnsetsKept) onsets_.pop_front();
  if (unasked) {
    if (on_idle) on_idle(world_.time_s(), answer->action, world_.sofa_bound());
  } else if (on_onset) {
    on_onset(world_.time_s(), answer->action, right);
  }
}

void Life::begin_action(Action action) {
  world_.begin_action(action);
  was_acting_ = true;
  led_action_ = false;
}

void Life::think(const Answer& answer) {
  PetView& pet = world_.edit_view().pet;
  const Mask mask = world_.mask();
  std::array<std::size_t, 2> best = {kActionCount, kActionCount};
  for (std::size_t i = 0; i < kActionCount; ++i) {
    if (!mask[i]) continue;
    if (best[0] == kActionCount || answer.expected[i] > answer.expected[best[0]]) {
      best = {i, best[0]};
    } else if (best[1] == kActionCount || answer.expected[i] > answer.expected[best[1]]) {
      best[1] = i;
    }
  }
  // Confidence as shown: a softmax at the temperature of the exploration noise.
  float sum = 0.0f;
  for (std::size_t i = 0; i < kActionCount; ++i) {
    if (mask[i]) sum += std::exp((answer.expected[i] - answer.expected[best[0]]) / 0.2f);
  }
  pet.thought.valid = true;
  pet.thought.unasked = world_.view().cue == Cue::none;
  pet.thought.expected = answer.expected;
  for (std::size_t i = 0; i < best.size(); ++i) {
    pet.thought.actions[i] = static_cast<Action>(best[i]);
    pet.thought.confidence[i] = std::exp((answer.expected[best[i]] - answer.expected[best[0]]) / 0.2f) / sum;
  }
  pet.thought.undecided = answer.expected[best[0]] - answer.expected[best[1]] < kUndecided;
}

void Life::step() {
  world_.step();
  PetView& pet = world_.edit_view().pet;
  if (pet.thought.valid) {
    const float wanted = std::clamp(pet.thought.expected[static_cast<std::size_t>(pet.action)], -1.0f, 1.0f);
    pet.expected += (wanted - pet.expected) * 0.05f;
  }
  if (was_acting_ && !world_.acting()) {
    was_acting_ = false;
    if (world_.view().pet.unasked && world_.completed() && !led_action_) feel();
    if (!trial_.over()) {
      trial_.after(world_);
      if (trial_.over()) finish_command();
    }
    idle_until_s_ = world_.time_s() +
                    static_cast<double>(random_.uniform(options_.shortest_idle_s, options_.longest_idle_s));
  }
  if (!world_.acting() && pet.pose == Pose::stand && pet.thought.undecided && !trial_.over() && !showing_)
    pet.pose = Pose::puzzled;
}

// Rewards a completed idle action, but only a surprise. Rewards that the pet already expects would teach
// nothing, and would outweigh the player's feedback within an hour.
void Life::feel() {
  const bool sofa = world_.sofa_bound();
  const float felt = sofa ? kComfort + unease() * (kDread - kComfort) : kEffort + unease() * kRelief;
  if (!options_.taught || std::abs(felt - expected_) <= kSurprise) return;
  if (sofa && felt < 0.0f) {
    mind_->feedback(felt, 1.0f, true, world_.onset_s());
  } else {
    mind_->reward(felt);
  }
}

float Life::unease() const {
  if (!options_.uneasy) return 0.0f;
  return unease_ * static_cast<float>(std::exp((unease_s_ - world_.time_s()) / kUneaseSeconds));
}

void Life::set_unease(float unease) {
  unease_ = unease;
  unease_s_ = world_.time_s();
}

void Life::finish_command() {
  const bool shown = showing_ || std::exchange(led_trial_, false);
  bool& before = succeeded_[static_cast<std::size_t>(trial_.cue())];
  WorldView& view = world_.edit_view();
  view.trial_success = trial_.state() == Trial::State::success;
  if (view.trial_success && !shown && !std::exchange(before, true) && view.pet.pose == Pose::stand)
    view.pet.pose = Pose::play_bow;
  world_.set_cue(Cue::none);
  mind_->set_goal(Cue::none);
  showing_ = false;
  view.demonstrating = false;
  view.trial_over = true;
  if (on_trial_end) on_trial_end(trial_, shown);
  if (!chained_) return;
  chain_good_ = chain_good_ && view.trial_success && !shown;
  if (trial_.state() == Trial::State::failure || view.then.empty()) return end_chain(view.trial_success);
  const Cue next = view.then.front();
  view.then.erase(view.then.begin());
  begin_command(next);
}

void Life::ask(std::uint64_t frame) {
  if (asked_frame_ || !world_.ready()) return;
  if (showing_) {
    const Action action = *right_action(trial_.cue(), world_);
    mind_->demonstrate(world_.observe(), trial_.cue(), action);
    trial_.decide(world_, action);
    begin_action(action);
    mark_shown(action, world_.time_s(), world_.view().pet.position);
    return;
  }
  if (trial_.over() && (!options_.idle || world_.time_s() < idle_until_s_)) return;
  mind_->ask(world_.observe(), world_.mask());
  asked_frame_ = frame;
}

}  // namespace pet
