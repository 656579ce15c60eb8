#include "plugin/agent/schema.h"

#include <cmath>

#include "compute/base/utf8.h"

namespace imprint::agent {
namespace {

constexpr std::uint32_t kMaxSize = 1u << 20;        // of any one count; keeps products below within 64 bits
constexpr std::uint64_t kMaxElements = 1ull << 31;  // of any one tensor

Error refuse(const char* field, const std::string& found, const char* expected) {
  return make_error(ErrorCode::invalid_argument,
                    std::string("brain: ") + field + " is " + found + "; expected " + expected);
}

Status check_range(const char* field, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
  return agent::check_range("brain", field, value, low, high);
}

Status check_number(const char* field, float value, float low, float high) {
  if (std::isfinite(value) && value >= low && value <= high) return {};
  return make_error(ErrorCode::invalid_argument, std::string("brain: ") + field + " is " +
                                                     std::to_string(value) + "; expected a number from " +
                                                     std::to_string(low) + " to " + std::to_string(high));
}

Status check_sizes(const BrainSpec& spec) {
  IMPRINT_CHECK(check_range("observation_count", spec.observation.count, 1, kMaxSize));
  if (!spec.observation.scale.empty() && spec.observation.scale.size() != spec.observation.count)
    return refuse("observation_scale", std::to_string(spec.observation.scale.size()) + " factors",
                  "one for each observation, or none");
  for (const float factor : spec.observation.scale)
    if (!std::isfinite(factor)) return refuse("observation_scale", std::to_string(factor), "finite factors");
  IMPRINT_CHECK(check_range("goal_count", spec.goal_count, 1, kMaxSize));
  IMPRINT_CHECK(
      check_range("branch_count", static_cast<std::uint32_t>(spec.action.branch_sizes.size()), 0, 8));
  for (const std::uint32_t size : spec.action.branch_sizes)
    IMPRINT_CHECK(check_range("a branch size", size, 2, kMaxSize));
  IMPRINT_CHECK(check_range("continuous_count", spec.action.continuous_count, 0, 64));
  if (spec.action.branch_sizes.empty() && spec.action.continuous_count == 0)
    return refuse("branch_count", "0 with continuous_count 0", "at least one branch or continuous action");
  IMPRINT_CHECK(check_range("hidden_count", static_cast<std::uint32_t>(spec.hidden_sizes.size()), 0, 16));
  for (const std::uint32_t size : spec.hidden_sizes)
    IMPRINT_CHECK(check_range("a hidden size", size, 1, kMaxSize));
  IMPRINT_CHECK(check_range("brain_count", spec.brain_count, 1, kMaxSize));
  IMPRINT_CHECK(check_range("agents_per_brain", spec.agents_per_brain, 1, kMaxSize));
  if (std::uint64_t{spec.brain_count} * spec.agents_per_brain > kMaxSize)
    return refuse("brain_count * agents_per_brain",
                  std::to_string(std::uint64_t{spec.brain_count} * spec.agents_per_brain), "at most 1048576");
  IMPRINT_CHECK(check_range("action_latency_frames", spec.action_latency_frames, 1, 64));
  IMPRINT_CHECK(check_range("decision_period_frames", spec.decision_period_frames, 1, kMaxSize));
  IMPRINT_CHECK(check_range("snapshot_count", spec.snapshot_count, 0, 64));
  std::uint64_t outputs = spec.action.continuous_count;
  for (const std::uint32_t size : spec.action.branch_sizes) outputs += size;
  if (outputs * spec.goal_count > kMaxSize)
    return refuse("goals times outputs", std::to_string(spec.goal_count) + " x " + std::to_string(outputs),
                  "at most 1048576");
  const std::vector<std::uint32_t> layers = spec.layer_sizes();
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    if (std::uint64_t{layers[i]} * layers[i + 1] > kMaxElements / spec.brain_count)
      return refuse("a layer",
                    std::to_string(layers[i]) + " x " + std::to_string(layers[i + 1]) +
                        " weights in each of " + std::to_string(spec.brain_count) + " brains",
                    "at most 2147483648 weights in all");
  }
  return {};
}

// What only one learner reads.
Status check_own_settings(const BrainSpec& spec) {
  switch (spec.learner) {
    case LearnerKind::none:
    case LearnerKind::cloning:
      return {};
    case LearnerKind::feedback:
      IMPRINT_CHECK(check_number("margin", spec.margin, 0, 1e6f));
      return check_number("margin_weight", spec.margin_weight, 0, 1e6f);
    case LearnerKind::dqn:
      IMPRINT_CHECK(check_number("discount", spec.discount, 0, 1));
      IMPRINT_CHECK(check_range("target_period", spec.target_period, 1, kMaxSize));
      IMPRINT_CHECK(check_number("target_rate", spec.target_rate, 1e-6f, 1));
      return check_number("epsilon", spec.epsilon, 0, 1);
    case LearnerKind::ppo:
      IMPRINT_CHECK(check_number("discount", spec.discount, 0, 1));
      IMPRINT_CHECK(check_range("rollout_steps", spec.rollout_steps, 1, 65536));
      IMPRINT_CHECK(check_range("epochs", spec.epochs, 1, 64));
      if (spec.batch_size == 0 || spec.rollout_steps % spec.batch_size != 0)
        return refuse("batch_size", std::to_string(spec.batch_size),
                      "a divisor of rollout_steps, which ppo learns from in whole minibatches");
      if (std::uint64_t{spec.rollout_steps} * spec.epochs * spec.brain_count >= kMaxElements)
        return refuse("rollout_steps",
                      std::to_string(spec.rollout_steps) + " in " + std::to_string(spec.epochs) +
                          " epochs for each of " + std::to_string(spec.brain_count) + " brains",
                      "less than 2147483648 steps in all");
      IMPRINT_CHECK(check_number("advantage_decay", spec.advantage_decay, 0, 1));
      IMPRINT_CHECK(check_number("clip_range", spec.clip_range, 1e-6f, 1));
      return check_number("entropy_coefficient", spec.entropy_coefficient, 0, 1e6f);
    case LearnerKind::coach:
      return check_number("trace_decay", spec.trace_decay, 0, 0.9999f);
  }
  return {};
}

Status check_learner(const BrainSpec& spec) {
  IMPRINT_CHECK(check_number("exploration", spec.exploration, 0, 1e6f));
  if (spec.learner == LearnerKind::none) return {};
  const LearnerTraits& learner = traits_of(spec.learner);
  const std::size_t branches = spec.action.branch_sizes.size();
  const std::uint32_t continuous = spec.action.continuous_count;
  const std::string asked = std::string("brain: the ") + learner.name + " learner was asked to serve " +
                            std::to_string(branches) + " branches and " + std::to_string(continuous) +
                            " continuous actions; it ";
  if (learner.one_branch && (branches != 1 || continuous != 0))
    return make_error(
        ErrorCode::unsupported,
        asked + "rates the choices of exactly one branch. Use one branch, or the cloning learner");
  if (!learner.continuous && continuous != 0)
    return make_error(ErrorCode::unsupported,
                      asked + "draws from choices only. Use branches, or the cloning learner");
  if (learner.feedback) {
    IMPRINT_CHECK(check_number("credit_delay_s", spec.credit_delay_s, 0, 1e6f));
    IMPRINT_CHECK(check_number("credit_width_s", spec.credit_width_s, 1e-6f, 1e6f));
  }
  IMPRINT_CHECK(check_own_settings(spec));
  IMPRINT_CHECK(check_range("learn_period_frames", spec.learn_period_frames, 1, kMaxSize));
  IMPRINT_CHECK(check_range("batch_size", spec.batch_size, 1, kMaxSize));
  IMPRINT_CHECK(check_range("replay_capacity", spec.replay_capacity, 1, kMaxSize));
  if (std::uint64_t{spec.replay_capacity} * spec.brain_count >= kMaxElements)
    return refuse(
        "replay_capacity",
        std::to_string(spec.replay_capacity) + " for each of " + std::to_string(spec.brain_count) + " brains",
        "less than 2147483648 samples in all");
  IMPRINT_CHECK(check_number("learning_rate", spec.learning_rate, 0, 1e6f));
  IMPRINT_CHECK(check_number("max_gradient_norm", spec.max_gradient_norm, 0, 1e12f));
  return {};
}

}  // namespace

Status check_range(const char* call, const char* field, std::uint32_t value, std::uint32_t low,
                   std::uint32_t high) {
  if (value >= low && value <= high) return {};
  return make_error(ErrorCode::invalid_argument, std::string(call) + ": " + field + " is " +
                                                     std::to_string(value) + "; expected " +
                                                     std::to_string(low) + " to " + std::to_string(high));
}

// Files are to hold it.
Status check_name(const char* call, std::string_view name) {
  if (is_utf8(name)) return {};
  return make_error(ErrorCode::invalid_argument,
                    std::string(call) + ": name is not UTF-8; files of this brain could not hold it");
}

std::uint32_t ActionSpec::choice_count() const {
  std::uint32_t sum = 0;
  for (const std::uint32_t size : branch_sizes) sum += size;
  return sum;
}

std::uint32_t ActionSpec::output_count() const { return choice_count() + continuous_count; }

std::uint32_t ActionSpec::branch_offset(std::size_t branch) const {
  std::uint32_t offset = 0;
  for (std::size_t b = 0; b < branch; ++b) offset += branch_sizes[b];
  return offset;
}

std::vector<std::uint32_t> BrainSpec::layer_sizes() const {
  std::vector<std::uint32_t> sizes{observation.count};
  sizes.insert(sizes.end(), hidden_sizes.begin(), hidden_sizes.end());
  sizes.push_back(goal_count * action.output_count());
  return sizes;
}

std::uint64_t BrainSpec::parameter_count() const {
  const std::vector<std::uint32_t> sizes = layer_sizes();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) count += (std::uint64_t{sizes[i]} + 1) * sizes[i + 1];
  return count * brain_count;
}

Status validate(const BrainSpec& spec) {
  IMPRINT_CHECK(check_name("brain_create", spec.name));
  IMPRINT_CHECK(check_sizes(spec));
  return check_learner(spec);
}

namespace {

void add_networks(const BrainSpec& spec, Hasher& hasher) {
  hasher.text("imprint brain schema 1");
  hasher.number(spec.observation.count);
  for (std::uint32_t i = 0; i < spec.observation.count; ++i)
    hasher.number(spec.observation.scale.empty() ? 1.0f : spec.observation.scale[i]);
  hasher.number(spec.goal_count);
  hasher.number(static_cast<std::uint32_t>(spec.action.branch_sizes.size()));
  for (const std::uint32_t size : spec.action.branch_sizes) hasher.number(size);
  hasher.number(spec.action.continuous_count);
  hasher.number(static_cast<std::uint32_t>(spec.hidden_sizes.size()));
  for (const std::uint32_t size : spec.hidden_sizes) hasher.number(size);
  hasher.number(spec.activation).number(spec.brain_count);
}

}  // namespace

Hash128 network_hash(const BrainSpec& spec) {
  Hasher hasher;
  add_networks(spec, hasher);
  return hasher.digest();
}

Hash128 schema_hash(const BrainSpec& spec) {
  Hasher hasher;
  add_networks(spec, hasher);
  hasher.number(spec.agents_per_brain).number(spec.learner);
  if (traits_of(spec.learner).replays) hasher.number(spec.replay_capacity);
  return hasher.digest();
}

std::string schema_text(const BrainSpec& spec) {
  std::string text = std::to_string(spec.observation.count) + " observations, " +
                     std::to_string(spec.goal_count) + " goals, actions";
  for (const std::uint32_t size : spec.action.branch_sizes) text += " " + std::to_string(size);
  if (spec.action.continuous_count > 0)
    text += " and " + std::to_string(spec.action.continuous_count) + " continuous";
  text += ", network ";
  const std::vector<std::uint32_t> sizes = spec.layer_sizes();
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : "-") + std::to_string(sizes[i]);
  text += std::string(" ") + activation_name(spec.activation) + ", " + std::to_string(spec.brain_count) +
          " brains of " + std::to_string(spec.agents_per_brain) + " agents, learner " +
          learner_name(spec.learner);
  if (traits_of(spec.learner).replays) text += ", replay " + std::to_string(spec.replay_capacity);
  return text;
}

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::tanh:
      return "tanh";
    case Activation::silu:
      return "silu";
    case Activation::elu:
      return "elu";
    case Activation::gelu:
      return "gelu";
  }
  return "unknown";
}

}  // namespace imprint::agent
