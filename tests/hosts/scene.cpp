#include "tests/hosts/scene.h"

#include "scene_frag.h"
#include "scene_vert.h"

namespace imprint::hosts {
namespace {

constexpr std::uint32_t kTriangles = 32;  // the last is the pet
constexpr std::uint32_t kPushBytes = 16;

}  // namespace

void Scene::make(PFN_vkGetDeviceProcAddr load, VkDevice device, VkRenderPass render_pass) {
  f_ = DrawFunctions::load(load, device);
  DrawPipelineDescription description;
  description.vertex_shader = scene_vert;
  description.fragment_shader = scene_frag;
  description.push_constants = {VK_SHADER_STAGE_VERTEX_BIT, 0, kPushBytes};
  pipeline_.make(f_, device, render_pass, description);
}

void Scene::bind(VkCommandBuffer commands, VkExtent2D extent) const {
  f_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_.handle());
  const VkViewport viewport{0, 0, static_cast<float>(extent.width), static_cast<float>(extent.height), 0, 1};
  const VkRect2D scissor{{0, 0}, extent};
  f_.vkCmdSetViewport(commands, 0, 1, &viewport);
  f_.vkCmdSetScissor(commands, 0, 1, &scissor);
}

void Scene::draw(VkCommandBuffer commands, float time_s, Place pet) const {
  const float push[4] = {pet.x, pet.y, time_s, 0};
  f_.vkCmdPushConstants(commands, pipeline_.layout(), VK_SHADER_STAGE_VERTEX_BIT, 0, kPushBytes, push);
  f_.vkCmdDraw(commands, 3, kTriangles, 0, 0);
}

}  // namespace imprint::hosts
