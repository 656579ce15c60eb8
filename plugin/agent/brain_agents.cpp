// What agents do with a brain.

#include <algorithm>
#include <cmath>
#include <utility>

#include "plugin/agent/brain.h"
#include "plugin/agent/brain_impl.h"

namespace imprint::agent {
namespace {

Error refuse(const char* call, const std::string& what) {
  return make_error(ErrorCode::invalid_argument, std::string(call) + ": " + what);
}

Status check_finite(const char* call, const char* name, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return refuse(call, std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(values[i]) +
                              "; expected a finite number");
  return {};
}

Status check_learns_from(const char* call, const char* what, bool can, const BrainSpec& spec, Mode mode) {
  if (!can)
    return make_error(ErrorCode::unsupported, std::string(call) + ": '" + spec.name +
                                                  "' does not learn from " + what + "; its learner is " +
                                                  learner_name(spec.learner));
  if (mode == Mode::inference)
    return make_error(ErrorCode::wrong_state,
                      std::string(call) + ": the agent is in inference mode; set its mode to learning first");
  return {};
}

// A demonstration counts twice a word of praise: it says what to do, and by that what not to do.
constexpr float kRecordedWeight = 2.0f;

}  // namespace

Result<std::uint32_t> Brain::add_agent(std::uint32_t brain_index) {
  if (brain_index >= spec_.brain_count)
    return refuse("agent_create", "brain_index is " + std::to_string(brain_index) + "; '" + spec_.name +
                                      "' has " + std::to_string(spec_.brain_count) +
                                      " brains, counted from 0");
  const std::uint32_t first = brain_index * spec_.agents_per_brain;
  for (std::uint32_t seat = first; seat < first + spec_.agents_per_brain; ++seat) {
    if (seats_[seat].occupied()) continue;
    seats_[seat].sit();
    resets_[seat] = 1;
    return seat;
  }
  return make_error(ErrorCode::unsupported, "agent_create: brain " + std::to_string(brain_index) + " of '" +
                                                spec_.name + "' already serves " +
                                                std::to_string(spec_.agents_per_brain) +
                                                " agents; create it with a larger capacity");
}

void Brain::remove_agent(std::uint32_t seat) {
  if (!trails_.empty()) trails_[seat].forget();
  seats_[seat].leave();
}

Status Brain::set_mode(std::uint32_t seat, Mode mode) {
  if (!trails_.empty() && mode != seats_[seat].mode()) trails_[seat].cut();
  seats_[seat].set_mode(mode);
  return {};
}

Status Brain::set_goal(std::uint32_t seat, std::uint32_t goal) {
  if (goal >= spec_.goal_count)
    return refuse("agent_set_goal", "goal is " + std::to_string(goal) + "; '" + spec_.name + "' has " +
                                        std::to_string(spec_.goal_count) + " goals, counted from 0");
  seats_[seat].set_goal(goal);
  return {};
}

Status Brain::set_mask(std::uint32_t seat, std::span<const std::uint8_t> allowed) {
  if (!allowed.empty()) {
    const std::uint32_t count = spec_.action.choice_count();
    if (allowed.size() != count)
      return refuse("agent_set_mask", std::to_string(allowed.size()) + " flags; '" + spec_.name + "' has " +
                                          std::to_string(count) + " choices");
    for (std::size_t branch = 0; branch < spec_.action.branch_sizes.size(); ++branch) {
      const auto flags =
          allowed.subspan(spec_.action.branch_offset(branch), spec_.action.branch_sizes[branch]);
      if (std::ranges::all_of(flags, [](std::uint8_t flag) { return flag == 0; }))
        return refuse("agent_set_mask",
                      "branch " + std::to_string(branch) +
                          " allows nothing; at least one choice of each branch must be allowed");
    }
  }
  seats_[seat].set_mask(allowed);
  return {};
}

Status Brain::observe(std::uint32_t seat, std::span<const float> observation) {
  if (observation.size() != spec_.observation.count)
    return refuse("agent_observe", std::to_string(observation.size()) + " numbers; '" + spec_.name +
                                       "' expects " + std::to_string(spec_.observation.count));
  IMPRINT_CHECK(check_finite("agent_observe", "observation", observation));
  if (!inference_->compiled())
    return make_error(
        ErrorCode::wrong_state,
        "agent_observe: '" + spec_.name + "' is not compiled yet; call warmup before the first frame");
  seats_[seat].request(at_.clock.frame, observation);
  return {};
}

Status Brain::observe_in_place(std::uint32_t seat, std::uint64_t place) {
  constexpr const char* call = "agent_observe_in_place";
  if (!shared_.observations.buffer)
    return make_error(ErrorCode::unsupported,
                      std::string(call) + ": '" + spec_.name +
                          "' shares no observations; create it with a tensor for them");
  const std::uint64_t count = shared_.observations.element_count();
  if (place > count - spec_.observation.count)
    return refuse(call, "place is " + std::to_string(place) + "; an observation of " +
                            std::to_string(spec_.observation.count) +
                            " numbers that begins there ends beyond the tensor '" +
                            shared_.observations.name + "', which has " + std::to_string(count));
  if (!inference_->compiled())
    return make_error(
        ErrorCode::wrong_state,
        std::string(call) + ": '" + spec_.name + "' is not compiled yet; call warmup before the first frame");
  seats_[seat].request_in_place(at_.clock.frame, static_cast<std::int32_t>(place));
  return {};
}

Result<const Answer*> Brain::act(std::uint32_t seat) {
  Seat& agent = seats_[seat];
  switch (agent.act(at_.clock.frame, at_.clock.time_s)) {
    case Seat::Outcome::fresh:
      if (follows(seat)) trails_[seat].act(agent.last_answer().choice, at_.clock.time_s);
      return &agent.last_answer();
    case Seat::Outcome::repeated:
      return &agent.last_answer();
    case Seat::Outcome::not_ready:
      return make_error(ErrorCode::not_ready, "");
    case Seat::Outcome::nothing:
      break;
  }
  return make_error(ErrorCode::not_found, "agent_act: nothing was asked; call agent_observe first");
}

Status Brain::check_demonstrable(const char* call, std::uint32_t goal,
                                 std::span<const std::uint32_t> branches,
                                 std::span<const float> continuous) const {
  if (goal >= spec_.goal_count)
    return refuse(call,
                  "goal is " + std::to_string(goal) + "; there are " + std::to_string(spec_.goal_count));
  for (std::size_t b = 0; b < branches.size(); ++b)
    if (branches[b] >= spec_.action.branch_sizes[b])
      return refuse(call, "branches[" + std::to_string(b) + "] is " + std::to_string(branches[b]) +
                              "; that branch has " + std::to_string(spec_.action.branch_sizes[b]) +
                              " choices, counted from 0");
  IMPRINT_CHECK(check_finite(call, "continuous", continuous));
  for (const float value : continuous)
    if (value < -1 || value > 1)
      return refuse(call, "a continuous action is " + std::to_string(value) + "; expected -1 to 1");
  return {};
}

Status Brain::act_by_heuristic(std::uint32_t seat, std::span<const std::uint32_t> branches,
                               std::span<const float> continuous) {
  Seat& agent = seats_[seat];
  if (agent.mode() != Mode::heuristic && agent.mode() != Mode::record)
    return make_error(
        ErrorCode::wrong_state,
        "agent_heuristic: the agent acts by its brain; set its mode to heuristic or record first");
  IMPRINT_CHECK(check_demonstrable("agent_heuristic", agent.goal(), branches, continuous));
  if (!agent.act_by_heuristic(at_.clock.time_s, branches, continuous))
    return make_error(
        ErrorCode::wrong_state,
        "agent_heuristic: the agent saw nothing since its last action; call agent_observe first");
  if (follows(seat)) trails_[seat].act(agent.last_answer().choice, at_.clock.time_s);
  if (agent.mode() == Mode::record && traits_of(spec_.learner).demonstrations) {
    ++counts_->demonstrations;
    remember(seat, agent.last_answer().choice, 1.0f, kRecordedWeight);
  }
  return {};
}

Status Brain::feedback(std::uint32_t seat, const Feedback& feedback) {
  constexpr const char* call = "agent_feedback";
  IMPRINT_CHECK(
      check_learns_from(call, "feedback", traits_of(spec_.learner).feedback, spec_, seats_[seat].mode()));
  if (!std::isfinite(feedback.value) || feedback.value < -1 || feedback.value > 1)
    return refuse(call, "value is " + std::to_string(feedback.value) + "; expected -1 to 1");
  if (!std::isfinite(feedback.weight) || feedback.weight <= 0)
    return refuse(call, "weight is " + std::to_string(feedback.weight) + "; expected a number above 0");
  if (!std::isfinite(feedback.time_s) || feedback.time_s > at_.clock.time_s)
    return refuse(call, "time_s is " + std::to_string(feedback.time_s) +
                            "; expected a time up to the frame's, " + std::to_string(at_.clock.time_s));
  ++counts_->feedbacks;
  give_credit(seat, feedback);
  if (feedback.value < 0) close_scolded(seat);
  return {};
}

void Brain::give_credit(std::uint32_t seat, const Feedback& feedback) {
  const Seat& agent = seats_[seat];
  if (feedback.credit == CreditKind::by_onset)
    credit_by_onset(agent.onsets(), feedback.time_s, {spec_.credit_delay_s, spec_.credit_width_s}, credits_);
  else
    credit_current(agent.onsets(), feedback.time_s, credits_);
  for (const Credit& credit : credits_) {
    const Choice& meant = agent.past(credit.index);
    const float weight = credit.weight * feedback.weight;
    if (trails_.empty())
      remember(seat, meant, feedback.value, weight, feedback.pushes_rivals);
    else
      trails_[seat].reward(meant.action, feedback.value * weight);
  }
}

void Brain::close_scolded(std::uint32_t seat) {
  Seat& agent = seats_[seat];
  const std::ptrdiff_t worst = most_credited(credits_, agent.onsets());
  if (worst < 0) return;
  const Choice& choice = agent.past(static_cast<std::size_t>(worst));
  agent.scold(choice.branches[0], choice.command);
}

Status Brain::demonstrate(std::uint32_t seat, const Demonstration& demonstration) {
  constexpr const char* call = "agent_demonstrate";
  IMPRINT_CHECK(check_learns_from(call, "demonstrations", traits_of(spec_.learner).demonstrations, spec_,
                                  seats_[seat].mode()));
  if (demonstration.observation.size() != spec_.observation.count)
    return refuse(call, std::to_string(demonstration.observation.size()) + " observations; '" + spec_.name +
                            "' expects " + std::to_string(spec_.observation.count));
  IMPRINT_CHECK(check_finite(call, "observation", demonstration.observation));
  IMPRINT_CHECK(
      check_demonstrable(call, demonstration.goal, demonstration.branches, demonstration.continuous));
  if (!std::isfinite(demonstration.weight) || demonstration.weight <= 0)
    return refuse(call, "weight is " + std::to_string(demonstration.weight) + "; expected a number above 0");
  Choice shown;
  shown.observation.assign(demonstration.observation.begin(), demonstration.observation.end());
  shown.goal = demonstration.goal;
  shown.branches.assign(demonstration.branches.begin(), demonstration.branches.end());
  shown.continuous.assign(demonstration.continuous.begin(), demonstration.continuous.end());
  ++counts_->demonstrations;
  remember(seat, shown, 1.0f, demonstration.weight);
  return {};
}

Status Brain::reward(std::uint32_t seat, float reward) {
  if (!std::isfinite(reward))
    return refuse("agent_reward", "reward is " + std::to_string(reward) + "; expected a finite number");
  // Games report rewards whatever the agent's brain makes of them; zero says nothing about the action. Unlike
  // a scolding, a reward below 0 closes nothing: where every step has its price, it would close one action
  // after the other. And unlike praise, one above 0 says nothing against what was not done: two actions that
  // are both worth something would push each other down.
  if (!traits_of(spec_.learner).feedback || seats_[seat].mode() == Mode::inference || reward == 0) return {};
  if (traits_of(spec_.learner).looks_ahead) {
    trails_[seat].reward_newest(reward);
    return {};
  }
  give_credit(seat, {std::clamp(reward, -1.0f, 1.0f), 1.0f, CreditKind::current, at_.clock.time_s, false});
  return {};
}

Status Brain::end_episode(std::uint32_t seat, EpisodeEnd end) {
  if (!trails_.empty()) {
    // A learner that does not look ahead needs no state to go on from.
    trails_[seat].end(traits_of(spec_.learner).looks_ahead ? end : EpisodeEnd::terminated,
                      seats_[seat].last_seen());
    remember_settled(seat);
  }
  seats_[seat].end_episode();
  resets_[seat] = 1;
  ++counts_->episodes;
  return {};
}

bool Brain::follows(std::uint32_t seat) const {
  if (trails_.empty() || !learning_) return false;
  const Mode mode = seats_[seat].mode();
  return mode == Mode::learning || (mode != Mode::inference && traits_of(spec_.learner).off_policy);
}

void Brain::forget_steps() {
  for (Trail& trail : trails_) trail.forget();
}

void Brain::remember_settled(std::uint32_t seat) {
  const double reach_s = double{spec_.credit_delay_s} + spec_.credit_width_s;
  for (Trail& trail = trails_[seat]; const Step* step = trail.settled(at_.clock.time_s, reach_s); trail.pop())
    remember(seat, *step);
}

std::span<float> Brain::new_sample(std::uint32_t seat, const Choice& choice) {
  const std::span<float> row =
      learner_->replay().waiting.push(seat / spec_.agents_per_brain, {seat, choice.sight});
  const auto observation = row.subspan(layout_.observation, spec_.observation.count);
  if (choice.sight > 0)
    std::ranges::fill(observation, 0.0f);
  else
    std::ranges::copy(choice.observation, observation.begin());
  row[layout_.goal] = static_cast<float>(choice.goal);
  for (std::size_t b = 0; b < choice.branches.size(); ++b)
    row[layout_.branches + b] = static_cast<float>(choice.branches[b]);
  std::ranges::copy(choice.continuous, row.begin() + layout_.continuous);
  return row;
}

void Brain::remember(std::uint32_t seat, const Choice& choice, float target, float weight,
                     bool pushes_rivals) {
  if (!learning_) return;
  const std::span<float> row = new_sample(seat, choice);
  row[layout_.weight] = weight;
  if (spec_.learner == LearnerKind::feedback) {
    row[layout_.target] = target;
    row[layout_.margin] = pushes_rivals && target > 0 ? 1.0f : 0.0f;
  }
}

// Of a row that was used before, all is written again.
void Brain::remember(std::uint32_t seat, const Step& step) {
  const LearnerTraits& learner = traits_of(spec_.learner);
  const std::uint32_t brain = seat / spec_.agents_per_brain;
  // Done by weights that are gone, or on the way out: a rollout has one version.
  if (learner.rollouts && step.choice.version != learner_->wanted_version(brain)) {
    broken_[seat] = 1;
    return;
  }
  const std::span<float> row = new_sample(seat, step.choice);
  row[layout_.reward] = step.reward;
  if (!learner.replays) {
    // A trace is the brain's: an agent's steps between another's would be credited with what they have no
    // part in. Rollouts are sorted by agents.
    const bool interrupted = std::exchange(newest_step_[brain], seat) != seat && !learner.rollouts;
    const bool broken = std::exchange(broken_[seat], std::uint8_t{0}) != 0;
    row[layout_.begins] = step.begins || interrupted || broken ? 1.0f : 0.0f;
  }
  const std::span<float> flags = row.subspan(layout_.allowed, spec_.action.choice_count());
  std::ranges::fill(flags, 0.0f);
  if (!learner.replays || !step.terminated)
    std::ranges::transform(learner.replays ? step.next.allowed : step.choice.allowed, flags.begin(),
                           [](std::int32_t flag) { return static_cast<float>(flag); });
  if (!learner.looks_ahead) return;
  const std::span<float> next = row.subspan(layout_.next_observation, spec_.observation.count);
  std::ranges::fill(next, 0.0f);
  row[layout_.continues] = step.terminated ? 0.0f : 1.0f;
  row[layout_.next_goal] = 0;
  if (step.terminated) return;  // `next` is of a step before
  std::ranges::copy(step.next.observation, next.begin());
  row[layout_.next_goal] = static_cast<float>(step.next.goal);
}

}  // namespace imprint::agent
