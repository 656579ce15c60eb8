#include "samples/pet/play.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "samples/adapters/inspector.h"
#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/keeping.h"
#include "samples/pet/kept/folders.h"
#include "samples/pet/run.h"
#include "samples/pet/view/stage.h"
#include "samples/pet/yard/reaction_meter.h"
#include "samples/pet/yard/world.h"

namespace pet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostStepsAtOnce = 20;  // below 3 frames a second the pet's time slows down
constexpr double kStatusSeconds = 3.0;
constexpr double kKeepingSeconds = 8.0;

// Turns real time into simulation steps: as many per frame as are due.
class Pace {
 public:
  std::uint32_t steps(bool paused, bool slow) {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    frame_ms_ += (seconds * 1e3 - frame_ms_) * 0.1;
    if (paused) return 0;
    due_ = std::min(due_ + seconds / kStepSeconds * (slow ? 0.5 : 1.0), kMostStepsAtOnce);
    // Screens of about 60 Hz get exactly one step per frame, so that two clocks do not stutter.
    if (!slow && due_ > 0.75 && due_ < 1.25) due_ = 1.0;
    const double whole = std::floor(due_);
    due_ -= whole;
    return static_cast<std::uint32_t>(whole);
  }
  double frame_ms() const { return frame_ms_; }

 private:
  Clock::time_point last_ = Clock::now();
  double due_ = 1.0;
  double frame_ms_ = 1000.0 / 60.0;
};

// A temporary folder; the destructor removes it. Its path is empty if it could not be created.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(temporary_directory() / ("imprint-pet-" + std::to_string(std::random_device()()))) {
    std::error_code error;
    if (!std::filesystem::create_directory(path_, error)) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The next memory to show: from the newest to the oldest, then none.
std::optional<std::size_t> next_then(std::optional<std::size_t> shown, std::size_t memories) {
  if (!shown) return memories > 0 ? std::optional(memories - 1) : std::nullopt;
  return *shown > 0 ? std::optional(*shown - 1) : std::nullopt;
}

Result<> write_report(const std::string& path, const Report& report) {
  std::ofstream file(path);
  file << to_json(report);
  file.close();
  if (!file) return Error{"cannot write " + path};
  return {};
}

class WindowGame {
 public:
  static Result<std::unique_ptr<WindowGame>> create(const Options& options) {
    std::unique_ptr<WindowGame> made(new WindowGame(options));
    PET_ASSIGN(made->stage_, Stage::create(made->stage_options()));
    PET_CHECK(made->open());
    return made;
  }

  Result<int> play() {
    Pace pace;
    while (!game().finished()) {
      const PlayerInput input = stage_->poll();
      if (input.quit) break;
      apply(input);
      PET_CHECK(frame(pace));
    }
    // The last minibatch and the last examination take about fifty frames.
    for (game().finish(); !game().finished();) PET_CHECK(run_->frame());
    std::string problem;
    if (!options_.report.empty()) {
      PET_ASSIGN(const Report report, run_->finish());
      problem = report.save_problem.empty() ? report.log_problem : report.save_problem;
      PET_CHECK(write_report(options_.report, report));
    } else if (!options_.save.empty()) {
      PET_ASSIGN(problem, run_->save(options_.save));
    }
    if (!problem.empty()) return Error{problem};
    const std::uint64_t messages = stage_->host().validation_messages();
    if (messages > 0)
      return Error{"validation layer: found " + std::to_string(messages) + " messages, expected 0"};
    return 0;
  }

 private:
  explicit WindowGame(const Options& options)
      : options_(options),
        own_file_(own_pet_file(options)),
        keeping_(keeping(options, own_file_, exists(own_file_))) {
    options_.memories = memories_.path();
    options_.load = keeping_.load;
    options_.save = keeping_.save;
  }

  static bool exists(const std::string& file) {
    std::error_code error;
    return std::filesystem::exists(file, error);
  }

  Result<> open() {
    const auto log = [](const std::string& message) {
      std::fprintf(stderr, "imprint: %s\n", message.c_str());
    };
    Result<std::unique_ptr<Run>> run = Run::create(&stage_->host(), options_, log);
    if (run) {
      tell((keeping_.remembered ? "It remembers you. " : "") + keeping_.words(), kKeepingSeconds);
    } else {
      if (!run.error().unreadable_pet || !keeping_.remembered) return run.error();
      // An unreadable saved pet is moved aside, so that the player can play.
      std::fprintf(stderr, "pet: %s\n", run.error().message.c_str());
      options_.load.clear();
      const std::optional<std::string> aside = keep_aside(own_file_);
      if (!aside && options_.save == own_file_) options_.save = keeping_.save = "";
      run = Run::create(&stage_->host(), options_, log);
      if (!run) return run.error();
      tell("The saved pet could not be read and is kept in " + aside.value_or(own_file_) +
               "; this is a new one. " + keeping_.words(),
           kKeepingSeconds);
    }
    run_ = std::move(*run);
    std::printf("%s\n", keeping_.words().c_str());
    std::fflush(stdout);
    if (options_.teacher != TeacherKind::none || !options_.replay.empty()) return {};
    if (const std::optional<double> reaction = read_reaction(reaction_file()))
      game().input(reaction_signal(*reaction));
    // The first memory: the pet as it was loaded.
    if (!options_.load.empty()) game().input(signal(SignalKind::snapshot));
    return {};
  }

  StageOptions stage_options() const {
    StageOptions stage;
    stage.device = options_.device;
    stage.validation = options_.validation;
    return stage;
  }

  Game& game() { return run_->game(); }

  void tell(const std::string& text, double seconds = kStatusSeconds) {
    status_ = text;
    status_until_ = Clock::now() + std::chrono::milliseconds(static_cast<int>(seconds * 1e3));
  }

  static Signal reaction_signal(double seconds) {
    return signal(SignalKind::reaction, static_cast<std::uint64_t>(std::llround(seconds * 1e3)));
  }

  void begin_measuring() {
    if (options_.teacher != TeacherKind::none || !options_.replay.empty())
      return tell("A script teaches: its reaction is known.");
    if (!paused_) pause(true);
    meter_.emplace(static_cast<std::uint64_t>(std::random_device()()));
  }

  void end_measuring() {
    if (meter_->done()) {
      game().input(reaction_signal(meter_->seconds()));
      char text[96];
      std::snprintf(text, sizeof text,
                    "You take %.2f s to react: that is where your praise looks from now on.",
                    meter_->seconds());
      tell(text, kKeepingSeconds);
      (void)write_reaction(reaction_file(), meter_->seconds());  // after a failure, F2 measures it again
    }
    meter_.reset();
    pause(false);
  }

  void apply_to_meter(const PlayerInput& input) {
    for (std::uint32_t i = 0; i < input.praise; ++i) meter_->press(true);
    for (std::uint32_t i = 0; i < input.scold; ++i) meter_->press(false);
    if (input.let_go) game().input(signal(SignalKind::let_go));
    if (input.measure || meter_->done()) end_measuring();
  }

  void show_then(std::optional<std::size_t> memory) {
    const OverlayState& overlay = game().overlay();
    if (!game().ghost())
      return tell("Without the ghost (--no-ghost, --kennel) there is nothing to show it with.");
    if (overlay.snapshots.empty()) return tell("No memory yet: F6 keeps one.");
    game().show_then(memory);
  }

  void apply(const PlayerInput& input) {
    if (meter_) return apply_to_meter(input);
    apply_teaching(input);
    apply_yard(input);
    apply_game(input);
  }

  void send(SignalKind kind, std::uint32_t times = 1) {
    for (std::uint32_t i = 0; i < times; ++i) game().input(signal(kind));
  }

  void apply_teaching(const PlayerInput& input) {
    if (game().yard(0).cue != Cue::none) last_cue_ = game().yard(0).cue;
    if (input.cue) {
      last_cue_ = *input.cue;
      game().input(give_cue(*input.cue));
    }
    if (input.chain) {
      last_cue_ = *input.chain;
      game().input(then_cue(*input.chain));
    }
    if (input.name) game().input(name_cue(input.name->cue, input.name->text.data()));
    send(SignalKind::praise, input.praise);
    send(SignalKind::scold, input.scold);
    send(SignalKind::treat, input.treat);
    send(SignalKind::click, input.click);
    if (input.interrupt) send(SignalKind::no);
    if (!input.demonstrate) return;
    // Often the command has just ended. Showing gives it again.
    if (game().yard(0).cue == Cue::none && !input.cue && last_cue_ != Cue::none)
      game().input(give_cue(last_cue_));
    if (last_cue_ == Cue::none) tell("Give a command first, then show it.");
    send(SignalKind::show);
  }

  void apply_yard(const PlayerInput& input) {
    if (input.walk_to)
      game().input(move(SignalKind::move_player, standing_place(game().yard(0), *input.walk_to)));
    if (input.lure_to) game().input(move(SignalKind::lure, *input.lure_to));
    if (input.let_go) send(SignalKind::let_go);
    if (input.ball_to) game().input(move(SignalKind::move_ball, *input.ball_to));
  }

  void apply_game(const PlayerInput& input) {
    if (input.toggle_help) help(!helped_);
    if (input.toggle_pause) pause(!paused_);
    if (input.toggle_inspector) inspects_ = !inspects_;
    if (input.toggle_slow) slow_ = !slow_;
    if (input.toggle_ghost) ghost_ = !ghost_;
    if (input.toggle_learning && !paused_)
      game().input(signal(SignalKind::learning, game().overlay().learning ? 0 : 1));
    if (input.next_mind && !paused_) next_mind();
    if (input.toggle_auto_cue) game().set_auto_cue(!game().overlay().auto_cue);
    if (input.hold_praise)
      tell(*input.hold_praise ? "Hold P down to keep praising." : "One press, one word of praise.");
    if (input.snapshot) {
      send(SignalKind::snapshot);
      tell("Snapshot taken.");
    }
    if (input.undo) game().input(signal(SignalKind::undo));
    if (input.restore) game().input(signal(SignalKind::undo, *input.restore + 1));
    if (input.then) show_then(next_then(game().overlay().then, game().overlay().snapshots.size()));
    if (input.then_at) show_then(*input.then_at);
    if (input.measure) begin_measuring();
    if (input.save && options_.save.empty()) tell(keeping_.words());
    if (input.save && !saving_ && !options_.save.empty()) saving_ = game().save(options_.save);
  }

  // Changes to the next learner; after the last one learning is off, then the first one is next.
  void next_mind() {
    if (options_.kennel > 1) return tell("A kennel keeps the minds that it began with.");
    if (!options_.replay.empty()) return tell("The log says how this pet learns.");
    const OverlayState& overlay = game().overlay();
    if (overlay.learning && overlay.learner == kLearners.back())
      return game().input(signal(SignalKind::learning, 0));
    const std::size_t next = overlay.learning ? static_cast<std::size_t>(overlay.learner) + 1 : 0;
    game().input(signal(SignalKind::learner, static_cast<std::uint64_t>(kLearners[next])));
    if (!overlay.learning) game().input(signal(SignalKind::learning, 1));
  }

  // The game waits, and goes on if it did before.
  void help(bool on) {
    helped_ = on;
    if (on) paused_before_help_ = paused_;
    if (paused_ == (on || paused_before_help_)) return;
    pause(!paused_);
  }

  // A paused pet does not learn.
  void pause(bool on) {
    if (on) learning_before_pause_ = game().overlay().learning;
    game().input(signal(SignalKind::learning, !on && learning_before_pause_ ? 1 : 0));
    paused_ = on;
  }

  Result<> step(const FrameStart& start, std::uint32_t steps) {
    PET_CHECK(game().begin_frame(start.frame, start.safe_frame,
                                 options_.replay.empty() ? steps : game().replay_steps()));
    return game().send_work(start.commands);
  }

  Result<> frame(Pace& pace) {
    // A slow screen shows only some of the steps. The others are frames too, so the pet decides and learns as
    // often per second as on a fast one.
    std::uint32_t steps = pace.steps(paused_ && !meter_, slow_ && !meter_);
    if (meter_) {
      for (; steps > 0; --steps) meter_->step();
    }
    for (; steps > 1; --steps) {
      PET_ASSIGN(const FrameStart start, stage_->host().begin_frame());
      PET_CHECK(step(start, 1));
      PET_CHECK(stage_->host().end_frame());
      PET_CHECK(game().end_frame());
    }
    PET_ASSIGN(const FrameStart start, stage_->begin_frame());
    PET_CHECK(step(start, steps));
    PET_CHECK(draw(pace));
    PET_CHECK(stage_->end_frame());
    PET_CHECK(game().end_frame());
    if (saving_ && game().saved(*saving_)) {
      const std::string& problem = game().save_problem(*saving_);
      tell(problem.empty() ? "Saved in " + options_.save + "." : "Not saved: " + problem);
      saving_.reset();
    }
    return {};
  }

  void inspect() {
    if (!std::exchange(watches_, true))
      game().brain().each_brain([this](const std::string& name, const imprint::game::Brain& brain) {
        inspector_.watch(name, brain);
      });
    inspector_.draw(game().context().context(), "Imprint", &inspects_);
  }

  Result<> draw(const Pace& pace) {
    OverlayState overlay = game().overlay();
    overlay.device = stage_->host().properties().deviceName;
    overlay.frame_ms = static_cast<float>(pace.frame_ms());
    overlay.paused = paused_ && !meter_;
    if (meter_) overlay.lesson = meter_->words();
    overlay.keeping = keeping_.words();
    overlay.slow = slow_;
    overlay.ghost = overlay.ghost && ghost_;
    if (overlay.status.empty() && Clock::now() < status_until_) overlay.status = status_;
    if (inspects_) overlay.further_windows = [this] { inspect(); };
    Show show;
    if (meter_) {
      show.yards.push_back(&meter_->view());
    } else {
      for (std::size_t pet = 0; pet < game().pet_count(); ++pet) show.yards.push_back(&game().yard(pet));
      show.then = overlay.then.has_value();
      if (show.then) show.yards.push_back(game().ghost());
      show.ghost = overlay.ghost && !show.then ? game().ghost() : nullptr;
    }
    return stage_->draw(show, overlay);
  }

  TemporaryFolder memories_;
  Options options_;  // load and save come from keeping_
  std::string own_file_;
  Keeping keeping_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<Run> run_;
  Cue last_cue_ = Cue::none;
  bool paused_ = false, helped_ = false, paused_before_help_ = false;
  bool slow_ = false;
  bool inspects_ = false, watches_ = false;
  imprint::adapters::Inspector inspector_;
  bool ghost_ = true;
  std::optional<std::size_t> saving_;
  std::optional<ReactionMeter> meter_;
  bool learning_before_pause_ = true;
  std::string status_;
  Clock::time_point status_until_{};
};

}  // namespace

Result<int> run_window(const Options& options) {
  PET_ASSIGN(const auto game, WindowGame::create(options));
  return game->play();
}

}  // namespace pet
