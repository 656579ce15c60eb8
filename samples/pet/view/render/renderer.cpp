// A frame of the renderer. renderer_setup.cpp and renderer_pipelines.cpp create it.

#include "samples/pet/view/render/renderer.h"

#include <cstring>

#include "samples/pet/view/render/renderer_scene.h"

namespace pet {
namespace {

constexpr Vec3 kSunDirection{-0.46f, -0.38f, 0.80f};

// Orthographic, along the sun, over a disc of ground; texture coordinates and depth in 0..1.
Mat4 shadow_matrix(Vec3 sun, Vec2 center, float reach) {
  const Vec3 right = normalize(cross({0, 0, 1}, sun)), up = cross(sun, right);
  const Vec3 target{center.x, center.y, 0.0f};
  const float s = 0.5f / reach, depth = 0.5f / (reach * 1.6f);
  Mat4 m;
  m.m = {right.x * s,
         up.x * s,
         -sun.x * depth,
         0,
         right.y * s,
         up.y * s,
         -sun.y * depth,
         0,
         right.z * s,
         up.z * s,
         -sun.z * depth,
         0,
         0.5f - dot(right, target) * s,
         0.5f - dot(up, target) * s,
         0.5f + dot(sun, target) * depth,
         1};
  return m;
}

void set_viewport(VkCommandBuffer commands, VkExtent2D extent) {
  const VkViewport viewport{0.0f, 0.0f, static_cast<float>(extent.width), static_cast<float>(extent.height),
                            0.0f, 1.0f};
  const VkRect2D scissor{{0, 0}, extent};
  vkCmdSetViewport(commands, 0, 1, &viewport);
  vkCmdSetScissor(commands, 0, 1, &scissor);
}

}  // namespace

void DrawList::clear() {
  for (auto& layer : layers_) layer.clear();
}

void DrawList::add(MeshId mesh, const Affine& at, const Look& look, Layer layer) {
  const Instance instance{{at.x.x, at.y.x, at.z.x, at.origin.x, at.x.y, at.y.y, at.z.y, at.origin.y, at.x.z,
                           at.y.z, at.z.z, at.origin.z},
                          {look.tint.x, look.tint.y, look.tint.z, look.opacity},
                          {static_cast<float>(look.surface), look.gloss, look.glow, look.whole}};
  layers_[static_cast<std::size_t>(layer)].push_back({mesh, instance});
}

// Neighbours of one mesh become one draw. Marks keep their order, because they blend; the other layers are
// gathered by mesh.
Result<std::vector<Renderer::Batch>> Renderer::write_instances(
    FrameBuffers& buffers, const DrawList& list, std::array<std::size_t, kLayerCount + 1>& layers) {
  std::size_t count = 0;
  for (std::size_t layer = 0; layer < kLayerCount; ++layer)
    count += list.items(static_cast<Layer>(layer)).size();
  const VkDeviceSize needed = std::max<VkDeviceSize>(count, 1) * sizeof(DrawList::Instance);
  // The slot's last frame is complete, so a larger buffer may replace its buffer.
  if (buffers.instances.size() < needed) {
    PET_ASSIGN(buffers.instances,
               GpuBuffer::create(host_, needed * 2, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT, true));
  }

  std::vector<Batch> batches;
  auto* out = static_cast<DrawList::Instance*>(buffers.instances.data());
  std::uint32_t at = 0;
  for (std::size_t layer = 0; layer < kLayerCount; ++layer) {
    layers[layer] = batches.size();
    const auto& items = list.items(static_cast<Layer>(layer));
    const auto put = [&](const DrawList::Item& item) {
      if (batches.size() == layers[layer] || batches.back().mesh != item.mesh)
        batches.push_back({item.mesh, at, 0});
      std::memcpy(&out[at++], &item.instance, sizeof(item.instance));
      ++batches.back().count;
    };
    if (static_cast<Layer>(layer) == Layer::mark) {
      for (const auto& item : items) put(item);
      continue;
    }
    for (std::size_t mesh = 0; mesh < kMeshCount; ++mesh)
      for (const auto& item : items)
        if (static_cast<std::size_t>(item.mesh) == mesh) put(item);
  }
  layers[kLayerCount] = batches.size();
  return batches;
}

void Renderer::draw_batches(VkCommandBuffer commands, const std::vector<Batch>& batches, std::size_t from,
                            std::size_t to) const {
  for (std::size_t i = from; i < to; ++i) {
    const MeshRange& range = ranges_[static_cast<std::size_t>(batches[i].mesh)];
    vkCmdDrawIndexed(commands, range.index_count, batches[i].count, range.first_index, range.first_vertex,
                     batches[i].first);
  }
}

void Renderer::draw_shadows(VkCommandBuffer commands, const std::vector<Batch>& batches,
                            std::size_t count) const {
  VkClearValue clear{};
  clear.depthStencil = {1.0f, 0};
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = shadow_pass_;
  begin.framebuffer = shadow_frame_;
  begin.renderArea = {{0, 0}, {shadow_size_, shadow_size_}};
  begin.clearValueCount = 1;
  begin.pClearValues = &clear;
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  set_viewport(commands, {shadow_size_, shadow_size_});
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, shadow_);
  for (std::size_t i = 0; i < count; ++i)
    if (batches[i].mesh != MeshId::island && batches[i].mesh != MeshId::meadow)
      draw_batches(commands, batches, i, i + 1);  // these two lie below everything else
  vkCmdEndRenderPass(commands);
}

Result<> Renderer::draw(const FrameStart& frame, const Camera& camera, const DrawList& list, float time_s,
                        Vec2 center, float reach) {
  FrameBuffers& buffers = frames_[frame.slot];
  std::array<std::size_t, kLayerCount + 1> layers{};
  PET_ASSIGN(const std::vector<Batch> batches, write_instances(buffers, list, layers));

  const Vec3 sun = normalize(kSunDirection);
  SceneUniforms scene{};
  scene.view_projection = camera.view_projection();
  scene.to_shadow = shadow_matrix(sun, center, reach);
  scene.eye = {camera.eye().x, camera.eye().y, camera.eye().z, time_s};
  scene.sun = {sun.x, sun.y, sun.z, 1.0f / static_cast<float>(shadow_size_)};
  scene.picture = {static_cast<float>(extent_.width), static_cast<float>(extent_.height), 0.0f, 0.0f};
  std::memcpy(buffers.uniforms.data(), &scene, sizeof(scene));

  const VkCommandBuffer commands = frame.commands;
  const auto from = [&](Layer layer) { return layers[static_cast<std::size_t>(layer)]; };
  const auto draw_layer = [&](VkPipeline pipeline, Layer layer) {
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
    draw_batches(commands, batches, from(layer), layers[static_cast<std::size_t>(layer) + 1]);
  };
  const VkBuffer vertex_buffers[] = {vertices_.buffer(), buffers.instances.buffer()};
  const VkDeviceSize offsets[] = {0, 0};
  vkCmdBindVertexBuffers(commands, 0, 2, vertex_buffers, offsets);
  vkCmdBindIndexBuffer(commands, indices_.buffer(), 0, VK_INDEX_TYPE_UINT32);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout_, 0, 1, &buffers.set, 0, nullptr);

  draw_shadows(commands, batches, from(Layer::sign));

  VkClearValue clears[2]{};
  clears[1].depthStencil = {1.0f, 0};
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = scene_pass_;
  begin.framebuffer = scene_frame_;
  begin.renderArea = {{0, 0}, extent_};
  begin.clearValueCount = 2;
  begin.pClearValues = clears;
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  set_viewport(commands, extent_);
  draw_layer(solid_, Layer::solid);
  draw_layer(solid_, Layer::sign);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, sky_);
  vkCmdDraw(commands, 3, 1, 0, 0);
  draw_layer(mark_, Layer::mark);
  // Depth first, so that only the ghost's outermost surface gets colour.
  draw_layer(ghost_depth_, Layer::ghost);
  draw_layer(ghost_color_, Layer::ghost);
  vkCmdEndRenderPass(commands);
  return {};
}

void Renderer::begin_overlay(VkCommandBuffer commands) {
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = overlay_pass_;
  begin.framebuffer = overlay_frame_;
  begin.renderArea = {{0, 0}, extent_};
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
}

void Renderer::end_overlay(VkCommandBuffer commands) { vkCmdEndRenderPass(commands); }

Result<Picture> Renderer::capture() {
  PET_CHECK(host_.wait_idle());
  Picture picture{extent_.width, extent_.height, {}};
  const std::size_t size = static_cast<std::size_t>(extent_.width) * extent_.height * 4;
  PET_ASSIGN(const GpuBuffer pixels, GpuBuffer::create(host_, size, VK_BUFFER_USAGE_TRANSFER_DST_BIT, true));
  const Result<> copied = host_.run_once([&](VkCommandBuffer commands) {
    VkBufferImageCopy whole{};
    whole.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    whole.imageExtent = {extent_.width, extent_.height, 1};
    vkCmdCopyImageToBuffer(commands, color_.image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, pixels.buffer(), 1,
                           &whole);
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier,
                         0, nullptr, 0, nullptr);
  });
  if (!copied) return copied.error();
  const auto* bytes = static_cast<const std::uint8_t*>(pixels.data());
  picture.rgba.assign(bytes, bytes + size);
  return picture;
}

}  // namespace pet
