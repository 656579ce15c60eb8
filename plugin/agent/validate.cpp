#include "plugin/agent/validate.h"

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/demonstration_memory.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr const char* kWhat = "brain_create";
constexpr std::uint32_t kMostEntities = 1024, kMostFeatures = 4096, kMostChannels = 64, kLeastPicture = 4,
                        kMostPicture = 1024, kMostIds = 1u << 16, kMostOutputs = 4096;

// Fields that the kind does not read are 0.
Result<> check_stream(const std::string& name, const StreamSpec& stream, std::uint32_t stack) {
  const bool picture = stream.kind == StreamKind::picture, entities = stream.kind == StreamKind::entities,
             ids = stream.kind == StreamKind::ids, vector = stream.kind == StreamKind::vector;
  const auto check = [&](const char* field, std::uint32_t value, bool read, std::uint32_t low,
                         std::uint32_t high) -> Result<> {
    if (read) return check_range(kWhat, name + field, value, low, high);
    if (value == 0) return {};
    return bad_field(kWhat, name + field, text(value),
                     text("0 for a stream of kind ", stream_name(stream.kind)));
  };
  IMPRINT_CHECK(check(".count", stream.count, !picture, 1, entities ? kMostEntities : kMaxSize));
  IMPRINT_CHECK(check(".channels", stream.channels, picture, 1, kMostChannels));
  IMPRINT_CHECK(check(".height", stream.height, picture, kLeastPicture, kMostPicture));
  IMPRINT_CHECK(check(".width", stream.width, picture, kLeastPicture, kMostPicture));
  IMPRINT_CHECK(check(".features", stream.features, entities, 1, kMostFeatures));
  IMPRINT_CHECK(check(".vocabulary", stream.vocabulary, ids, 2, kMostIds));
  IMPRINT_CHECK(check(".size", stream.size, !vector, 0, kMostOutputs));
  if (entities && stack > 1)
    return bad_field(kWhat, "stack", text(stack),
                     text("1, because ", name, " is a set of entities. Use a cell instead"));
  return {};
}

Result<> check_streams(const ObservationSpec& observation) {
  if (observation.streams.empty()) return {};
  IMPRINT_CHECK(check_range(kWhat, "stream_count", static_cast<std::uint32_t>(observation.streams.size()), 1,
                            kMostStreams));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < observation.streams.size(); ++i) {
    IMPRINT_CHECK(check_stream(text("streams[", i, "]"), observation.streams[i], observation.stack));
    sum += observation.streams[i].numbers();
  }
  if (sum != observation.count)
    return bad_field(kWhat, "observation_count", text(observation.count),
                     text(sum, ", the numbers of all streams"));
  if (const std::uint64_t encoded = observation.encoded_count(); encoded > kMaxSize)
    return bad_field(kWhat, "streams", text(encoded, " outputs of all encoders"),
                     text("at most ", kMaxSize, ". Lower their size or count"));
  return {};
}

Result<> check_observations(const ObservationSpec& observation) {
  IMPRINT_CHECK(check_range(kWhat, "observation_count", observation.count, 1, kMaxSize));
  if (!observation.scale.empty() && observation.scale.size() != observation.count)
    return bad_field(kWhat, "observation_scale", text(observation.scale.size(), " factors"),
                     text(observation.count, " or none"));
  IMPRINT_CHECK(check_range(kWhat, "stack", observation.stack, 1, kMostStacked));
  if (std::uint64_t{observation.count} * observation.stack > kMaxSize)
    return bad_field(kWhat, "observation_count * stack", text(observation.count, " * ", observation.stack),
                     text("at most ", kMaxSize));
  IMPRINT_CHECK(check_finite(kWhat, "observation_scale", observation.scale));
  return check_streams(observation);
}

Result<> check_actions(const BrainSpec& spec) {
  const ActionSpec& action = spec.action;
  IMPRINT_CHECK(check_range(kWhat, "goal_count", spec.goal_count, 1, kMaxSize));
  IMPRINT_CHECK(
      check_range(kWhat, "branch_count", static_cast<std::uint32_t>(action.branch_sizes.size()), 0, 8));
  for (std::size_t b = 0; b < action.branch_sizes.size(); ++b)
    IMPRINT_CHECK(check_range(kWhat, text("branch_sizes[", b, "]"), action.branch_sizes[b], 2, kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "continuous_count", action.continuous_count, 0, 64));
  if (action.branch_sizes.empty() && action.continuous_count == 0)
    return bad_field(kWhat, "branch_count", "0 with continuous_count 0",
                     "at least one branch or continuous action");
  return {};
}

Result<> check_network(const BrainSpec& spec) {
  IMPRINT_CHECK(
      check_range(kWhat, "hidden_count", static_cast<std::uint32_t>(spec.hidden_sizes.size()), 0, 16));
  for (std::size_t i = 0; i < spec.hidden_sizes.size(); ++i)
    IMPRINT_CHECK(check_range(kWhat, text("hidden_sizes[", i, "]"), spec.hidden_sizes[i], 1, kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "cell_size", spec.cell_size, 1, kMostCells));
  return check_range(kWhat, "sequence_steps", spec.sequence_steps, 1, kMostSequence);
}

Result<> check_products(const BrainSpec& spec) {
  std::uint64_t outputs = spec.action.continuous_count;
  for (const std::uint32_t size : spec.action.branch_sizes) outputs += size;
  if (outputs * spec.goal_count > kMaxSize)
    return bad_field(kWhat, "goal_count * outputs", text(spec.goal_count, " * ", outputs),
                     text("at most ", kMaxSize));
  const std::vector<std::uint32_t> layers = spec.layer_sizes();
  for (std::size_t i = 0; i + 1 < layers.size(); ++i)
    if (std::uint64_t{layers[i]} * layers[i + 1] > kMaxElements / spec.brain_count)
      return bad_field(kWhat, "hidden_sizes",
                       text("a layer of ", layers[i], " * ", layers[i + 1], " weights in each of ",
                            amount(spec.brain_count, "brain")),
                       text("at most ", kMaxElements, " weights per layer"));
  return {};
}

Result<> check_sizes(const BrainSpec& spec) {
  IMPRINT_CHECK(check_observations(spec.observation));
  IMPRINT_CHECK(check_actions(spec));
  IMPRINT_CHECK(check_network(spec));
  IMPRINT_CHECK(check_range(kWhat, "brain_count", spec.brain_count, 1, kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "agents_per_brain", spec.agents_per_brain, 1, kMaxSize));
  if (const std::uint64_t agents = std::uint64_t{spec.brain_count} * spec.agents_per_brain; agents > kMaxSize)
    return bad_field(kWhat, "brain_count * agents_per_brain", text(agents), text("at most ", kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "action_latency_frames", spec.action_latency_frames, 0, 64));
  IMPRINT_CHECK(check_range(kWhat, "decision_period_frames", spec.decision_period_frames, 1, kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "snapshot_count", spec.snapshot_count, 0, 64));
  return check_products(spec);
}

// Options that stand beside a learner of rewards.
Result<> check_beside(const BrainSpec& spec) {
  const Learner* learner = find_learner(spec.learner);
  const bool shown = spec.keeps_demonstrations(), signals = spec.has_signals();
  IMPRINT_CHECK(check_number(kWhat, "reward_strength", spec.reward_strength, 0, 1e6f));
  IMPRINT_CHECK(check_number(kWhat, "curiosity_strength", spec.curiosity_strength, 0, 1e6f));
  IMPRINT_CHECK(check_number(kWhat, "imitation_strength", spec.imitation_strength, 0, 1e6f));
  if (!shown && !signals) return {};
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::unsupported,
                      text(kWhat, ": ", shown ? "imp_demonstration_options" : "imp_signal_options", why));
  };
  if (!learner || !learner->learns_beside())
    return refuse(text(": found the ", learner_name(spec.learner), " learner, expected dqn, sac or ppo. ",
                       learner && learner->takes_demonstrations()
                           ? "Remove the struct: this learner takes demonstrations without it."
                           : "Remove the struct, or use one of those."));
  if (spec.has_cell())
    return refuse(text(": found cell ", cell_name(spec.cell), ", expected none. Use stack instead."));
  if (spec.process_count > 1)
    return refuse(": found imp_shared_learning too, expected one of both. Remove one.");
  if (shown) {
    IMPRINT_CHECK(check_range(kWhat, "capacity", spec.demonstration_capacity, 1, kMaxSize));
    const std::uint64_t rows = std::uint64_t{spec.demonstration_capacity} * spec.brain_count;
    if (const std::uint64_t width = demonstration_layout(spec).width; rows * width >= kMaxElements)
      return bad_field(kWhat, "capacity * brain_count", text(rows),
                       text("less than ", kMaxElements / width, " demonstrations of ", width, " numbers"));
    IMPRINT_CHECK(check_range(kWhat, "batch_size", spec.demonstration_batch, 1, kMaxSize));
    IMPRINT_CHECK(check_range(kWhat, "pretraining", spec.pretraining, 0, kMaxSize));
    IMPRINT_CHECK(check_range(kWhat, "half_life", spec.demonstration_half_life, 0, kMaxSize));
    IMPRINT_CHECK(check_number(kWhat, "strength", spec.demonstration_strength, 0, 1e6f));
    IMPRINT_CHECK(check_number(kWhat, "margin", spec.demonstration_margin, 0, 1e6f));
  }
  if (!signals) return {};
  if (!spec.observation.streams.empty())
    return make_error(ErrorCode::unsupported,
                      text(kWhat,
                           ": imp_signal_options: found streams, expected none, because signals read "
                           "numbers. Give the observation as one vector."));
  IMPRINT_CHECK(check_range(kWhat, "hidden_size", spec.signal_size, 1, kMostOutputs));
  IMPRINT_CHECK(check_number(kWhat, "learning_rate", spec.signal_rate, 0, 1e6f));
  const std::pair<const char*, float> discounts[] = {{"curiosity_discount", spec.curiosity_discount},
                                                     {"imitation_discount", spec.imitation_discount}};
  for (const auto& [name, discount] : discounts) {
    IMPRINT_CHECK(check_number(kWhat, name, discount, 0, 1));
    if (discount > 0 && !learner->collects_rollouts())
      return bad_field(kWhat, name, text(discount),
                       text("0, because the ", learner_name(spec.learner),
                            " learner has one value for all signals. Set its discount, or use PPO"));
  }
  if (spec.imitation_strength > 0 && !shown)
    return bad_field(kWhat, "imitation_strength", text(spec.imitation_strength),
                     "0 without demonstrations. Add imp_demonstration_options to the chain");
  return {};
}

// Old weights that agents act by.
Result<> check_self_play(const BrainSpec& spec) {
  if (spec.pool_size == 0) return {};
  const Learner* learner = find_learner(spec.learner);
  constexpr std::uint32_t kMostOpponents = 64;
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::unsupported, text(kWhat, ": imp_self_play_options", why));
  };
  if (!learner || !learner->learns_beside())
    return refuse(text(": found the ", learner_name(spec.learner),
                       " learner, expected dqn, sac or ppo. Remove the struct, or use one of those."));
  if (spec.has_cell())
    return refuse(text(": found cell ", cell_name(spec.cell), ", expected none. Use stack instead."));
  IMPRINT_CHECK(check_range(kWhat, "pool_size", spec.pool_size, 1, kMostOpponents));
  IMPRINT_CHECK(
      check_range(kWhat, "pool_size * brain_count", spec.pool_size * spec.brain_count, 1, kMaxSize));
  return check_number(kWhat, "newest_share", spec.newest_share, 0, 1);
}

Result<> check_groups(const BrainSpec& spec) {
  if (spec.group_size == 0) return {};
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::unsupported, text(kWhat, ": imp_group_options", why));
  };
  if (spec.learner != LearnerKind::ppo)
    return refuse(text(": found the ", learner_name(spec.learner),
                       " learner, expected ppo. Remove the struct, or use the PPO learner."));
  if (spec.has_cell() || !spec.observation.streams.empty())
    return refuse(": found a cell or streams, expected neither. Use stack, and one vector.");
  if (spec.has_signals() || spec.process_count > 1)
    return refuse(": found imp_signal_options or imp_shared_learning too, expected neither. Remove it.");
  IMPRINT_CHECK(check_range(kWhat, "group_size", spec.group_size, 2, kMostEntities));
  return check_range(kWhat, "group_size * observation_count", spec.group_width(), 1, kMaxSize);
}

// Actors and learners in processes apart: samples that any process can learn from.
Result<> check_experience(const BrainSpec& spec) {
  if (!spec.sends_experience && !spec.receives_experience) return {};
  const Learner* learner = find_learner(spec.learner);
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::unsupported, text(kWhat, ": imp_shared_learning::experience", why));
  };
  const bool labels = learner && !learner->records_steps() && learner->replays();
  if (!learner || !(labels || learner->needs_next()) || spec.learner == LearnerKind::pqn)
    return refuse(text(": found the ", learner_name(spec.learner),
                       " learner, expected dqn, sac, ppo, feedback or cloning. Average the brains instead: "
                       "brain_set_state."));
  if (spec.has_cell() && !learner->collects_rollouts())
    return refuse(text(": found cell ", cell_name(spec.cell), " with the ", learner_name(spec.learner),
                       " learner, expected none. Use stack instead, or ppo."));
  if (spec.has_signals() || spec.keeps_demonstrations() || spec.group_size > 0 || spec.pool_size > 0)
    return refuse(
        ": found imp_signal_options, imp_demonstration_options, imp_group_options or imp_self_play_options, "
        "expected none of them. Average the brains instead: brain_set_state.");
  return {};
}

// Pictures that the replay memory keeps as bytes.
Result<> check_bytes(const BrainSpec& spec) {
  constexpr const char* kField = "pictures_as_bytes";
  const Learner* learner = find_learner(spec.learner);
  if (!spec.pictures_as_bytes || !learner) return {};
  if (!learner->replays() || !learner->records_steps())
    return bad_field(kWhat, kField, text("1 with the ", learner_name(spec.learner), " learner"),
                     "0. Only dqn, sac and bandit remember steps");
  std::uint32_t at = 0, pictures = 0;
  for (const StreamSpec& stream : spec.observation.streams) {
    const auto count = static_cast<std::uint32_t>(stream.numbers());
    const bool picture = stream.kind == StreamKind::picture;
    pictures += picture ? 1 : 0;
    for (std::uint32_t i = at; picture && !spec.observation.scale.empty() && i < at + count; ++i)
      if (spec.observation.scale[i] != 1)
        return bad_field(kWhat, "observation_scale",
                         text(spec.observation.scale[i], " for a picture's number"),
                         "1 with pictures_as_bytes. Hand in numbers of 0 .. 1");
    at += count;
  }
  if (pictures == 0) return bad_field(kWhat, kField, "1 without a picture among the streams", "0");
  return {};
}

Result<> check_learning(const BrainSpec& spec) {
  IMPRINT_CHECK(check_experience(spec));
  IMPRINT_CHECK(check_groups(spec));
  IMPRINT_CHECK(check_self_play(spec));
  IMPRINT_CHECK(check_beside(spec));
  IMPRINT_CHECK(check_number(kWhat, "exploration", spec.exploration, 0, 1e6f));
  const Learner* learner = find_learner(spec.learner);
  if (spec.fall_back && (!learner || spec.brain_count > 1))
    return bad_field(kWhat, "fall_back",
                     learner ? text("1 and a kennel of ", spec.brain_count) : "1 and no learner",
                     "0, or one brain with a learner");
  if (!learner) return {};
  IMPRINT_CHECK(learner->check_actions(spec));
  if (!spec.observation.streams.empty() && spec.learner == LearnerKind::sac && spec.observation.stack > 1)
    return make_error(
        ErrorCode::unsupported,
        text("brain_create: stack: found ", spec.observation.stack,
             ", expected 1, because a critic of the sac learner encodes streams beside an action. "
             "Use the PPO learner, or a picture of more channels."));
  if (spec.has_cell() && !learner->learns_sequences())
    return make_error(ErrorCode::unsupported,
                      text("brain_create: cell: found ", cell_name(spec.cell),
                           ", expected none, because the ", learner_name(spec.learner),
                           " learner does not learn through time. Use the PPO learner, or stack."));
  if (learner->takes_feedback()) {
    IMPRINT_CHECK(check_number(kWhat, "credit_delay_s", spec.credit_delay_s, 0, 1e6f));
    IMPRINT_CHECK(check_number(kWhat, "credit_width_s", spec.credit_width_s, 1e-6f, 1e6f));
  }
  IMPRINT_CHECK(learner->check_settings(spec));
  IMPRINT_CHECK(check_range(kWhat, "learn_period_frames", spec.learn_period_frames, 1, kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "batch_size", spec.batch_size, 1, kMaxSize));
  IMPRINT_CHECK(check_range(kWhat, "replay_capacity", spec.replay_capacity, 1, kMaxSize));
  if (const std::uint64_t samples = std::uint64_t{spec.replay_capacity} * spec.brain_count;
      samples >= kMaxElements)
    return bad_field(kWhat, "replay_capacity * brain_count", text(samples), text("less than ", kMaxElements));
  IMPRINT_CHECK(check_bytes(spec));
  IMPRINT_CHECK(check_number(kWhat, "learning_rate", spec.learning_rate, 0, 1e6f));
  return check_number(kWhat, "max_gradient_norm", spec.max_gradient_norm, 0, 1e12f);
}

}  // namespace

Result<> validate(const BrainSpec& spec) {
  IMPRINT_CHECK(check_name(kWhat, spec.name));
  IMPRINT_CHECK(check_sizes(spec));
  return check_learning(spec);
}

Result<BrainSpec> checked(const BrainSpec& given) {
  IMPRINT_CHECK(check_name(kWhat, given.name));
  IMPRINT_CHECK(check_sizes(given));
  BrainSpec spec = completed(given);
  IMPRINT_CHECK(check_learning(spec));
  return spec;
}

}  // namespace imprint::agent
