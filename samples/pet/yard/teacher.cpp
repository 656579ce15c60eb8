#include "samples/pet/yard/teacher.h"

#include <limits>
#include <utility>

namespace pet {
namespace {

constexpr double kIdleSeconds = 20.0;  // between two yards of a pet that is left to itself

}  // namespace

const char* name(TeacherKind kind) {
  switch (kind) {
    case TeacherKind::none:
      return "person";
    case TeacherKind::demo:
      return "demo";
    case TeacherKind::praise:
      return "praise";
    case TeacherKind::careless:
      return "careless";
    case TeacherKind::off:
      return "off";
  }
  return "person";
}

TeacherStyle teacher_style(TeacherKind kind) {
  TeacherStyle style;
  switch (kind) {
    case TeacherKind::demo:
      break;
    case TeacherKind::careless:
      style.demonstrations = 2;
      style.reacts = 0.5f;
      style.wrong = 0.15f;
      break;
    case TeacherKind::none:
    case TeacherKind::praise:
    case TeacherKind::off:
      style.demonstrations = 0;
      break;
  }
  return style;
}

Teacher::Teacher(const TeacherStyle& style, std::vector<PlanStage> plan, std::uint64_t seed,
                 std::uint64_t stream)
    : style_(style), plan_(std::move(plan)), random_(seed, 2 * stream + 1), yards_(seed, 2 * stream + 2) {
  if (plan_.empty())
    plan_.push_back(
        {{kTricks.begin(), kTricks.end()}, std::numeric_limits<double>::infinity(), std::nullopt});
  enter_stage(0);
}

void Teacher::enter_stage(std::size_t stage) {
  stage_ = stage;
  if (plan_[stage].wrong) style_.wrong = *plan_[stage].wrong;
  to_show_.clear();
  scolds_ = 0;
  const std::vector<Cue>& tricks = plan_[stage].tricks;
  for (std::uint32_t i = 0; i < style_.demonstrations; ++i)
    to_show_.insert(to_show_.end(), tricks.rbegin(), tricks.rend());
}

void Teacher::see_onset(double now_s, bool right) {
  if (!random_.chance(style_.reacts)) return;
  const bool wrong = random_.chance(style_.wrong);
  reactions_.push_back({now_s + random_.uniform(style_.quickest_s, style_.slowest_s), right != wrong});
}

void Teacher::see_idle(double now_s, bool sofa) {
  if (sofa && plan_[stage_].idle == Idle::forbidden) see_onset(now_s, false);
}

void Teacher::step(const World& world, const Trial& trial, std::vector<Signal>& signals) {
  const double now = world.time_s();
  while (!reactions_.empty() && reactions_.front().at_s <= now) {
    const bool idle = plan_[stage_].idle != Idle::never, praise = reactions_.front().praise;
    // After the last scolding the teacher is silent, so it makes no mistakes either.
    if (!idle || scolds_ < kMostScolds)
      signals.push_back(signal(praise ? SignalKind::praise : SignalKind::scold));
    scolds_ += idle && !praise ? 1 : 0;
    reactions_.pop_front();
  }
  if (waiting_ && trial.over()) {
    waiting_ = false;
    next_command_s_ = now + style_.pause_s;
  }
  if (waiting_ || now < next_command_s_) return;
  if (now >= plan_[stage_].until_s && stage_ + 1 < plan_.size()) enter_stage(stage_ + 1);
  reactions_.clear();  // too late to mean anything
  signals.push_back(signal(SignalKind::redraw, yards_.next()));
  if (plan_[stage_].idle != Idle::never) {
    next_command_s_ = now + kIdleSeconds;
    return;
  }
  waiting_ = true;
  const std::vector<Cue>& tricks = plan_[stage_].tricks;
  if (to_show_.empty()) {
    signals.push_back(give_cue(tricks[random_.below(static_cast<std::uint32_t>(tricks.size()))]));
  } else {
    signals.push_back(give_cue(to_show_.back()));
    signals.push_back(signal(SignalKind::show));
    to_show_.pop_back();
  }
}

}  // namespace pet
