// Every learner, through the table: what it refuses, what it never chooses, and its defaults.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/gpu/abi_learners.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;
using namespace imprint::game::test;

#define IMPRINT_DEFAULTS(name, ENUM, Name, bytes) \
  const imp_##name##_options k##Name = imp_##name##_options_init();
IMP_LEARNERS(IMPRINT_DEFAULTS)
#undef IMPRINT_DEFAULTS

// All learners, in the order of their numbers, which begin at 1.
struct LearnerOptions {
  imp_learner learner;
  const char* name;
  const void* defaults;
  // Cloning takes no rewards, feedback takes demonstrations too.
  bool from_steps() const { return learner != IMP_LEARNER_FEEDBACK && learner != IMP_LEARNER_CLONING; }
};
#define IMPRINT_ENTRY(name, ENUM, Name, bytes) {IMP_LEARNER_##ENUM, #name, &k##Name},
constexpr LearnerOptions kLearners[] = {IMP_LEARNERS(IMPRINT_ENTRY)};
#undef IMPRINT_ENTRY

class EveryLearner : public LearnersTest, public testing::WithParamInterface<imp_learner> {};

class LearnerOfChoices : public EveryLearner {};

TEST_P(LearnerOfChoices, KeepsToTheMaskHoweverItExplores) {
  BrainDesc desc = describe(GetParam(), kThings, kOptions);
  if (auto* options = std::get_if<DqnOptions>(&desc.learner)) options->epsilon = 1;
  if (auto* options = std::get_if<PqnOptions>(&desc.learner)) options->epsilon = 1;
  add(desc);
  const std::uint8_t allowed[] = {0, 1, 0, 1};
  std::array<int, kOptions> chosen{};
  ASSERT_WORKS(agents[0].set_mask(allowed));
  for (int i = 0; i < 60; ++i) ++chosen[decide(agents[0], one_hot<kThings>(i % kThings)).branches[0]];
  EXPECT_EQ(chosen[0] + chosen[2], 0);
  if (GetParam() == IMP_LEARNER_ES) return;  // its weights explore, not its choices
  EXPECT_GT(chosen[1], 5);
  EXPECT_GT(chosen[3], 5);
}

TEST_P(EveryLearner, RefusesSignalsThatItDoesNotLearnFrom) {
  add(describe(GetParam(), kThings, kOptions));
  const auto seen = one_hot<kThings>(0);
  Demonstration shown;
  shown.observation = seen;
  pass([&] {
    const Outcome refused = agents[0].demonstrate(shown);
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("does not learn from demonstrations"));
    EXPECT_EQ(agents[0].reward(std::nanf("")).code(), Code::invalid_argument);
    EXPECT_EQ(agents[0].feedback(2, now()).code(), Code::invalid_argument);
    EXPECT_EQ(agents[0].feedback(std::nanf(""), now()).code(), Code::invalid_argument);
    EXPECT_TRUE(agents[0].reward(1)) << "no step is in progress, so nothing happens";
  });
  EXPECT_EQ(brain.stats().value.samples, 0u);
}

TEST_P(EveryLearner, FilesOfOtherLearnersAreRefused) {
  const std::string path = testing::TempDir() + "imprint-learner-" + std::to_string(GetParam()) + ".brain";
  add(describe(GetParam(), kThings, kOptions));
  ASSERT_WORKS(brain.save(path.c_str()));
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_EQ(brain.save_status().result(), IMP_OK);
  ASSERT_WORKS(brain.load(path.c_str()));
  for (const LearnerOptions& one : kLearners) {
    const imp_learner other = one.learner;
    if (other == GetParam()) continue;
    Made<Brain> made = context.create_brain(describe(other, kThings, kOptions));
    ASSERT_TRUE(made) << made.outcome.message();
    const Made<BrainHash> before = made->hash();
    const Outcome refused = made->load(path.c_str());
    EXPECT_EQ(refused.code(), Code::shape_mismatch);
    EXPECT_THAT(refused.message(), HasSubstr("learner "));
    EXPECT_TRUE(made->hash().value == before.value);
  }
  (void)std::remove(path.c_str());
}

std::vector<imp_learner> learners_from_steps(bool of_choices) {
  std::vector<imp_learner> found;
  for (const LearnerOptions& one : kLearners)
    if (one.from_steps() && (!of_choices || one.learner != IMP_LEARNER_SAC)) found.push_back(one.learner);
  return found;
}
std::string learner_of(const testing::TestParamInfo<imp_learner>& learner) {
  return kLearners[learner.param - 1].name;
}
INSTANTIATE_TEST_SUITE_P(Steps, EveryLearner, testing::ValuesIn(learners_from_steps(false)), learner_of);
INSTANTIATE_TEST_SUITE_P(Steps, LearnerOfChoices, testing::ValuesIn(learners_from_steps(true)), learner_of);

TEST_F(LearnersTest, SettingsOutOfRangeAreRefusedByName) {
  const auto expect_desc = [&](const BrainDesc& desc, Code code, const char* text) {
    const Made<Brain> made = context.create_brain(desc);
    EXPECT_EQ(made.outcome.code(), code) << text;
    EXPECT_THAT(made.outcome.message(), HasSubstr(text));
  };
  const auto expect = [&](auto options, const char* text, auto change) {
    change(options);
    expect_desc(describe(options, kThings, kOptions), Code::invalid_argument, text);
  };
  expect(small<DqnOptions>(), "discount", [](DqnOptions& o) { o.discount = 1.5f; });
  expect(small<DqnOptions>(), "discount", [](DqnOptions& o) { o.discount = std::nanf(""); });
  expect(small<DqnOptions>(), "target_rate", [](DqnOptions& o) { o.target_rate = -1; });
  expect(small<DqnOptions>(), "target_rate", [](DqnOptions& o) { o.target_rate = 0; });
  expect(small<DqnOptions>(), "target_period", [](DqnOptions& o) { o.target_period = 1u << 30; });
  expect(small<DqnOptions>(), "epsilon", [](DqnOptions& o) { o.epsilon = 1.5f; });
  expect(small<PpoOptions>(), "rollout_steps", [](PpoOptions& o) { o.rollout_steps = 1u << 20; });
  expect(small<PpoOptions>(), "epochs", [](PpoOptions& o) { o.epochs = 1000; });
  expect(small<PpoOptions>(), "divisor of rollout_steps", [](PpoOptions& o) { o.rollout_steps = 48; });
  expect(small<PpoOptions>(), "advantage_decay", [](PpoOptions& o) { o.advantage_decay = 2; });
  expect(small<PpoOptions>(), "clip_range", [](PpoOptions& o) { o.clip_range = std::nanf(""); });
  expect(small<PpoOptions>(), "entropy_coefficient", [](PpoOptions& o) { o.entropy_coefficient = -1; });
  expect(small<PqnOptions>(), "trace_decay", [](PqnOptions& o) { o.trace_decay = 1.5f; });
  expect(small<PqnOptions>(), "normalise_rewards", [](PqnOptions& o) { o.normalise_rewards = 2; });
  expect(small<SacOptions>(), "discount", [](SacOptions& o) { o.discount = -1; });
  expect(small<SacOptions>(), "target_rate", [](SacOptions& o) { o.target_rate = 0; });
  expect(small<SacOptions>(), "entropy_per_action",
         [](SacOptions& o) { o.entropy_per_action = std::nanf(""); });
  expect(small<BanditOptions>(), "drift", [](BanditOptions& o) { o.drift = 1.5f; });
  expect(small<BanditOptions>(), "thompson", [](BanditOptions& o) { o.thompson = 2; });
  expect(small<CoachOptions>(), "trace_decay", [](CoachOptions& o) { o.trace_decay = 1; });
  BrainDesc desc = describe(small<DqnOptions>(), kThings, kOptions);
  desc.branch_sizes = {};
  desc.continuous_count = 1;
  expect_desc(desc, Code::unsupported, "exactly one branch");
  desc = describe(small<CoachOptions>(), kThings, kOptions);
  desc.continuous_count = 1;
  expect_desc(desc, Code::unsupported, "choices only");
  desc = describe(small<SacOptions>(), kThings, kOptions);
  desc.branch_sizes = {kOptions};
  expect_desc(desc, Code::unsupported, "continuous actions only");
}

// Without options a learner uses its own defaults, however the descriptor was made.
TEST_F(LearnersTest, MissingOptionsAreTheLearnersDefaults) {
  // frames 0: as many as a learn step takes, which it then says.
  const auto hash_after = [&](const imp_brain_desc& desc, std::uint64_t& frames) {
    Made<Brain> made = context.create_brain(desc);
    EXPECT_TRUE(made.outcome) << made.outcome.message();
    Made<Agent> agent = made->create_agent();
    EXPECT_TRUE(context.warmup());
    std::uint64_t i = 0;
    for (; frames ? i < frames : i < 700 && made->stats().value.minibatches < 1; ++i) {
      pass([&] {
        if (agent->act().outcome.ready() && i > 0) EXPECT_TRUE(agent->reward(i % 3 ? 0.5f : -0.5f));
        EXPECT_TRUE(agent->observe(one_hot<kThings>(static_cast<std::uint32_t>(i % kThings))));
      });
      EXPECT_TRUE(context.drain(60'000));
    }
    frames = i;
    const BrainHash hash = made->hash().value;
    agent->reset();
    frame = 0;
    return hash;
  };
  imp_brain_desc desc = imp_brain_desc_init();
  const std::uint32_t choices = kOptions;
  desc.observation_count = kThings;
  desc.branch_count = 1;
  desc.branch_sizes = &choices;
  for (const auto& [learner, name, defaults] : kLearners) {
    if (!kLearners[learner - 1].from_steps()) continue;
    desc.learner = learner;
    desc.brain_count = learner == IMP_LEARNER_ES ? 3 : 1;  // a population
    desc.branch_count = learner != IMP_LEARNER_SAC;
    desc.continuous_count = learner == IMP_LEARNER_SAC;
    desc.header.next = nullptr;
    std::uint64_t frames = 0;
    const BrainHash without = hash_after(desc, frames);
    TearDown();
    SetUp();
    desc.header.next = defaults;
    EXPECT_EQ(hash_after(desc, frames), without) << name << ", log: " << ::testing::PrintToString(log);
    TearDown();
    SetUp();
  }
}

TEST_F(LearnersTest, AnUpdateThatCannotBeRecordedIsRefusedByWarmup) {
  BrainDesc desc = describe(IMP_LEARNER_PPO, kThings, kOptions);
  PpoOptions& options = std::get<PpoOptions>(desc.learner);
  options.rollout_steps = 65536;
  options.epochs = 64;
  options.batch_size = 1;
  Made<Brain> made = context.create_brain(desc);
  ASSERT_TRUE(made) << made.outcome.message();
  const Outcome refused = context.warmup();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.message(), HasSubstr("with 4194304 turns of "));
  EXPECT_THAT(refused.message(), HasSubstr("expected at most 1048576"));
  made->reset();
  ASSERT_WORKS(context.warmup());  // which still serves other brains
}

}  // namespace
