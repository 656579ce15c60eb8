#ifndef IMPRINT_SAMPLES_PET_GAME_VIEW_H_
#define IMPRINT_SAMPLES_PET_GAME_VIEW_H_
// What the overlay and the picture show besides the yard: how well the pet knows its tricks, what it was told, and what the brain costs.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/world_view.h"

namespace pet {

inline constexpr size_t kTrickCount = kTricks.size();

// A check: greedy trials of every trick in yards drawn for the occasion, out of sight, while play goes on.
struct Check {
  float seconds = 0.0f;
  float success = 0.0f;                            // 0..1 over all tricks
  std::array<float, kTrickCount> per_trick{};      // in the order of kTricks
  std::optional<float> ghost;                      // the same for the pet that does not learn
};

struct TrickView {
  float checked = 0.0f;        // success in the newest check, 0..1
  uint32_t tried = 0;          // commands given in play
  uint32_t recent_success = 0; // of the last 5 commands in play
  uint32_t recent_tried = 0;   // at most 5
  bool learned = false;        // 4 of the last 5 once
};

struct SnapshotMark {
  uint64_t id = 0;
  double time_s = 0.0;
  float success = 0.0f;  // of the check before it
};

struct FeedbackTick {
  double time_s = 0.0;
  FeedbackKind kind = FeedbackKind::kPraise;
};

struct BrainView {
  bool learning = true;
  uint64_t decisions = 0;
  uint64_t feedbacks = 0;
  uint64_t demonstrations = 0;
  uint64_t minibatches = 0;
  uint64_t samples = 0;
  float loss = 0.0f;
  float updates_per_s = 0.0f;     // minibatches a simulated second, over the last seconds
  uint32_t infer_dispatches = 0;  // of one inference
  uint32_t learn_dispatches = 0;  // of one minibatch
  float infer_gpu_us = 0.0f;      // of the newest measured frame
  float learn_gpu_us = 0.0f;
  float budget_us = 0.0f;
  float frame_cpu_us = 0.0f;
  uint64_t over_budget_frames = 0;
};

struct GameView {
  WorldView world;
  std::optional<WorldView> ghost;   // the pet that does not learn: same yard, same commands; only its pet and ball are its own
  std::vector<WorldView> kennel;    // further pets, each with its own brain and yard
  std::array<TrickView, kTrickCount> tricks{};
  std::vector<Check> curve;
  std::vector<FeedbackTick> ticks;  // all of this run, oldest first
  std::vector<SnapshotMark> snapshots;
  BrainView brain;
  std::optional<Cue> lesson;        // the trick to teach next
  std::string caption;              // a sentence about what just happened, for those who cannot hear it; may be empty
  double caption_since_s = -1e9;
  bool checking = false;            // a check is under way
};

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_GAME_VIEW_H_
