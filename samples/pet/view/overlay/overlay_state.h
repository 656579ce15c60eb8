#pragma once
// Everything that the overlay shows except the worlds: filled by the game.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/yard/cue_names.h"
#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/lessons.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

struct CurvePoint {
  float seconds = 0.0f;
  float success = 0.0f;  // 0..1
};

struct FeedbackTick {
  float seconds = 0.0f;
  FeedbackKind kind = FeedbackKind::praise;
};

struct SnapshotEntry {
  float seconds = 0.0f;
  float success = 0.0f;  // at that time, 0..1
  bool examined = true;  // false: success has no meaning yet
};

struct OverlayState {
  std::string device;  // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string pet_name = "Pip";
  std::string temperament;  // "lively, likes to spin"; empty while nothing stands out
  double seconds = 0.0;     // simulated

  CueNames names;  // of commands
  std::array<TrickScore, kTricks.size()> tricks{};
  TrickScore rule;   // off the sofa
  TrickScore chain;  // several commands at once
  std::vector<CurvePoint> curve;
  std::vector<CurvePoint> ghost_curve;  // the pet that does not learn
  std::vector<FeedbackTick> ticks;
  std::vector<SnapshotEntry> snapshots;  // oldest first
  // The ghost is the pet at this snapshot; nothing: the pet that never learned.
  std::optional<std::size_t> then;

  // Cost of learning.
  float infer_gpu_us = 0.0f;  // per frame, smoothed
  float learn_gpu_us = 0.0f;
  float budget_us = 0.0f;
  float frame_cpu_us = 0.0f;  // inside Imprint's calls
  float frame_ms = 0.0f;      // the whole frame
  float updates_per_second = 0.0f;
  std::uint64_t minibatches = 0;
  std::uint64_t over_budget_frames = 0;

  bool paused = false;
  bool slow = false;
  bool ghost = false;
  bool learning = true;
  Learner learner = Learner::feedback;  // that the brain in use has
  bool auto_cue = false;
  std::string lesson;   // one line: what to try now
  std::string caption;  // what can be heard: "woof!", "click"; empty = silence
  std::string status;   // "saved", "snapshot taken": shown for a moment
  std::string keeping;  // one line: where this pet is kept

  std::function<void()> further_windows;  // draws Dear ImGui windows of others; may be empty

  std::vector<float> kennel;  // kennel mode: success of each pet, 0..1; empty otherwise
};

}  // namespace pet
