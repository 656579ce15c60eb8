// safetensors: round trips, conversions, and files that a strict reader refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"

namespace imprint::safetensors {
namespace {

using testing::HasSubstr;

std::vector<std::byte> file_bytes(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

void expect_refused(const std::string& header, std::size_t data_bytes, const std::string& reason,
                    ErrorCode code = ErrorCode::corrupt_file) {
  const auto file = parse(file_bytes(header, data_bytes));
  ASSERT_FALSE(file.ok()) << header;
  EXPECT_EQ(file.error().code, code) << file.error().message;
  EXPECT_THAT(file.error().message, HasSubstr(reason)) << header;
}

File sample() {
  File file;
  const std::vector<float> floats{1.5f, -0.0f, std::numeric_limits<float>::infinity(), 3e-42f, 1e30f, -7};
  const std::vector<std::int32_t> ints{1, -2, std::numeric_limits<std::int32_t>::min()};
  const std::vector<std::int64_t> longs{std::numeric_limits<std::int64_t>::max(), -5};
  file.arrays["weight"] = Array::of(floats, {2, 3});
  file.arrays["steps"] = Array::of(ints, {3});
  file.arrays["a \"quoted\" näme"] = Array::of(longs, {2, 1});
  file.arrays["flags"] = Array::of_bools(std::vector<std::int32_t>{1, 0, 2}, {3});
  file.arrays["scalar"] = Array::of(std::vector<float>{42}, {});
  file.arrays["empty"] = Array::of(std::vector<float>{}, {0, 4});
  file.metadata["format"] = "test";
  return file;
}

TEST(Safetensors, RoundTripKeepsEveryBit) {
  const File file = sample();
  const auto bytes = serialize(file);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  const auto again = parse(*bytes);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->metadata, file.metadata);
  ASSERT_EQ(again->arrays.size(), file.arrays.size());
  for (const auto& [name, array] : file.arrays) {
    const auto found = again->find(name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ((*found)->type, array.type) << name;
    EXPECT_EQ((*found)->shape, array.shape) << name;
    EXPECT_EQ((*found)->bytes, array.bytes) << name;
  }
  const auto twice = serialize(*again);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(*twice, *bytes);
}

TEST(Safetensors, DataBeginsAligned) {
  const auto bytes = serialize(sample());
  ASSERT_TRUE(bytes.ok());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes->data(), 8);
  EXPECT_EQ(length % 8, 0u);
}

TEST(Safetensors, ConvertsOnRequest) {
  const auto bytes_of = [](std::vector<std::uint8_t> values) {
    const auto bytes = std::as_bytes(std::span(values));
    return SharedBytes(std::vector(bytes.begin(), bytes.end()));
  };
  const Array half{Type::float16, {4}, bytes_of({0x00, 0x3C, 0x01, 0x00, 0x00, 0xFC, 0xFF, 0x7B})};
  EXPECT_THAT(half.floats(),
              testing::ElementsAre(1.0f, 0x1p-24f, -std::numeric_limits<float>::infinity(), 65504.0f));
  const Array brain{Type::bfloat16, {1}, bytes_of({0x80, 0xBF})};
  EXPECT_THAT(brain.floats(), testing::ElementsAre(-1.0f));
  const double wide = 0.1;
  const auto eight = std::as_bytes(std::span(&wide, 1));
  const Array doubles{Type::float64, {1}, SharedBytes(std::vector(eight.begin(), eight.end()))};
  EXPECT_THAT(doubles.floats(), testing::ElementsAre(0.1f));

  EXPECT_THAT(Array::of_bools(std::vector<std::int32_t>{5, 0}, {2}).ints().value(),
              testing::ElementsAre(1, 0));
  const Array bytes{Type::int8, {2}, bytes_of({0xFF, 0x7F})};
  EXPECT_THAT(bytes.ints().value(), testing::ElementsAre(-1, 127));
  const std::vector<std::int64_t> longs{std::int64_t{1} << 40};
  const auto narrow = Array::of(longs, {1}).ints();
  ASSERT_FALSE(narrow.ok());
  EXPECT_EQ(narrow.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(Array::of(longs, {1}).long_ints().value(), testing::ElementsAre(std::int64_t{1} << 40));
  EXPECT_EQ(half.ints().error().code, ErrorCode::dtype_mismatch);
}

TEST(Safetensors, RefusesDamage) {
  EXPECT_EQ(parse({}).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(parse(std::vector<std::byte>(8)).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(parse(std::vector<std::byte>(64, std::byte{0xFF})).error().code, ErrorCode::corrupt_file);
  const std::string good = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  ASSERT_TRUE(parse(file_bytes("{" + good + "}", 8)).ok());
  expect_refused("{" + good + "}", 9, "trailing bytes");
  expect_refused("{" + good + "}", 7, "truncated");
  expect_refused("[]", 0, "does not begin with '{'");
  expect_refused("{" + good, 8, "no JSON at byte");
  expect_refused("{" + good + "," + good + "}", 8, "twice");
  expect_refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "twice");
  expect_refused("{" + good + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12,
                 "begins at byte 4");
  expect_refused("{" + good + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16,
                 "begins at byte 12");
  expect_refused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "does not fit the bytes");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "does not fit the bytes");
  expect_refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
                 "does not fit the bytes");
  expect_refused(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8,
                 "something else than extents");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8,
                 "something else than extents");
  expect_refused(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8,
                 "something else than extents");
  expect_refused(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8, "unknown dtype 'F99'");
  expect_refused(R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})", 8, "not a string");
  expect_refused(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8, "not a list");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", 8, "pair");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2]}})", 8, "must hold");
  expect_refused(R"({"a":[1]})", 8, "not an object");
  expect_refused(R"({"__metadata__":{"x":1}})", 0, "not a string");
  expect_refused(R"({"__metadata__":7})", 0, "not an object");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", 8, "rank 9",
                 ErrorCode::unsupported);
  expect_refused("{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "no JSON at byte");
  expect_refused("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0, "nested deeper");
  std::string objects = "{\"a\":";
  for (int i = 0; i < 20000; ++i) objects += "{\"a\":";
  expect_refused(objects, 0, "nested deeper");
}

TEST(Safetensors, AcceptsNothing) {
  const auto file = parse(file_bytes("{}      ", 0));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->arrays.empty());
  EXPECT_THAT(file->find("x").error().message, HasSubstr("there are: none"));
}

TEST(Safetensors, WriterRefusesTheReadersFaults) {
  File file;
  file.arrays["a"] = Array{Type::float32, {3}, SharedBytes(std::vector<std::byte>(8))};
  EXPECT_EQ(serialize(file).error().code, ErrorCode::invalid_argument);
  file.arrays.clear();
  file.arrays["__metadata__"] = Array::of(std::vector<float>{1}, {1});
  EXPECT_EQ(serialize(file).error().code, ErrorCode::invalid_argument);
  file.arrays.clear();
  file.arrays["\xff"] = Array::of(std::vector<float>{1}, {1});
  EXPECT_EQ(serialize(file).error().code, ErrorCode::invalid_argument);
}

// Every prefix, and every byte with each bit and all bits flipped: an answer or an error, and what is
// accepted is consistent.
TEST(Safetensors, SurvivesTruncationAndFlips) {
  const auto bytes = serialize(sample());
  ASSERT_TRUE(bytes.ok());
  for (std::size_t length = 0; length < bytes->size(); ++length) {
    const auto file = parse(std::span(*bytes).first(length));
    ASSERT_FALSE(file.ok()) << length;
    EXPECT_EQ(file.error().code, ErrorCode::corrupt_file) << length;
  }
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < bytes->size(); ++i)
    for (const int pattern : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::vector<std::byte> damaged = *bytes;
      damaged[i] ^= std::byte(pattern);
      const auto file = parse(damaged);
      if (!file) continue;
      ++accepted;
      for (const auto& [name, array] : file->arrays)
        ASSERT_EQ(array.floats().size(), static_cast<std::size_t>(array.shape.element_count()))
            << i << " " << pattern << " " << name;
    }
  EXPECT_GT(accepted, 0u) << "a flip in the data itself is not detected";
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("imprint-files-" + std::to_string(std::random_device{}()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

TEST_F(Files, SaveReplacesAndLeavesNothingBeside) {
  File file = sample();
  ASSERT_TRUE(save(file, path("a.safetensors")).ok());
  file.metadata["format"] = "second";
  ASSERT_TRUE(save(file, path("a.safetensors")).ok());
  const auto loaded = load(path("a.safetensors"));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->metadata.at("format"), "second");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, SaysWhyAFileCannotBeUsed) {
  const auto missing = load(path("none.safetensors"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("none.safetensors"));
  EXPECT_EQ(load(folder_.string()).error().code, ErrorCode::io);
  const auto unwritable = save(sample(), path("no/such/folder/a.safetensors"));
  ASSERT_FALSE(unwritable.ok());
  EXPECT_EQ(unwritable.error().code, ErrorCode::io);
  EXPECT_THAT(unwritable.error().message, HasSubstr("there is no folder '" + path("no/such/folder") + "'"));
  ASSERT_TRUE(save(sample(), path("file")).ok());
  EXPECT_THAT(save(sample(), path("file/a.safetensors")).error().message,
              HasSubstr("'" + path("file") + "' is no folder"));
  std::filesystem::remove(path("file"));
  EXPECT_THAT(save(sample(), "").error().message, HasSubstr("cannot write '': this names no file"));
  EXPECT_THAT(load("/dev/null").error().message, HasSubstr("no regular file"));
  EXPECT_TRUE(check_replaceable(path("new")).ok());
  EXPECT_EQ(file_count(), 0u) << "a failed save leaves no file";
  EXPECT_FALSE(check_replaceable(path("no/such/folder/new")).ok());
  EXPECT_EQ(check_replaceable("/proc/new").error().code, ErrorCode::io);
  // The target is a folder: the rename fails and the temporary file is removed.
  std::filesystem::create_directories(folder_ / "taken" / "inside");
  EXPECT_EQ(save(sample(), path("taken")).error().code, ErrorCode::io);
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, ASaveGoesThroughLinksAndReplacesOnlyFiles) {
  std::filesystem::create_directories(folder_ / "elsewhere");
  std::filesystem::create_symlink("elsewhere/real", path("middle"));
  std::filesystem::create_symlink(path("middle"), path("link"));
  ASSERT_TRUE(save(sample(), path("link")).ok());  // the target does not exist yet
  ASSERT_TRUE(save(sample(), path("link")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")) && std::filesystem::is_symlink(path("middle")));
  EXPECT_TRUE(
      std::filesystem::is_regular_file(std::filesystem::symlink_status(folder_ / "elsewhere" / "real")));
  EXPECT_TRUE(load(path("link")).ok());
  EXPECT_EQ(file_count(), 3u);

  std::filesystem::create_symlink("round", path("about"));
  std::filesystem::create_symlink("about", path("round"));
  EXPECT_THAT(save(sample(), path("round")).error().message, HasSubstr("symbolic links"));

#if !defined(_WIN32)
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", path("to pipe"));
  for (const std::string& target : {path("pipe"), path("to pipe"), std::string("/dev/null")}) {
    const auto refused = save(sample(), target);
    ASSERT_FALSE(refused.ok()) << target;
    EXPECT_EQ(refused.error().code, ErrorCode::io);
    EXPECT_THAT(refused.error().message, HasSubstr("no regular file"));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
#endif
}

TEST_F(Files, PartsAreChecked) {
  const std::vector<std::byte> bytes(10, std::byte{7});
  ASSERT_TRUE(write_file_atomic(path("part"), bytes).ok());
  auto reader = FileReader::open(path("part"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->read(4, 6)->size(), 6u);
  EXPECT_EQ(reader->read(4, 7).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(reader->read(~std::uint64_t{0}, 2).error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(read_file(path("part"), 9).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace imprint::safetensors
