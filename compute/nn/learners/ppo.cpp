#include "compute/nn/learners/ppo.h"

#include <cmath>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

Variable generator(const std::string& name, std::uint64_t seed, std::int32_t stream) {
  const std::int32_t state[4] = {static_cast<std::int32_t>(seed),
                                 static_cast<std::int32_t>(seed >> 32) ^ stream, 0, 0};
  return {name, {4}, std::span<const std::int32_t>(state)};
}

Result<> sensible(const PpoOptions& options) {
  const auto refuse = [&](const std::string& text) {
    return make_error(ErrorCode::invalid_argument, "ppo '" + options.name + "': " + text);
  };
  for (const auto& [value, name] : {std::pair{options.agents, "agents"},
                                    {options.observations, "observations"},
                                    {options.steps, "steps"},
                                    {options.minibatch, "minibatch"},
                                    {options.epochs, "epochs"}})
    if (value < 1) return refuse(text("found ", name, " ", value, ", expected at least 1"));
  for (const std::int64_t choices : options.action.branches)
    if (choices < 1) return refuse(text("found a branch with ", choices, " choices, expected at least 1"));
  if (options.action.outputs() < 1 || options.action.continuous < 0)
    return refuse("found no actions, expected branches or continuous numbers");
  if (options.masked && options.action.branches.empty())
    return refuse("found a mask without branches. Only discrete choices can be masked.");
  const std::int64_t samples = options.agents * options.steps;
  if (samples % options.minibatch != 0)
    return refuse(text("found minibatches of ", options.minibatch, ", expected a divisor of ", options.agents,
                       " agents x ", options.steps, " steps = ", samples));
  if (options.trunk && options.features < 1)
    return refuse(text("found ", options.features, " features of the trunk, expected at least 1"));
  if (options.process_count < 1 || options.process_index < 0 ||
      options.process_index >= options.process_count)
    return refuse(text("found process_index ", options.process_index, " of ", options.process_count,
                       ", expected less than process_count"));
  if (options.process_count > 1 && (options.normalise_observations || options.normalise_rewards))
    return refuse("found process_count and normalised numbers, expected one of them");
  if (options.epochs * samples > 0x7fffffff)
    return refuse("found an update of more than 2^31 - 1 samples. Use fewer epochs, agents or steps.");
  return {};
}

void add(Parameters& state, std::initializer_list<Variable> variables) {
  for (const Variable& variable : variables)
    if (variable.state()) state.add(variable.name(), variable);
}

}  // namespace

Result<Ppo> Ppo::create(const PpoOptions& options) {
  IMPRINT_CHECK(sensible(options));
  Ppo made(options);
  for (const Parameters* parameters : {&made.learner_.parameters, &made.actor_.parameters, &made.state_})
    for (const Parameter& parameter : *parameters)
      if (!parameter.variable.ok()) return parameter.value().error();
  return made;
}

Ppo::Ppo(const PpoOptions& options)
    : options_(options),
      learner_(network(options.name)),
      actor_(network(options.name + ".actor")),
      update_(make_update()) {
  for (std::size_t i = 0; i < learner_.parameters.size(); ++i)
    actor_.parameters[i].variable.state()->initial = learner_.parameters[i].variable.state()->initial;

  const std::int64_t rows = 2 * options.steps, agents = options.agents;
  const auto named = [&](const char* name) { return options.name + "." + name; };
  const auto numbers = [&](const char* name, Shape shape) { return Variable::zeros(named(name), shape); };
  memory_.observation = numbers("observation", {rows, agents, options.observations});
  if (options.masked)
    memory_.mask = Variable::zeros(named("mask"), {rows, agents, options.action.choices()}, DType::boolean);
  const auto branches = static_cast<std::int64_t>(options.action.branches.size());
  if (branches > 0)
    memory_.discrete = Variable::zeros(named("discrete"), {rows, agents, branches}, DType::int32);
  if (options.action.continuous > 0)
    memory_.continuous = numbers("continuous", {rows, agents, options.action.continuous});
  memory_.log_probability = numbers("log_probability", {rows, agents});
  memory_.value = numbers("value", {rows, agents});
  memory_.reward = numbers("reward", {rows, agents});
  memory_.continues = numbers("continues", {rows, agents});
  memory_.counts = numbers("counts", {rows, agents});
  if (options.bootstrap_truncated) memory_.ending = numbers("ending", {rows, agents, options.observations});

  first_ = Variable::zeros(named("first"), {1}, DType::int32);
  clock_ = Variable(named("clock"), {1}, std::vector<std::int32_t>{-1});
  actor_generator_ = generator(named("actor_generator"),
                               options.seed + (static_cast<std::uint64_t>(options.process_index) << 40), 1);
  if (options.normalise_observations)
    observation_moments_ = RunningMoments(named("observations"), options.observations);
  if (options.normalise_rewards) {
    return_moments_ = RunningMoments(named("returns"), 1);
    discounted_return_ = numbers("discounted_return", {agents});
  }

  state_.add("", update_.state());
  state_.add("observations", observation_moments_.state());
  state_.add("returns", return_moments_.state());
  add(state_, {memory_.observation, memory_.mask, memory_.discrete, memory_.continuous,
               memory_.log_probability, memory_.value, memory_.reward, memory_.continues, memory_.counts,
               memory_.ending, first_, clock_, actor_generator_, discounted_return_});
}

// Orthogonal weights: the first policy is nearly uniform. Andrychowicz et al., What Matters in On-Policy
// Reinforcement Learning?, 2021.
Ppo::ActorCritic Ppo::network(const std::string& name) const {
  const auto make = [&](const std::string& part, std::int64_t outputs, double gain) {
    std::vector<std::int64_t> extents{options_.trunk ? options_.features : options_.observations};
    extents.insert(extents.end(), options_.hidden.begin(), options_.hidden.end());
    extents.push_back(outputs);
    return mlp(name + part, extents,
               {.activation = options_.activation,
                .hidden_values = {Scheme::orthogonal, std::sqrt(2.0)},
                .output_values = {Scheme::orthogonal, gain},
                .bias_values = {Scheme::zeros},
                .seed = options_.seed});
  };
  ActorCritic made{options_.trunk ? options_.trunk(name + ".trunk") : Module(),
                   make(".policy", options_.action.outputs(), 0.01),
                   make(".value", 1, 1.0),
                   {},
                   {}};
  made.parameters.add("trunk", made.trunk.parameters());
  made.parameters.add("policy", made.policy.parameters());
  made.parameters.add("value", made.value.parameters());
  if (const std::int64_t continuous = options_.action.continuous; continuous > 0) {
    const std::vector<float> initial(static_cast<std::size_t>(continuous),
                                     static_cast<float>(options_.log_deviation));
    made.log_deviation = Variable(name + ".log_deviation", {continuous}, initial);
    made.parameters.add("log_deviation", made.log_deviation);
  }
  return made;
}

ActionDistribution Ppo::distribution(const ActorCritic& by, const Tensor& features,
                                     const Tensor& mask) const {
  return {options_.action, by.policy(features), by.log_deviation.ok() ? by.log_deviation.value() : Tensor(),
          mask};
}

std::vector<Tensor> Ppo::flat(const Actions& actions) const {
  std::vector<Tensor> list;
  if (!is_empty(actions.discrete)) list.push_back(actions.discrete.named("discrete"));
  if (!is_empty(actions.continuous)) list.push_back(actions.continuous.named("continuous"));
  return list;
}

// ---- acting ----

Result<ProgramDescription> Ppo::greedy(std::int64_t rows) const {
  ProgramDescription program{.name = options_.name + ".greedy"};
  Tensor observation = input("observation", {rows, options_.observations}), mask;
  program.inputs = {observation};
  if (options_.masked)
    program.inputs.push_back(mask = input("mask", {rows, options_.action.choices()}, DType::boolean));
  if (options_.normalise_observations) observation = normalise(observation, observation_moments_.now());
  program.outputs = flat(distribution(actor_, actor_.trunk(observation), mask).most_likely());
  return program;
}

Result<ProgramDescription> Ppo::step(const PpoStep& what) const {
  if (!what.observe && (!what.act || what.truncates))
    return make_error(ErrorCode::invalid_argument,
                      text("ppo '", options_.name,
                           "': found a step that neither observes nor acts, or truncates without observing"));
  ProgramDescription program{.name = options_.name +
                                     (what.observe ? what.act ? ".step" : ".observe" : ".act") +
                                     (what.truncates ? "_truncated" : "")};
  const Seen seen =
      what.observe ? observe(experience(program, what.truncates), program.updates) : remembered();
  if (what.act) program.outputs = flat(act(seen, program.updates));
  return program;
}

Ppo::Experience Ppo::experience(ProgramDescription& program, bool truncates) const {
  const std::int64_t agents = options_.agents;
  Experience given;
  given.observation = input("observation", {agents, options_.observations});
  given.reward = input("reward", {agents});
  given.terminated = input("terminated", {agents}, DType::boolean);
  given.truncated = input("truncated", {agents}, DType::boolean);
  program.inputs = {given.observation, given.reward, given.terminated, given.truncated};
  if (truncates)
    program.inputs.push_back(given.last_observation =
                                 input("last_observation", {agents, options_.observations}));
  if (options_.masked)
    program.inputs.push_back(given.mask = input("mask", {agents, options_.action.choices()}, DType::boolean));
  return given;
}

Ppo::Seen Ppo::remembered() const {
  Seen seen;
  seen.row = clock_.value();
  seen.observation = squeeze(take(memory_.observation.value(), 0, seen.row), 0);
  if (options_.masked) seen.mask = squeeze(take(memory_.mask.value(), 0, seen.row), 0);
  return seen;
}

Ppo::Seen Ppo::observe(const Experience& experience, std::vector<Update>& updates) const {
  Seen seen{experience.observation, experience.mask,
            remainder(clock_.value() + 1, static_cast<int>(2 * options_.steps))};
  if (options_.normalise_observations) {
    const Moments moments = observation_moments_.with(experience.observation);
    observation_moments_.assign(moments, updates);
    seen.observation = normalise(seen.observation, moments);
  }
  if (!is_empty(experience.reward)) observe_outcome(experience, updates);
  updates.push_back(Update::scatter_rows(memory_.observation, seen.row, unsqueeze(seen.observation, 0)));
  if (options_.masked)
    updates.push_back(Update::scatter_rows(memory_.mask, seen.row, unsqueeze(seen.mask, 0)));
  updates.push_back(Update::assign(clock_, seen.row));
  return seen;
}

// Stores the results of the last action in the row where it was taken. At the first step that is row -1,
// which Update::scatter_rows skips.
void Ppo::observe_outcome(const Experience& experience, std::vector<Update>& updates) const {
  const Tensor before = clock_.value(), started = before >= Tensor(0);
  const Tensor continues =
      cast(logical_not(logical_or(experience.terminated, experience.truncated)), DType::float32);
  Tensor reward = experience.reward;
  if (options_.normalise_rewards) {
    const Tensor returned = discounted_return_.value() * Tensor(options_.discount) + reward;
    const Moments known = return_moments_.now(), grown = return_moments_.with(unsqueeze(returned, 1));
    const Moments moments{where(started, grown.mean, known.mean),
                          where(started, grown.variance, known.variance),
                          where(started, grown.count, known.count)};
    return_moments_.assign(moments, updates);
    updates.push_back(Update::assign(discounted_return_, where(logical_and(started, is_finite(returned)),
                                                               returned * continues, zeros_like(returned))));
    // Scaled, not shifted: the sign of a reward is the game's choice.
    reward = clamp(reward / sqrt(moments.variance + Tensor(1e-8)), -10, 10);
  }
  // The last state of a truncated episode is evaluated with all others, after the rollout.
  const bool values_last = !is_empty(experience.last_observation) && options_.bootstrap_truncated;
  if (values_last) {
    Tensor last = experience.last_observation;
    if (options_.normalise_observations)
      last = normalise(last, observation_moments_.with(experience.observation));
    updates.push_back(Update::scatter_rows(memory_.ending, before, unsqueeze(last, 0)));
  }
  const Tensor counts = values_last ? cast(logical_not(experience.terminated), DType::float32) : continues;
  updates.push_back(Update::scatter_rows(memory_.reward, before, unsqueeze(reward, 0)));
  updates.push_back(Update::scatter_rows(memory_.continues, before, unsqueeze(continues, 0)));
  updates.push_back(Update::scatter_rows(memory_.counts, before, unsqueeze(counts, 0)));
}

Actions Ppo::act(const Seen& seen, std::vector<Update>& updates) const {
  const Tensor features = actor_.trunk(seen.observation);
  const ActionDistribution policy = distribution(actor_, features, seen.mask);
  const Actions actions = policy.sample(actor_generator_.value(), 0);
  const auto keep = [&](const Variable& where, const Tensor& value) {
    if (where.state()) updates.push_back(Update::scatter_rows(where, seen.row, unsqueeze(value, 0)));
  };
  keep(memory_.discrete, actions.discrete);
  keep(memory_.continuous, actions.continuous);
  keep(memory_.log_probability, policy.log_probability(actions));
  keep(memory_.value, actor_.value_of_features(features));
  updates.push_back(Update::assign(actor_generator_, generator_next(actor_generator_.value())));
  return actions;
}

}  // namespace imprint::nn
