#pragma once
// One game on one device, or on the CPU, from start to end, without a screen: what the headless program and
// the learning tests share.

#include <functional>
#include <string>

#include "samples/pet/game.h"
#include "samples/pet/view/render/vulkan_host.h"

namespace pet {

class Run {
 public:
  // log gets Imprint's warnings and errors. The host must outlive the run; null where nothing is drawn and
  // the CPU learns (Access::cpu).
  Run(VulkanHost* host, const Options& options, std::function<void(const std::string&)> log,
      const std::function<void(float)>& progress = {});
  ~Run();

  Game& game() { return *game_; }
  // Between begin_frame and end_frame of the host, if it draws; else leave it to frame().
  void begin(const FrameStart& start);
  void end();
  // One frame without drawing.
  void frame();
  // Saves, with as many frames as it takes; gives why that failed, or nothing.
  std::string save(const std::string& path);
  // Saves where the options say so, ends the game and says what it came to: Report::save_problem too. No
  // frames after this.
  Report finish();

 private:
  void wait_idle();
  std::string wait_saved(std::size_t wish);

  VulkanHost* host_;
  std::uint64_t frame_ = 0;  // without a host
  Options options_;
  std::unique_ptr<Game> game_;
};

QueueAccess queue_access(Access access);

}  // namespace pet
