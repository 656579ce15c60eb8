#include "plugin/agent/trail.h"

#include <algorithm>

namespace imprint::agent {

void Trail::act(const Choice& choice, double time_s) {
  if (is_open()) {
    Step& before = steps_.back().step;
    before.next = choice;
    before.followed = true;
  }
  Step& step = steps_.emplace_back().step;
  step.choice = choice;
  step.onset_s = time_s;
  step.begins = begins_;
  begins_ = false;
}

void Trail::reward(std::uint64_t action, float amount) {
  const auto found = std::ranges::find_if(steps_, [&](const Entry& entry) { return !entry.sealed && entry.step.choice.action == action; });
  if (found != steps_.end()) found->step.reward += amount;
}

void Trail::reward_newest(float amount) {
  if (is_open()) steps_.back().step.reward += amount;
}

void Trail::end(EpisodeEnd end, const Choice* last_seen) {
  if (is_open()) {
    Step& last = steps_.back().step;
    last.terminated = end == EpisodeEnd::terminated;
    last.followed = last.terminated || last_seen;
    if (!last.terminated && last_seen) last.next = *last_seen;
  }
  cut();
  for (Entry& entry : steps_) entry.sealed = true;
}

void Trail::cut() {
  if (is_open()) steps_.pop_back();
  begins_ = true;
}

void Trail::forget() {
  steps_.clear();
  begins_ = true;
}

const Step* Trail::settled(double time_s, double reach_s) const {
  if (steps_.empty() || !steps_.front().step.followed) return nullptr;
  const Entry& oldest = steps_.front();
  // As many as a seat can credit (Seat::kHistory); with times that stand still they would pile up.
  const bool out_of_reach = oldest.sealed || time_s > oldest.step.onset_s + reach_s || steps_.size() > Seat::kHistory;
  return out_of_reach ? &oldest.step : nullptr;
}

}  // namespace imprint::agent
