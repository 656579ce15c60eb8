#pragma once
// A small renderer: sun with soft shadows, sky light, marks on the ground, one translucent layer. It draws
// into its own image; a window shows that image, or a picture is read from it.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "samples/pet/view/models/mesh_models.h"
#include "samples/pet/view/render/camera.h"
#include "samples/pet/view/render/picture.h"
#include "samples/pet/view/render/vulkan_host.h"
#include "samples/pet/view/render/vulkan_host_memory.h"

namespace pet {

enum class Layer : std::uint8_t {
  solid,  // lit, casts shadows
  sign,   // lit, casts no shadow: signs of what the player said
  mark,   // unlit, translucent, on the ground or in the air; drawn in the order given
  ghost,  // lit, translucent as a whole: the yard shows through it, its own inside does not
};
inline constexpr std::size_t kLayerCount = 4;

enum class Surface : std::uint8_t { plain, ground, swaying };

struct Look {
  Vec3 tint{1.0f, 1.0f, 1.0f};  // sRGB; replaces a mesh's colour by its mask, or all of a mark's colour
  float opacity = 1.0f;
  Surface surface = Surface::plain;
  float gloss = 0.0f;  // 0..1
  float glow = 0.0f;   // its own light, 0..1
  float whole = 0.0f;  // how far the tint also colours the rest of the mesh, 0..1
};

// The meshes that one frame shows.
class DrawList {
 public:
  struct Instance {  // as the vertex shader reads it
    float rows[12];
    float tint[4];
    float surface[4];
  };
  struct Item {
    MeshId mesh;
    Instance instance;
  };

  void clear();
  void add(MeshId mesh, const Affine& at, const Look& look = {}, Layer layer = Layer::solid);
  const std::vector<Item>& items(Layer layer) const { return layers_[static_cast<std::size_t>(layer)]; }

 private:
  std::array<std::vector<Item>, kLayerCount> layers_;
};

class Renderer {
 public:
  // `quick`: fewer samples and coarser shadows, for a software device with a window.
  static Result<std::unique_ptr<Renderer>> create(VulkanHost& host, VkExtent2D extent, bool quick);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // Waits for the GPU.
  Result<> resize(VkExtent2D extent);
  VkExtent2D extent() const { return extent_; }

  // Records the scene. `center` and `reach`: the ground that shadows cover, metres.
  Result<> draw(const FrameStart& frame, const Camera& camera, const DrawList& list, float time_s,
                Vec2 center, float reach);
  // An overlay may be drawn between these two calls, with pipelines made for overlay_pass(). Every frame that
  // draws makes both calls.
  void begin_overlay(VkCommandBuffer commands);
  void end_overlay(VkCommandBuffer commands);
  VkRenderPass overlay_pass() const { return overlay_pass_; }

  // After end_overlay: in TRANSFER_SRC_OPTIMAL layout, ready for transfers.
  VkImage image() const { return color_.image(); }
  // The newest drawn image. Waits for the GPU.
  Result<Picture> capture();

 private:
  struct MeshRange {
    std::uint32_t first_index = 0, index_count = 0;
    std::int32_t first_vertex = 0;
  };
  struct FrameBuffers {
    GpuBuffer uniforms, instances;
    VkDescriptorSet set = VK_NULL_HANDLE;
  };
  struct PipelineRecipe;
  struct Batch {
    MeshId mesh;
    std::uint32_t first = 0, count = 0;
  };

  Renderer(VulkanHost& host, VkExtent2D extent, bool quick);
  Result<> upload_meshes();
  Result<> create_shadow_pass();
  Result<> create_scene_passes();
  Result<> create_shadow();
  Result<> create_layout();
  Result<> create_descriptors();
  Result<> create_pipelines();
  Result<> create_targets();
  void destroy_targets();
  Result<VkPipeline> create_pipeline(const PipelineRecipe& recipe);
  Result<VkPipeline> create_pipeline(const PipelineRecipe& recipe, VkShaderModule vertex,
                                     VkShaderModule fragment);
  void draw_shadows(VkCommandBuffer commands, const std::vector<Batch>& batches, std::size_t count) const;
  // Batches of layer l are those from layers[l] to layers[l + 1].
  Result<std::vector<Batch>> write_instances(FrameBuffers& buffers, const DrawList& list,
                                             std::array<std::size_t, kLayerCount + 1>& layers);
  void draw_batches(VkCommandBuffer commands, const std::vector<Batch>& batches, std::size_t from,
                    std::size_t to) const;

  VulkanHost& host_;
  VkExtent2D extent_;
  VkSampleCountFlagBits samples_ = VK_SAMPLE_COUNT_4_BIT;
  std::uint32_t shadow_size_ = 2048;
  VkFormat depth_format_ = VK_FORMAT_D32_SFLOAT;

  GpuBuffer vertices_, indices_;
  std::array<MeshRange, kMeshCount> ranges_{};
  std::array<FrameBuffers, VulkanHost::kFramesInFlight> frames_;

  VkRenderPass shadow_pass_ = VK_NULL_HANDLE, scene_pass_ = VK_NULL_HANDLE, overlay_pass_ = VK_NULL_HANDLE;
  GpuImage shadow_map_, color_, multisampled_, depth_;
  VkFramebuffer shadow_frame_ = VK_NULL_HANDLE, scene_frame_ = VK_NULL_HANDLE,
                overlay_frame_ = VK_NULL_HANDLE;
  VkSampler shadow_sampler_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline shadow_ = VK_NULL_HANDLE, sky_ = VK_NULL_HANDLE, solid_ = VK_NULL_HANDLE, mark_ = VK_NULL_HANDLE,
             ghost_depth_ = VK_NULL_HANDLE, ghost_color_ = VK_NULL_HANDLE;
};

}  // namespace pet
