#include "samples/pet/yard/world.h"

#include <algorithm>
#include <cmath>

namespace pet {
namespace {

constexpr float kPi = 3.14159265f;
constexpr float kStep = static_cast<float>(kStepSeconds);
constexpr float kWalkSpeed = 7.0f;  // m/s: it runs, so that a decision takes about a second
constexpr float kTurnSpeed = 9.0f;  // rad/s
constexpr float kNear = 1.1f;       // metres
constexpr float kApart = 1.7f;
// The look at the player after an action. It also separates the feedback of two actions.
constexpr double kGlanceSeconds = 0.5;
constexpr float kReachPlayer = 0.9f;
constexpr float kReachBall = 0.4f;
constexpr float kReachBed = 0.05f;
constexpr float kReachBowl = 0.5f;
constexpr float kReachSofa = 0.05f;
constexpr float kReachHand = 0.3f;
constexpr float kMeant = 0.9f;      // the hand leads to a thing this close, metres; about half of kApart
constexpr float kSofaFront = 3.5f;  // y: only the sofa lies beyond; its arms leave this one way to it
constexpr float kSofaAisle = 0.3f;
constexpr float kSofaEdge = 4.0f;    // y: beyond it the pet is up
constexpr float kClimbSpeed = 2.5f;  // m/s

// Seconds of an action in place, or of the phase after a walk.
constexpr double duration(Action action) {
  switch (action) {
    case Action::sit:
      return 0.45;
    case Action::lie:
      return 0.45;
    case Action::spin:
      return 0.5;
    case Action::jump:
      return 0.45;
    case Action::bark:
      return 0.45;
    case Action::go_player:
      return 0.2;
    case Action::go_ball:
      return 0.3;
    case Action::give:
      return 0.45;
    case Action::go_bed:
      return 0.3;
    case Action::go_bowl:
      return 0.3;
  }
  return 0.45;
}

Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
float length(Vec2 v) { return std::sqrt(v.x * v.x + v.y * v.y); }
float wrap(float angle) {
  while (angle > kPi) angle -= 2.0f * kPi;
  while (angle < -kPi) angle += 2.0f * kPi;
  return angle;
}
float towards(Vec2 from, Vec2 to) { return std::atan2(to.y - from.y, to.x - from.x); }
Vec2 ahead(Vec2 from, float heading, float distance) {
  return {from.x + distance * std::cos(heading), from.y + distance * std::sin(heading)};
}
float clamp01(float value) { return std::clamp(value, 0.0f, 1.0f); }
Vec2 seat_of(Vec2 sofa) { return {sofa.x, sofa.y - 0.1f}; }  // before its back

// Keeps clear of the fence and of the sofa, so that no straight walk crosses the sofa.
Vec2 clamp_to_yard(Vec2 p) { return {std::clamp(p.x, -4.2f, 4.2f), std::clamp(p.y, -4.2f, 3.4f)}; }

}  // namespace

const char* name(Cue cue) {
  constexpr std::array<const char*, kCueCount> names = {"none", "sit", "spin", "come", "fetch", "bed"};
  return names[static_cast<std::size_t>(cue)];
}

const char* name(Action action) {
  constexpr std::array<const char*, kActionCount> names = {
      "sit",       "lie down",     "spin",       "jump",      "bark",
      "go to you", "get the ball", "give it up", "go to bed", "go to the bowl"};
  return names[static_cast<std::size_t>(action)];
}

const char* name(Action action, bool unasked) {
  return unasked && action == kSofaAction ? "lie on the sofa" : name(action);
}

const std::array<float, kObservationCount>& observation_scale() {
  static constexpr std::array<float, kObservationCount> scale = [] {
    std::array<float, kObservationCount> s{};
    s.fill(0.3f);
    for (std::size_t i = 0; i < kCueCount; ++i) s[i] = 2.0f;
    for (std::size_t thing = 0; thing < 4; ++thing) s[8 + 4 * thing + 3] = 2.0f;
    s[24] = 2.0f;
    return s;
  }();
  return scale;
}

std::optional<Action> right_action(Cue cue, const World& world) {
  switch (cue) {
    case Cue::none:
      return std::nullopt;
    case Cue::sit:
      return Action::sit;
    case Cue::spin:
      return Action::spin;
    case Cue::come:
      return Action::go_player;
    case Cue::bed:
      return Action::go_bed;
    case Cue::fetch:
      if (!world.holding()) return Action::go_ball;
      return world.near_player() ? Action::give : Action::go_player;
  }
  return std::nullopt;
}

void World::redraw(Random& random) {
  std::array<Vec2*, 5> things = {&view_.pet.position, &view_.player.position, &view_.ball, &view_.bed,
                                 &view_.bowl};
  for (std::size_t i = 0; i < things.size(); ++i) {
    for (bool clear = false; !clear;) {
      *things[i] = {random.uniform(-4.2f, 4.2f), random.uniform(-4.2f, 3.4f)};
      clear = std::all_of(things.begin(), things.begin() + static_cast<std::ptrdiff_t>(i),
                          [&](const Vec2* other) { return length(*other - *things[i]) >= kApart; });
    }
  }
  view_.sofa = {3.2f, kYardHalf - kSofaHalf.y - 0.1f};
  view_.pet.heading = random.uniform(-kPi, kPi);
  view_.pet.drives = {random.uniform(), random.uniform(), random.uniform()};
  view_.pet.pose = Pose::stand;
  view_.pet.pose_progress = 0.0f;
  view_.pet.height = 0.0f;
  view_.pet.holding = false;
  view_.pet.acting = false;
  view_.pet.unasked = false;
  view_.ball_height = 0.0f;
  view_.lure = {};
  ++view_.scene;
  completed_ = false;
  gave_to_player_ = false;
  look_until_s_ = -1.0;
}

Observation World::observe() const {
  Observation o{};
  const PetView& pet = view_.pet;
  o[static_cast<std::size_t>(view_.cue)] = 1.0f;
  o[6] = pet.position.x / kYardHalf;
  o[7] = pet.position.y / kYardHalf;
  std::size_t at = 8;
  for (Vec2 thing : {view_.player.position, view_.ball, view_.bed, view_.bowl}) {
    const Vec2 way = thing - pet.position;
    const float distance = length(way);
    const float scale = distance > 1e-3f ? 1.0f / distance : 0.0f;
    o[at++] = way.x * scale;
    o[at++] = way.y * scale;
    o[at++] = std::min(distance / (2.0f * kYardHalf), 1.0f);
    o[at++] = distance < kNear ? 1.0f : 0.0f;
  }
  o[at++] = pet.holding ? 1.0f : 0.0f;
  o[at++] = pet.drives.hunger;
  o[at++] = pet.drives.energy;
  o[at++] = pet.drives.boredom;
  return o;
}

Mask World::mask() const {
  Mask mask;
  mask.fill(1);
  mask[static_cast<std::size_t>(Action::give)] = view_.pet.holding ? 1 : 0;
  return mask;
}

void World::set_cue(Cue cue) {
  view_.cue = cue;
  view_.cue_since_s = view_.time_s;
}

bool World::ready() const { return !view_.pet.acting && !view_.lure.active && view_.time_s >= look_until_s_; }

bool World::near_player() const { return length(view_.player.position - view_.pet.position) < kNear; }

void World::begin_action(Action action) {
  PetView& pet = view_.pet;
  pet.acting = true;
  pet.action = action;
  pet.unasked = view_.cue == Cue::none;
  pet.pose_progress = 0.0f;
  onset_s_ = view_.time_s;
  onset_position_ = pet.position;
  start_heading_ = pet.heading;
  arrived_s_ = -1.0;
  completed_ = false;
  gave_to_player_ = false;
}

void World::interrupt() {
  if (view_.pet.acting) end_action(false);
}

void World::stop() {
  if (!view_.pet.acting) return;
  end_action(false);
  view_.pet.pose = Pose::stand;
}

void World::look_at_player() { look_until_s_ = view_.time_s + kGlanceSeconds; }

void World::lead(Vec2 hand) {
  Lure& lure = view_.lure;
  if (!lure.active) {
    interrupt();
    led_to_give_ = view_.pet.holding && near_player();
  }
  lure.active = true;
  lure.at = clamp_to_yard(hand);
  const std::optional<Action> action = led_to(hand);
  lure.leads = action.has_value();
  if (action) lure.action = *action;
}

void World::let_go() {
  view_.lure = {};
  if (view_.pet.pose == Pose::walk && !view_.pet.acting) view_.pet.pose = Pose::stand;
}

// The action of the nearest thing at the hand.
std::optional<Action> World::led_to(Vec2 hand) const {
  std::optional<Action> action;
  float nearest = kMeant;
  const auto meant = [&](Vec2 thing, Action by) {
    const float distance = length(thing - hand);
    if (distance <= nearest) nearest = distance, action = by;
  };
  meant(view_.player.position, led_to_give_ ? Action::give : Action::go_player);
  if (!view_.pet.holding) meant(view_.ball, Action::go_ball);
  meant(view_.bed, Action::go_bed);
  meant(view_.bowl, Action::go_bowl);
  return action;
}

void World::end_action(bool completed) {
  PetView& pet = view_.pet;
  pet.acting = false;
  stand_on_ground(0.0f);
  // Sitting, lying and resting last until the next action, as a person expects.
  if (pet.pose != Pose::sit && pet.pose != Pose::lie && pet.pose != Pose::rest) pet.pose = Pose::stand;
  completed_ = completed;
  look_at_player();
}

// The next point on the way. Sofa and yard connect only at the open side.
Vec2 World::way_to(Vec2 goal) const {
  const Vec2 from = view_.pet.position;
  const bool up = from.y > kSofaFront;
  if (up == (goal.y > kSofaFront)) return goal;
  if (up)
    return {std::clamp(goal.x, view_.sofa.x - kSofaAisle, view_.sofa.x + kSofaAisle), kSofaFront - 0.05f};
  return std::abs(from.x - view_.sofa.x) > kSofaAisle ? Vec2{view_.sofa.x, kSofaFront - 0.05f} : goal;
}

void World::stand_on_ground(float jump) {
  PetView& pet = view_.pet;
  const float climbed = clamp01((pet.position.y - kSofaFront) / (kSofaEdge - kSofaFront));
  pet.height = jump + kSofaSeat * climbed + 0.5f * climbed * (1.0f - climbed);
}

bool World::walk_to(Vec2 goal, float stop_distance) {
  PetView& pet = view_.pet;
  if (const Vec2 by = way_to(goal); by.x != goal.x || by.y != goal.y) goal = by, stop_distance = -1.0f;
  const Vec2 way = goal - pet.position;
  const float distance = length(way);
  if (distance <= stop_distance) return true;
  const float turn = wrap(towards(pet.position, goal) - pet.heading);
  pet.heading = wrap(pet.heading + std::clamp(turn, -kTurnSpeed * kStep, kTurnSpeed * kStep));
  const float speed = pet.position.y > kSofaFront ? kClimbSpeed : kWalkSpeed;
  const float stride = std::min(speed * kStep, distance - std::max(stop_distance, 0.0f) + 1e-3f);
  pet.position.x += way.x / distance * stride;
  pet.position.y += way.y / distance * stride;
  pet.pose = Pose::walk;
  pet.pose_progress = std::fmod(pet.pose_progress + stride / 0.9f, 1.0f);
  return distance - stride <= stop_distance;
}

void World::step() {
  PetView& pet = view_.pet;
  view_.time_s = static_cast<double>(++steps_) * kStepSeconds;  // counts steps, so that hours do not drift
  step_drives();
  if (pet.acting) {
    step_action();
  } else if (view_.lure.active) {
    step_led();
  } else {
    if (pet.position.y > kSofaFront &&
        pet.position.y < kSofaEdge) {  // interrupted on the way up: it comes down
      pet.position.y -= kClimbSpeed * kStep;
      stand_on_ground(0.0f);
    }
    pet.pose_progress = std::fmod(pet.pose_progress + kStep * 0.4f, 1.0f);
  }
  if (pet.holding) {
    view_.ball = pet.position;
    view_.ball_height = 0.45f + pet.height;
  }
  view_.player.heading = towards(view_.player.position, pet.position);
  turn_head();
}

World::Course World::course() const {
  const Vec2 here = view_.pet.position;
  switch (view_.pet.action) {
    case Action::sit:
      return {here, 0.0f, Pose::sit};
    case Action::lie:
      return sofa_bound() ? Course{seat_of(view_.sofa), kReachSofa, Pose::rest}
                          : Course{here, 0.0f, Pose::lie};
    case Action::spin:
      return {here, 0.0f, Pose::spin};
    case Action::jump:
      return {here, 0.0f, Pose::jump};
    case Action::bark:
      return {here, 0.0f, Pose::bark};
    case Action::give:
      return {here, 0.0f, Pose::give};
    case Action::go_player:
      return {view_.player.position, kReachPlayer, Pose::stand};
    case Action::go_ball:
      return {view_.pet.holding ? here : view_.ball, kReachBall, Pose::pick};
    case Action::go_bed:
      return {view_.bed, kReachBed, Pose::rest};
    case Action::go_bowl:
      return {view_.bowl, kReachBowl, Pose::eat};
  }
  return {here, 0.0f, Pose::stand};
}

void World::step_action() {
  PetView& pet = view_.pet;
  float jump = 0.0f;
  const Course way = course();
  if (arrived_s_ < 0.0 && walk_to(way.goal, way.reach)) {
    arrived_s_ = view_.time_s;
    pet.pose = way.last;
  }
  if (arrived_s_ >= 0.0) {
    const double part = (view_.time_s - arrived_s_) / duration(pet.action);
    pet.pose_progress = std::min(static_cast<float>(part), 1.0f);
    if (pet.action == Action::spin) pet.heading = wrap(start_heading_ + 2.0f * kPi * pet.pose_progress);
    if (sofa_bound())
      pet.heading = wrap(pet.heading + std::clamp(wrap(kPi - pet.heading), -kTurnSpeed * kStep,
                                                  kTurnSpeed * kStep));  // along it
    if (pet.action == Action::jump) jump = 2.4f * pet.pose_progress * (1.0f - pet.pose_progress);
    if (part >= 1.0) {
      leave_outcome();
      end_action(true);
      jump = 0.0f;
    }
  }
  stand_on_ground(jump);
}

void World::leave_outcome() {
  PetView& pet = view_.pet;
  switch (pet.action) {
    case Action::go_ball:
      pet.holding = true;
      break;
    case Action::give:
      gave_to_player_ = pet.holding && near_player();
      pet.holding = false;
      view_.ball = clamp_to_yard(ahead(pet.position, pet.heading, 0.5f));
      view_.ball_height = 0.0f;
      break;
    case Action::go_bowl:
      pet.drives.hunger = 0.0f;
      break;
    default:
      break;
  }
}

void World::step_led() {
  PetView& pet = view_.pet;
  // It stops beside the player.
  const bool to_player =
      view_.lure.leads && (view_.lure.action == Action::go_player || view_.lure.action == Action::give);
  if (walk_to(to_player ? view_.player.position : view_.lure.at, to_player ? kReachPlayer : kReachHand)) {
    pet.pose = Pose::stand;
    pet.pose_progress = std::fmod(pet.pose_progress + kStep * 0.4f, 1.0f);
  }
  stand_on_ground(0.0f);
}

void World::step_drives() {
  Drives& drives = view_.pet.drives;
  const bool moving = view_.pet.acting;
  const bool playing = moving && (view_.pet.action == Action::jump || view_.pet.action == Action::spin ||
                                  view_.pet.action == Action::go_ball);
  const bool resting = view_.pet.pose == Pose::rest;
  drives.hunger = clamp01(drives.hunger + kStep / 180.0f);
  drives.energy = clamp01(drives.energy + kStep * (resting  ? 1.0f / 8.0f
                                                   : moving ? -1.0f / 120.0f
                                                            : -1.0f / 300.0f));
  drives.boredom = clamp01(drives.boredom + kStep * (playing ? -1.0f / 6.0f : 1.0f / 90.0f));
}

void World::turn_head() {
  PetView& pet = view_.pet;
  float wanted = 0.0f;
  if (!pet.acting) {
    const Vec2 seen = view_.lure.active ? view_.lure.at : view_.player.position;
    wanted = std::clamp(wrap(towards(pet.position, seen) - pet.heading), -1.4f, 1.4f);
  }
  const float turn = wanted - pet.head_turn;
  pet.head_turn += std::clamp(turn, -7.0f * kStep, 7.0f * kStep);
}

Vec2 standing_place(const WorldView& yard, Vec2 wanted) {
  constexpr float kFoot = 0.35f;
  constexpr Vec2 kMiddle;
  Vec2 place = clamp_to_yard(wanted);
  const auto beside = [&](Vec2 thing, float radius) {
    const float distance = length(place - thing);
    if (distance >= radius + kFoot) return;
    const Vec2 out = ahead(thing, towards(thing, distance > 1e-3f ? place : kMiddle), radius + kFoot);
    // Where the fence is in the way, on the yard's side.
    place = length(clamp_to_yard(out) - out) == 0.0f ? out
                                                     : ahead(thing, towards(thing, kMiddle), radius + kFoot);
  };
  beside(yard.bowl, kBowlRadius);
  beside(yard.bed, kBedRadius);
  return place;
}

void World::move_player(Vec2 position) { view_.player.position = clamp_to_yard(position); }

void World::move_ball(Vec2 position) {
  if (!view_.pet.holding) view_.ball = clamp_to_yard(position);
}

}  // namespace pet
