// Environments as GLSL: Gymnasium's trajectories, episode ends and resets, and a learner that runs on the
// device alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compute/nn/learners/classic_environments.h"
#include "compute/nn/learners/ppo.h"
#include "compute/program/run.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"

namespace imprint::nn {
namespace {

using ::testing::HasSubstr;

class EnvironmentTest : public test::SessionTest {
 protected:
  using test::SessionTest::floats;
  std::vector<float> floats(const Environments& environments, const char* name) {
    return floats(environments.state().find(name)->variable);
  }
  void place(const Environments& environments, std::vector<float> state) {
    const Variable& variable = environments.state().find("state")->variable;
    ASSERT_TRUE(session().write(variable, HostTensor::from(std::move(state), variable.shape())).ok());
  }
};

// A program that takes one step with given actions.
struct Stepper {
  Actions actions;
  ProgramDescription description{.name = "step"};
  explicit Stepper(const Environments& environments) {
    const auto branches = static_cast<std::int64_t>(environments.environment().action.branches.size());
    if (branches > 0)
      description.inputs.push_back(actions.discrete =
                                       input("choice", {environments.count(), branches}, DType::int32));
    else
      description.inputs.push_back(
          actions.continuous =
              input("number", {environments.count(), environments.environment().action.continuous}));
    const Environments::Transition step = environments.advance(actions);
    environments.assign(step, description.updates);
    description.outputs = {step.reward, cast(step.terminated, DType::float32),
                           cast(step.truncated, DType::float32), step.last_observation, step.observation};
  }
};

TEST_F(EnvironmentTest, CartPoleIsGymnasiums) {
  const Environments environments(cart_pole(), 2, 1);
  Program step = compile(Stepper(environments).description);
  place(environments,
        {0.01f, -0.02f, 0.03f, 0.04f, 0, 0, 0, 0});  // the second is pushed right until it falls
  for (int t = 0; t < 10; ++t) {
    const HostTensor choice = HostTensor::from_ints({t % 2, 1}, {2, 1});
    const auto outputs = session().run(step, std::span(&choice, 1)).value();
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{1, 1}));
    EXPECT_EQ(outputs[1].floats[1], t == 8 ? 1 : 0) << t;
    EXPECT_EQ(outputs[2].floats[1], 0);
    if (t == 8) {
      EXPECT_NEAR(outputs[3].floats[4 + 2], -0.21518605, 1e-5);  // where it fell
      for (int k = 4; k < 8; ++k)
        EXPECT_LE(std::abs(outputs[4].floats[static_cast<std::size_t>(k)]),
                  0.05f);  // and where it starts again
    }
  }
  const std::vector<float> state = floats(environments, "state");
  const double expected[] = {-0.0140178186, -0.0268407016, 0.0784775845, 0.191445587};
  for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(state[k], expected[k], 2e-6) << k;
  EXPECT_EQ(floats(environments, "ended"), (std::vector<float>{0, 0, 9, 1}));
  EXPECT_EQ(floats(environments, "steps"), (std::vector<float>{10, 1}));
}

TEST_F(EnvironmentTest, PendulumIsGymnasiumsAndIsTruncated) {
  const Environments environments(pendulum(), 1, 1);
  Program step = compile(Stepper(environments).description);
  place(environments, {1.57079632679f, 0.5f});
  double sum = 0;
  for (int t = 0; t < 200; ++t) {
    const HostTensor torque = HostTensor::from({t % 2 == 0 ? 1.5f : -0.5f}, {1, 1});
    const auto outputs = session().run(step, std::span(&torque, 1)).value();
    EXPECT_EQ(outputs[1].floats[0], 0);
    EXPECT_EQ(outputs[2].floats[0], t == 199 ? 1 : 0) << t;
    sum += outputs[0].floats[0];
    if (t != 9) continue;
    const std::vector<float> state = floats(environments, "state");
    EXPECT_NEAR(state[0], 3.74792892, 2e-5);
    EXPECT_NEAR(state[1], 5.74555577, 2e-5);
    EXPECT_NEAR(sum, -72.4329529, 2e-4);
  }
}

TEST_F(EnvironmentTest, StartsDifferAndStayWithinTheirRange) {
  const Environments environments(cart_pole(), 1000, 7);
  ProgramDescription description{.name = "start"};
  environments.assign(environments.start(), description.updates);
  Program start = compile(description);
  ASSERT_TRUE(session().run(start).ok());
  const std::vector<float> first = floats(environments, "state");
  double mean = 0, squares = 0;
  for (float x : first) {
    ASSERT_LE(std::abs(x), 0.05f);
    mean += x / 4000.0;
    squares += x * x / 4000.0;
  }
  EXPECT_NEAR(mean, 0, 0.002);
  EXPECT_NEAR(squares, 0.05 * 0.05 / 3, 5e-5);
  ASSERT_TRUE(session().run(start).ok());
  EXPECT_NE(floats(environments, "state"), first);
}

TEST_F(EnvironmentTest, AMistakeInTheTextIsTheCompilersToTell) {
  Environment environment = cart_pole();
  environment.glsl = "void start(out float state[4]) { state[0] = nothing; }";
  const Environments environments(environment, 2, 1);
  ProgramDescription description{.name = "broken"};
  environments.assign(environments.start(), description.updates);
  const auto program = Program::compile(session().runtime(), description);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::compile_failed);
  EXPECT_THAT(program.error().message, HasSubstr("nothing"));
}

// A user's GLSL may use every name of the kernel, except those that begin with imp_.
TEST_F(EnvironmentTest, TheTextMayUseAnyName) {
  Environment environment{
      .name = "two\nlines", .state = 1, .observations = 1, .action = {{2}, 0}, .step_limit = 0};
  environment.glsl = R"(
const float b0f = 1.0, offsets = 1.0, b1f = 1.0;
float o0(float o1) { return o1; }
void start(out float state[1]) { state[0] = 0.0; }
void observe(in float state[1], out float observation[1]) { observation[0] = state[0]; }
float advance(inout float state[1], in int choice[1], out bool terminated) {
  float o2 = 2.0, group = 1.0, i = 1.0, result = 1.0, v1 = 1.0, last = 1.0, seen = 1.0;
  terminated = false;
  state[0] += o0(b0f) * offsets * group * i * result * v1 * last * seen * b1f;
  return o2 * float(choice[0]);
})";
  const Environments environments(environment, 2, 1);
  ProgramDescription start{.name = "start"};
  environments.assign(environments.start(), start.updates);
  Program begin = compile(start), step = compile(Stepper(environments).description);
  ASSERT_TRUE(session().run(begin).ok());
  const HostTensor choice = HostTensor::from_ints({0, 1}, {2, 1});
  for (const float seen : {1.0f, 2.0f}) {
    const auto outputs = session().run(step, std::span(&choice, 1)).value();
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{0, 2}));
    EXPECT_EQ(outputs[4].floats, (std::vector<float>{seen, seen}));
  }
}

TEST_F(EnvironmentTest, NamesFaultsOfEnvironments) {
  Environment blind = cart_pole();
  blind.observations = 0;
  EXPECT_THAT(Environments(blind, 2, 1).start().state.error().message,
              HasSubstr("environment 'cart_pole': found 4 floats of state and 0 observations"));
  EXPECT_FALSE(Environments(blind, 2, 1).advance({}).reward.ok());
  EXPECT_THAT(Environments(cart_pole(), 2, 1).advance({}).reward.error().message,
              HasSubstr("found no actions, expected int32 choices [2, 1]"));
  Actions actions;
  actions.discrete = input("choice", {3, 1}, DType::int32);
  EXPECT_THAT(Environments(cart_pole(), 2, 1).advance(actions).reward.error().message,
              HasSubstr("int32 choices [2, 1]"));
  actions.discrete = input("choice", {2, 1});
  EXPECT_FALSE(Environments(cart_pole(), 2, 1).advance(actions).reward.ok());
}

struct Resident {
  PpoOptions options;
  Environments environments;
  Ppo ppo;
  ProgramSequence sequence{.name = "practice"};
  Resident(std::int64_t agents, std::int64_t steps, std::int64_t minibatch, std::int64_t epochs)
      : options(make(agents, steps, minibatch, epochs)),
        environments(cart_pole(), agents, 3),
        ppo(Ppo::create(options).value()) {
    sequence.parts.push_back(ppo.rollout(environments).value());
    const ProgramSequence update = ppo.update().value();
    sequence.parts.insert(sequence.parts.end(), update.parts.begin(), update.parts.end());
  }
  static PpoOptions make(std::int64_t agents, std::int64_t steps, std::int64_t minibatch,
                         std::int64_t epochs) {
    PpoOptions options;
    options.agents = agents;
    options.observations = 4;
    options.action.branches = {2};
    options.steps = steps;
    options.minibatch = minibatch;
    options.epochs = epochs;
    options.discount = 0.98;
    options.advantage_decay = 0.8;
    options.entropy_coefficient = 0;
    return options;
  }
};

// One turn has two dispatches: the networks, then the environment and the storage of its step. For choices
// and for continuous numbers.
TEST_F(EnvironmentTest, ATurnIsTwoDispatches) {
  for (const Environment& environment : {cart_pole(), pendulum()}) {
    PpoOptions options = Resident::make(64, 8, 64, 1);
    options.observations = environment.observations;
    options.action = environment.action;
    const Ppo ppo = Ppo::create(options).value();
    const Environments environments(environment, 64, 1);
    const Program turn = compile(ppo.rollout(environments).value().description),
                  judged = compile(ppo.judge(environments, 1).value().parts[1].description);
    EXPECT_LE(turn.stats().dispatches, 2u) << turn.explain();
    EXPECT_LE(judged.stats().dispatches, 2u) << judged.explain();
  }
}

// Rollout, advantages and minibatches run in one submit; the host only reads the results.
TEST_F(EnvironmentTest, LearnsWithoutTheHost) {
  Resident resident(32, 32, 256, 4);
  Program start = compile(resident.ppo.start(resident.environments).value()),
          practice = compile(resident.sequence);
  const Environments fair(cart_pole(), 50, 99);
  Program judge = compile(resident.ppo.judge(fair, 500).value());
  ASSERT_TRUE(session().run(start).ok());
  const std::vector<HostTensor> rates{HostTensor::from({1e-3f}, {}), HostTensor::from({0.2f}, {})};
  const float before = session().run(judge).value()[0].floats[0];
  for (int update = 0; update < 16; ++update) {
    const auto metrics = session().run(practice, rates);
    ASSERT_TRUE(metrics.ok()) << metrics.error().message;
    for (float metric : (*metrics)[0].floats) ASSERT_TRUE(std::isfinite(metric));
  }
  const float after = session().run(judge).value()[0].floats[0];
  EXPECT_LT(before, 120);
  EXPECT_GT(after, before + 40);
  const std::vector<float> ended = floats(resident.environments, "ended");
  float returned = 0, episodes = 0;
  for (std::size_t i = 0; i < ended.size(); i += 2) returned += ended[i], episodes += ended[i + 1];
  EXPECT_GT(episodes, 100);
  std::printf(
      "greedy %.1f -> %.1f; training %.1f a return over %.0f episodes; %u dispatches for %d steps and %d "
      "minibatches\n",
      before, after, returned / episodes, episodes, practice.stats().dispatches, 32 * 32, 16);
}

TEST_F(EnvironmentTest, IsTheSameToTheBitHoweverItIsCut) {
  const auto practised = [&](std::uint32_t length) {
    Resident resident(8, 4, 16, 2);
    Program start = compile(resident.ppo.start(resident.environments).value()),
            practice = compile(resident.sequence);
    EXPECT_TRUE(session().run(start).ok());
    const float rates[] = {1e-3f, 0.2f};
    vk::Queue& queue = *test::gpu()->context().queue();
    vk::Ticket last;
    for (int run = 0; run < 2; ++run) {
      for (std::size_t i = 0; i < 2; ++i) std::memcpy(practice.input_bytes(0, i).data(), &rates[i], 4);
      for (std::uint32_t piece = 0; piece < practice.piece_count(); piece += length) {
        std::vector<VkCommandBuffer> commands{session().runtime().barrier().primary};
        const auto pieces = practice.pieces(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY)
                                .subspan(piece, std::min(length, practice.piece_count() - piece));
        commands.insert(commands.end(), pieces.begin(), pieces.end());
        last = queue.submit(commands).value();
      }
      EXPECT_TRUE(queue.wait(last, 60'000'000'000).ok());
    }
    std::vector<float> all = floats(resident.environments, "state");
    for (const Parameter& parameter : resident.ppo.acting_parameters())
      for (float value : floats(parameter.variable)) all.push_back(value);
    return all;
  };
  const std::vector<float> whole = practised(10000);
  EXPECT_EQ(practised(1), whole);
  EXPECT_EQ(practised(7), whole);
}

TEST_F(EnvironmentTest, RefusesLearnersThatDoNotFit) {
  const Environments environments(cart_pole(), 8, 1);
  PpoOptions options = Resident::make(4, 8, 32, 1);
  const auto few = Ppo::create(options).value().rollout(environments);
  ASSERT_FALSE(few.ok());
  EXPECT_THAT(few.error().message, HasSubstr("8 copies of environment 'cart_pole', expected 4"));
  options.agents = 8;
  options.observations = 5;
  const auto blind = Ppo::create(options).value().start(environments);
  ASSERT_FALSE(blind.ok());
  EXPECT_THAT(blind.error().message, HasSubstr("found 4 observations, expected 5"));
}

}  // namespace
}  // namespace imprint::nn
