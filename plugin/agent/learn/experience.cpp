#include "plugin/agent/learn/experience.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plugin/agent/learn/registry.h"

namespace imprint::agent {

Experience::Experience(const BrainSpec& spec, Training& training)
    : spec_(spec), learner_(learner_of(spec)), layout_(learner_.layout(spec)), training_(training) {
  if (!learner_.records_steps()) return;
  trajectories_.resize(spec.agent_capacity());
  newest_step_.assign(spec.brain_count, UINT32_MAX);
  broken_.assign(spec.agent_capacity(), 0);
  hears_.assign(spec.agent_capacity(), 0);
}

void Experience::set_enabled(bool enabled) {
  enabled_ = enabled;
  if (!enabled) forget_steps();
}

void Experience::forget_steps() {
  for (Trajectory& trajectory : trajectories_) trajectory.forget();
}

bool Experience::records(const AgentSlot& slot) const {
  if (trajectories_.empty() || !enabled_) return false;
  return slot.mode() == Mode::learning || (slot.mode() != Mode::inference && learner_.off_policy());
}

void Experience::acted(std::uint32_t agent, const AgentSlot& slot, double time_s) {
  if (!records(slot)) return;
  trajectories_[agent].act(slot.last_answer().choice, time_s);
  if (learner_.predicts_returns() && spec_.discount < 1) note_values(slot.last_answer());
}

double Experience::highest_return() const { return signs_.largest_reward / (1 - double{spec_.discount}); }

void Experience::note_values(const Answer& answer) {
  double highest = 0;
  for (const float value : answer.values) highest = std::max(highest, std::abs(double{value}));
  const bool beyond = signs_.largest_reward > 0 && highest > 2 * highest_return();
  signs_.beyond = beyond ? signs_.beyond + 1 : 0;
  signs_.highest_value = beyond ? std::max(signs_.highest_value, highest) : 0;
}

void Experience::mode_changes(std::uint32_t agent) {
  if (!trajectories_.empty()) lost_.unfollowed += trajectories_[agent].cut() ? 1 : 0;
}

void Experience::left(std::uint32_t agent) {
  if (trajectories_.empty()) return;
  lost_.unfollowed += trajectories_[agent].size();
  trajectories_[agent].forget();
  hears_[agent] = 0;
}

void Experience::episode_ends(std::uint32_t agent, EpisodeEnd end, AgentSlot& slot, double time_s) {
  if (trajectories_.empty()) return;
  // Without a next observation in its samples, a learner needs no state to continue from.
  const EpisodeEnd known = learner_.needs_next() ? end : EpisodeEnd::terminated;
  lost_.unfollowed += trajectories_[agent].end(known, slot.last_seen()) ? 1 : 0;
  settle_agent(agent, time_s);
}

void Experience::feedback(std::uint32_t agent, AgentSlot& slot, const Feedback& feedback) {
  if (!hears_.empty() && feedback.credit == CreditKind::by_onset) hears_[agent] = 1;
  credit(agent, slot, feedback);
  if (feedback.value >= 0) return;
  const std::ptrdiff_t worst = most_credited(credits_, slot.onsets());
  if (worst < 0) return;
  const Choice& choice = slot.past(static_cast<std::size_t>(worst));
  slot.scold(choice.branches[0], choice.command);
}

void Experience::credit(std::uint32_t agent, const AgentSlot& slot, const Feedback& feedback) {
  if (feedback.credit == CreditKind::by_onset)
    credit_by_onset(slot.onsets(), feedback.time_s, {spec_.credit_delay_s, spec_.credit_width_s}, credits_);
  else
    credit_current(slot.onsets(), feedback.time_s, credits_);
  bool reached = false;
  for (const Credit& credit : credits_) {
    const Choice& meant = slot.past(credit.index);
    const float weight = credit.weight * feedback.weight;
    if (trajectories_.empty()) add_labelled(agent, meant, feedback.value, weight, feedback.pushes_rivals);
    reached |= trajectories_.empty() || trajectories_[agent].reward(meant.action, feedback.value * weight);
  }
  if (enabled_ && !reached) ++lost_.uncredited;
}

// Unlike a scolding, a negative reward forbids nothing: per-step costs are normal. Unlike praise, a positive
// one pushes no rivals: two actions that are both worth something would push each other down.
void Experience::reward(std::uint32_t agent, AgentSlot& slot, float reward, double time_s) {
  if (learner_.needs_next()) {
    if (enabled_ && !trajectories_[agent].reward_newest(reward)) ++lost_.uncredited;
    return;
  }
  credit(agent, slot, {std::clamp(reward, -1.0f, 1.0f), 1.0f, CreditKind::current, time_s, false});
}

void Experience::settle(double time_s) {
  for (std::uint32_t agent = 0; agent < trajectories_.size(); ++agent) settle_agent(agent, time_s);
}

void Experience::settle_agent(std::uint32_t agent, double time_s) {
  const double reach_s = hears_[agent] ? double{spec_.credit_delay_s} + spec_.credit_width_s : 0.0;
  Trajectory& trajectory = trajectories_[agent];
  for (; const Transition* step = trajectory.settled(time_s, reach_s); trajectory.pop())
    add_step(agent, *step);
}

std::span<float> Experience::new_sample(std::uint32_t agent, const Choice& choice) {
  const std::span<float> row =
      training_.replay().waiting.push(agent / spec_.agents_per_brain, {agent, choice.copy_number});
  const auto observation = row.subspan(layout_.observation, spec_.observation.count);
  if (choice.copy_number > 0)
    std::ranges::fill(observation, 0.0f);
  else
    std::ranges::copy(choice.observation, observation.begin());
  row[layout_.goal] = static_cast<float>(choice.goal);
  for (std::size_t b = 0; b < choice.branches.size(); ++b)
    row[layout_.branches + b] = static_cast<float>(choice.branches[b]);
  std::ranges::copy(choice.drawn.empty() ? choice.continuous : choice.drawn,
                    row.begin() + layout_.continuous);
  return row;
}

void Experience::add_labelled(std::uint32_t agent, const Choice& choice, float target, float weight,
                              bool pushes_rivals) {
  if (!enabled_) return;
  learner_.label(new_sample(agent, choice), layout_, target, weight, pushes_rivals);
}

// Rows are reused, so every column is written.
void Experience::add_step(std::uint32_t agent, const Transition& step) {
  const std::uint32_t brain = agent / spec_.agents_per_brain;
  if (learner_.collects_rollouts() && step.choice.version < training_.oldest_version(brain)) {
    broken_[agent] = 1;
    ++lost_.stale;
    return;
  }
  ++signs_.steps;
  signs_.largest_reward = std::max(signs_.largest_reward, std::abs(double{step.reward}));
  const std::span<float> row = new_sample(agent, step.choice);
  row[layout_.reward] = step.reward;
  if (learner_.collects_rollouts()) row[layout_.log_probability] = step.choice.log_probability;
  if (!learner_.replays()) write_begins(row, agent, step.begins);
  write_allowed(row, step);
  if (learner_.needs_next()) write_next(row, step);
}

// A trace belongs to the brain, so it begins again when another agent's step comes in between. Rollouts are
// sorted by agent.
void Experience::write_begins(std::span<float> row, std::uint32_t agent, bool begins) {
  std::uint32_t& newest = newest_step_[agent / spec_.agents_per_brain];
  const bool interrupted = std::exchange(newest, agent) != agent && !learner_.collects_rollouts();
  const bool broken = std::exchange(broken_[agent], std::uint8_t{0}) != 0;
  row[layout_.begins] = begins || interrupted || broken ? 1.0f : 0.0f;
}

// With a replay memory: what the next state allows, nothing after the episode's end. Else: what this state
// allowed.
void Experience::write_allowed(std::span<float> row, const Transition& step) const {
  const std::span<float> flags = row.subspan(layout_.allowed, spec_.action.choice_count());
  std::ranges::fill(flags, 0.0f);
  if (learner_.replays() && step.terminated) return;
  std::ranges::transform(learner_.replays() ? step.next.allowed : step.choice.allowed, flags.begin(),
                         [](std::int32_t flag) { return static_cast<float>(flag); });
}

void Experience::write_next(std::span<float> row, const Transition& step) const {
  const std::span<float> next = row.subspan(layout_.next_observation, spec_.observation.count);
  std::ranges::fill(next, 0.0f);
  row[layout_.continues] = step.terminated ? 0.0f : 1.0f;
  row[layout_.next_goal] = 0;
  if (step.terminated) return;  // step.next is of an earlier step
  std::ranges::copy(step.next.observation, next.begin());
  row[layout_.next_goal] = static_cast<float>(step.next.goal);
}

}  // namespace imprint::agent
