#pragma once
// The settings of learners, by name. An option struct of the C interface calls a setting as BrainSpec does,
// so one list serves brain_create and the files of imprint bake.

#include <cstddef>
#include <type_traits>

#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// clang-format off
#define IMPRINT_OPTION_FIELDS(FIELD) \
  FIELD(learn_period_frames) FIELD(batch_size) FIELD(replay_capacity) FIELD(learning_rate) \
  FIELD(max_gradient_norm) FIELD(exploration) FIELD(credit_delay_s) FIELD(credit_width_s) FIELD(discount) \
  FIELD(margin) FIELD(margin_weight) \
  FIELD(target_period) FIELD(target_rate) FIELD(double_estimate) FIELD(squared_loss) FIELD(dueling) \
  FIELD(n_step) FIELD(follow_changes) FIELD(rate_half_life) FIELD(epsilon) FIELD(epsilon_decisions) \
  FIELD(trace_decay) \
  FIELD(rollout_steps) FIELD(epochs) FIELD(advantage_decay) FIELD(clip_range) FIELD(entropy_coefficient) \
  FIELD(value_coefficient) FIELD(max_divergence) FIELD(clip_values) FIELD(normalise_observations) \
  FIELD(normalise_rewards) FIELD(rate_decisions) FIELD(slow_noise) \
  FIELD(entropy_per_action) \
  FIELD(thompson) FIELD(drift)

// Members of the structs beside a learner's options, and the fields of BrainSpec that take them.
#define IMPRINT_DEMONSTRATION_FIELDS(FIELD) \
  FIELD(capacity, demonstration_capacity) FIELD(batch_size, demonstration_batch) \
  FIELD(pretraining, pretraining) FIELD(half_life, demonstration_half_life) \
  FIELD(strength, demonstration_strength) FIELD(margin, demonstration_margin)
#define IMPRINT_SIGNAL_FIELDS(FIELD) \
  FIELD(reward_strength, reward_strength) FIELD(curiosity, curiosity) \
  FIELD(curiosity_strength, curiosity_strength) FIELD(curiosity_discount, curiosity_discount) \
  FIELD(imitation_strength, imitation_strength) FIELD(imitation_discount, imitation_discount) \
  FIELD(hidden_size, signal_size) FIELD(learning_rate, signal_rate)
#define IMPRINT_SELF_PLAY_FIELDS(FIELD) \
  FIELD(pool_size, pool_size) FIELD(pool_period, pool_period) FIELD(newest_share, newest_share)
#define IMPRINT_GROUP_FIELDS(FIELD) FIELD(group_size, group_size)
// clang-format on

// Stands for the value of any member.
struct AnyMember {
  template <class T>
  constexpr operator T() const;
};

// Members of an aggregate, by the longest list that initialises it.
template <class T, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; })
    return member_count<T, Members..., AnyMember>();
  else
    return sizeof...(Members);
}

template <class Options>
constexpr std::size_t listed_count() {
  std::size_t count = 0;
#define IMPRINT_FIELD(name) \
  count += requires(Options options) { options.name; };
  IMPRINT_OPTION_FIELDS(IMPRINT_FIELD)
#undef IMPRINT_FIELD
  return count;
}

// Calls visit(name, given, field) for each setting of an option struct and its field of the spec. A flag is a
// number in the option struct and a bool in the spec.
template <class Options, class Visit>
void each_option(const Options& given, BrainSpec& spec, Visit&& visit) {
  static_assert(member_count<Options>() == 1 + listed_count<Options>(),
                "IMPRINT_OPTION_FIELDS misses a member of this struct");  // 1: the header
#define IMPRINT_FIELD(name) \
  if constexpr (requires { given.name; }) visit(#name, given.name, spec.name);
  IMPRINT_OPTION_FIELDS(IMPRINT_FIELD)
#undef IMPRINT_FIELD
}

// For each field of a struct beside them.
#define IMPRINT_ONE(...) +1
#define IMPRINT_FIELD(name, field) visit(#name, given.name, spec.field);
#define IMPRINT_EACH(each, FIELDS)                                                                      \
  inline constexpr auto each = []<class Options>(const Options& given, BrainSpec& spec, auto&& visit) { \
    static_assert(member_count<Options>() == 1 FIELDS(IMPRINT_ONE), #FIELDS " misses a member");        \
    FIELDS(IMPRINT_FIELD)                                                                               \
  };
IMPRINT_EACH(each_demonstration_option, IMPRINT_DEMONSTRATION_FIELDS)
IMPRINT_EACH(each_signal_option, IMPRINT_SIGNAL_FIELDS)
IMPRINT_EACH(each_self_play_option, IMPRINT_SELF_PLAY_FIELDS)
IMPRINT_EACH(each_group_option, IMPRINT_GROUP_FIELDS)
#undef IMPRINT_EACH
#undef IMPRINT_FIELD
#undef IMPRINT_ONE

// Takes the struct's value, which was checked.
inline constexpr auto take_option = [](const char*, auto value, auto& field) {
  field = static_cast<std::remove_reference_t<decltype(field)>>(value);
};

}  // namespace imprint::agent
