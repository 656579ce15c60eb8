#pragma once
// One game on one device, or on the CPU, from start to end, without a screen. The headless program and the
// learning tests share it.

#include <functional>
#include <memory>
#include <string>

#include "samples/pet/game.h"
#include "samples/pet/view/render/vulkan_host.h"

namespace pet {

class Run {
 public:
  // The host must outlive the run; null with Access::cpu if nothing is drawn. log gets Imprint's warnings and
  // errors.
  static Result<std::unique_ptr<Run>> create(VulkanHost* host, const Options& options,
                                             const std::function<void(const std::string&)>& log,
                                             const std::function<void(float)>& progress = {});
  ~Run();

  Game& game() { return *game_; }
  // A frame that draws: begin and end lie between begin_frame and end_frame of the host.
  Result<> begin(const FrameStart& start);
  Result<> end();
  // One frame without drawing.
  Result<> frame();
  // Saves, in as many frames as it takes. Fails if a frame fails; the value says why a file is not on disk,
  // or is "".
  Result<std::string> save(const std::string& path);
  // Saves where the options say so, ends the game and returns its figures, with Report::save_problem. No
  // frames after this.
  Result<Report> finish();

 private:
  Run(VulkanHost* host, const Options& options) : host_(host), options_(options) {}
  Result<> wait_idle();
  Result<std::string> wait_saved(std::size_t wish);

  VulkanHost* host_;
  std::uint64_t frame_ = 0;  // counts frames without a host
  Options options_;
  std::unique_ptr<Game> game_;
};

QueueAccess queue_access(Access access);

}  // namespace pet
