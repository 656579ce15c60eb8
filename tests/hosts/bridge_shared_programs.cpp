#include "tests/hosts/bridge_shared_programs.h"

namespace imprint::bridge {

Result<std::unique_ptr<Context>> adopt_sharing(PlainHost& host, Mode mode) {
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

std::vector<float> play(const HostProfile& profile, Mode mode) {
  PlainHost host(profile);
  if (!host.ok()) return {};
  std::vector<float> weights;
  {
    BufferHost shaders(host);
    const HostBuffer rows = shaders.make_buffer(kRows * 5 * sizeof(float), kStorage);
    auto context = taken(adopt_sharing(host, mode));
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

    // With submit, Imprint's work of a frame comes before the host's, and so uses the rows of the frame
    // before.
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

}  // namespace imprint::bridge
