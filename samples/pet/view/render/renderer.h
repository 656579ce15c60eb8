#pragma once
// A small renderer: sun with soft shadows, sky light, marks on the ground, one translucent layer. It draws
// into an image of its own, which a window then shows or a picture is read from.

#include <array>
#include <cstdint>
#include <vector>

#include "samples/pet/view/models/mesh_models.h"
#include "samples/pet/view/render/camera.h"
#include "samples/pet/view/render/picture.h"
#include "samples/pet/view/render/vulkan_host.h"
#include "samples/pet/view/render/vulkan_host_memory.h"

namespace pet {

enum class Layer : std::uint8_t {
  solid,  // lit, casts shadows
  sign,   // lit, casts none: what is not really there
  mark,   // unlit, translucent, on the ground or in the air; drawn in the order given
  ghost,  // lit, translucent as a whole: one sees the yard through it, not its own inside
};
inline constexpr std::size_t kLayerCount = 4;

enum class Surface : std::uint8_t { plain, ground, swaying };

struct Look {
  Vec3 tint{1.0f, 1.0f, 1.0f};  // sRGB; replaces a mesh's colour as far as its mask says, or all of a mark's
  float opacity = 1.0f;
  Surface surface = Surface::plain;
  float gloss = 0.0f;  // 0..1
  float glow = 0.0f;   // of its own light, 0..1
  float whole = 0.0f;  // how far the tint also colours what the mask leaves out
};

// What one frame shows.
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
  // `quick`: fewer samples and coarser shadows, for a software device that has to keep up with a window.
  Renderer(VulkanHost& host, VkExtent2D extent, bool quick);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // Waits for the GPU.
  void resize(VkExtent2D extent);
  VkExtent2D extent() const { return extent_; }

  // Records the scene. `center` and `reach`: the ground that the sun's shadows cover, metres.
  void draw(const FrameStart& frame, const Camera& camera, const DrawList& list, float time_s, Vec2 center,
            float reach);
  // Between these, an overlay may be drawn with pipelines made for overlay_pass(). Both are called in every
  // frame that draws.
  void begin_overlay(VkCommandBuffer commands);
  void end_overlay(VkCommandBuffer commands);
  VkRenderPass overlay_pass() const { return overlay_pass_; }

  // After end_overlay: in TRANSFER_SRC_OPTIMAL layout, ready for transfers.
  VkImage image() const { return color_.image(); }
  // What was drawn last; waits for the GPU.
  Picture capture();

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

  void upload_meshes();
  void create_passes();
  void create_shadow();
  void create_layout();
  void create_pipelines();
  void create_targets();
  void destroy_targets();
  VkPipeline create_pipeline(const PipelineRecipe& recipe);
  // Batches of layer l are those from layers[l] to layers[l + 1].
  std::vector<Batch> write_instances(FrameBuffers& buffers, const DrawList& list,
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
