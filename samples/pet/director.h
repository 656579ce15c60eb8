#pragma once
// Draws a headless game off screen: pictures each trick before and after the lessons, and composes the sheet.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samples/pet/game.h"
#include "samples/pet/run.h"
#include "samples/pet/view/sheet.h"
#include "samples/pet/view/stage.h"

namespace pet {

class Director {
 public:
  static Result<std::unique_ptr<Director>> create(const Options& options);

  VulkanHost& host() { return stage_->host(); }
  // One frame, drawn when a picture is due.
  Result<> frame(Run& run);
  // Writes the sheet, if the options ask for one.
  Result<> write(const Game& game, const Report& report);

 private:
  Director(const Options& options, std::unique_ptr<Stage> stage)
      : options_(options), stage_(std::move(stage)) {}
  // One finished answer to a command, as it was just before it ended.
  struct Answered {
    WorldView view;
    Cue cue = Cue::none;
    bool right = false, trial_over = false;
  };
  static std::optional<Answered> answered(const WorldView& before, const WorldView& now);
  // The answer that is worth a picture now, and where the picture belongs.
  struct Due {
    Answered answer;
    std::optional<Moment>* place = nullptr;
  };
  std::optional<Due> due(const Game& game);
  Result<> draw(const Game& game, const WorldView* alone);
  Result<> write_frame(const Picture& picture);
  SheetData sheet(const Game& game, const Report& report) const;
  void add_rows(SheetData& into) const;

  Options options_;
  std::unique_ptr<Stage> stage_;
  std::array<std::optional<Moment>, kTrickCount> untaught_, taught_;  // per trick
  WorldView untaught_before_, taught_before_;                         // one frame ago
  std::uint32_t pictures_ = 0;
  double next_frame_s_ = 0.0;
};

}  // namespace pet
