// Experience of actors in other processes: samples as bytes, and back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/training/sent_experience.h"
#include "plugin/agent/validate.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using ::testing::HasSubstr;

BrainSpec sent_spec(LearnerKind learner) {
  BrainSpec spec = oracle::pet_spec(2);
  spec.learner = learner;
  spec.agents_per_brain = 3;
  spec.rollout_steps = spec.batch_size = 8;
  spec.replay_capacity = 64;
  return spec;
}

SampleQueue queue_of(const BrainSpec& spec) { return ReplayState::empty(spec).waiting; }

void add_row(const BrainSpec& spec, SampleQueue& queue, std::uint32_t agent, float first) {
  const SampleLayout layout = learner_of(spec).layout(spec);
  const std::span<float> row = queue.push(agent / spec.agents_per_brain, {.agent = agent});
  std::ranges::fill(row, 0.0f);
  row[layout.observation] = first;
  row[layout.goal] = 1;
  row[layout.branches] = 3;
}

std::vector<std::byte> sent(const BrainSpec& spec, SampleQueue& queue) {
  std::vector<std::byte> bytes(waiting_bytes(spec, queue));
  take_waiting(spec, queue, bytes);
  return bytes;
}

TEST(SentExperience, ArrivesRowByRowAndTellsActorsApart) {
  const BrainSpec spec = sent_spec(LearnerKind::ppo);
  SampleQueue actor = queue_of(spec), learner = queue_of(spec);
  add_row(spec, actor, 4, 1.5f);
  add_row(spec, actor, 0, 2.5f);
  add_row(spec, actor, 4, 3.5f);
  const std::vector<std::byte> bytes = sent(spec, actor);
  EXPECT_TRUE(actor.empty());
  for (const std::uint32_t source : {0u, 2u}) {
    const auto taken = put_waiting(spec, learner, source, bytes);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_EQ(**taken, 3u);
  }
  ASSERT_EQ(learner.size(0), 2u);
  ASSERT_EQ(learner.size(1), 4u);
  EXPECT_EQ(learner.copy(1, 0).agent, 4u);
  EXPECT_EQ(learner.copy(1, 2).agent, 2 * 6 + 4u) << "the same agent of another process";
  EXPECT_FALSE(learner.copy(1, 0).any());
  const SampleLayout layout = learner_of(spec).layout(spec);
  EXPECT_EQ(learner.row(1, 0)[layout.observation], 1.5f);
  EXPECT_EQ(learner.row(1, 1)[layout.observation], 3.5f);
  EXPECT_EQ(learner.row(0, 1)[layout.observation], 2.5f);
  EXPECT_EQ(learner.row(0, 1)[layout.branches], 3);
}

TEST(SentExperience, WaitsWhereALearnStepIsThere) {
  const BrainSpec spec = sent_spec(LearnerKind::ppo);
  SampleQueue actor = queue_of(spec), learner = queue_of(spec);
  for (std::uint32_t i = 0; i < spec.rollout_steps; ++i) add_row(spec, actor, 0, 0);
  const std::vector<std::byte> bytes = sent(spec, actor);
  EXPECT_TRUE(put_waiting(spec, learner, 0, bytes)->has_value());
  EXPECT_FALSE(put_waiting(spec, learner, 0, bytes)->has_value());
  EXPECT_EQ(learner.size(0), spec.rollout_steps);
  EXPECT_EQ(learner.dropped(), 0u);
}

// A fast actor's message holds more than the queue of a game that learns by itself.
TEST(SentExperience, NoneOfALongMessageIsDropped) {
  const BrainSpec spec = sent_spec(LearnerKind::dqn);
  SampleQueue actor = queue_of(spec), learner = queue_of(spec);
  add_row(spec, actor, 0, 0);
  std::vector<std::byte> bytes = sent(spec, actor), message;
  const std::uint32_t count = 3 * waiting_capacity(spec) + 1;
  for (std::uint32_t i = 0; i < count; ++i) message.insert(message.end(), bytes.begin(), bytes.end());
  EXPECT_EQ(**put_waiting(spec, learner, 0, message), count);
  EXPECT_EQ(learner.size(0), count);
  EXPECT_EQ(learner.dropped(), 0u);
}

TEST(SentExperience, ThatIsDamagedIsRefusedWhole) {
  const BrainSpec spec = sent_spec(LearnerKind::dqn);
  const SampleLayout layout = learner_of(spec).layout(spec);
  const auto refusal = [&](const auto& damage) {
    SampleQueue actor = queue_of(spec), learner = queue_of(spec);
    add_row(spec, actor, 1, 0);
    add_row(spec, actor, 2, 0);
    std::vector<std::byte> bytes = sent(spec, actor);
    damage(bytes);
    const auto taken = put_waiting(spec, learner, 0, bytes);
    EXPECT_TRUE(learner.empty());
    return taken.ok() ? std::string() : taken.error().message;
  };
  const auto column = [&](std::uint32_t of, float value) {
    return [=](std::vector<std::byte>& bytes) {
      const std::size_t each = bytes.size() / 2;
      std::memcpy(bytes.data() + each + 8 + of * sizeof value, &value, sizeof value);
    };
  };
  EXPECT_THAT(refusal([](std::vector<std::byte>& bytes) { bytes.pop_back(); }),
              HasSubstr("same imp_brain_desc"));
  EXPECT_THAT(refusal(column(layout.reward, std::numeric_limits<float>::quiet_NaN())),
              HasSubstr("sample 1 of agent 2: number"));
  EXPECT_THAT(refusal(column(layout.goal, 2)), HasSubstr("goal: found 2, expected less than 2"));
  EXPECT_THAT(refusal(column(layout.branches, 4)), HasSubstr("branch 0: found 4, expected less than 4"));
  EXPECT_THAT(refusal(column(layout.branches, 0.5f)), HasSubstr("branch 0: found 0.5"));
  EXPECT_THAT(refusal([](std::vector<std::byte>& bytes) { bytes[0] = std::byte{2}; }),
              HasSubstr("brain: found 2"));
  EXPECT_THAT(refusal([](std::vector<std::byte>& bytes) { bytes[4] = std::byte{5}; }),
              HasSubstr("agent: found 5"));
}

TEST(SentExperience, LabelsAreCheckedToo) {
  const BrainSpec spec = sent_spec(LearnerKind::feedback);
  const SampleLayout layout = learner_of(spec).layout(spec);
  const auto taken = [&](std::uint32_t column, float value) {
    SampleQueue actor = queue_of(spec), learner = queue_of(spec);
    const std::span<float> row = actor.push(0);
    std::ranges::fill(row, 0.0f);
    row[column] = value;
    const auto put = put_waiting(spec, learner, 0, sent(spec, actor));
    EXPECT_EQ(learner.empty(), !put.ok());
    return put.ok() ? std::string("taken") : put.error().message;
  };
  EXPECT_EQ(taken(layout.source, static_cast<float>(LabelSource::demonstration)), "taken");
  EXPECT_THAT(taken(layout.source, 3), HasSubstr("source: found 3, expected less than 3"));
  EXPECT_EQ(taken(layout.target, -1), "taken");
  EXPECT_THAT(taken(layout.target, 1.5f), HasSubstr("target: found 1.5, expected -1 to 1"));
  EXPECT_EQ(taken(layout.weight, 2), "taken");
  EXPECT_THAT(taken(layout.weight, -1), HasSubstr("weight: found -1, expected 0 or more"));
}

TEST(SentExperience, IsForSamplesThatAnyProcessCanLearnFrom) {
  for (const LearnerKind learner : {LearnerKind::ppo, LearnerKind::feedback, LearnerKind::cloning}) {
    BrainSpec spec = sent_spec(learner);
    spec.receives_experience = true;
    EXPECT_TRUE(validate(spec).ok()) << validate(spec).error().message;
  }
  BrainSpec spec = sent_spec(LearnerKind::coach);
  spec.sends_experience = true;
  EXPECT_THAT(validate(spec).error().message,
              HasSubstr("found the coach learner, expected dqn, sac, ppo, feedback or cloning"));
  for (const LearnerKind learner : {LearnerKind::ppo, LearnerKind::cloning}) {
    spec = sent_spec(learner);
    spec.receives_experience = true;
    spec.cell = Cell::gru;
    spec.sequence_steps = 4;
    EXPECT_EQ(validate(spec).ok(), learner == LearnerKind::ppo);
  }
  EXPECT_THAT(validate(spec).error().message, HasSubstr("found cell gru with the cloning learner"));
}

}  // namespace
}  // namespace imprint::agent
