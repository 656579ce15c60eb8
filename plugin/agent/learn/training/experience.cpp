#include "plugin/agent/learn/training/experience.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plugin/agent/learn/registry.h"

namespace imprint::agent {

Experience::Experience(const BrainSpec& spec, Training& training)
    : spec_(spec),
      learner_(learner_of(spec)),
      layout_(learner_.layout(spec)),
      training_(training),
      returns_(spec) {
  if (!learner_.records_steps()) {
    histories_.resize(spec_.agent_capacity());
    rewarded_.assign(spec_.brain_count, 0);
    judged_.assign(spec_.brain_count, 0);
    praised_.assign(std::size_t{spec_.agent_capacity()} * spec_.goal_count, 0);
    return;
  }
  trajectories_.resize(spec.agent_capacity());
  newest_step_.assign(spec.brain_count, UINT32_MAX);
  broken_.assign(spec.agent_capacity(), 0);
  has_feedback_.assign(spec.agent_capacity(), 0);
}

void Experience::set_enabled(bool enabled) {
  enabled_ = enabled;
  if (!enabled) forget_steps();
}

void Experience::forget_steps() {
  for (Trajectory& trajectory : trajectories_) trajectory.forget();
}

bool Experience::records(const AgentSlot& slot) const {
  if (trajectories_.empty() || !enabled_ || !slot.learns_by_itself()) return false;
  return slot.mode() == Mode::learning || (slot.mode() != Mode::inference && learner_.off_policy());
}

void Experience::acted(std::uint32_t agent, const AgentSlot& slot, double time_s) {
  if (earns(slot)) returns_.acted(agent);
  settle_zero(agent, slot);
  settle_silence(agent, slot, time_s);
  if (!records(slot)) return;
  trajectories_[agent].act(slot.last_answer().choice, time_s);
  if (learner_.predicts_returns() && spec_.discount < 1) note_values(slot.last_answer());
}

double Experience::highest_return() const {
  return diagnostics_.largest_reward / (1 - double{spec_.discount});
}

void Experience::note_values(const Answer& answer) {
  double highest = 0;
  for (const float value : answer.values) highest = std::max(highest, std::abs(double{value}));
  const bool beyond = diagnostics_.largest_reward > 0 && highest > 2 * highest_return();
  diagnostics_.beyond = beyond ? diagnostics_.beyond + 1 : 0;
  diagnostics_.highest_value = beyond ? std::max(diagnostics_.highest_value, highest) : 0;
}

void Experience::mode_changes(std::uint32_t agent) {
  returns_.left(agent);
  if (trajectories_.empty()) return;
  Trajectory& trajectory = trajectories_[agent];
  const bool needs_state = layout_.next_observation > 0;
  lost_.unfollowed +=
      (needs_state ? trajectory.cut() : trajectory.end(EpisodeEnd::terminated, nullptr)) ? 1 : 0;
}

void Experience::left(std::uint32_t agent) {
  returns_.left(agent);
  if (labels()) {
    histories_[agent] = {};
    std::ranges::fill_n(&praised_[std::size_t{agent} * spec_.goal_count], spec_.goal_count, std::uint8_t{0});
  }
  if (trajectories_.empty()) return;
  lost_.unfollowed += trajectories_[agent].size();
  trajectories_[agent].forget();
  has_feedback_[agent] = 0;
}

void Experience::episode_ends(std::uint32_t agent, EpisodeEnd end, AgentSlot& slot, double time_s,
                              std::span<const float> left) {
  if (earns(slot)) returns_.ended(agent);
  settle_zero(agent, slot);
  if (trajectories_.empty()) return;
  // Without a next observation in its samples, a learner needs no state to continue from.
  const EpisodeEnd known = layout_.next_observation > 0 ? end : EpisodeEnd::terminated;
  const Choice* after = slot.last_seen();
  if (!left.empty() && slot.sees()) {
    // Its group goes on, and with it what the agent's last action is worth.
    after_.observation = *slot.sees();
    after_.goal = slot.goal();
    after_.group.assign(left.begin(), left.end());
    after_.allowed.assign(spec_.action.choice_count(), 1);
    after = &after_;
  }
  const EpisodeEnd told = left.empty() ? known : EpisodeEnd::truncated;
  lost_.unfollowed += trajectories_[agent].end(told, after) ? 1 : 0;
  settle_agent(agent, time_s);
}

void Experience::feedback(std::uint32_t agent, AgentSlot& slot, const Feedback& feedback) {
  if (!has_feedback_.empty() && feedback.credit == CreditKind::by_onset) has_feedback_[agent] = 1;
  credit(agent, slot, feedback);
  const std::ptrdiff_t most = most_credited(credits_, slot.onsets());
  if (labels() && most >= 0) {
    judged_[agent / spec_.agents_per_brain] = 1;
    FeedbackHistory& history = histories_[agent];
    history.praises += feedback.value > 0 ? 1 : 0;
    history.scolded |= feedback.value < 0;
    history.word_s = feedback.time_s;
    if (feedback.value > 0) praised(agent, slot.past(static_cast<std::size_t>(most))) = 1;
  }
  if (feedback.value >= 0 || most < 0) return;
  slot.scold(slot.past(static_cast<std::size_t>(most)));
}

void Experience::credit(std::uint32_t agent, const AgentSlot& slot, const Feedback& feedback) {
  if (feedback.credit == CreditKind::by_onset)
    credit_by_onset(slot.onsets(), feedback.time_s, {spec_.credit_delay_s, spec_.credit_width_s}, credits_);
  else
    credit_current(slot.onsets(), feedback.time_s, credits_);
  if (feedback.credit == CreditKind::by_onset && !credits_.empty()) {
    ++diagnostics_.feedbacks;
    diagnostics_.credited_actions += credits_.size();
  }
  bool reached = false;
  if (labels() && !credits_.empty()) note_value(feedback.value);
  for (const Credit& credit : credits_) {
    const Choice& meant = slot.past(credit.index);
    const float weight = credit.weight * feedback.weight;
    if (labels()) histories_[agent].judged.set(meant.action % AgentSlot::kHistory);
    if (labels()) add_labelled(agent, meant, feedback.value, weight, feedback.source);
    reached |= trajectories_.empty() || trajectories_[agent].reward(meant.action, feedback.value * weight);
  }
  if (enabled_ && !reached) ++lost_.uncredited;
}

// Unlike a scolding, a negative reward forbids nothing: per-step costs are normal. Unlike praise, a positive
// one pushes no rivals: two actions that are both worth something would push each other down.
void Experience::reward(std::uint32_t agent, AgentSlot& slot, float reward, double time_s) {
  if (earns(slot)) returns_.rewarded(agent, reward);
  if (!trajectories_.empty() && !records(slot)) return;
  if (learner_.needs_next()) {
    diagnostics_.calls_reward = true;
    if (enabled_ && reward != 0 && !trajectories_[agent].reward_newest(reward)) ++lost_.uncredited;
    return;
  }
  if (!labels()) {
    if (reward != 0)
      credit(agent, slot,
             {std::clamp(reward, -1.0f, 1.0f), 1.0f, CreditKind::current, time_s, LabelSource::reward});
    return;
  }
  if (slot.onsets().empty()) {
    if (enabled_ && reward != 0) ++lost_.uncredited;
    return;
  }
  FeedbackHistory& history = histories_[agent];
  const std::uint64_t newest = slot.past(slot.onsets().size() - 1).action;
  const bool first = std::exchange(history.rewarded, newest) != newest;
  history.zero = reward == 0 && (first || history.zero);
  if (reward == 0) return;
  rewarded_[agent / spec_.agents_per_brain] = 1;
  note_reward(agent, reward);
  credit(agent, slot,
         {std::clamp(reward, -1.0f, 1.0f), 1.0f, CreditKind::current, time_s, LabelSource::reward});
}

// An action that earned nothing is worse than one that earned something. Its 0 counts once, when it is over,
// and only where the game rewards at all: a person's pet may be told 0 in each frame.
void Experience::settle_zero(std::uint32_t agent, const AgentSlot& slot) {
  if (!labels() || !std::exchange(histories_[agent].zero, false) || !enabled_) return;
  const std::uint32_t brain = agent / spec_.agents_per_brain;
  if (!rewarded_[brain] && !judged_[brain]) ++diagnostics_.zeros;
  if (!rewarded_[brain] || judged_[brain]) return;
  for (std::size_t i = slot.onsets().size(); i-- > 0;) {
    if (slot.past(i).action != histories_[agent].rewarded) continue;
    note_value(0);
    note_reward(agent, 0);
    return add_labelled(agent, slot.past(i), 0, 1, LabelSource::reward);
  }
}

std::uint8_t& Experience::praised(std::uint32_t agent, const Choice& choice) {
  return praised_[std::size_t{agent} * spec_.goal_count + choice.goal];
}

// A person who only praises means "wrong" by silence. Loftin et al., Learning behaviors via human-delivered
// discrete feedback, 2016. Without a word for long the person is away, and silence means nothing; nor does it
// under a goal that no praise was for, such as a pet's that is left to itself.
void Experience::settle_silence(std::uint32_t agent, const AgentSlot& slot, double time_s) {
  constexpr std::uint32_t kPraises = 8;
  constexpr double kAttention = 60;  // seconds
  constexpr float kWrong = -1, kWeight = 0.5f;
  if (!labels() || slot.onsets().empty()) return;
  FeedbackHistory& history = histories_[agent];
  const std::size_t count = slot.onsets().size();
  const std::uint64_t newest = slot.past(count - 1).action;
  history.judged.reset(newest % AgentSlot::kHistory);
  history.settled = std::max(history.settled, newest - count);
  const double reach_s = double{spec_.credit_delay_s} + spec_.credit_width_s;
  for (; history.settled < newest; ++history.settled) {
    const std::size_t index = count - (newest - history.settled);
    const double onset_s = slot.onsets()[index];
    if (onset_s + reach_s >= time_s) return;
    const bool attends =
        history.praises >= kPraises && !history.scolded && onset_s <= history.word_s + kAttention;
    const bool silent = !history.judged.test((history.settled + 1) % AgentSlot::kHistory);
    if (!attends || !silent || !praised(agent, slot.past(index))) continue;
    if (!enabled_ || slot.mode() != Mode::learning) continue;
    diagnostics_.compares = true;
    add_labelled(agent, slot.past(index), kWrong, kWeight, LabelSource::reward);
  }
}

void Experience::note_value(float value) {
  diagnostics_.compares |= diagnostics_.equals > 0 && value != diagnostics_.value;
  diagnostics_.value = value;
  ++diagnostics_.equals;
}

void Experience::note_reward(std::uint32_t agent, float reward) {
  if (judged_[agent / spec_.agents_per_brain]) return;
  if (diagnostics_.rewards == 0 || reward > diagnostics_.best_reward) {
    diagnostics_.best_reward = reward;
    diagnostics_.best_rewards = 0;
  }
  ++diagnostics_.rewards;
  diagnostics_.best_rewards += reward == diagnostics_.best_reward ? 1 : 0;
  const std::optional<float> before = std::exchange(histories_[agent].reward, reward);
  if (!before) return;
  ++diagnostics_.reward_changes;
  diagnostics_.squared_changes += (double{reward} - *before) * (double{reward} - *before);
}

void Experience::settle(double time_s) {
  for (std::uint32_t agent = 0; agent < trajectories_.size(); ++agent) settle_agent(agent, time_s);
}

void Experience::settle_agent(std::uint32_t agent, double time_s) {
  const double reach_s = has_feedback_[agent] ? double{spec_.credit_delay_s} + spec_.credit_width_s : 0.0;
  Trajectory& trajectory = trajectories_[agent];
  const std::uint32_t most = learner_.replays() ? spec_.n_step : 1;
  for (;; trajectory.pop()) {
    const Trajectory::Return found = trajectory.returned(time_s, reach_s, most, spec_.discount);
    if (!found.first) return;
    add_step(agent, found);
  }
}

void Experience::write_action(std::span<float> row, const SampleLayout& layout, const Choice& choice) {
  row[layout.goal] = static_cast<float>(choice.goal);
  for (std::size_t b = 0; b < choice.branches.size(); ++b)
    row[layout.branches + b] = static_cast<float>(choice.branches[b]);
  std::ranges::copy(choice.drawn.empty() ? choice.continuous : choice.drawn, row.begin() + layout.continuous);
}

// A choice that was never decided from, such as the last one before a truncated end, has its agent alone.
void Experience::write_group(std::span<float> into, const Choice& choice) const {
  if (choice.group.size() == into.size()) {
    std::ranges::copy(choice.group, into.begin());
    return;
  }
  std::ranges::fill(into, 0.0f);
  into[0] = 1;
  std::ranges::copy(choice.observation, into.begin() + 1);
}

std::span<float> Experience::new_sample(std::uint32_t agent, const Choice& choice, std::uint64_t next_copy) {
  const std::span<float> row =
      training_.replay().waiting.push(agent / spec_.agents_per_brain, {agent, choice.copy_number, next_copy});
  const auto observation = row.subspan(layout_.observation, spec_.observation.width());
  if (choice.copy_number > 0)
    std::ranges::fill(observation, 0.0f);
  else
    std::ranges::copy(choice.observation, observation.begin());
  write_action(row, layout_, choice);
  if (layout_.state) std::ranges::copy(choice.state, row.begin() + layout_.state);
  if (layout_.group) write_group(row.subspan(layout_.group, spec_.group_width()), choice);
  return row;
}

void Experience::add_labelled(std::uint32_t agent, const Choice& choice, float target, float weight,
                              LabelSource source) {
  if (!enabled_) return;
  learner_.label(new_sample(agent, choice), layout_, target, weight, source);
}

void Experience::demonstrate(std::uint32_t agent, const Choice& choice, float weight) {
  diagnostics_.compares = true;
  if (learner_.takes_demonstrations()) return add_labelled(agent, choice, 1.0f, weight);
  if (!enabled_) return;
  const SampleLayout layout = demonstration_layout(spec_);
  const std::span<float> row = training_.replay().demonstrations.add(agent / spec_.agents_per_brain);
  std::ranges::copy(choice.observation, row.begin() + layout.observation);
  write_action(row, layout, choice);
  row[layout.weight] = weight;
}

// Rows are reused, so every column of the layout is written. A learner may leave columns out.
void Experience::add_step(std::uint32_t agent, const Trajectory::Return& found) {
  const Transition& step = *found.first;
  const std::uint32_t brain = agent / spec_.agents_per_brain;
  if (learner_.collects_rollouts() && step.choice.version < training_.oldest_version(brain)) {
    broken_[agent] = 1;
    ++lost_.stale;
    return;
  }
  training_.replay().sparsity[brain].add(step.reward, step.terminated);
  ++diagnostics_.steps;
  const double reward = double{step.reward};
  diagnostics_.largest_reward = std::max(diagnostics_.largest_reward, std::abs(reward));
  diagnostics_.paid += reward != 0 ? 1 : 0;
  diagnostics_.squared_rewards += reward * reward;
  const std::span<float> row = new_sample(agent, step.choice, next_copy(found));
  if (layout_.reward) row[layout_.reward] = found.reward;
  if (layout_.log_probability) row[layout_.log_probability] = step.choice.log_probability;
  if (layout_.begins) write_begins(row, agent, step.begins);
  if (layout_.allowed) write_allowed(row, *found.last);
  if (learner_.needs_next()) write_next(row, found);
}

std::uint64_t Experience::next_copy(const Trajectory::Return& found) const {
  return layout_.next_observation > 0 && !found.last->terminated ? found.last->next.copy_number : 0;
}

// A trace belongs to the brain, so it begins again when another agent's step comes in between. Rollouts are
// sorted by agent.
void Experience::write_begins(std::span<float> row, std::uint32_t agent, bool begins) {
  std::uint32_t& newest = newest_step_[agent / spec_.agents_per_brain];
  const bool interrupted = std::exchange(newest, agent) != agent && !learner_.collects_rollouts();
  const bool broken = std::exchange(broken_[agent], std::uint8_t{0}) != 0;
  row[layout_.begins] = begins || interrupted || broken ? 1.0f : 0.0f;
}

// The choices that the next state allows, none after the episode's end; or those that this state allowed.
void Experience::write_allowed(std::span<float> row, const Transition& step) const {
  const std::span<float> flags = row.subspan(layout_.allowed, spec_.action.choice_count());
  std::ranges::fill(flags, 0.0f);
  if (learner_.rates_next() && step.terminated) return;
  std::ranges::transform(learner_.rates_next() ? step.next.allowed : step.choice.allowed, flags.begin(),
                         [](std::int32_t flag) { return static_cast<float>(flag); });
}

void Experience::write_next(std::span<float> row, const Trajectory::Return& found) const {
  const Transition& step = *found.last;
  const bool follows = !step.terminated;  // else step.next is of an earlier step
  if (layout_.continues)
    row[layout_.continues] = follows ? std::pow(spec_.discount, static_cast<float>(found.steps - 1)) : 0.0f;
  if (layout_.next_goal) row[layout_.next_goal] = follows ? static_cast<float>(step.next.goal) : 0.0f;
  if (layout_.next_group) {
    const std::span<float> seen = row.subspan(layout_.next_group, spec_.group_width());
    if (follows)
      write_group(seen, step.next);
    else
      std::ranges::fill(seen, 0.0f);
  }
  if (!layout_.next_observation) return;
  const std::span<float> next = row.subspan(layout_.next_observation, spec_.observation.width());
  std::ranges::fill(next, 0.0f);
  if (follows && step.next.copy_number == 0) std::ranges::copy(step.next.observation, next.begin());
}

}  // namespace imprint::agent
