// Choosing kernels by measurement through the C interface: during warm-up, between starts, between computers,
// and switched off.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "imprint/imprint.hpp"

#include "tests/hosts/assert_works.h"

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace imprint::game;

// A context on the shared kind of device with one learning brain that is not warm yet.
struct Game {
  Context context;
  Brain brain;
  Agent agent;
  std::vector<std::string> log;

  void open(std::uint32_t tuning_ms, bool deterministic) {
    imp_standalone_info device = imp_standalone_info_init();
    device.device = std::getenv("IMPRINT_TEST_DEVICE");
    device.validation = 1;
    imp_limits limits = imp_limits_init();
    limits.memory_cap_bytes = std::uint64_t{1} << 30;
    limits.tuning_ms = tuning_ms;
    limits.deterministic = deterministic;
    imp_host host = imp_host_init();
    host.user = this;
    host.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_ERROR) ADD_FAILURE() << text;
      static_cast<Game*>(user)->log.emplace_back(text);
    };
    Made<Context> made = Context::create_standalone(Library(imp_get_api), device, host, limits);
    ASSERT_TRUE(made) << made.outcome.message();
    context = std::move(*made);
  }

  void add() {
    const std::uint32_t branch = 3, hidden = 8;
    BrainDesc desc;
    desc.observation_count = 6;
    desc.branch_sizes = {branch};
    desc.hidden_sizes = {hidden};
    FeedbackOptions options;
    options.replay_capacity = 32;
    options.batch_size = 8;
    desc.learner = options;
    desc.snapshot_count = 0;
    Made<Brain> made = context.create_brain(desc);
    ASSERT_TRUE(made) << made.outcome.message();
    brain = std::move(*made);
    Made<Agent> body = brain.create_agent();
    ASSERT_TRUE(body) << body.outcome.message();
    agent = std::move(*body);
  }

  std::string table() {
    std::string text(context.tuning().value, ' ');
    EXPECT_TRUE(context.tuning(text));
    return text;
  }

  std::vector<std::byte> cache() {
    std::vector<std::byte> bytes(context.pipeline_cache().value);
    EXPECT_TRUE(context.pipeline_cache(bytes));
    return bytes;
  }

  void play(std::uint64_t frames) {
    const std::vector<float> seen(6, 0.5f);
    for (std::uint64_t frame = 1; frame <= frames; ++frame) {
      ASSERT_WORKS(context.frame_begin(frame, static_cast<double>(frame) / 60));
      ASSERT_WORKS(agent.observe(seen));
      ASSERT_WORKS(agent.feedback(frame % 2 ? 1.0f : -1.0f, static_cast<double>(frame) / 60));
      ASSERT_WORKS(context.submit());
      ASSERT_WORKS(context.frame_end());
    }
  }
};

constexpr const char* kEmpty = "\"kernels\": {}";

TEST(Tuning, WarmupMeasuresAndFramesDoNot) {
  Game game;
  game.open(600'000, false);
  game.add();
  std::vector<float> told;
  ASSERT_WORKS(game.context.warmup([&](float fraction) { told.push_back(fraction); }));
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.front(), 0.0f);
  EXPECT_EQ(told.back(), 1.0f);
  EXPECT_GT(told.size(), 5u) << "variants count as progress";
  const std::string table = game.table();
  EXPECT_THAT(table, HasSubstr(" invocations\""));

  const imp_context_stats before = game.context.stats().value;
  game.play(30);
  const imp_context_stats after = game.context.stats().value;
  EXPECT_EQ(after.frame_compiles, 0u);
  EXPECT_EQ(after.frame_allocations, 0u);
  EXPECT_EQ(after.frame_waits, 0u);
  EXPECT_EQ(after.compiles, before.compiles);
  EXPECT_EQ(game.table(), table);
}

TEST(Tuning, ALaterStartKnowsFromThePipelineCache) {
  Game first;
  first.open(600'000, false);
  first.add();
  ASSERT_WORKS(first.context.warmup());
  const std::vector<std::byte> cache = first.cache();
  const std::string table = first.table();

  Game second;
  second.open(0, false);
  ASSERT_WORKS(second.context.set_pipeline_cache(cache));
  EXPECT_EQ(second.table(), table);
  second.add();
  ASSERT_WORKS(second.context.warmup());
  EXPECT_EQ(second.table(), table);

  for (const std::size_t cut : {std::size_t{1}, std::size_t{20}, table.size() / 2, table.size() + 40}) {
    const Outcome damaged = second.context.set_pipeline_cache(std::span(cache).first(cache.size() - cut));
    EXPECT_EQ(damaged.code(), Code::corrupt_file) << cut;
  }

  Game fixed;
  fixed.open(600'000, true);
  ASSERT_WORKS(fixed.context.set_pipeline_cache(cache));
  EXPECT_THAT(fixed.table(), HasSubstr(kEmpty)) << "deterministic mode ignores measurements";
  fixed.add();
  ASSERT_WORKS(fixed.context.warmup());
  EXPECT_THAT(fixed.table(), HasSubstr(kEmpty)) << "and measures nothing";
  EXPECT_THAT(fixed.log, ::testing::Contains(HasSubstr("deterministic")));
}

TEST(Tuning, AShippedTableCountsEvenWithDeterminism) {
  Game measured;
  measured.open(600'000, false);
  measured.add();
  ASSERT_WORKS(measured.context.warmup());
  std::string table = measured.table();

  Game shipped;
  shipped.open(0, true);
  ASSERT_WORKS(shipped.context.set_tuning(table));
  EXPECT_EQ(shipped.table(), table);
  shipped.add();
  ASSERT_WORKS(shipped.context.warmup());
  const std::vector<std::byte> cache = shipped.cache();
  const std::string_view bytes(reinterpret_cast<const char*>(cache.data()), cache.size());
  EXPECT_THAT(std::string(bytes), Not(HasSubstr("imprint_tuning"))) << "entries that the host ships stay";

  EXPECT_EQ(shipped.context.set_tuning(std::string_view(table).substr(0, table.size() / 2)).code(),
            Code::corrupt_file);
  const std::string version = "\"imprint_tuning\": 1";
  std::string other = table;
  other.replace(other.find(version), version.size(), "\"imprint_tuning\": 9");
  EXPECT_EQ(shipped.context.set_tuning(other).code(), Code::unsupported);
  const std::string driver = "\"driver_version\": ";
  table.insert(table.find(driver) + driver.size(), "1");
  const Outcome foreign = shipped.context.set_tuning(table);
  EXPECT_EQ(foreign.code(), Code::unsupported);
  EXPECT_THAT(foreign.message(), HasSubstr("Measure on this device and driver"));
}

TEST(Tuning, EqualTablesGiveEqualBrains) {
  Game measured;
  measured.open(600'000, false);
  measured.add();
  ASSERT_WORKS(measured.context.warmup());
  BrainHash hashes[2];
  for (BrainHash& hash : hashes) {
    Game game;
    game.open(0, true);
    ASSERT_WORKS(game.context.set_tuning(measured.table()));
    game.add();
    ASSERT_WORKS(game.context.warmup());
    game.play(40);
    ASSERT_WORKS(game.context.drain(10'000));
    const Made<BrainHash> made = game.brain.hash();
    ASSERT_WORKS(made.outcome);
    hash = made.value;
  }
  EXPECT_EQ(hashes[0].low, hashes[1].low);
  EXPECT_EQ(hashes[0].high, hashes[1].high);
}

TEST(Tuning, AWarmupCanBeToldToStopMeasuring) {
  Game game;
  game.open(600'000, false);
  game.add();
  int told = 0;
  ASSERT_WORKS(game.context.warmup([&](float) {
    if (++told == 3) EXPECT_TRUE(game.context.stop_tuning());
  }));
  EXPECT_LE(told, 8);
  game.play(3);
}

}  // namespace
