#include "plugin/agent/agents.h"

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

// A demonstration counts twice as much as praise: it also says what not to do.
constexpr float kRecordedWeight = 2.0f;

// source: where the brain's descriptor sets the expected number.
Result<> check_count(const char* call, const char* field, std::size_t found, std::size_t expected,
                     const char* source) {
  return found == expected ? Result<>{} : bad_field(call, field, text(found), text(expected, source));
}

constexpr const char* kPerObservation = ", imp_brain_desc::observation_count";
constexpr const char* kPerStack = ", imp_brain_desc::observation_count times imp_network_options::stack";
constexpr const char* kPerChoice = ", one flag per choice of all branches";
constexpr const char* kPerBranch = ", imp_brain_desc::branch_count";
constexpr const char* kPerContinuous = ", imp_brain_desc::continuous_count";
constexpr const char* kPerGoal = ", imp_brain_desc::goal_count";

Result<> check_index(const char* call, const char* field, std::uint64_t found, std::uint64_t count,
                     const char* source) {
  return found < count ? Result<>{} : bad_field(call, field, text(found), text("below ", count, source));
}

}  // namespace

Result<std::uint32_t> Agents::add(std::uint32_t brain_index) {
  IMPRINT_CHECK(check_index("agent_create", "brain_index", brain_index, spec_.brain_count,
                            ", imp_brain_desc::brain_count"));
  const std::uint32_t first = brain_index * spec_.agents_per_brain;
  for (std::uint32_t agent = first; agent < first + spec_.agents_per_brain; ++agent) {
    if (decisions_.agent(agent).occupied()) continue;
    decisions_.agent(agent).occupy();
    decisions_.reset_state(agent);
    return agent;
  }
  return make_error(
      ErrorCode::unsupported,
      text("agent_create: brain ", brain_index, " of '", spec_.name, "': agents: found ",
           spec_.agents_per_brain, " of agents_per_brain ", spec_.agents_per_brain,
           ", expected fewer. Destroy one, or create the brain with a larger agents_per_brain."));
}

void Agents::remove(std::uint32_t agent) {
  if (learning_) learning_->experience().left(agent);
  decisions_.agent(agent).vacate();
}

Result<> Agents::set_mode(std::uint32_t agent, Mode mode) {
  AgentSlot& slot = decisions_.agent(agent);
  if (learning_ && mode != slot.mode()) learning_->experience().mode_changes(agent);
  slot.set_mode(mode);
  return {};
}

Result<> Agents::set_goal(std::uint32_t agent, std::uint32_t goal) {
  IMPRINT_CHECK(check_index("agent_set_goal", "goal", goal, spec_.goal_count, kPerGoal));
  decisions_.agent(agent).set_goal(goal);
  return {};
}

Result<> Agents::check_pool(const char* call) const {
  if (spec_.pool_size > 0) return {};
  return make_error(ErrorCode::unsupported,
                    text(call, ": brain '", spec_.name,
                         "': found no pool of opponents. Give brain_create imp_self_play_options."));
}

Result<std::uint32_t> Agents::set_opponent(std::uint32_t agent, std::uint32_t opponent) {
  constexpr const char* call = "agent_set_opponent";
  if (opponent == kNewestWeights && spec_.pool_size == 0) return opponent;
  IMPRINT_CHECK(check_pool(call));
  const std::uint32_t brain = agent / spec_.agents_per_brain;
  Opponents& pool = learning_->training().replay().opponents;
  if (opponent < kNewestOpponent && opponent >= pool.count(brain))
    return make_error(ErrorCode::not_found, text(call, ": opponent: found ", opponent, ", expected below ",
                                                 pool.count(brain), ", or IMP_OPPONENT_DRAWN."));
  const std::uint32_t chosen =
      opponent == kDrawnOpponent ? pool.draw(brain, decisions_.noise_seed()) : opponent;
  AgentSlot& slot = decisions_.agent(agent);
  if (slot.learns_by_itself() != (chosen == kNewestWeights)) learning_->experience().mode_changes(agent);
  slot.set_opponent(chosen);
  return chosen;
}

Result<Opponent*> Agents::rated(std::uint32_t agent) {
  IMPRINT_CHECK(check_pool("match_report"));
  return &learning_->training().replay().opponents.of(agent / spec_.agents_per_brain,
                                                      decisions_.agent(agent).opponent());
}

void Agents::publish_rating() { counts_.rating = learning_->training().replay().opponents.rating(0); }

Result<> Agents::keep_opponent(std::uint32_t brain) {
  IMPRINT_CHECK(check_pool("brain_keep_opponent"));
  IMPRINT_CHECK(check_index("brain_keep_opponent", "brain_index", brain, spec_.brain_count,
                            ", imp_brain_desc::brain_count"));
  learning_->training().replay().opponents.request(brain);
  return {};
}

Result<Opponent> Agents::opponent(std::uint32_t brain, std::uint32_t entry) const {
  constexpr const char* call = "brain_get_opponent";
  IMPRINT_CHECK(check_pool(call));
  IMPRINT_CHECK(check_index(call, "brain_index", brain, spec_.brain_count, ", imp_brain_desc::brain_count"));
  Opponents& pool = learning_->training().replay().opponents;
  if (entry == kNewestWeights) return pool.of(brain, entry);
  if (entry >= pool.count(brain))
    return make_error(ErrorCode::not_found,
                      text(call, ": opponent: found ", entry, ", expected below ", pool.count(brain)));
  return pool.at(brain, entry);
}

Result<> Agents::set_mask(std::uint32_t agent, std::span<const std::uint8_t> allowed) {
  constexpr const char* call = "agent_set_mask";
  if (!allowed.empty()) {
    IMPRINT_CHECK(check_count(call, "count", allowed.size(), spec_.action.choice_count(), kPerChoice));
    for (std::size_t branch = 0; branch < spec_.action.branch_sizes.size(); ++branch) {
      const auto flags =
          allowed.subspan(spec_.action.branch_offset(branch), spec_.action.branch_sizes[branch]);
      if (std::ranges::all_of(flags, [](std::uint8_t flag) { return flag == 0; }))
        return bad_field(call, text("allowed, branch ", branch), "no allowed choice", "at least one");
    }
  }
  decisions_.agent(agent).set_mask(allowed);
  return {};
}

Result<> Agents::check_compiled(const char* call) const {
  if (decisions_.compiled()) return {};
  return make_error(ErrorCode::wrong_state,
                    text(call, ": brain '", spec_.name,
                         "': found no compiled programs. Call context_warmup before the first frame."));
}

Result<> Agents::observe(std::uint32_t agent, std::span<const float> observation) {
  constexpr const char* call = "agent_observe";
  IMPRINT_CHECK(check_count(call, "count", observation.size(), spec_.observation.count, kPerObservation));
  IMPRINT_CHECK(check_finite(call, "observation", observation));
  IMPRINT_CHECK(check_compiled(call));
  if (learning_ && !spec_.normalise_observations && spec_.observation.streams.empty())
    check_scale(observation);
  decisions_.agent(agent).request(services_.clock.frame, observation);
  return {};
}

// Networks learn slowly or not at all from large numbers.
void Agents::check_scale(std::span<const float> observation) {
  constexpr float kLarge = 10;
  if (counts_.has(Alarm::unscaled)) return;
  const std::vector<float>& scale = spec_.observation.scale;
  for (std::size_t i = 0; i < observation.size(); ++i) {
    const float seen = scale.empty() ? observation[i] : observation[i] * scale[i];
    if (std::abs(seen) <= kLarge || !counts_.raise(Alarm::unscaled)) continue;
    services_.log(LogLevel::warning, text("brain '", spec_.name, "': agent_observe: observation[", i,
                                          "]: found ", seen, scale.empty() ? "" : " after its scale",
                                          ", expected about -1 to 1. Set "
                                          "imp_brain_desc::observation_scale[",
                                          i, "] to 1 / the largest number."));
    return;
  }
}

Result<> Agents::observe_in_place(std::uint32_t agent, std::uint64_t offset) {
  constexpr const char* call = "agent_observe_in_place";
  const SharedTensor& observations = decisions_.shared().observations;
  if (!observations.buffer)
    return make_error(ErrorCode::unsupported,
                      text(call, ": brain '", spec_.name,
                           "': found no tensor for observations. Create the brain with one."));
  const std::uint64_t count = observations.element_count();
  if (offset > count - spec_.observation.count)
    return bad_field(call, "first", text(offset),
                     text("at most ", count - spec_.observation.count, ", so that ", spec_.observation.count,
                          " numbers fit into tensor '", observations.name, "' of ", count));
  IMPRINT_CHECK(check_compiled(call));
  decisions_.agent(agent).request_in_place(services_.clock.frame, static_cast<std::int32_t>(offset));
  return {};
}

void Agents::acted(std::uint32_t agent) {
  if (learning_) learning_->experience().acted(agent, decisions_.agent(agent), services_.clock.time_s);
}

Result<const Answer*> Agents::act(std::uint32_t agent) {
  AgentSlot& slot = decisions_.agent(agent);
  switch (slot.act(services_.clock.frame, services_.clock.time_s)) {
    case AgentSlot::Outcome::fresh:
      acted(agent);
      return &slot.last_answer();
    case AgentSlot::Outcome::repeated:
      return &slot.last_answer();
    case AgentSlot::Outcome::not_ready:
      return make_error(ErrorCode::not_ready, "");
    case AgentSlot::Outcome::nothing:
      break;
  }
  return make_error(ErrorCode::not_found, "agent_act: found no request. Call agent_observe first.");
}

Result<> Agents::check_action(const char* call, std::uint32_t goal, std::span<const std::uint32_t> branches,
                              std::span<const float> continuous) const {
  IMPRINT_CHECK(check_index(call, "goal", goal, spec_.goal_count, kPerGoal));
  for (std::size_t b = 0; b < branches.size(); ++b)
    if (branches[b] >= spec_.action.branch_sizes[b])
      return bad_field(call, text("branches[", b, "]"), text(branches[b]),
                       text("below ", spec_.action.branch_sizes[b], ", its size"));
  for (std::size_t i = 0; i < continuous.size(); ++i)
    if (!(std::abs(continuous[i]) <= 1))
      return bad_field(call, text("continuous[", i, "]"), text(continuous[i]), "-1 to 1");
  return {};
}

Result<> Agents::act_by_heuristic(std::uint32_t agent, std::span<const std::uint32_t> branches,
                                  std::span<const float> continuous) {
  constexpr const char* call = "agent_heuristic";
  AgentSlot& slot = decisions_.agent(agent);
  if (slot.asks_brain())
    return make_error(ErrorCode::wrong_state,
                      text(call, ": mode: found ", slot.mode() == Mode::learning ? "learning" : "inference",
                           ", expected heuristic or record. Call agent_set_mode first."));
  IMPRINT_CHECK(check_action(call, slot.goal(), branches, continuous));
  if (!slot.act_by_heuristic(services_.clock.time_s, branches, continuous))
    return make_error(ErrorCode::wrong_state,
                      text(call, ": found no observation since the last action. Call agent_observe first."));
  acted(agent);
  if (learning_ && learning_->experience().records(slot)) ++counts_.decisions;
  if (slot.mode() == Mode::record && takes_demonstrations()) {
    ++counts_.demonstrations;
    learning_->experience().demonstrate(agent, slot.last_answer().choice, kRecordedWeight);
  }
  return {};
}

Result<> Agents::check_learns_from(const char* call, const char* signal, bool takes,
                                   std::uint32_t agent) const {
  if (!takes)
    return make_error(ErrorCode::unsupported,
                      text(call, ": brain '", spec_.name, "' does not learn from ", signal,
                           "; its learner is ", learner_name(spec_.learner),
                           learning_ && learning_->learner().learns_beside() && takes_feedback()
                               ? ". Give brain_create imp_demonstration_options."
                               : ". Set imp_brain_desc::learner to one that does."));
  if (decisions_.agent(agent).mode() == Mode::inference)
    return make_error(ErrorCode::wrong_state,
                      text(call, ": mode: found inference, expected another. Set it to learning first."));
  return {};
}

Result<> Agents::feedback(std::uint32_t agent, const Feedback& feedback) {
  constexpr const char* call = "agent_feedback";
  IMPRINT_CHECK(check_learns_from(call, "feedback", takes_feedback(), agent));
  IMPRINT_CHECK(check_number(call, "value", feedback.value, -1, 1));
  IMPRINT_CHECK(check_positive(call, "weight", feedback.weight));
  if (!std::isfinite(feedback.time_s) || feedback.time_s > services_.clock.time_s)
    return bad_field(call, "time_s", text(feedback.time_s),
                     text("at most the frame's time, ", services_.clock.time_s));
  ++counts_.feedbacks;
  learning_->experience().feedback(agent, decisions_.agent(agent), feedback);
  return {};
}

Result<> Agents::demonstrate(std::uint32_t agent, const Demonstration& demonstration) {
  constexpr const char* call = "agent_demonstrate";
  IMPRINT_CHECK(check_learns_from(call, "demonstrations", takes_demonstrations(), agent));
  IMPRINT_CHECK(check_count(call, "observation_count", demonstration.observation.size(),
                            spec_.observation.width(),
                            spec_.observation.stack > 1 ? kPerStack : kPerObservation));
  IMPRINT_CHECK(check_finite(call, "observation", demonstration.observation));
  IMPRINT_CHECK(check_count(call, "branch_count", demonstration.branches.size(),
                            spec_.action.branch_sizes.size(), kPerBranch));
  IMPRINT_CHECK(check_count(call, "continuous_count", demonstration.continuous.size(),
                            spec_.action.continuous_count, kPerContinuous));
  IMPRINT_CHECK(check_action(call, demonstration.goal, demonstration.branches, demonstration.continuous));
  IMPRINT_CHECK(check_positive(call, "weight", demonstration.weight));
  Choice shown;
  shown.observation.assign(demonstration.observation.begin(), demonstration.observation.end());
  shown.goal = demonstration.goal;
  shown.branches.assign(demonstration.branches.begin(), demonstration.branches.end());
  shown.continuous.assign(demonstration.continuous.begin(), demonstration.continuous.end());
  ++counts_.demonstrations;
  learning_->experience().demonstrate(agent, shown, demonstration.weight);
  return {};
}

void Agents::check_cut(float reward) {
  if (std::abs(reward) <= 1 || learning_->learner().needs_next() || !counts_.raise(Alarm::cut_reward)) return;
  services_.log(LogLevel::warning,
                text("brain '", spec_.name, "': agent_reward: found ", reward,
                     ", expected -1 to 1, because the ", learner_name(spec_.learner),
                     " learner cuts what is beyond. Divide your rewards by the largest, or use the ",
                     spec_.action.branch_sizes.size() == 1 ? "DQN" : "PPO", " learner."));
}

Result<> Agents::reward(std::uint32_t agent, float reward) {
  if (!std::isfinite(reward)) return bad_field("agent_reward", "reward", text(reward), "a finite number");
  AgentSlot& slot = decisions_.agent(agent);
  if (reward != 0 && slot.mode() == Mode::learning && !takes_feedback() &&
      counts_.raise(Alarm::unused_reward))
    services_.log(LogLevel::warning,
                  text("brain '", spec_.name, "': agent_reward: found learner ", learner_name(spec_.learner),
                       ", which learns from no reward. Set imp_brain_desc::learner to a learner of rewards, "
                       "or set the agent's mode to inference."));
  if (!takes_feedback() || slot.mode() == Mode::inference) return {};
  check_cut(reward);
  learning_->experience().reward(agent, slot, reward, services_.clock.time_s);
  return {};
}

Result<> Agents::end(std::uint32_t agent, EpisodeEnd end, std::span<const float> left) {
  AgentSlot& slot = decisions_.agent(agent);
  if (learning_) learning_->experience().episode_ends(agent, end, slot, services_.clock.time_s, left);
  slot.end_episode();
  decisions_.reset_state(agent);
  ++counts_.episodes;
  return {};
}

Result<> Agents::end_episode(std::uint32_t agent, EpisodeEnd end_of) {
  left_.clear();
  const bool leaves = end_of == EpisodeEnd::terminated;
  if (spec_.group_size > 0 && (leaves || decisions_.agent(agent).last_seen())) {
    decisions_.see_group(agent, leaves, left_);
    if (left_[0] == 0) left_.clear();  // it was the last
  }
  return end(agent, end_of, left_);
}

Result<> Agents::check_groups(const char* call) const {
  if (spec_.group_size > 0) return {};
  return make_error(ErrorCode::unsupported, text(call, ": brain '", spec_.name,
                                                 "': found no groups. Give brain_create imp_group_options."));
}

Result<> Agents::set_group(std::uint32_t agent, std::uint32_t group) {
  constexpr const char* call = "agent_set_group";
  if (group != 0 || spec_.group_size > 0) IMPRINT_CHECK(check_groups(call));
  AgentSlot& slot = decisions_.agent(agent);
  if (slot.group() == group) return {};
  std::uint32_t members = 0;
  const std::uint32_t first = agent / spec_.agents_per_brain * spec_.agents_per_brain;
  for (std::uint32_t i = first; i < first + spec_.agents_per_brain; ++i)
    members += decisions_.agent(i).occupied() && decisions_.agent(i).group() == group ? 1 : 0;
  if (group != 0 && members >= spec_.group_size)
    return make_error(
        ErrorCode::unsupported,
        text(call, ": group ", group, ": found ", members,
             " agents in it, expected fewer than imp_group_options::group_size. Raise it, or use "
             "another group."));
  if (learning_) learning_->experience().mode_changes(agent);
  slot.set_group(group);
  return {};
}

// Calls visit for each agent of the group that has seen something in its episode, the given one included.
template <class Visit>
Result<> Agents::each_member(std::uint32_t agent, const Visit& visit) {
  const std::uint32_t first = agent / spec_.agents_per_brain * spec_.agents_per_brain,
                      group = decisions_.agent(agent).group();
  for (std::uint32_t i = first; i < first + spec_.agents_per_brain; ++i) {
    const AgentSlot& slot = decisions_.agent(i);
    const bool belongs = i == agent || (group != 0 && slot.group() == group);
    if (belongs && slot.occupied() && slot.sees()) IMPRINT_CHECK(visit(i));
  }
  return {};
}

Result<> Agents::group_reward(std::uint32_t agent, float given) {
  IMPRINT_CHECK(check_groups("agent_group_reward"));
  if (!std::isfinite(given)) return bad_field("agent_group_reward", "reward", text(given), "a finite number");
  return each_member(agent, [&](std::uint32_t member) { return reward(member, given); });
}

Result<> Agents::end_group_episode(std::uint32_t agent, EpisodeEnd end_of) {
  IMPRINT_CHECK(check_groups("agent_end_group_episode"));
  // All members' observations before the first of them ends.
  decisions_.see_group(agent, false, left_);
  return each_member(agent, [&](std::uint32_t member) {
    const bool goes_on = end_of == EpisodeEnd::truncated && decisions_.agent(member).last_seen();
    return end(member, end_of, goes_on ? std::span<const float>(left_) : std::span<const float>());
  });
}

}  // namespace imprint::agent
