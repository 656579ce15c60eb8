#include "samples/pet/director.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "samples/pet/yard/lessons.h"

namespace pet {
namespace {

constexpr double kFrameSeconds = 0.25;     // between two pictures of --frames
constexpr std::size_t kColumns = 3;        // of the sheet: tricks, before and after
constexpr double kUntaughtSeconds = 10.0;  // a pet counts as untaught so long, without a ghost
constexpr double kUnknownLateSeconds =
    30;  // when the pictures of the taught pet begin, in a game without end
// The tricks that a picture shows best come first.
constexpr std::array<Cue, kTrickCount> kShownFirst = {Cue::fetch, Cue::bed, Cue::come, Cue::spin, Cue::sit};

StageOptions stage_options(const Options& options) {
  StageOptions stage;
  stage.device = options.device;
  stage.validation = options.validation;
  stage.window = false;
  return stage;
}

const char* does(Action action) {
  switch (action) {
    case Action::sit:
      return "it sits down";
    case Action::lie:
      return "it lies down";
    case Action::spin:
      return "it spins";
    case Action::jump:
      return "it jumps";
    case Action::bark:
      return "it barks";
    case Action::go_player:
      return "it comes";
    case Action::go_ball:
      return "it gets the ball";
    case Action::give:
      return "it brings the ball";
    case Action::go_bed:
      return "it goes to bed";
    case Action::go_bowl:
      return "it goes to its bowl";
  }
  return "";
}

// The action that a command begins with or, for a pet with the ball, goes on with.
bool belongs(Cue cue, Action action) {
  switch (cue) {
    case Cue::sit:
      return action == Action::sit;
    case Cue::spin:
      return action == Action::spin;
    case Cue::come:
      return action == Action::go_player;
    case Cue::bed:
      return action == Action::go_bed;
    case Cue::fetch:
      return action == Action::go_ball || action == Action::go_player || action == Action::give;
    case Cue::none:
      break;
  }
  return false;
}

std::string percent(float share) { return std::to_string(static_cast<int>(share * 100.0f + 0.5f)) + " %"; }

const char* words(TeacherKind teacher) {
  switch (teacher) {
    case TeacherKind::demo:
      return "each trick shown once, then praise and scolding";
    case TeacherKind::praise:
      return "praise and scolding only";
    case TeacherKind::careless:
      return "a careless teacher: shows twice, then reacts half of the time, often wrongly";
    case TeacherKind::off:
      return "learning off";
    case TeacherKind::none:
      break;
  }
  return "a person";
}

}  // namespace

Result<std::unique_ptr<Director>> Director::create(const Options& options) {
  PET_ASSIGN(auto stage, Stage::create(stage_options(options)));
  if (!options.frames.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.frames, error);
    if (error) return Error{"--frames: cannot make the folder " + options.frames + ": " + error.message()};
  }
  return std::unique_ptr<Director>(new Director(options, std::move(stage)));
}

std::optional<Director::Answered> Director::answered(const WorldView& before, const WorldView& now) {
  if (before.cue == Cue::none || before.demonstrating || before.scene != now.scene) return std::nullopt;
  if (!before.pet.acting || now.pet.acting) return std::nullopt;
  const bool over = now.trial_over && !before.trial_over;
  return Answered{before, before.cue, over ? now.trial_success : belongs(before.cue, before.pet.action),
                  over};
}

std::optional<Director::Due> Director::due(const Game& game) {
  const WorldView taught = game.yard(0), untaught = game.ghost() ? *game.ghost() : taught;
  const WorldView taught_before = std::exchange(taught_before_, taught),
                  untaught_before = std::exchange(untaught_before_, untaught);
  if (options_.picture.empty()) return std::nullopt;
  // Before the lessons: the first wrong answer.
  if (game.ghost() || untaught.time_s < kUntaughtSeconds) {
    const std::optional<Answered> found = answered(untaught_before, untaught);
    if (found && !found->right && !untaught_[trick_index(found->cue)])
      return Due{*found, &untaught_[trick_index(found->cue)]};
  }
  // After them: the first success, or what there is.
  const double late = options_.seconds > 0.0 ? options_.seconds / 2 : kUnknownLateSeconds;
  const std::optional<Answered> found = answered(taught_before, taught);
  if (!found || !found->trial_over || taught.time_s < late) return std::nullopt;
  std::optional<Moment>& place = taught_[trick_index(found->cue)];
  if (place && (place->right || !found->right)) return std::nullopt;
  return Due{*found, &place};
}

// alone: this yard and nothing else, from near. Without it: the game as its window shows it.
Result<> Director::draw(const Game& game, const WorldView* alone) {
  Show show;
  if (alone) {
    show.yards = {alone};
  } else {
    for (std::size_t pet = 0; pet < game.pet_count(); ++pet) show.yards.push_back(&game.yard(pet));
    show.ghost = game.ghost();
  }
  show.panels = !alone;
  OverlayState overlay = game.overlay();
  overlay.device = host().properties().deviceName;
  if (alone) overlay.caption.clear(), overlay.kennel.clear();
  return stage_->draw(show, overlay);
}

Result<> Director::write_frame(const Picture& picture) {
  next_frame_s_ += kFrameSeconds;
  char file[32];
  std::snprintf(file, sizeof file, "frame-%05u.png", pictures_++);
  const std::string path = (std::filesystem::path(options_.frames) / file).string();
  if (!write_png(picture, path)) return Error{"cannot write " + path};
  return {};
}

Result<> Director::frame(Run& run) {
  Game& game = run.game();
  PET_ASSIGN(const FrameStart start, stage_->begin_frame());
  PET_CHECK(run.begin(start));
  const bool film = !options_.frames.empty() && game.time_s() >= next_frame_s_ && !game.finished();
  const std::optional<Due> moment = due(game);
  if (moment)
    PET_CHECK(draw(game, &moment->answer.view));
  else if (film)
    PET_CHECK(draw(game, nullptr));
  PET_CHECK(stage_->end_frame());
  PET_CHECK(run.end());
  if (!moment && !film) return {};
  PET_ASSIGN(Picture picture, stage_->capture());
  if (!moment) return write_frame(picture);
  const Answered& answer = moment->answer;
  const std::string told = std::string("\"") + game.overlay().names.of(answer.cue) + "\": ";
  *moment->place = Moment{std::move(picture), told + does(answer.view.pet.action), answer.right};
  return {};
}

Result<> Director::write(const Game& game, const Report& report) {
  if (options_.picture.empty()) return {};
  if (!write_png(draw_sheet(sheet(game, report)), options_.picture))
    return Error{"cannot write " + options_.picture};
  return {};
}

// Tricks with both pictures and a success come first, so that each column shows one lesson.
void Director::add_rows(SheetData& into) const {
  std::vector<Cue> order(kShownFirst.begin(), kShownFirst.end());
  std::ranges::stable_sort(order, std::greater(), [&](Cue cue) {
    const std::optional<Moment>&before = untaught_[trick_index(cue)], &after = taught_[trick_index(cue)];
    return (before && after ? 2 : 0) + (after && after->right ? 1 : 0);
  });
  order.resize(kColumns);
  MomentRow before{"Before the lessons", {}};
  MomentRow after{"After the lessons", {}};
  for (const Cue cue : order) {
    if (const auto& moment = untaught_[trick_index(cue)]) before.moments.push_back(*moment);
    if (const auto& moment = taught_[trick_index(cue)]) after.moments.push_back(*moment);
  }
  into.rows = {std::move(before), std::move(after)};
}

SheetData Director::sheet(const Game& game, const Report& report) const {
  const OverlayState& overlay = game.overlay();
  SheetData made;
  const std::string who = report.pets > 1 ? std::to_string(report.pets) + " pets" : overlay.pet_name;
  const std::string share = percent(report.final_success) + " of the commands",
                    seconds = std::to_string(static_cast<int>(report.simulated_seconds));
  const char* follow = report.pets > 1 ? " follow " : " follows ";
  if (report.teacher == TeacherKind::off)
    made.title = who + ", with learning off," + follow + share;
  else if (learned(report) == true)
    made.title = who + " learned to follow " + share + " in " + seconds + " seconds";
  else
    made.title = who + follow + share + " after " + seconds + " seconds";
  made.subtitle = std::string(words(report.teacher)) + "; learner " + name(report.learner) + "; seed " +
                  std::to_string(report.seed) + "; " + report.device;
  add_rows(made);
  made.curve = overlay.curve;
  made.ghost_curve = overlay.ghost_curve;
  made.ticks = overlay.ticks;
  for (std::size_t i = 0; i < kTrickCount && !report.checks.empty(); ++i) {
    made.tricks.push_back({overlay.names.of(kTricks[i]), report.checks.front().per_trick[i],
                           report.checks.back().per_trick[i]});
  }
  char line[160];
  const auto fact = [&] { made.facts.emplace_back(line); };
  std::snprintf(line, sizeof line, "%llu decisions, %llu minibatches",
                static_cast<unsigned long long>(report.decisions),
                static_cast<unsigned long long>(report.minibatches));
  fact();
  const bool software = stage_->host().properties().deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const char* what = report.access == Access::cpu ? "CPU" : software ? "software GPU" : "GPU";
  std::snprintf(line, sizeof line, "%s time per frame: median %.0f us to infer, %.0f us to learn", what,
                report.infer_gpu_us.median, report.learn_gpu_us.median);
  fact();
  std::snprintf(line, sizeof line, "budget %u us%s", report.budget_us,
                software ? ", which a software GPU may miss" : "");
  fact();
  return made;
}

}  // namespace pet
