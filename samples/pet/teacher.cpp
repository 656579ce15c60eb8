#include "samples/pet/teacher.h"

namespace pet {

TeacherStyle teacher_style(TeacherKind kind) {
  TeacherStyle style;
  switch (kind) {
    case TeacherKind::kDemo: break;
    case TeacherKind::kCareless:
      style.demonstrations = 2;
      style.reacts = 0.5f;
      style.wrong = 0.15f;
      break;
    case TeacherKind::kNone:
    case TeacherKind::kPraise:
    case TeacherKind::kOff: style.demonstrations = 0; break;
  }
  return style;
}

Teacher::Teacher(const TeacherStyle& style, uint64_t seed, uint64_t stream)
    : style_(style), random_(seed, 2 * stream + 1), yards_(seed, 2 * stream + 2) {
  for (uint32_t i = 0; i < style.demonstrations; ++i) to_show_.insert(to_show_.end(), kTricks.rbegin(), kTricks.rend());
}

void Teacher::see_onset(double now_s, bool right) {
  if (!random_.chance(style_.reacts)) return;
  const bool wrong = random_.chance(style_.wrong);
  reactions_.push_back({now_s + random_.uniform(style_.quickest_s, style_.slowest_s), right != wrong});
}

void Teacher::step(const World& world, const Trial& trial, std::vector<Signal>& signals) {
  const double now = world.time_s();
  while (!reactions_.empty() && reactions_.front().at_s <= now) {
    signals.push_back(signal(reactions_.front().praise ? SignalKind::kPraise : SignalKind::kScold));
    reactions_.pop_front();
  }
  if (waiting_ && trial.over()) {
    waiting_ = false;
    next_command_s_ = now + style_.pause_s;
  }
  if (waiting_ || now < next_command_s_) return;
  waiting_ = true;
  reactions_.clear();  // too late to mean anything
  signals.push_back(signal(SignalKind::kRedraw, yards_.next()));
  if (to_show_.empty()) {
    signals.push_back(give_cue(kTricks[random_.below(kTrickCount)]));
  } else {
    signals.push_back(give_cue(to_show_.back()));
    signals.push_back(signal(SignalKind::kShow));
    to_show_.pop_back();
  }
}

}  // namespace pet
