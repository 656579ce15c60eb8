// Brains that see pictures, sets and ids: a kennel learns to equal bits with any budget and goes on from a
// file.

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "compute/base/philox.h"
#include "plugin/agent/learn/registry.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

class StreamsLearnTest : public AgentSystemTest, public ::testing::WithParamInterface<LearnerKind> {
 protected:
  static BrainSpec seeing_spec() {
    BrainSpec spec;
    spec.observation.streams = {
        {.kind = StreamKind::vector, .count = 2},
        {.kind = StreamKind::picture, .channels = 1, .height = 6, .width = 5, .size = 8},
        {.kind = StreamKind::entities, .count = 3, .features = 2, .size = 8},
        {.kind = StreamKind::ids, .count = 1, .vocabulary = 4, .size = 3},
    };
    spec.observation.count = 2 + 30 + 7 + 1;
    spec.learner = GetParam();
    if (GetParam() == LearnerKind::sac) {  // five networks with an encoder each: fewer streams
      spec.action.continuous_count = 1;
      spec.observation.streams.resize(2);
      spec.observation.count = 2 + 30;
    } else {
      spec.action.branch_sizes = {3};
    }
    spec.hidden_sizes = {8};
    spec.brain_count = 2;
    spec.learn_period_frames = 2;
    spec.batch_size = 8;
    spec.replay_capacity = 32;
    spec.rollout_steps = 16;
    spec.epochs = 2;
    spec.target_period = 5;
    spec.snapshot_count = 1;
    spec.seed = 5;
    return spec;
  }

  void start(const BrainSpec& spec, const bridge::Budget& budget = {}) {
    open(budget);
    brain = add(spec);
    ASSERT_TRUE(brain);
    moment_ = 0;
    for (std::uint32_t p = 0; p < 2; ++p) agents_[p] = brain->agents().add(p).value();
  }

  static std::vector<float> seen(std::uint32_t moment, std::uint32_t agent) {
    std::vector<float> numbers(40);
    for (std::uint32_t k = 0; k < 40; ++k)
      numbers[k] = static_cast<float>(philox_uniform(moment, k, agent, 7, 7));
    numbers[32] = static_cast<float>(moment % 4);
    numbers[39] = static_cast<float>((moment + agent) % 4);
    return numbers;
  }

  // All values that the agents saw.
  std::vector<float> live(int frames) {
    std::vector<float> values;
    for (int i = 0; i < frames; ++i, ++moment_)
      pass([&] {
        for (const std::uint32_t agent : agents_) {
          if (const auto answer = brain->agents().act(agent); answer.ok()) {
            values.insert(values.end(), (*answer)->values.begin(), (*answer)->values.end());
            if (brain->spec().learner != LearnerKind::none)
              EXPECT_OK(brain->agents().reward(agent, pay((*answer)->choice)));
          }
          const std::vector<float> numbers = seen(moment_, agent);
          EXPECT_OK(
              brain->agents().observe(agent, std::span(numbers).first(brain->spec().observation.count)));
        }
      });
    return values;
  }

  float pay(const Choice& choice) const {
    if (!choice.continuous.empty()) return -std::abs(choice.continuous[0] - 0.5f);
    return choice.branches[0] == moment_ % 3 ? 1.0f : -1.0f;
  }

  std::uint32_t agents_[2] = {};
  std::uint32_t moment_ = 0;
};

TEST_P(StreamsLearnTest, ToEqualBitsWithAnyBudgetAndGoesOnFromAFile) {
  std::vector<float> first;
  Hash128 end{};
  for (const bridge::Budget& budget : {bridge::Budget{1000000, 0}, bridge::Budget{1, 100}}) {
    start(seeing_spec(), budget);
    const Hash128 begin = hash(*brain);
    const std::vector<float> values = live(50);
    if (first.empty()) {
      first = values;
      end = hash(*brain);
      EXPECT_NE(end, begin);
      EXPECT_GT(brain->stats().counters.minibatches, 3u);
    }
    EXPECT_EQ(values, first);
    EXPECT_EQ(hash(*brain), end);
  }
  const std::string path = ::testing::TempDir() + "imprint-sees.brain";
  ASSERT_OK(brain->set_learning(false));
  for (int i = 0; i < 6; ++i) pass();
  ASSERT_OK(brain->state().save(path));
  ASSERT_OK(saved(*brain));
  for (const std::uint32_t agent : agents_) ASSERT_OK(brain->agents().set_mode(agent, Mode::inference));
  moment_ = 100;
  live(3);  // answers of before
  const std::vector<float> learned = live(5);

  BrainSpec silent = seeing_spec();
  if (GetParam() != LearnerKind::sac) silent.learner = LearnerKind::none;  // only its own act by its weights
  silent.seed = 77;
  start(silent);
  ASSERT_OK(brain->state().load_weights(path));
  for (const std::uint32_t agent : agents_) ASSERT_OK(brain->agents().set_mode(agent, Mode::inference));
  moment_ = 100;
  live(3);
  EXPECT_EQ(live(5), learned);
  std::swap(silent.observation.streams[1].height, silent.observation.streams[1].width);
  start(silent);
  EXPECT_EQ(brain->state().load_weights(path).error().code, ErrorCode::shape_mismatch);
}

class BytesLearnTest : public StreamsLearnTest {};

// The replay memory is two variables then: both are saved, and both leave the device and come back.
TEST_P(BytesLearnTest, PicturesLeaveTheDeviceWithTheNumbers) {
  BrainSpec spec = seeing_spec();
  spec.observation.streams.resize(2);  // numbers and a picture
  spec.observation.count = 2 + 30;
  spec.snapshot_count = 0;
  spec.pictures_as_bytes = true;
  start(spec);
  live(20);
  ASSERT_OK(brain->set_learning(false));
  for (int i = 0; i < 6; ++i) pass();
  const Hash128 learned = hash(*brain);
  const std::string path = ::testing::TempDir() + "imprint-bytes.brain";
  ASSERT_OK(brain->state().save(path));
  ASSERT_OK(saved(*brain));
  if (!system->context().vulkan()) return;  // the CPU has no memory cap
  constexpr std::uint64_t kRoom = std::uint64_t{1} << 40;
  for (const bool away : {true, false}) {
    system->set_memory_cap(away ? 1 : kRoom);
    for (int i = 0; i < 400 && (brain->state().evicted_bytes() > 0) != away; ++i) {
      pass();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(brain->state().evicted_bytes() > 0, away);
    system->set_memory_cap(kRoom);  // for the hash's readback
    EXPECT_EQ(hash(*brain), learned);
    EXPECT_OK(brain->state().load(path));  // while it is away: into host memory
    EXPECT_EQ(hash(*brain), learned);
  }
  messages.texts.clear();  // learning pauses
}

INSTANTIATE_TEST_SUITE_P(Learners, BytesLearnTest, ::testing::Values(LearnerKind::dqn),
                         [](const auto& one) { return std::string(learner_name(one.param)); });

INSTANTIATE_TEST_SUITE_P(Learners, StreamsLearnTest,
                         ::testing::Values(LearnerKind::dqn, LearnerKind::ppo, LearnerKind::sac,
                                           LearnerKind::bandit),
                         [](const auto& one) { return std::string(learner_name(one.param)); });

}  // namespace
}  // namespace imprint::agent::test
