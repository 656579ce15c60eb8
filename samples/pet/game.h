#pragma once
// The game without its screen: yards, brains, teacher or player, examinations and log. One frame:
//
//   start = host.begin_frame()
//   game.begin_frame(start.frame, start.safe_frame, steps)   answers arrive, the yard moves on, the pets
//   observe game.send_work(start.commands)                           records or submits Imprint's work
//   ... draw game.yard(0), game.overlay() ...
//   host.end_frame(), game.end_frame()
//
// A frame advances the simulation by `steps` of 1/60 s, however long it takes. After a failure the game is
// over.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <imprint/imprint_vulkan.h>

#include "samples/pet/base/result.h"
#include "samples/pet/options.h"
#include "samples/pet/report.h"
#include "samples/pet/view/overlay/overlay_state.h"
#include "samples/pet/yard/signal.h"
#include "samples/pet/yard/temperament.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

class BrainContext;
class PetBrain;

class Game {
 public:
  // `device` comes from VulkanHost::device_info, with the access of the options; ignored with Access::cpu.
  // Compiles everything, then loads options.load (Error::unreadable_pet). log gets Imprint's warnings and
  // errors, on any thread; progress gets 0..1 while compiling.
  static Result<std::unique_ptr<Game>> create(const Options& options, const imp_vk_device_info& device,
                                              const std::function<void(const std::string&)>& log,
                                              const std::function<void(float)>& progress = {});
  ~Game();  // after close(), with the GPU idle
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  // A signal of the person at the window to the first pet. Takes effect in the next frame.
  void input(const Signal& signal);
  // The game gives the commands; the person only praises and scolds.
  void set_auto_cue(bool on);

  // frame: the host's rising number of the frame being recorded. The GPU has completed all frames up to
  // safe_frame.
  Result<> begin_frame(std::uint64_t frame, std::uint64_t safe_frame, std::uint32_t steps = 1);
  Result<> send_work(VkCommandBuffer commands);
  Result<> end_frame();
  // After the last frame, when the GPU has finished it: tells the context that it may be destroyed.
  void close();

  double time_s() const;
  // How many steps a replayed log gives the next frame; 1 without a log.
  std::uint32_t replay_steps();
  // The time is up, learning has ended and the last examination is in.
  bool finished() const;
  // Ends learning now, as if the time were up.
  void finish();

  std::size_t pet_count() const;
  const WorldView& yard(std::size_t pet) const;
  const WorldView* ghost() const;  // null without one; overlay().then says which pet it shows
  const OverlayState& overlay() const;
  BrainContext& context();
  const PetBrain& brain() const;
  const std::vector<Check>& checks() const;
  // The pet's decisions in each trial of the newest examination.
  const std::vector<std::vector<Action>>& exam_decisions() const;
  // Actions that the first pet began without a command, oldest first.
  const std::vector<IdleDecision>& idle_decisions() const;

  // Saves the brain of the first learner in a file, and names and unease beside it. It takes several frames,
  // until saved(). Then save_problem() is empty, or says why a file is not on disk. An existing file of names
  // stays if this game loaded and gave none.
  std::size_t save(const std::string& path);
  // Without the files beside it: for its hash.
  std::size_t save_brain(const std::string& path);
  bool saved(std::size_t wish) const;
  const std::string& save_problem(std::size_t wish) const;

  // Why the log is incomplete; empty if it is complete, or if there is none.
  std::string log_problem() const;

  // The ghost becomes the pet as it was at that memory of overlay().snapshots; nothing: the pet that never
  // learned. Needs Options::memories. Takes some frames; overlay().then says when.
  void show_then(std::optional<std::size_t> memory);

  // Figures so far. The caller fills in device, wall_seconds and weights_hash.
  Report report() const;
  // After the last frame, with the GPU idle. submit_device: the same device, declared for submits.
  Result<std::string> weights_hash(const imp_vk_device_info& submit_device,
                                   const std::string& saved_file) const;

 private:
  struct State;
  explicit Game(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pet
