#include "samples/pet/view/stage_input.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pet {
namespace {

// A hand on the pet, in metres at the pet.
constexpr float kBody = 0.65f;      // within this of its middle it is touched
constexpr float kLeaves = 1.1f;     // beyond this the hand leads it away
constexpr float kLeastDrag = 0.4f;  // less is a tap: the hand shakes, or the pet walks away
constexpr float kStroke = 1.4f;     // this much movement on the pet is a stroke
constexpr float kHeldAgain = 0.8f;  // seconds between praises while P is held: about one action
constexpr float kStraight = 0.6f;   // a stroke stays within this share of its length from its start

}  // namespace

void StageInput::attach(Camera& camera, Overlay& overlay) {
  camera_ = &camera;
  overlay_ = &overlay;
}

WindowEvents StageInput::events() {
  WindowEvents events;
  events.key = [this](int k, int modifiers) { key(k, modifiers); };
  events.mouse = [this](int button, bool pressed, Vec2 at) { mouse(button, pressed, at); };
  events.moved = [this](Vec2 at, Vec2 by) { moved(at, by); };
  events.wheel = [this](float steps) {
    if (camera_ && !overlay_->wants_mouse()) camera_->zoom(std::pow(1.12f, steps));
  };
  return events;
}

PlayerInput StageInput::take() { return std::exchange(pending_, PlayerInput{}); }

void StageInput::see(const WorldView& world, const Anchors& anchors) {
  offset_ = anchors.offset;
  pet_ = {world.pet.position.x + offset_.x, world.pet.position.y + offset_.y, 0.45f + world.pet.height};
  ball_ = {world.ball.x + offset_.x, world.ball.y + offset_.y};
  ball_free_ = !world.pet.holding;
  player_ = world.player.position;
  seen_ = true;
}

void StageInput::key(int key, int modifiers) {
  if (!overlay_) return;
  if (overlay_->typing()) {
    if (key == GLFW_KEY_ENTER || key == GLFW_KEY_KP_ENTER) overlay_->take_word();
    if (key == GLFW_KEY_ESCAPE) overlay_->leave_word();
    return;
  }
  for (std::size_t i = 0; i < kTricks.size(); ++i) {
    const int n = static_cast<int>(i);
    if (key == GLFW_KEY_1 + n || key == GLFW_KEY_KP_1 + n)
      (modifiers & GLFW_MOD_SHIFT ? pending_.chain : pending_.cue) = kTricks[i];
  }
  if (!teaching_key(key) && !game_key(key, modifiers)) view_key(key);
}

bool StageInput::teaching_key(int key) {
  switch (key) {
    case GLFW_KEY_P:
      ++pending_.praise;
      break;
    case GLFW_KEY_S:
      ++pending_.scold;
      break;
    case GLFW_KEY_T:
      ++pending_.treat;
      break;
    case GLFW_KEY_C:
      ++pending_.click;
      break;
    case GLFW_KEY_D:
      pending_.demonstrate = true;
      break;
    case GLFW_KEY_N:
      pending_.interrupt = true;
      break;
    default:
      return false;
  }
  return true;
}

bool StageInput::game_key(int key, int modifiers) {
  switch (key) {
    case GLFW_KEY_SPACE:
      pending_.toggle_pause = true;
      break;
    case GLFW_KEY_L:
      pending_.toggle_slow = true;
      break;
    case GLFW_KEY_G:
      pending_.toggle_ghost = true;
      break;
    case GLFW_KEY_O:
      pending_.toggle_learning = true;
      break;
    case GLFW_KEY_M:
      pending_.next_mind = true;
      break;
    case GLFW_KEY_A:
      pending_.toggle_auto_cue = true;
      break;
    case GLFW_KEY_H:
      hold_praises_ = !hold_praises_;
      pending_.hold_praise = hold_praises_;
      break;
    case GLFW_KEY_F4:
      pending_.toggle_inspector = true;
      break;
    case GLFW_KEY_F5:
      pending_.save = true;
      break;
    case GLFW_KEY_F6:
      pending_.snapshot = true;
      break;
    case GLFW_KEY_Y:
      pending_.then = true;
      break;
    case GLFW_KEY_F2:
      pending_.measure = true;
      break;
    case GLFW_KEY_U:
      pending_.undo = true;
      break;
    case GLFW_KEY_Z:
      pending_.undo = pending_.undo || (modifiers & GLFW_MOD_CONTROL);
      break;
    default:
      return false;
  }
  return true;
}

void StageInput::toggle_help() {
  overlay_->toggle_help();
  help_shown_ = !help_shown_;
  pending_.toggle_help = !pending_.toggle_help;
}

void StageInput::view_key(int key) {
  switch (key) {
    case GLFW_KEY_ENTER:
    case GLFW_KEY_KP_ENTER:
      overlay_->ask_word();
      break;
    case GLFW_KEY_F3:
      overlay_->ask_name();
      break;
    case GLFW_KEY_F1:
      toggle_help();
      break;
    case GLFW_KEY_ESCAPE:
      if (help_shown_) {
        toggle_help();
      } else {
        pending_.quit = true;
      }
      break;
    case GLFW_KEY_EQUAL:
    case GLFW_KEY_KP_ADD:
      overlay_->scale_text(1.125f);
      break;
    case GLFW_KEY_MINUS:
    case GLFW_KEY_KP_SUBTRACT:
      overlay_->scale_text(1.0f / 1.125f);
      break;
    case GLFW_KEY_HOME:
      camera_->reset();
      break;
    case GLFW_KEY_LEFT:
      camera_->orbit(-0.12f, 0.0f);
      break;
    case GLFW_KEY_RIGHT:
      camera_->orbit(0.12f, 0.0f);
      break;
    case GLFW_KEY_UP:
      camera_->orbit(0.0f, 0.08f);
      break;
    case GLFW_KEY_DOWN:
      camera_->orbit(0.0f, -0.08f);
      break;
    default:
      break;
  }
}

void StageInput::pad(const std::optional<PadState>& state, float seconds) {
  if (!camera_) return;
  const Vec3 right = camera_->right();
  const float length = std::max(std::hypot(right.x, right.y), 1e-3f);
  const Pad::Look look = pad_.read(state, seconds, player_, {right.x / length, right.y / length}, pending_);
  if (look.yaw != 0.0f || look.pitch != 0.0f) camera_->orbit(look.yaw, look.pitch);
  if (look.reset) camera_->reset();
}

int StageInput::praise_key() { return GLFW_KEY_P; }

void StageInput::hold(bool praising, float seconds) {
  held_s_ = praising && hold_praises_ && !overlay_->typing() ? held_s_ + seconds : 0.0f;
  if (held_s_ < kHeldAgain) return;
  held_s_ -= kHeldAgain;
  ++pending_.praise;
}

float StageInput::pixels_per_metre(Vec3 where) const {
  const auto a = camera_->project(where), b = camera_->project(where + camera_->right());
  return a && b ? std::hypot(b->x - a->x, b->y - a->y) : 0.0f;
}

bool StageInput::on_pet(Vec2 at) const {
  const auto pet = camera_->project(pet_);
  return seen_ && pet && std::hypot(at.x - pet->x, at.y - pet->y) < kBody * pixels_per_metre(pet_);
}

bool StageInput::on_ball(Vec2 at) const {
  const Vec3 where{ball_.x, ball_.y, kBallRadius};
  const auto ball = camera_->project(where);
  return seen_ && ball_free_ && ball &&
         std::hypot(at.x - ball->x, at.y - ball->y) <
             std::max(10.0f, 2.0f * kBallRadius * pixels_per_metre(where));
}

std::optional<Vec2> StageInput::yard_point(Vec2 at) const {
  std::optional<Vec2> point = camera_->ground(at);
  if (!point || !seen_) return std::nullopt;
  point->x -= offset_.x;
  point->y -= offset_.y;
  if (std::abs(point->x) > kYardHalf + 0.5f || std::abs(point->y) > kYardHalf + 0.5f) return std::nullopt;
  return point;
}

void StageInput::mouse(int button, bool pressed, Vec2 at) {
  if (!pressed) {
    if (button != drag_button_) return;
    if (drag_ == Drag::pet && lures_) pending_.let_go = true;
    if (drag_ == Drag::pet && !lures_ && !strokes_) ++pending_.praise;  // a tap, or one stroke along its back
    drag_ = Drag::none;
    return;
  }
  if (!camera_ || overlay_->wants_mouse()) return;
  if (button == GLFW_MOUSE_BUTTON_RIGHT && on_pet(at)) {
    ++pending_.scold;
    return;
  }
  if (drag_ != Drag::none) return;  // only the button that began a drag ends it
  drag_button_ = button;
  if (button == GLFW_MOUSE_BUTTON_LEFT) {
    if (on_ball(at)) {
      drag_ = Drag::ball;
    } else if (on_pet(at)) {
      drag_ = Drag::pet;
      took_ = at;
      handled_ = stroked_ = 0.0f;
      strokes_ = lures_ = false;
    } else if (const auto point = yard_point(at)) {
      pending_.walk_to = point;
      drag_ = Drag::walk;
    }
  } else {
    drag_ = Drag::view;
  }
}

// A hand on the pet: a stroke in place, or a lead away.
void StageInput::handle_pet(Vec2 at, Vec2 by) {
  const auto pet = camera_->project(pet_);
  const float metre = pixels_per_metre(pet_);
  if (!pet || metre <= 0.0f) return;
  const float way = std::hypot(by.x, by.y) / metre;
  handled_ += way;
  stroked_ += way;
  const bool off = std::hypot(at.x - pet->x, at.y - pet->y) > kLeaves * metre;
  if (!strokes_ && (lures_ || (off && handled_ > kLeastDrag))) {
    lures_ = true;
    if (const auto point = yard_point(at)) pending_.lure_to = point;
    return;
  }
  if (off || stroked_ < kStroke || std::hypot(at.x - took_.x, at.y - took_.y) / metre > kStraight * handled_)
    return;
  strokes_ = true;
  stroked_ = -kStroke;  // the next praise takes a longer stroke
  ++pending_.praise;
}

void StageInput::moved(Vec2 at, Vec2 by) {
  if (!camera_ || drag_ == Drag::none) return;
  if (drag_ == Drag::pet) return handle_pet(at, by);
  if (drag_ == Drag::view) {
    camera_->orbit(-by.x * 0.006f, by.y * 0.005f);
    return;
  }
  const auto point = yard_point(at);
  if (!point) return;
  if (drag_ == Drag::walk) pending_.walk_to = point;
  if (drag_ == Drag::ball) pending_.ball_to = point;
}

}  // namespace pet
