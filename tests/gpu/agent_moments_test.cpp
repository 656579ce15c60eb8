// A brain's device part and host part are of one moment: in files, after loads, and in every order of calls.

#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <span>

#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

using ::testing::HasSubstr;

class MomentsTest : public AgentSystemTest {
 protected:
  static BrainSpec remembering(LearnerKind learner = LearnerKind::dqn) {
    BrainSpec spec;
    spec.observation.count = 2;
    if (learner == LearnerKind::sac)
      spec.action = {{}, 1};
    else
      spec.action.branch_sizes = {2};
    spec.hidden_sizes = {4};
    spec.learner = learner;
    spec.action_latency_frames = 1;
    spec.learn_period_frames = 2;
    spec.batch_size = 4;
    spec.replay_capacity = 64;
    return spec;
  }

  void start(const BrainSpec& spec) {
    brain = add(spec);
    ASSERT_TRUE(brain);
    agent = brain->agents().add(0).value();
  }
  // An action that earns 1, what comes besides, and the next question.
  void play(const std::function<void()>& besides = {}) {
    pass([&] {
      const float seen[] = {1, 0.5f};
      if (const auto answer = brain->agents().act(agent); answer.ok())
        EXPECT_OK(brain->agents().reward(agent, 1));
      if (besides) besides();
      EXPECT_OK(brain->agents().observe(agent, seen));
    });
  }
  void play(int frames) {
    for (int i = 0; i < frames; ++i) play();
  }
  std::string path(const char* name) { return ::testing::TempDir() + "imprint-moments-" + name; }
  void save(Brain& of, const std::string& file) {
    ASSERT_OK(of.state().save(file));
    ASSERT_OK(system->drain(60'000));
    ASSERT_OK(of.state().save_status());
  }
  // The first number of an array of a file.
  static std::int32_t number_in(const std::string& file, const char* name) {
    constexpr std::size_t kHeader = 72;
    const std::vector<std::byte> bytes = read_file(file).value();
    const safetensors::File body = safetensors::parse(std::span(bytes).subspan(kHeader)).value();
    return body.arrays.at(name).ints().value().front();
  }
  static void expect_one_moment(const std::string& file) {
    EXPECT_EQ(number_in(file, "next_row"), number_in(file, "replay.next"));
  }

  std::uint32_t agent = 0;
};

TEST_F(MomentsTest, ASaveThatMeetsADrain) {
  start(remembering());
  for (int extra = 0; extra < 4; ++extra) {
    play(11 + extra);
    const std::string file = path("drain");
    ASSERT_OK(brain->state().save(file));
    play();
    ASSERT_OK(system->drain(60'000));
    ASSERT_OK(brain->state().save_status());
    expect_one_moment(file);
  }
}

TEST_F(MomentsTest, ASaveThatMeetsAnEstimateAndEverything) {
  start(remembering());
  for (int extra = 0; extra < 4; ++extra) {
    play(11 + extra);
    const std::string file = path("everything");
    ++frame;
    ASSERT_OK(system->frame_begin({frame, 0}, now()));
    ASSERT_OK(brain->state().save(file));
    ASSERT_OK(system->estimate());
    ASSERT_OK(system->submit({UINT32_MAX, {}, {}}, FrameScope::everything));
    ASSERT_OK(system->frame_end());
    ASSERT_OK(system->drain(60'000));
    ASSERT_OK(brain->state().save_status());
    expect_one_moment(file);
  }
}

TEST_F(MomentsTest, ACopyInHostMemoryThatMeetsADrain) {
  vk::Device* device = system->context().vulkan();
  if (!device) GTEST_SKIP() << "the CPU is not lost";
  system->set_host_copy_period(1);
  start(remembering());
  for (int i = 0; i < 4; ++i) {
    play(3);
    ASSERT_OK(system->drain(60'000));
  }
  play(2);
  EXPECT_GT(brain->state().host_copy_frame(), 0u);
  device->mark_lost();
  const std::string file = path("copy");
  ASSERT_OK(brain->state().save(file));
  Result<> saved = brain->state().save_status();
  for (int i = 0; i < 1000 && !saved.ok() && saved.error().code == ErrorCode::not_ready; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    saved = brain->state().save_status();
  }
  ASSERT_OK(saved);
  expect_one_moment(file);
}

// Rows that a brain's own memory holds stay its own; bounds join as bounds.
TEST_F(MomentsTest, SharedStateLeavesExperience) {
  for (const LearnerKind learner : {LearnerKind::dqn, LearnerKind::sac, LearnerKind::bandit}) {
    start(remembering(learner));
    play(40);
    ASSERT_OK(system->drain(60'000));
    const std::shared_ptr<Brain> old = brain;
    start(remembering(learner));
    play(10);
    ASSERT_OK(system->drain(60'000));
    std::map<std::string, Merge> merges;
    for (const StateVariable& entry : brain->state().shared_state()) merges[entry.name] = entry.merge;
    EXPECT_FALSE(merges.contains("next_row"));
    EXPECT_FALSE(merges.contains("since_change"));
    EXPECT_EQ(merges.at("lowest_reward"), Merge::smallest);
    EXPECT_EQ(merges.at("highest_reward"), Merge::largest);
    if (learner == LearnerKind::dqn) {
      EXPECT_EQ(merges.at("least_reward"), Merge::smallest);
      EXPECT_EQ(merges.at("most_reward"), Merge::largest);
    }

    std::vector<std::byte> state(old->state().shared_bytes());
    ASSERT_OK(old->state().read_shared(state));
    ASSERT_OK(brain->state().write_shared(state));
    const std::string file = path("shared");
    save(*brain, file);
    expect_one_moment(file);
  }
}

TEST_F(MomentsTest, WeightsThatArriveDuringAStepLoseNoSample) {
  BrainSpec spec = remembering();
  spec.learn_period_frames = 20;
  spec.replay_capacity = 512;
  start(spec);
  const std::string weights = path("weights"), file = path("later");
  save(*brain, weights);
  play(45);
  const BrainStats before = brain->stats();
  ASSERT_OK(brain->state().load_weights(weights));
  EXPECT_LT(brain->stats().samples, before.samples);  // they wait again
  EXPECT_LE(brain->stats().counters.minibatches, before.counters.minibatches);
  save(*brain, file);
  expect_one_moment(file);
  play(60);
  ASSERT_OK(system->drain(60'000));
  pass();
  pass();  // the counts follow
  const BrainStats after = brain->stats();
  EXPECT_EQ(after.used_samples, after.samples);  // each once
  EXPECT_GT(after.samples, before.samples);
  EXPECT_EQ(after.lost.samples(), 0u);
  save(*brain, file);
  expect_one_moment(file);
}

TEST_F(MomentsTest, WeightsOfADuelingBrainAreWhole) {
  BrainSpec spec = remembering();
  spec.dueling = true;
  spec.target_period = 7;
  start(spec);
  play(60);
  const std::string file = path("dueling");
  save(*brain, file);
  const std::shared_ptr<Brain> old = brain;
  spec.seed = 9;
  start(spec);
  ASSERT_OK(brain->state().load_weights(file));
  std::vector<std::byte> learned(old->state().shared_bytes()), loaded(learned.size());
  ASSERT_OK(old->state().read_shared(learned));
  ASSERT_OK(brain->state().read_shared(loaded));
  std::map<std::string, std::vector<std::byte>> of_old, of_new;
  std::size_t at = 0;
  for (const StateVariable& entry : brain->state().shared_state()) {
    const auto part = [&](const std::vector<std::byte>& all) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
      return std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(entry.variable.bytes()));
    };
    of_old[entry.name] = part(learned);
    of_new[entry.name] = part(loaded);
    at += entry.variable.bytes();
  }
  int targets = 0;
  for (const auto& [name, bytes] : of_new) {
    if (name.starts_with("beside.value.") || name == "least_reward" || name == "most_reward")
      EXPECT_EQ(bytes, of_old.at(name)) << name;
    if (!name.starts_with("target_value.")) continue;
    EXPECT_EQ(bytes, of_old.at("beside.value." + name.substr(13))) << name;
    ++targets;
  }
  EXPECT_GT(targets, 0);
}

TEST_F(MomentsTest, LoadsAreRefusedWhileQuiesced) {
  start(remembering());
  const std::string file = path("quiesced");
  save(*brain, file);
  BrainSpec other = remembering();
  other.seed = 9;
  start(other);
  const Hash128 before = hash(*brain);
  ASSERT_OK(system->quiesce(10'000));
  for (const Result<>& refused : {brain->state().load(file), brain->state().load_weights(file)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::wrong_state);
    EXPECT_THAT(refused.error().message, HasSubstr("Call context_resume first"));
  }
  ASSERT_OK(system->resume());
  EXPECT_EQ(hash(*brain), before);
}

TEST_F(MomentsTest, TheEndCompletesSavesOfAQuiescedContext) {
  start(remembering());
  const std::string file = path("end");
  std::remove(file.c_str());
  ASSERT_OK(brain->state().save(file));
  ASSERT_OK(system->quiesce(10'000));
  ASSERT_OK(system->close());
  EXPECT_TRUE(read_file(file).ok());
}

// Settings that may differ between a file and the brain that loads it.
TEST_F(MomentsTest, FilesFitOtherRates) {
  BrainSpec spec = remembering();
  spec.rate_half_life = 5000;
  start(spec);
  play(20);
  const std::string file = path("rates");
  save(*brain, file);
  spec.rate_half_life = 0;
  start(spec);
  EXPECT_OK(brain->state().load(file));

  for (const LearnerKind learner : {LearnerKind::sac, LearnerKind::bandit}) {
    spec = remembering(learner);
    start(spec);
    save(*brain, file);
    spec.follow_changes = false;
    start(spec);
    const Result<> refused = brain->state().load(file);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::shape_mismatch) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr("unchanging"));
    EXPECT_OK(brain->state().load_weights(file));
  }
}

TEST_F(MomentsTest, AShorterQueueKeepsTheNewestSamples) {
  BrainSpec spec = remembering(LearnerKind::ppo);
  spec.rollout_steps = 512;
  spec.batch_size = 64;
  start(spec);
  play(400);
  const std::string file = path("rollout");
  save(*brain, file);
  spec.rollout_steps = spec.batch_size = 32;
  start(spec);
  ASSERT_OK(brain->state().load(file));
  play(3);
  EXPECT_EQ(brain->stats().lost.intake, 0u);  // none is told as lost
  play(60);
  EXPECT_GE(brain->stats().used_samples, 256u);
}

TEST_F(MomentsTest, AnEstimateTakesNoTurn) {
  const auto decisions_of = [&](bool estimates) {
    BrainSpec spec = remembering(LearnerKind::none);
    spec.agents_per_brain = spec.decision_period_frames = 4;
    const std::shared_ptr<Brain> crowd = add(spec);
    std::vector<std::uint32_t> agents;
    for (int i = 0; i < 4; ++i) agents.push_back(crowd->agents().add(0).value());
    for (int i = 0; i < 40; ++i)
      pass([&] {
        const float seen[] = {1, 2};
        for (const std::uint32_t each : agents) EXPECT_OK(crowd->agents().observe(each, seen));
        if (estimates) EXPECT_OK(system->estimate());
      });
    return crowd->stats().counters.decisions;
  };
  EXPECT_EQ(decisions_of(false), 40u);
  EXPECT_EQ(decisions_of(true), 40u);
}

TEST_F(MomentsTest, AJumpOfTheFrameNumberIsNoLateness) {
  start(remembering());
  for (int i = 0; i < 20; ++i) {
    play(3);
    frame += 1000;
  }
  const BrainStats stats = brain->stats();
  EXPECT_EQ(stats.late_actions, 0u);
  EXPECT_FALSE(stats.alarms & static_cast<std::uint64_t>(Alarm::overdue_answer));
}

TEST_F(MomentsTest, ABanditNeedsNoStateAfterTheEnd) {
  start(remembering(LearnerKind::bandit));
  for (int i = 0; i < 40; ++i)
    play([&] { EXPECT_OK(brain->agents().end_episode(agent, EpisodeEnd::truncated)); });
  for (int i = 0; i < 10; ++i) {
    play(4);
    EXPECT_OK(brain->agents().set_mode(agent, i % 2 ? Mode::learning : Mode::inference));
  }
  ASSERT_OK(brain->agents().set_mode(agent, Mode::learning));
  play(20);
  const BrainStats stats = brain->stats();
  EXPECT_EQ(stats.lost.unfollowed, 0u);
  EXPECT_GT(stats.used_samples, 30u);
}

// The game's own actions: on-policy learners take nothing from them and lose nothing, others learn steadily.
TEST_F(MomentsTest, HeuristicActions) {
  for (const LearnerKind learner :
       {LearnerKind::ppo, LearnerKind::coach, LearnerKind::dqn, LearnerKind::bandit}) {
    start(remembering(learner));
    ASSERT_OK(brain->agents().set_mode(agent, Mode::heuristic));
    for (int i = 0; i < 200; ++i)
      pass([&] {
        const float seen[] = {1, 1};
        const std::uint32_t choice[] = {1};
        EXPECT_OK(brain->agents().observe(agent, seen));
        EXPECT_OK(brain->agents().act_by_heuristic(agent, choice, {}));
        EXPECT_OK(brain->agents().reward(agent, i % 3 == 0 ? 1.0f : 0.0f));
      });
    for (int i = 0; i < 200; ++i) pass();
    const BrainStats stats = brain->stats();
    EXPECT_EQ(stats.lost.uncredited, 0u);
    const bool learns = learner == LearnerKind::dqn || learner == LearnerKind::bandit;
    EXPECT_EQ(stats.used_samples > 0, learns);
    if (learns) EXPECT_GT(stats.counters.minibatches, 150u);  // after the last sample too
  }
}

}  // namespace
}  // namespace imprint::agent::test
