// imp_brain_desc with its learner's options, and imp_policy_desc, as the specs of plugin/agent.

#include <algorithm>
#include <array>

#include "plugin/abi/convert.h"

namespace imprint::abi {
namespace {

constexpr const char* kCall = "brain_create";

const char* name_of(imp_learner learner) {
  return agent::learner_name(static_cast<agent::LearnerKind>(learner));
}

// Saved brains and the C interface number learners alike.
constexpr bool same(imp_learner given, agent::LearnerKind kind) {
  return static_cast<int>(given) == static_cast<int>(kind);
}
static_assert(same(IMP_LEARNER_NONE, agent::LearnerKind::none));
static_assert(same(IMP_LEARNER_FEEDBACK, agent::LearnerKind::feedback));
static_assert(same(IMP_LEARNER_CLONING, agent::LearnerKind::cloning));
static_assert(same(IMP_LEARNER_DQN, agent::LearnerKind::dqn));
static_assert(same(IMP_LEARNER_COACH, agent::LearnerKind::coach));
static_assert(same(IMP_LEARNER_PPO, agent::LearnerKind::ppo));
static_assert(agent::kLastLearner == agent::LearnerKind::ppo, "assert the new learner's number too");

struct OptionKind {
  std::uint32_t type;
  const char* name;
  imp_learner learner;
};
constexpr std::array kOptions = {
    OptionKind{IMP_STRUCT_FEEDBACK_OPTIONS, "imp_feedback_options", IMP_LEARNER_FEEDBACK},
    OptionKind{IMP_STRUCT_CLONING_OPTIONS, "imp_cloning_options", IMP_LEARNER_CLONING},
    OptionKind{IMP_STRUCT_DQN_OPTIONS, "imp_dqn_options", IMP_LEARNER_DQN},
    OptionKind{IMP_STRUCT_COACH_OPTIONS, "imp_coach_options", IMP_LEARNER_COACH},
    OptionKind{IMP_STRUCT_PPO_OPTIONS, "imp_ppo_options", IMP_LEARNER_PPO},
};

// The option struct of desc.learner on desc's chain; null: none. Nothing else may be there.
Result<const void*> find_options(const imp_brain_desc& desc) {
  const void* options = nullptr;
  for (const void* next = desc.header.next; next; next = read_header(next).next) {
    const std::uint32_t type = read_header(next).type;
    const auto* kind = std::ranges::find(kOptions, type, &OptionKind::type);
    if (kind == kOptions.end())
      return refuse(kCall, text("desc.header.next: found struct type ", type,
                                ", expected the learner's option struct. Make it with its _init function."));
    if (kind->learner != desc.learner)
      return refuse(
          kCall, text("desc.header.next: found ", kind->name, ", but desc.learner is ", name_of(desc.learner),
                      ". Remove it, or set desc.learner to ", name_of(kind->learner), "."));
    if (options) return refuse(kCall, text("desc.header.next: found two ", kind->name, ", expected one"));
    options = next;
  }
  return options;
}

// `options`: null, or of this type.
template <class T>
Result<T> read_options(const void* options) {
  if (!options) return defaults_of(std::type_identity<T>());
  return read_struct(kCall, "desc.header.next", static_cast<const T*>(options));
}

template <class Options>
void take_shared(const Options& from, agent::BrainSpec& into) {
  into.learn_period_frames = from.learn_period_frames;
  into.batch_size = from.batch_size;
  into.learning_rate = from.learning_rate;
  into.max_gradient_norm = from.max_gradient_norm;
  if constexpr (requires { from.replay_capacity; }) into.replay_capacity = from.replay_capacity;
  if constexpr (requires { from.exploration; }) into.exploration = from.exploration;
  if constexpr (requires { from.discount; }) into.discount = from.discount;
  if constexpr (requires { from.credit_delay_s; }) {
    into.credit_delay_s = from.credit_delay_s;
    into.credit_width_s = from.credit_width_s;
  }
}

Result<> take_feedback(const void* options, agent::BrainSpec& spec) {
  IMPRINT_ASSIGN(const imp_feedback_options given, read_options<imp_feedback_options>(options));
  take_shared(given, spec);
  spec.margin = given.margin;
  spec.margin_weight = given.margin_weight;
  return {};
}

Result<> take_cloning(const void* options, agent::BrainSpec& spec) {
  IMPRINT_ASSIGN(const imp_cloning_options given, read_options<imp_cloning_options>(options));
  take_shared(given, spec);
  return {};
}

Result<> take_dqn(const void* options, agent::BrainSpec& spec) {
  IMPRINT_ASSIGN(const imp_dqn_options given, read_options<imp_dqn_options>(options));
  IMPRINT_CHECK(check_flag(kCall, "double_estimate", given.double_estimate));
  take_shared(given, spec);
  spec.target_period = given.target_period;
  spec.target_rate = given.target_rate;
  spec.double_estimate = given.double_estimate != 0;
  IMPRINT_CHECK(check_flag(kCall, "squared_loss", given.squared_loss));
  IMPRINT_CHECK(check_flag(kCall, "dueling", given.dueling));
  spec.n_step = given.n_step;
  spec.squared_loss = given.squared_loss != 0;
  spec.dueling = given.dueling != 0;
  spec.recent_share = given.recent_share;
  spec.epsilon = given.epsilon;
  spec.epsilon_decisions = given.epsilon_decisions;
  return {};
}

Result<> take_coach(const void* options, agent::BrainSpec& spec) {
  IMPRINT_ASSIGN(const imp_coach_options given, read_options<imp_coach_options>(options));
  take_shared(given, spec);
  spec.trace_decay = given.trace_decay;
  return {};
}

Result<> take_ppo(const void* options, agent::BrainSpec& spec) {
  IMPRINT_ASSIGN(const imp_ppo_options given, read_options<imp_ppo_options>(options));
  IMPRINT_CHECK(check_flag(kCall, "clip_values", given.clip_values));
  IMPRINT_CHECK(check_flag(kCall, "normalise_observations", given.normalise_observations));
  IMPRINT_CHECK(check_flag(kCall, "normalise_rewards", given.normalise_rewards));
  take_shared(given, spec);
  spec.value_coefficient = given.value_coefficient;
  spec.max_divergence = given.max_divergence;
  spec.clip_values = given.clip_values != 0;
  spec.normalise_observations = given.normalise_observations != 0;
  spec.normalise_rewards = given.normalise_rewards != 0;
  spec.rollout_steps = given.rollout_steps;
  spec.epochs = given.epochs;
  spec.advantage_decay = given.advantage_decay;
  spec.clip_range = given.clip_range;
  spec.entropy_coefficient = given.entropy_coefficient;
  return {};
}

Result<> take_learner(const imp_brain_desc& desc, agent::BrainSpec& spec) {
  IMPRINT_CHECK(
      check_enum(kCall, "desc.learner", desc.learner, static_cast<imp_learner>(agent::kLastLearner)));
  IMPRINT_ASSIGN(const void* options, find_options(desc));
  spec.learner = static_cast<agent::LearnerKind>(desc.learner);
  switch (desc.learner) {
    case IMP_LEARNER_NONE:
      spec.exploration = 0;
      return {};
    case IMP_LEARNER_FEEDBACK:
      return take_feedback(options, spec);
    case IMP_LEARNER_CLONING:
      return take_cloning(options, spec);
    case IMP_LEARNER_DQN:
      return take_dqn(options, spec);
    case IMP_LEARNER_COACH:
      return take_coach(options, spec);
    case IMP_LEARNER_PPO:
      return take_ppo(options, spec);
  }
  return {};
}

Result<> check_lists(const imp_brain_desc& desc) {
  if (desc.branch_count > IMP_MAX_BRANCHES)
    return refuse(
        kCall, text("desc.branch_count: found ", desc.branch_count, ", expected at most ", IMP_MAX_BRANCHES));
  IMPRINT_CHECK(
      check_array(kCall, "desc.branch_sizes", desc.branch_sizes, desc.branch_count, IMP_MAX_BRANCHES));
  constexpr std::uint32_t kMostHidden = 16;
  if (desc.hidden_count > kMostHidden)
    return refuse(kCall,
                  text("desc.hidden_count: found ", desc.hidden_count, ", expected at most ", kMostHidden));
  constexpr std::uint32_t kMostObservations = 1u << 20;
  if (desc.observation_scale && desc.observation_count > kMostObservations)
    return refuse(kCall, text("desc.observation_count: found ", desc.observation_count, ", expected at most ",
                              kMostObservations));
  return {};
}

}  // namespace

Result<agent::BrainSpec> to_brain_spec(const imp_brain_desc* desc) {
  IMPRINT_ASSIGN(const imp_brain_desc given, read_struct(kCall, "desc", desc, Next::chain));
  IMPRINT_CHECK(check_lists(given));
  IMPRINT_CHECK(check_enum(kCall, "desc.activation", given.activation, IMP_ACTIVATION_GELU));

  agent::BrainSpec spec;
  if (given.name) spec.name = given.name;
  spec.observation.count = given.observation_count;
  if (given.observation_scale)
    spec.observation.scale.assign(given.observation_scale, given.observation_scale + given.observation_count);
  if (given.branch_count > 0)
    spec.action.branch_sizes.assign(given.branch_sizes, given.branch_sizes + given.branch_count);
  spec.action.continuous_count = given.continuous_count;
  spec.goal_count = given.goal_count;
  spec.hidden_sizes.assign(given.hidden_count, 64);
  if (given.hidden_sizes)
    spec.hidden_sizes.assign(given.hidden_sizes, given.hidden_sizes + given.hidden_count);
  spec.activation = static_cast<agent::Activation>(given.activation);
  spec.brain_count = given.brain_count;
  spec.agents_per_brain = given.agents_per_brain;
  spec.seed = given.seed;
  spec.action_latency_frames = given.action_latency_frames;
  spec.decision_period_frames = given.decision_period_frames;
  spec.snapshot_count = given.snapshot_count;
  IMPRINT_CHECK(take_learner(given, spec));
  return spec;
}

Result<agent::PolicySpec> to_policy_spec(const imp_policy_desc* desc) {
  constexpr const char* call = "brain_create_from_onnx";
  IMPRINT_ASSIGN(const imp_policy_desc given, read_struct(call, "desc", desc));
  IMPRINT_CHECK(check_array(call, "desc.data", given.data, given.size, SIZE_MAX));
  agent::PolicySpec spec;
  if (given.name) spec.name = given.name;
  spec.file = {static_cast<const std::byte*>(given.data), given.size};
  spec.agent_capacity = given.agent_capacity;
  spec.action_latency_frames = given.action_latency_frames;
  spec.constant_limit_bytes = given.constant_limit_bytes;
  return spec;
}

}  // namespace imprint::abi
