#pragma once
// The settings of learners, by name. An option struct of the C interface calls a setting as BrainSpec does,
// so one list serves brain_create and the files of imprint bake.

#include <cstddef>

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

}  // namespace imprint::agent
