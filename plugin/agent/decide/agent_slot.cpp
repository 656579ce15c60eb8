#include "plugin/agent/decide/agent_slot.h"

#include <algorithm>

namespace imprint::agent {
namespace {

// Keeps the memory.
void clear(Answer& answer) {
  Choice& choice = answer.choice;
  answer.decision = answer.requested_frame = choice.copy_number = choice.command = choice.action =
      choice.version = 0;
  choice.offset = -1;
  choice.goal = 0;
  choice.observation.clear();
  choice.branches.clear();
  choice.continuous.clear();
  choice.allowed.clear();
  answer.values.clear();
}

}  // namespace

AgentSlot::AgentSlot(const ActionSpec& action, std::uint32_t latency_frames, bool takes_turns,
                     bool keeps_masks)
    : branch_sizes_(action.branch_sizes),
      choice_count_(action.choice_count()),
      latency_(latency_frames),
      takes_turns_(takes_turns),
      keeps_masks_(keeps_masks),
      allowed_(choice_count_, 1),
      scolded_(choice_count_, 0) {}

void AgentSlot::occupy() {
  occupied_ = true;
  mode_ = Mode::learning;
  goal_ = 0;
  ++command_;
  std::ranges::fill(allowed_, std::uint8_t{1});
  std::ranges::fill(scolded_, std::uint8_t{0});
  forget_decisions();
  decisions_ = 0;
}

void AgentSlot::vacate() {
  forget_decisions();
  occupied_ = false;
}

void AgentSlot::forget_decisions() {
  open_ = 0;
  waiting_ = false;
  clear(last_);
  oldest_ = 0;
  onsets_.clear();
}

void AgentSlot::drop(std::size_t index, std::size_t count) {
  const auto from = requests_.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(from, from + static_cast<std::ptrdiff_t>(count),
              requests_.begin() + static_cast<std::ptrdiff_t>(open_));
  open_ -= count;
}

void AgentSlot::set_mode(Mode mode) {
  const bool asked = asks_brain();
  mode_ = mode;
  if (asks_brain() == asked) return;
  open_ = 0;
  waiting_ = false;
}

void AgentSlot::set_goal(std::uint32_t goal) {
  goal_ = goal;
  ++command_;
  std::ranges::fill(scolded_, std::uint8_t{0});
}

void AgentSlot::end_episode() {
  ++command_;
  std::ranges::fill(scolded_, std::uint8_t{0});
  forget_decisions();
}

void AgentSlot::set_mask(std::span<const std::uint8_t> allowed) {
  for (std::size_t i = 0; i < allowed_.size(); ++i) allowed_[i] = allowed.empty() || allowed[i] != 0 ? 1 : 0;
}

void AgentSlot::scold(std::uint32_t choice, std::uint64_t command) {
  if (command != command_ || branch_sizes_.empty() || choice >= branch_sizes_[0]) return;
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < branch_sizes_[0]; ++i)
    left += i != choice && allowed_[i] && !scolded_[i] ? 1 : 0;
  if (left > 0) scolded_[choice] = 1;
}

void AgentSlot::write_mask(std::span<std::int32_t> mask) const {
  // Writes only: reading this memory is slow.
  const std::size_t first = branch_sizes_.empty() ? 0 : branch_sizes_[0];
  bool any = false;
  for (std::size_t i = 0; i < allowed_.size(); ++i) {
    const bool may = allowed_[i] && !scolded_[i];
    mask[i] = may ? 1 : 0;
    any |= may && i < first;
  }
  // The game may have narrowed the mask to choices that were scolded before.
  if (!any)
    for (std::size_t i = 0; i < first; ++i) mask[i] = allowed_[i];
}

std::uint64_t AgentSlot::request(std::uint64_t frame, std::span<const float> observation) {
  Answer& pending = open_request(frame);
  pending.choice.observation.assign(observation.begin(), observation.end());
  pending.choice.copy_number = 0;
  pending.choice.offset = -1;
  return pending.decision;
}

std::uint64_t AgentSlot::request_in_place(std::uint64_t frame, std::int32_t offset) {
  if (!pending_copy_) pending_copy_ = PendingCopy{++copies_, offset};
  pending_copy_->offset = offset;
  Answer& pending = open_request(frame);
  pending.choice.observation.clear();
  pending.choice.copy_number = pending_copy_->number;
  pending.choice.offset = offset;
  return pending.decision;
}

Answer& AgentSlot::open_request(std::uint64_t frame) {
  if (!waiting_) {
    for (std::size_t i = open_; i-- > 0;)
      if (requests_[i].answered && requests_[i].answer.requested_frame + latency_ < frame) drop(i, 1);
    // Bounds the memory of a game that asks and never fetches. act() would have skipped what is dropped here.
    if (open_ > 2 * std::size_t{latency_} + 8) drop(0, 1);
    if (open_ == requests_.size()) requests_.emplace_back();
    Request& request = requests_[open_++];
    clear(request.answer);
    request.answered = false;
    request.ticket = ++tickets_;
    request.answer.decision = ++decisions_;
    waiting_ = true;
  }
  Answer& pending = requests_[open_ - 1].answer;
  pending.requested_frame = frame;
  pending.choice.goal = goal_;
  pending.choice.command = command_;
  return pending;
}

AgentSlot::TakenRequest AgentSlot::take(std::uint64_t frame, std::uint64_t version) {
  waiting_ = false;
  Request& request = requests_[open_ - 1];
  if (takes_turns_) request.answer.requested_frame = frame;
  note_mask(request.answer.choice);
  request.answer.choice.version = version;
  return {&request.answer.choice, request.ticket, draws_++};
}

void AgentSlot::note_mask(Choice& choice) const {
  if (!keeps_masks_) return;
  choice.allowed.resize(choice_count_);
  write_mask(choice.allowed);
}

const Choice* AgentSlot::last_seen() {
  if (open_ == 0) return nullptr;
  Choice& seen = requests_[open_ - 1].answer.choice;
  if (waiting_) note_mask(seen);
  return &seen;
}

bool AgentSlot::answer(std::uint64_t ticket, std::span<const std::uint32_t> branches,
                       std::span<const float> continuous, std::span<const float> values) {
  const std::span<Request> open(requests_.data(), open_);
  const auto found = std::ranges::find(open, ticket, &Request::ticket);
  if (found == open.end()) return false;
  found->answered = true;
  found->answer.choice.branches.assign(branches.begin(), branches.end());
  found->answer.choice.continuous.assign(continuous.begin(), continuous.end());
  found->answer.values.assign(values.begin(), values.end());
  return true;
}

AgentSlot::Outcome AgentSlot::act(std::uint64_t frame, double time_s) {
  for (std::size_t i = open_; i-- > 0;) {
    if (!requests_[i].answered || requests_[i].answer.requested_frame + latency_ > frame) continue;
    std::swap(last_, requests_[i].answer);
    last_.is_new = true;
    drop(0, i + 1);
    remember(last_.choice, time_s);
    return Outcome::fresh;
  }
  const bool stands = takes_turns_ && last_.decision > 0;
  if (open_ > 0 && !stands) return Outcome::not_ready;
  last_.is_new = false;
  return last_.decision > 0 ? Outcome::repeated : Outcome::nothing;
}

bool AgentSlot::act_by_heuristic(double time_s, std::span<const std::uint32_t> branches,
                                 std::span<const float> continuous) {
  if (!waiting_) return false;
  waiting_ = false;
  std::swap(last_, requests_[open_ - 1].answer);
  open_ = 0;
  note_mask(last_.choice);
  last_.choice.branches.assign(branches.begin(), branches.end());
  last_.choice.continuous.assign(continuous.begin(), continuous.end());
  last_.values.clear();
  remember(last_.choice, time_s);
  return true;
}

void AgentSlot::remember(Choice& choice, double time_s) {
  choice.action = ++actions_;
  if (onsets_.size() == kHistory) {
    oldest_ = (oldest_ + 1) % kHistory;
    onsets_.erase(onsets_.begin());
  }
  const std::size_t index = (oldest_ + onsets_.size()) % kHistory;
  if (index == history_.size()) history_.emplace_back();
  history_[index] = choice;
  onsets_.push_back(time_s);
}

}  // namespace imprint::agent
