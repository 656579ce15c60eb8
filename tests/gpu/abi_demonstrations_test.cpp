// Demonstrations as files: recorded by a game, taken out of its saved brain, merged, and taught to another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "compute/model/files/safetensors.h"
#include "tests/gpu/command_game.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace imprint::game;

class DemonstrationsTest : public imprint::game::test::CommandGame {
 protected:
  static constexpr std::uint32_t kMoments = 6;

  static BrainDesc cloning(std::uint32_t capacity = 64) {
    CloningOptions options;
    options.replay_capacity = capacity;
    options.learn_period_frames = 1;
    options.learning_rate = 0.01f;
    BrainDesc desc = BrainDesc::of(options, 3, {4, 2});
    desc.continuous_count = 1;
    desc.goal_count = 2;
    desc.hidden_sizes = {16};
    desc.action_latency_frames = 1;
    return desc;
  }
  static std::vector<float> seen(std::uint32_t moment) {
    return {moment % 2 ? 1.0f : -1.0f, moment % 3 == 0 ? 1.0f : 0.0f, static_cast<float>(moment) / 3};
  }
  static std::vector<std::uint32_t> choices(std::uint32_t moment) { return {moment % 4, moment / 2 % 2}; }
  static float number(std::uint32_t moment) { return static_cast<float>(moment) / 5 - 0.5f; }
  static std::uint32_t goal(std::uint32_t moment) { return moment / 3 % 2; }

  void demonstrate(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t moment = first; moment < first + count; ++moment)
      pass([&] {
        const std::vector<float> observation = seen(moment);
        const std::vector<std::uint32_t> chosen = choices(moment);
        const float moved = number(moment);
        imp_demonstration shown = imp_demonstration_init();
        shown.observation = observation.data(), shown.observation_count = 3;
        shown.goal = goal(moment);
        shown.branches = chosen.data(), shown.branch_count = 2;
        shown.continuous = &moved, shown.continuous_count = 1;
        shown.weight = 1.5f;
        ASSERT_WORKS(agents[0].demonstrate(shown));
      });
  }
  // Without a step of learning: a file of demonstrations from `first` on.
  void record(const char* file, std::uint32_t first, std::uint32_t count, const BrainDesc& desc = cloning()) {
    add(desc);
    demonstrate(first, count);
    ASSERT_WORKS(context.drain(60'000));
    save(path("recorded.brain"));
    run_well("demos extract '" + path("recorded.brain") + "' '" + path(file) + "'");
  }
  std::string refused(const std::string& arguments) {
    std::string text;
    EXPECT_EQ(run("demos " + arguments, text), 1) << text;
    return text;
  }
};

TEST_F(DemonstrationsTest, AreWhatTheGameShowed) {
  record("one.safetensors", 0, kMoments);
  const auto file = imprint::safetensors::load(path("one.safetensors"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata.at("format"), "imprint demonstrations 1");
  EXPECT_EQ(file->metadata.at("goal_count"), "2");
  EXPECT_EQ(file->metadata.at("branch_sizes"), "4 2");
  ASSERT_EQ(file->arrays.size(), 5u);
  const std::vector<float> observations = file->arrays.at("observation").floats();
  const std::vector<std::int32_t> goals = file->arrays.at("goal").ints().value(),
                                  branches = file->arrays.at("branches").ints().value();
  const std::vector<float> numbers = file->arrays.at("continuous").floats();
  ASSERT_EQ(goals.size(), kMoments);
  for (std::uint32_t moment = 0; moment < kMoments; ++moment) {
    const std::vector<float> expected = seen(moment);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(observations[3 * moment + i], expected[i]);
    EXPECT_EQ(goals[moment], static_cast<std::int32_t>(goal(moment)));
    EXPECT_EQ(branches[2 * moment], static_cast<std::int32_t>(choices(moment)[0]));
    EXPECT_EQ(branches[2 * moment + 1], static_cast<std::int32_t>(choices(moment)[1]));
    EXPECT_EQ(numbers[moment], number(moment));
    EXPECT_EQ(file->arrays.at("weight").floats()[moment], 1.5f);
  }
}

// A ring that is full holds the newest, the oldest first.
TEST_F(DemonstrationsTest, TheNewestAreKept) {
  record("one.safetensors", 0, 7, cloning(4));
  const auto file = imprint::safetensors::load(path("one.safetensors"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_THAT(file->arrays.at("continuous").floats(),
              ElementsAre(number(3), number(4), number(5), number(6)));
}

// Two files make one, and a brain that was never shown anything acts by it.
TEST_F(DemonstrationsTest, ImportTakesEffect) {
  record("one.safetensors", 0, 2);
  record("two.safetensors", 2, kMoments - 2);
  const std::string told = run_well("demos merge '" + path("all.safetensors") + "' '" +
                                    path("one.safetensors") + "' '" + path("two.safetensors") + "'");
  EXPECT_THAT(told, HasSubstr("6 demonstrations: 3 numbers, 2 goals, actions 4 2 and 1 continuous"));

  add(cloning());
  save(path("new.brain"));
  run_well("demos import '" + path("new.brain") + "' '" + path("taught.brain") + "' '" +
           path("all.safetensors") + "'");
  ASSERT_WORKS(brain.load(path("taught.brain").c_str()));
  EXPECT_EQ(brain.stats()->demonstrations, kMoments);
  EXPECT_EQ(brain.stats()->samples, kMoments);
  for (int i = 0; i < 600; ++i) pass([] {});
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_WORKS(agents[0].set_mode(Mode::inference));
  for (std::uint32_t moment = 0; moment < kMoments; ++moment) {
    ASSERT_WORKS(agents[0].set_goal(goal(moment)));
    pass([&] { ASSERT_WORKS(agents[0].observe(seen(moment))); });
    Made<Action> action;
    for (int i = 0; i < 64 && !(action && action->is_new); ++i) pass([&] { action = agents[0].act(); });
    ASSERT_TRUE(action) << action.outcome.message();
    EXPECT_EQ(action->branches[0], choices(moment)[0]) << moment;
    EXPECT_EQ(action->branches[1], choices(moment)[1]) << moment;
    EXPECT_NEAR(action->continuous[0], number(moment), 0.1) << moment;
  }
}

// The same by calls, without a saved brain between.
TEST_F(DemonstrationsTest, CallsSaveLoadAndClear) {
  add(cloning());
  demonstrate(0, kMoments);
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_WORKS(brain.save_demonstrations(path("one.safetensors").c_str()));
  EXPECT_THAT(run_well("demos show '" + path("one.safetensors") + "'"),
              HasSubstr("6 demonstrations: 3 numbers, 2 goals, actions 4 2 and 1 continuous"));
  ASSERT_WORKS(brain.clear_demonstrations());
  EXPECT_EQ(brain.stats()->samples, 0u);
  EXPECT_EQ(brain.save_demonstrations(path("none").c_str()).code(), Code::not_found);
  const Made<std::uint32_t> loaded = brain.load_demonstrations(path("one.safetensors").c_str());
  ASSERT_TRUE(loaded) << loaded.outcome.message();
  EXPECT_EQ(*loaded, kMoments);
  for (int i = 0; i < 20; ++i) pass([] {});
  ASSERT_WORKS(context.drain(60'000));
  EXPECT_EQ(brain.stats()->samples, kMoments);
  ASSERT_WORKS(brain.save_demonstrations(path("two.safetensors").c_str()));
  EXPECT_EQ(imprint::safetensors::load(path("one.safetensors"))->arrays.at("continuous").floats(),
            imprint::safetensors::load(path("two.safetensors"))->arrays.at("continuous").floats());
}

// A brain of rewards keeps demonstrations of its own: recorded, merged, and learned before any reward.
TEST_F(DemonstrationsTest, ALearnerOfRewardsActsByThem) {
  for (const bool ppo : {false, true}) {
    BrainDesc desc = BrainDesc::of(ppo ? Learner(PpoOptions()) : Learner(DqnOptions()), 3, {4});
    desc.hidden_sizes = {32};
    desc.action_latency_frames = 1;
    add(desc);
    EXPECT_EQ(agents[0].demonstrate(imp_demonstration_init()).code(), Code::wrong_state) << "no frame";
    EXPECT_EQ(brain.load_demonstrations(path("none").c_str()).outcome.code(), Code::unsupported);
    EXPECT_THAT(brain.clear_demonstrations().message(),
                HasSubstr("Give brain_create imp_demonstration_options"));

    desc.demonstrations.emplace().pretraining = 300;
    add(desc);
    for (std::uint32_t moment = 0; moment < 4; ++moment) {
      ASSERT_WORKS(agents[0].set_mode(Mode::record));
      pass([&] {
        ASSERT_WORKS(agents[0].observe(seen(moment)));
        ASSERT_WORKS(agents[0].act_by_heuristic(std::span(&moment, 1)));
      });
    }
    ASSERT_WORKS(context.drain(60'000));
    EXPECT_EQ(brain.stats()->kept_demonstrations, 4u);
    ASSERT_WORKS(brain.save_demonstrations(path("four.safetensors").c_str()));
    ASSERT_WORKS(brain.clear_demonstrations());
    EXPECT_EQ(brain.stats()->kept_demonstrations, 0u);
    ASSERT_TRUE(brain.load_demonstrations(path("four.safetensors").c_str()));
    ASSERT_TRUE(brain.load_demonstrations(path("four.safetensors").c_str())) << "a file is added";
    EXPECT_EQ(brain.stats()->kept_demonstrations, 8u);
    for (int i = 0; i < 700; ++i) pass([] {});
    ASSERT_WORKS(context.drain(60'000));
    ASSERT_WORKS(agents[0].set_mode(Mode::inference));
    for (std::uint32_t moment = 0; moment < 4; ++moment) {
      pass([&] { ASSERT_WORKS(agents[0].observe(seen(moment))); });
      Made<Action> action;
      for (int i = 0; i < 64 && !(action && action->is_new); ++i) pass([&] { action = agents[0].act(); });
      ASSERT_TRUE(action) << action.outcome.message();
      EXPECT_EQ(action->branches[0], moment) << (ppo ? "PPO" : "DQN");
    }
  }
}

TEST_F(DemonstrationsTest, CallsNameTheFault) {
  record("one.safetensors", 0, kMoments);
  BrainDesc desc = BrainDesc::of(DqnOptions(), 3, {4});
  desc.demonstrations.emplace().capacity = 4;
  add(desc);
  EXPECT_THAT(brain.load_demonstrations(path("one.safetensors").c_str()).outcome.message(),
              HasSubstr("brain_load_demonstrations: demonstrations: form: found 3 numbers, 2 goals"));
  EXPECT_EQ(brain.load_demonstrations(path("nowhere").c_str()).outcome.code(), Code::not_found);
  EXPECT_THAT(brain.load_demonstrations(path("one.safetensors").c_str(), 1).outcome.message(),
              HasSubstr("brain_index: found 1, expected below 1 or UINT32_MAX"));
  BrainDesc small = cloning();
  small.learner = PpoOptions();
  small.demonstrations.emplace().capacity = 4;
  add(small);
  EXPECT_THAT(
      brain.load_demonstrations(path("one.safetensors").c_str()).outcome.message(),
      HasSubstr("found 6 for brain 0, expected at most 4. Raise imp_demonstration_options::capacity"));
  EXPECT_EQ(brain.stats()->kept_demonstrations, 0u) << "all or none";
}

TEST_F(DemonstrationsTest, RefusalsNameTheFault) {
  record("one.safetensors", 0, kMoments);
  BrainDesc other = cloning();
  other.branch_sizes = {4, 3};
  record("other.safetensors", 0, 2, other);
  const std::string one = " '" + path("one.safetensors") + "'", out = " '" + path("out") + "'";
  EXPECT_THAT(refused("merge" + out + one + " '" + path("other.safetensors") + "'"),
              HasSubstr("form: found 3 numbers, 2 goals, actions 4 3 and 1 continuous, expected 3 numbers, "
                        "2 goals, actions 4 2 and 1 continuous"));
  const std::string saved = " '" + path("recorded.brain") + "'";  // of `other`
  EXPECT_THAT(refused("import" + saved + out + one), HasSubstr("form: found"));
  EXPECT_THAT(refused("show '" + path("recorded.brain") + "'"), HasSubstr("recorded.brain"));

  add(cloning(8));
  save(path("small.brain"));
  EXPECT_THAT(refused("import '" + path("small.brain") + "'" + out + one + one),
              HasSubstr("replay_capacity: found 8, expected at least 12. Save a brain"));
  EXPECT_THAT(refused("extract '" + path("small.brain") + "'" + out),
              HasSubstr("demonstrations: found none in brain 0"));
  EXPECT_THAT(refused("extract '" + path("small.brain") + "'" + out + " --index 1"),
              HasSubstr("brain: found 1, expected less than 1"));
  add(BrainDesc::of(DqnOptions(), 3, {4}));
  save(path("dqn.brain"));
  EXPECT_THAT(refused("import '" + path("dqn.brain") + "'" + out + one),
              HasSubstr("learner: found dqn, which takes none"));
  EXPECT_THAT(refused("extract '" + path("dqn.brain") + "'" + out),
              HasSubstr("learner: found dqn, expected cloning"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

}  // namespace
