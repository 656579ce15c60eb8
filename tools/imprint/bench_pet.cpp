// One minibatch of the pet's learner (samples, draw, forward, loss, backward, clip, Adam), for one pet and for kennels: the plugin's own programs.

#include <algorithm>
#include <string>

#include "plugin/agent/learn_graph.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// The brain of samples/pet: 28 observations, each with a factor, 6 cues, 10 actions, two hidden layers of 64. A kennel shares the memory of 64 pets.
agent::BrainSpec pet_spec(std::uint32_t pets, std::uint32_t batch) {
  agent::BrainSpec spec;
  spec.name = "pet";
  spec.observation.count = 28;
  spec.observation.scale.assign(28, 0.5f);
  spec.action.branch_sizes = {10};
  spec.goal_count = 6;
  spec.brain_count = pets;
  spec.seed = 1;
  spec.learner = agent::LearnerKind::feedback;
  spec.batch_size = batch;
  spec.replay_capacity = std::min(4096u, 64 * 4096 / pets);
  return spec;
}

// Every slot brings new samples of its own, as if the players had been busy.
void feed(const agent::BrainSpec& spec, Program& program) {
  const agent::SampleLayout layout = agent::SampleLayout::of(spec);
  agent::ReplayState replay = agent::ReplayState::empty(spec);
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot) {
    for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain) {
      for (std::uint32_t i = 0; i < agent::rows_per_step(spec); ++i) {
        const std::span<float> row = replay.waiting.push(brain);
        for (float& value : row.first(spec.observation.count)) value = noise.next();
        row[layout.goal] = static_cast<float>(i % spec.goal_count);
        row[layout.branches] = static_cast<float>(static_cast<int>(noise.next() * 10));
        row[layout.target] = i % 2 == 0 ? 1.0f : -1.0f;
        row[layout.weight] = 1.0f;
        row[layout.margin] = i % 2 == 0 ? 1.0f : 0.0f;
      }
    }
    agent::take_samples(spec, replay, {as<float>(program.input_bytes(slot, agent::LearnGraph::kValues)),
                                       as<std::int32_t>(program.input_bytes(slot, agent::LearnGraph::kRows)), {}, {}});
  }
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot)
    std::ranges::copy(replay.filled, as<std::int32_t>(program.input_bytes(slot, agent::LearnGraph::kFilled)).begin());
}

Result<BenchResult> run_minibatch(BenchDevice& device, const std::string& name, std::uint32_t pets, std::uint32_t batch) {
  const agent::BrainSpec spec = pet_spec(pets, batch);
  IMPRINT_ASSIGN(const agent::Network network, agent::Network::create(spec));
  IMPRINT_ASSIGN(agent::LearnGraph graph, agent::describe_learning(spec, network));
  graph.description.slots = kChainedRuns;
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), graph.description));
  feed(spec, program);
  return measure_program(device, program, name);
}

BenchCase minibatch_case(std::string name, std::uint32_t pets) {
  constexpr std::uint32_t batch = 32;
  name += "/b" + std::to_string(batch);
  return {name, [=](BenchDevice& device) { return run_minibatch(device, name, pets, batch); }};
}

}  // namespace

std::vector<BenchCase> pet_cases() { return {minibatch_case("pet", 1)}; }

std::vector<BenchCase> kennel_cases() {
  std::vector<BenchCase> cases;
  for (const std::uint32_t pets : {1u, 16u, 64u, 256u}) cases.push_back(minibatch_case("kennel/pet/n" + std::to_string(pets), pets));
  return cases;
}

}  // namespace imprint::tools
