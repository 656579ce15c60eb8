#include "plugin/agent/learn/samples/trajectory.h"

#include <algorithm>

namespace imprint::agent {

Trajectory::Entry& Trajectory::push() {
  if (count_ == entries_.size()) {
    std::ranges::rotate(entries_, entries_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    entries_.emplace_back();
  }
  Entry& entry = at(count_++);
  entry.sealed = entry.step.followed = entry.step.terminated = false;
  entry.step.reward = 0;
  return entry;
}

void Trajectory::act(const Choice& choice, double time_s) {
  if (is_open()) {
    Transition& before = at(count_ - 1).step;
    before.next = choice;
    before.followed = true;
  }
  Transition& step = push().step;
  step.choice = choice;
  step.onset_s = time_s;
  step.begins = begins_;
  begins_ = false;
}

bool Trajectory::reward(std::uint64_t action, float amount) {
  for (std::size_t i = 0; i < count_; ++i)
    if (Entry& entry = at(i); !entry.sealed && entry.step.choice.action == action) {
      entry.step.reward += amount;
      return true;
    }
  return false;
}

bool Trajectory::reward_newest(float amount) {
  if (!is_open()) return false;
  at(count_ - 1).step.reward += amount;
  return true;
}

bool Trajectory::end(EpisodeEnd end, const Choice* last_seen) {
  if (is_open()) {
    Transition& last = at(count_ - 1).step;
    last.terminated = end == EpisodeEnd::terminated;
    last.followed = last.terminated || last_seen;
    if (!last.terminated && last_seen) last.next = *last_seen;
  }
  const bool dropped = cut();
  for (std::size_t i = 0; i < count_; ++i) at(i).sealed = true;
  return dropped;
}

bool Trajectory::cut() {
  const bool drops = is_open();
  if (drops) --count_;
  begins_ = true;
  return drops;
}

void Trajectory::forget() {
  count_ = 0;
  begins_ = true;
}

bool Trajectory::is_settled(std::size_t i, double time_s, double reach_s) {
  const Entry& entry = at(i);
  // AgentSlot::kHistory bounds the steps of a game whose time stands still.
  const bool out_of_reach =
      reach_s <= 0 || entry.sealed || time_s > entry.step.onset_s + reach_s || count_ > AgentSlot::kHistory;
  return entry.step.followed && out_of_reach;
}

Trajectory::Return Trajectory::returned(double time_s, double reach_s, std::uint32_t most, float discount) {
  Return found;
  float factor = 1;
  for (std::size_t i = 0; i < count_; ++i, factor *= discount) {
    if (!is_settled(i, time_s, reach_s)) return {};
    const Transition& step = at(i).step;
    found.last = &step;
    found.reward += factor * step.reward;
    const bool ends = step.terminated || (i + 1 < count_ ? at(i + 1).step.begins : begins_);
    if (++found.steps == most || ends) {
      found.first = &at(0).step;
      return found;
    }
  }
  return {};
}

void Trajectory::pop() {
  first_ = (first_ + 1) % entries_.size();
  --count_;
}

}  // namespace imprint::agent
