// One minibatch of the plugin's feedback learner (samples, draw, forward, loss, backward, clip, Adam), for
// one pet and for kennels. New samples and losses are on the device, as in suites policy and learn. Rows of
// pet-copied and kennel-copied are the plugin's programs, which copy both.

#include <algorithm>
#include <string>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"
#include "tools/imprint/bench_resident.h"

namespace imprint::tools {
namespace {

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// The brain of samples/pet: 28 observations, each with a factor, 6 cues, 10 actions, two hidden layers of 64.
// A kennel shares the memory of 64 pets.
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

// As many new samples as one minibatch takes, as with busy players.
void take_new_samples(const agent::BrainSpec& spec, agent::ReplayState& replay, Noise& noise,
                      std::span<float> values, std::span<std::int32_t> rows) {
  const agent::SampleLayout layout = agent::learner_of(spec).layout(spec);
  for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain) {
    for (std::uint32_t i = 0; i < agent::rows_per_step(spec); ++i) {
      const std::span<float> row = replay.waiting.push(brain);
      for (float& value : row.first(spec.observation.count)) value = noise.next();
      row[layout.goal] = static_cast<float>(i % spec.goal_count);
      row[layout.branches] = static_cast<float>(static_cast<int>(noise.next() * 10));
      row[layout.target] = i % 2 == 0 ? 1.0f : -1.0f;
      row[layout.weight] = 1.0f;
      row[layout.source] = static_cast<float>(agent::LabelSource::feedback);
    }
  }
  agent::take_samples(spec, replay, {values, rows, {}, {}});
}

// Each slot has samples of its own.
Result<BenchResult> run_copied(BenchDevice& device, const std::string& name, const agent::BrainSpec& spec) {
  IMPRINT_ASSIGN(const agent::Network network, agent::Network::create(spec));
  IMPRINT_ASSIGN(agent::LearnGraph graph, agent::describe_learning(spec, network));
  graph.description.slot_count = kChainedRuns;
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), graph.description));
  agent::ReplayState replay = agent::ReplayState::empty(spec);
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot)
    take_new_samples(spec, replay, noise, as<float>(program.input_bytes(slot, agent::LearnGraph::kValues)),
                     as<std::int32_t>(program.input_bytes(slot, agent::LearnGraph::kRows)));
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot) {
    const auto feed = [&](const std::vector<std::int32_t>& numbers, std::size_t input) {
      std::ranges::copy(numbers, as<std::int32_t>(program.input_bytes(slot, input)).begin());
    };
    feed(replay.filled, agent::LearnGraph::kFilled);
    feed(replay.next, graph.next_row);
  }
  return measure_program(device, program, name);
}

Result<BenchResult> run_pets(BenchDevice& device, const std::string& name, const agent::BrainSpec& spec) {
  agent::ReplayState replay = agent::ReplayState::empty(spec);
  Noise noise;
  const std::uint32_t new_rows = spec.brain_count * agent::rows_per_step(spec),
                      width = agent::learner_of(spec).layout(spec).width;
  std::vector<float> values(std::size_t{new_rows} * width);
  std::vector<std::int32_t> rows(new_rows);
  take_new_samples(spec, replay, noise, values, rows);
  return run_resident(device, name, spec, {values, rows, replay.filled});
}

void add_minibatches(std::string name, std::string copied, std::uint32_t pets,
                     std::vector<BenchCase>& cases) {
  constexpr std::uint32_t kBatch = 32;
  for (std::string* one : {&name, &copied}) *one += "/b" + std::to_string(kBatch);
  const agent::BrainSpec spec = pet_spec(pets, kBatch);
  cases.push_back({name, [=](BenchDevice& device) { return run_pets(device, name, spec); }});
  cases.push_back({copied, [=](BenchDevice& device) { return run_copied(device, copied, spec); }});
}

}  // namespace

Result<BenchResult> run_resident(BenchDevice& device, const std::string& name, const agent::BrainSpec& spec,
                                 const NewSamples& given) {
  IMPRINT_ASSIGN(const agent::Network network, agent::Network::create(spec));
  const auto new_rows = static_cast<std::int64_t>(given.rows.size());
  const std::int64_t width = agent::learner_of(spec).layout(spec).width, brains = spec.brain_count;
  const Variable sample_values("samples", {new_rows, width}, given.values),
      sample_rows("rows", {new_rows}, given.rows), filled("filled", {brains}, given.filled),
      next_row = Variable::zeros("next row", {brains}, DType::int32),
      loss = Variable::zeros("loss", {brains});
  IMPRINT_ASSIGN(agent::LearnGraph graph, agent::describe_learning_from(spec, network,
                                                                        {.filled = filled.value(),
                                                                         .rows = sample_rows.value(),
                                                                         .samples = sample_values.value(),
                                                                         .copy_rows = {},
                                                                         .next_copy_rows = {},
                                                                         .next_row = next_row.value()}));
  graph.description.slot_count = kChainedRuns;
  graph.description.updates.push_back(
      Update::assign(loss, graph.description.outputs[agent::LearnGraph::kLoss]));
  graph.description.outputs.clear();
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), graph.description));
  return measure_program(device, program, name);
}

std::vector<BenchCase> pet_cases() {
  std::vector<BenchCase> cases;
  add_minibatches("pet", "pet-copied", 1, cases);
  return cases;
}

std::vector<BenchCase> kennel_cases() {
  std::vector<BenchCase> cases;
  for (const std::uint32_t pets : {1u, 16u, 64u, 256u}) {
    const std::string what = "/pet/n" + std::to_string(pets);
    add_minibatches("kennel" + what, "kennel-copied" + what, pets, cases);
  }
  return cases;
}

}  // namespace imprint::tools
