#pragma once
// Draws a headless game off screen: chooses moments for pictures and composes the sheet.

#include <array>
#include <cstdint>
#include <memory>
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
  // Words for a moment worth a picture; empty if nothing special just happened.
  std::string notice(const Game& game);
  Result<> draw(const Game& game, bool film);
  Result<> write_frame(const Picture& picture);
  SheetData sheet(const Game& game, const Report& report) const;

  enum class Event : std::uint8_t { shown, scolded, praised, spin, bed, gave, count };

  Options options_;
  std::unique_ptr<Stage> stage_;
  std::vector<Moment> moments_;
  WorldView before_;
  std::array<bool, static_cast<std::size_t>(Event::count)> seen_{};
  std::uint32_t pictures_ = 0;
  double next_frame_s_ = 0.0;
};

}  // namespace pet
