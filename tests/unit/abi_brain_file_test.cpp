// Brains as files of imprint bake and inside saved brains: each reads as brain_create takes it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "plugin/abi/convert.h"
#include "plugin/agent/keep/schema.h"
#include "tools/imprint/brain_file.h"

namespace imprint::abi {
namespace {

Result<agent::BrainSpec> from_json(const std::string& json) {
  const auto brains = tools::parse_brains("brain.json", std::as_bytes(std::span(json)));
  if (!brains) return brains.error();
  return brains->at(0).spec;
}

// A brain of 6 numbers and 4 choices with this chain.
agent::BrainSpec created(imp_learner learner, void* next) {
  static constexpr std::array<std::uint32_t, 1> kChoices{4};
  imp_brain_desc desc = imp_brain_desc_of(learner, 6, kChoices.data(), 1);
  desc.header.next = static_cast<imp_header*>(next);
  const auto spec = to_brain_spec(&desc);
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  return spec.ok() ? *spec : agent::BrainSpec();
}

agent::BrainSpec baked(const std::string& fields) {
  const auto spec = from_json("{\"observation_count\": 6, \"branch_sizes\": [4], " + fields + "}");
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  return spec.ok() ? *spec : agent::BrainSpec();
}

TEST(BrainFile, AStructBesideALearnerHasItsDefaults) {
  imp_demonstration_options shown = imp_demonstration_options_init();
  shown.batch_size = 16;
  const agent::BrainSpec with_shown = created(IMP_LEARNER_DQN, &shown),
                         of_file = baked(R"("learner": "dqn", "demonstrations": {"batch_size": 16})");
  EXPECT_EQ(with_shown.demonstration_capacity, 1024u);
  EXPECT_EQ(of_file.demonstration_capacity, with_shown.demonstration_capacity);
  EXPECT_EQ(of_file.demonstration_batch, with_shown.demonstration_batch);
  EXPECT_EQ(of_file.demonstration_strength, with_shown.demonstration_strength);
  EXPECT_EQ(of_file.demonstration_margin, with_shown.demonstration_margin);

  imp_self_play_options self_play = imp_self_play_options_init();
  EXPECT_EQ(baked(R"("learner": "ppo", "self_play": {})").pool_size,
            created(IMP_LEARNER_PPO, &self_play).pool_size);
  imp_group_options groups = imp_group_options_init();
  EXPECT_EQ(baked(R"("learner": "ppo", "agents_per_brain": 8, "groups": {})").group_size,
            created(IMP_LEARNER_PPO, &groups).group_size);

  imp_signal_options signals = imp_signal_options_init();
  signals.curiosity = IMP_CURIOSITY_SURPRISE;
  signals.curiosity_strength = 0.25f;
  const agent::BrainSpec curious = created(IMP_LEARNER_PPO, &signals),
                         curious_file = baked(R"("learner": "ppo",
                           "signals": {"curiosity": "surprise", "curiosity_strength": 0.25})");
  EXPECT_EQ(curious_file.curiosity, curious.curiosity);
  EXPECT_EQ(curious_file.curiosity_strength, curious.curiosity_strength);
  EXPECT_EQ(curious_file.reward_strength, curious.reward_strength);
  EXPECT_EQ(curious_file.signal_size, curious.signal_size);
  EXPECT_EQ(curious_file.signal_rate, curious.signal_rate);
}

TEST(BrainFile, AFlagIsANumberAsInC) {
  EXPECT_TRUE(baked(R"("learner": "dqn", "dqn": {"dueling": 1})").dueling);
  EXPECT_TRUE(baked(R"("learner": "dqn", "dqn": {"dueling": true})").dueling);
  EXPECT_FALSE(baked(R"("learner": "dqn", "dqn": {"double_estimate": 0})").double_estimate);
  EXPECT_THAT(from_json(R"({"observation_count": 6, "branch_sizes": [4], "fall_back": 2})").error().message,
              testing::HasSubstr("fall_back: found 2, expected true or false"));
}

// imprint export and demos read a saved brain by the description in it.
TEST(BrainFile, ASavedBrainsDescriptionDescribesIt) {
  constexpr const char* kPictures =
      R"("learner": "dqn", "pictures_as_bytes": true, "observation_count": 64,
         "streams": [{"kind": "picture", "channels": 1, "height": 8, "width": 8}])";
  for (const char* fields :
       {kPictures, R"("learner": "dqn", "dqn": {"dueling": true, "double_estimate": false})",
        R"("learner": "ppo", "cell": "gru", "cell_size": 16, "stack": 3)",
        R"("learner": "ppo", "agents_per_brain": 8, "groups": {"group_size": 3},
           "self_play": {"pool_size": 2})",
        R"("learner": "dqn", "demonstrations": {"capacity": 7},
           "signals": {"curiosity_strength": 0.5, "imitation_strength": 0.25, "hidden_size": 24})",
        R"("learner": "feedback", "goal_count": 3, "feedback": {"replay_capacity": 100})"}) {
    const bool has_own = fields == kPictures;
    const auto spec = from_json(std::string("{\"branch_sizes\": [4], ") +
                                (has_own ? "" : "\"observation_count\": 6, ") + fields + "}");
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    const auto again = from_json(agent::schema_json(*spec));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(agent::schema_hash(*again), agent::schema_hash(*spec)) << fields;
  }
}

}  // namespace
}  // namespace imprint::abi
