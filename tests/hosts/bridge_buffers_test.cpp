// T10. Buffers that host and programs share: a program trains on what a host's compute shader wrote, the
// host's shaders read and draw what a program wrote, with no copy and no trip over the processor; what was
// declared wrongly is refused by the name of its field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compute/graph/autodiff.h"
#include "compute/program/run.h"
#include "tests/hosts/buffer_host.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kRows = 32, kPoints = 64;
constexpr std::uint64_t kFrames = 120;
constexpr VkBufferUsageFlags kStorage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;

const HostProfile kBaseline{"baseline_1_1", VK_API_VERSION_1_1, false};
const HostProfile kEverything{"everything_1_3", VK_API_VERSION_1_3, true};

enum class Mode { record, submit };

Result<std::unique_ptr<Context>> adopt(PlainHost& host, Mode mode) {
  ContextDescription description;
  description.device = host.describe();
  description.budget = {0, 0};
  description.queue.family = host.family();
  description.queue.user = &host;
  if (mode == Mode::submit) {
    description.queue.queue = host.queue();
    description.queue.lock = [](void* user, VkQueue) { static_cast<PlainHost*>(user)->mutex().lock(); };
    description.queue.unlock = [](void* user, VkQueue) { static_cast<PlainHost*>(user)->mutex().unlock(); };
  }
  return Context::adopt(description);
}

template <class T>
T taken(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void works(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

// y = x w + b from rows [kRows, 5] of x0 .. x3 and y in a buffer of the host's.
struct Learner {
  Variable rows = Variable::external("rows", {kRows, 5});
  Variable weight = Variable("weight", {4, 1}, std::vector<float>{0, 0, 0, 0});
  Variable bias = Variable::zeros("bias", {1});
  std::optional<Program> program;

  void build(Runtime& runtime, const std::shared_ptr<SharedBuffer>& buffer) {
    works(runtime.place_in(rows, buffer->range(buffer)));
    const Tensor x = narrow(rows.value(), 1, 0, 4), y = narrow(rows.value(), 1, 4, 1);
    const Tensor loss = mean(square(matmul(x, weight.value()) + bias.value() - y));
    const Tensor parameters[] = {weight.value(), bias.value()};
    const std::vector<Tensor> slopes = taken(gradients(loss, parameters));
    ProgramDescription description;
    description.name = "train";
    description.updates = {Update::assign(weight, weight.value() - slopes[0] * 0.1f),
                           Update::assign(bias, bias.value() - slopes[1] * 0.1f)};
    program = taken(Program::compile(runtime, description));
  }
};

// Points (i, (i + turn) mod kPoints), in pixels of the picture, in the clip space of a vertex shader.
struct Mover {
  Variable turn = Variable::zeros("turn", {1});
  Variable places = Variable::external("places", {kPoints, 2});
  std::optional<Program> program;

  void build(Runtime& runtime, const std::shared_ptr<SharedBuffer>& buffer) {
    works(runtime.place_in(places, buffer->range(buffer)));
    const Tensor column = arange(0.0, kPoints, 1.0), sum = column + turn.value();
    const Tensor row = sum - floor(sum / float{kPoints}) * float{kPoints};
    ProgramDescription description;
    description.name = "move";
    description.updates = {Update::assign(places, (stack({column, row}, 1) + 0.5f) / 32.0f - 1.0f),
                           Update::assign(turn, turn.value() + 1.0f)};
    program = taken(Program::compile(runtime, description));
  }

  static void expect_picture(const std::vector<std::uint8_t>& picture, std::uint32_t turn) {
    for (std::uint32_t y = 0; y < kPoints; ++y)
      for (std::uint32_t x = 0; x < kPoints; ++x)
        ASSERT_EQ(picture[y * kPoints + x], (x + turn) % kPoints == y ? 255 : 0)
            << "pixel " << x << ", " << y << " after turn " << turn;
  }
};

// One game in which host and guest share two buffers; returns what was learned.
std::vector<float> play(const HostProfile& profile, Mode mode) {
  PlainHost host(profile);
  if (!host.ok()) return {};
  std::vector<float> weights;
  {
    BufferHost shaders(host);
    const HostBuffer rows = shaders.make_buffer(kRows * 5 * sizeof(float), kStorage);
    auto context = taken(adopt(host, mode));
    Learner learner;
    learner.build(context->runtime(), taken(context->import_buffer(rows)));
    SharedBufferRequest request;
    request.name = "places";
    request.size = kPoints * 2 * sizeof(float);
    request.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
    request.stages = VK_PIPELINE_STAGE_VERTEX_INPUT_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    request.access = VK_ACCESS_VERTEX_ATTRIBUTE_READ_BIT | VK_ACCESS_SHADER_READ_BIT;
    const std::shared_ptr<SharedBuffer> places = taken(context->create_buffer(request));
    EXPECT_NE(places->memory(), VkDeviceMemory{});
    Mover mover;
    mover.build(context->runtime(), places);
    auto readback = taken(context->runtime().read(std::vector<Variable>{learner.weight, learner.bias}));

    // With submit, the guest's work of a frame stands before the host's, and so is about the rows of the
    // frame before.
    const std::uint64_t first = mode == Mode::record ? 1 : 2, last = first + kFrames - 1;
    for (std::uint64_t frame = 1; frame <= last; ++frame) {
      const VkCommandBuffer commands = host.begin_frame(frame);
      if (mode == Mode::record) shaders.write_rows(commands, rows, static_cast<std::uint32_t>(frame), kRows);
      works(context->frame_begin({frame, host.safe_frame()}));
      if (frame >= first) {
        FrameJob step;
        step.program = &*learner.program;
        step.kind = FrameJobKind::learn;
        step.deadline_frame = frame;
        works(context->enqueue(std::move(step)));
        FrameJob move;
        move.program = &*mover.program;
        works(context->enqueue(std::move(move)));
      }
      if (mode == Mode::record)
        taken(context->record(commands, ~0u));
      else
        works(context->submit(~0u));
      works(context->frame_end());
      if (mode == Mode::submit) shaders.write_rows(commands, rows, static_cast<std::uint32_t>(frame), kRows);
      shaders.draw_points(commands, places->description(), kPoints);
      shaders.double_and_add_one(commands, places->description(), kPoints * 2);
      host.end_frame();
      if (frame == first || frame == last) {
        host.finish_frames();
        const auto turn = static_cast<std::uint32_t>(frame - first);
        Mover::expect_picture(shaders.picture(), turn % kPoints);
        for (std::uint32_t i = 0; i < kPoints; ++i) {
          EXPECT_EQ(shaders.result()[2 * i], 2 * ((static_cast<float>(i) + 0.5f) / 32.0f - 1.0f) + 1);
          EXPECT_EQ(shaders.result()[2 * i + 1],
                    2 * ((static_cast<float>((i + turn) % kPoints) + 0.5f) / 32.0f - 1.0f) + 1);
        }
      }
    }
    const VkCommandBuffer commands = host.begin_frame(last + 1);
    works(context->frame_begin({last + 1, host.safe_frame()}));
    works(context->enqueue(readback->commands(), {}));
    if (mode == Mode::record)
      taken(context->record(commands, ~0u));
    else
      works(context->submit(~0u));
    works(context->frame_end());
    host.end_frame();
    host.finish_frames();
    if (mode == Mode::submit) works(context->drain(60'000'000'000));
    for (std::size_t i = 0; i < 2; ++i) {
      const auto* floats = reinterpret_cast<const float*>(readback->bytes(i).data());
      weights.insert(weights.end(), floats, floats + readback->bytes(i).size() / sizeof(float));
    }
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
  return weights;
}

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
    context_ = taken(adopt(host_, Mode::submit));
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

  // The frame's work, and the host's wait for it.
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
          "families: found 1 entries");
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
              HasSubstr("needs 4224 bytes, the range has 4096"));
  EXPECT_THAT(runtime.place_in(own, buffer->range(buffer)).error().message, HasSubstr("memory of its own"));
  ProgramDescription description;
  description.outputs = {unplaced.value() + 1.0f};
  EXPECT_THAT(Program::compile(runtime, description).error().message,
              HasSubstr("'unplaced' is external and has no place yet"));
  Variable fits = Variable::external("fits", {32, 32});
  EXPECT_TRUE(runtime.place_in(fits, buffer->range(buffer)));
  EXPECT_THAT(runtime.place_in(fits, buffer->range(buffer)).error().message,
              HasSubstr("it has a place already"));
  // The host made it for shaders alone.
  EXPECT_THAT(runtime.read(std::vector<Variable>{fits}).error().message,
              HasSubstr("VK_BUFFER_USAGE_TRANSFER_SRC_BIT"));
  EXPECT_THAT(runtime.write_zeros(fits).error().message, HasSubstr("VK_BUFFER_USAGE_TRANSFER_DST_BIT"));
  const std::vector<std::byte> bytes(4096);
  EXPECT_THAT(runtime.write(fits, bytes).error().message, HasSubstr("VK_BUFFER_USAGE_TRANSFER_DST_BIT"));
}

// Ranges of one buffer are tensors of their own, and nothing outside them is touched.
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

// The host's side of a buffer that changes its owner: a command buffer at a time, waiting for the guest's
// point of a timeline and signalling its own.
class OtherQueue {
 public:
  OtherQueue(PlainHost& host, VkSemaphore timeline) : host_(host), vk_(host.vk()), timeline_(timeline) {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = host.family();
    EXPECT_EQ(vk_.vkCreateCommandPool(host.device(), &pool, nullptr, &pool_), VK_SUCCESS);
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    EXPECT_EQ(vk_.vkAllocateCommandBuffers(host.device(), &allocate, &commands_), VK_SUCCESS);
  }
  ~OtherQueue() {
    host_.wait_idle();
    vk_.vkDestroyCommandPool(host_.device(), pool_, nullptr);
  }

  // The layer looks for a release among what was submitted before the acquisition, and the guest's thread may
  // submit later than this one: so the host's processor waits too, though the semaphore alone would do.
  void run(std::uint64_t wait_for, std::uint64_t signal, const std::function<void(VkCommandBuffer)>& work) {
    wait(wait_for);
    EXPECT_EQ(vk_.vkResetCommandPool(host_.device(), pool_, 0), VK_SUCCESS);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    EXPECT_EQ(vk_.vkBeginCommandBuffer(commands_, &begin), VK_SUCCESS);
    work(commands_);
    EXPECT_EQ(vk_.vkEndCommandBuffer(commands_), VK_SUCCESS);
    VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    values.waitSemaphoreValueCount = values.signalSemaphoreValueCount = 1;
    values.pWaitSemaphoreValues = &wait_for;
    values.pSignalSemaphoreValues = &signal;
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
    info.waitSemaphoreCount = info.signalSemaphoreCount = info.commandBufferCount = 1;
    info.pWaitSemaphores = info.pSignalSemaphores = &timeline_;
    info.pWaitDstStageMask = &kStages;
    info.pCommandBuffers = &commands_;
    EXPECT_EQ(host_.submit(1, &info, VK_NULL_HANDLE), VK_SUCCESS);
    wait(signal);
  }

  void hand(VkCommandBuffer commands, const HostBuffer& buffer, std::uint32_t from, std::uint32_t to) {
    if (from == to) return;
    const bool ours = from == host_.family();
    const VkAccessFlags access =
        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_VERTEX_ATTRIBUTE_READ_BIT;
    VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
    barrier.srcAccessMask = ours ? VK_ACCESS_SHADER_WRITE_BIT : 0;
    barrier.dstAccessMask = ours ? 0 : access;
    barrier.srcQueueFamilyIndex = from;
    barrier.dstQueueFamilyIndex = to;
    barrier.buffer = buffer.buffer;
    barrier.offset = buffer.offset;
    barrier.size = buffer.size;
    vk_.vkCmdPipelineBarrier(commands, kStages,
                             ours ? VkPipelineStageFlags(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT) : kStages, 0,
                             0, nullptr, 1, &barrier, 0, nullptr);
  }

 private:
  static constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_VERTEX_INPUT_BIT;

  void wait(std::uint64_t value) {
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline_;
    info.pValues = &value;
    EXPECT_EQ(vk_.vkWaitSemaphores(host_.device(), &info, ~0ull), VK_SUCCESS);
  }

  PlainHost& host_;
  const VolkDeviceTable& vk_;
  VkSemaphore timeline_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

// A queue of the guest's own, in a family of its own where there is one: semaphores order it among the host's
// work, and both buffers go to and fro.
TEST(T10Handover, BuffersPassBetweenQueues) {
  HostProfile profile = kEverything;
  profile.second_queue = true;
  PlainHost host(profile);
  ASSERT_TRUE(host.ok());
  if (!host.second_queue()) GTEST_SKIP() << "this device has one queue";
  const std::uint32_t theirs = host.family(), ours = host.second_family();
  VkSemaphoreTypeCreateInfo kind{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  kind.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &kind};
  VkSemaphore timeline = VK_NULL_HANDLE;
  ASSERT_EQ(host.vk().vkCreateSemaphore(host.device(), &semaphore, nullptr, &timeline), VK_SUCCESS);
  std::vector<float> weights;
  {
    BufferHost shaders(host);
    OtherQueue queue(host, timeline);
    HostBuffer rows = shaders.make_buffer(kRows * 5 * sizeof(float), kStorage);
    rows.families = {theirs};
    rows.stages = rows.access = 0;
    ContextDescription description;
    description.device = host.describe();
    description.budget = {0, 0};
    description.queue.queue = host.second_queue();
    description.queue.family = ours;
    description.queue.exclusive = true;
    auto context = taken(Context::adopt(description));
    const auto shared_rows = taken(context->import_buffer(rows));
    EXPECT_EQ(shared_rows->transfers(), ours != theirs);
    SharedBufferRequest request;
    request.name = "places";
    request.size = kPoints * 2 * sizeof(float);
    request.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
    request.families = {theirs};
    const auto places = taken(context->create_buffer(request));
    Learner learner;
    learner.build(context->runtime(), shared_rows);
    Mover mover;
    mover.build(context->runtime(), places);
    for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
      queue.run(3 * frame - 3, 3 * frame - 2, [&](VkCommandBuffer commands) {
        shaders.write_rows(commands, rows, static_cast<std::uint32_t>(frame), kRows);
        queue.hand(commands, rows, theirs, ours);
        if (frame > 1) queue.hand(commands, places->description(), theirs, ours);
      });
      works(context->frame_begin({frame, 0}));
      works(context->acquire(shared_rows));
      if (frame > 1) works(context->acquire(places));
      FrameJob step;
      step.program = &*learner.program;
      step.kind = FrameJobKind::learn;
      step.deadline_frame = frame;
      works(context->enqueue(std::move(step)));
      FrameJob move;
      move.program = &*mover.program;
      works(context->enqueue(std::move(move)));
      works(context->release(shared_rows));
      works(context->release(places));
      const HostSemaphore before{timeline, true, 3 * frame - 2}, behind{timeline, true, 3 * frame - 1};
      works(context->submit({~0u, {&before, 1}, {&behind, 1}}));
      works(context->frame_end());
      // The semaphores are enough for the device. The layer hears of the release when the guest's call has
      // returned, which the GPU may be quicker than.
      works(context->quiesce(60'000'000'000));
      works(context->resume());
      queue.run(3 * frame - 1, 3 * frame, [&](VkCommandBuffer commands) {
        queue.hand(commands, rows, ours, theirs);
        queue.hand(commands, places->description(), ours, theirs);
        shaders.draw_points(commands, places->description(), kPoints);
        shaders.double_and_add_one(commands, places->description(), kPoints * 2);
      });
      const auto turn = static_cast<std::uint32_t>(frame - 1) % kPoints;
      Mover::expect_picture(shaders.picture(), turn);
      for (std::uint32_t i = 0; i < kPoints; ++i)
        ASSERT_EQ(shaders.result()[2 * i + 1],
                  2 * ((static_cast<float>((i + turn) % kPoints) + 0.5f) / 32.0f - 1.0f) + 1);
    }
    auto readback = taken(context->runtime().read(std::vector<Variable>{learner.weight, learner.bias}));
    works(context->frame_begin({kFrames + 1, 0}));
    works(context->enqueue(readback->commands(), {}));
    works(context->submit(~0u));
    works(context->frame_end());
    works(context->drain(60'000'000'000));
    for (std::size_t i = 0; i < 2; ++i) {
      const auto* floats = reinterpret_cast<const float*>(readback->bytes(i).data());
      weights.insert(weights.end(), floats, floats + readback->bytes(i).size() / sizeof(float));
    }
  }
  host.vk().vkDestroySemaphore(host.device(), timeline, nullptr);
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
  EXPECT_EQ(weights, play(kEverything, Mode::record)) << "the same rows in the same order, in whosever queue";
}

// What the host waits for comes behind our work, and what we wait for before it, in an empty frame too.
TEST(T10Semaphores, OrderOurWorkAmongTheHosts) {
  for (const HostProfile* profile : {&kBaseline, &kEverything}) {
    PlainHost host(*profile);
    ASSERT_TRUE(host.ok());
    const VolkDeviceTable& vk = host.vk();
    const auto make = [&](VkSemaphoreType type) {
      VkSemaphoreTypeCreateInfo kind{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
      kind.semaphoreType = type;
      VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
      if (type == VK_SEMAPHORE_TYPE_TIMELINE) info.pNext = &kind;
      VkSemaphore semaphore = VK_NULL_HANDLE;
      EXPECT_EQ(vk.vkCreateSemaphore(host.device(), &info, nullptr, &semaphore), VK_SUCCESS);
      return semaphore;
    };
    const VkSemaphore first = make(VK_SEMAPHORE_TYPE_BINARY), second = make(VK_SEMAPHORE_TYPE_BINARY);
    const VkSemaphore timeline = profile->everything ? make(VK_SEMAPHORE_TYPE_TIMELINE) : VK_NULL_HANDLE;
    {
      auto context = taken(adopt(host, Mode::submit));
      VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
      info.signalSemaphoreCount = 1;
      info.pSignalSemaphores = &first;
      ASSERT_EQ(host.submit(1, &info, VK_NULL_HANDLE), VK_SUCCESS);

      works(context->frame_begin({1, 0}));
      const HostSemaphore none, waits[] = {{first}}, ends[] = {{second}, {timeline, true, 7}};
      SubmitInfo submit;
      submit.waits = {&none, 1};
      EXPECT_THAT(context->submit(submit).error().message, HasSubstr("waits[0].semaphore: found null"));
      submit.waits = waits;
      submit.signals = ends;
      if (!profile->everything) {
        const HostSemaphore foreign{first, true, 1};
        submit.signals = {&foreign, 1};
        EXPECT_EQ(context->submit(submit).error().code, ErrorCode::unsupported);
        submit.signals = {ends, 1};
      }
      works(context->submit(submit));
      works(context->frame_end());

      const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
      VkSubmitInfo after{VK_STRUCTURE_TYPE_SUBMIT_INFO};
      after.waitSemaphoreCount = 1;
      after.pWaitSemaphores = &second;
      after.pWaitDstStageMask = &stages;
      ASSERT_EQ(host.submit(1, &after, VK_NULL_HANDLE), VK_SUCCESS);
      works(context->drain(60'000'000'000));
      host.wait_idle();
      if (timeline) {
        std::uint64_t value = 0;
        EXPECT_EQ(vk.vkGetSemaphoreCounterValue(host.device(), timeline, &value), VK_SUCCESS);
        EXPECT_EQ(value, 7u);
      }
    }
    for (const VkSemaphore semaphore : {first, second, timeline})
      vk.vkDestroySemaphore(host.device(), semaphore, nullptr);
  }
}

}  // namespace
}  // namespace imprint::bridge
