// Opponents, ratings, and episodes as files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/philox.h"
#include "tools/studio/episode_log.h"
#include "tools/studio/league.h"

namespace imprint::studio {
namespace {

using ::testing::HasSubstr;

League three() {
  League league;
  for (const char* brain : {"a.brain", "b c.brain", "d.brain"}) league.keep(brain);
  league.take(std::vector<float>{8, 0, 4}, std::vector<float>{8, 8, 8});
  return league;
}

TEST(LeagueTest, DrawsHardOpponentsMostOften) {
  EXPECT_EQ(League().draw(0.9, 0.3), 0u) << "without entries the newest weights";
  const League league = three();
  std::vector<double> counts(4, 0);
  constexpr std::uint32_t kDraws = 20'000;
  for (std::uint32_t i = 0; i < kDraws; ++i)
    counts[league.draw(philox_uniform(i, 1, 0, 5, 6), philox_uniform(i, 2, 0, 5, 6))] += 1.0 / kDraws;
  // Chances of the newest weights by Laplace's rule: 9 / 10, 1 / 10, 5 / 10.
  const double weights[] = {0.01, 0.81, 0.25}, sum = 1.07;
  EXPECT_NEAR(counts[3], 0.5, 0.02) << "the newest weights";
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(counts[i], 0.5 * weights[i] / sum, 0.02) << i;
}

TEST(LeagueTest, RatesByElo) {
  League league;
  league.keep("first.brain");
  league.take(std::vector<float>{1}, std::vector<float>{1});
  EXPECT_DOUBLE_EQ(league.rating(), 1208);
  EXPECT_DOUBLE_EQ(league.entries()[0].rating, 1192);
  league.take(std::vector<float>{0}, std::vector<float>{1});
  const double expected = 1 / (1 + std::pow(10.0, -16.0 / 400));
  EXPECT_DOUBLE_EQ(league.rating(), 1208 - 16 * expected);
  league.keep("second.brain");
  EXPECT_DOUBLE_EQ(league.entries()[1].rating, league.rating());
}

TEST(LeagueTest, LosesTheEasiestWhenItIsFull) {
  League league;
  std::vector<float> scores(League::kMostEntries, 0.0f), matches(League::kMostEntries, 2.0f);
  for (std::size_t i = 0; i < League::kMostEntries; ++i) EXPECT_EQ(league.keep(std::to_string(i)), "");
  scores[17] = 2;
  league.take(scores, matches);
  EXPECT_EQ(league.keep("new"), "17");
  EXPECT_EQ(league.entries().size(), League::kMostEntries);
  EXPECT_EQ(league.entries().back().brain, "new");
}

TEST(LeagueTest, ComesBackFromItsText) {
  const League league = three();
  const Result<League> found = League::parse(league.text(), "league");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->text(), league.text());
  EXPECT_EQ(found->entries()[1].brain, "b c.brain");
  // Numbers too, from which no chance follows: 0 / 0, an infinite sum.
  for (const char* damaged :
       {"", "league 3 1200\n1 2 3 a\n", "legue 0 1200\n", "league 99999999 1\n", "league 1 1200\n1 -2 -1 a\n",
        "league 1 1200\n1 1e308 1e308 a\n", "league 1 1200\n-1e300 2 1 a\n", "league 0 1e300\n"})
    EXPECT_FALSE(League::parse(damaged, "league")) << damaged;
  // An entry elsewhere would be read as a brain, and deleted.
  for (const char* elsewhere : {"../a.brain", "/a.brain", "a/b.brain", "C:a.brain", ".."}) {
    const Result<League> other =
        League::parse(std::string("league 1 1200\n1 2 1 ") + elsewhere + "\n", "run/league");
    ASSERT_FALSE(other) << elsewhere;
    EXPECT_THAT(other.error().message,
                HasSubstr("'run/league': line 2: found other words, expected the name of a file"));
  }
}

TEST(EpisodeLogTest, ComesBackAndTellsEachDamagedByte) {
  EpisodeLog log{
      .seed = 5, .number = 6, .rank = 7, .parameters = {{"lean", 0.25}, {"wind", -3}}, .score = 12};
  for (std::uint32_t step = 0; step < 3; ++step) {
    const float seen[] = {0.5f * static_cast<float>(step), -1}, numbers[] = {0.125f};
    const std::uint32_t chosen[] = {step, 2, 9};
    ASSERT_TRUE(log.add(seen, chosen, numbers).ok());
  }
  EXPECT_THAT(log.add({}, {}, {}).error().message, HasSubstr("found 0 observations"));
  const std::string path = ::testing::TempDir() + "imprint_episode_test";
  ASSERT_TRUE(log.write(path).ok());
  const Result<EpisodeLog> found = EpisodeLog::read(path);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->seed, 5u);
  EXPECT_EQ(found->parameters, log.parameters);
  EXPECT_EQ(found->steps(), 3u);
  EXPECT_EQ(found->observation_of(2)[0], 1.0f);
  EXPECT_EQ(found->discrete_of(1)[2], 9u);
  EXPECT_EQ(found->continuous_of(0)[0], 0.125f);
  const std::vector<std::byte> whole = log.bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::byte> damaged = whole;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(EpisodeLog::parse(damaged, "log")) << "byte " << i;
  }
  std::remove(path.c_str());
}

// An agent may see nothing and have neither choices nor numbers of one kind.
TEST(EpisodeLogTest, ComesBackWhateverAStepHolds) {
  for (const std::size_t part : {0u, 1u, 2u}) {
    EpisodeLog log;
    const float number[] = {0.5f};
    const std::uint32_t choice[] = {3};
    for (int step = 0; step < 2; ++step)
      ASSERT_TRUE(log.add(part == 0 ? std::span(number) : std::span<const float>(),
                          part == 1 ? std::span(choice) : std::span<const std::uint32_t>(),
                          part == 2 ? std::span(number) : std::span<const float>()));
    EXPECT_EQ(log.steps(), 2u);
    const Result<EpisodeLog> found = EpisodeLog::parse(log.bytes(), "log");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->steps(), 2u);
  }
}

// A whole file, with its hash, whose head asks for other steps than it holds.
TEST(EpisodeLogTest, RefusesAHeadThatLies) {
  constexpr std::size_t kSteps = 24, kParameters = 56, kHash = 16;  // bytes from the begin, and at the end
  EpisodeLog log{.parameters = {{"a", 1}}};
  const float seen[] = {1, 2};
  ASSERT_TRUE(log.add(seen, {}, {}));
  const std::vector<std::byte> whole = log.bytes();
  ASSERT_TRUE(EpisodeLog::parse(whole, "log"));
  const auto with = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    std::vector<std::byte> file = whole;
    std::memcpy(file.data() + at, &value, size);
    const Hash128 hash = Hasher().bytes(std::span(file).first(file.size() - kHash)).digest();
    std::memcpy(file.data() + file.size() - kHash, &hash, sizeof hash);
    return EpisodeLog::parse(file, "log");
  };
  EXPECT_TRUE(with(kSteps, 1, 8)) << "as it was";
  for (const std::uint64_t steps : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{1} << 61, UINT64_MAX})
    EXPECT_FALSE(with(kSteps, steps, 8)) << steps;
  for (const std::uint64_t parameters : {0u, 2u, UINT32_MAX})
    EXPECT_FALSE(with(kParameters, parameters, 4)) << parameters;
}

}  // namespace
}  // namespace imprint::studio
