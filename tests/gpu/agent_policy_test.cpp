// Imported policies act inside frames: equal to their references, with state per agent.

#include <gmock/gmock.h>

#include <cmath>

#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "tests/gpu/agent_system.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::agent::test {
namespace {

class PolicyTest : public AgentSystemTest {
 protected:
  void start(std::span<const std::byte> file, std::uint32_t agents) {
    PolicySpec spec;
    spec.file = file;
    spec.agent_capacity = agents;
    auto made = system->add_policy(spec);
    ASSERT_TRUE(made.ok()) << made.error().message;
    brain = *made;
    ASSERT_OK(system->warmup([](float) {}));
    agents_.clear();
    for (std::uint32_t i = 0; i < agents; ++i) {
      const auto agent = brain->agents().add(0);
      ASSERT_TRUE(agent.ok());
      agents_.push_back(*agent);
    }
  }

  // Asks one agent and waits for its answer.
  std::vector<float> ask(std::uint32_t agent, std::span<const float> observation) {
    std::vector<float> values;
    pass([&] { EXPECT_OK(brain->agents().observe(agent, observation)); });
    pass();
    pass([&] {
      const auto answer = brain->agents().act(agent);
      ASSERT_TRUE(answer.ok());
      values = (*answer)->values;
    });
    return values;
  }

  std::vector<std::uint32_t> agents_;
};

TEST_F(PolicyTest, GodotAgentsActAsTheirReferencesSay) {
  for (const char* name : {"BallChase", "Ships", "3DLander"}) {
    const std::string path = std::string(IMPRINT_TEST_MODELS) + "/godot/" + name;
    const auto file = read_file(path + ".onnx");
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto reference = safetensors::load(path + ".ref.safetensors");
    ASSERT_TRUE(reference.ok()) << reference.error().message;
    const safetensors::Array& observations = reference->arrays.at("in.obs");
    const safetensors::Array& actions = reference->arrays.at("out.output");
    const auto agents = static_cast<std::uint32_t>(observations.shape[0]);
    start(*file, agents);
    const std::vector<float> seen = observations.floats(), expected = actions.floats();
    const std::size_t width = seen.size() / agents, outputs = expected.size() / agents;
    EXPECT_EQ(brain->info().observation_count, width);
    EXPECT_EQ(brain->info().continuous_count, outputs);
    pass([&] {
      for (std::uint32_t i = 0; i < agents; ++i)
        EXPECT_OK(brain->agents().observe(agents_[i], std::span(seen).subspan(i * width, width)));
    });
    pass();
    pass([&] {
      for (std::uint32_t i = 0; i < agents; ++i) {
        const auto answer = brain->agents().act(agents_[i]);
        ASSERT_TRUE(answer.ok());
        ASSERT_EQ((*answer)->values.size(), outputs);
        for (std::size_t k = 0; k < outputs; ++k) {
          const float value = expected[i * outputs + k];
          EXPECT_NEAR((*answer)->values[k], value, 1e-5f * std::max(1.0f, std::abs(value)))
              << name << " agent " << i;
          EXPECT_EQ((*answer)->values[k], (*answer)->choice.continuous[k]);
        }
      }
    });
    system->remove_brain(brain);
  }
}

// state' = state + observation, action = state': it sums each agent's own observations.
TEST_F(PolicyTest, StateBelongsToTheAgentAndEndsWithItsEpisode) {
  imprint::test::OnnxBuilder builder;
  builder.input("obs", {"batch", "2"})
      .input("state_ins", {"batch", "2"})
      .output("action")
      .output("state_outs");
  builder.node("Add", {"obs", "state_ins"}, {"state_outs"}).node("Identity", {"state_outs"}, {"action"});
  start(builder.bytes(), 3);
  const float one[] = {1, 10};
  using ::testing::ElementsAre;
  EXPECT_THAT(ask(agents_[0], one), ElementsAre(1, 10));
  EXPECT_THAT(ask(agents_[0], one), ElementsAre(2, 20));
  EXPECT_THAT(ask(agents_[1], one), ElementsAre(1, 10)) << "its neighbour's memory is not its own";
  EXPECT_THAT(ask(agents_[0], one), ElementsAre(3, 30))
      << "frames without its request leave its memory unchanged";
  pass([&] { EXPECT_OK(brain->agents().end_episode(agents_[0], EpisodeEnd::terminated)); });
  EXPECT_THAT(ask(agents_[0], one), ElementsAre(1, 10));
  EXPECT_THAT(ask(agents_[1], one), ElementsAre(2, 20));
  brain->agents().remove(agents_[1]);
  const auto again = brain->agents().add(0);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, agents_[1]);
  EXPECT_THAT(ask(*again, one), ElementsAre(1, 10)) << "a new agent has fresh state";
}

TEST_F(PolicyTest, APolicyKeepsNothing) {
  imprint::test::OnnxBuilder builder;
  builder.input("obs", {"batch", "2"}).output("action").node("Tanh", {"obs"}, {"action"});
  start(builder.bytes(), 1);
  EXPECT_EQ(brain->state().save("x").error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->state().load("x").error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->state().snapshot().error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->state().restore(1).error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->state().hash().error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->set_learning(true).error().code, ErrorCode::unsupported);
  pass([&] {
    EXPECT_EQ(brain->agents().feedback(agents_[0], {1, 1, CreditKind::current, 0}).error().code,
              ErrorCode::unsupported);
  });
}

}  // namespace
}  // namespace imprint::agent::test
