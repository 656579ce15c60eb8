// T10. Buffers that change owner between queue families, and semaphores around a frame's work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/hosts/bridge_shared_programs.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

// The host's side of a buffer that changes owner: one command buffer at a time, which waits for Imprint's
// timeline value and signals its own.
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

  // The layer expects the release to be submitted before the acquisition, but Imprint's thread may submit
  // later. So the host's CPU waits too, although the semaphore would do.
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

// Imprint has its own queue, in another family where there is one. Semaphores order it with the host's work,
// and both buffers change owner in both directions.
class HandoverGame {
 public:
  HandoverGame(PlainHost& host, VkSemaphore timeline)
      : host_(host), timeline_(timeline), shaders_(host), queue_(host, timeline) {
    rows_ = shaders_.make_buffer(kRows * 5 * sizeof(float), kStorage);
    rows_.families = {theirs_};
    rows_.stages = rows_.access = 0;
    ContextDescription description;
    description.device = host.describe();
    description.budget = {0, 0};
    description.queue.queue = host.second_queue();
    description.queue.family = ours_;
    description.queue.exclusive = true;
    context_ = taken(Context::adopt(description));
    shared_rows_ = taken(context_->import_buffer(rows_));
    EXPECT_EQ(shared_rows_->transfers(), ours_ != theirs_);
    SharedBufferRequest request;
    request.name = "places";
    request.size = kPoints * 2 * sizeof(float);
    request.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
    request.families = {theirs_};
    places_ = taken(context_->create_buffer(request));
    learner_.build(context_->runtime(), shared_rows_);
    mover_.build(context_->runtime(), places_);
  }

  void frame(std::uint64_t frame) {
    queue_.run(3 * frame - 3, 3 * frame - 2, [&](VkCommandBuffer commands) {
      shaders_.write_rows(commands, rows_, static_cast<std::uint32_t>(frame), kRows);
      queue_.hand(commands, rows_, theirs_, ours_);
      if (frame > 1) queue_.hand(commands, places_->description(), theirs_, ours_);
    });
    imprint_frame(frame);
    // Semaphores are enough for the device. The layer sees the release only when Imprint's call has returned,
    // and the GPU may be faster.
    works(context_->quiesce(60'000'000'000));
    works(context_->resume());
    queue_.run(3 * frame - 1, 3 * frame, [&](VkCommandBuffer commands) {
      queue_.hand(commands, rows_, ours_, theirs_);
      queue_.hand(commands, places_->description(), ours_, theirs_);
      shaders_.draw_points(commands, places_->description(), kPoints);
      shaders_.double_and_add_one(commands, places_->description(), kPoints * 2);
    });
    const auto turn = static_cast<std::uint32_t>(frame - 1) % kPoints;
    Mover::expect_picture(shaders_.picture(), turn);
    for (std::uint32_t i = 0; i < kPoints; ++i)
      ASSERT_EQ(shaders_.result()[2 * i + 1],
                2 * ((static_cast<float>((i + turn) % kPoints) + 0.5f) / 32.0f - 1.0f) + 1);
  }

  std::vector<float> weights() {
    auto readback = taken(context_->runtime().read(std::vector<Variable>{learner_.weight, learner_.bias}));
    works(context_->frame_begin({kFrames + 1, 0}));
    works(context_->enqueue(readback->commands(), {}));
    works(context_->submit(~0u));
    works(context_->frame_end());
    works(context_->drain(60'000'000'000));
    std::vector<float> weights;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto* floats = reinterpret_cast<const float*>(readback->bytes(i).data());
      weights.insert(weights.end(), floats, floats + readback->bytes(i).size() / sizeof(float));
    }
    return weights;
  }

 private:
  void imprint_frame(std::uint64_t frame) {
    works(context_->frame_begin({frame, 0}));
    works(context_->acquire(shared_rows_));
    if (frame > 1) works(context_->acquire(places_));
    FrameJob step;
    step.program = &*learner_.program;
    step.kind = FrameJobKind::learn;
    step.deadline_frame = frame;
    works(context_->enqueue(std::move(step)));
    FrameJob move;
    move.program = &*mover_.program;
    works(context_->enqueue(std::move(move)));
    works(context_->release(shared_rows_));
    works(context_->release(places_));
    const HostSemaphore before{timeline_, true, 3 * frame - 2}, after{timeline_, true, 3 * frame - 1};
    works(context_->submit({~0u, {&before, 1}, {&after, 1}}));
    works(context_->frame_end());
  }

  PlainHost& host_;
  const VkSemaphore timeline_;
  const std::uint32_t theirs_ = host_.family(), ours_ = host_.second_family();
  BufferHost shaders_;
  OtherQueue queue_;
  HostBuffer rows_;
  std::unique_ptr<Context> context_;
  std::shared_ptr<SharedBuffer> shared_rows_, places_;
  Learner learner_;
  Mover mover_;
};

TEST(T10Handover, BuffersPassBetweenQueues) {
  HostProfile profile = kEverything;
  profile.second_queue = true;
  PlainHost host(profile);
  ASSERT_TRUE(host.ok());
  if (!host.second_queue()) GTEST_SKIP() << "this device has one queue";
  VkSemaphoreTypeCreateInfo kind{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  kind.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &kind};
  VkSemaphore timeline = VK_NULL_HANDLE;
  ASSERT_EQ(host.vk().vkCreateSemaphore(host.device(), &semaphore, nullptr, &timeline), VK_SUCCESS);
  std::vector<float> weights;
  {
    HandoverGame game(host, timeline);
    for (std::uint64_t frame = 1; frame <= kFrames; ++frame) ASSERT_NO_FATAL_FAILURE(game.frame(frame));
    weights = game.weights();
  }
  host.vk().vkDestroySemaphore(host.device(), timeline, nullptr);
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
  EXPECT_EQ(weights, play(kEverything, Mode::record)) << "the same rows in the same order, on either queue";
}

// Signals come after Imprint's work and waits before it, in an empty frame too.
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
      auto context = taken(adopt_sharing(host, Mode::submit));
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
      submit.completions = ends;
      if (!profile->everything) {
        const HostSemaphore foreign{first, true, 1};
        submit.completions = {&foreign, 1};
        EXPECT_EQ(context->submit(submit).error().code, ErrorCode::unsupported);
        submit.completions = {ends, 1};
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
