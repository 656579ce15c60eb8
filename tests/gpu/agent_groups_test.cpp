// Groups: what a critic sees, what an agent that left is worth, and equal bits with any budget.

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "compute/base/philox.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

class Groups : public AgentSystemTest {
 protected:
  static BrainSpec small_spec() {
    BrainSpec spec;
    spec.observation.count = 2;
    spec.action.branch_sizes = {3};
    spec.hidden_sizes = {8};
    spec.learner = LearnerKind::ppo;
    spec.agents_per_brain = 4;
    spec.rollout_steps = 16;
    spec.batch_size = 8;
    spec.epochs = 1;
    spec.learn_period_frames = 2;
    spec.action_latency_frames = 1;
    spec.group_size = 3;
    return spec;
  }
  void start(const BrainSpec& spec, const bridge::Budget& budget = {}) {
    open(budget);
    brain = add(spec);
    ASSERT_TRUE(brain);
    for (std::uint32_t i = 0; i < spec.agents_per_brain; ++i) {
      ASSERT_EQ(brain->agents().add(0).value(), i);
      if (i < 3) ASSERT_OK(brain->agents().set_group(i, 7));
    }
  }
  static std::array<float, 2> seen(std::uint32_t agent, std::uint32_t moment) {
    return {static_cast<float>(agent + 1), static_cast<float>(moment)};
  }
  void look(std::initializer_list<std::uint32_t> agents, std::uint32_t moment) {
    for (const std::uint32_t agent : agents) EXPECT_OK(brain->agents().observe(agent, seen(agent, moment)));
  }
  void act(std::initializer_list<std::uint32_t> agents) {
    for (const std::uint32_t agent : agents) EXPECT_OK(brain->agents().act(agent));
  }
  // A part of the sample that waits at this place.
  std::vector<float> waiting(std::uint32_t index, std::uint32_t SampleLayout::*part, std::size_t count) {
    const SampleQueue& queue = state_of().waiting;
    const SampleLayout layout = learner_of(brain->spec()).layout(brain->spec());
    const std::span<const float> row = queue.row(0, index).subspan(layout.*part, count);
    return {row.begin(), row.end()};
  }
  const ReplayState& state_of() { return brain->agents().learning()->training().replay(); }
};

TEST_F(Groups, TheCriticSeesAllAndWhatIsLeft) {
  BrainSpec spec = small_spec();
  spec.rollout_steps = spec.batch_size = 64;  // samples wait
  start(spec);
  pass([&] { look({0, 1, 2, 3}, 1); });
  pass([&] {
    act({0, 1, 2, 3});
    EXPECT_OK(brain->agents().group_reward(1, 2));
    EXPECT_OK(brain->agents().end_episode(2, EpisodeEnd::terminated));  // leaves the other two
    look({0, 1, 3}, 2);
  });
  pass([&] {
    act({0, 1, 3});
    EXPECT_OK(brain->agents().end_group_episode(0, EpisodeEnd::terminated));
    EXPECT_OK(brain->agents().end_episode(3, EpisodeEnd::terminated));
  });
  pass();
  using Layout = SampleLayout;
  // In the order in which steps are settled: 2 when it left, the first of 0, 1 and 3, then the second of 0,
  // 1 and 3 at their ends.
  ASSERT_EQ(state_of().waiting.size(0), 7u);
  const auto group = [&](std::uint32_t i) { return waiting(i, &Layout::group, 7); };
  const auto next = [&](std::uint32_t i) { return waiting(i, &Layout::next_group, 7); };
  const auto one = [&](std::uint32_t i, std::uint32_t Layout::*part) { return waiting(i, part, 1)[0]; };
  std::map<std::pair<float, float>, std::uint32_t> row;  // by agent + 1 and moment
  for (std::uint32_t i = 0; i < 7; ++i) {
    const std::vector<float> own = waiting(i, &Layout::observation, 2);
    row[{own[0], own[1]}] = i;
  }
  const std::vector<float> all = {3, 1, 1, 2, 1, 3, 1}, left = {2, 1, 1, 2, 1, 0, 0},
                           later = {2, 1, 2, 2, 2, 0, 0}, alone = {1, 4, 1, 0, 0, 0, 0}, none(7, 0.0f);
  const std::uint32_t leaver = row.at({3, 1}), first = row.at({1, 1}), last = row.at({2, 2}),
                      other = row.at({4, 1});
  EXPECT_EQ(group(leaver), all);
  EXPECT_EQ(next(leaver), left) << "the others, as they were last seen";
  EXPECT_EQ(one(leaver, &Layout::continues), 1) << "what it did is worth what they reach";
  EXPECT_EQ(one(leaver, &Layout::reward), 2) << "of the group";
  EXPECT_EQ(group(first), all);
  EXPECT_EQ(next(first), later);
  EXPECT_EQ(one(first, &Layout::reward), 2);
  EXPECT_EQ(group(last), later);
  EXPECT_EQ(next(last), none);
  EXPECT_EQ(one(last, &Layout::continues), 0) << "the group's episode is over";
  EXPECT_EQ(group(other), alone) << "in no group";
  EXPECT_EQ(one(other, &Layout::reward), 0);
}

TEST_F(Groups, EqualGamesGiveEqualBitsWithAnyBudget) {
  std::vector<Hash128> first;
  for (const bridge::Budget& budget : {bridge::Budget{500, 1000}, bridge::Budget{1, 100}}) {
    start(small_spec(), budget);
    for (std::uint32_t moment = 0; moment < 90; ++moment)
      pass([&] {
        for (std::uint32_t agent = 0; agent < 4; ++agent) {
          if (brain->agents().act(agent).ok() && moment % 3 == agent)
            EXPECT_OK(brain->agents().group_reward(agent, 1));
          if (moment % 7 == agent) EXPECT_OK(brain->agents().end_episode(agent, EpisodeEnd::terminated));
          EXPECT_OK(brain->agents().observe(
              agent, std::array<float, 2>{static_cast<float>(philox_uniform(moment, agent, 1, 2, 3)), 0.5f}));
        }
        if (moment % 20 == 9) EXPECT_OK(brain->agents().end_group_episode(0, EpisodeEnd::truncated));
      });
    ASSERT_OK(system->drain(10000));
    const std::vector<Hash128> found = {hash(*brain)};
    if (first.empty()) first = found;
    EXPECT_EQ(found, first);
    EXPECT_GT(brain->stats().counters.minibatches, 8u);
    EXPECT_EQ(brain->stats().stopped_brains, 0u);
  }
}

TEST_F(Groups, MistakesAreNamed) {
  start(small_spec());
  const auto full = brain->agents().set_group(3, 7);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().message, ::testing::HasSubstr("group 7: found 3 agents in it, expected fewer"));
  EXPECT_OK(brain->agents().set_group(2, 0));
  EXPECT_OK(brain->agents().set_group(3, 7));
  EXPECT_EQ(brain->agents().group_reward(0, std::numeric_limits<float>::infinity()).error().code,
            ErrorCode::invalid_argument);
  BrainSpec none = small_spec();
  none.group_size = 0;
  open({});
  brain = add(none);
  const std::uint32_t agent = brain->agents().add(0).value();
  EXPECT_OK(brain->agents().set_group(agent, 0));
  EXPECT_EQ(brain->agents().set_group(agent, 1).error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->agents().group_reward(agent, 1).error().code, ErrorCode::unsupported);
  EXPECT_EQ(brain->agents().end_group_episode(agent, EpisodeEnd::terminated).error().code,
            ErrorCode::unsupported);
  for (const auto& change :
       std::vector<std::function<void(BrainSpec&)>>{[](BrainSpec& spec) { spec.learner = LearnerKind::dqn; },
                                                    [](BrainSpec& spec) { spec.cell = Cell::gru; },
                                                    [](BrainSpec& spec) { spec.curiosity_strength = 1; }}) {
    BrainSpec bad = small_spec();
    change(bad);
    const auto made = system->add_brain(bad);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_THAT(made.error().message, ::testing::HasSubstr("imp_group_options"));
  }
}

}  // namespace
}  // namespace imprint::agent::test
