#pragma once
// The game's calls to the agents of a brain. Checks arguments, then passes them to the deciding and the
// learning part. Agents are numbered from 0 to agent_capacity - 1; brain p has those from p *
// agents_per_brain on.
//
// Frame thread, unless a function says otherwise.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/decide/decisions.h"
#include "plugin/agent/learn/training/learning.h"
#include "plugin/agent/spec/brain_counts.h"
#include "plugin/agent/spec/brain_services.h"

namespace imprint::agent {

struct Demonstration {
  std::span<const float> observation;
  std::uint32_t goal = 0;
  std::span<const std::uint32_t> branches;
  std::span<const float> continuous;
  float weight = 2;
};

class Agents {
 public:
  // Everything here outlives it. learning: null = no learner.
  Agents(const BrainServices& services, const BrainSpec& spec, BrainCounts& counts, Decisions& decisions,
         std::shared_ptr<Learning> learning)
      : services_(services),
        spec_(spec),
        counts_(counts),
        decisions_(decisions),
        learning_(std::move(learning)) {}

  Learning* learning() { return learning_.get(); }  // null: none

  // ---- create-time ----
  // The agent's number. Errors: invalid_argument, unsupported (the brain has no free agent).
  Result<std::uint32_t> add(std::uint32_t brain_index);
  void remove(std::uint32_t agent);

  // ---- frame thread, or between frames ----
  Result<> set_mode(std::uint32_t agent, Mode mode);
  Result<> set_goal(std::uint32_t agent, std::uint32_t goal);
  // Self-play. Returns what was drawn for kDrawnOpponent, else `opponent`. Errors: unsupported (the brain has
  // no pool), not_found (the pool has no such entry).
  Result<std::uint32_t> set_opponent(std::uint32_t agent, std::uint32_t opponent);
  // For ratings: who the agent acts by. Errors: unsupported.
  Result<Opponent*> rated(std::uint32_t agent);
  void publish_rating();  // after a match, for stats
  Result<> keep_opponent(std::uint32_t brain);
  Result<Opponent> opponent(std::uint32_t brain, std::uint32_t entry) const;      // not_found
  Result<> set_mask(std::uint32_t agent, std::span<const std::uint8_t> allowed);  // empty = all

  // ---- frame thread ----
  Result<> observe(std::uint32_t agent, std::span<const float> observation);
  // The observation begins at this element of the shared observations when the frame's work runs. Errors:
  // unsupported (nothing is shared), invalid_argument (ends beyond the tensor).
  Result<> observe_in_place(std::uint32_t agent, std::uint64_t offset);
  // Errors: not_ready, not_found. Valid until the agent's next call.
  Result<const Answer*> act(std::uint32_t agent);
  Result<> act_by_heuristic(std::uint32_t agent, std::span<const std::uint32_t> branches,
                            std::span<const float> continuous);
  Result<> feedback(std::uint32_t agent, const Feedback& feedback);
  Result<> demonstrate(std::uint32_t agent, const Demonstration& demonstration);
  // No effect for a learner that takes no feedback, which the log says once.
  Result<> reward(std::uint32_t agent, float reward);
  Result<> end_episode(std::uint32_t agent, EpisodeEnd end);
  // ---- groups: BrainSpec::group_size. Errors: unsupported (no groups) ----
  Result<> set_group(std::uint32_t agent, std::uint32_t group);  // unsupported too: the group is full
  Result<> group_reward(std::uint32_t agent, float reward);      // to all that are in its group and acted
  Result<> end_group_episode(std::uint32_t agent, EpisodeEnd end);

 private:
  Result<> check_compiled(const char* call) const;
  Result<> check_pool(const char* call) const;
  Result<> check_groups(const char* call) const;
  template <class Visit>
  Result<> each_member(std::uint32_t agent, const Visit& visit);
  Result<> end(std::uint32_t agent, EpisodeEnd end, std::span<const float> left);
  Result<> check_learns_from(const char* call, const char* signal, bool takes, std::uint32_t agent) const;
  Result<> check_action(const char* call, std::uint32_t goal, std::span<const std::uint32_t> branches,
                        std::span<const float> continuous) const;
  bool takes_feedback() const { return learning_ && learning_->learner().takes_feedback(); }
  bool takes_demonstrations() const {
    return learning_ && (learning_->learner().takes_demonstrations() || spec_.keeps_demonstrations());
  }
  void check_scale(std::span<const float> observation);  // warns once
  void check_cut(float reward);                          // warns once
  void acted(std::uint32_t agent);                       // a new action begins

  const BrainServices& services_;
  const BrainSpec& spec_;
  BrainCounts& counts_;
  Decisions& decisions_;
  std::shared_ptr<Learning> learning_;
  std::vector<float> left_;  // a group; a member to keep its memory
};

}  // namespace imprint::agent
