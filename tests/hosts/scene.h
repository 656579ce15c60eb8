#pragma once
// What the hosts here draw: a picture that depends on the time and on where the pet is, and on nothing else.
// Its functions come from the host's own vkGetDeviceProcAddr, so it works with whatever loader the host has.

#include "tests/hosts/colour_target.h"
#include "tests/hosts/pupil.h"

namespace imprint::hosts {

class Scene {
 public:
  void make(PFN_vkGetDeviceProcAddr load, VkDevice device, VkRenderPass render_pass);
  void destroy() { pipeline_.destroy(); }

  // Graphics state that draw relies on. A host may set it long before its render pass begins, and before its
  // guest records.
  void bind(VkCommandBuffer commands, VkExtent2D extent) const;
  void draw(VkCommandBuffer commands, float time_s, Place pet) const;  // within the render pass

 private:
  DrawFunctions f_;
  DrawPipeline pipeline_;
};

}  // namespace imprint::hosts
