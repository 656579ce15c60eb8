#pragma once
// One pet in its yard: the command in force, and what passes between body, mind and player.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "samples/pet/yard/mind.h"
#include "samples/pet/yard/signal.h"
#include "samples/pet/yard/trial.h"
#include "samples/pet/yard/world.h"

namespace pet {

// From question to answer, however fast the GPU is: play must not depend on its speed.
inline constexpr std::uint32_t kAnswerFrames = 2;

// Seconds from the onset of an action to feedback. The brain assumes the quickest player; the feedback of
// slower ones is dated back.
inline constexpr double kQuickestReaction = 0.6;
// A player who was not measured.
inline constexpr double kUsualReaction = 0.8;
inline constexpr double kSlowestReaction = 3.0;

// A treat may come this late, in seconds after the onset of the last action.
inline constexpr double kSlowestTreat = 4.0;

// Longest chain of commands.
inline constexpr std::size_t kLongestChain = 4;

// The reward of idle actions, on the scale of praise (1) and scolding (-1): the sofa is soft, all else costs
// a little.
inline constexpr float kComfort = 0.25f;
inline constexpr float kEffort = -0.05f;

// Weight of a scolding on the sofa or on the way there: the reason is clear, so it counts as much as a treat.
inline constexpr float kCaughtWeight = 2.0f;

// After a scolding the pet is uneasy about the sofa, until praise there or time heals that. At full unease
// the sofa brings kDread instead of kComfort, and other idle actions bring kRelief. This carries a lesson
// from a few places in the yard to all. Source: O. H. Mowrer, On the dual nature of learning, 1947 (fear of a
// place, then relief).
inline constexpr float kDread = -1.0f;
inline constexpr float kRelief = 0.25f;
inline constexpr double kUneaseSeconds = 900.0;  // until a third of it is left

struct LifeOptions {
  bool idle = false;             // without a command the pet acts now and then; false: it waits
  float shortest_idle_s = 0.8f;  // between idle actions
  float longest_idle_s = 3.0f;
  bool uneasy = true;                        // remembers where it was scolded; false in replays of older logs
  bool taught = true;                        // feedback and demonstrations reach the mind
  double brain_reaction_s = kUsualReaction;  // the reaction time that the mind assumes
};

class Life {
 public:
  Life(Mind& mind, std::uint64_t seed, const LifeOptions& options);

  // Called when the pet begins an action under a command; right: the judgement.
  std::function<void(double now_s, Action action, bool right)> on_onset;
  // Called when the pet begins an idle action; sofa: it goes to the sofa.
  std::function<void(double now_s, Action action, bool sofa)> on_idle;
  // Called when the player has led the pet to something by hand: a demonstration.
  std::function<void(Action action)> on_led;
  // Called when a command ends; shown: the player demonstrated it, or a part of it.
  std::function<void(const Trial& trial, bool shown)> on_trial_end;
  // Called when a chain of commands ends; success: no mistake in any of them.
  std::function<void(bool success)> on_chain_end;

  // A frame calls these in this order: the player's signals, an earlier question's answer, time, the next
  // question.
  void apply(const Signal& signal);
  void act(std::uint64_t frame);
  void step();
  void ask(std::uint64_t frame);

  const World& world() const { return world_; }
  const Trial& trial() const { return trial_; }

  // Unease about the sofa now, 0 .. 1; 0 without LifeOptions::uneasy. Saved with the pet; no time passes
  // while the game is closed.
  float unease() const;
  void set_unease(float unease);

 private:
  struct Onset {
    double time_s;
    Action action;
    Vec2 position;
    bool unasked;
  };
  // The situation when the player's hand took the pet, and the right action then.
  struct Led {
    Observation seen{};
    Cue cue = Cue::none;
    std::optional<Action> right;
    double time_s = 0.0;
    Vec2 position;
  };

  void feedback(FeedbackKind kind, bool exact = false);
  void refuse();
  void take_hand();
  void let_go();
  void feel();
  void command(Cue cue);
  void begin_command(Cue cue);
  void end_chain(bool success);
  void finish_command();
  void begin_action(Action action);
  void think(const Answer& answer);
  void mark(FeedbackKind kind, double said_s, bool exact = false);
  void mark_shown(Action action, double onset_s, Vec2 onset_position);
  void add_marker(const FeedbackMarker& marker);

  Mind* mind_;
  LifeOptions options_;
  World world_;
  Trial trial_;
  bool showing_ = false;
  Led led_;                  // by the hand that leads it now
  bool led_trial_ = false;   // a part of the command in force was shown by hand
  bool led_action_ = false;  // the action under way was
  bool chained_ = false;     // the command in force is one of several
  bool chain_good_ = true;
  bool was_acting_ = false;
  double reaction_s_ = kUsualReaction;  // of the player
  std::optional<std::uint64_t> asked_frame_;
  float expected_ = 0.0f;  // of the current action, when it began
  float unease_ = 0.0f;    // 0 .. 1, about the sofa, at time unease_s_
  double unease_s_ = 0.0;
  Random random_;  // for idle pauses
  double idle_until_s_ = 0.0;
  std::array<bool, kCueCount> succeeded_{};
  std::deque<Onset> onsets_;  // the newest few, oldest first
};

}  // namespace pet
