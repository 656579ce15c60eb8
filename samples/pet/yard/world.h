#pragma once
// The rules of the yard: fixed steps of 1/60 s, copyable, and deterministic for a random state. No brains
// here.

#include <array>
#include <cstdint>
#include <optional>

#include "samples/pet/yard/random.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

inline constexpr std::size_t kObservationCount = 28;
using Observation = std::array<float, kObservationCount>;
using Mask = std::array<std::uint8_t, kActionCount>;

// Scales for the brain: command and flags count double, distracting values count 0.3.
const std::array<float, kObservationCount>& observation_scale();

// The right action for a cue now; none for Cue::none.
class World;
std::optional<Action> right_action(Cue cue, const World& world);
// The place nearest to `wanted` where the player can stand: in the yard, beside bed and bowl.
Vec2 standing_place(const WorldView& yard, Vec2 wanted);

class World {
 public:
  // Pet, player, ball, bowl, bed and drives at random places that do not touch. Keeps the clock.
  void redraw(Random& random);

  // Advances 1/60 s.
  void step();

  // 28 floats, all within -1 .. 1: cue one-hot (6); pet x, y; for player, ball, bed and bowl each the
  // direction (cos, sin), distance and near flag; holding; hunger, energy, boredom.
  Observation observe() const;
  Mask mask() const;  // giving needs the ball

  void set_cue(Cue cue);
  void begin_action(Action action);
  void interrupt();  // ends the action where it is
  void stop();       // "no!": the same, and the pet stands up
  void look_at_player();

  // The pet stops its action and follows the hand until let_go(). That walk is no action.
  void lead(Vec2 hand);
  void let_go();

  bool acting() const { return view_.pet.acting; }
  // Time for the next decision: no action, no glance at the player, no leading hand.
  bool ready() const;
  bool holding() const { return view_.pet.holding; }
  bool near_player() const;
  // The last action was completed, not interrupted.
  bool completed() const { return completed_; }
  // The last action went to the sofa, or is on its way there.
  bool sofa_bound() const { return view_.pet.unasked && view_.pet.action == kSofaAction; }
  // It lies there by its own decision.
  bool lies_on_sofa() const {
    return !acting() && completed_ && view_.cue == Cue::none && sofa_bound() && view_.pet.pose == Pose::rest;
  }
  // The last action gave the ball to the player.
  bool gave_to_player() const { return gave_to_player_; }

  double time_s() const { return view_.time_s; }
  double onset_s() const { return onset_s_; }
  Vec2 onset_position() const { return onset_position_; }

  const WorldView& view() const { return view_; }
  WorldView& edit_view() { return view_; }  // for display only: hand, thought, markers

  // The player may walk about and drag things.
  void move_player(Vec2 position);
  void move_ball(Vec2 position);

 private:
  // An action's goal, how near the pet goes, and its pose there.
  struct Course {
    Vec2 goal;
    float reach;
    Pose last;
  };
  Course course() const;
  void step_action();
  void step_led();
  void leave_outcome();  // applies the effect of a completed action
  void end_action(bool completed);
  bool walk_to(Vec2 goal, float stop_distance);
  Vec2 way_to(Vec2 goal) const;
  void stand_on_ground(float jump);
  void step_drives();
  void turn_head();
  std::optional<Action> led_to(Vec2 hand) const;

  WorldView view_;
  std::uint64_t steps_ = 0;
  double onset_s_ = 0.0;
  Vec2 onset_position_;
  double arrived_s_ = -1.0;  // when the phase after the walk began (picking up, eating)
  double look_until_s_ = -1.0;
  float start_heading_ = 0.0f;
  bool completed_ = false;
  bool gave_to_player_ = false;
  bool led_to_give_ = false;  // it could give the ball when the lead began
};

}  // namespace pet
