// Learning in copies of a world on the device: a run is a rollout and its whole update, in one submit. Rows
// below a row are its parts. The last two are a learner's whole life, with the world on the device and on the
// CPU.

#include <memory>
#include <string>

#include "compute/nn/learners/ppo.h"
#include "tools/imprint/bench.h"
#include "tools/trials/ppo_trial.h"

namespace imprint::tools {
namespace {

struct World {
  std::string name;
  trials::Setting (*setting)();
};
const World kWorlds[] = {{"worlds/cartpole/n8", trials::zoo_cart_pole},
                         {"worlds/cartpole/n4096", trials::large_crowd_cart_pole},
                         {"worlds/pendulum/n4096", trials::large_crowd_pendulum}};

void set_rates(const ProgramSequence& sequence, Program& program) {
  if (program.input_bytes(0, 0).empty()) return;  // no part learns
  for (std::uint32_t slot = 0; slot < sequence.slot_count; ++slot)
    for (const auto& [index, rate] : {std::pair{0u, 1e-3f}, std::pair{1u, 0.2f}})
      *reinterpret_cast<float*>(program.input_bytes(slot, index).data()) = rate;
}

// part: index among the rollout and the update's parts; -1: all.
Result<BenchResult> run_world(BenchDevice& device, const trials::Setting& setting, const std::string& name,
                              int part) {
  const nn::PpoOptions options = trials::resident_options(setting, 1);
  IMPRINT_ASSIGN(const nn::Ppo ppo, nn::Ppo::create(options));
  const nn::Environments worlds(setting.resident(), options.agents, 1);
  IMPRINT_ASSIGN(ProgramPart rollout, ppo.rollout(worlds));
  IMPRINT_ASSIGN(ProgramSequence sequence, ppo.update());
  sequence.name = "worlds";
  sequence.slot_count = kChainedRuns;
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
  if (part <= 0)
    result.steps_per_s = 1e6 * static_cast<double>(options.agents * options.steps) / result.chained_us.median;
  return result;
}

// Wall time of learning from the first step to the last, without compiling, with rl-zoo's settings. A sample
// is one whole run with a seed of its own. tools/learning ppo shows what is learned.
Result<BenchResult> run_to_the_end(BenchDevice& device, decltype(&trials::make_trial) make,
                                   const std::string& name) {
  trials::Setting setting = trials::zoo_cart_pole();
  setting.check_every = trials::kNeverChecked;
  const auto& allocations = device.context().device().counters().allocations;
  BenchResult result{.name = name, .samples_are = "learners"};
  std::vector<double> wall_us;
  double measured_us = 0;
  while (wall_us.empty() ||
         (wall_us.size() < device.repeats.measured && measured_us < 1e6 * device.repeats.seconds)) {
    IMPRINT_ASSIGN(const std::unique_ptr<trials::Trial> trial,
                   make(device.computer.session(), setting, wall_us.size() + 1));
    if (device.look) {
      IMPRINT_CHECK(device.look(trial->update()));
      return result;
    }
    const std::uint64_t before = allocations;
    IMPRINT_ASSIGN(const trials::Curve curve, trial->learn());
    result.allocations += allocations - before;
    result.dispatches = static_cast<std::uint32_t>(curve.dispatches);
    result.barriers = static_cast<std::uint32_t>(curve.barriers);
    wall_us.push_back(1e6 * curve.seconds);
    measured_us += wall_us.back();
    result.steps_per_s = static_cast<double>(curve.steps);
  }
  result.samples = wall_us.size();
  result.wall_us = spread(std::move(wall_us));
  result.steps_per_s *= 1e6 / result.wall_us.median;
  return result;
}

}  // namespace

std::vector<BenchCase> worlds_cases() {
  std::vector<BenchCase> cases;
  for (const World& world : kWorlds) {
    int part = -1;
    for (const char* what : {"", "/rollout", "/prepare", "/minibatches", "/publish"}) {
      const std::string name = world.name + what;
      cases.push_back({name, [=, &world, part = part++](BenchDevice& device) {
                         return run_world(device, world.setting(), name, part);
                       }});
    }
  }
  for (const bool resident : {true, false}) {
    const std::string name = kWorlds[0].name + (resident ? "" : "/cpu") + "/to-the-end";
    cases.push_back({name, [=](BenchDevice& device) {
                       return run_to_the_end(
                           device, resident ? trials::make_resident_trial : trials::make_trial, name);
                     }});
  }
  return cases;
}

}  // namespace imprint::tools
