// imp_brain_desc with its learner's options, and imp_policy_desc, as the specs of plugin/agent.

#include <algorithm>
#include <array>
#include <type_traits>

#include "compute/base/amount.h"
#include "plugin/abi/convert.h"
#include "plugin/agent/spec/option_fields.h"

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
#define IMPRINT_SAME(name, NAME, ...) static_assert(same(IMP_LEARNER_##NAME, agent::LearnerKind::name));
IMP_LEARNERS(IMPRINT_SAME)
#undef IMPRINT_SAME
#define IMPRINT_ONE(...) +1
static_assert(IMP_LEARNERS(IMPRINT_ONE) == static_cast<int>(agent::kLastLearner),
              "IMP_LEARNERS and IMPRINT_LEARNERS have the same learners");
#undef IMPRINT_ONE

// Null options: the defaults. Otherwise they are of this type.
template <class Options>
Result<> take(const void* options, agent::BrainSpec& spec) {
  Options given = defaults_of(std::type_identity<Options>());
  if (options) {
    IMPRINT_ASSIGN(given,
                   read_struct(kCall, "desc.header.next", static_cast<const Options*>(options), Next::chain));
  }
  Result<> taken;
  agent::each_option(given, spec, [&taken](const char* name, auto value, auto& field) {
    if constexpr (std::is_same_v<decltype(field), bool&>)
      if (taken) taken = check_flag(kCall, name, value);
    agent::take_option(name, value, field);
  });
  return taken;
}

struct OptionKind {
  std::uint32_t type;
  const char* name;
  agent::LearnerKind learner;
  Result<> (*take)(const void* options, agent::BrainSpec& spec);
};
#define IMPRINT_OPTIONS(learner)                                                       \
  OptionKind{kKind<imp_##learner##_options>.type, kKind<imp_##learner##_options>.name, \
             agent::LearnerKind::learner, take<imp_##learner##_options>},
constexpr std::array kOptions = {IMPRINT_LEARNERS(IMPRINT_OPTIONS)};
#undef IMPRINT_OPTIONS

// Structs on desc's chain; null: not there.
struct Chain {
  const void* network = nullptr;
  const void* options = nullptr;  // of desc.learner
  const void* sharing = nullptr;
  const void* shown = nullptr;
  const void* signals = nullptr;
  const void* self_play = nullptr;
  const void* groups = nullptr;
};

Result<Chain> read_chain(const imp_brain_desc& desc) {
  Chain chain;
  const std::pair<StructKind, const void**> parts[] = {
      {kKind<imp_network_options>, &chain.network},     {kKind<imp_shared_learning>, &chain.sharing},
      {kKind<imp_demonstration_options>, &chain.shown}, {kKind<imp_signal_options>, &chain.signals},
      {kKind<imp_self_play_options>, &chain.self_play}, {kKind<imp_group_options>, &chain.groups}};
  for (const void* next = desc.header.next; next; next = read_header(next).next) {
    const std::uint32_t type = read_header(next).type;
    const auto* part = std::ranges::find(parts, type, [](const auto& one) { return one.first.type; });
    const auto* kind = std::ranges::find(kOptions, type, &OptionKind::type);
    const bool of_learner = part == std::end(parts);
    if (of_learner && kind == kOptions.end()) {
      std::string names;
      for (const auto& [known, link] : parts) names += text(known.name, ", ");
      return refuse(kCall, text("desc.header.next: found struct type ", type, ", expected ", names,
                                "or the learner's option struct. Make it with its _init function."));
    }
    const char* name = of_learner ? kind->name : part->first.name;
    if (of_learner && !same(desc.learner, kind->learner))
      return refuse(kCall,
                    text("desc.header.next: found ", name, ", but desc.learner is ", name_of(desc.learner),
                         ". Remove it, or set desc.learner to ", agent::learner_name(kind->learner), "."));
    const void*& link = of_learner ? chain.options : *part->second;
    if (link) return refuse(kCall, text("desc.header.next: found two ", name, ", expected one"));
    link = next;
  }
  return chain;
}

Result<> take_self_play(const void* self_play, agent::BrainSpec& spec) {
  if (!self_play) return {};
  IMPRINT_ASSIGN(const imp_self_play_options given,
                 read_struct(kCall, "desc.header.next", static_cast<const imp_self_play_options*>(self_play),
                             Next::chain));
  if (given.pool_size == 0)
    return refuse(kCall,
                  "imp_self_play_options::pool_size: found 0, expected 1 to 64. Remove the struct for a "
                  "brain without self-play.");
  agent::each_self_play_option(given, spec, agent::take_option);
  return {};
}

Result<> take_groups(const void* groups, agent::BrainSpec& spec) {
  if (!groups) return {};
  IMPRINT_ASSIGN(
      const imp_group_options given,
      read_struct(kCall, "desc.header.next", static_cast<const imp_group_options*>(groups), Next::chain));
  if (given.group_size == 0)
    return refuse(kCall,
                  "imp_group_options::group_size: found 0, expected 2 to 1024. Remove the struct for a "
                  "brain without groups.");
  agent::each_group_option(given, spec, agent::take_option);
  return {};
}

Result<> take_beside(const Chain& chain, agent::BrainSpec& spec) {
  IMPRINT_CHECK(take_groups(chain.groups, spec));
  IMPRINT_CHECK(take_self_play(chain.self_play, spec));
  if (chain.shown) {
    IMPRINT_ASSIGN(const imp_demonstration_options given,
                   read_struct(kCall, "desc.header.next",
                               static_cast<const imp_demonstration_options*>(chain.shown), Next::chain));
    if (given.capacity == 0)
      return refuse(kCall,
                    "imp_demonstration_options::capacity: found 0, expected 1 or more. Remove the "
                    "struct for a brain without demonstrations.");
    agent::each_demonstration_option(given, spec, agent::take_option);
  }
  if (!chain.signals) return {};
  IMPRINT_ASSIGN(const imp_signal_options given,
                 read_struct(kCall, "desc.header.next", static_cast<const imp_signal_options*>(chain.signals),
                             Next::chain));
  IMPRINT_CHECK(check_enum(kCall, "curiosity", given.curiosity, IMP_CURIOSITY_SURPRISE));
  if (given.curiosity_strength == 0 && given.imitation_strength == 0)
    return refuse(kCall,
                  "curiosity_strength, imitation_strength: found 0 for both, expected a signal. Set "
                  "one, or remove imp_signal_options.");
  agent::each_signal_option(given, spec, agent::take_option);
  return {};
}

Result<> take_network(const void* network, agent::BrainSpec& spec) {
  imp_network_options given = imp_network_options_init();
  if (network) {
    IMPRINT_ASSIGN(given, read_struct(kCall, "desc.header.next",
                                      static_cast<const imp_network_options*>(network), Next::chain));
  }
  IMPRINT_CHECK(check_enum(kCall, "cell", given.cell, IMP_CELL_LSTM));
  spec.observation.stack = given.stack;
  spec.cell = static_cast<agent::Cell>(given.cell);
  spec.cell_size = given.cell_size;
  spec.sequence_steps = given.sequence_steps;
  IMPRINT_CHECK(check_flag(kCall, "pictures_as_bytes", given.pictures_as_bytes));
  spec.pictures_as_bytes = given.pictures_as_bytes != 0;
  IMPRINT_CHECK(check_array(kCall, "streams", given.streams, given.stream_count, IMP_MAX_STREAMS));
  for (std::uint32_t i = 0; i < given.stream_count; ++i) {
    const imp_stream& stream = given.streams[i];
    IMPRINT_CHECK(check_enum(kCall, text("streams[", i, "].kind").c_str(), stream.kind, IMP_STREAM_IDS));
    spec.observation.streams.push_back({static_cast<agent::StreamKind>(stream.kind), stream.count,
                                        stream.channels, stream.height, stream.width, stream.features,
                                        stream.vocabulary, stream.size});
  }
  return {};
}

Result<> take_sharing(const void* sharing, agent::BrainSpec& spec) {
  if (!sharing) return {};
  IMPRINT_ASSIGN(
      const imp_shared_learning given,
      read_struct(kCall, "desc.header.next", static_cast<const imp_shared_learning*>(sharing), Next::chain));
  if (given.count == 0 || given.index >= given.count)
    return refuse(kCall, text("index: found ", given.index, " of ", given.count,
                              " processes, expected less than count"));
  IMPRINT_CHECK(check_enum(kCall, "experience", given.experience, IMP_EXPERIENCE_RECEIVED));
  spec.sends_experience = given.experience == IMP_EXPERIENCE_SENT;
  spec.receives_experience = given.experience == IMP_EXPERIENCE_RECEIVED;
  if (given.count == 1) return {};
  if (given.experience != IMP_EXPERIENCE_OWN)
    return refuse(kCall, text("imp_shared_learning: found experience of other processes and count ",
                              given.count, ", expected one of both. Set count to 1"));
  if (!given.add) return refuse(kCall, "add: found null, expected a function");
  spec.process_index = given.index;
  spec.process_count = given.count;
  spec.all_reduce = [add = given.add, user = given.user](std::span<float> numbers) {
    add(user, numbers.data(), numbers.size());
  };
  return {};
}

Result<> take_learner(const imp_brain_desc& desc, agent::BrainSpec& spec) {
  IMPRINT_CHECK(
      check_enum(kCall, "desc.learner", desc.learner, static_cast<imp_learner>(agent::kLastLearner)));
  IMPRINT_ASSIGN(const Chain chain, read_chain(desc));
  IMPRINT_CHECK(take_network(chain.network, spec));
  spec.learner = static_cast<agent::LearnerKind>(desc.learner);
  IMPRINT_CHECK(take_beside(chain, spec));
  if (!spec.learns()) {
    spec.exploration = 0;
    return {};
  }
  IMPRINT_CHECK(kOptions[static_cast<std::size_t>(spec.learner) - 1].take(chain.options, spec));
  return take_sharing(chain.sharing, spec);
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
  IMPRINT_CHECK(check_flag(kCall, "desc.fall_back", given.fall_back));
  spec.fall_back = given.fall_back != 0;
  IMPRINT_CHECK(take_learner(given, spec));
  return spec;
}

namespace {

// The chain of a policy: nothing, or imp_policy_names.
Result<PolicyNames> to_policy_names(const char* call, const void* next) {
  PolicyNames names;
  if (!next) return names;
  constexpr const char* field = "desc.header.next";
  IMPRINT_ASSIGN(const imp_policy_names given,
                 read_struct(call, field, static_cast<const imp_policy_names*>(next)));
  IMPRINT_ASSIGN(names.observations,
                 to_names(call, "observations", given.observations, given.observation_count));
  IMPRINT_ASSIGN(names.actions, to_names(call, "actions", given.actions, given.action_count));
  IMPRINT_ASSIGN(names.states, to_states(call, "states", given.states, given.state_count));
  IMPRINT_ASSIGN(names.zeros, to_names(call, "zeros", given.zeros, given.zero_count));
  if (!names.observations.empty() && !names.actions.empty()) return names;
  return refuse(
      call, text(field, ": found ", amount(names.observations.size(), "observation"), " and ",
                 amount(names.actions.size(), "action"), " in imp_policy_names, expected 1 or more of each"));
}

}  // namespace

Result<agent::PolicySpec> to_policy_spec(const imp_policy_desc* desc) {
  constexpr const char* call = "brain_create_from_onnx";
  IMPRINT_ASSIGN(const imp_policy_desc given, read_struct(call, "desc", desc, Next::chain));
  IMPRINT_CHECK(check_array(call, "desc.data", given.data, given.size, SIZE_MAX));
  agent::PolicySpec spec;
  if (given.name) spec.name = given.name;
  spec.file = {static_cast<const std::byte*>(given.data), given.size};
  spec.agent_capacity = given.agent_capacity;
  spec.action_latency_frames = given.action_latency_frames;
  spec.constant_limit_bytes = given.constant_limit_bytes;
  spec.operation_limit = given.operation_limit;
  IMPRINT_ASSIGN(spec.names, to_policy_names(call, given.header.next));
  return spec;
}

}  // namespace imprint::abi
