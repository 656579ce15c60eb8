#pragma once
// Draws a headless game off screen: decides which moments are worth a picture, and puts the sheet together.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "samples/pet/game.h"
#include "samples/pet/run.h"
#include "samples/pet/view/sheet.h"
#include "samples/pet/view/stage.h"

namespace pet {

class Director {
 public:
  explicit Director(const Options& options);  // throws VulkanError

  VulkanHost& host() { return stage_.host(); }
  // One frame, drawn when a picture is due.
  void frame(Run& run);
  // The sheet, when one was asked for. Throws when it cannot be written.
  void write(const Game& game, const Report& report);

 private:
  // A moment worth remembering, by what just happened in the yard; empty when nothing did.
  std::string notice(const Game& game);

  enum class Event : std::uint8_t { shown, scolded, praised, spin, bed, gave, count };

  Options options_;
  Stage stage_;
  std::vector<Moment> moments_;
  WorldView before_;
  std::array<bool, static_cast<std::size_t>(Event::count)> seen_{};
  std::uint32_t pictures_ = 0;
  double next_frame_s_ = 0.0;
};

}  // namespace pet
