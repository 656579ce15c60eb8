#include "compute/vk/pipelines/pipeline_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "compute/vk/handle.h"
#include "tests/gpu/vk_fixture.h"

namespace imprint::vk {
namespace {

namespace fs = std::filesystem;
using test::HostDevice;
using test::Instance;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// data[table[0] + i] = i * factor + table[1]
KernelSource ramp(int factor) {
  return {"ramp by " + std::to_string(factor),
          "#version 450\n"
          "layout(local_size_x = 64) in;\n"
          "layout(set = 0, binding = 0) buffer Data { uint data[]; };\n"
          "layout(set = 0, binding = 16) uniform Table { uvec4 table[256]; };\n"
          "void main() {\n"
          "  uint i = gl_GlobalInvocationID.x;\n"
          "  data[table[0].x + i] = i * " +
              std::to_string(factor) +
              "u + table[0].y;\n"
              "}\n",
          1};
}

class VkPipelines : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::path(::testing::TempDir()) / (std::string("imprint_pipelines_") + test->name());
    fs::remove_all(directory_);
    auto instance = Instance::create();
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    instance_ = std::move(instance).value();
    auto host = HostDevice::create(*instance_);
    ASSERT_TRUE(host.ok()) << host.error().message;
    host_ = std::move(host).value();
  }
  void TearDown() override {
    host_.reset();
    if (instance_) {
      EXPECT_THAT(instance_->messages(), IsEmpty());
    }
    fs::remove_all(directory_);
  }
  std::unique_ptr<Device> adopt(DeviceOptions options = {}) {
    options.log = {[](void* user, LogLevel, std::string_view message) {
                     static_cast<std::vector<std::string>*>(user)->emplace_back(message);
                   },
                   &log_};
    return std::move(Device::adopt(host_->description(), options)).value();
  }
  static Result<std::vector<Kernel>> get(Device& device, const std::vector<KernelSource>& sources) {
    return device.pipelines().get(sources);
  }

  fs::path directory_;
  std::vector<std::string> log_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<HostDevice> host_;
};

TEST_F(VkPipelines, RunTheGivenShader) {
  const auto device = adopt();
  const auto kernels = get(*device, {ramp(3)});
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  ASSERT_EQ(kernels->size(), 1u);
  const auto memory = device->memory().allocate(1024, 16, MemoryUse::readback);
  ASSERT_TRUE(memory.ok());
  std::memset(memory->mapped, 0xff, memory->size);
  const std::uint32_t table[] = {static_cast<std::uint32_t>(memory->offset / 4) + 8, 1000};
  const Result<> status = test::run(*device, host_->queue(), (*kernels)[0], std::span(&*memory, 1), table, 2);
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto* data = static_cast<const std::uint32_t*>(memory->mapped);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(data[i], ~0u);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(data[8 + i], i * 3 + 1000);
  EXPECT_EQ(data[8 + 128], ~0u);
  device->memory().free(*memory);
}

TEST_F(VkPipelines, CompileEachShaderOnce) {
  const auto device = adopt();
  auto renamed = ramp(1);
  renamed.name = "another name";
  const auto kernels = get(*device, {ramp(1), ramp(2), ramp(1), renamed});
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  EXPECT_EQ((*kernels)[0].pipeline, (*kernels)[2].pipeline);
  EXPECT_EQ((*kernels)[0].pipeline, (*kernels)[3].pipeline) << "the name is not part of the identity";
  EXPECT_NE((*kernels)[0].pipeline, (*kernels)[1].pipeline);
  EXPECT_EQ((*kernels)[0].layout, (*kernels)[1].layout);
  EXPECT_EQ(device->pipelines().stats().pipelines, 2u);
  EXPECT_EQ(device->pipelines().stats().glsl_compiles, 2u);
  EXPECT_EQ(device->counters().compiles, 2u);

  auto wider = ramp(1);
  wider.storage_buffer_count = 2;
  const auto other = get(*device, {wider, ramp(2)});
  ASSERT_TRUE(other.ok());
  EXPECT_NE((*other)[0].pipeline, (*kernels)[0].pipeline) << "another layout";
  EXPECT_EQ((*other)[1].pipeline, (*kernels)[1].pipeline);
  EXPECT_EQ((*other)[0].storage_buffer_count, 2u);
  EXPECT_EQ(device->pipelines().stats().pipelines, 3u);
}

TEST_F(VkPipelines, GiveNothingForNothing) {
  const auto device = adopt();
  const auto kernels = get(*device, {});
  ASSERT_TRUE(kernels.ok());
  EXPECT_TRUE(kernels->empty());
}

// T9. With pipelineCreationCacheControl, a kernel that a frame requests is an error instead of a hitch,
// unless the driver already has it.
TEST_F(VkPipelines, RefuseACompileThatAFrameAskedFor) {
  host_.reset();
  VkPhysicalDevicePipelineCreationCacheControlFeatures control{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES, nullptr, VK_TRUE};
  auto host = HostDevice::create(*instance_, &control);
  if (!host.ok()) GTEST_SKIP() << "the device has no pipelineCreationCacheControl: " << host.error().message;
  host_ = std::move(host).value();
  const auto device = adopt();
  ASSERT_TRUE(device->capabilities().pipeline_creation_cache_control);
  ASSERT_TRUE(get(*device, {ramp(71)}).ok());
  // A kernel that is new in every run, so that the driver's own disk cache cannot have it.
  const auto fresh = ramp(
      static_cast<int>(std::chrono::steady_clock::now().time_since_epoch().count() % 1'000'000'000) + 1000);
  device->counters().enter_frame();
  EXPECT_TRUE(get(*device, {ramp(71)}).ok()) << "the pipeline exists";
  const auto slip = get(*device, {fresh});
  ASSERT_FALSE(slip.ok());
  EXPECT_EQ(slip.error().code, ErrorCode::wrong_state);
  EXPECT_THAT(slip.error().message, HasSubstr("Call warmup before frames"));
  EXPECT_EQ(device->counters().frame_compiles, 1u);
  device->counters().leave_frame();
  EXPECT_TRUE(get(*device, {fresh}).ok()) << "outside a frame it is compiled";
  EXPECT_EQ(device->counters().frame_compiles, 1u);
}

TEST_F(VkPipelines, CountCompilesThatAFrameAskedFor) {
  const auto device = adopt();
  ASSERT_TRUE(get(*device, {ramp(1)}).ok());
  device->counters().enter_frame();
  ASSERT_TRUE(get(*device, {ramp(1)}).ok());
  EXPECT_EQ(device->counters().frame_compiles, 0u);
  ASSERT_TRUE(get(*device, {ramp(2)}).ok());
  EXPECT_EQ(device->counters().frame_compiles, 1u);
}

TEST_F(VkPipelines, CarryTheLogAndTheLineOfABadShader) {
  const auto device = adopt();
  auto bad = ramp(1);
  bad.name = "bad";
  bad.glsl += "this is not glsl;\n";
  const auto kernels = get(*device, {ramp(2), bad, ramp(3)});
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.error().code, ErrorCode::compile_failed);
  EXPECT_THAT(kernels.error().message, HasSubstr("kernel bad does not compile"));
  EXPECT_THAT(kernels.error().message, HasSubstr("0:9: 'this' : Reserved word. \n  | this is not glsl;"));
  EXPECT_TRUE(get(*device, {ramp(2), ramp(3)}).ok());
  EXPECT_EQ(device->pipelines().stats().pipelines, 2u) << "the good ones were made";
  EXPECT_FALSE(get(*device, {bad}).ok()) << "a failure is not stored as a kernel";
}

TEST_F(VkPipelines, RefuseMoreBuffersThanThereCanBe) {
  const auto device = adopt();
  auto source = ramp(1);
  source.storage_buffer_count = 17;
  const auto kernels = get(*device, {source});
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.error().code, ErrorCode::unsupported);
  EXPECT_THAT(kernels.error().message, HasSubstr("storage buffers: found 17"));
}

TEST_F(VkPipelines, ShareLayoutsByCount) {
  const auto device = adopt();
  const auto two = device->pipelines().layouts(2), again = device->pipelines().layouts(2),
             three = device->pipelines().layouts(3);
  ASSERT_TRUE(two.ok() && again.ok() && three.ok());
  EXPECT_EQ(two->layout, again->layout);
  EXPECT_EQ(two->set_layout, again->set_layout);
  EXPECT_NE(two->layout, three->layout);
  EXPECT_EQ(two->pipeline, VkPipeline{VK_NULL_HANDLE});
}

TEST_F(VkPipelines, FindTheirSpirvOnDiskTheNextTime) {
  DeviceOptions options;
  options.shader_cache_directory = (directory_ / "cache").string();
  {
    const auto device = adopt(options);
    ASSERT_TRUE(get(*device, {ramp(1), ramp(2)}).ok());
    EXPECT_EQ(device->pipelines().stats().glsl_compiles, 2u);
    EXPECT_EQ(device->pipelines().stats().disk_hits, 0u);
  }
  {
    const auto device = adopt(options);
    ASSERT_TRUE(get(*device, {ramp(2), ramp(1)}).ok());
    EXPECT_EQ(device->pipelines().stats().glsl_compiles, 0u);
    EXPECT_EQ(device->pipelines().stats().disk_hits, 2u);
    EXPECT_EQ(device->pipelines().stats().pipelines, 2u);
  }
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(VkPipelines, SurviveADamagedCache) {
  DeviceOptions options;
  options.shader_cache_directory = (directory_ / "cache").string();
  ASSERT_TRUE(get(*adopt(options), {ramp(1)}).ok());
  for (const auto& file : fs::directory_iterator(directory_ / "cache"))
    fs::resize_file(file, fs::file_size(file) - 3);
  {
    const auto device = adopt(options);
    ASSERT_TRUE(get(*device, {ramp(1)}).ok());
    EXPECT_EQ(device->pipelines().stats().glsl_compiles, 1u);
    EXPECT_EQ(device->pipelines().stats().disk_hits, 0u);
  }
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], HasSubstr("damaged"));
  const auto device = adopt(options);
  ASSERT_TRUE(get(*device, {ramp(1)}).ok());
  EXPECT_EQ(device->pipelines().stats().disk_hits, 1u) << "mended";
}

TEST_F(VkPipelines, DoWithoutACacheThatCannotBeWritten) {
  std::ofstream(directory_.string()) << "a file";
  DeviceOptions options;
  options.shader_cache_directory = options.shader_dump_directory = (directory_ / "below").string();
  const auto device = adopt(options);
  ASSERT_TRUE(get(*device, {ramp(1)}).ok());
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(VkPipelines, DumpTheirText) {
  DeviceOptions options;
  options.shader_dump_directory = (directory_ / "dump").string();
  ASSERT_TRUE(get(*adopt(options), {ramp(5)}).ok());
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(directory_ / "dump"))
    names.push_back(file.path().filename().string());
  ASSERT_EQ(names.size(), 1u);
  EXPECT_THAT(names[0], ::testing::MatchesRegex("ramp_by_5-[0-9a-f]+\\.comp"));
}

TEST_F(VkPipelines, UseTheHostsCacheAndLeaveItAlone) {
  const auto host = host_->description();
  VkPipelineCache cache = VK_NULL_HANDLE;
  const auto plain = adopt();
  const Functions& f = plain->functions();
  const VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  ASSERT_EQ(f.vkCreatePipelineCache(host.device, &info, nullptr, &cache), VK_SUCCESS);
  {
    auto description = host;
    description.pipeline_cache = cache;
    auto device = Device::adopt(description, {});
    ASSERT_TRUE(device.ok());
    ASSERT_TRUE(get(**device, {ramp(1)}).ok());
  }
  std::size_t size = 0;
  EXPECT_EQ(f.vkGetPipelineCacheData(host.device, cache, &size, nullptr), VK_SUCCESS) << "still the host's";
  f.vkDestroyPipelineCache(host.device, cache, nullptr);
}

TEST_F(VkPipelines, TakeOverTheDriversCache) {
  std::vector<std::byte> kept;
  {
    const auto device = adopt();
    ASSERT_TRUE(get(*device, {ramp(1), ramp(2)}).ok());
    auto blob = device->pipelines().export_cache();
    ASSERT_TRUE(blob.ok()) << blob.error().message;
    kept = std::move(*blob);
  }
  const auto device = adopt();
  const auto taken = device->pipelines().import_cache(kept);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  const auto kernels = get(*device, {ramp(1), ramp(3)});
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  const auto again = device->pipelines().export_cache();
  ASSERT_TRUE(again.ok());
  EXPECT_GE(again->size(), kept.size());
  kept[kept.size() / 2] ^= std::byte{1};
  EXPECT_EQ(device->pipelines().import_cache(kept).error().code, ErrorCode::corrupt_file);
  EXPECT_TRUE(get(*device, {ramp(4)}).ok()) << "a refused cache does no harm";
}

TEST_F(VkPipelines, LeaveTheHostsCacheToTheHost) {
  const auto plain = adopt();
  const Functions& f = plain->functions();
  const VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  auto description = host_->description();
  ASSERT_EQ(f.vkCreatePipelineCache(description.device, &info, nullptr, &description.pipeline_cache),
            VK_SUCCESS);
  const auto blob = plain->pipelines().export_cache();
  ASSERT_TRUE(blob.ok());
  {
    auto device = Device::adopt(description, {});
    ASSERT_TRUE(device.ok());
    EXPECT_EQ((*device)->pipelines().export_cache().error().code, ErrorCode::unsupported);
    EXPECT_EQ((*device)->pipelines().import_cache(*blob).error().code, ErrorCode::unsupported);
  }
  f.vkDestroyPipelineCache(description.device, description.pipeline_cache, nullptr);
}

TEST_F(VkPipelines, ServeManyThreadsOnSeveralWorkers) {
  DeviceOptions options;
  options.compile_threads = 3;
  const auto device = adopt(options);
  std::vector<std::vector<Kernel>> found(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<KernelSource> sources;
      for (int i = 0; i < 8; ++i) sources.push_back(ramp(i + 1));
      auto kernels = device->pipelines().get(sources);
      ASSERT_TRUE(kernels.ok()) << kernels.error().message;
      found[t] = *kernels;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& kernels : found) {
    ASSERT_EQ(kernels.size(), 8u);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(kernels[i].pipeline, found[0][i].pipeline);
  }
  EXPECT_EQ(device->pipelines().stats().pipelines, 8u);
  EXPECT_EQ(device->pipelines().stats().glsl_compiles, 8u);
}

}  // namespace
}  // namespace imprint::vk
