#pragma once
// The state of a Game, for game.cpp, game_setup.cpp and game_play.cpp only.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/brain/keeper.h"
#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/game.h"
#include "samples/pet/kept/session_log.h"
#include "samples/pet/memories.h"
#include "samples/pet/meters.h"
#include "samples/pet/yard/checkup.h"
#include "samples/pet/yard/lessons.h"
#include "samples/pet/yard/life.h"
#include "samples/pet/yard/teacher.h"

namespace pet {

// Everything that a Game holds.
struct Game::State {
  using Log = std::function<void(const std::string&)>;
  enum class Phase : std::uint8_t { playing, settling, examining, done };

  State(const Options& options, std::unique_ptr<SessionLogReader> replay,
        std::unique_ptr<BrainContext> context, std::unique_ptr<PetBrain> brain,
        std::unique_ptr<PetBrain> ghost_brain);
  static Result<std::unique_ptr<State>> create(const Options& wanted, const imp_vk_device_info& device,
                                               const Log& log, const std::function<void(float)>& progress);
  LifeOptions life_options();
  void add_pets(const LifeOptions& life);
  void add_ghost(const LifeOptions& life);
  void listen(std::size_t pet);
  Result<> open_log(bool idle);
  // Compiles, then loads.
  Result<> begin(const Log& log, const std::function<void(float)>& progress);

  void gather(std::size_t pet, std::uint64_t frame, std::vector<Signal>& signals);
  void apply(std::size_t pet, const Signal& signal);
  void apply_to_ghost(const Signal& signal);
  void show_signal(const Signal& signal);
  void rename_command(const Signal& signal);
  void apply_to_brain(const Signal& signal);
  void auto_cue();
  void play(std::uint64_t frame, std::uint32_t steps);
  bool time_up(std::uint64_t at_frame) const;  // learning ends before this frame
  TeacherKind teacher() const { return replay ? replay->header().teacher : options.teacher; }
  void advance_phase(std::uint64_t frame);
  void examine(std::uint64_t frame);
  void record_check();
  void say(const std::string& caption);
  void report_status(const std::string& text);
  void show();
  void load_names(const Log& log);
  void load_lives(const Log& log);
  // Writes names and unease beside a pet's file. Returns why that failed, or "".
  std::string save_beside(const std::string& path);

  std::unique_ptr<SessionLogReader> replay;
  Options options;
  std::unique_ptr<BrainContext> context;
  std::unique_ptr<PetBrain> brain;
  std::unique_ptr<PetBrain> ghost_brain;  // same seed, never taught; may be null
  std::vector<std::unique_ptr<Life>> lives;
  std::unique_ptr<Life> ghost;
  std::vector<std::optional<Teacher>> teachers;  // per pet; nothing: a person teaches it
  std::unique_ptr<SessionLogWriter> log_file;
  Checkup checkup;
  std::unique_ptr<Checkup> ghost_checkup;
  Meters meters;
  Lessons lessons;

  Phase phase = Phase::playing;
  std::uint64_t frame = 0;        // counts this game's frames from 1, as logs do
  std::uint64_t game_frames = 0;  // until the game was finished
  struct InFlight {
    std::uint64_t host_frame;
    std::uint64_t frame;
  };
  std::deque<InFlight> in_flight;  // oldest first
  std::uint64_t safe_frame = 0;
  std::uint64_t settled_frame = 0;
  double clock_s = 0.0;  // simulated time, the same in every yard
  double next_check_s = 0.0;
  double check_began_s = 0.0;
  double silent_until_s = 0.0;
  double status_until_s = 0.0;
  double command_over_s = 0.0;
  bool ended = false;  // finish() was called
  bool closed = false;
  std::vector<Signal> inputs;  // the person's, for the next frame
  std::vector<Signal> signals;
  Random dice;
  std::vector<Check> checks;
  std::vector<IdleDecision> idle;
  bool has_pace = false;
  float pace = 1.0f;  // the first pet's, in idle moments
  Keeper keeper;
  bool has_names = false;  // names were loaded or given, so they may replace the file
  bool unread_names = false, unread_lives = false;     // files beside the loaded pet; never overwritten
  bool keeps_unease = true;                            // false in a replay of a game without unease
  std::map<std::size_t, std::string> beside_problems;  // for files beside the brain, by number of the save
  Memories memories;
  bool ghost_examined = false;  // in the current examination, as the pet that never learned
  OverlayState overlay;
};

}  // namespace pet
