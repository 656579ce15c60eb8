#pragma once
// A pet's life: its yard, the command in force, and the traffic between its body, its mind and the player.

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

inline constexpr std::uint32_t kAnswerFrames =
    2;  // from question to answer, whatever the GPU needs: play does not depend on its speed

// How quickly the quickest player reacts to what the pet begins, for the brain; slower ones have their
// feedback dated back.
inline constexpr double kQuickestReaction = 0.6;
// Of a player who was not measured.
inline constexpr double kUsualReaction = 0.8;
inline constexpr double kSlowestReaction = 3.0;

// A treat takes its time: it may come so long after the action that nothing else is credited for, as after a
// click.
inline constexpr double kSlowestTreat = 4.0;

// More is not waited for.
inline constexpr std::size_t kLongestChain = 4;

// What the pet finds by itself in what nobody asked for, on the scale of praise (1) and scolding (-1): the
// sofa is soft, all else is a little effort.
inline constexpr float kComfort = 0.25f;
inline constexpr float kEffort = -0.05f;

// Caught on the sofa, or on its way there: nothing else can be meant, and a scolding counts as much as a
// treat.
inline constexpr float kCaughtWeight = 2.0f;

// From then on it is uneasy about the sofa, until it is praised there; time heals it too. Wholly uneasy, it
// feels kDread there instead of kComfort when nobody says a word, as if it were scolded, and relief at
// whatever else it does: so what it learned in a few places of the yard is learned for the others. O. H.
// Mowrer, On the dual nature of learning, 1947: fear of a place is learned first, then what avoids it is
// rewarded by relief.
inline constexpr float kDread = -1.0f;
inline constexpr float kRelief = 0.25f;
inline constexpr double kUneaseSeconds = 900.0;  // until a third of it is left

struct LifeOptions {
  bool idle = false;             // without a command it does what it likes, now and then; else it waits
  float shortest_idle_s = 0.8f;  // between two such ideas
  float longest_idle_s = 3.0f;
  bool uneasy = true;  // remembers where it was scolded, as all do but the pets of older logs
  bool taught = true;  // feedback and demonstrations reach the mind
  double brain_reaction_s = kUsualReaction;  // what the mind takes for the player's reaction time
};

class Life {
 public:
  Life(Mind& mind, std::uint64_t seed, const LifeOptions& options);

  // Called when an action of its own begins under a command, with the judgement of that.
  std::function<void(double now_s, Action action, bool right)> on_onset;
  // Called when an action of its own begins that nobody asked for; sofa: it is off to the forbidden place.
  std::function<void(double now_s, Action action, bool sofa)> on_idle;
  // Called when the player has led the pet to something by hand, which shows what is right now.
  std::function<void(Action action)> on_led;
  // Called when a command ends; shown = the player led it through, or to a part of it.
  std::function<void(const Trial& trial, bool shown)> on_trial_end;
  // Called when a chain of commands, given at once, was followed to its end or broke off; success: all of it
  // without a mistake.
  std::function<void(bool success)> on_chain_end;

  // A frame, in this order: the player's signals; the answer to an earlier question; time; the next question.
  void apply(const Signal& signal);
  void act(std::uint64_t frame);
  void step();
  void ask(std::uint64_t frame);

  const World& world() const { return world_; }
  const Trial& trial() const { return trial_; }

  // About the sofa, 0 .. 1, now; 0 where it is no part of this life (LifeOptions::uneasy). It is kept with
  // the pet: no time passes while the game is closed.
  float unease() const;
  void set_unease(float unease);

 private:
  struct Onset {
    double time_s;
    Action action;
    Vec2 position;
    bool unasked;
  };
  // What there was to see when the player's hand took the pet, and what was right then.
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
  float expected_ = 0.0f;  // of the action under way, as it began
  float unease_ = 0.0f;    // 0 .. 1, about the sofa, as it was then:
  double unease_s_ = 0.0;
  Random random_;  // of idle moments
  double idle_until_s_ = 0.0;
  std::array<bool, kCueCount> succeeded_{};
  std::deque<Onset> onsets_;  // of late, oldest first
};

}  // namespace pet
