// One update of each learner of rewards, as the plugin runs it: draw, forward, loss, backward, clip, Adam,
// targets. Samples are on the device. DQN and SAC also take in new samples, as many as a minibatch has. PPO's
// rows are one minibatch of a rollout; rows with a cell learn from sequences of t steps.

#include <algorithm>
#include <numeric>
#include <string>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"
#include "tools/imprint/bench_resident.h"

namespace imprint::tools {
namespace {

agent::BrainSpec learner_spec(agent::LearnerKind learner, std::uint32_t hidden, std::uint32_t batch) {
  agent::BrainSpec spec;
  spec.learner = learner;
  spec.hidden_sizes = {hidden, hidden};
  spec.batch_size = batch;
  spec.replay_capacity = 20'000;
  spec.max_gradient_norm = 10;
  spec.seed = 1;
  return spec;
}

// 17 observations and 6 numbers: the sizes of MuJoCo's HalfCheetah.
agent::BrainSpec sac_spec(std::uint32_t hidden, std::uint32_t batch) {
  agent::BrainSpec spec = learner_spec(agent::LearnerKind::sac, hidden, batch);
  spec.observation.count = 17;
  spec.action.continuous_count = 6;
  spec.target_rate = 0.005f;
  return spec;
}

agent::BrainSpec dqn_spec(std::uint32_t hidden, std::uint32_t batch) {
  agent::BrainSpec spec = learner_spec(agent::LearnerKind::dqn, hidden, batch);
  spec.observation.count = 32;
  spec.action.branch_sizes = {8};
  spec.double_estimate = true;
  return spec;
}

// A rollout of one minibatch.
agent::BrainSpec ppo_spec(std::uint32_t hidden, std::uint32_t batch) {
  agent::BrainSpec spec = learner_spec(agent::LearnerKind::ppo, hidden, batch);
  spec.action.branch_sizes = {8};
  spec.activation = agent::Activation::tanh;
  spec.rollout_steps = batch;
  spec.epochs = 1;
  spec.max_gradient_norm = 0.5f;
  return spec;
}

agent::BrainSpec gru_spec(std::uint32_t size, std::uint32_t steps, std::uint32_t sequences) {
  agent::BrainSpec spec = ppo_spec(size, steps * sequences);
  spec.hidden_sizes = {size};
  spec.observation.count = 32;
  spec.cell = agent::Cell::gru;
  spec.cell_size = size;
  spec.sequence_steps = steps;
  return spec;
}

// Four pictures of 84 x 84 numbers, and the layers of Mnih et al., 2015.
agent::BrainSpec picture_spec(std::uint32_t batch) {
  agent::BrainSpec spec = ppo_spec(0, batch);
  spec.hidden_sizes = {};
  spec.activation = agent::Activation::relu;
  spec.observation.count = 4 * 84 * 84;
  spec.observation.streams = {{.kind = agent::StreamKind::picture, .channels = 4, .height = 84, .width = 84}};
  return spec;
}

std::vector<float> noise_samples(const agent::BrainSpec& spec, std::size_t rows) {
  const agent::SampleLayout layout = agent::learner_of(spec).layout(spec);
  Noise noise;
  std::vector<float> values(rows * layout.width);
  for (float& value : values) value = noise.next();
  for (std::size_t i = 0; i < rows; ++i) {
    float* row = values.data() + i * layout.width;
    row[layout.goal] = row[layout.next_goal] = 0;
    row[layout.continues] = 1;
    for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b)
      row[layout.branches + b] = static_cast<float>(i % spec.action.branch_sizes[b]);
    if (layout.allowed) std::fill_n(row + layout.allowed, spec.action.choice_count(), 1.0f);
    if (layout.log_probability) row[layout.log_probability] = -2;
    if (layout.begins) row[layout.begins] = i == 0 ? 1.0f : 0.0f;
  }
  return values;
}

Result<BenchResult> run_replay(BenchDevice& device, const std::string& name, const agent::BrainSpec& spec) {
  const std::uint32_t own = agent::rows_per_step(spec);
  std::vector<std::int32_t> rows(std::size_t{spec.brain_count} * own);
  for (std::uint32_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<std::int32_t>(i / own * spec.replay_capacity + i % own);
  const std::vector<std::int32_t> filled(spec.brain_count, static_cast<std::int32_t>(spec.replay_capacity));
  return run_resident(device, name, spec, {noise_samples(spec, rows.size()), rows, filled});
}

// The parts before and after the minibatch run once per update. The order of the rows, which the part before
// would draw, is given; the minibatch's number stays 0.
Result<BenchResult> run_minibatch(BenchDevice& device, const std::string& name,
                                  const agent::BrainSpec& spec) {
  const std::int64_t rows = spec.rollout_steps, width = agent::learner_of(spec).layout(spec).width;
  const Variable samples("samples", {rows, width}, noise_samples(spec, spec.rollout_steps));
  const Variable filled("filled", {1}, std::vector<std::int32_t>{1});
  IMPRINT_ASSIGN(const agent::Network network, agent::Network::create(spec));
  IMPRINT_ASSIGN(const agent::LearnGraph graph,
                 agent::describe_learning_from(spec, network, {filled.value(), {}, samples.value(), {}}));
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  for (const Variable& variable : graph.work)
    if (variable.name() == "order")
      variable.state()->initial = Variable("order", {1, rows}, order).state()->initial;
  const auto part = std::ranges::find(graph.sequence.parts, "minibatch",
                                      [](const ProgramPart& one) { return one.description.name; });
  if (part == graph.sequence.parts.end())
    return make_error(ErrorCode::internal, "learners: PPO's update has no part 'minibatch'");
  ProgramDescription description = part->description;
  std::erase_if(description.updates, [](const Update& update) { return update.target.name() == "turn"; });
  description.slot_count = kChainedRuns;
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> learner_cases() {
  std::vector<BenchCase> cases;
  const auto add = [&](const std::string& name, const agent::BrainSpec& spec) {
    const bool rollout = spec.learner == agent::LearnerKind::ppo;
    cases.push_back({"learners/" + name, [=, full = "learners/" + name](BenchDevice& device) {
                       return rollout ? run_minibatch(device, full, spec) : run_replay(device, full, spec);
                     }});
  };
  agent::BrainSpec kennel = sac_spec(64, 64);
  kennel.brain_count = 64;
  kennel.replay_capacity = 1024;
  add("sac/17+6/h256/b256", sac_spec(256, 256));
  add("kennel-sac/17+6/n64/h64/b64", kennel);
  add("double-dqn/h256/b256", dqn_spec(256, 256));
  add("double-dqn/h64/b64", dqn_spec(64, 64));
  add("ppo/gru64/t16/b16", gru_spec(64, 16, 16));
  add("ppo/gru128/t64/b32", gru_spec(128, 64, 32));
  add("ppo/nature/b256", picture_spec(256));
  return cases;
}

}  // namespace imprint::tools
