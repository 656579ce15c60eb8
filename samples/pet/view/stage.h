#pragma once
// What the game shows itself on: a window with an overlay, or pictures off screen. One frame of the game is
//
//   PlayerInput input = stage.poll();           // window only; sleeps a moment while minimised
//   FrameStart frame = stage.begin_frame();     // frame.commands is recording, outside a render pass: the
//   place for imprint's record() stage.draw(show, overlay);                  // may be left out: nothing is
//   drawn then stage.end_frame();                          // submits, presents
//
// All of it, and Imprint, runs on stage.host()'s one device.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "samples/pet/view/input/player_input.h"
#include "samples/pet/view/overlay/overlay_state.h"
#include "samples/pet/view/render/picture.h"
#include "samples/pet/view/render/vulkan_host.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

struct StageOptions {
  std::string device;  // as VulkanOptions::device
  bool validation = false;
  bool window = true;  // false: off screen
  std::uint32_t width = 1280;
  std::uint32_t height = 720;
  std::string title = "Imprint pet";
};

// What to draw. Pointers are read during draw() only.
struct Show {
  std::vector<const WorldView*> yards;  // one, or a kennel's: the first 16 are drawn as a grid (4 on a
                                        // software device with a window, and in pictures)
  const WorldView* ghost = nullptr;     // the pet that does not learn, drawn translucent in the first yard
  bool then = false;                    // the second yard is the same pet's, as it was
  bool panels = true;  // false: no cards, only bubbles, and one yard is seen from near, as for pictures
};

class Stage {
 public:
  explicit Stage(const StageOptions& options);  // throws VulkanError
  ~Stage();

  VulkanHost& host();

  // Input since the last call. Off screen: nothing, ever.
  PlayerInput poll();
  FrameStart begin_frame();
  void draw(const Show& show, const OverlayState& overlay);
  void end_frame();

  // The picture that draw() made in the last ended frame; waits for the GPU.
  Picture capture();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pet
