#include "plugin/agent/learn/trail.h"

#include <algorithm>

namespace imprint::agent {

Trail::Entry& Trail::push() {
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

void Trail::act(const Choice& choice, double time_s) {
  if (is_open()) {
    Step& before = at(count_ - 1).step;
    before.next = choice;
    before.followed = true;
  }
  Step& step = push().step;
  step.choice = choice;
  step.onset_s = time_s;
  step.begins = begins_;
  begins_ = false;
}

void Trail::reward(std::uint64_t action, float amount) {
  for (std::size_t i = 0; i < count_; ++i)
    if (Entry& entry = at(i); !entry.sealed && entry.step.choice.action == action)
      entry.step.reward += amount;
}

void Trail::reward_newest(float amount) {
  if (is_open()) at(count_ - 1).step.reward += amount;
}

void Trail::end(EpisodeEnd end, const Choice* last_seen) {
  if (is_open()) {
    Step& last = at(count_ - 1).step;
    last.terminated = end == EpisodeEnd::terminated;
    last.followed = last.terminated || last_seen;
    if (!last.terminated && last_seen) last.next = *last_seen;
  }
  cut();
  for (std::size_t i = 0; i < count_; ++i) at(i).sealed = true;
}

void Trail::cut() {
  if (is_open()) --count_;
  begins_ = true;
}

void Trail::forget() {
  count_ = 0;
  begins_ = true;
}

const Step* Trail::settled(double time_s, double reach_s) {
  if (count_ == 0) return nullptr;
  const Entry& oldest = at(0);
  // As many as a seat can credit (Seat::kHistory); with times that stand still they would pile up.
  const bool out_of_reach =
      oldest.sealed || time_s > oldest.step.onset_s + reach_s || count_ > Seat::kHistory;
  return oldest.step.followed && out_of_reach ? &oldest.step : nullptr;
}

void Trail::pop() {
  first_ = (first_ + 1) % entries_.size();
  --count_;
}

}  // namespace imprint::agent
