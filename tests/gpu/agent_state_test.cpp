// Files, snapshots and eviction: equal bits with any budget.

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "compute/base/philox.h"
#include "compute/model/files/file.h"
#include "plugin/agent/learn/registry.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

class StateTest : public AgentSystemTest, public ::testing::WithParamInterface<LearnerKind> {
 protected:
  static BrainSpec small_spec() {
    BrainSpec spec;
    spec.observation.count = 4;
    spec.learner = GetParam();
    if (spec.learner == LearnerKind::sac)
      spec.action = {{}, 1};
    else
      spec.action.branch_sizes = {3};
    spec.goal_count = 2;
    spec.hidden_sizes = {8};
    spec.brain_count = 2;
    spec.learn_period_frames = 3;
    spec.batch_size = 8;
    spec.replay_capacity = 16;
    spec.snapshot_count = 2;
    spec.seed = 3;
    spec.target_period = 7;
    spec.epsilon = 0.1f;
    spec.trace_decay = 0.5f;
    spec.drift = 0.01f;
    spec.rollout_steps = 16;
    spec.epochs = 2;
    if (learner_of(spec).records_steps())
      spec.credit_delay_s = 0.05f, spec.credit_width_s = 0.05f;  // steps become samples soon
    return spec;
  }

  void start(const BrainSpec& spec) {
    brain = add(spec);
    ASSERT_TRUE(brain);
    agents_.clear();
    for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
      const auto agent = brain->agents().add(p);
      ASSERT_TRUE(agent.ok());
      agents_.push_back(*agent);
    }
  }

  // Which choice, or the bits of the number.
  static std::uint32_t deed(const Choice& choice) {
    return choice.branches.empty() ? std::bit_cast<std::uint32_t>(choice.continuous[0]) : choice.branches[0];
  }

  // Frames that depend only on their number and the answers: agents ask and act, and some praise or
  // demonstrate.
  std::vector<std::uint32_t> live(Brain& of, int frames) {
    std::vector<std::uint32_t> actions;
    for (int i = 0; i < frames; ++i, ++moment_) {
      pass([&] {
        for (const std::uint32_t agent : agents_) {
          float seen[4];
          for (std::uint32_t k = 0; k < 4; ++k)
            seen[k] = static_cast<float>(philox_uniform(moment_, k, agent, 7, 7));
          if (const auto answer = of.agents().act(agent); answer.ok()) {
            const Choice& choice = (*answer)->choice;
            actions.push_back(deed(choice));
            const bool good =
                choice.branches.empty() ? choice.continuous[0] > 0.3f : choice.branches[0] == moment_ % 3;
            const float value = good ? 1.0f : -0.5f;
            if (moment_ % 4 == agent)
              EXPECT_OK(of.agents().feedback(agent, {value, 1.0f, CreditKind::current, now()}));
          }
          if (moment_ % 10 == 0) EXPECT_OK(of.agents().set_goal(agent, moment_ / 10 % 2));
          if (moment_ % 25 == 3 && find_learner(GetParam())->takes_demonstrations()) {
            const std::uint32_t branches[] = {1};
            EXPECT_OK(of.agents().demonstrate(agent, {seen, 1, branches, {}, 2.0f}));
          }
          EXPECT_OK(of.agents().observe(agent, seen));
          if (moment_ % 20 == 11)
            EXPECT_OK(of.agents().end_episode(
                agent, moment_ % 40 == 11 ? EpisodeEnd::terminated : EpisodeEnd::truncated));
        }
      });
    }
    return actions;
  }

  // The choices of each brain's first agent, or its numbers in hundredths, without learning or exploration.
  std::vector<std::uint32_t> by_weights(Brain& of) {
    std::vector<std::uint32_t> chosen;
    const bool learns = of.spec().learner != LearnerKind::none;
    if (learns) EXPECT_OK(of.set_learning(false));
    for (int i = 0; i < 6; ++i) pass();  // the current step ends
    for (const std::uint32_t agent : agents_) EXPECT_OK(of.agents().set_mode(agent, Mode::inference));
    for (std::uint32_t look = 0; look < 40; ++look) {
      pass([&] {
        for (const std::uint32_t agent : agents_) {
          if (const auto answer = of.agents().act(agent); look > 3 && answer.ok()) {
            const Choice& choice = (*answer)->choice;
            chosen.push_back(choice.branches.empty()
                                 ? static_cast<std::uint32_t>(std::lround(100 * choice.continuous[0] + 100))
                                 : choice.branches[0]);
          }
          float seen[4];
          for (std::uint32_t k = 0; k < 4; ++k)
            seen[k] = static_cast<float>(8 * philox_uniform(look, k, 0, 5, 5) - 4);
          EXPECT_OK(of.agents().set_goal(agent, look % 2));
          EXPECT_OK(of.agents().observe(agent, seen));
        }
      });
    }
    for (const std::uint32_t agent : agents_) EXPECT_OK(of.agents().set_mode(agent, Mode::learning));
    if (learns) EXPECT_OK(of.set_learning(true));
    return chosen;
  }

  // A new context and brain, as after quitting the game.
  void restart(const BrainSpec& spec, const bridge::Budget& budget = {}) {
    agents_.clear();
    open(budget);
    start(spec);
  }

  std::string path(const char* name) { return ::testing::TempDir() + "imprint-" + name; }

  std::vector<std::uint32_t> agents_;
  std::uint32_t moment_ = 0;
};

TEST_P(StateTest, EqualGamesGiveEqualBitsWithAnyBudget) {
  const bridge::Budget budgets[] = {{500, 1000}, {1, 100}, {100, 100}, {1000000, 0}};
  std::vector<std::uint32_t> first_actions;
  std::vector<Hash128> first;
  for (const bridge::Budget& budget : budgets) {
    moment_ = 0;
    restart(small_spec(), budget);
    std::vector<std::uint32_t> actions = live(*brain, 193);
    std::vector<Hash128> hashes;
    for (int i = 0; i < 7; ++i) {  // also while a step has done more or less of its own work
      std::ranges::copy(live(*brain, 1), std::back_inserter(actions));
      hashes.push_back(hash(*brain));
    }
    if (&budget == budgets) {
      first = hashes;
      first_actions = actions;
      EXPECT_GT(brain->stats().counters.minibatches, 20u);
      continue;
    }
    EXPECT_EQ(actions, first_actions);
    EXPECT_EQ(hashes, first) << "budget " << budget.gpu_us_per_frame << " us, slices of "
                             << budget.max_slice_us << " us";
  }
}

TEST_P(StateTest, AnotherSeedIsAnotherBrain) {
  start(small_spec());
  const Hash128 one = hash(*brain);
  BrainSpec spec = small_spec();
  spec.seed = 4;
  restart(spec);
  EXPECT_NE(hash(*brain), one);
}

TEST_P(StateTest, ALoadedBrainContinuesBitEqual) {
  start(small_spec());
  live(*brain, 100);
  // Quitting loses open requests and credit. They end here, so that both runs continue from the same point.
  for (int i = 0; i < 3; ++i) {
    pass([&] {
      for (const std::uint32_t agent : agents_) (void)brain->agents().act(agent);
    });
  }
  for (const std::uint32_t agent : agents_)
    ASSERT_OK(brain->agents().end_episode(agent, EpisodeEnd::terminated));
  ASSERT_OK(brain->state().save(path("life.brain")));
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save_status());
  const Hash128 saved = hash(*brain);
  const std::uint32_t moment = moment_;

  const std::vector<std::uint32_t> actions = live(*brain, 90);
  const Hash128 end = hash(*brain);

  BrainSpec other = small_spec();
  other.seed = 999;  // the seed in the file applies
  restart(other);
  ASSERT_OK(brain->state().load(path("life.brain")));
  EXPECT_EQ(hash(*brain), saved);
  moment_ = moment;
  for (const std::uint32_t agent : agents_) ASSERT_OK(brain->agents().set_goal(agent, (moment - 1) / 10 % 2));
  EXPECT_EQ(live(*brain, 90), actions);
  EXPECT_EQ(hash(*brain), end);
}

TEST_P(StateTest, LoadingInTheMiddleOfAStepLeavesNoTrace) {
  start(small_spec());
  live(*brain, 40);
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save(path("middle.brain")));
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save_status());
  const Hash128 saved = hash(*brain);
  for (int extra = 1; extra <= 4; ++extra) {
    live(*brain, extra);  // somewhere between two boundaries
    ASSERT_OK(brain->state().load(path("middle.brain")));
    EXPECT_EQ(hash(*brain), saved);
    ASSERT_OK(brain->set_learning(false));
    for (int i = 0; i < 6; ++i) pass();
    EXPECT_EQ(hash(*brain), saved) << "a step of the previous brain wrote into the loaded one";
    ASSERT_OK(brain->set_learning(true));
  }
}

// Trained with one agent per brain; loaded for three agents that only infer, and for another learner. The
// SAC learner's weights hold deviations, and PQN's layers are normalised: they serve brains of their own
// only.
TEST_P(StateTest, WeightsServeBrainsOfOtherAgentsLearnersAndMemory) {
  start(small_spec());
  live(*brain, 120);
  const std::vector<std::uint32_t> trained = by_weights(*brain);
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save(path("trained.brain")));
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save_status());

  const bool of_its_own = GetParam() == LearnerKind::sac || GetParam() == LearnerKind::pqn;
  BrainSpec silent = small_spec();
  silent.learner = LearnerKind::none;
  if (of_its_own) {
    restart(silent);
    const Result<> refused = brain->state().load_weights(path("trained.brain"));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::shape_mismatch);
    silent.learner = GetParam();
    silent.replay_capacity = 8;
  }
  silent.agents_per_brain = 3;
  silent.seed = 999;
  restart(silent);
  const Result<> whole = brain->state().load(path("trained.brain"));
  ASSERT_FALSE(whole.ok());
  EXPECT_EQ(whole.error().code, ErrorCode::shape_mismatch);
  EXPECT_THAT(whole.error().message, ::testing::HasSubstr("take them by brain_load_weights"));
  EXPECT_NE(by_weights(*brain), trained);
  ASSERT_OK(brain->state().load_weights(path("trained.brain")));
  EXPECT_EQ(by_weights(*brain), trained);

  BrainSpec other = small_spec();
  if (!of_its_own) other.learner = LearnerKind::feedback;
  other.replay_capacity = 32;
  other.seed = 999;
  restart(other);
  live(*brain, 30);  // somewhere in a step
  ASSERT_OK(brain->state().load_weights(path("trained.brain")));
  EXPECT_EQ(by_weights(*brain), trained);
  const std::uint64_t learned = brain->stats().counters.minibatches;
  live(*brain, 60);
  EXPECT_GT(brain->stats().counters.minibatches, learned);

  const Hash128 before = hash(*brain);
  EXPECT_EQ(brain->state().load_weights(path("nowhere.brain")).error().code, ErrorCode::not_found);
  auto damaged = read_file(path("trained.brain"));
  ASSERT_TRUE(damaged.ok());
  (*damaged)[damaged->size() / 2] ^= std::byte{1};
  ASSERT_OK(write_file_atomic(path("damaged.brain"), *damaged));
  EXPECT_EQ(brain->state().load_weights(path("damaged.brain")).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(hash(*brain), before);
  other.observation.scale = {1, 1, 2, 1};  // of equal shape, but with another meaning
  restart(other);
  EXPECT_EQ(brain->state().load_weights(path("trained.brain")).error().code, ErrorCode::shape_mismatch);
}

TEST_P(StateTest, DamagedFilesAreRefusedAndTheBrainRunsOn) {
  start(small_spec());
  live(*brain, 30);
  ASSERT_OK(brain->state().save(path("whole.brain")));
  ASSERT_OK(system->drain(10000));
  ASSERT_OK(brain->state().save_status());
  const auto whole = read_file(path("whole.brain"));
  ASSERT_TRUE(whole.ok());
  live(*brain, 30);
  const Hash128 before = hash(*brain);
  const std::string damaged = path("damaged.brain");
  const auto expect_refused = [&](std::span<const std::byte> bytes, const std::string& what) {
    ASSERT_OK(write_file_atomic(damaged, bytes));
    const Result<> loaded = brain->state().load(damaged);
    ASSERT_FALSE(loaded.ok()) << what;
    ASSERT_EQ(loaded.error().code, ErrorCode::corrupt_file) << what << ": " << loaded.error().message;
  };
  for (std::size_t size = 0; size < whole->size(); size += 1 + size / 16)
    expect_refused(std::span(*whole).first(size), "cut at " + std::to_string(size));
  std::vector<std::byte> flipped = *whole;
  for (std::size_t at = 0; at < flipped.size(); at += 1 + at / 16) {
    flipped[at] ^= std::byte{4};
    expect_refused(flipped, "byte " + std::to_string(at));
    flipped[at] ^= std::byte{4};
  }
  EXPECT_EQ(brain->state().load(path("nowhere.brain")).error().code, ErrorCode::not_found);
  EXPECT_EQ(hash(*brain), before);
  live(*brain, 10);

  BrainSpec other = small_spec();
  other.hidden_sizes = {9};
  restart(other);
  EXPECT_EQ(brain->state().load(path("whole.brain")).error().code, ErrorCode::shape_mismatch);
}

TEST_P(StateTest, SavesDuringPlayAndNamesFailures) {
  start(small_spec());
  EXPECT_EQ(brain->state().save_status().error().code, ErrorCode::not_found);
  pass([&] { EXPECT_OK(brain->state().save("/nowhere/at/all.brain")); });
  EXPECT_EQ(brain->state().save(path("second.brain")).error().code, ErrorCode::wrong_state)
      << "one at a time";
  EXPECT_EQ(brain->state().load(path("whole.brain")).error().code, ErrorCode::wrong_state);
  ASSERT_OK(system->drain(10000));
  EXPECT_EQ(brain->state().save_status().error().code, ErrorCode::io);
  EXPECT_EQ(brain->state().save_status().error().message,
            "cannot write '/nowhere/at/all.brain': there is no folder '/nowhere/at'");
  ASSERT_OK(brain->state().save(path("second.brain")));
  live(*brain, 3);
  EXPECT_OK(saved(*brain));
}

TEST_P(StateTest, PollingASaveWithoutFramesGivesOneHint) {
  start(small_spec());
  live(*brain, 3);
  ASSERT_OK(brain->state().save(path("polled.brain")));
  for (int i = 0; i < 99; ++i) EXPECT_EQ(brain->state().save_status().error().code, ErrorCode::not_ready);
  EXPECT_TRUE(messages.texts.empty());
  for (int i = 0; i < 300; ++i) (void)brain->state().save_status();
  ASSERT_EQ(messages.texts.size(), 1u);
  EXPECT_THAT(messages.texts.front(), ::testing::HasSubstr("Run frames, or call context_drain"));
  messages.texts.clear();
  EXPECT_OK(saved(*brain));
}

// Saved in a frame, in the middle of a learn step, with feedback after the call: the file holds the state at
// the next boundary, without that feedback.
TEST_P(StateTest, ASaveInAFrameHoldsTheNextBoundary) {
  start(small_spec());
  live(*brain, 40);
  pass([&] {
    EXPECT_OK(brain->state().save(path("boundary.brain")));
    EXPECT_OK(brain->set_learning(false));
  });
  ASSERT_OK(saved(*brain));
  for (int i = 0; i < 4; ++i) pass();
  const Hash128 boundary = hash(*brain);
  restart(small_spec());
  ASSERT_OK(brain->state().load(path("boundary.brain")));
  EXPECT_EQ(hash(*brain), boundary);
}

TEST_P(StateTest, UndoBringsBackTheBits) {
  start(small_spec());
  live(*brain, 50);
  ASSERT_OK(system->drain(10000));
  const Hash128 before = hash(*brain);
  const auto first = brain->state().snapshot();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(brain->stats().snapshots, 1u);
  live(*brain, 60);
  EXPECT_NE(hash(*brain), before);
  ASSERT_OK(brain->state().restore(*first));
  ASSERT_OK(system->drain(10000));
  EXPECT_EQ(hash(*brain), before);
  // Again, from inside a frame: restored at the next boundary, and the same frames follow both times.
  std::vector<std::vector<std::uint32_t>> lives;
  std::vector<Hash128> ends;
  for (int run = 0; run < 2; ++run) {
    pass([&] { EXPECT_OK(brain->state().restore(*first)); });
    for (int i = 0; i < 4; ++i) pass();
    ASSERT_OK(system->drain(10000));
    moment_ = 500;
    ASSERT_OK(brain->set_learning(true));
    live(*brain, find_learner(GetParam())->collects_rollouts() ? 40 : 5);
    ends.push_back(hash(*brain));
  }
  EXPECT_NE(ends[0], before);
}

TEST_P(StateTest, TheBestStateComesBackBesideTheSnapshots) {
  if (GetParam() == LearnerKind::es) return;  // a kennel has no best state
  BrainSpec spec = small_spec();
  spec.snapshot_count = 0;
  spec.fall_back = true;
  spec.brain_count = 1;
  start(spec);
  EXPECT_FALSE(brain->state().has_best());
  live(*brain, 50);
  ASSERT_OK(system->drain(10000));
  const Hash128 before = hash(*brain);
  brain->state().keep_best();
  live(*brain, 60);
  ASSERT_OK(system->drain(10000));
  EXPECT_NE(hash(*brain), before);
  ASSERT_TRUE(brain->state().has_best());
  brain->state().restore_best();
  ASSERT_OK(system->drain(10000));
  EXPECT_EQ(hash(*brain), before);
  EXPECT_EQ(brain->stats().snapshots, 0u);
}

TEST_P(StateTest, TheOldestSnapshotGivesWay) {
  start(small_spec());
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    const auto id = brain->state().snapshot();
    ASSERT_TRUE(id.ok());
    ids.push_back(*id);
    live(*brain, 4);
  }
  EXPECT_EQ(brain->stats().snapshots, 2u);
  const Result<> gone = brain->state().restore(ids[0]);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::not_found);
  EXPECT_THAT(gone.error().message, ::testing::HasSubstr(std::to_string(ids[2])));
  EXPECT_OK(brain->state().restore(ids[1]));
  EXPECT_OK(brain->state().restore(ids[2]));
  live(*brain, 4);
  BrainSpec none = small_spec();
  none.snapshot_count = 0;
  restart(none);
  EXPECT_EQ(brain->state().snapshot().error().code, ErrorCode::unsupported);
}

// Requests of one frame: keep A, restore B, save. Each applies after those before it.
TEST_P(StateTest, RequestsAtABoundaryKeepTheirOrder) {
  start(small_spec());
  live(*brain, 30);
  ASSERT_OK(system->drain(10000));
  const Hash128 early = hash(*brain);
  const auto a = brain->state().snapshot();
  ASSERT_TRUE(a.ok());
  live(*brain, 30);
  pass([&] {
    EXPECT_OK(brain->state().save(path("order.brain")));
    EXPECT_OK(brain->state().restore(*a));
  });
  for (int i = 0; i < 8; ++i) pass();
  ASSERT_OK(brain->set_learning(false));
  for (int i = 0; i < 4; ++i) pass();
  ASSERT_OK(saved(*brain));
  ASSERT_OK(brain->state().restore(*a));
  ASSERT_OK(system->drain(10000));
  EXPECT_EQ(hash(*brain), early);
  ASSERT_OK(brain->state().load(path("order.brain")));
  EXPECT_NE(hash(*brain), early) << "the save came before the restore, and holds the later brain";
}

// With and without a replay memory to evict.
TEST_P(StateTest, LearningLeavesTheDeviceAndComesBack) {
  start(small_spec());
  live(*brain, 5);
  if (!system->context().vulkan()) {  // the CPU has no memory cap: learning never pauses
    const std::uint64_t minibatches = brain->stats().counters.minibatches;
    system->set_memory_cap(1);
    live(*brain, 60);
    EXPECT_EQ(brain->state().evicted_bytes(), 0u);
    EXPECT_GT(brain->stats().counters.minibatches, minibatches);
    return;
  }
  const auto pass_until = [&](bool away) {
    system->set_memory_cap(away ? 1 : std::uint64_t{1} << 40);
    for (int i = 0; i < 400 && (brain->state().evicted_bytes() > 0) != away; ++i) {
      pass();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(brain->state().evicted_bytes() > 0, away);
  };
  pass_until(true);
  ASSERT_FALSE(messages.texts.empty());
  EXPECT_THAT(messages.texts.front(), ::testing::HasSubstr("learning pauses"));
  messages.texts.clear();
  const std::uint64_t minibatches = brain->stats().counters.minibatches;
  pass_until(false);
  live(*brain, 60);
  EXPECT_GT(brain->stats().counters.minibatches, minibatches);
  EXPECT_EQ(brain->stats().stopped_brains, 0u);
}

TEST_P(StateTest, BusyBrainsMayBeDestroyed) {
  start(small_spec());
  for (int i = 0; i < 5; ++i) {
    live(*brain, 7);
    ASSERT_OK(brain->state().save(path("busy.brain")));
    ++frame;
    ASSERT_OK(system->frame_begin({frame, 0}, now()));
    ASSERT_OK(brain->agents().observe(agents_[0], std::array<float, 4>{}));
    ASSERT_OK(system->submit(UINT32_MAX));
    ASSERT_OK(system->frame_end());
    system->remove_brain(brain);
    const Result<> save = brain->state().save_status();
    ASSERT_FALSE(save.ok());
    EXPECT_EQ(save.error().code, ErrorCode::wrong_state);
    ASSERT_EQ(messages.texts.size(), 1u) << "the save is cancelled, the only report";
    EXPECT_THAT(messages.texts.front(), ::testing::HasSubstr("destroyed before"));
    messages.texts.clear();
    start(small_spec());
  }
}

// The agent system is destroyed first, during a save.
TEST_P(StateTest, TheAgentSystemMayGoBeforeItsSaves) {
  start(small_spec());
  live(*brain, 7);
  ASSERT_OK(brain->state().save(path("late.brain")));
  ++frame;
  ASSERT_OK(system->frame_begin({frame, 0}, now()));
  ASSERT_OK(system->submit(UINT32_MAX));
  ASSERT_OK(system->frame_end());
  brain.reset();
  system.reset();
  ASSERT_EQ(messages.texts.size(), 1u);
  EXPECT_THAT(messages.texts.front(), ::testing::HasSubstr("destroyed before"));
  messages.texts.clear();
}

TEST_P(StateTest, AFrameTakesNoMemoryForASave) {
  const auto made = system->add_brain(small_spec());
  ASSERT_TRUE(made.ok());
  const Result<> cold = [&] {
    ++frame;
    EXPECT_OK(system->frame_begin({frame, 0}, now()));
    const Result<> status = (*made)->state().save(path("cold.brain"));
    EXPECT_OK(system->frame_end());
    return status;
  }();
  ASSERT_FALSE(cold.ok());
  EXPECT_EQ(cold.error().code, ErrorCode::wrong_state);
  EXPECT_THAT(cold.error().message, ::testing::HasSubstr("warmup"));
  EXPECT_OK((*made)->state().save(path("cold.brain")));
  ASSERT_OK(system->drain(10000));
  EXPECT_OK((*made)->state().save_status());
}

// Cloning learns from demonstrations alone, which these games have not.
std::vector<LearnerKind> learners_of_signals() {
  std::vector<LearnerKind> found;
  for (int number = 1; number <= static_cast<int>(kLastLearner); ++number)
    if (const auto learner = static_cast<LearnerKind>(number); learner != LearnerKind::cloning)
      found.push_back(learner);
  return found;
}
INSTANTIATE_TEST_SUITE_P(Every, StateTest, ::testing::ValuesIn(learners_of_signals()),
                         [](const auto& learner) { return learner_name(learner.param); });

}  // namespace
}  // namespace imprint::agent::test
