// imprint export: a saved brain acts as before when it comes back as an ONNX policy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "compute/base/philox.h"
#include "tests/gpu/command_game.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

float draw(std::uint32_t i, std::uint32_t j, std::uint32_t stream) {
  return static_cast<float>(2 * imprint::philox_uniform(i, j, stream, 3, 5) - 1);
}

struct Case {
  std::string name;
  BrainDesc desc;
  std::vector<imp_stream> streams = {};
  std::uint32_t brain = 0;  // of a kennel
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

class ExportTest : public imprint::game::test::CommandGame, public ::testing::WithParamInterface<Case> {
 protected:
  // Weights such that choices differ from situation to situation.
  void randomise() {
    ASSERT_WORKS(context.drain(60'000));
    std::vector<std::byte> bytes(brain.state().value);
    ASSERT_WORKS(brain.state(bytes).outcome);
    for (std::uint32_t i = 0;; ++i) {
      const Made<imp_state_array> array = brain.state_array(i);
      if (!array) break;
      if (!std::string(array->name).starts_with("network.")) continue;
      for (std::uint32_t j = 0; j < array->count; ++j) {
        const float value = 0.5f * draw(j, i, 1);
        std::memcpy(bytes.data() + array->offset + 4 * j, &value, sizeof value);
      }
    }
    ASSERT_WORKS(brain.set_state(bytes));
  }
  static std::vector<float> seen(const Case& one, std::uint32_t moment) {
    std::vector<float> numbers;
    for (std::uint32_t i = 0; i < one.desc.observation_count; ++i) numbers.push_back(2 * draw(moment, i, 2));
    std::size_t first = 0;
    for (const imp_stream& stream : one.streams) {
      if (stream.kind == IMP_STREAM_ENTITIES)
        numbers[first] = static_cast<float>(moment % (stream.count + 1));
      if (stream.kind == IMP_STREAM_IDS)
        for (std::uint32_t i = 0; i < stream.count; ++i)
          numbers[first + i] = static_cast<float>((moment + i) % stream.vocabulary);
      first += stream.kind == IMP_STREAM_ENTITIES ? 1 + std::size_t{stream.count} * stream.features
               : stream.kind == IMP_STREAM_PICTURE
                   ? std::size_t{stream.channels} * stream.height * stream.width
                   : stream.count;
    }
    return numbers;
  }
  Action decide(Agent& agent, const std::vector<float>& observation) {
    pass([&] { ASSERT_WORKS(agent.observe(observation)); });
    Action decided;
    for (int i = 0; i < 64; ++i) {
      bool is_new = false;
      pass([&] {
        const Made<Action> action = agent.act();
        if (action && action->is_new) decided = *action, is_new = true;
      });
      if (is_new) return decided;
    }
    ADD_FAILURE() << "no decision";
    return decided;
  }
};

TEST_P(ExportTest, ComesBackAsAPolicy) {
  Case one = GetParam();
  one.desc.network.set_streams(one.streams);
  one.desc.action_latency_frames = 1;
  add(one.desc);
  ASSERT_NO_FATAL_FAILURE(randomise());
  ASSERT_NO_FATAL_FAILURE(save(path("saved.brain")));
  const std::string told = run_well("export '" + path("saved.brain") + "' '" + path("out.onnx") +
                                    "' --index " + std::to_string(one.brain));
  EXPECT_THAT(told, HasSubstr("out.onnx: ML-Agents: obs_0"));

  std::ifstream file(path("out.onnx"), std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  PolicyDesc desc;
  desc.file = std::as_bytes(std::span(bytes));
  desc.agent_capacity = 2;
  desc.action_latency_frames = 1;
  Made<Brain> policy = context.create_brain_from_onnx(desc);
  ASSERT_TRUE(policy) << policy.outcome.message();
  Made<Agent> other = policy->create_agent();
  ASSERT_TRUE(other) << other.outcome.message();
  ASSERT_WORKS(context.warmup());

  Agent& agent = agents[one.brain];
  ASSERT_WORKS(agent.set_mode(Mode::inference));
  const std::size_t numbers = one.desc.continuous_count, branches = one.desc.branch_sizes.size();
  std::size_t changes = 0;
  Action last;
  for (std::uint32_t moment = 0; moment < 24; ++moment) {
    if (moment == 12)
      pass([&] {
        ASSERT_WORKS(agent.end_episode(EpisodeEnd::terminated));
        ASSERT_WORKS(other->end_episode(EpisodeEnd::terminated));
      });
    std::vector<float> observation = seen(one, moment);
    const std::uint32_t goal = moment % one.desc.goal_count;
    ASSERT_WORKS(agent.set_goal(goal));
    const Action expected = decide(agent, observation);
    if (one.desc.goal_count > 1) observation.push_back(static_cast<float>(goal));
    const Action found = decide(*other, observation);
    ASSERT_EQ(found.continuous_count, numbers + branches);
    for (std::size_t i = 0; i < numbers; ++i) {
      EXPECT_NEAR(found.continuous[i], expected.continuous[i], 1e-5f) << "moment " << moment << ", " << i;
      changes += moment > 0 && expected.continuous[i] != last.continuous[i];
    }
    for (std::size_t i = 0; i < branches; ++i) {
      EXPECT_EQ(found.continuous[numbers + i], static_cast<float>(expected.branches[i]))
          << "moment " << moment << ", branch " << i;
      changes += moment > 0 && expected.branches[i] != last.branches[i];
    }
    last = expected;
  }
  EXPECT_GT(changes, 4u) << "the brain hardly decides";
}

template <class Options>
BrainDesc described(const Options& options, std::uint32_t observations,
                    const List<std::uint32_t, IMP_MAX_BRANCHES>& branches, std::uint32_t numbers = 0) {
  BrainDesc desc = BrainDesc::of(options, observations, branches);
  desc.continuous_count = numbers;
  desc.hidden_sizes = {8, 6};
  return desc;
}

template <class Options>
Options small(Options options = {}) {
  if constexpr (requires { options.replay_capacity; }) options.replay_capacity = 64;
  if constexpr (requires { options.rollout_steps; }) options.rollout_steps = 64, options.batch_size = 32;
  return options;
}

std::vector<Case> cases() {
  static const std::vector<float> scale{0.5f, 1.5f, -2, 0.1f};
  std::vector<Case> all;
  {
    Case one{"feedback", described(small<FeedbackOptions>(), 4, {7})};
    one.desc.goal_count = 3, one.desc.observation_scale = scale, one.desc.activation = Activation::gelu;
    all.push_back(one);
    one.name = "stacked", one.desc.network.stack = 3, one.desc.activation = Activation::silu;
    all.push_back(one);
  }
  {
    DqnOptions options = small<DqnOptions>();
    options.dueling = 1;
    Case one{"dqn", described(options, 4, {6})};
    one.desc.activation = Activation::elu;
    all.push_back(one);
    one = {"kennel", described(small<DqnOptions>(), 4, {6})};
    one.desc.brain_count = 3, one.brain = 2;
    all.push_back(one);
  }
  all.push_back({"ppo", described(small<PpoOptions>(), 4, {3, 4}, 2)});
  for (const imp_cell cell : {IMP_CELL_GRU, IMP_CELL_LSTM}) {
    Case one{cell == IMP_CELL_GRU ? "gru" : "lstm", described(small<PpoOptions>(), 4, {5}, 1)};
    one.desc.network.cell = cell, one.desc.network.cell_size = 6, one.desc.network.stack = 2;
    one.desc.observation_scale = scale;
    all.push_back(one);
  }
  all.push_back({"sac", described(small<SacOptions>(), 4, {}, 3)});
  all.push_back({"pqn", described(small<PqnOptions>(), 4, {5})});
  all.back().desc.goal_count = 2, all.back().desc.observation_scale = scale;
  all.push_back({"bandit", described(small<BanditOptions>(), 4, {5})});
  all.back().desc.goal_count = 3;
  {
    Case one{"cloning", described(small<CloningOptions>(), 4, {4}, 2)};
    one.desc.activation = Activation::tanh, one.desc.goal_count = 2;
    all.push_back(one);
  }
  {
    Case one{"encoders", described(small<PpoOptions>(), 3 + 2 * 7 * 6 + 1 + 4 * 3 + 2, {6, 3}, 3)};
    one.streams = {{.kind = IMP_STREAM_VECTOR, .count = 3},
                   {.kind = IMP_STREAM_PICTURE, .channels = 2, .height = 7, .width = 6, .size = 9},
                   {.kind = IMP_STREAM_ENTITIES, .count = 4, .features = 3, .size = 8},
                   {.kind = IMP_STREAM_IDS, .count = 2, .vocabulary = 5, .size = 3}};
    all.push_back(one);
    one = {"large_picture", described(small<DqnOptions>(), 37 * 40, {6})};
    one.streams = {{.kind = IMP_STREAM_PICTURE, .channels = 1, .height = 37, .width = 40, .size = 8}};
    one.desc.network.stack = 2;
    all.push_back(one);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Learners, ExportTest, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

using ExportFaultsTest = ExportTest;

// Each refusal names the field and leaves no file.
TEST_F(ExportFaultsTest, AreToldInOneLine) {
  add(described(small<DqnOptions>(), 4, {6}));
  ASSERT_NO_FATAL_FAILURE(save(path("saved.brain")));
  const auto refuse = [&](const std::string& arguments, const char* expected) {
    std::string text;
    EXPECT_EQ(run("export " + arguments, text), 1) << text;
    EXPECT_THAT(text, HasSubstr(expected));
    EXPECT_FALSE(std::filesystem::exists(path("out.onnx")));
  };
  const std::string out = " '" + path("out.onnx") + "'", saved = "'" + path("saved.brain") + "'";
  refuse(saved + out + " --index 1", "export: brain: found 1, expected less than 1");
  refuse("'" + path("none.brain") + "'" + out, "none.brain");
  std::ofstream(path("text.brain")) << std::string(100, 'x');
  refuse("'" + path("text.brain") + "'" + out, "saved brain: file: found other first bytes");
  std::ofstream(path("other.json"))
      << R"({"observation_count": 5, "branch_sizes": [6], "hidden_sizes": [8, 6], "learner": "dqn"})";
  refuse(saved + out + " --brain-file '" + path("other.json") + "'", "saved brain: schema: found 4 observ");
  // A network that is larger than the file is not made.
  std::ofstream(path("large.json"))
      << R"({"observation_count": 1048576, "branch_sizes": [6], "hidden_sizes": [2000], "learner": "dqn"})";
  refuse(saved + out + " --brain-file '" + path("large.json") + "'", "expected 2097");
}

// As a file of an older library, which does not say what brain it is.
TEST_F(ExportFaultsTest, ADescriptionMayBeGiven) {
  add(described(small<DqnOptions>(), 4, {6}));
  ASSERT_NO_FATAL_FAILURE(save(path("saved.brain")));
  std::ofstream(path("same.json"))
      << R"({"observation_count": 4, "branch_sizes": [6], "hidden_sizes": [8, 6], "learner": "dqn"})";
  run_well("export '" + path("saved.brain") + "' '" + path("out.onnx") + "' --brain-file '" +
           path("same.json") + "'");
  EXPECT_TRUE(std::filesystem::exists(path("out.onnx")));
}

}  // namespace
