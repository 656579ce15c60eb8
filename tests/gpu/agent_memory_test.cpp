// Brains that remember: stacks of observations with every learner, and cells with a state per agent.

#include <gmock/gmock.h>

#include <array>
#include <deque>
#include <vector>

#include "compute/base/philox.h"
#include "plugin/agent/learn/registry.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

constexpr std::uint32_t kCount = 3, kStack = 3;

class MemoryTest : public AgentSystemTest {
 protected:
  static BrainSpec small_spec(LearnerKind learner) {
    BrainSpec spec;
    spec.observation.count = kCount;
    spec.observation.scale = {1, 0.5f, 2};
    spec.learner = learner;
    if (learner == LearnerKind::sac)
      spec.action = {{}, 1};
    else
      spec.action.branch_sizes = {3};
    spec.hidden_sizes = {6};
    spec.brain_count = 2;
    spec.agents_per_brain = 2;
    spec.learn_period_frames = 2;
    spec.batch_size = 8;
    spec.replay_capacity = 32;
    spec.rollout_steps = 16;
    spec.epochs = 2;
    spec.target_period = 5;
    spec.epsilon = 0.1f;
    spec.credit_delay_s = spec.credit_width_s = 0.02f;
    spec.snapshot_count = 1;
    spec.seed = 5;
    return spec;
  }
  static BrainSpec recurrent_spec(Cell cell) {
    BrainSpec spec = small_spec(LearnerKind::ppo);
    spec.cell = cell;
    spec.cell_size = 5;
    spec.sequence_steps = 4;
    return spec;
  }

  void start(const BrainSpec& spec, const bridge::Budget& budget = {}) {
    open(budget);
    brain = add(spec);
    ASSERT_TRUE(brain);
    agents_.clear();
    moment_ = 0;
    for (std::uint32_t p = 0; p < spec.brain_count; ++p)
      for (std::uint32_t a = 0; a < spec.agents_per_brain; ++a)
        agents_.push_back(brain->agents().add(p).value());
    stacks_.assign(agents_.size(), {});
  }

  static std::array<float, kCount> seen(std::uint32_t moment, std::uint32_t agent) {
    std::array<float, kCount> numbers{};
    for (std::uint32_t k = 0; k < kCount; ++k)
      numbers[k] = static_cast<float>(philox_uniform(moment, k, agent, 7, 7));
    return numbers;
  }

  // By hand: the newest kStack observations of the episode, zeros before.
  void observe(std::uint32_t agent, bool by_hand) {
    const std::array<float, kCount> newest = seen(moment_, agent);
    if (!by_hand) return (void)must(brain->agents().observe(agents_[agent], newest));
    std::deque<float>& stack = stacks_[agent];
    stack.insert(stack.end(), newest.begin(), newest.end());
    while (stack.size() > kStack * kCount) stack.pop_front();
    std::vector<float> all(kStack * kCount - stack.size(), 0.0f);
    all.insert(all.end(), stack.begin(), stack.end());
    must(brain->agents().observe(agents_[agent], all));
  }

  // A game that depends only on the frame and the answers. All values that agents saw.
  std::vector<float> live(int frames, bool by_hand = false) {
    std::vector<float> values;
    for (int i = 0; i < frames; ++i, ++moment_)
      pass([&] {
        for (std::uint32_t agent = 0; agent < agents_.size(); ++agent) {
          Agents& all = brain->agents();
          if (const auto answer = all.act(agents_[agent]); answer.ok()) {
            values.insert(values.end(), (*answer)->values.begin(), (*answer)->values.end());
            if (brain->spec().learner == LearnerKind::cloning) {
              must(all.demonstrate(agents_[agent], {stacked(agent, by_hand), 0, kShown, {}, 1.0f}));
            } else if (moment_ % 2 == 0) {
              const float value =
                  (*answer)->choice.branches.empty() || (*answer)->choice.branches[0] == 1 ? 0.5f : -0.5f;
              must(all.feedback(agents_[agent], {value, 1.0f, CreditKind::current, now()}));
            }
          }
          observe(agent, by_hand);
          if ((moment_ + 3 * agent) % 13 != 5) continue;
          must(all.end_episode(agents_[agent],
                               moment_ % 2 == 0 ? EpisodeEnd::terminated : EpisodeEnd::truncated));
          stacks_[agent].clear();
        }
      });
    return values;
  }

  std::vector<float> stacked(std::uint32_t agent, bool) const {
    std::vector<float> shown(kStack * kCount, 0.25f);
    shown[0] = static_cast<float>(agent);
    return shown;
  }

  template <class T>
  static bool must(const Result<T>& result) {
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok();
  }

  // The values of one agent for each of these moments, the first of an episode first, without learning.
  std::vector<float> values_of(std::uint32_t agent, std::initializer_list<std::uint32_t> moments) {
    std::vector<float> values;
    must(brain->agents().end_episode(agents_[agent], EpisodeEnd::terminated));
    for (const std::uint32_t moment : moments) {
      pass([&] { must(brain->agents().observe(agents_[agent], seen(moment, 0))); });
      for (int wait = 0; wait < 3; ++wait)
        pass([&] {
          const auto answer = brain->agents().act(agents_[agent]);
          if (answer.ok() && (*answer)->is_new)
            values.insert(values.end(), (*answer)->values.begin(), (*answer)->values.end());
        });
    }
    return values;
  }

  static constexpr std::uint32_t kShown[] = {1};
  std::vector<std::uint32_t> agents_;
  std::vector<std::deque<float>> stacks_;
  std::uint32_t moment_ = 0;
};

// ---- stacks ----

class StackTest : public MemoryTest, public ::testing::WithParamInterface<LearnerKind> {};

// With the same weights, which a network of as many inputs begins with.
TEST_P(StackTest, IsTheSameAsStackingByHand) {
  BrainSpec by_hand = small_spec(GetParam());
  by_hand.observation = {.count = kStack * kCount, .scale = {1, 0.5f, 2, 1, 0.5f, 2, 1, 0.5f, 2}};
  start(by_hand);
  const Hash128 first = hash(*brain);
  const std::vector<float> expected = live(120, true);
  const Hash128 last = hash(*brain);
  EXPECT_NE(last, first) << "it learned";

  BrainSpec spec = small_spec(GetParam());
  spec.observation.stack = kStack;
  start(spec);
  EXPECT_EQ(hash(*brain), first);
  EXPECT_EQ(live(120), expected);
  EXPECT_EQ(hash(*brain), last);
}

INSTANTIATE_TEST_SUITE_P(Learners, StackTest,
                         ::testing::Values(LearnerKind::feedback, LearnerKind::cloning, LearnerKind::dqn,
                                           LearnerKind::coach, LearnerKind::ppo, LearnerKind::sac),
                         [](const auto& one) { return std::string(learner_name(one.param)); });

// ---- cells ----

class CellStateTest : public MemoryTest, public ::testing::WithParamInterface<Cell> {};

TEST_P(CellStateTest, IsTheAgentsOwnAndBeginsAgainWithAnEpisode) {
  start(recurrent_spec(GetParam()));
  ASSERT_OK(brain->set_learning(false));
  for (const std::uint32_t agent : agents_) ASSERT_OK(brain->agents().set_mode(agent, Mode::inference));
  const std::vector<float> once = values_of(0, {1, 2, 3});
  ASSERT_EQ(once.size(), 9u);
  EXPECT_EQ(values_of(0, {1, 2, 3}), once);
  const std::vector<float> other = values_of(0, {4, 2, 3});
  EXPECT_NE(std::vector(once.begin() + 6, once.end()), std::vector(other.begin() + 6, other.end()))
      << "the first observation is remembered";
  // Another agent of the brain sees something else in between.
  must(brain->agents().end_episode(agents_[0], EpisodeEnd::terminated));
  std::vector<float> apart;
  for (const std::uint32_t moment : {1u, 2u, 3u}) {
    pass([&] { must(brain->agents().observe(agents_[0], seen(moment, 0))); });
    pass([&] { must(brain->agents().observe(agents_[1], seen(moment + 9, 0))); });
    for (int wait = 0; wait < 3; ++wait)
      pass([&] {
        if (const auto answer = brain->agents().act(agents_[0]); answer.ok() && (*answer)->is_new)
          apart.insert(apart.end(), (*answer)->values.begin(), (*answer)->values.end());
      });
  }
  EXPECT_EQ(apart, once);
}

TEST_P(CellStateTest, LearnsToEqualBitsWithAnyBudgetAndGoesOnFromAFile) {
  std::vector<float> first;
  Hash128 begin{}, end{};
  for (const bridge::Budget& budget : {bridge::Budget{1000000, 0}, bridge::Budget{1, 100}}) {
    start(recurrent_spec(GetParam()), budget);
    if (first.empty()) begin = hash(*brain);
    const std::vector<float> values = live(90);
    if (first.empty()) {
      first = values;
      end = hash(*brain);
      EXPECT_NE(end, begin);
      EXPECT_GT(brain->stats().counters.minibatches, 4u);
    }
    EXPECT_EQ(values, first);
    EXPECT_EQ(hash(*brain), end);
  }
  const std::string path = ::testing::TempDir() + "imprint-remembers.brain";
  ASSERT_OK(brain->set_learning(false));
  for (int i = 0; i < 6; ++i) pass();
  for (const std::uint32_t agent : agents_) ASSERT_OK(brain->agents().set_mode(agent, Mode::inference));
  ASSERT_OK(brain->state().save(path));
  ASSERT_OK(saved(*brain));
  const std::vector<float> learned = values_of(3, {1, 2, 3});

  BrainSpec silent = recurrent_spec(GetParam());
  silent.learner = LearnerKind::none;
  silent.seed = 77;
  start(silent);
  ASSERT_OK(brain->state().load_weights(path));
  EXPECT_EQ(values_of(3, {1, 2, 3}), learned);
  silent.cell = GetParam() == Cell::gru ? Cell::lstm : Cell::gru;
  start(silent);
  EXPECT_EQ(brain->state().load_weights(path).error().code, ErrorCode::shape_mismatch);
  BrainSpec whole = recurrent_spec(GetParam());
  whole.seed = 78;
  start(whole);
  ASSERT_OK(brain->state().load(path));
  for (const std::uint32_t agent : agents_) ASSERT_OK(brain->agents().set_mode(agent, Mode::inference));
  EXPECT_EQ(values_of(3, {1, 2, 3}), learned);
}

INSTANTIATE_TEST_SUITE_P(Cells, CellStateTest, ::testing::Values(Cell::gru, Cell::lstm),
                         [](const auto& one) { return std::string(cell_name(one.param)); });

}  // namespace
}  // namespace imprint::agent::test
