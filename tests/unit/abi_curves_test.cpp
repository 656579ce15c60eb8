// A brain's curves through the interface, on device cpu: rows, and files read back by a reader of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <imprint/imprint.hpp>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace imprint {
namespace {

using namespace imprint::game;

template <class T>
T must(Made<T> made) {
  EXPECT_TRUE(made) << made.outcome.message();
  return std::move(made.value);
}

// One choice of two is right. Episodes have 10 steps.
class CurvesTest : public testing::Test {
 protected:
  template <class Options>
  void play(const Options& options, int frames) {
    StandaloneDesc device;
    device.device = "cpu";
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 1'000'000'000;
    context_ = must(Context::create_standalone(Library(imp_get_api), device, imp_host_init(), limits));
    brain_ = must(context_.create_brain(BrainDesc::of(options, 2, {2})));
    agent_ = must(brain_.create_agent());
    ASSERT_TRUE(context_.warmup());
    const float seen[] = {1, 0};
    int steps = 0;
    for (int frame = 1; frame <= frames; ++frame) {
      ASSERT_TRUE(context_.frame_begin(static_cast<std::uint64_t>(frame), frame / 60.0));
      const Made<Action> action = agent_.act();
      if (action.outcome.ready()) {
        ASSERT_TRUE(agent_.reward(action->branches[0] == 0 ? 1.0f : 0.0f));
        if (++steps % 10 == 0) ASSERT_TRUE(agent_.end_episode(EpisodeEnd::terminated));
      }
      if (frame == 1 || action.outcome.ready()) ASSERT_TRUE(agent_.observe(seen));
      ASSERT_TRUE(context_.submit());
      ASSERT_TRUE(context_.frame_end());
    }
    ASSERT_TRUE(context_.drain(60'000));
  }
  // Written as a job, which context_drain waits for.
  std::string written(const std::string& name) {
    const std::string path = testing::TempDir() + name;
    EXPECT_TRUE(brain_.write_curves(path.c_str()));
    EXPECT_TRUE(context_.drain(60'000));
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Context context_;
  Brain brain_;
  Agent agent_;
};

TEST_F(CurvesTest, PpoHasAPolicysFigures) {
  PpoOptions options;
  options.rollout_steps = 128;
  options.batch_size = 32;
  play(options, 6000);
  const imp_curves first = must(brain_.curves(0)), newest = must(brain_.curves());
  EXPECT_GT(newest.rows, 2u);
  EXPECT_GE(first.minibatches, 64u);
  EXPECT_GT(newest.minibatches, first.minibatches);
  EXPECT_GT(newest.decisions, first.decisions);
  EXPECT_GT(newest.used_samples, first.used_samples);
  EXPECT_GT(newest.mean_return, first.mean_return) << "of 10 steps";
  EXPECT_GT(newest.mean_return, 8);
  EXPECT_FLOAT_EQ(newest.mean_length, 10);
  EXPECT_GT(first.entropy, 0.4f) << "two choices: at most log 2";
  EXPECT_LT(newest.entropy, first.entropy);
  EXPECT_GT(newest.gradient_norm, 0);
  EXPECT_FLOAT_EQ(newest.learning_rate, 1e-3f);
  EXPECT_TRUE(std::isfinite(newest.divergence) && std::isfinite(newest.clipped_share) &&
              std::isfinite(newest.explained_variance) && std::isfinite(newest.policy_loss));
  EXPECT_TRUE(std::isnan(newest.highest_value)) << "a policy has no values of choices";
  EXPECT_GT(newest.wall_s, 1.6e9);
  const Made<imp_curves> later = brain_.curves(newest.rows);
  EXPECT_EQ(later.outcome.code(), Code::not_found);
}

TEST_F(CurvesTest, DqnHasItsValuesAndItsRateFalls) {
  DqnOptions options;
  options.discount = 0.5f;
  play(options, 1500);
  const imp_curves first = must(brain_.curves(0)), newest = must(brain_.curves());
  EXPECT_LT(newest.learning_rate, first.learning_rate);
  EXPECT_GT(newest.highest_value, newest.lowest_value);
  EXPECT_NEAR(newest.highest_value, 2, 0.6) << "1 / (1 - discount)";
  EXPECT_GT(newest.error, 0);
  EXPECT_TRUE(std::isnan(newest.entropy));
}

TEST_F(CurvesTest, ABrainWithoutALearnerHasNone) {
  play(NoLearner(), 2);
  EXPECT_EQ(brain_.curves().outcome.code(), Code::not_found);
  EXPECT_EQ(brain_.write_curves("none.csv").code(), Code::not_found);
}

// ---- files ----

TEST_F(CurvesTest, TheTableHasARowEach) {
  play(DqnOptions(), 400);
  std::istringstream file(written("curves.csv"));
  std::string names, line;
  std::getline(file, names);
  EXPECT_THAT(names, testing::StartsWith("wall_s,decisions,return,length,loss,policy_loss,"));
  const auto commas = std::ranges::count(names, ',');
  std::uint64_t rows = 0;
  for (; std::getline(file, line); ++rows) EXPECT_EQ(std::ranges::count(line, ','), commas) << line;
  EXPECT_EQ(rows, must(brain_.curves()).rows);
}

// Table-driven, unlike the writer.
std::uint32_t masked_crc32c(const std::string& bytes) {
  std::uint32_t table[256];
  for (std::uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = table[i] % 2 ? table[i] / 2 ^ 0x82F63B78u : table[i] / 2;
  }
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<std::uint8_t>(byte)) & 255] ^ crc >> 8;
  crc ^= 0xFFFFFFFFu;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

TEST(CurveFiles, TheTestsChecksumIsCastagnolis) {
  const std::uint32_t masked = masked_crc32c("123456789") - 0xA282EAD8u;
  EXPECT_EQ(masked << 15 | masked >> 17, 0xE3069283u);
}

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value{};
  EXPECT_LE(at + sizeof value, bytes.size());
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at<std::uint64_t>(file, at);
    EXPECT_EQ(number_at<std::uint32_t>(file, at + 8), masked_crc32c(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(number_at<std::uint32_t>(file, at + 12 + length), masked_crc32c(records.back()));
    at += 16 + length;
    if (testing::Test::HasFailure()) break;
  }
  return records;
}

// Fields of a message, by number: the bytes of each, in order.
std::multimap<std::uint64_t, std::string> fields_of(const std::string& message) {
  std::multimap<std::uint64_t, std::string> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(message[at++]);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < message.size()) {
    const std::uint64_t key = varint();
    std::string content;
    if (key % 8 == 0) {
      const std::uint64_t value = varint();
      content.assign(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      const std::uint64_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : varint();
      content = message.substr(at, size);
      at += size;
    }
    fields.emplace(key / 8, content);
  }
  return fields;
}

TEST_F(CurvesTest, AnEventFileIsReadBack) {
  play(DqnOptions(), 400);
  const std::vector<std::string> records = records_of(written("events.out.tfevents.1.dqn"));
  const imp_curves newest = must(brain_.curves());
  ASSERT_EQ(records.size(), 1 + newest.rows);
  EXPECT_EQ(fields_of(records[0]).find(3)->second, "brain.Event:2");
  const auto event = fields_of(records.back());
  EXPECT_EQ(number_at<double>(event.find(1)->second, 0), newest.wall_s);
  EXPECT_EQ(number_at<std::uint64_t>(event.find(2)->second, 0), newest.decisions);
  std::map<std::string, float> scalars;
  const auto summary = fields_of(event.find(5)->second);
  for (const auto& [number, content] : summary) {
    EXPECT_EQ(number, 1u);
    const auto value = fields_of(content);
    scalars[value.find(1)->second] = number_at<float>(value.find(2)->second, 0);
  }
  EXPECT_EQ(scalars.at("return"), newest.mean_return);
  EXPECT_EQ(scalars.at("highest_value"), newest.highest_value);
  EXPECT_EQ(scalars.at("gradient_norm"), newest.gradient_norm);
  EXPECT_EQ(scalars.count("entropy"), 0u) << "DQN has none";
}

}  // namespace
}  // namespace imprint
