// Demonstrations and signals beside a learner's rewards: equal bits with any budget, in files and snapshots.

#include <gmock/gmock.h>

#include <string>

#include "compute/base/philox.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

class BesideState : public AgentSystemTest, public ::testing::WithParamInterface<LearnerKind> {
 protected:
  static BrainSpec small_spec() {
    BrainSpec spec;
    spec.observation.count = 3;
    spec.learner = GetParam();
    if (spec.learner == LearnerKind::sac)
      spec.action = {{}, 1};
    else
      spec.action.branch_sizes = {3};
    spec.hidden_sizes = {8};
    spec.brain_count = 2;
    spec.learn_period_frames = 3;
    spec.batch_size = 8;
    spec.replay_capacity = 16;
    spec.rollout_steps = 16;
    spec.epochs = 1;
    spec.snapshot_count = 1;
    spec.demonstration_capacity = 5;
    spec.demonstration_batch = 4;
    spec.demonstration_half_life = 10;
    spec.pretraining = 6;
    spec.curiosity_strength = 0.5f;
    spec.imitation_strength = 0.5f;
    spec.signal_size = 8;
    spec.pool_size = 2;
    spec.pool_period = 10;
    if (spec.learner == LearnerKind::dqn) spec.curiosity = Curiosity::surprise;
    return spec;
  }

  void start(const BrainSpec& spec, const bridge::Budget& budget = {}) {
    open(budget);
    brain = add(spec);
    ASSERT_TRUE(brain);
    agents_.clear();
    for (std::uint32_t p = 0; p < spec.brain_count; ++p) agents_.push_back(brain->agents().add(p).value());
  }

  static std::array<float, 3> seen(std::uint32_t moment, std::uint32_t agent) {
    std::array<float, 3> numbers{};
    for (std::uint32_t k = 0; k < 3; ++k)
      numbers[k] = static_cast<float>(philox_uniform(moment, k, agent, 7, 7));
    return numbers;
  }

  // Frames that depend only on their number and the answers. The second brain is shown more than it keeps.
  void live(int frames) {
    for (int i = 0; i < frames; ++i, ++moment_)
      pass([&] {
        for (const std::uint32_t agent : agents_) {
          if (const auto answer = brain->agents().act(agent); answer.ok())
            EXPECT_OK(brain->agents().reward(agent, moment_ % 3 == 0 ? 1.0f : 0.0f));
          if (moment_ % 15 == 0) {
            EXPECT_OK(
                brain->agents().set_opponent(agent, moment_ % 30 == 0 ? kDrawnOpponent : kNewestWeights));
            const auto first = brain->agents().rated(agents_[0]);
            const auto second = brain->agents().rated(agents_.back());
            ASSERT_TRUE(first.ok() && second.ok());
            Opponents::rate(**first, **second, moment_ % 2 == 0 ? 1.0f : 0.5f);
          }
          if (moment_ % 5 == agent) {
            const std::uint32_t branch = moment_ % 3;
            const float number = 0.25f;
            const bool chooses = GetParam() != LearnerKind::sac;
            EXPECT_OK(
                brain->agents().demonstrate(agent, {seen(moment_, 9), 0, std::span(&branch, chooses ? 1 : 0),
                                                    std::span(&number, chooses ? 0 : 1), 2.0f}));
          }
          EXPECT_OK(brain->agents().observe(agent, seen(moment_, agent)));
          if (moment_ % 20 == 11) EXPECT_OK(brain->agents().end_episode(agent, EpisodeEnd::terminated));
        }
      });
  }

  std::vector<std::uint32_t> agents_;
  std::uint32_t moment_ = 0;
};

TEST_P(BesideState, EqualGamesGiveEqualBitsWithAnyBudget) {
  const bridge::Budget budgets[] = {{500, 1000}, {1, 100}, {1000000, 0}};
  std::vector<Hash128> first;
  for (const bridge::Budget& budget : budgets) {
    moment_ = 0;
    start(small_spec(), budget);
    live(97);
    std::vector<Hash128> hashes;
    for (int i = 0; i < 4; ++i) {
      live(1);
      hashes.push_back(hash(*brain));
    }
    if (first.empty()) first = hashes;
    EXPECT_EQ(hashes, first) << "budget " << budget.gpu_us_per_frame;
    EXPECT_GE(brain->stats().counters.minibatches, 12u);
    EXPECT_EQ(brain->stats().kept_demonstrations, 10u);
    EXPECT_EQ(brain->stats().stopped_brains, 0u);
  }
}

TEST_P(BesideState, ALoadedBrainContinuesBitEqual) {
  start(small_spec());
  live(60);
  // Quitting loses open requests and credit. They end here, so that both runs continue from the same point.
  for (int i = 0; i < 3; ++i)
    pass([&] {
      for (const std::uint32_t agent : agents_) (void)brain->agents().act(agent);
    });
  for (const std::uint32_t agent : agents_)
    ASSERT_OK(brain->agents().end_episode(agent, EpisodeEnd::terminated));
  ASSERT_OK(system->drain(10000));
  const std::string path = ::testing::TempDir() + "imprint-beside.brain";
  ASSERT_OK(brain->state().save(path));
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save_status());
  const Hash128 saved = hash(*brain);
  const std::uint32_t moment = moment_;
  live(40);
  const Hash128 end = hash(*brain);
  start(small_spec());
  ASSERT_OK(brain->state().load(path));
  EXPECT_EQ(hash(*brain), saved);
  EXPECT_EQ(brain->stats().kept_demonstrations, 10u);
  moment_ = moment;
  live(40);
  EXPECT_EQ(hash(*brain), end);
}

TEST_P(BesideState, ASnapshotHasWhatWasShown) {
  start(small_spec());
  ASSERT_OK(system->drain(10000));
  const auto before = brain->state().snapshot();
  ASSERT_TRUE(before.ok());
  const Hash128 first = hash(*brain);
  live(30);
  EXPECT_NE(hash(*brain), first);
  EXPECT_GT(brain->stats().kept_demonstrations, 0u);
  ASSERT_OK(brain->state().restore(*before));
  ASSERT_OK(system->drain(10000));
  EXPECT_EQ(hash(*brain), first);
  EXPECT_EQ(brain->stats().kept_demonstrations, 0u);
}

// Without a step of its own a brain learns what it was shown, and no more minibatches than it was to.
TEST_P(BesideState, PretrainingEnds) {
  BrainSpec spec = small_spec();
  spec.brain_count = 1;
  spec.imitation_strength = 0;
  start(spec);
  const Hash128 first = hash(*brain);
  for (int i = 0; i < 12; ++i) pass();
  EXPECT_EQ(hash(*brain), first) << "nothing was shown yet";
  pass([&] {
    const std::uint32_t branch = 2;
    const float number = 0.9f;
    const bool chooses = GetParam() != LearnerKind::sac;
    EXPECT_OK(brain->agents().demonstrate(agents_[0], {seen(1, 1), 0, std::span(&branch, chooses ? 1 : 0),
                                                       std::span(&number, chooses ? 0 : 1), 2.0f}));
  });
  for (int i = 0; i < 60; ++i) pass();
  const std::uint64_t made = brain->stats().counters.minibatches;
  EXPECT_GE(made, spec.pretraining);
  EXPECT_LE(made, spec.pretraining + 2u);
  EXPECT_NE(hash(*brain), first);
}

// An agent that acts by an entry does what the brain did when it was kept, however far that has come since.
TEST_P(BesideState, OpponentsActAsTheBrainDid) {
  BrainSpec spec = small_spec();
  spec.brain_count = 1;
  spec.pool_period = 0;
  spec.learning_rate = 0.05f;
  spec.pretraining = 0;
  start(spec);
  const auto values = [&](std::uint32_t opponent) {
    EXPECT_OK(brain->agents().set_opponent(agents_[0], opponent));
    EXPECT_OK(brain->agents().end_episode(agents_[0], EpisodeEnd::terminated));
    pass([&] { EXPECT_OK(brain->agents().observe(agents_[0], seen(1, 1))); });
    std::vector<float> found;
    for (int i = 0; i < 8 && found.empty(); ++i)
      pass([&] {
        if (const auto answer = brain->agents().act(agents_[0]); answer.ok()) found = (*answer)->values;
      });
    return found;
  };
  EXPECT_EQ(brain->agents().set_opponent(agents_[0], 0).error().code, ErrorCode::not_found);
  live(60);
  ASSERT_OK(brain->set_learning(false));
  ASSERT_OK(system->drain(10000));
  const std::vector<float> before = values(kNewestOpponent);
  ASSERT_OK(brain->set_learning(true));
  ASSERT_OK(brain->agents().keep_opponent(0));
  ASSERT_OK(brain->agents().set_opponent(agents_[0], kNewestWeights));
  live(90);
  ASSERT_OK(brain->set_learning(false));
  ASSERT_OK(system->drain(10000));
  ASSERT_TRUE(brain->agents().opponent(0, 0).ok());
  EXPECT_THAT(values(0), ::testing::Pointwise(::testing::FloatNear(1e-5f), before));
  EXPECT_THAT(values(kNewestOpponent),
              ::testing::Not(::testing::Pointwise(::testing::FloatNear(1e-3f), before)));
}

INSTANTIATE_TEST_SUITE_P(Learners, BesideState,
                         ::testing::Values(LearnerKind::dqn, LearnerKind::ppo, LearnerKind::sac),
                         [](const auto& tested) { return std::string(learner_name(tested.param)); });

}  // namespace
}  // namespace imprint::agent::test
