#include "samples/pet/play.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "samples/pet/pet_brain.h"
#include "samples/pet/run.h"
#include "samples/pet/stage.h"

namespace pet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostStepsAtOnce = 20;  // below 3 frames a second the pet's time slows down
constexpr double kStatusSeconds = 3.0;

// Turns the wall clock into simulation steps: as many a frame as have come due.
class Pace {
 public:
  uint32_t steps(bool paused, bool slow) {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    frame_ms_ += (seconds * 1e3 - frame_ms_) * 0.1;
    if (paused) return 0;
    due_ = std::min(due_ + seconds / kStepSeconds * (slow ? 0.5 : 1.0), kMostStepsAtOnce);
    // Screens of about 60 Hz get exactly a step a frame: no stutter from two clocks that drift past each other.
    if (!slow && due_ > 0.75 && due_ < 1.25) due_ = 1.0;
    const double whole = std::floor(due_);
    due_ -= whole;
    return static_cast<uint32_t>(whole);
  }
  double frame_ms() const { return frame_ms_; }

 private:
  Clock::time_point last_ = Clock::now();
  double due_ = 1.0;
  double frame_ms_ = 1000.0 / 60.0;
};

// Where the window's pet is kept; a kennel has another shape, so another file.
std::string own_save(const Options& options) {
  const std::string folder = data_directory();
  if (folder.empty()) return {};
  const std::string file = options.kennel == 1 ? "pet.imprint" : "kennel-" + std::to_string(options.kennel) + ".imprint";
  return (std::filesystem::path(folder) / file).string();
}

void write_report(const std::string& path, const Report& report) {
  std::ofstream file(path);
  file << to_json(report);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

class WindowGame {
 public:
  explicit WindowGame(const Options& options)
      : options_(options), save_path_(options.save.empty() ? own_save(options) : options.save), stage_(stage_options()) {
    bool remembered = false;
    Options first = options_;
    if (first.load.empty() && !first.fresh && first.replay.empty() && std::filesystem::exists(save_path_)) {
      first.load = save_path_;
      remembered = true;
    }
    const auto log = [](const std::string& message) { std::fprintf(stderr, "imprint: %s\n", message.c_str()); };
    try {
      run_ = std::make_unique<Run>(stage_.host(), first, log);
      if (remembered) tell("It remembers you.");
    } catch (const LoadError& error) {
      if (!remembered) throw;
      // A pet of last night that cannot be read must not keep anybody from playing; it is kept aside.
      std::fprintf(stderr, "pet: %s\n", error.what());
      std::error_code ignored;
      std::filesystem::rename(save_path_, save_path_ + ".unread", ignored);
      run_ = std::make_unique<Run>(stage_.host(), options_, log);
      tell("The saved pet could not be read; this is a new one.");
    }
  }

  int play() {
    Pace pace;
    while (!game().finished()) {
      const PlayerInput input = stage_.poll();
      if (input.quit) break;
      apply(input);
      frame(pace);
    }
    // The last minibatch and a last examination are a matter of some fifty frames.
    for (game().finish(); !game().finished();) run_->frame();
    if (options_.teacher != TeacherKind::kOff && options_.replay.empty() && !save_path_.empty()) run_->save(save_path_);
    if (!options_.report.empty()) {
      const Report report = run_->finish();
      write_report(options_.report, report);
    }
    return 0;
  }

 private:
  StageOptions stage_options() const {
    StageOptions stage;
    stage.device = options_.device;
    stage.validation = options_.validation;
    return stage;
  }

  Game& game() { return run_->game(); }

  void tell(const std::string& text) {
    status_ = text;
    status_until_ = Clock::now() + std::chrono::milliseconds(static_cast<int>(kStatusSeconds * 1e3));
  }

  void apply(const PlayerInput& input) {
    const auto send = [&](SignalKind kind, uint32_t times = 1) {
      for (uint32_t i = 0; i < times; ++i) game().input(signal(kind));
    };
    if (game().yard(0).cue != Cue::kNone) last_cue_ = game().yard(0).cue;
    if (input.cue) {
      last_cue_ = *input.cue;
      game().input(give_cue(*input.cue));
    }
    send(SignalKind::kPraise, input.praise);
    send(SignalKind::kScold, input.scold);
    send(SignalKind::kTreat, input.treat);
    send(SignalKind::kClick, input.click);
    if (input.interrupt) send(SignalKind::kScold);
    if (input.demonstrate) {
      // Often the command has just ended, well or badly: showing it gives it once more.
      if (game().yard(0).cue == Cue::kNone && !input.cue && last_cue_ != Cue::kNone) game().input(give_cue(last_cue_));
      if (last_cue_ == Cue::kNone) tell("Give a command first, then show it.");
      send(SignalKind::kShow);
    }
    if (input.walk_to) game().input(move(SignalKind::kMovePlayer, *input.walk_to));
    if (input.ball_to) game().input(move(SignalKind::kMoveBall, *input.ball_to));
    if (input.toggle_pause) pause(!paused_);
    if (input.toggle_slow) slow_ = !slow_;
    if (input.toggle_ghost) ghost_ = !ghost_;
    if (input.toggle_learning && !paused_) game().input(signal(SignalKind::kLearning, game().overlay().learning ? 0 : 1));
    if (input.toggle_auto_cue) game().set_auto_cue(!game().overlay().auto_cue);
    if (input.snapshot) {
      send(SignalKind::kSnapshot);
      tell("Snapshot taken.");
    }
    if (input.undo) game().input(signal(SignalKind::kUndo));
    if (input.restore) game().input(signal(SignalKind::kUndo, *input.restore + 1));
    if (input.save && !saving_ && !save_path_.empty()) {
      game().save(save_path_);
      saving_ = true;
    }
  }

  // While the yard stands still the pet does not learn either.
  void pause(bool on) {
    if (on) learning_before_pause_ = game().overlay().learning;
    game().input(signal(SignalKind::kLearning, !on && learning_before_pause_ ? 1 : 0));
    paused_ = on;
  }

  void step(const FrameStart& start, uint32_t steps) {
    game().begin_frame(start.frame, start.safe_frame, options_.replay.empty() ? steps : game().replay_steps());
    game().send_work(start.commands);
  }

  void frame(Pace& pace) {
    // A slow screen shows only some of the steps: the others are frames of their own, so that the pet decides and learns as often a second as ever.
    uint32_t steps = pace.steps(paused_, slow_);
    for (; steps > 1; --steps) {
      step(stage_.host().begin_frame(), 1);
      stage_.host().end_frame();
      game().end_frame();
    }
    step(stage_.begin_frame(), steps);

    OverlayState overlay = game().overlay();
    overlay.device = stage_.host().properties().deviceName;
    overlay.frame_ms = static_cast<float>(pace.frame_ms());
    overlay.paused = paused_;
    overlay.slow = slow_;
    overlay.ghost = overlay.ghost && ghost_;
    if (overlay.status.empty() && Clock::now() < status_until_) overlay.status = status_;
    Show show;
    for (size_t pet = 0; pet < game().pet_count(); ++pet) show.yards.push_back(&game().yard(pet));
    show.ghost = overlay.ghost ? game().ghost() : nullptr;
    stage_.draw(show, overlay);
    stage_.end_frame();
    game().end_frame();

    if (saving_ && game().saved()) {
      saving_ = false;
      tell("Saved.");
    }
  }

  Options options_;
  std::string save_path_;
  Stage stage_;
  std::unique_ptr<Run> run_;
  Cue last_cue_ = Cue::kNone;
  bool paused_ = false;
  bool slow_ = false;
  bool ghost_ = true;
  bool saving_ = false;
  bool learning_before_pause_ = true;
  std::string status_;
  Clock::time_point status_until_{};
};

}  // namespace

int run_window(const Options& options) { return WindowGame(options).play(); }

}  // namespace pet
