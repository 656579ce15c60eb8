// Measured variants as text: reading back, and refused texts.

#include "compute/tuning/tuning_table.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>

namespace imprint {
namespace {

using ::testing::HasSubstr;

vk::Capabilities device(std::uint32_t id, const char* name) {
  vk::Capabilities capabilities;
  capabilities.device_name = name;
  capabilities.driver_name = "a driver 1.2";
  capabilities.vendor_id = 0x10de;
  capabilities.device_id = id;
  capabilities.driver_version = 7;
  capabilities.pipeline_cache_uuid[5] = 0xab;
  return capabilities;
}

const vk::Capabilities kOwn = device(1, "own"), kOther = device(2, "other");
const VariantTable kTable{{"product 1 x 2 x 3 of 4", "64 x 64"}, {"region \"r\" \n", "8 rows"}};

TEST(TuningTable, ComesBackAsItWas) {
  const std::string text = write_tuning_tables(kTable, kOwn).value();
  EXPECT_EQ(read_tuning_tables(text, kOwn).value(), kTable);
  EXPECT_THAT(text, HasSubstr("own"));
}

TEST(TuningTable, AnotherDeviceOrDriverIsRefusedByName) {
  const std::string text = write_tuning_tables(kTable, kOwn).value();
  vk::Capabilities newer = kOwn, rebuilt = kOwn;
  newer.driver_version = 8;
  rebuilt.pipeline_cache_uuid[0] = 1;
  for (const vk::Capabilities& other : {kOther, newer, rebuilt}) {
    const auto refused = read_tuning_tables(text, other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().message,
                HasSubstr("found tables for 'own', 'a driver 1.2', expected one for this driver build of "));
  }
}

TEST(TuningTable, OneFileServesManyDevices) {
  const VariantTable others{{"k", "v"}}, again{{"k", "w"}};
  std::string text = write_tuning_tables(kTable, kOwn).value();
  text = write_tuning_tables(others, kOther, text).value();
  EXPECT_EQ(read_tuning_tables(text, kOwn).value(), kTable);
  EXPECT_EQ(read_tuning_tables(text, kOther).value(), others);
  text = write_tuning_tables(again, kOther, text).value();
  EXPECT_EQ(read_tuning_tables(text, kOwn).value(), kTable);
  EXPECT_EQ(read_tuning_tables(text, kOther).value(), again);
}

TEST(TuningTable, AllTablesOfAFileCanBeHad) {
  const VariantTable others{{"k", "v"}};
  const std::string text =
      write_tuning_tables(others, kOther, write_tuning_tables(kTable, kOwn).value()).value();
  EXPECT_EQ(read_tuning_tables(text).value(), (std::vector{kTable, others}));
  EXPECT_TRUE(read_tuning_tables(R"({"imprint_tuning": 1, "tables": []})").value().empty());
  EXPECT_EQ(read_tuning_tables("{").error().code, ErrorCode::corrupt_file);
}

TEST(TuningTable, AnotherVersionIsRefused) {
  std::string text = write_tuning_tables(kTable, kOwn).value();
  const std::string version = "\"imprint_tuning\": 1";
  text.replace(text.find(version), version.size(), "\"imprint_tuning\": 2");
  const auto refused = read_tuning_tables(text, kOwn);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("version: found 2, expected 1"));
}

TEST(TuningTable, EveryTruncationIsRefused) {
  const std::string text = write_tuning_tables(kTable, kOwn).value();
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    const auto refused = read_tuning_tables(std::string_view(text).substr(0, size), kOwn);
    ASSERT_FALSE(refused.ok()) << size;
    EXPECT_EQ(refused.error().code, ErrorCode::corrupt_file) << size;
    EXPECT_FALSE(
        write_tuning_tables(kTable, kOwn, size == 0 ? " " : std::string_view(text).substr(0, size)).ok());
  }
}

TEST(TuningTable, RequiredContents) {
  const char* wrong[] = {"[]",
                         "1",
                         "{}",
                         R"({"imprint_tuning": "1", "tables": []})",
                         R"({"imprint_tuning": 1})",
                         R"({"imprint_tuning": 1, "tables": {}})",
                         R"({"imprint_tuning": 1, "tables": [{}]})",
                         R"({"imprint_tuning": 1, "tables": [{"device": {}, "kernels": {}}]})",
                         R"({"imprint_tuning": 1, "tables": [3]})",
                         "\xff\xfe"};
  for (const char* text : wrong)
    EXPECT_EQ(read_tuning_tables(text, kOwn).error().code, ErrorCode::corrupt_file) << text;
  EXPECT_EQ(read_tuning_tables(R"({"imprint_tuning": 1, "tables": []})", kOwn).error().code,
            ErrorCode::unsupported);
  std::string text = write_tuning_tables(kTable, kOwn).value();
  text.replace(text.find("\"8 rows\""), 8, "8");
  EXPECT_THAT(read_tuning_tables(text, kOwn).error().message, HasSubstr("found no text"));
}

TEST(TuningTable, NoDepthOfNestingTakesTheStack) {
  constexpr std::size_t kDepth = 4'000'000;
  std::string text = write_tuning_tables(kTable, kOther).value();
  text.insert(text.find("\"kernels\""),
              "\"more\": " + std::string(kDepth, '[') + std::string(kDepth, ']') + ", ");
  EXPECT_EQ(read_tuning_tables(text, kOther).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(write_tuning_tables(kTable, kOwn, text).error().code, ErrorCode::corrupt_file);
}

TEST(TuningTable, AnyByteMayBeWrong) {
  const std::string text = write_tuning_tables(kTable, kOwn).value();
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char flip : {1, 2, 16, -128}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto read =
          read_tuning_tables(damaged, kOwn);  // a name may differ, but the result is still a table
      if (!read.ok()) EXPECT_FALSE(read.error().message.empty());
    }
}

}  // namespace
}  // namespace imprint
