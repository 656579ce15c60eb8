#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "tools/studio/curriculum.h"

namespace imprint::studio {
namespace {

Curriculum parsed(const std::string& json) {
  auto made = Curriculum::parse(json);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

TEST(CurriculumTest, DrawsWhatTheFileSays) {
  const Curriculum all = parsed(R"({"parameters": {"even": {"uniform": [2, 4]}, "bell": {"normal": [5, 2]},
                                    "one": {"grid": [1, 7]}, "same": 9.8}})");
  double even = 0, bell = 0, spread = 0, ones = 0;
  constexpr int kEpisodes = 4000;
  for (int i = 0; i < kEpisodes; ++i) {
    const auto drawn = all.draw(3, static_cast<std::uint64_t>(i));
    EXPECT_GE(drawn.at("even"), 2);
    EXPECT_LE(drawn.at("even"), 4);
    EXPECT_TRUE(drawn.at("one") == 1 || drawn.at("one") == 7);
    EXPECT_EQ(drawn.at("same"), 9.8);
    even += drawn.at("even") / kEpisodes;
    bell += drawn.at("bell") / kEpisodes;
    spread += std::pow(drawn.at("bell") - 5, 2) / kEpisodes;
    ones += drawn.at("one") == 1;
  }
  EXPECT_NEAR(even, 3, 0.05);
  EXPECT_NEAR(bell, 5, 0.15);
  EXPECT_NEAR(std::sqrt(spread), 2, 0.1);
  EXPECT_NEAR(ones / kEpisodes, 0.5, 0.04);
  EXPECT_EQ(all.draw(3, 8), all.draw(3, 8));
  EXPECT_NE(all.draw(3, 8), all.draw(4, 8));
}

TEST(CurriculumTest, KnowsWhetherItHasParameters) {
  EXPECT_FALSE(parsed(R"({"lessons": [{"score": 1}, {}]})").has_parameters());
  EXPECT_TRUE(parsed(R"({"parameters": {"a": 1}})").has_parameters());
  EXPECT_TRUE(parsed(R"({"lessons": [{"score": 1}, {"parameters": {"a": 1}}]})").has_parameters());
}

// A parameter's draws do not depend on the others.
TEST(CurriculumTest, ParametersHaveStreamsOfTheirOwn) {
  const Curriculum one = parsed(R"({"parameters": {"a": {"uniform": [0, 1]}}})"),
                   two = parsed(R"({"parameters": {"0": {"uniform": [0, 1]}, "a": {"uniform": [0, 1]}}})");
  EXPECT_EQ(one.draw(1, 2).at("a"), two.draw(1, 2).at("a"));
  EXPECT_NE(two.draw(1, 2).at("0"), two.draw(1, 2).at("a"));
}

TEST(CurriculumTest, LessonsEndBySuccess) {
  Curriculum all = parsed(R"({"parameters": {"a": 1},
    "lessons": [{"name": "first", "parameters": {"a": 0}, "score": 10, "episodes": 4}, {"name": "last"}]})");
  EXPECT_EQ(all.lesson_name(), "first");
  EXPECT_EQ(all.draw(1, 1).at("a"), 0);
  EXPECT_FALSE(all.take(100, 3));  // too few
  EXPECT_FALSE(all.take(-80, 1));  // 5 on average: begins again
  EXPECT_TRUE(all.take(40, 4));
  EXPECT_EQ(all.lesson_name(), "last");
  EXPECT_EQ(all.draw(1, 1).at("a"), 1);
  EXPECT_FALSE(all.take(400, 40));
  Curriculum other = parsed(R"({"lessons": [{"score": 10}, {}]})");
  other.set_state(all.state());
  EXPECT_EQ(other.lesson(), 1u);
}

TEST(CurriculumTest, AdaptiveRangesGrowWithSuccess) {
  Curriculum all = parsed(
      R"({"parameters": {"wind": {"adaptive": [1, 5]}},
          "adapt": {"score": 10, "episodes": 2, "step": 0.5}})");
  EXPECT_EQ(all.draw(1, 1).at("wind"), 1);
  EXPECT_TRUE(all.take(20, 2));
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_LE(all.draw(1, i).at("wind"), 3);
  EXPECT_FALSE(all.take(14, 2));  // between half and whole: as it is
  EXPECT_TRUE(all.take(20, 2));
  EXPECT_FALSE(all.take(20, 2));  // whole already
  EXPECT_TRUE(all.take(2, 2));
  EXPECT_EQ(all.reach(), 0.5);

  // Scores below 0, as of a game that counts time.
  Curriculum late = parsed(
      R"({"parameters": {"wind": {"adaptive": [1, 5]}},
          "adapt": {"score": -100, "episodes": 2, "step": 0.5}})");
  EXPECT_TRUE(late.take(-180, 2));
  EXPECT_EQ(late.reach(), 0.5);
  EXPECT_FALSE(late.take(-240, 2));
  EXPECT_TRUE(late.take(-400, 2));
  EXPECT_EQ(late.reach(), 0);
}

TEST(CurriculumTest, RefusesByField) {
  const auto refused = [](const std::string& json) { return Curriculum::parse(json).error().message; };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused("no"), HasSubstr("file: found no JSON"));
  EXPECT_THAT(refused(R"({"lesson": []})"),
              HasSubstr("lesson: found an unknown name, expected parameters, lessons"));
  EXPECT_THAT(refused(R"({"parameters": {"a": {"normal": [1]}}})"),
              HasSubstr("parameters.a: found [1], expected two"));
  EXPECT_THAT(refused(R"({"parameters": {"a": {"grid": []}}})"), HasSubstr("expected one number or more"));
  EXPECT_THAT(refused(R"({"parameters": {"a": "x"}})"), HasSubstr("parameters.a: found \"x\""));
  for (const char* step : {"-0.1", "0", "1.5"})
    EXPECT_THAT(refused(text(R"({"adapt": {"step": )", step, "}}")),
                HasSubstr(text("adapt.step: found ", step, ", expected a number above 0")));
  EXPECT_THAT(refused(R"({"lessons": [{}, {}]})"), HasSubstr("lessons[0].score: found none"));
  EXPECT_THAT(refused(R"({"lessons": [{"name": 3}]})"),
              HasSubstr("lessons[0].name: found 3, expected a text"));
  for (const char* name : {R"("")", R"("a,b")", R"("a\"b")", R"("a\nb")"})
    EXPECT_THAT(refused(text(R"({"lessons": [{"name": )", name, "}]}")),
                HasSubstr("expected a text without commas, quotes and line breaks"));
  EXPECT_THAT(refused(R"({"parameters": {"a": {"uniform": [2, 1]}}})"),
              HasSubstr("parameters.a: found [2,1], expected the lower number first"));
  EXPECT_THAT(refused(R"({"parameters": {"a": {"normal": [2, -1]}}})"),
              HasSubstr("a deviation of 0 or more"));
  EXPECT_THAT(refused(R"({"lessons": [{"score": 1, "episodes": 0}, {}]})"),
              HasSubstr("lessons[0].episodes: found 0, expected a number of 1 or more"));
  EXPECT_THAT(refused(R"({"adapt": {"episodes": 0.5}})"), HasSubstr("adapt.episodes: found 0.5"));
  const std::string deep = R"({"parameters":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_THAT(refused(deep), HasSubstr("JSON nested deeper than 8 levels"));
  EXPECT_LT(refused(R"({"parameters": {"a": ")" + std::string(100'000, 'x') + "\"}}").size(), 1000u);
  EXPECT_THAT(refused(R"({"parameters": {"a": {"uniform": [-1e308, 1e308]}}})"),
              HasSubstr("parameters.a: found -1e+308, expected a number from -1e100 to 1e100"));
  EXPECT_LT(parsed(R"({"lessons": [{"name": ")" + std::string(100'000, 'x') + "\"}]}").lesson_name().size(),
            100u)
      << "it stands in each row of curve.csv";
  EXPECT_EQ(Curriculum::read("/dev/zero").error().code, ErrorCode::io);
}

// A checkpoint's numbers come from a file.
TEST(CurriculumTest, TakesNumbersThatNoRunHas) {
  Curriculum all = parsed(R"({"parameters": {"a": {"adaptive": [0, 1]}}, "lessons": [{"score": 1}, {}]})");
  const double most = std::numeric_limits<double>::max();
  for (const double number : {-1.0, -most, most, std::nan(""), HUGE_VAL}) {
    all.set_state(std::vector<double>(Curriculum::kStateNumbers, number));
    EXPECT_LT(all.lesson(), 2u) << number;
    const double drawn = all.draw(1, 1).at("a");
    EXPECT_TRUE(drawn >= 0 && drawn <= 1) << number;
  }
}

}  // namespace
}  // namespace imprint::studio
