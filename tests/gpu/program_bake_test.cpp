// Kernels baked without a device are those that programs request on it, for any layout of their memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "compute/program/bake.h"
#include "compute/program/device_profile.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"
#include "tests/gpu/trainer.h"

namespace imprint {

using namespace graph;
using namespace program;

namespace {

using test::Trainer;
using testing::HasSubstr;

class BakeTest : public test::SessionTest {
 protected:
  static vk::CapabilityProfile profile() { return profile_of(test::gpu()->context().device()); }
  static std::shared_ptr<const vk::KernelArchive> archive_of(const Baker& baker) {
    std::size_t told = 0;
    const auto bytes = baker.compile([&](std::size_t done) { told = done; });
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    EXPECT_EQ(told, baker.kernel_count());
    auto archive = vk::KernelArchive::parse(*bytes);
    EXPECT_TRUE(archive.ok()) << archive.error().message;
    return std::move(*archive);
  }
  static std::unique_ptr<bridge::Standalone> open(const vk::DeviceOptions& given) {
    bridge::StandaloneOptions options;
    if (const char* name = std::getenv("IMPRINT_TEST_DEVICE")) options.device = name;
    options.validation = test::gpu()->context().device().capabilities().debug_utils;
    options.options = given;
    options.options.schedule_as_gpu = test::gpu()->context().device().options().schedule_as_gpu;
    return std::move(bridge::Standalone::open(options)).value();
  }
};

TEST_F(BakeTest, AProgramRunsFromItsArchiveToTheSameBits) {
  Trainer compiled, baked;
  Baker baker({profile()});
  ASSERT_TRUE(baker.add(baked.description).ok());
  const auto device = open({.kernels = archive_of(baker)});
  Program here = compile(compiled.description);
  auto there = Program::compile(device->session().runtime(), baked.description);
  ASSERT_TRUE(there.ok()) << there.error().message;
  const vk::PipelineStats stats = device->context().device().pipelines().stats();
  EXPECT_EQ(stats.glsl_compiles, 0u);
  const std::vector<std::string> texts = here.glsl();
  EXPECT_EQ(stats.archive_hits, std::set(texts.begin(), texts.end()).size());
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(session().run(here).ok());
    ASSERT_TRUE(device->session().run(*there).ok());
  }
  EXPECT_EQ(floats(compiled.w0), device->session().read(std::span(&baked.w0, 1)).value()[0].floats);
}

// Two groups and constants, with a distance between them that decides whether they share a memory block.
TEST_F(BakeTest, EveryWayToShareMemoryIsBaked) {
  std::set<std::string> texts;
  for (const int way : {0, 1, 2, 3, 4}) {
    const std::vector<Variable> first{Variable("a", {64}, std::vector<float>(64, 1)),
                                      Variable("b", {64}, std::vector<float>(64, 2))};
    const std::vector<Variable> second{Variable("c", {64}, std::vector<float>(64, 3)),
                                       Variable("d", {64}, std::vector<float>(64, 4))};
    std::vector<float> constant(64);
    for (std::size_t i = 0; i < constant.size(); ++i) constant[i] = static_cast<float>(i % 7);
    const Tensor sum = first[0].value() * first[1].value() + second[0].value() * second[1].value() +
                       Tensor::from(constant, {64});
    const ProgramDescription program{
        .name = "shared", .outputs = {sum}, .updates = {Update::assign(second[0], sum)}};
    const std::vector<std::vector<Variable>> groups{first, second};
    Baker baker({profile()});
    ASSERT_TRUE(baker.add(program, groups).ok());
    EXPECT_EQ(baker.kernel_count(), 5u) << "three parts can share blocks in five ways";

    const auto device = open({.memory = {.block_bytes = 4096}, .kernels = archive_of(baker)});
    Runtime& runtime = device->session().runtime();
    std::vector<Variable> fill;  // the rest of the block
    const auto next_block = [&] {
      const std::uint64_t room = device->context().device().memory().stats().largest_free;
      if (room == 0) return;
      fill.push_back(Variable::zeros("fill", {static_cast<std::int64_t>(room / 4)}));
      ASSERT_TRUE(runtime.place(fill.back()).ok());
    };
    ASSERT_TRUE(runtime.place_together(first).ok());
    if (way == 1 || way == 3 || way == 4) next_block();
    ASSERT_TRUE(runtime.place_together(second).ok());
    if (way == 2 || way == 3) next_block();
    auto compiled = Program::compile(runtime, program);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    EXPECT_EQ(device->context().device().pipelines().stats().glsl_compiles, 0u) << "way " << way;
    for (const std::string& text : compiled->glsl()) texts.insert(text);
    EXPECT_EQ(device->session().run(*compiled).value()[0].floats[8], 1.0f * 2 + 3 * 4 + 1);
  }
  EXPECT_GE(texts.size(), 3u) << "the layouts have equal kernels";
}

TEST_F(BakeTest, MeasuredVariantsAreBakedToo) {
  const auto layers = [] {  // for one device each
    constexpr std::int64_t kRows = 300, kWidth = 96;
    const Variable weight("weight", {kWidth, kWidth}, test::wave(kWidth * kWidth, 0.2f, 1)),
        data("data", {kRows, kWidth}, test::wave(kRows * kWidth, 1, 2));
    const Tensor hidden = tanh(matmul(data.value(), weight.value()));
    return ProgramDescription{.name = "layers",
                              .outputs = {tanh(matmul(hidden, weight.value())), softmax(data.value())}};
  };
  Program usual = compile(layers());
  VariantTable table;
  for (const ScheduleFigures& part : usual.schedule())
    for (const DispatchFigures& dispatch : part.dispatches)
      for (const KernelFigures& kernel : dispatch.kernels)
        for (const VariantChoice& choice : kernel.choices) table[choice.kernel] = choice.variants.back();
  ASSERT_FALSE(table.empty());
  Baker plain({profile()}), with_table({profile()}, {table});
  ASSERT_TRUE(plain.add(layers()).ok());
  ASSERT_TRUE(with_table.add(layers()).ok());
  ASSERT_GT(with_table.kernel_count(), plain.kernel_count());
  const auto archive = archive_of(with_table);
  for (const bool is_shipped : {false, true}) {
    const auto device = open({.kernels = archive});
    if (is_shipped) device->session().runtime().set_variants(std::make_shared<const VariantTable>(table));
    auto there = Program::compile(device->session().runtime(), layers());
    ASSERT_TRUE(there.ok()) << there.error().message;
    EXPECT_EQ(device->context().device().pipelines().stats().glsl_compiles, 0u);
    EXPECT_EQ(there->glsl() != usual.glsl(), is_shipped);
  }
}

TEST_F(BakeTest, SequencesAreBakedPartByPart) {
  Trainer trainer;
  const ProgramSequence sequence{.name = "rounds", .parts = {{trainer.description, 3}}};
  Baker baker({profile()});
  ASSERT_TRUE(baker.add(sequence).ok());
  const auto device = open({.kernels = archive_of(baker)});
  auto program = Program::compile(device->session().runtime(), sequence);
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(device->context().device().pipelines().stats().glsl_compiles, 0u);
}

TEST_F(BakeTest, EveryNamedProfileIsWrittenFor) {
  std::size_t count = 0;
  for (const vk::CapabilityProfile& named : vk::named_profiles()) {
    Trainer trainer;
    Baker one({named});
    ASSERT_TRUE(one.add(trainer.description).ok()) << named.name;
    EXPECT_GT(one.kernel_count(), 0u);
    count += one.kernel_count();
    EXPECT_EQ(archive_of(one)->profile_names(), named.name);
  }
  Trainer trainer;
  const auto named = vk::named_profiles();
  Baker all(std::vector(named.begin(), named.end()));
  ASSERT_TRUE(all.add(trainer.description).ok());
  EXPECT_LE(all.kernel_count(), count);
}

TEST_F(BakeTest, AnArchiveOfOtherProfilesIsSaidOnce) {
  Trainer trainer;
  vk::CapabilityProfile other = profile();
  other.name = "other";
  other.max_workgroup_invocations /= 2;
  Baker baker({other});
  ASSERT_TRUE(baker.add(trainer.description).ok());
  std::vector<std::string> lines;
  const auto device = open({.kernels = archive_of(baker),
                            .log = {[](void* user, LogLevel level, std::string_view message) {
                                      if (level == LogLevel::warning)
                                        static_cast<std::vector<std::string>*>(user)->emplace_back(message);
                                    },
                                    &lines}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("kernel archive: profile 'other': max_workgroup_invocations: found "));
  EXPECT_THAT(lines[0], HasSubstr("--profile FILE.json"));
}

// `imprint devices --profile` writes a profile with every feature that the device has; a game may enable
// none.
TEST_F(BakeTest, OnlyFeaturesThatKernelsDependOnAreArchived) {
  vk::CapabilityProfile has = vk::named_profiles().front(), lacks = has;
  has.storage_16bit = has.shader_float16 = has.vulkan_memory_model = true;
  const auto archived = [&](DType dtype) {
    const Variable weight = Variable::zeros("weight", {64}, dtype);
    Baker baker({has});
    EXPECT_TRUE(
        baker.add({.name = "doubled", .outputs = {cast(weight.value(), DType::float32) * 2.0f}}).ok());
    return archive_of(baker)->profiles()[0];
  };
  const vk::CapabilityProfile wide = archived(DType::float32), narrow = archived(DType::float16);
  EXPECT_EQ(wide.difference(lacks), "");
  EXPECT_EQ(wide.difference(has), "");
  EXPECT_EQ(narrow.difference(lacks), "storage_16bit: found 1, expected 0");
  lacks.storage_16bit = true;
  EXPECT_EQ(narrow.difference(lacks), "") << "no kernel uses arithmetic in float16 or the memory model";
}

TEST_F(BakeTest, MoreWaysToShareMemoryThanAreBakedAreRefused) {
  Baker baker({vk::named_profiles().back()});
  const std::vector<std::vector<Variable>> many(Baker::kMaxGroups + 1);
  EXPECT_EQ(baker.add({.name = "many", .outputs = {Tensor(1.0f)}}, many).error().code,
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace imprint
