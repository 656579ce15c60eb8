#include "samples/pet/director.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "samples/pet/yard/lessons.h"

namespace pet {
namespace {

constexpr double kFrameSeconds = 0.25;  // between two pictures of --frames
constexpr std::size_t kMostMoments = 6;

StageOptions stage_options(const Options& options) {
  StageOptions stage;
  stage.device = options.device;
  stage.validation = options.validation;
  stage.window = false;
  return stage;
}

std::string quoted(Cue cue) { return std::string("\"") + name(cue) + "\""; }

std::string at(double seconds) { return std::to_string(static_cast<int>(seconds)) + " s: "; }

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

std::string Director::notice(const Game& game) {
  const WorldView now = game.yard(0);
  const WorldView before = std::exchange(before_, now);
  if (options_.picture.empty() || moments_.size() >= kMostMoments - 1) return {};
  const auto once = [&](Event event) { return !std::exchange(seen_[static_cast<std::size_t>(event)], true); };
  const bool own = now.cue != Cue::none && !now.demonstrating;

  if (now.demonstrating && now.cue == Cue::fetch && now.pet.holding && now.pet.pose == Pose::walk &&
      once(Event::shown)) {
    return at(now.time_s) + quoted(now.cue) + " is shown";
  }
  if (!now.markers.empty() &&
      (before.markers.empty() || before.markers.back().time_s < now.markers.back().time_s)) {
    const FeedbackMarker& marker = now.markers.back();
    if (marker.kind == FeedbackKind::scold && marker.credited && own && once(Event::scolded)) {
      return at(now.time_s) + quoted(now.cue) + "? \"No!\", for: " + name(marker.action);
    }
    if (marker.kind == FeedbackKind::praise && marker.credited && own && once(Event::praised)) {
      return at(now.time_s) + "\"Good!\", for: " + name(marker.action);
    }
  }
  const bool success = now.trial_over && !before.trial_over && now.trial_success && !before.demonstrating;
  if (success && before.cue == Cue::spin && once(Event::spin))
    return at(now.time_s) + "\"spin\", all by itself";
  if (success && before.cue == Cue::bed && now.time_s > 20.0 && once(Event::bed))
    return at(now.time_s) + "\"bed\", without any help";
  if (own && now.cue == Cue::fetch && now.pet.pose == Pose::give && now.time_s > 30.0 && once(Event::gave)) {
    return at(now.time_s) + "\"fetch\": there, run, take, back, give";
  }
  return {};
}

Result<> Director::draw(const Game& game, bool film) {
  Show show;
  for (std::size_t pet = 0; pet < game.pet_count(); ++pet) show.yards.push_back(&game.yard(pet));
  show.ghost = film ? game.ghost() : nullptr;
  show.panels = film;
  OverlayState overlay = game.overlay();
  overlay.device = host().properties().deviceName;
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
  std::string moment = notice(game);
  if (moments_.empty() && moment.empty() && !options_.picture.empty() && game.time_s() > 0.5)
    moment = at(0.0) + "it knows nothing yet";
  const bool last = game.finished() && !options_.picture.empty();
  if (last) moment = at(game.time_s()) + "what it has become";
  const bool film = !options_.frames.empty() && game.time_s() >= next_frame_s_ && !game.finished();
  const bool drawn = film || !moment.empty();
  if (drawn) PET_CHECK(draw(game, film));
  PET_CHECK(stage_->end_frame());
  PET_CHECK(run.end());
  if (!drawn) return {};
  PET_ASSIGN(Picture picture, stage_->capture());
  if (film) PET_CHECK(write_frame(picture));
  if (!moment.empty()) moments_.push_back({std::move(picture), std::move(moment)});
  return {};
}

Result<> Director::write(const Game& game, const Report& report) {
  if (options_.picture.empty()) return {};
  if (!write_png(draw_sheet(sheet(game, report)), options_.picture))
    return Error{"cannot write " + options_.picture};
  return {};
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
  made.moments = moments_;
  made.curve = overlay.curve;
  made.ghost_curve = overlay.ghost_curve;
  made.ticks = overlay.ticks;
  for (std::size_t i = 0; i < kTrickCount && !report.checks.empty(); ++i) {
    made.tricks.push_back({overlay.names.of(kTricks[i]), report.checks.front().per_trick[i],
                           report.checks.back().per_trick[i]});
  }
  char line[160];
  const auto fact = [&] { made.facts.emplace_back(line); };
  std::snprintf(line, sizeof line, "%llu signals; %llu actions shown in lessons",
                static_cast<unsigned long long>(report.feedbacks),
                static_cast<unsigned long long>(report.demonstrations));
  fact();
  std::snprintf(line, sizeof line, "%llu minibatches, %llu decisions",
                static_cast<unsigned long long>(report.minibatches),
                static_cast<unsigned long long>(report.decisions));
  fact();
  std::snprintf(line, sizeof line, "%s: infer %.0f us, learn %.0f us (medians of %zu and %zu frames)",
                report.access == Access::cpu ? "CPU" : "GPU", report.infer_gpu_us.median,
                report.learn_gpu_us.median, report.infer_gpu_us.frames, report.learn_gpu_us.frames);
  fact();
  std::snprintf(line, sizeof line, "99 %% of frames within %.0f us; budget %u us", report.gpu_us.p99,
                report.budget_us);
  fact();
  return made;
}

}  // namespace pet
