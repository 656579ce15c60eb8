#pragma once
// The interface of a learner. Each learner is one file pair; spec/learner_kind.h lists them and
// learn/registry.h finds them. docs/adding-a-learner.md shows how to add one.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/decide/noise.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/learn/sample_layout.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/learner_traits.h"
#include "plugin/agent/spec/network.h"

namespace imprint::agent {

// Contents of one sample.
enum class SampleKind : std::uint8_t {
  labelled,    // a choice that a person judged or demonstrated
  step,        // an action and its reward (learn/samples/trajectory.h)
  transition,  // a step, and what the agent observed next
};

// How learning uses a sample.
enum class SampleUse : std::uint8_t {
  replay,   // kept in the replay memory; each learn step draws a minibatch
  once,     // learned from when it arrives, then forgotten
  rollout,  // learned from with rollout_steps others of the same weights, then forgotten
};

// A setting of a learner that a save must have been made with, beside its name in the schema's JSON.
struct SchemaSetting {
  const char* name = "";
  std::uint32_t value = 0;
  bool is_flag = true;
  const char* words = nullptr;  // what the schema's text and hash say of it; null: nothing, it is as usual
};

// Immutable and shared by all brains. Any thread.
class Learner {
 public:
  virtual ~Learner() = default;

  // ---- signals ----
  virtual bool takes_feedback() const = 0;  // praise, scolding and rewards
  virtual bool takes_demonstrations() const = 0;
  // Whether demonstrations (BrainSpec::demonstration_capacity) and signals (learn/learners/signals.h) may
  // stand beside its rewards.
  virtual bool learns_beside() const { return false; }

  // ---- fields of a brain that name this learner ----
  // Errors: unsupported (actions that it does not serve).
  virtual Result<> check_actions(const BrainSpec& spec) const = 0;
  // The fields that only this learner reads. Errors: invalid_argument.
  virtual Result<> check_settings(const BrainSpec& spec) const = 0;

  // Fills in settings that are 0 and that it chooses by the brain's other fields.
  virtual void complete(BrainSpec& /*spec*/) const {}
  // The settings whose change makes a save unfit, such as one that adds weights.
  virtual std::vector<SchemaSetting> schema(const BrainSpec& /*spec*/) const { return {}; }
  virtual NetworkTraits network_traits(const BrainSpec& /*spec*/) const { return {}; }

  // ---- samples ----
  virtual SampleKind sample_kind() const = 0;
  virtual SampleUse sample_use() const = 0;
  // Whether actions that the game chose itself become samples.
  virtual bool off_policy() const = 0;
  virtual SampleLayout layout(const BrainSpec& spec) const = 0;
  // Labelled samples: writes the label into a sample's row. target: -1 to 1.
  virtual void label(std::span<float> row, const SampleLayout& layout, float target, float weight,
                     LabelSource source) const;

  // ---- acting ----
  // Writes what is added to the choices' values before the highest one is taken. allowed: 1 = may be chosen.
  // By default Gaussian noise of BrainSpec::exploration.
  virtual void explore(const BrainSpec& spec, const DecisionDraw& draw, std::span<const std::int32_t> allowed,
                       std::span<float> noise) const;

  // Whether a step takes in no more samples than agents make in a period: each costs a pass over the weights.
  virtual bool learns_one_by_one() const { return false; }

  // Whether the column `allowed` holds what the next state allows, rather than what this one did.
  virtual bool rates_next() const { return replays(); }

  // Whether the outputs are discounted sums of rewards, which then bound them.
  virtual bool predicts_returns() const { return false; }
  // The least usual size of rewards that it learns from, where they are neither normalised nor cut; 0: any.
  virtual double least_reward() const { return 0; }
  // Whether all brains of a kennel try to earn more. Else the first one alone is judged by its returns.
  virtual bool improves_each_brain() const { return true; }
  // Whether exploration becomes slow where hardly any step tells anything (RewardSparsity).
  virtual bool slows_exploration() const { return collects_rollouts(); }
  // Whether it trains a network with a cell (BrainSpec::cell).
  virtual bool learns_sequences() const { return false; }
  // Whether its critic sees a group of agents (BrainSpec::group_size).
  virtual bool learns_in_groups() const { return false; }
  // Whether several processes can make one learn step (BrainSpec::process_count).
  virtual bool averages_gradients() const { return false; }
  // Whether a sample that another process made teaches it (BrainSpec::receives_experience).
  virtual bool learns_from_others() const { return needs_next() || (!records_steps() && replays()); }

  // ---- learning ----
  // Adds state, work, outputs and updates to `graph`. intake.samples: float32 [P * K, W] as layout() says;
  // intake.filled and intake.rows: LearnGraph. Output kLoss is float32 [P]; where it is not finite, the brain
  // must keep its weights. Rollouts are learned by a sequence, whose first part reads no samples.
  virtual Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                            LearnGraph& graph) const = 0;

  // ---- from the answers above ----
  bool records_steps() const { return sample_kind() != SampleKind::labelled; }
  bool draws_newest() const { return replays() && !records_steps(); }  // ReplayMemory::draw_rows
  bool needs_next() const { return sample_kind() == SampleKind::transition; }
  bool replays() const { return sample_use() == SampleUse::replay; }
  bool collects_rollouts() const { return sample_use() == SampleUse::rollout; }
};

// ---- for check_actions ----
Result<> check_one_branch(const BrainSpec& spec);
Result<> check_branches_only(const BrainSpec& spec);

}  // namespace imprint::agent
