#include "compute/vk/pipelines/spirv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace imprint::vk {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SpirvCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::path(::testing::TempDir()) / (std::string("imprint_spirv_cache_") + test->name());
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  LogSink log() {
    return {[](void* user, LogLevel level, std::string_view message) {
              EXPECT_EQ(level, LogLevel::warning);
              static_cast<std::vector<std::string>*>(user)->emplace_back(message);
            },
            &warnings_};
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory_, error)) found.push_back(entry.path());
    return found;
  }

  static std::string read(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  fs::path directory_;
  std::vector<std::string> warnings_;
  const Hash128 key_{1, 2};
  const Spirv spirv_{0x07230203u, 0x00010300u, 3, 4, 5, 6, 7};
};

TEST_F(SpirvCacheTest, GivesBackStoredShaders) {
  const SpirvCache cache(directory_.string(), log());
  EXPECT_FALSE(cache.load(key_));
  cache.store(key_, spirv_);
  EXPECT_EQ(cache.load(key_), spirv_);
  EXPECT_FALSE(cache.load(Hash128{2, 1}));
  EXPECT_THAT(files(), SizeIs(1)) << "no temporary file stays";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SpirvCacheTest, IsOffWithoutADirectory) {
  const SpirvCache cache("", log());
  cache.store(key_, spirv_);
  EXPECT_FALSE(cache.load(key_));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SpirvCacheTest, AFolderThatCannotBeMadeIsSaidOnce) {
  fs::create_directories(directory_);
  write(directory_ / "file", "");
  const SpirvCache cache((directory_ / "file" / "cache").string(), log());
  for (std::uint64_t i = 0; i < 3; ++i) cache.store({i, i}, spirv_);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("shader cache: cannot write "), std::string::npos);
}

TEST_F(SpirvCacheTest, IgnoresEveryTruncation) {
  const SpirvCache cache(directory_.string(), log());
  cache.store(key_, spirv_);
  const fs::path file = files().at(0);
  const std::string whole = read(file);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(file, whole.substr(0, length));
    EXPECT_FALSE(cache.load(key_)) << length << " bytes";
  }
  EXPECT_EQ(warnings_.size(), whole.size());
  write(file, whole + "x");
  EXPECT_FALSE(cache.load(key_));
  write(file, whole);
  EXPECT_TRUE(cache.load(key_));
}

TEST_F(SpirvCacheTest, IgnoresEveryFlippedBitAndIsMendedByStoringAgain) {
  const SpirvCache cache(directory_.string(), log());
  cache.store(key_, spirv_);
  const fs::path file = files().at(0);
  const std::string whole = read(file);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write(file, damaged);
    EXPECT_FALSE(cache.load(key_)) << "bit " << bit;
  }
  EXPECT_THAT(warnings_.front(), HasSubstr("found a damaged or foreign file"));
  cache.store(key_, spirv_);
  EXPECT_EQ(cache.load(key_), spirv_);
}

TEST_F(SpirvCacheTest, IgnoresAWholeFileUnderAnotherName) {
  const SpirvCache cache(directory_.string(), log());
  cache.store(key_, spirv_);
  const fs::path first = files().at(0);
  cache.store(Hash128{3, 4}, spirv_);
  for (const auto& file : files()) {
    if (file != first) fs::copy_file(first, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(cache.load(key_));
  EXPECT_FALSE(cache.load(Hash128{3, 4}));
}

TEST_F(SpirvCacheTest, OnlyWarnsWhenTheDirectoryCannotBe) {
  write(directory_, "a file where the directory should be");
  const SpirvCache cache((directory_ / "below").string(), log());
  cache.store(key_, spirv_);
  EXPECT_FALSE(cache.load(key_));
  EXPECT_THAT(warnings_, SizeIs(1));
}

TEST_F(SpirvCacheTest, IsSharedByManyWriters) {
  const SpirvCache cache(directory_.string(), log());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        cache.store(key_, spirv_);
        EXPECT_EQ(cache.load(key_), spirv_);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SpirvCacheTest, DumpsTextUnderANameThatAnyFileSystemTakes) {
  dump_glsl(directory_.string(), "add <f32>/8", Hash128{5, 6}, "void main() {}", log());
  ASSERT_THAT(files(), SizeIs(1));
  EXPECT_THAT(files()[0].filename().string(), HasSubstr("add__f32__8-"));
  EXPECT_EQ(files()[0].extension(), ".comp");
  EXPECT_EQ(read(files()[0]), "void main() {}");
  dump_glsl(directory_.string(), std::string(5000, 'x'), Hash128{5, 6}, "", log());
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(files(), SizeIs(2));
}

}  // namespace
}  // namespace imprint::vk
