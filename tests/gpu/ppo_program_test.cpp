// Acting and learning on the device agree with the oracle for any slicing. Masked choices are never drawn.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compute/nn/learners/ppo.h"
#include "compute/program/run.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

class PpoProgramTest : public test::SessionTest {};

// All features at once: two branches, one of them sometimes masked, continuous numbers, both normalisers,
// clipped values.
PpoOptions rich() {
  PpoOptions options;
  options.agents = 3;
  options.observations = 4;
  options.action = {{3, 2}, 2};
  options.masked = true;
  options.hidden = {16, 8};
  options.steps = 4;
  options.minibatch = 6;
  options.epochs = 2;
  options.clip_values = true;
  options.normalise_observations = options.normalise_rewards = true;
  options.max_divergence = 10;
  options.seed = 5;
  return options;
}

// Synthetic experience for the device and the oracle.
std::vector<double> experience(const Tensor& input, int step) {
  const std::string& name = input.node()->label;
  std::vector<double> values;
  for (std::int64_t i = 0; i < input.shape().element_count(); ++i) {
    const double wave =
        std::sin(1.7 * static_cast<double>(i) + 0.9 * step + static_cast<double>(name.size()));
    if (name == "terminated")
      values.push_back(wave > 0.7);
    else if (name == "truncated")
      values.push_back(wave < -0.5);
    else if (name == "mask")
      values.push_back(i % 5 != (step % 3));  // of the first branch
    else
      values.push_back(static_cast<float>(wave));
  }
  return values;
}

HostTensor on_host(const Tensor& input, const std::vector<double>& values) {
  HostTensor tensor{input.dtype(), input.shape(), {}, {}};
  if (input.dtype() == DType::float32)
    tensor.floats.assign(values.begin(), values.end());
  else
    tensor.ints.assign(values.begin(), values.end());
  return tensor;
}

struct Learner {
  Ppo ppo;
  std::vector<ProgramDescription> steps;  // act and observe, then a last turn that only observes
  ProgramSequence update;
  explicit Learner(const PpoOptions& options)
      : ppo(Ppo::create(options).value()), update(ppo.update().value()) {
    const PpoStep kinds[] = {{}, {.truncates = true}, {.act = false, .truncates = true}, {.observe = false}};
    for (const PpoStep& kind : kinds) steps.push_back(ppo.step(kind).value());
  }
  // The order of the run: two rollouts, each followed by an update.
  static constexpr int kUpdate = -1;
  static std::vector<int> plan() { return {0, 1, 0, 1, 2, kUpdate, 3, 1, 0, 1, 2, kUpdate}; }
};

constexpr double kLearningRate = 1e-3, kClipRange = 0.2;

TEST_F(PpoProgramTest, LearnsAsTheOracleDoes) {
  Learner device(rich()), oracle(rich());
  reference::Bindings state{{"learning_rate", {kLearningRate}}, {"clip_range", {kClipRange}}};
  for (const Parameters* parameters :
       {&oracle.ppo.parameters(), &oracle.ppo.acting_parameters(), &oracle.ppo.state()})
    for (const Parameter& parameter : *parameters)
      state[parameter.variable.name()] = reference::initial_values(parameter.variable);
  std::vector<Program> programs;
  for (const ProgramDescription& step : device.steps) programs.push_back(compile(step));
  Program update = compile(device.update);
  const std::vector<HostTensor> rates{HostTensor::from({static_cast<float>(kLearningRate)}, {}),
                                      HostTensor::from({static_cast<float>(kClipRange)}, {})};

  int time = 0;
  for (const int kind : Learner::plan()) {
    ++time;
    if (kind == Learner::kUpdate) {
      const auto metrics = session().run(update, rates);
      ASSERT_TRUE(metrics.ok()) << metrics.error().message;
      for (const ProgramPart& part : oracle.update.parts)
        for (std::uint32_t turn = 0; turn < part.repeat; ++turn) {
          if (!part.description.outputs.empty()) {
            const std::vector<double> expected = reference::evaluate(part.description.outputs[0], state);
            for (std::size_t i = 0; i < expected.size(); ++i)
              EXPECT_NEAR((*metrics)[0].floats[i], expected[i], 1e-4 * (1 + std::abs(expected[i])))
                  << "metric " << i;
          }
          reference::run_updates(part.description.updates, state);
        }
      continue;
    }
    std::vector<HostTensor> inputs;
    for (const Tensor& input : device.steps[static_cast<std::size_t>(kind)].inputs) {
      const std::vector<double> values = experience(input, time);
      state[input.node()->label] = values;
      inputs.push_back(on_host(input, values));
    }
    const auto outputs = session().run(programs[static_cast<std::size_t>(kind)], inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const ProgramDescription& step = oracle.steps[static_cast<std::size_t>(kind)];
    if (!step.outputs.empty()) {
      const std::vector<double> drawn = reference::evaluate(step.outputs[0], state);
      EXPECT_EQ(std::vector<double>((*outputs)[0].ints.begin(), (*outputs)[0].ints.end()), drawn) << time;
    }
    reference::run_updates(step.updates, state);
  }
  for (const Parameters* parameters :
       {&device.ppo.parameters(), &device.ppo.acting_parameters(), &device.ppo.state()})
    for (const Parameter& parameter : *parameters) {
      if (parameter.variable.dtype() != DType::float32) continue;
      const std::vector<double>& expected = state.at(parameter.variable.name());
      const std::vector<float> found = floats(parameter.variable);
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << parameter.name << " " << i;
    }
}

// One agent's observation and reward are NaN in one step: the next rollout is not affected.
TEST_F(PpoProgramTest, NumbersThatAreNotFiniteAreDropped) {
  Learner learner(rich());
  std::vector<Program> programs;
  for (const ProgramDescription& step : learner.steps) programs.push_back(compile(step));
  Program update = compile(learner.update);
  const std::vector<HostTensor> rates{HostTensor::from({static_cast<float>(kLearningRate)}, {}),
                                      HostTensor::from({static_cast<float>(kClipRange)}, {})};
  int time = 0;
  std::vector<float> metrics;
  for (const int kind : Learner::plan()) {
    ++time;
    if (kind == Learner::kUpdate) {
      metrics = session().run(update, rates).value()[0].floats;
      continue;
    }
    std::vector<HostTensor> inputs;
    for (const Tensor& input : learner.steps[static_cast<std::size_t>(kind)].inputs) {
      inputs.push_back(on_host(input, experience(input, time)));
      if (time == 2 && input.node()->label == "reward")
        inputs.back().floats[0] = std::numeric_limits<float>::infinity();
      if (time == 2 && input.node()->label == "observation")
        inputs.back().floats[5] = std::numeric_limits<float>::quiet_NaN();
    }
    ASSERT_TRUE(session().run(programs[static_cast<std::size_t>(kind)], inputs).ok());
  }
  for (const float metric : metrics) EXPECT_TRUE(std::isfinite(metric));  // of the second rollout
  for (const Parameters* parameters : {&learner.ppo.parameters(), &learner.ppo.acting_parameters()})
    for (const Parameter& parameter : *parameters)
      for (const float value : floats(parameter.variable))
        ASSERT_TRUE(std::isfinite(value)) << parameter.name;
}

TEST_F(PpoProgramTest, AnUpdateIsTheSameToTheBitHoweverItIsCut) {
  const auto learned = [&](std::uint32_t length) {
    Learner learner(rich());
    std::vector<Program> programs;
    for (const ProgramDescription& step : learner.steps) programs.push_back(compile(step));
    Program update = compile(learner.update);
    // The actors' weights come last: in one dispatch, or one kernel each.
    const std::size_t kernels = runtime().on_cpu() ? learner.ppo.acting_parameters().size() : 1;
    EXPECT_EQ(update.first_shared_write() + kernels + 1, update.piece_count());
    int time = 0;
    for (const int kind : Learner::plan()) {
      ++time;
      if (kind != Learner::kUpdate) {
        std::vector<HostTensor> inputs;
        for (const Tensor& input : learner.steps[static_cast<std::size_t>(kind)].inputs)
          inputs.push_back(on_host(input, experience(input, time)));
        EXPECT_TRUE(session().run(programs[static_cast<std::size_t>(kind)], inputs).ok());
        continue;
      }
      const float rates[] = {static_cast<float>(kLearningRate), static_cast<float>(kClipRange)};
      for (std::size_t i = 0; i < 2; ++i) std::memcpy(update.input_bytes(0, i).data(), &rates[i], 4);
      run_sliced(update, {length});
    }
    std::vector<float> all;
    for (const Parameter& parameter : learner.ppo.acting_parameters())
      for (float value : floats(parameter.variable)) all.push_back(value);
    return all;
  };
  const std::vector<float> whole = learned(1000);
  EXPECT_EQ(learned(1), whole);
  EXPECT_EQ(learned(3), whole);
}

TEST_F(PpoProgramTest, AMinibatchIsAHandfulOfDispatches) {
  if (runtime().on_cpu()) GTEST_SKIP() << "the CPU runs one kernel at a time";
  PpoOptions options;
  options.observations = 32;
  options.action = {{8}, 0};
  options.steps = 1024;
  const Ppo ppo = Ppo::create(options).value();
  const Program update = compile(ppo.update().value());
  const std::uint32_t turns = 16;
  EXPECT_LE(update.stats().dispatches, turns * 5 + 12) << update.explain();
  for (const PpoStep& what : {PpoStep{}, PpoStep{.truncates = true}, PpoStep{.act = false, .truncates = true},
                              PpoStep{.observe = false}}) {
    const Program step = compile(ppo.step(what).value());
    EXPECT_LE(step.stats().dispatches, 2u) << step.explain();
  }
}

// A million draws of three branches with most choices masked.
TEST_F(PpoProgramTest, NeverDrawsMaskedChoices) {
  constexpr std::int64_t kRows = 20'000;
  constexpr int kRuns = 50;
  const ActionSpace space{{5, 2, 17}, 0};
  const Variable generator("generator", {4}, std::vector<std::int32_t>{3, 1, 0, 0});
  const Tensor logits = random_normal(generator.value(), {kRows, space.choices()}, 100) *
                        8.0f;  // far apart, so that masked choices would often win
  // Each branch keeps one choice: its first in even rows, its last in odd rows.
  const Tensor even = equal(remainder(unsqueeze(arange(kRows), 1), 2), 0);
  Tensor mask;
  std::int64_t first = 0;
  for (const std::int64_t choices : space.branches) {
    const Tensor column = unsqueeze(arange(choices), 0);
    const Tensor kept = equal(column, where(even, Tensor(0), Tensor(static_cast<int>(choices - 1))));
    const Tensor open =
        logical_or(kept, random_uniform(generator.value(), {kRows, choices},
                                        static_cast<std::uint32_t>(200 + first)) < Tensor(0.2f));
    mask = first == 0 ? open : concat({mask, open}, 1);
    first += choices;
  }
  const Actions actions = ActionDistribution(space, logits, Tensor(), mask).sample(generator.value(), 0);
  Tensor closed(0.0f), second(0.0f);
  first = 0;
  for (std::size_t b = 0; b < space.branches.size(); ++b) {
    const Tensor chosen = narrow(actions.discrete, 1, static_cast<std::int64_t>(b), 1);
    const Tensor was_open = gather(narrow(mask, 1, first, space.branches[b]), 1, chosen);
    closed = closed + sum(cast(logical_not(was_open), DType::float32));
    second = second + sum(cast(equal(chosen, 1), DType::float32));
    first += space.branches[b];
  }
  Program program =
      compile(ProgramDescription{.name = "masked",
                                 .outputs = {closed, second},
                                 .updates = {Update::assign(generator, generator_next(generator.value()))}});
  double drawn_closed = 0, drawn_second = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto counts = session().run(program);
    ASSERT_TRUE(counts.ok()) << counts.error().message;
    drawn_closed += (*counts)[0].floats[0];
    drawn_second += (*counts)[1].floats[0];
  }
  EXPECT_EQ(drawn_closed, 0);
  EXPECT_GT(drawn_second, kRows);  // an allowed choice is drawn
}

}  // namespace
}  // namespace imprint::nn
