// T10. Buffers that host and programs share, without a copy or the CPU: a program trains on what the host's
// compute shader wrote, and the host's shaders read and draw what a program wrote. A wrong declaration is
// refused by its field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/program/run.h"
#include "tests/hosts/bridge_shared_programs.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

TEST(T10SharedBuffers, AProgramTrainsOnWhatAShaderWroteAndShadersReadWhatAProgramWrote) {
  const std::vector<float> expected = play(kEverything, Mode::record);
  ASSERT_EQ(expected.size(), 5u);
  const float target[] = {2, -1, 0, 0.5f, 0.25f};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(expected[i], target[i], 0.02);
  EXPECT_EQ(play(kEverything, Mode::submit), expected);
  EXPECT_EQ(play(kBaseline, Mode::record), expected);
  EXPECT_EQ(play(kBaseline, Mode::submit), expected);
}

class T10SharedBuffer : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.ok());
    shaders_ = std::make_unique<BufferHost>(host_);
    context_ = taken(adopt_sharing(host_, Mode::submit));
  }
  void TearDown() override {
    context_.reset();
    shaders_.reset();
  }

  void refuses(const HostBuffer& declared, const char* field, ErrorCode code = ErrorCode::invalid_argument) {
    const auto imported = context_->import_buffer(declared);
    ASSERT_FALSE(imported) << field;
    EXPECT_EQ(imported.error().code, code) << imported.error().message;
    EXPECT_THAT(imported.error().message, HasSubstr("'host buffer': " + std::string(field)));
  }

  // Runs a frame and waits for it.
  void run(Program& program, std::uint64_t frame) {
    works(context_->frame_begin({frame, 0}));
    FrameJob job;
    job.program = &program;
    works(context_->enqueue(std::move(job)));
    works(context_->submit(~0u));
    works(context_->frame_end());
    works(context_->drain(60'000'000'000));
  }

  PlainHost host_{kEverything};
  std::unique_ptr<BufferHost> shaders_;
  std::unique_ptr<Context> context_;
};

TEST_F(T10SharedBuffer, RefusesABadDeclarationByItsField) {
  const HostBuffer good = shaders_->make_buffer(4096, kStorage);
  ASSERT_TRUE(context_->import_buffer(good));
  const std::uint32_t ours = host_.family();
  const auto with = [&](auto change) {
    HostBuffer bad = good;
    change(bad);
    return bad;
  };
  refuses(with([](HostBuffer& b) { b.buffer = VK_NULL_HANDLE; }), "buffer: found null");
  refuses(with([](HostBuffer& b) { b.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT; }),
          "usage: found no VK_BUFFER_USAGE_STORAGE_BUFFER_BIT");
  refuses(with([](HostBuffer& b) { b.size = 0; }), "size: found 0");
  refuses(with([](HostBuffer& b) { b.size = 1023; }), "size: found 1023");
  refuses(with([](HostBuffer& b) { b.offset = 2; }), "offset: found 2");
  refuses(with([](HostBuffer& b) { b.offset = 1 << 20; }),
          "offset and size: found 1048576 and 4096, expected a range within the buffer's");
  refuses(with([](HostBuffer& b) { b.size = 1 << 20; }), "offset and size: found 0 and 1048576");
  refuses(with([](HostBuffer& b) { b.sharing = static_cast<VkSharingMode>(7); }), "sharing: found 7");
  refuses(with([&](HostBuffer& b) { b.families = {ours, ours}; }), "families: found 2 entries");
  refuses(with([&](HostBuffer& b) { b.families = {99}; }), "families: found 99");
  refuses(with([&](HostBuffer& b) { b.sharing = VK_SHARING_MODE_CONCURRENT; }), "families: found 0 entries");
  refuses(with([&](HostBuffer& b) {
            b.sharing = VK_SHARING_MODE_CONCURRENT, b.families = {ours, ours};
          }),
          "families: found");
  refuses(with([&](HostBuffer& b) { b.sharing = VK_SHARING_MODE_CONCURRENT, b.families = {ours}; }),
          "families: found 1 entry");
  refuses(with([](HostBuffer& b) { b.memory_flags = VK_MEMORY_PROPERTY_PROTECTED_BIT; }), "memory_flags",
          ErrorCode::unsupported);
  refuses(with([](HostBuffer& b) { b.device_address = 4096; }), "device_address");
  refuses(with([](HostBuffer& b) { b.stages = 0; }), "stages: found 0 with access set");
}

TEST_F(T10SharedBuffer, RefusesATensorThatDoesNotFit) {
  const HostBuffer declared = shaders_->make_buffer(4096, kStorage);
  const auto buffer = taken(context_->import_buffer(declared));
  Runtime& runtime = context_->runtime();
  Variable large = Variable::external("large", {32, 33}), own = Variable::zeros("own", {4}),
           unplaced = Variable::external("unplaced", {4});
  EXPECT_THAT(runtime.place_in(large, buffer->range(buffer)).error().message,
              HasSubstr("size: found 4096 bytes, expected at least 4224"));
  EXPECT_THAT(runtime.place_in(own, buffer->range(buffer)).error().message, HasSubstr("its own memory"));
  ProgramDescription description;
  description.outputs = {unplaced.value() + 1.0f};
  EXPECT_THAT(Program::compile(runtime, description).error().message,
              HasSubstr("'unplaced': found an external one without a buffer"));
  Variable fits = Variable::external("fits", {32, 32});
  EXPECT_TRUE(runtime.place_in(fits, buffer->range(buffer)));
  EXPECT_THAT(runtime.place_in(fits, buffer->range(buffer)).error().message,
              HasSubstr("already has a buffer"));
  // The host created it for shaders alone.
  EXPECT_THAT(runtime.read(std::vector<Variable>{fits}).error().message,
              HasSubstr("VK_BUFFER_USAGE_TRANSFER_SRC_BIT"));
  EXPECT_THAT(runtime.write_zeros(fits).error().message, HasSubstr("VK_BUFFER_USAGE_TRANSFER_DST_BIT"));
  const std::vector<std::byte> bytes(4096);
  EXPECT_THAT(runtime.write(fits, bytes).error().message, HasSubstr("VK_BUFFER_USAGE_TRANSFER_DST_BIT"));
}

// Ranges of one buffer are separate tensors, and nothing outside them is touched.
TEST_F(T10SharedBuffer, RangesOfOneBufferKeepApart) {
  const std::uint64_t step =
      std::max<std::uint64_t>(256, context_->device().capabilities().min_storage_buffer_offset_alignment);
  const HostBuffer whole = shaders_->make_buffer(
      4 * step, kStorage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
  const auto part = [&](std::uint64_t index) {
    HostBuffer range = whole;
    range.offset = index * step;
    range.size = step;
    return taken(context_->import_buffer(range));
  };
  const auto from = part(1), into = part(2);
  Variable a = Variable::external("a", {16}), b = Variable::external("b", {16});
  works(context_->runtime().place_in(a, from->range(from)));
  works(context_->runtime().place_in(b, into->range(into)));
  const VkCommandBuffer commands = host_.begin_frame(1);
  shaders_->fill(commands, whole, 3, static_cast<std::uint32_t>(step));
  host_.end_frame();
  ProgramDescription description;
  description.updates = {Update::assign(b, a.value() * 2.0f + arange(0.0, 16, 1.0))};
  Program program = taken(Program::compile(context_->runtime(), description));
  run(program, 2);
  const VkCommandBuffer after = host_.begin_frame(3);
  shaders_->copy(after, whole);
  host_.end_frame();
  host_.finish_frames();
  for (std::uint64_t i = 0; i < step; ++i) {
    const std::uint64_t place = i - 2 * step / 4;
    EXPECT_EQ(shaders_->result()[i], i >= 2 * step / 4 && place < 16 ? 6 + static_cast<float>(place) : 3)
        << i;
  }
}

TEST_F(T10SharedBuffer, OursIsCountedCappedAndGivenBack) {
  vk::MemoryPool& memory = context_->device().memory();
  const vk::MemoryStats before = memory.stats();
  SharedBufferRequest request;
  request.size = 1 << 20;
  request.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  {
    const auto buffer = taken(context_->create_buffer(request));
    EXPECT_EQ(memory.stats().bytes_in_use, before.bytes_in_use + (1 << 20));
    EXPECT_GE(memory.stats().bytes_reserved, before.bytes_reserved + (1 << 20));
    const auto again = context_->import_buffer(buffer->description());
    EXPECT_TRUE(again) << "what we describe is a declaration: " << again.error().message;
  }
  context_->device().collect();
  EXPECT_EQ(memory.stats().bytes_reserved, before.bytes_reserved);
  request.size = 0;
  EXPECT_THAT(context_->create_buffer(request).error().message, HasSubstr("size: found 0"));
}

TEST_F(T10SharedBuffer, MayGoWhileTheGpuIsBusy) {
  Mover mover;
  {
    SharedBufferRequest request;
    request.size = kPoints * 2 * sizeof(float);
    mover.build(context_->runtime(), taken(context_->create_buffer(request)));
  }
  works(context_->frame_begin({1, 0}));
  FrameJob job;
  job.program = &*mover.program;
  works(context_->enqueue(std::move(job)));
  works(context_->submit(~0u));
  works(context_->frame_end());
  context_->cancel(*mover.program);
  mover = Mover();
  works(context_->drain(60'000'000'000));
}

TEST_F(T10SharedBuffer, HandoversHaveTurns) {
  const HostBuffer same = shaders_->make_buffer(4096, kStorage);
  HostBuffer other = same;
  std::uint32_t family_count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(host_.physical_device(), &family_count, nullptr);
  if (family_count < 2) GTEST_SKIP() << "this device has one queue family: nothing is ever handed over";
  other.families = {host_.family() == 0 ? 1u : 0u};
  const auto shared = taken(context_->import_buffer(same)), handed = taken(context_->import_buffer(other));
  EXPECT_FALSE(shared->transfers());
  EXPECT_TRUE(handed->transfers());
  EXPECT_FALSE(handed->owned_by_imprint());
  EXPECT_EQ(context_->acquire(handed).error().code, ErrorCode::wrong_state) << "no frame is open";
  works(context_->frame_begin({1, 0}));
  EXPECT_TRUE(context_->acquire(shared));
  EXPECT_TRUE(context_->release(shared));
  EXPECT_THAT(context_->release(handed).error().message, HasSubstr("Acquire it first"));
  works(context_->frame_end());
}

}  // namespace
}  // namespace imprint::bridge
