#pragma once
// The yard as rules: fixed steps of 1/60 s, copyable, the same on every run from the same random state. It
// knows nothing of brains.

#include <array>
#include <cstdint>
#include <optional>

#include "samples/pet/yard/random.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

inline constexpr std::size_t kObservationCount = 28;
using Observation = std::array<float, kObservationCount>;
using Mask = std::array<std::uint8_t, kActionCount>;

// Factors for the brain: the command and flags count double, what distracts counts little.
const std::array<float, kObservationCount>& observation_scale();

// The action that is right now for a cue; none for Cue::none.
class World;
std::optional<Action> right_action(Cue cue, const World& world);
// Where the player stands who wants to go somewhere: within the yard, and beside the bed and the bowl rather
// than in them.
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
  Mask mask() const;  // giving needs something to give

  void set_cue(Cue cue);
  void begin_action(Action action);
  void interrupt();  // ends the action where it is
  void stop();       // "no!": the same, and it gets up from what it had begun
  void look_at_player();

  // The pet leaves what it does and follows the hand, until it is let go. Walking there is no action.
  void lead(Vec2 hand);
  void let_go();

  bool acting() const { return view_.pet.acting; }
  // Acting and the glance at the player afterwards are both over, and nobody leads it: time for the next
  // decision.
  bool ready() const;
  bool holding() const { return view_.pet.holding; }
  bool near_player() const;
  // The action that ended last reached its end (it was not interrupted).
  bool completed() const { return completed_; }
  // The last action went to the sofa, or is on its way there.
  bool sofa_bound() const { return view_.pet.unasked && view_.pet.action == kSofaAction; }
  // It lies there, of its own accord, and does nothing else.
  bool lies_on_sofa() const {
    return !acting() && completed_ && view_.cue == Cue::none && sofa_bound() && view_.pet.pose == Pose::rest;
  }
  // The ball was handed over by the last action.
  bool gave_to_player() const { return gave_to_player_; }

  double time_s() const { return view_.time_s; }
  double onset_s() const { return onset_s_; }
  Vec2 onset_position() const { return onset_position_; }

  const WorldView& view() const { return view_; }
  WorldView& edit_view() { return view_; }  // for what is only seen: hand, thought, markers

  // The player may walk about and drag things.
  void move_player(Vec2 position);
  void move_ball(Vec2 position);

 private:
  // Where the pet goes for its action, how near, and the pose in which it carries it out there.
  struct Course {
    Vec2 goal;
    float reach;
    Pose last;
  };
  Course course() const;
  void step_action();
  void step_led();
  void leave_outcome();  // what a completed action has done to the yard
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
  double arrived_s_ = -1.0;  // walking: when the last phase (picking up, eating) began
  double look_until_s_ = -1.0;
  float start_heading_ = 0.0f;
  bool completed_ = false;
  bool gave_to_player_ = false;
  bool led_to_give_ = false;  // when it was first led away it could have handed the ball over
};

}  // namespace pet
