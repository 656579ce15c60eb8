#pragma once
// The game without its screen: yards, brains, teacher or player, examinations and log, one frame at a time.
//
//   FrameStart start = host.begin_frame();
//   game.begin_frame(start.frame, start.safe_frame, steps);  // answers arrive, the yard moves on, the pets
//   look around game.send_work(start.commands);                          // recorded into the frame's command
//   buffer, or submitted on its queue
//   ... draw game.yard(0), game.overlay() ...
//   host.end_frame(); game.end_frame();
//
// A frame advances the simulation by `steps` of 1/60 s, whatever the clock on the wall says. Failures throw
// std::runtime_error.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <imprint/imprint_vulkan.h>

#include "samples/pet/options.h"
#include "samples/pet/report.h"
#include "samples/pet/view/overlay/overlay_state.h"
#include "samples/pet/yard/signal.h"
#include "samples/pet/yard/temperament.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

class Game {
 public:
  // `device` as from VulkanHost::device_info, with the access of the options; of no account with
  // Access::cpu. Loads options.load (LoadError). Compiles everything before it returns. log gets warnings
  // and errors of Imprint, on any thread; progress 0..1 while compiling.
  Game(const Options& options, const imp_vk_device_info& device,
       const std::function<void(const std::string&)>& log, const std::function<void(float)>& progress = {});
  ~Game();  // the GPU must be done with every frame, and close() called
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  // What the person at the window does to the first pet; takes effect in the next frame.
  void input(const Signal& signal);
  // The game gives the commands, the person only praises.
  void set_auto_cue(bool on);

  // frame is the host's number for what it is recording, rising; the GPU has completed everything up to
  // safe_frame.
  void begin_frame(std::uint64_t frame, std::uint64_t safe_frame, std::uint32_t steps = 1);
  void send_work(VkCommandBuffer commands);
  void end_frame();
  // After the last frame, when the GPU is done with it; the context learns that it may be destroyed.
  void close();

  double time_s() const;
  // How many steps a replayed log gave the frame that comes; 1 without a log.
  std::uint32_t replay_steps();
  // The time is up, learning has ended and the last examination is in.
  bool finished() const;
  // Ends learning now, as if the time were up.
  void finish();

  std::size_t pet_count() const;
  const WorldView& yard(std::size_t pet) const;
  const WorldView* ghost() const;  // null without one; what it is, overlay().then says
  const OverlayState& overlay() const;
  const std::vector<Check>& checks() const;
  // What the pet decided in each trial of the newest examination.
  const std::vector<std::vector<Action>>& exam_decisions() const;
  // What the first pet began although nobody asked for anything, oldest first.
  const std::vector<IdleDecision>& idle_decisions() const;

  // Keeps the pet in a file, and the names of commands and what it is uneasy about beside it, with the brain
  // of the learner that it began with; goes on over the next frames, until saved(); then save_problem() is
  // empty, or why one of them is not on disk. Where no names were loaded and none given in this game, a file
  // of names that is there stays.
  std::size_t save(const std::string& path);
  // Without what is beside it: a file for the sake of its hash.
  std::size_t save_brain(const std::string& path);
  bool saved(std::size_t wish) const;
  const std::string& save_problem(std::size_t wish) const;

  // Why the log is not whole; empty when it is, or when there is none.
  std::string log_problem() const;

  // The ghost becomes the pet as it was at that memory of overlay().snapshots, or again the one that never
  // learned. Needs Options::memories. Takes some frames: overlay().then says when.
  void show_then(std::optional<std::size_t> memory);

  // Figures so far. Device, wall_seconds and weights_hash are the caller's to fill in.
  Report report() const;
  // After the last frame, with the GPU idle. submit_device: the same device, for own submits.
  std::string weights_hash(const imp_vk_device_info& submit_device, const std::string& saved_file) const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace pet
