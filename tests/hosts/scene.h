#pragma once
// The picture that these hosts draw. It depends only on the time and the pet's place. Functions come from the
// host's vkGetDeviceProcAddr, so it works with any loader.

#include "tests/hosts/colour_target.h"
#include "tests/hosts/pupil.h"

namespace imprint::hosts {

class Scene {
 public:
  void make(PFN_vkGetDeviceProcAddr load, VkDevice device, VkRenderPass render_pass);
  void destroy() { pipeline_.destroy(); }

  // Sets graphics state for draw. A host may call it long before its render pass, and before Imprint records.
  void bind(VkCommandBuffer commands, VkExtent2D extent) const;
  void draw(VkCommandBuffer commands, float time_s, Place pet) const;  // inside the render pass

 private:
  DrawFunctions f_;
  DrawPipeline pipeline_;
};

}  // namespace imprint::hosts
