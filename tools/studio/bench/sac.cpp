// SAC with pendulums on the device: each step of all worlds is remembered and followed by one step of the
// learner from a minibatch of the memory. Brains and moments are averaged after each run.

#include <string>
#include <vector>

#include "compute/nn/learners/classic_environments.h"
#include "compute/nn/learners/sac.h"
#include "tools/studio/bench/bench.h"

namespace imprint::studio {
namespace {

constexpr std::int64_t kTurns = 64;     // world steps of a run
constexpr std::int64_t kMemory = 4096;  // world steps that are remembered
constexpr std::int64_t kMinibatch = 256;
constexpr double kRewardScale = 0.1;

nn::Sequential network(const std::string& name, std::int64_t in, std::int64_t out, std::uint64_t seed) {
  return nn::mlp(name, {in, 256, 256, out}, {.activation = nn::Activation::relu, .groups = 1, .seed = seed});
}

nn::SacNetworks::Critic critic_of(const nn::Sequential& network) {
  return [network](const Tensor& observation, const Tensor& action, const Tensor&) {
    return squeeze(network(concat({observation, action}, 2)), 2);
  };
}

struct Memory {
  Variable observation, next, action, reward, continues, filled, generator, returns;

  Memory(std::int64_t worlds, std::int64_t seen, std::int64_t numbers, std::uint64_t seed) {
    const auto floats = [](const char* name, Shape shape) { return Variable::zeros(name, shape); };
    observation = floats("memory.observation", {kMemory, worlds, seen});
    next = floats("memory.next", {kMemory, worlds, seen});
    action = floats("memory.action", {kMemory, worlds, numbers});
    reward = floats("memory.reward", {kMemory, worlds});
    continues = floats("memory.continues", {kMemory, worlds});
    filled = Variable::zeros("memory.filled", {1}, DType::int32);  // world steps so far
    const std::int32_t state[4] = {static_cast<std::int32_t>(seed), static_cast<std::int32_t>(seed >> 32), 7,
                                   0};
    generator = Variable("generator", {4}, std::span<const std::int32_t>(state));
  }
  Tensor row() const { return remainder(filled.value(), static_cast<int>(kMemory)); }
};

nn::SacNetworks make_networks(std::uint64_t seed, std::int64_t seen, std::int64_t numbers) {
  const nn::Sequential policy = network("policy", seen, 2 * numbers, seed);
  nn::SacNetworks networks;
  networks.policy = [policy](const Tensor& observation, const Tensor&) { return policy(observation); };
  networks.policy_parameters = policy.parameters();
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i);
    const nn::Sequential critic = network("critic" + number, seen + numbers, 1, seed + 1 + i),
                         target = network("target" + number, seen + numbers, 1, seed + 1 + i);
    networks.critic[i] = critic_of(critic);
    networks.target[i] = critic_of(target);
    networks.critic_parameters.add(number, critic.parameters());
    networks.target_parameters.add(number, target.parameters());
  }
  return networks;
}

// One step of all worlds.
ProgramPart play_part(const nn::Environments& worlds, const Memory& memory, const nn::SacNetworks& networks) {
  const std::int64_t count = worlds.count(), numbers = worlds.environment().action.continuous;
  ProgramPart play{{.name = "play"}};
  std::vector<Update>& updates = play.description.updates;
  const Tensor before = worlds.observation(), row = memory.row();
  const nn::SquashedDraw drawn =
      nn::squashed(networks.policy(unsqueeze(before, 0), Tensor()),
                   random_normal(memory.generator.value(), {1, count, numbers}, 0));
  const Tensor action = squeeze(drawn.action, 0);
  nn::Actions actions;
  actions.continuous = action * 2.0f;  // the pendulum's torque
  const nn::Environments::Transition step = worlds.advance(actions);
  worlds.assign(step, updates);
  const auto keep = [&](const Variable& where, const Tensor& value) {
    updates.push_back(Update::scatter_rows(where, row, unsqueeze(value, 0)));
  };
  keep(memory.observation, before);
  keep(memory.next, step.last_observation);
  keep(memory.action, action);
  keep(memory.reward, step.reward * static_cast<float>(kRewardScale));
  keep(memory.continues, cast(logical_not(step.terminated), DType::float32));
  updates.push_back(Update::assign(memory.filled, memory.filled.value() + 1));
  updates.push_back(Update::assign(memory.generator, generator_next(memory.generator.value())));
  return play;
}

// One step of the learner.
Result<ProgramPart> learn_part(const nn::Sac& sac, const Memory& memory, std::int64_t count) {
  ProgramPart learn{{.name = "learn"}};
  const Tensor known =
      minimum(memory.filled.value(), Tensor(static_cast<int>(kMemory))) * static_cast<int>(count);
  const Tensor rows = random_integers(memory.generator.value(), {kMinibatch}, known, 1);
  const auto taken = [&](const Variable& from) {
    const Shape& shape = from.shape();
    return shape.rank() == 3 ? unsqueeze(take(reshape(from.value(), {kMemory * count, shape[2]}), 0, rows), 0)
                             : unsqueeze(take(reshape(from.value(), {kMemory * count}), 0, rows), 0);
  };
  nn::SacRows batch;
  batch.observation = taken(memory.observation);
  batch.next_observation = taken(memory.next);
  batch.action = taken(memory.action);
  batch.reward = taken(memory.reward);
  batch.continues = taken(memory.continues);
  IMPRINT_ASSIGN(const nn::Sac::Step step,
                 sac.step(batch, ones({1}, DType::boolean), memory.generator.value(), 2));
  learn.description.updates = step.updates;
  learn.description.updates.push_back(
      Update::assign(memory.generator, generator_next(memory.generator.value())));
  return learn;
}

}  // namespace

Result<BenchOutcome> bench_sac(Session& session, const BenchSettings& settings) {
  const std::int64_t count = settings.count > 0 ? settings.count : 64;
  const nn::Environment world = nn::pendulum();
  const std::int64_t seen = world.observations, numbers = world.action.continuous;
  const std::uint64_t own_seed = settings.seed + (static_cast<std::uint64_t>(rank()) << 32);
  const nn::Environments worlds(world, count, own_seed);
  const Memory memory(count, seen, numbers, own_seed);

  const nn::SacNetworks networks = make_networks(settings.seed, seen, numbers);
  const nn::Sac sac({.minibatch = kMinibatch, .actions = numbers, .learning_rate = 1e-3}, networks);

  IMPRINT_ASSIGN(ProgramPart learn, learn_part(sac, memory, count));
  ProgramSequence sequence{.name = "sac"};
  sequence.parts = {play_part(worlds, memory, networks), std::move(learn)};
  sequence.rounds = {{0, 2, static_cast<std::uint32_t>(kTurns)}};
  sequence.slot_count = 1;
  if (ranks() > 1) {
    nn::Parameters averaged = networks.policy_parameters;
    averaged.add("critic", networks.critic_parameters);
    averaged.add("target", networks.target_parameters);
    averaged.add("", sac.state());
    sequence.parts.push_back(mean_part(averaged));
    share(sequence, settings);
  }
  ProgramDescription begin{.name = "begin"};
  const nn::Environments::Transition begun = worlds.start();
  worlds.assign(begun, begin.updates);
  IMPRINT_ASSIGN(Program start, Program::compile(session.runtime(), begin));
  IMPRINT_ASSIGN(Program run, Program::compile(session.runtime(), sequence));
  IMPRINT_CHECK(session.run(start));
  BenchClock clock(settings, count * kTurns);
  double sum = 0, episodes = 0;  // at nine tenths
  const auto ended = [&]() -> Result<std::pair<double, double>> {
    const Variable counts = worlds.ended();
    IMPRINT_ASSIGN(const std::vector<HostTensor> read, session.read(std::span(&counts, 1)));
    std::pair<double, double> found;
    for (std::size_t i = 0; i < read[0].floats.size(); i += 2)
      found.first += read[0].floats[i], found.second += read[0].floats[i + 1];
    return found;
  };
  bool judged = false;
  do {
    if (!judged && settings.samples > 0 && clock.progress() > 0.9) {
      IMPRINT_ASSIGN(const auto before, ended());
      sum = before.first;
      episodes = before.second;
      judged = true;
    }
    IMPRINT_CHECK(session.run(run));
  } while (!clock.is_over());
  BenchOutcome outcome = clock.outcome();
  IMPRINT_ASSIGN(const auto after, ended());
  outcome.score_name = "score";
  outcome.score = total_of(after.first - sum) / std::max(1.0, total_of(after.second - episodes));
  return outcome;
}

}  // namespace imprint::studio
