#include "tests/gpu/gpu_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace imprint::test {
namespace {

std::unique_ptr<bridge::Standalone>& shared_device() {
  static std::unique_ptr<bridge::Standalone> device;
  return device;
}

class CloseDevice : public testing::Environment {
 public:
  void TearDown() override {
    expect_validation_silent();
    shared_device().reset();
  }
};
const auto* const close_device = testing::AddGlobalTestEnvironment(new CloseDevice);

}  // namespace

bridge::Standalone* gpu() {
  std::unique_ptr<bridge::Standalone>& device = shared_device();
  if (!device) {
    const char* name = std::getenv("IMPRINT_TEST_DEVICE");
    const char* validation = std::getenv("IMPRINT_TEST_VALIDATION");
    bridge::StandaloneOptions options;
    options.device = name ? name : "";
    options.validation = !validation || std::string(validation) != "0";
    options.options.compile_threads = 2;
    options.options.schedule_as_gpu = std::getenv("IMPRINT_TEST_SCHEDULE_AS_GPU") != nullptr;
    options.options.ignore_16bit_storage = std::getenv("IMPRINT_TEST_IGNORE_16BIT") != nullptr;
    if (const char* range = std::getenv("IMPRINT_TEST_STORAGE_RANGE"))
      options.options.storage_buffer_range = std::strtoull(range, nullptr, 10);
    auto opened = bridge::Standalone::open(options);
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return nullptr;
    }
    device = std::move(*opened);
  }
  return device.get();
}

Session* shared_session() { return gpu() ? &gpu()->session() : nullptr; }

void run_slices(Program& program, std::span<const std::uint32_t> counts) {
  Runtime& runtime = shared_session()->runtime();
  vk::Queue& queue = *gpu()->context().queue();
  const Commands uploads = runtime.take_uploads().value();
  if (uploads.primary) ASSERT_TRUE(queue.submit(std::span(&uploads.primary, 1)).ok());
  vk::Ticket last;
  std::uint32_t piece = 0;
  for (const std::uint32_t count : counts) {
    std::vector<VkCommandBuffer> commands{runtime.barrier().primary};
    const auto pieces = program.pieces(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY).subspan(piece, count);
    commands.insert(commands.end(), pieces.begin(), pieces.end());
    last = queue.submit(commands).value();
    piece += count;
  }
  ASSERT_TRUE(queue.wait(last, 60'000'000'000).ok());
}

void expect_validation_silent() {
  static std::uint64_t seen = 0;
  if (!shared_device()) return;
  const std::uint64_t now = shared_device()->validation_messages();
  EXPECT_EQ(now, seen) << shared_device()->first_validation_message();
  seen = now;
}

}  // namespace imprint::test
