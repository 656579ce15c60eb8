#include "plugin/agent/learn/learners/rollouts.h"

#include <algorithm>

#include "compute/base/text.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {

Result<> check_rollout_settings(const BrainSpec& spec) {
  IMPRINT_CHECK(check_number("brain_create", "discount", spec.discount, 0, 1));
  IMPRINT_CHECK(check_range("brain_create", "rollout_steps", spec.rollout_steps, 1, 65536));
  IMPRINT_CHECK(check_range("brain_create", "epochs", spec.epochs, 1, 64));
  if (spec.batch_size == 0 || spec.rollout_steps % spec.batch_size != 0)
    return bad_field("brain_create", "batch_size", text(spec.batch_size),
                     text("a divisor of rollout_steps, ", spec.rollout_steps));
  if (std::uint64_t{spec.rollout_steps} * spec.epochs * spec.brain_count >= kMaxElements)
    return bad_field("brain_create", "rollout_steps * epochs * brain_count",
                     text(std::uint64_t{spec.rollout_steps} * spec.epochs * spec.brain_count),
                     text("less than ", kMaxElements));
  return check_range("brain_create", "rate_decisions", spec.rate_decisions, 0, 1u << 31);
}

void complete_rollouts(BrainSpec& spec) {
  constexpr std::uint64_t kRolloutPerAgent = 32, kLeastRollout = 512, kMostRollout = 16384;
  constexpr std::uint32_t kLeastBatch = 64, kLeastSequences = 4;
  if (!spec.observation.streams.empty() || spec.group_size > 0) spec.normalise_observations = false;
  const std::uint32_t unit = spec.has_cell() ? std::max(1u, spec.sequence_steps) : 1;
  const auto wanted_batch = [&](std::uint32_t rollout) {
    const std::uint32_t sequences = spec.has_cell() ? kLeastSequences * unit : 0;
    return std::max({rollout / 8, kLeastBatch, sequences});
  };
  const auto rounded_up = [](std::uint64_t value, std::uint32_t to) {
    return static_cast<std::uint32_t>((value + to - 1) / to * to);
  };
  const auto least = [](std::uint64_t value) {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(value, 1));
  };
  if (spec.rollout_steps == 0) {
    spec.rollout_steps = static_cast<std::uint32_t>(
        std::clamp(kRolloutPerAgent * spec.agents_per_brain, kLeastRollout, kMostRollout));
    if (spec.batch_size == 0 && spec.has_cell())
      spec.batch_size = rounded_up(wanted_batch(spec.rollout_steps), unit);
    // Whole minibatches.
    if (spec.batch_size > 0) spec.rollout_steps = rounded_up(spec.rollout_steps, spec.batch_size);
  }
  if (spec.batch_size == 0) {
    spec.batch_size = least(std::min(wanted_batch(spec.rollout_steps), spec.rollout_steps));
    const auto fits = [&] {
      return spec.rollout_steps % spec.batch_size == 0 && spec.batch_size % unit == 0;
    };
    if (spec.rollout_steps > kMaxSize) spec.batch_size = spec.rollout_steps;  // out of range
    while (spec.batch_size < spec.rollout_steps && !fits()) ++spec.batch_size;
  }
  if (spec.learn_period_frames == 0) {
    const std::uint64_t minibatches = std::uint64_t{spec.rollout_steps} / spec.batch_size * spec.epochs;
    const std::uint64_t frames = spec.rollout_steps / spec.agents_per_turn();
    spec.learn_period_frames = least(std::min(minibatches, frames / 4));
  }
}

nn::RolloutRows rollout_rows(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                             const Tensor& samples) {
  const std::int64_t brains = spec.brain_count, rows = samples.extent(0) / brains;
  const auto columns = [&](std::uint32_t first, std::size_t count) {
    return narrow(samples, 1, first, static_cast<std::int64_t>(count));
  };
  const auto column = [&](std::uint32_t first) { return reshape(columns(first, 1), {brains, rows}); };
  const auto seen = [&](std::uint32_t first) {
    return network.scaled(
        reshape(columns(first, spec.observation.width()), {brains, rows, spec.observation.width()}));
  };
  nn::RolloutRows found;
  found.observation = seen(layout.observation);
  found.next_observation = seen(layout.next_observation);
  found.goal = cast(column(layout.goal), DType::int32);
  found.next_goal = cast(column(layout.next_goal), DType::int32);
  if (!spec.action.branch_sizes.empty()) {
    found.discrete = cast(columns(layout.branches, spec.action.branch_sizes.size()), DType::int32);
    found.mask = greater(columns(layout.allowed, spec.action.choice_count()), 0.5f);
  }
  if (spec.action.continuous_count > 0)
    found.continuous = columns(layout.continuous, spec.action.continuous_count);
  const auto group = [&](std::uint32_t first) {
    const std::int64_t width = spec.observation.width(), size = spec.group_size;
    const Tensor all = reshape(columns(first, spec.group_width()), {brains, rows, spec.group_width()});
    const Tensor agents =
        network.scaled(reshape(narrow(all, 2, 1, size * width), {brains, rows * size, width}));
    return concat({narrow(all, 2, 0, 1), reshape(agents, {brains, rows, size * width})}, 2);
  };
  if (spec.group_size > 0) {
    found.group = group(layout.group);
    found.next_group = group(layout.next_group);
  }
  if (layout.log_probability) found.log_probability = column(layout.log_probability);
  found.reward = column(layout.reward);
  if (spec.has_cell()) {
    found.state = reshape(columns(layout.state, spec.state_count()), {brains, rows, spec.state_count()});
    found.restarts = column(layout.begins);
  }
  found.follows = 1.0f - concat({narrow(column(layout.begins), 1, 1, rows - 1), ones({brains, 1})}, 1);
  found.continues = column(layout.continues);
  return found;
}

nn::RolloutSource rollout_source(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                                 const Tensor& samples) {
  const auto view = [=](const Tensor& some) { return rollout_rows(spec, layout, network, some); };
  return {[=] { return view(samples); }, [=](const Tensor& rows) { return view(take(samples, 0, rows)); }};
}

nn::RolloutNetwork rollout_network(const Network& network) {
  return {[network](const Tensor& observation, const Tensor& goal) {
            return Network::of_goal(network.heads_of_scaled(observation), goal);
          },
          network.parameters(), network.log_deviation()};
}

std::int64_t rate_updates(const BrainSpec& spec) {
  return (std::int64_t{spec.rate_decisions} + spec.rollout_steps - 1) / spec.rollout_steps;
}

Result<> finish_update(const nn::Parameters& state, const nn::Parameters& work, const nn::Parameters& learned,
                       const nn::Parameters& acting, LearnGraph& graph) {
  const std::vector<Variable> own = work.variables();
  graph.work.insert(graph.work.end(), own.begin(), own.end());
  publish_at_end(graph, state);
  IMPRINT_ASSIGN(const std::vector<Update> copies, nn::copy_parameters(learned, acting));
  for (const Update& copy : copies) {
    graph.sequence.parts.front().description.updates.push_back(copy);
    graph.work.push_back(copy.target);
  }
  for (ProgramPart& part : graph.sequence.parts) part.description.yields = true;
  return {};
}

}  // namespace imprint::agent
