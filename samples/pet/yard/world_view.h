#pragma once
// Everything visible, as plain values. Drawing needs nothing else and changes nothing.
//
// Yard: x and y in [-5, 5] metres, y away from the camera. Angles in radians, 0 along +x, counter-clockwise.
// Times in simulated seconds.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pet {

struct Vec2 {
  float x = 0.0f;
  float y = 0.0f;
};

inline constexpr float kYardHalf = 5.0f;
inline constexpr double kStepSeconds = 1.0 / 60.0;

enum class Cue : std::uint8_t { none, sit, spin, come, fetch, bed };
inline constexpr std::size_t kCueCount = 6;
inline constexpr std::array<Cue, 5> kTricks = {Cue::sit, Cue::spin, Cue::come, Cue::fetch, Cue::bed};
inline constexpr std::size_t kTrickCount = kTricks.size();

enum class Action : std::uint8_t { sit, lie, spin, jump, bark, go_player, go_ball, give, go_bed, go_bowl };
inline constexpr std::size_t kActionCount = 10;

const char* name(Cue cue);        // "none", "sit", "spin", "come", "fetch", "bed"
const char* name(Action action);  // "sit", "lie down", ..., "go to you", "get the ball", ...
// An idle pet lies down on the sofa, which is not allowed.
inline constexpr Action kSofaAction = Action::lie;
const char* name(Action action, bool unasked);  // "lie on the sofa"

// The body's pose. pose_progress runs 0..1 through it (walk, stand: a cycle of steps or breath).
enum class Pose : std::uint8_t {
  stand,
  walk,
  sit,
  lie,
  spin,  // one whole turn; heading already turns with it
  jump,  // up and down
  bark,
  pick,      // head down to the ball
  give,      // head down, ball let go
  eat,       // at the bowl
  rest,      // curled up in bed
  puzzled,   // tilts its head: undecided
  play_bow,  // after the first success of a trick
};

enum class FeedbackKind : std::uint8_t { praise, scold, treat, click, demonstration };

// One signal of the player, and the past action that gets most of its credit.
struct FeedbackMarker {
  FeedbackKind kind = FeedbackKind::praise;
  double time_s = 0.0;          // when it was given
  bool credited = false;        // false: no action was recent enough
  Action action = Action::sit;  // the credited action
  double onset_s = 0.0;         // when the credited action began
  Vec2 onset_position;          // where the pet was then
  Vec2 position;                // where the pet was when it was given
  bool unasked = false;         // an idle action, without a command
};

struct Drives {  // 0 .. 1
  float hunger = 0.0f;
  float energy = 1.0f;
  float boredom = 0.0f;
};

struct Thought {
  bool valid = false;                          // false before the first answer
  std::array<Action, 2> actions{};             // the two best, best first
  std::array<float, 2> confidence{};           // shares of a softmax over the allowed actions, 0..1
  std::array<float, kActionCount> expected{};  // expected feedback of each action, about -1..1
  bool undecided = false;                      // the two best are close: it tilts its head
  bool unasked = false;                        // no command was in force
};

struct PetView {
  Vec2 position;
  float heading = 0.0f;
  Pose pose = Pose::stand;
  float pose_progress = 0.0f;
  float head_turn = 0.0f;  // relative to heading, -1.4 .. 1.4; towards the player after each action
  float height = 0.0f;     // metres above the ground (jump)
  bool holding = false;    // the ball is in its mouth
  bool acting = false;     // `action` is under way
  bool unasked = false;    // `action` began without a command
  Action action = Action::sit;
  float expected = 0.0f;  // -1..1, smoothed: tail and ears
  Drives drives;
  Thought thought;
};

// The player's hand, when it leads the pet.
struct Lure {
  bool active = false;
  Vec2 at;             // the hand
  bool leads = false;  // letting go here means `action`
  Action action = Action::go_player;
};

enum class Hand : std::uint8_t { rest, praise, scold, treat, click, show, cue };

struct PlayerView {
  Vec2 position;
  float heading = 0.0f;  // towards the pet
  Hand hand = Hand::rest;
  double hand_since_s = -1e9;  // when the hand took that form
};

// One yard with one pet.
struct WorldView {
  double time_s = 0.0;
  std::uint64_t scene = 0;  // rises with each new layout: do not interpolate across it
  PetView pet;
  PlayerView player;
  Vec2 ball;  // in the pet's mouth when pet.holding
  float ball_height = 0.0f;
  Vec2 bowl;
  Vec2 bed;
  Vec2 sofa;              // by the fence, out of the way of other walks; half extents kSofaHalf
  Cue cue = Cue::none;    // the command in force
  std::vector<Cue> then;  // the rest of a chain, next first
  double cue_since_s = -1e9;
  bool demonstrating = false;           // the player leads the pet through the action
  Lure lure;                            // the player's hand leads it
  bool trial_over = false;              // between two commands
  bool trial_success = false;           // of the last command
  std::vector<FeedbackMarker> markers;  // the newest few, oldest first
};

inline constexpr Vec2 kSofaHalf = {1.1f, 0.5f};
inline constexpr float kSofaSeat = 0.54f;  // metres above the ground
inline constexpr float kBedRadius = 0.7f;
inline constexpr float kBowlRadius = 0.3f;
inline constexpr float kBallRadius = 0.14f;

}  // namespace pet
