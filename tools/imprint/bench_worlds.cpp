// Learning in copies of a world that lie on the device: a run is a rollout and its whole update, in one submit. Rows below a row are its parts alone; the
// last row is all of a learner's life.

#include <chrono>
#include <string>

#include "compute/nn/classic_worlds.h"
#include "compute/nn/ppo.h"
#include "tools/imprint/bench.h"

namespace imprint::tools {
namespace {

struct Setting {
  std::string name;
  nn::World (*world)();
  std::int64_t agents, steps, minibatch, epochs;
  double discount, advantage_decay;
};

// The first is rl-baselines3-zoo's.
const Setting kSettings[] = {{"worlds/cartpole/n8", nn::cart_pole, 8, 32, 256, 20, 0.98, 0.8},
                             {"worlds/cartpole/n4096", nn::cart_pole, 4096, 16, 16384, 4, 0.98, 0.9},
                             {"worlds/pendulum/n4096", nn::pendulum, 4096, 16, 16384, 4, 0.9, 0.95}};

Result<nn::Ppo> learner(const Setting& setting, const nn::World& world, std::uint64_t seed = 1) {
  nn::PpoOptions options;
  options.seed = seed;
  options.agents = setting.agents;
  options.observations = world.observations;
  options.action = world.action;
  options.steps = setting.steps;
  options.minibatch = setting.minibatch;
  options.epochs = setting.epochs;
  options.discount = setting.discount;
  options.advantage_decay = setting.advantage_decay;
  options.entropy_coefficient = 0;
  return nn::Ppo::create(options);
}

void set_rates(const ProgramSequence& sequence, Program& program) {
  if (program.input_bytes(0, 0).empty()) return;  // no part of it learns
  for (std::uint32_t slot = 0; slot < sequence.slots; ++slot)
    for (const auto& [index, rate] : {std::pair{0u, 1e-3f}, std::pair{1u, 0.2f}})
      *reinterpret_cast<float*>(program.input_bytes(slot, index).data()) = rate;
}

// part: of the rollout and the update's parts; -1: all.
Result<BenchResult> run_world(BenchDevice& device, const Setting& setting, const std::string& name, int part) {
  const nn::World world = setting.world();
  IMPRINT_ASSIGN(const nn::Ppo ppo, learner(setting, world));
  const nn::Worlds worlds(world, setting.agents, 1);
  IMPRINT_ASSIGN(ProgramPart rollout, ppo.rollout(worlds));
  IMPRINT_ASSIGN(ProgramSequence sequence, ppo.update());
  sequence.name = "worlds";
  sequence.slots = kChainedRuns;
  sequence.parts.insert(sequence.parts.begin(), std::move(rollout));
  Runtime& runtime = device.runtime();
  IMPRINT_ASSIGN(const ProgramDescription begin, ppo.start(worlds));
  IMPRINT_ASSIGN(Program start, Program::compile(runtime, begin));
  IMPRINT_CHECK(device.computer.session().run(start));
  IMPRINT_ASSIGN(Program whole, Program::compile(runtime, sequence));
  set_rates(sequence, whole);
  BenchResult result;
  if (part < 0) {
    IMPRINT_ASSIGN(result, measure_program(device, whole, name));
  } else {
    const HostTensor rates[] = {HostTensor::from({1e-3f}, {}), HostTensor::from({0.2f}, {})};
    IMPRINT_CHECK(device.computer.session().run(whole, rates));
    sequence.parts = {sequence.parts[static_cast<std::size_t>(part)]};
    IMPRINT_ASSIGN(Program alone, Program::compile(runtime, sequence));
    set_rates(sequence, alone);
    IMPRINT_ASSIGN(result, measure_program(device, alone, name));
  }
  if (part <= 0) result.steps_per_s = 1e6 * static_cast<double>(setting.agents * setting.steps) / result.chained_us.median;
  return result;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Wall time of learning from the first step to the last, compiling left out: 100,000 steps with rates that fall to nothing. A sample is all of it, with a
// seed of its own; tools/learning ppo cartpole-resident shows what is learned.
Result<BenchResult> run_to_the_end(BenchDevice& device, const Setting& setting, const std::string& name) {
  constexpr std::int64_t kSteps = 100'000;
  const std::int64_t rounds = (kSteps + setting.agents * setting.steps - 1) / (setting.agents * setting.steps);
  const nn::World world = setting.world();
  Session& session = device.computer.session();
  BenchResult result{.name = name};
  std::vector<double> wall_us;
  for (const auto begin = Clock::now(); wall_us.empty() || (wall_us.size() < device.repeats.measured && seconds_since(begin) < device.repeats.seconds);) {
    const std::uint64_t seed = wall_us.size() + 1;
    IMPRINT_ASSIGN(const nn::Ppo ppo, learner(setting, world, seed));
    const nn::Worlds worlds(world, setting.agents, seed);
    IMPRINT_ASSIGN(ProgramPart rollout, ppo.rollout(worlds));
    IMPRINT_ASSIGN(ProgramSequence sequence, ppo.update());
    sequence.slots = 1;
    sequence.parts.insert(sequence.parts.begin(), std::move(rollout));
    IMPRINT_ASSIGN(const ProgramDescription first, ppo.start(worlds));
    IMPRINT_ASSIGN(Program start, Program::compile(device.runtime(), first));
    IMPRINT_ASSIGN(Program practice, Program::compile(device.runtime(), sequence));
    if (device.look) {
      IMPRINT_CHECK(device.look(practice));
      return result;
    }
    IMPRINT_CHECK(session.run(start));
    result.dispatches = static_cast<std::uint32_t>(rounds) * practice.stats().dispatches;
    result.barriers = static_cast<std::uint32_t>(rounds) * practice.stats().barriers;
    const std::uint64_t allocations = device.context().device().counters().allocations;
    const auto learning = Clock::now();
    for (std::int64_t round = 1; round <= rounds; ++round) {
      const auto left = static_cast<float>(1 - static_cast<double>(round) / static_cast<double>(rounds));
      const HostTensor rates[] = {HostTensor::from({1e-3f * left}, {}), HostTensor::from({0.2f * left}, {})};
      IMPRINT_CHECK(session.run(practice, rates));
    }
    wall_us.push_back(1e6 * seconds_since(learning));
    result.allocations += device.context().device().counters().allocations - allocations;
  }
  result.samples = wall_us.size();
  result.wall_us = spread(std::move(wall_us));
  result.steps_per_s = 1e6 * static_cast<double>(rounds * setting.agents * setting.steps) / result.wall_us.median;
  return result;
}

}  // namespace

std::vector<BenchCase> worlds_cases() {
  std::vector<BenchCase> cases;
  for (const Setting& setting : kSettings) {
    int part = -1;
    for (const char* what : {"", "/rollout", "/prepare", "/minibatches", "/publish"}) {
      const std::string name = setting.name + what;
      cases.push_back({name, [=, &setting, part = part++](BenchDevice& device) { return run_world(device, setting, name, part); }});
    }
  }
  const std::string to_the_end = kSettings[0].name + "/to-the-end";
  cases.push_back({to_the_end, [=](BenchDevice& device) { return run_to_the_end(device, kSettings[0], to_the_end); }});
  return cases;
}

}  // namespace imprint::tools
