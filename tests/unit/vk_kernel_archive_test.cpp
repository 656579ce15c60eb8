// The kernel archive that a game ships, and archives that are refused.

#include "compute/vk/pipelines/kernel_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compute/vk/device.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::vk {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kMagic = 0x07230203u;

CapabilityProfile profile(const std::string& name, std::uint32_t shared_memory = 16384) {
  CapabilityProfile made;
  made.name = name;
  made.max_shared_memory_bytes = shared_memory;
  return made;
}

class KernelArchiveTest : public ::testing::Test {
 protected:
  KernelArchiveTest() { large_.storage_16bit = true; }

  std::vector<std::byte> bytes() const {
    return write_kernel_archive(
        std::vector{large_, small_}, "a compiler 1.2",
        {{Hash128{5, 6}, "pet learn.1", {kMagic, 2, 3}}, {Hash128{1, 2}, "pet infer.0", {kMagic}}});
  }
  static Error refusal(std::span<const std::byte> given) {
    const auto parsed = KernelArchive::parse(given);
    EXPECT_FALSE(parsed.ok());
    return parsed.ok() ? Error{} : parsed.error();
  }

  CapabilityProfile large_ = profile("large", 49152), small_ = profile("small");
};

TEST_F(KernelArchiveTest, GivesBackItsKernels) {
  const auto archive = KernelArchive::parse(bytes());
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  EXPECT_EQ((*archive)->find(Hash128{1, 2}), Spirv{kMagic});
  EXPECT_EQ((*archive)->find(Hash128{5, 6}), (Spirv{kMagic, 2, 3}));
  EXPECT_FALSE((*archive)->find(Hash128{1, 6}));
  EXPECT_EQ((*archive)->kernels()[1].name, "pet learn.1");
  EXPECT_EQ((*archive)->compiler(), "a compiler 1.2");
  EXPECT_EQ((*archive)->profile_names(), "large, small");
  EXPECT_TRUE((*archive)->profiles()[0].equals(large_));
  EXPECT_TRUE((*archive)->profiles()[1].equals(small_));
}

TEST_F(KernelArchiveTest, MayBeEmptyAndKeepsOneOfEqualKernels) {
  const auto empty = KernelArchive::parse(write_kernel_archive({}, "", {}));
  ASSERT_TRUE(empty.ok()) << empty.error().message;
  EXPECT_FALSE((*empty)->find(Hash128{}));
  EXPECT_EQ((*empty)->profile_for(large_), nullptr);
  const auto twice = KernelArchive::parse(write_kernel_archive(
      {}, "", {{Hash128{1, 1}, "first", {kMagic}}, {Hash128{1, 1}, "second", {kMagic}}}));
  ASSERT_TRUE(twice.ok()) << twice.error().message;
  ASSERT_EQ((*twice)->kernels().size(), 1u);
  EXPECT_EQ((*twice)->kernels()[0].name, "first");
}

// Names of a file stand in logs: a few, short and on one line.
TEST_F(KernelArchiveTest, NamesOfProfilesAreShort) {
  std::vector<CapabilityProfile> many(20, profile("a\nb\x1b[31m" + std::string(1000, 'c')));
  const auto archive = KernelArchive::parse(write_kernel_archive(many, "", {}));
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  const std::string names = (*archive)->profile_names();
  EXPECT_LT(names.size(), 1000u);
  EXPECT_THAT(names, HasSubstr("a?b?[31mccc"));
  EXPECT_THAT(names, HasSubstr(" and 12 more"));
}

TEST_F(KernelArchiveTest, RefusesEveryTruncation) {
  const std::vector<std::byte> whole = bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Error error = refusal(std::span(whole).first(length));
    EXPECT_EQ(error.code, ErrorCode::corrupt_file) << length << " bytes";
    EXPECT_THAT(error.message, HasSubstr("kernel archive: "));
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(refusal(longer).code, ErrorCode::corrupt_file);
}

TEST_F(KernelArchiveTest, RefusesEveryFlippedBit) {
  const std::vector<std::byte> whole = bytes();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> damaged = whole;
    damaged[bit / 8] ^= std::byte{1} << bit % 8;
    const bool of_version = bit / 8 >= 8 && bit / 8 < 12;
    EXPECT_EQ(refusal(damaged).code, of_version ? ErrorCode::unsupported : ErrorCode::corrupt_file)
        << "bit " << bit;
  }
}

// With a valid checksum, as a faulty tool would write it: reads stay in bounds and contents are checked.
TEST_F(KernelArchiveTest, SurvivesEveryByteThatItsSumAgreesWith) {
  const std::vector<std::byte> whole = bytes();
  const auto sealed = [](std::vector<std::byte> file) {
    std::uint32_t table = 0;
    std::memcpy(&table, file.data() + 12, sizeof table);
    const Hash128 sum = Hasher().number(table).bytes(std::span(file).subspan(32)).digest();
    std::memcpy(file.data() + 16, &sum.low, 8);
    std::memcpy(file.data() + 24, &sum.high, 8);
    return file;
  };
  ASSERT_TRUE(KernelArchive::parse(sealed(whole)).ok());
  std::size_t refused = 0;
  for (std::size_t i = 12; i < whole.size(); ++i) {
    if (i == 16) i = 32;
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> damaged = whole;
      damaged[i] = static_cast<std::byte>(value);
      const auto parsed = KernelArchive::parse(sealed(damaged));
      refused += !parsed.ok();
      for (const ArchivedKernel& kernel :
           parsed.ok() ? (*parsed)->kernels() : std::span<const ArchivedKernel>())
        EXPECT_EQ(kernel.spirv.front(), kMagic);
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST_F(KernelArchiveTest, RefusesAProfileThatNoDeviceHas) {
  CapabilityProfile less = profile("less");
  less.max_workgroup_invocations = 0;
  EXPECT_THAT(refusal(write_kernel_archive(std::vector{large_, less}, "", {})).message,
              HasSubstr("profile 'less': max_workgroup_invocations: found 0, expected at least 128"));
}

TEST_F(KernelArchiveTest, SaysThatItMustBeBakedAgain) {
  std::vector<std::byte> other = bytes();
  const auto version = std::search(other.begin(), other.end(), reinterpret_cast<const std::byte*>("0."),
                                   reinterpret_cast<const std::byte*>("0.") + 2);
  ASSERT_NE(version, other.end());
  *version = std::byte{'9'};
  std::uint32_t table = 0;
  std::memcpy(&table, other.data() + 12, sizeof table);
  const Hash128 sum = Hasher().number(table).bytes(std::span(other).subspan(32)).digest();
  std::memcpy(other.data() + 16, &sum.low, 8);
  std::memcpy(other.data() + 24, &sum.high, 8);
  const Error error = refusal(other);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("version: found 9."));
  EXPECT_THAT(error.message, HasSubstr("Bake it again"));
  EXPECT_THAT(refusal(std::as_bytes(std::span("a text file that is long enough to be looked at"))).message,
              HasSubstr("imprint bake"));
}

TEST_F(KernelArchiveTest, ChoosesTheDevicesOwnProfileOrTheFirstThatItCanRun) {
  const auto archive = KernelArchive::parse(bytes());
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  CapabilityProfile device = profile("device", 16384);
  EXPECT_EQ((*archive)->profile_for(device)->name, "small") << "its own";
  device.max_shared_memory_bytes = 65536;
  EXPECT_EQ((*archive)->profile_for(device)->name, "small") << "large wants storage_16bit";
  device.storage_16bit = true;
  EXPECT_EQ((*archive)->profile_for(device)->name, "large");
  device.max_workgroup_invocations = 64;
  EXPECT_EQ((*archive)->profile_for(device), nullptr);
  EXPECT_EQ(small_.lack(device), "needs max_workgroup_invocations 128, it has 64");
}

// The tool's device has features that a game on the same device did not enable. If no kernel depends on them,
// the archive is the game's own.
TEST_F(KernelArchiveTest, IsTheDevicesOwnWhateverFeaturesItsKernelsIgnore) {
  CapabilityProfile tool = profile("device", 49152);
  tool.storage_16bit = tool.shader_float16 = tool.vulkan_memory_model = true;
  tool.subgroup_size = 32;
  const CapabilityProfile baked = tool.without(CapabilityProfile::depends_on_game);
  const auto archive = KernelArchive::parse(write_kernel_archive(std::vector{baked, small_}, "", {}));
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  CapabilityProfile game = profile("device", 49152);
  for (const bool has_storage : {false, true}) {
    game.storage_16bit = has_storage;
    const CapabilityProfile* found = (*archive)->profile_for(game);
    ASSERT_NE(found, nullptr);
    EXPECT_THAT(found->difference(game), IsEmpty());
    EXPECT_THAT(found->lack(game), IsEmpty());
  }
  EXPECT_TRUE(baked.equals(tool));
  game.cooperative_matrix_khr = true;
  EXPECT_EQ(baked.difference(game), "cooperative_matrix_khr: found 0, expected 1")
      << "it was not baked with that, so kernels may depend on it";
  game = profile("device", 32768);
  EXPECT_EQ(baked.difference(game), "max_shared_memory_bytes: found 49152, expected 32768");
}

TEST(CapabilityProfile, IsRunByDevicesThatHaveAsMuch) {
  CapabilityProfile wanted, device;
  EXPECT_THAT(wanted.lack(device), IsEmpty());
  for (const ProfileField& field : profile_fields()) {
    CapabilityProfile more = wanted;
    field.set(more, field.number ? field.get(more) + 1 : 1);
    EXPECT_FALSE(more.equals(wanted)) << field.name;
    if (std::string_view(field.name) == "processor") {
      EXPECT_THAT(more.lack(device), IsEmpty());
      continue;
    }
    EXPECT_THAT(more.lack(device), HasSubstr(field.name));
    if (std::string_view(field.name) != "subgroup_size")
      EXPECT_THAT(wanted.lack(more), IsEmpty()) << field.name;
  }
  wanted.subgroup_size = 32;
  device.subgroup_size = 64;
  EXPECT_THAT(wanted.lack(device), HasSubstr("subgroup_size 32, it has 64"));
}

// An archive's profile excludes features that the compiler does not support, and only those.
TEST(CapabilityProfile, ExcludesFeaturesUnknownToTheCompiler) {
  CapabilityProfile device;
  device.cooperative_matrix_nv = device.cooperative_matrix_khr = device.cooperative_matrix2_nv =
      device.storage_16bit = true;
  CapabilityProfile expected = device;
  expected.cooperative_matrix_khr = GlslCompiler::knows("GL_KHR_cooperative_matrix");
  expected.cooperative_matrix2_nv = GlslCompiler::knows("GL_NV_cooperative_matrix2");
  EXPECT_TRUE(device.as_compiled_here().equals(expected));
  EXPECT_THAT(device.as_compiled_here().lack(device), IsEmpty());
  EXPECT_TRUE(CapabilityProfile().as_compiled_here().equals(CapabilityProfile()));
}

TEST(CapabilityProfile, EveryDeviceRunsTheBaseline) {
  const CapabilityProfile least = CapabilityProfile::of(Capabilities{}, false);
  const auto named = named_profiles();
  EXPECT_EQ(named.back().name, "baseline");
  EXPECT_THAT(named.back().lack(least), IsEmpty());
  for (const CapabilityProfile& profile : named)
    EXPECT_THAT(named.back().lack(profile), IsEmpty()) << profile.name;
}

TEST(SourceKey, CoversTheCompiledText) {
  const std::string text = "#version 450\n// copies a into b\nvoid main() {\n  int a = 1;  // of a\n}\n";
  EXPECT_EQ(source_key(text),
            source_key("#version 450\nvoid main() {\n  int a = 1;\n  // of the other\n}\n"));
  EXPECT_NE(source_key(text), source_key("#version 450\nvoid main() {\n  int a = 2;  // of a\n}\n"));
  EXPECT_NE(source_key("a\nb"), source_key("ab"));
  EXPECT_NE(source_key("/* // */ int a = 1;"), source_key("/* // */ int a = 2;"))
      << "no comment ends the other kind";
}

TEST(MissingKernel, IsNamedWithARemedy) {
  const Error without = missing_kernel("pet learn.2", Hash128{1, 2}, nullptr);
  EXPECT_EQ(without.code, ErrorCode::not_found);
  EXPECT_THAT(without.message, HasSubstr("kernel 'pet learn.2' (00000000000000020000000000000001)"));
  EXPECT_THAT(without.message, HasSubstr("imprint bake"));
  const auto archive = KernelArchive::parse(write_kernel_archive(std::vector{profile("small")}, "", {}));
  const Error with = missing_kernel("pet learn.2", Hash128{1, 2}, archive->get());
  EXPECT_EQ(with.code, ErrorCode::not_found);
  EXPECT_THAT(with.message, HasSubstr("(0 kernels for small)"));
  EXPECT_THAT(with.message, HasSubstr("Bake again"));
}

}  // namespace
}  // namespace imprint::vk
