// Files of demonstrations: what is written comes back, and every fault has a name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "compute/model/files/safetensors.h"
#include "plugin/agent/keep/demonstrations.h"

namespace imprint::agent {
namespace {

using ::testing::HasSubstr;

Demonstrations two() {
  Demonstrations shown;
  shown.observation_width = 3;
  shown.goal_count = 2;
  shown.branch_sizes = {4, 2};
  shown.continuous_count = 1;
  shown.observations = {1, 2, 3, -4, 5, -6e30f};
  shown.goals = {0, 1};
  shown.branches = {3, 0, 1, 1};
  shown.continuous = {-1, 0.5f};
  shown.weights = {2, 0.25f};
  return shown;
}

std::vector<std::byte> bytes_of(const Demonstrations& shown) { return write_demonstrations(shown).value(); }

// The message for the file of two() after a change.
std::string refusal(const std::function<void(safetensors::File&)>& change) {
  safetensors::File file = safetensors::parse(bytes_of(two())).value();
  change(file);
  const auto read = read_demonstrations(safetensors::serialize(file).value());
  if (read.ok()) return "it is taken";
  EXPECT_EQ(read.error().code, ErrorCode::corrupt_file);
  return read.error().message;
}

safetensors::Array floats(std::initializer_list<float> values, const Shape& shape) {
  const std::vector<float> all(values);
  return safetensors::Array::of(std::span<const float>(all), shape);
}
safetensors::Array ints(std::initializer_list<std::int32_t> values, const Shape& shape) {
  const std::vector<std::int32_t> all(values);
  return safetensors::Array::of(std::span<const std::int32_t>(all), shape);
}

TEST(DemonstrationFiles, ComeBack) {
  const Demonstrations shown = two();
  const auto read = read_demonstrations(bytes_of(shown));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->text(), "2 demonstrations: 3 numbers, 2 goals, actions 4 2 and 1 continuous");
  EXPECT_EQ(read->branch_sizes, shown.branch_sizes);
  EXPECT_EQ(read->observations, shown.observations);
  EXPECT_EQ(read->goals, shown.goals);
  EXPECT_EQ(read->branches, shown.branches);
  EXPECT_EQ(read->continuous, shown.continuous);
  EXPECT_EQ(read->weights, shown.weights);
  EXPECT_EQ(bytes_of(*read), bytes_of(shown));
}

TEST(DemonstrationFiles, ActionsMayBeOfOneKind) {
  Demonstrations choices = two(), numbers = two();
  choices.continuous_count = 0, choices.continuous.clear();
  numbers.branch_sizes.clear(), numbers.branches.clear();
  for (const Demonstrations& shown : {choices, numbers}) {
    const auto read = read_demonstrations(bytes_of(shown));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->text(), shown.text());
    Demonstrations other = two();
    const Result<> appended = append(other, *read);
    ASSERT_FALSE(appended.ok());
    EXPECT_EQ(appended.error().code, ErrorCode::shape_mismatch);
  }
  EXPECT_EQ(numbers.text(), "2 demonstrations: 3 numbers, 2 goals, actions 1 continuous");
}

TEST(DemonstrationFiles, EveryFaultHasAName) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<std::function<void(safetensors::File&)>, const char*> faults[] = {
      {[](auto& file) { file.metadata.erase("format"); }, "format: found no metadata of this name"},
      {[](auto& file) { file.metadata["format"] = "pt"; }, "format: found 'pt', expected 'imprint demon"},
      {[](auto& file) { file.metadata.erase("goal_count"); }, "goal_count: found no metadata"},
      {[](auto& file) { file.metadata["goal_count"] = ""; }, "goal_count: found no number"},
      {[](auto& file) { file.metadata["goal_count"] = "0"; }, "goal_count: found '0'"},
      {[](auto& file) { file.metadata["goal_count"] = "2 2"; }, "goal_count: found '2 2'"},
      {[](auto& file) { file.metadata["branch_sizes"] = "4 1"; }, "branch_sizes: found '4 1'"},
      {[](auto& file) { file.metadata["branch_sizes"] = "4 "; }, "branch_sizes: found '4 '"},
      {[](auto& file) { file.metadata["branch_sizes"] = "4 99999999999"; }, "branch_sizes: found '4 9999"},
      {[](auto& file) { file.metadata["branch_sizes"] = "2 2 2 2 2 2 2 2 2"; }, "up to 8 whole numbers"},
      {[](auto& file) { file.metadata["branch_sizes"] = "4 2 2"; }, "branches: found I32 [2, 2]"},
      {[](auto& file) { file.metadata["branch_sizes"] = ""; }, "arrays: found 5, expected 4"},
      {[](auto& file) { file.arrays.erase("observation"); }, "observation: found no array"},
      {[](auto& file) {
         file.arrays["observation"] = floats({}, {0, 3});
       },
       "observation: found [0, 3]"},
      {[](auto& file) {
         file.arrays["observation"] = floats({}, {2, 0});
       },
       "observation: found [2, 0]"},
      {[](auto& file) {
         file.arrays["observation"] = floats({1, 2}, {2});
       },
       "observation: found [2]"},
      {[](auto& file) {
         file.arrays["observation"] = ints({1, 2}, {2, 1});
       },
       "observation: found I32"},
      {[nan](auto& file) {
         file.arrays["observation"] = floats({1, nan}, {2, 1});
       },
       "observation: found nan"},
      {[](auto& file) {
         file.arrays["goal"] = ints({0, 2}, {2});
       },
       "goal: found 2, expected 0 to 1"},
      {[](auto& file) {
         file.arrays["goal"] = ints({0, -1}, {2});
       },
       "goal: found -1"},
      {[](auto& file) {
         file.arrays["goal"] = ints({0, 1, 1}, {3});
       },
       "goal: found I32 [3], expected I32 [2]"},
      {[](auto& file) {
         file.arrays["branches"] = ints({0, 1, 4, 1}, {2, 2});
       },
       "branches: found 4 of branch 0, expected 0 to 3"},
      {[](auto& file) {
         file.arrays["branches"] = ints({0, 1, 3, -1}, {2, 2});
       },
       "-1 of branch 1"},
      {[](auto& file) {
         file.arrays["continuous"] = floats({0, 1.5f}, {2, 1});
       },
       "continuous: found 1.5"},
      {[](auto& file) {
         file.arrays["continuous"] = floats({}, {2, 0});
       },
       "continuous: found [2, 0]"},
      {[](auto& file) {
         file.arrays["weight"] = floats({1, 0}, {2});
       },
       "weight: found 0, expected a finite"},
      {[](auto& file) { file.arrays["more"] = floats({1}, {1}); }, "arrays: found 6, expected 5"},
      {[](auto& file) {
         file.metadata["branch_sizes"] = "";
         file.arrays.erase("continuous");
       },
       "branch_sizes: found none, and no array continuous"},
  };
  for (const auto& [change, expected] : faults) EXPECT_THAT(refusal(change), HasSubstr(expected));
  EXPECT_EQ(refusal([](auto& file) { file.metadata["author"] = "a person"; }), "it is taken");
}

TEST(DemonstrationFiles, EveryTruncationIsRefused) {
  const std::vector<std::byte> file = bytes_of(two());
  for (std::size_t size = 0; size < file.size(); ++size)
    ASSERT_FALSE(read_demonstrations(std::span(file).first(size)).ok()) << size;
}

}  // namespace
}  // namespace imprint::agent
