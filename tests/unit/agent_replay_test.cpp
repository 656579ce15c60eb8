// The host's part of a brain: schema, waiting samples, saved files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "compute/base/hash.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/keep/schema.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "plugin/agent/validate.h"

namespace imprint::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

BrainSpec small_spec() {
  BrainSpec spec;
  spec.observation.count = 2;
  spec.action.branch_sizes = {3};
  spec.goal_count = 2;
  spec.hidden_sizes = {4};
  spec.brain_count = 2;
  spec.learner = LearnerKind::feedback;
  spec.replay_capacity = 5;
  spec.seed = 9;
  return spec;
}

// The PPO learner's choices divide by sizes that the host gives.
TEST(Schema, ChecksSizesBeforeItChooses) {
  BrainSpec base = small_spec();
  base.learner = LearnerKind::ppo;
  base.rollout_steps = base.batch_size = base.learn_period_frames = 0;
  ASSERT_TRUE(checked(base).ok()) << checked(base).error().message;
  const auto refusal = [&](std::uint32_t BrainSpec::*field, std::uint32_t value) {
    BrainSpec spec = base;
    spec.*field = value;
    const auto found = checked(spec);
    return found.ok() ? std::string("ok") : found.error().message;
  };
  EXPECT_THAT(refusal(&BrainSpec::decision_period_frames, 0), HasSubstr("decision_period_frames: found 0"));
  EXPECT_THAT(refusal(&BrainSpec::agents_per_brain, 0), HasSubstr("agents_per_brain: found 0"));
  EXPECT_THAT(refusal(&BrainSpec::sequence_steps, 0), HasSubstr("sequence_steps: found 0"));
  EXPECT_THAT(refusal(&BrainSpec::batch_size, UINT32_MAX), HasSubstr("found 4294967295"));
  EXPECT_THAT(refusal(&BrainSpec::rollout_steps, UINT32_MAX), HasSubstr("rollout_steps: found 4294967295"));
}

TEST(Schema, ChosenMinibatchesAreNotSmall) {
  BrainSpec spec = small_spec();
  spec.learner = LearnerKind::ppo;
  const auto chosen = [&](std::uint32_t rollout) {
    spec.rollout_steps = rollout;
    spec.batch_size = 0;
    return completed(spec).batch_size;
  };
  EXPECT_EQ(chosen(512), 64u);
  EXPECT_EQ(chosen(1000), 125u);
  EXPECT_EQ(chosen(500), 100u);
  EXPECT_EQ(chosen(509), 509u) << "a prime number";
  EXPECT_EQ(chosen(32), 32u);
}

// A file fits every brain of the same schema: its state has the same arrays.
TEST(Schema, TellsStatesApart) {
  struct Array {
    std::string name;
    Shape shape;
    bool operator==(const Array&) const = default;
  };
  const auto arrays_of = [](const BrainSpec& spec) {
    const Network network = Network::create(spec).value();
    std::vector<StateVariable> state = network.state();
    const LearnGraph graph = describe_learning(spec, network).value();
    state.insert(state.end(), graph.state.begin(), graph.state.end());
    std::vector<Array> arrays;
    for (const StateVariable& entry : state) arrays.push_back({entry.name, entry.variable.shape()});
    return arrays;
  };
  using Change = void (*)(BrainSpec&);
  constexpr Change kChanges[] = {
      [](BrainSpec& s) { s.learn_period_frames = 50; },
      [](BrainSpec& s) { s.batch_size = 4; },
      [](BrainSpec& s) { s.rate_half_life = 100; },
      [](BrainSpec& s) { s.follow_changes = false; },
      [](BrainSpec& s) { s.dueling = true; },
      [](BrainSpec& s) { s.double_estimate = true; },
      [](BrainSpec& s) { s.n_step = 1; },
      [](BrainSpec& s) { s.trace_decay = 0.5f; },
      [](BrainSpec& s) { s.rollout_steps = 32; },
      [](BrainSpec& s) { s.normalise_observations = true; },
      [](BrainSpec& s) { s.normalise_rewards = true; },
      [](BrainSpec& s) { s.rate_decisions = 1000; },
      [](BrainSpec& s) { s.slow_noise = true; },
      [](BrainSpec& s) { s.clip_values = true; },
      [](BrainSpec& s) { s.max_divergence = 0.03f; },
      [](BrainSpec& s) { s.thompson = false; },
      [](BrainSpec& s) { s.drift = 0.01f; },
      [](BrainSpec& s) { s.target_rate = 0.5f; },
      [](BrainSpec& s) { s.exploration = 0; },
      [](BrainSpec& s) { s.snapshot_count = 0; },
  };
  for (int number = 1; number <= static_cast<int>(kLastLearner); ++number) {
    const auto learner = static_cast<LearnerKind>(number);
    BrainSpec base = small_spec();
    base.learner = learner;
    base.rollout_steps = 16;
    base.batch_size = 8;
    if (learner == LearnerKind::sac) base.action = {{}, 1};
    for (std::size_t i = 0; i < std::size(kChanges); ++i) {
      BrainSpec other = base;
      kChanges[i](other);
      if (schema_hash(other) == schema_hash(base))
        EXPECT_EQ(arrays_of(other), arrays_of(base)) << learner_name(learner) << ", change " << i;
    }
  }
}

TEST(Schema, RefusesInvalidBrains) {
  const auto code_of = [](auto change) {
    BrainSpec spec = small_spec();
    change(spec);
    const Result<> status = validate(spec);
    return status.ok() ? std::string("ok") : std::string(error_code_name(status.error().code));
  };
  EXPECT_EQ(code_of([](BrainSpec&) {}), "ok");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.observation.count = 0; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.observation.scale = {1.0f}; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.observation.scale = {1.0f, std::nanf("")}; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.action.branch_sizes = {1}; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.action.branch_sizes = {3, 3}; }), "unsupported");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.action.branch_sizes = {}; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.goal_count = 0; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.goal_count = 1u << 20; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.hidden_sizes = {1u << 20, 1u << 20}; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.brain_count = 1u << 20, s.agents_per_brain = 2; }),
            "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.replay_capacity = 0; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.replay_capacity = 1u << 20, s.brain_count = 1u << 15; }),
            "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.learning_rate = std::numeric_limits<float>::infinity(); }),
            "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.credit_width_s = 0; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.learn_period_frames = 0; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.action_latency_frames = 65; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.decision_period_frames = 0; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.name = "caf\xC3\xA9 \xF0\x9F\x90\x95"; }), "ok");
  for (const char* name : {"\xE9", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"})
    EXPECT_EQ(code_of([=](BrainSpec& s) { s.name = name; }), "invalid_argument");
  EXPECT_EQ(code_of([](BrainSpec& s) { s.batch_size = 0, s.learner = LearnerKind::none; }), "ok")
      << "no learner uses it";
}

TEST(Schema, HashCoversThePropertiesOfASavedBrain) {
  const Hash128 base = schema_hash(small_spec());
  const auto changed = [&](auto change) {
    BrainSpec spec = small_spec();
    change(spec);
    return schema_hash(spec) != base;
  };
  EXPECT_TRUE(changed([](BrainSpec& s) { s.observation.count = 3; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.observation.scale = {1.0f, 2.0f}; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.goal_count = 3; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.action.branch_sizes = {4}; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.hidden_sizes = {4, 4}; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.activation = Activation::tanh; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.brain_count = 3; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.learner = LearnerKind::none; }));
  EXPECT_TRUE(changed([](BrainSpec& s) { s.replay_capacity = 6; }));
  EXPECT_FALSE(changed([](BrainSpec& s) { s.observation.scale = {1.0f, 1.0f}; }));
  EXPECT_FALSE(
      changed([](BrainSpec& s) { s.seed = 10, s.learning_rate = 1, s.name = "other", s.exploration = 0; }));
}

TEST(SampleQueue, KeepsOrderAndDropsTheOldest) {
  SampleQueue queue(2, 1, 3);
  for (int i = 0; i < 5; ++i) queue.push(1)[0] = static_cast<float>(i);
  EXPECT_EQ(queue.size(0), 0u);
  EXPECT_EQ(queue.size(1), 3u);
  EXPECT_EQ(queue.dropped(), 2u);
  EXPECT_EQ(queue.row(1, 0)[0], 2.0f);
  EXPECT_EQ(queue.row(1, 2)[0], 4.0f);
  queue.pop(1, 2);
  EXPECT_EQ(queue.row(1, 0)[0], 4.0f);
  queue.pop(1, 9);
  EXPECT_TRUE(queue.empty());
}

TEST(ReplayState, TakesAFewSamplesAStepAndOverwritesTheOldest) {
  const BrainSpec spec = small_spec();
  const std::uint32_t width = learner_of(spec).layout(spec).width, per_step = rows_per_step(spec);
  ASSERT_EQ(per_step, 5u) << "never more rows than the memory has: rows of one step are distinct";
  ReplayState state = ReplayState::empty(spec);
  for (int i = 0; i < 7; ++i) state.waiting.push(1)[0] = static_cast<float>(i + 1);
  std::vector<float> values(2 * per_step * width);
  std::vector<std::int32_t> rows(2 * per_step);
  take_samples(spec, state, {values, rows, {}, {}});
  EXPECT_THAT(rows, ElementsAre(-1, -1, -1, -1, -1, 5, 6, 7, 8, 9));
  EXPECT_EQ(values[per_step * width], 1.0f);
  EXPECT_THAT(state.filled, ElementsAre(0, 5));
  EXPECT_THAT(state.next, ElementsAre(0, 0));
  take_samples(spec, state, {values, rows, {}, {}});
  EXPECT_THAT(rows, ElementsAre(-1, -1, -1, -1, -1, 5, 6, -1, -1, -1));
  EXPECT_THAT(state.filled, ElementsAre(0, 5));
  EXPECT_THAT(state.next, ElementsAre(0, 2));
  EXPECT_EQ(state.sample_count(), 5u);
}

// ---- files ----

class SavedBrainTest : public ::testing::Test {
 protected:
  explicit SavedBrainTest(BrainSpec of = small_spec()) : spec(std::move(of)) {
    auto network = Network::create(spec);
    EXPECT_TRUE(network.ok());
    auto graph = describe_learning(spec, *network);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    variables = network->state();
    variables.insert(variables.end(), graph->state.begin(), graph->state.end());
    for (const StateVariable& entry : variables) {
      const SharedBytes& initial = entry.variable.state()->initial;
      state.emplace_back(initial.begin(), initial.end());
    }
    host.seed = 0xFEDCBA9876543210ull;
    host.counters = {1, 2, 3, 4, 5};
    host.draws = {11, 12};
    host.replay = ReplayState::empty(spec);
    host.replay.next = {0, 3};
    host.replay.filled = {0, 5};
    for (int i = 0; i < 3; ++i) host.replay.waiting.push(1)[0] = static_cast<float>(i);
  }

  std::vector<std::byte> encode() {
    std::vector<std::span<const std::byte>> bytes(state.begin(), state.end());
    auto file = encode_brain(spec, variables, host, bytes);
    EXPECT_TRUE(file.ok());
    return *file;
  }

  BrainSpec spec;
  std::vector<StateVariable> variables;
  std::vector<std::vector<std::byte>> state;
  HostState host;
};

TEST_F(SavedBrainTest, ComesBackAsItWas) {
  const auto loaded = decode_brain(encode(), spec, variables);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->state, state);
  EXPECT_EQ(loaded->host.seed, host.seed);
  EXPECT_EQ(loaded->host.counters.episodes, 5u);
  EXPECT_EQ(loaded->host.draws, host.draws);
  EXPECT_EQ(loaded->host.replay.next, host.replay.next);
  EXPECT_EQ(loaded->host.replay.filled, host.replay.filled);
  ASSERT_EQ(loaded->host.replay.waiting.size(1), 3u);
  EXPECT_EQ(loaded->host.replay.waiting.row(1, 2)[0], 2.0f);
  EXPECT_EQ(encode(), encode()) << "equal brains make equal files";
}

BrainSpec rollout_spec() {
  BrainSpec spec = small_spec();
  spec.learner = LearnerKind::ppo;
  spec.rollout_steps = 16;
  spec.batch_size = 8;
  return spec;
}

class SavedRolloutsTest : public SavedBrainTest {
 protected:
  SavedRolloutsTest() : SavedBrainTest(rollout_spec()) {}
};

// Exploration follows from them, so a loaded brain would act otherwise.
TEST_F(SavedRolloutsTest, NewsComeBack) {
  host.replay.sparsity[1] = {-0.5f, 700, 1};
  const auto loaded = decode_brain(encode(), spec, variables);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const RewardSparsity& sparsity = loaded->host.replay.sparsity[1];
  EXPECT_EQ(sparsity.reward, -0.5f);
  EXPECT_EQ(sparsity.steps, 700u);
  EXPECT_EQ(sparsity.count, 1u);
  EXPECT_TRUE(sparsity.is_sparse());
  EXPECT_EQ(loaded->host.replay.sparsity[0].steps, 0u);

  host.replay.sparsity[1].count = 701;
  const auto refused = decode_brain(encode(), spec, variables);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("waiting.sparsity: found 701, expected 0 to 700"));
}

TEST_F(SavedBrainTest, UnloadableBrainsAreNotWritten) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].variable.dtype() != DType::float32) continue;
    std::vector<std::vector<std::byte>> damaged = state;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(damaged[i].data() + damaged[i].size() - sizeof nan, &nan, sizeof nan);
    const std::vector<std::span<const std::byte>> bytes(damaged.begin(), damaged.end());
    const auto file = encode_brain(spec, variables, host, bytes);
    ASSERT_FALSE(file.ok()) << variables[i].name;
    EXPECT_EQ(file.error().code, ErrorCode::wrong_state);
    EXPECT_THAT(file.error().message, HasSubstr(variables[i].name + ": found nan, expected a finite number"));
  }
}

TEST_F(SavedBrainTest, EveryTruncationIsRefused) {
  const std::vector<std::byte> file = encode();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto loaded = decode_brain(std::span(file).first(size), spec, variables);
    ASSERT_FALSE(loaded.ok()) << size;
    ASSERT_EQ(loaded.error().code, ErrorCode::corrupt_file) << size;
  }
}

TEST_F(SavedBrainTest, EveryFlippedByteIsRefused) {
  std::vector<std::byte> file = encode();
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const std::byte flip : {std::byte{1}, std::byte{0x80}}) {
      file[at] ^= flip;
      const auto loaded = decode_brain(file, spec, variables);
      ASSERT_FALSE(loaded.ok()) << "byte " << at;
      ASSERT_EQ(loaded.error().code, ErrorCode::corrupt_file)
          << "byte " << at << ": " << loaded.error().message;
      file[at] ^= flip;
    }
  }
  file.push_back(std::byte{0});
  EXPECT_FALSE(decode_brain(file, spec, variables).ok()) << "stray bytes at the end";
}

TEST_F(SavedBrainTest, ABrainOfAnotherSchemaIsRefusedInWords) {
  const std::vector<std::byte> file = encode();
  BrainSpec other = spec;
  other.goal_count = 7;
  const auto loaded = decode_brain(file, other, variables);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::shape_mismatch);
  EXPECT_THAT(loaded.error().message, HasSubstr("2 goals"));
  EXPECT_THAT(loaded.error().message, HasSubstr("7 goals"));
}

TEST_F(SavedBrainTest, NumbersThatAreNotFiniteOrOutOfRangeAreRefused) {
  // No library writes such a file: NaN instead of a number, with valid hashes.
  const float marked = 1234.5f, nan = std::nanf("");
  std::memcpy(state[0].data(), &marked, sizeof marked);
  std::vector<std::byte> file = encode();
  const auto mark = std::as_bytes(std::span(&marked, 1));
  std::memcpy(std::to_address(std::ranges::search(file, mark).begin()), &nan, sizeof nan);
  constexpr std::size_t kHeader = 72, kBodyHash = 40, kHeaderHash = 56;
  for (const auto& [at, begin, end] :
       {std::array{kBodyHash, kHeader, file.size()}, std::array{kHeaderHash, std::size_t{0}, kHeaderHash}}) {
    const Hash128 hash = Hasher().bytes(std::span(file).subspan(begin, end - begin)).digest();
    std::memcpy(file.data() + at, &hash.low, sizeof hash.low);
    std::memcpy(file.data() + at + sizeof hash.low, &hash.high, sizeof hash.high);
  }
  auto loaded = decode_brain(file, spec, variables);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("network.0.weight: found nan, expected a finite number"));
  host.replay.next[1] = 5;
  loaded = decode_brain(encode(), spec, variables);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("replay.next"));
}

}  // namespace
}  // namespace imprint::agent
