#ifndef IMPRINT_SAMPLES_PET_GAME_H_
#define IMPRINT_SAMPLES_PET_GAME_H_
// The game without its window: yards, brains, teacher or player, checks and log, one Imprint frame at a time.
//
//   FrameStart start = host.begin_frame();
//   game.begin_frame(start.frame, start.safe_frame);   // answers arrive, the yard moves on, the pets look around
//   game.send_work(start.commands);                    // recorded into the frame's command buffer, or submitted on its queue
//   ... draw game.view() ...
//   host.end_frame(); game.end_frame();
//
// The simulation advances by 1/60 s a frame (times `steps`), whatever the clock on the wall says. Failures throw std::runtime_error.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <imprint/imprint.h>

#include "samples/pet/game_view.h"
#include "samples/pet/options.h"
#include "samples/pet/report.h"
#include "samples/pet/signal.h"

namespace pet {

class Game {
 public:
  // `device` as from VulkanHost::device_info(access), where access fits options.access. Compiles everything before it returns.
  // log gets warnings and errors of Imprint.
  Game(const Options& options, const imp_vk_device_info& device, std::function<void(const std::string&)> log,
       const std::function<void(float)>& progress = {});
  ~Game();  // the GPU must be done with all frames: VulkanHost::wait_idle first
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  // What the person at the window does; takes effect in the next frame.
  void input(const Signal& signal);

  void begin_frame(uint64_t frame, uint64_t safe_frame, uint32_t steps = 1);
  void send_work(VkCommandBuffer commands);
  void end_frame();

  double time_s() const;
  // options.seconds have passed and the last check is in (never without a limit).
  bool finished() const;
  // The state after the last end_frame.
  const GameView& view() const;
  // Figures so far; complete() adds hash and totals once the GPU is idle.
  Report report() const;

  // Saving goes on over the next frames; true once it is on disk. Throws when it failed.
  void save(const std::string& path);
  bool saved();

  // A snapshot of the brain now; it appears in view().snapshots.
  void take_snapshot();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_GAME_H_
