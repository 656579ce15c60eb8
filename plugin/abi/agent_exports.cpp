#include <algorithm>

#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"

namespace imprint::abi {
namespace {

template <class T>
std::span<const T> span_of(const T* data, std::size_t count) {
  return data ? std::span<const T>(data, count) : std::span<const T>();
}

template <class From, class To, std::size_t count>
std::uint32_t copy_some(const From& from, To (&to)[count]) {
  const std::size_t copied = std::min(from.size(), count);
  std::copy_n(from.begin(), copied, to);
  return static_cast<std::uint32_t>(copied);
}

// A list that agent_heuristic was given.
Result<> check_list(const char* name, const void* list, std::uint32_t count, std::uint32_t expected) {
  if (count != expected)
    return refuse("agent_heuristic", text(name, ": found a count of ", count, ", expected ", expected));
  return count > 0 ? check_pointer("agent_heuristic", name, list) : Result<>();
}

}  // namespace

imp_result IMP_CALL agent_create(imp_brain brain, uint32_t brain_index, imp_agent* agent) {
  return with_brain(brain, Tag::frame_or_create, "agent_create",
                    [&](ContextEntry& entry, const std::shared_ptr<agent::Brain>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("agent_create", "agent", agent));
                      IMPRINT_ASSIGN(const std::uint32_t index, found->agents().add(brain_index));
                      const std::lock_guard lock(registry_mutex());
                      const auto [place, placed] = entry.agents.insert({found, index});
                      if (!placed) {
                        found->agents().remove(index);
                        return make_error(ErrorCode::unsupported,
                                          "agent_create: this context has " + std::to_string(kSlots) +
                                              " agents, the most possible. Destroy one first.");
                      }
                      *agent = {pack_handle(
                          {HandleKind::agent, entry.slot, entry.generation, place.slot, place.generation})};
                      return {};
                    });
}

imp_result IMP_CALL agent_set_opponent(imp_agent agent, uint32_t opponent, uint32_t* chosen) {
  return with_place(
      agent, Tag::frame_or_create, "agent_set_opponent", [&](ContextEntry&, AgentPlace& place) -> Result<> {
        IMPRINT_ASSIGN(const std::uint32_t drawn, place.brain->agents().set_opponent(place.index, opponent));
        if (chosen) *chosen = drawn;
        return {};
      });
}

imp_result IMP_CALL match_report(imp_agent first, imp_agent second, float score) {
  return with_place(
      first, Tag::frame_or_create, "match_report", [&](ContextEntry& entry, AgentPlace& place) -> Result<> {
        if (!(score >= 0 && score <= 1))
          return refuse("match_report", text("score: found ", score, ", expected 0 to 1"));
        const HandleParts parts = unpack_handle(second.id);
        const bool beside = parts.kind == HandleKind::agent && parts.context_slot == entry.slot &&
                            parts.context_generation == entry.generation;
        AgentPlace* other = [&]() -> AgentPlace* {
          const std::lock_guard lock(registry_mutex());
          return beside ? find_agent(entry, second) : nullptr;
        }();
        if (!other)
          return make_error(ErrorCode::invalid_argument,
                            "match_report: second: found no agent of the first one's context, expected one.");
        IMPRINT_ASSIGN(agent::Opponent * own, place.brain->agents().rated(place.index));
        IMPRINT_ASSIGN(agent::Opponent * against, other->brain->agents().rated(other->index));
        agent::Opponents::rate(*own, *against, score);
        place.brain->agents().publish_rating();
        other->brain->agents().publish_rating();
        return {};
      });
}

imp_result IMP_CALL agent_destroy(imp_agent agent) {
  return with_place(
      agent, Tag::frame_or_create, "agent_destroy",
      [&](ContextEntry& entry, AgentPlace& place) -> Result<> {
        place.brain->agents().remove(place.index);
        const std::lock_guard lock(registry_mutex());
        entry.agents.erase(unpack_handle(agent.id).slot);
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL agent_set_mode(imp_agent agent, imp_mode mode) {
  return with_agent(agent, Tag::frame_or_create, "agent_set_mode",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      IMPRINT_CHECK(check_enum("agent_set_mode", "mode", mode, IMP_MODE_RECORD));
                      return brain.agents().set_mode(index, static_cast<agent::Mode>(mode));
                    });
}

imp_result IMP_CALL agent_set_goal(imp_agent agent, uint32_t goal) {
  return with_agent(
      agent, Tag::frame_or_create, "agent_set_goal",
      [&](agent::Brain& brain, std::uint32_t index) { return brain.agents().set_goal(index, goal); });
}

imp_result IMP_CALL agent_set_mask(imp_agent agent, const uint8_t* allowed, uint32_t count) {
  return with_agent(agent, Tag::frame_or_create, "agent_set_mask",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      if (allowed && count == 0)
                        return refuse("agent_set_mask",
                                      "count: found 0, expected one flag for each option of all branches. "
                                      "Pass null to allow all.");
                      return brain.agents().set_mask(index, span_of(allowed, count));
                    });
}

imp_result IMP_CALL agent_observe(imp_agent agent, const float* observation, uint32_t count) {
  return with_agent(agent, Tag::frame_before, "agent_observe",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      IMPRINT_CHECK(check_pointer("agent_observe", "observation", observation));
                      return brain.agents().observe(index, {observation, count});
                    });
}

imp_result IMP_CALL agent_observe_in_place(imp_agent agent, uint64_t first) {
  return with_agent(agent, Tag::frame_before, "agent_observe_in_place",
                    [&](agent::Brain& brain, std::uint32_t index) {
                      return brain.agents().observe_in_place(index, first);
                    });
}

imp_result IMP_CALL agent_act(imp_agent agent, imp_action* action) {
  return with_agent(agent, Tag::frame, "agent_act",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      IMPRINT_CHECK(check_filled_struct("agent_act", "action", action));
                      IMPRINT_ASSIGN(const agent::Answer* answer, brain.agents().act(index));
                      fill_struct(action, [&](imp_action& filled) {
                        filled.decision = answer->decision;
                        filled.requested_frame = answer->requested_frame;
                        filled.goal = answer->choice.goal;
                        filled.branch_count = copy_some(answer->choice.branches, filled.branches);
                        filled.continuous_count = copy_some(answer->choice.continuous, filled.continuous);
                        filled.value_count = copy_some(answer->values, filled.values);
                        filled.is_new = answer->is_new ? 1 : 0;
                      });
                      return {};
                    });
}

imp_result IMP_CALL agent_heuristic(imp_agent agent, const uint32_t* branches, uint32_t branch_count,
                                    const float* continuous, uint32_t continuous_count) {
  return with_agent(
      agent, Tag::frame, "agent_heuristic", [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
        const agent::BrainInfo info = brain.info();
        IMPRINT_CHECK(check_list("branches", branches, branch_count, info.branch_count));
        IMPRINT_CHECK(check_list("continuous", continuous, continuous_count, info.continuous_count));
        return brain.agents().act_by_heuristic(index, span_of(branches, branch_count),
                                               span_of(continuous, continuous_count));
      });
}

imp_result IMP_CALL agent_feedback(imp_agent agent, const imp_feedback* feedback) {
  return with_agent(
      agent, Tag::frame, "agent_feedback", [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
        IMPRINT_ASSIGN(const imp_feedback given, read_struct("agent_feedback", "feedback", feedback));
        IMPRINT_CHECK(check_enum("agent_feedback", "credit", given.credit, IMP_CREDIT_CURRENT));
        return brain.agents().feedback(
            index, {given.value, given.weight, static_cast<agent::CreditKind>(given.credit), given.time_s});
      });
}

imp_result IMP_CALL agent_demonstrate(imp_agent agent, const imp_demonstration* demonstration) {
  return with_agent(agent, Tag::frame, "agent_demonstrate",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      IMPRINT_ASSIGN(const imp_demonstration given,
                                     read_struct("agent_demonstrate", "demonstration", demonstration));
                      constexpr const char* call = "agent_demonstrate";
                      IMPRINT_CHECK(check_pointer(call, "demonstration.observation", given.observation));
                      if (given.branch_count > 0)
                        IMPRINT_CHECK(check_pointer(call, "demonstration.branches", given.branches));
                      if (given.continuous_count > 0)
                        IMPRINT_CHECK(check_pointer(call, "demonstration.continuous", given.continuous));
                      agent::Demonstration shown;
                      shown.observation = {given.observation, given.observation_count};
                      shown.goal = given.goal;
                      shown.branches = span_of(given.branches, given.branch_count);
                      shown.continuous = span_of(given.continuous, given.continuous_count);
                      shown.weight = given.weight;
                      return brain.agents().demonstrate(index, shown);
                    });
}

imp_result IMP_CALL agent_reward(imp_agent agent, float reward) {
  return with_agent(agent, Tag::frame, "agent_reward", [&](agent::Brain& brain, std::uint32_t index) {
    return brain.agents().reward(index, reward);
  });
}

imp_result IMP_CALL agent_end_episode(imp_agent agent, imp_episode_end end) {
  return with_agent(agent, Tag::frame, "agent_end_episode",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      IMPRINT_CHECK(check_enum("agent_end_episode", "end", end, IMP_EPISODE_TRUNCATED));
                      return brain.agents().end_episode(index, static_cast<agent::EpisodeEnd>(end));
                    });
}

imp_result IMP_CALL agent_set_group(imp_agent agent, uint32_t group) {
  return with_agent(
      agent, Tag::frame_or_create, "agent_set_group",
      [&](agent::Brain& brain, std::uint32_t index) { return brain.agents().set_group(index, group); });
}

imp_result IMP_CALL agent_group_reward(imp_agent agent, float reward) {
  return with_agent(agent, Tag::frame, "agent_group_reward", [&](agent::Brain& brain, std::uint32_t index) {
    return brain.agents().group_reward(index, reward);
  });
}

imp_result IMP_CALL agent_end_group_episode(imp_agent agent, imp_episode_end end) {
  return with_agent(agent, Tag::frame, "agent_end_group_episode",
                    [&](agent::Brain& brain, std::uint32_t index) -> Result<> {
                      IMPRINT_CHECK(check_enum("agent_end_group_episode", "end", end, IMP_EPISODE_TRUNCATED));
                      return brain.agents().end_group_episode(index, static_cast<agent::EpisodeEnd>(end));
                    });
}

}  // namespace imprint::abi
