#include "plugin/agent/decide/agent_slot.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace imprint::agent {
namespace {

// A change of one number, times its scale, beyond which a situation is another one.
constexpr float kNewSituation = 0.05f;

// Keeps the memory.
void clear(Answer& answer) {
  Choice& choice = answer.choice;
  answer.decision = answer.requested_frame = choice.copy_number = choice.command = choice.action =
      choice.version = 0;
  choice.offset = -1;
  choice.goal = 0;
  choice.log_probability = 0;
  choice.observation.clear();
  choice.branches.clear();
  choice.continuous.clear();
  choice.drawn.clear();
  choice.state.clear();
  choice.allowed.clear();
  answer.values.clear();
}

}  // namespace

AgentSlot::AgentSlot(const ActionSpec& action, std::uint32_t latency_frames, bool takes_turns, Keeps keeps)
    : branch_sizes_(action.branch_sizes),
      choice_count_(action.choice_count()),
      latency_(latency_frames),
      takes_turns_(takes_turns),
      keeps_(keeps),
      allowed_(choice_count_, 1),
      scolded_(choice_count_, 0) {}

void AgentSlot::occupy() {
  occupied_ = true;
  mode_ = Mode::learning;
  goal_ = 0;
  std::ranges::fill(allowed_, std::uint8_t{1});
  begin_command();
  forget_decisions();
  decisions_ = 0;
}

void AgentSlot::vacate() {
  opponent_ = UINT32_MAX;
  group_ = 0;
  forget_decisions();
  occupied_ = false;
}

void AgentSlot::begin_command() {
  ++command_;
  cornered_ = 0;
  std::ranges::fill(scolded_, std::uint8_t{0});
}

void AgentSlot::stack_observations(std::uint32_t count, std::uint32_t stack) {
  observation_count_ = count;
  stack_.assign(std::size_t{count} * (stack - 1), 0.0f);
}

void AgentSlot::clear_stack() {
  std::ranges::fill(stack_, 0.0f);
  stacked_copy_ = 0;
}

std::span<const float> AgentSlot::newest(const Choice& choice) const {
  const std::span<const float> all(choice.observation);
  return all.last(std::min(all.size(), observation_count_ > 0 ? observation_count_ : all.size()));
}

// Numbers are not stacked on copies, nor copies on numbers.
void AgentSlot::decided(const Choice& choice) {
  if (stack_.empty()) return;
  if (choice.copy_number > 0) {
    std::ranges::fill(stack_, 0.0f);
    stacked_copy_ = choice.copy_number;
    return;
  }
  stacked_copy_ = 0;
  const std::span<const float> seen = newest(choice);
  std::copy(stack_.begin() + static_cast<std::ptrdiff_t>(seen.size()), stack_.end(), stack_.begin());
  std::ranges::copy(seen, stack_.end() - static_cast<std::ptrdiff_t>(seen.size()));
}

void AgentSlot::forget_decisions() {
  clear_stack();
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
  begin_command();
}

void AgentSlot::end_episode() {
  begin_command();
  forget_decisions();
  if (pending_copy_) pending_copy_->closed = true;
}

void AgentSlot::set_mask(std::span<const std::uint8_t> allowed) {
  for (std::size_t i = 0; i < allowed_.size(); ++i) allowed_[i] = allowed.empty() || allowed[i] != 0 ? 1 : 0;
}

void AgentSlot::end_bans_with_situation(std::span<const float> scale) {
  bans_end_with_situation_ = true;
  scale_ = scale;
}

bool AgentSlot::banned() const { return std::ranges::find(scolded_, std::uint8_t{1}) != scolded_.end(); }

bool AgentSlot::sees_again(const Choice& choice) const {
  const std::span<const float> seen = newest(choice);
  if (choice.copy_number != situation_copy_ || seen.size() != situation_.size()) return false;
  for (std::size_t i = 0; i < situation_.size(); ++i) {
    const float change = seen[i] - situation_[i];
    if (std::abs(scale_.empty() ? change : change * scale_[i]) > kNewSituation) return false;
  }
  return true;
}

void AgentSlot::scold(const Choice& meant) {
  if (meant.command != command_ || branch_sizes_.empty() || meant.branches[0] >= branch_sizes_[0]) return;
  if (bans_end_with_situation_) {
    if (!sees_again(meant)) std::ranges::fill(scolded_, std::uint8_t{0});
    const std::span<const float> seen = newest(meant);
    situation_.assign(seen.begin(), seen.end());
    situation_copy_ = meant.copy_number;
  }
  bool others = false, unbanned = false;
  for (std::uint32_t i = 0; i < branch_sizes_[0]; ++i) {
    others |= i != meant.branches[0] && allowed_[i];
    unbanned |= i != meant.branches[0] && allowed_[i] && !scolded_[i];
  }
  if (!others) return;
  if (!unbanned) std::ranges::fill(scolded_, std::uint8_t{0});
  scolded_[meant.branches[0]] = 1;
}

// Before a decision in this situation.
void AgentSlot::review_bans(const Choice& choice) {
  if (!banned()) {
    cornered_ = 0;
    return;
  }
  if (bans_end_with_situation_) {
    if (!sees_again(choice)) std::ranges::fill(scolded_, std::uint8_t{0});
    return;
  }
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < branch_sizes_[0]; ++i) left += allowed_[i] && !scolded_[i] ? 1 : 0;
  cornered_ = left == 1 ? cornered_ + 1 : 0;
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
  pending.choice.observation.assign(stack_.begin(), stack_.end());
  pending.choice.observation.insert(pending.choice.observation.end(), observation.begin(), observation.end());
  pending.choice.copy_number = 0;
  pending.choice.offset = -1;
  return pending.decision;
}

std::uint64_t AgentSlot::request_in_place(std::uint64_t frame, std::int32_t offset) {
  if (!pending_copy_ || pending_copy_->closed) pending_copy_ = PendingCopy{++copies_, offset, stacked_copy_};
  pending_copy_->offset = offset;
  if (stacked_copy_ != pending_copy_->number) pending_copy_->before = stacked_copy_;
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
  review_bans(request.answer.choice);
  note_mask(request.answer.choice);
  request.answer.choice.version = version;
  decided(request.answer.choice);
  return {&request.answer.choice, request.ticket, draws_++};
}

void AgentSlot::note_mask(Choice& choice) const {
  if (keeps_ == Keeps::nothing) return;
  choice.allowed.resize(choice_count_);
  write_mask(choice.allowed);
}

// The softmax over each branch's allowed choices, times the density of the continuous actions.
void AgentSlot::note_probability(Answer& answer, float log_density) const {
  double total = double{log_density};
  std::size_t first = 0;
  for (std::size_t b = 0; b < branch_sizes_.size(); first += branch_sizes_[b], ++b) {
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t i = first; i < first + branch_sizes_[b]; ++i)
      if (answer.choice.allowed[i]) highest = std::max(highest, double{answer.values[i]});
    for (std::size_t i = first; i < first + branch_sizes_[b]; ++i)
      if (answer.choice.allowed[i]) sum += std::exp(answer.values[i] - highest);
    total += answer.values[first + answer.choice.branches[b]] - highest - std::log(sum);
  }
  answer.choice.log_probability = static_cast<float>(total);
}

const Choice* AgentSlot::last_seen() {
  if (open_ == 0) return nullptr;
  Choice& seen = requests_[open_ - 1].answer.choice;
  if (waiting_) note_mask(seen);
  return &seen;
}

bool AgentSlot::answer(std::uint64_t ticket, std::span<const std::uint32_t> branches,
                       std::span<const float> continuous, std::span<const float> values, const Drawn& drawn,
                       std::span<const float> state) {
  const std::span<Request> open(requests_.data(), open_);
  const auto found = std::ranges::find(open, ticket, &Request::ticket);
  if (found == open.end()) return false;
  found->answered = true;
  found->answer.choice.branches.assign(branches.begin(), branches.end());
  found->answer.choice.continuous.assign(continuous.begin(), continuous.end());
  found->answer.choice.drawn.assign(drawn.numbers.begin(), drawn.numbers.end());
  found->answer.choice.state.assign(state.begin(), state.end());
  found->answer.values.assign(values.begin(), values.end());
  if (keeps_ == Keeps::masks_and_probabilities) note_probability(found->answer, drawn.log_density);
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
  decided(last_.choice);
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
