#pragma once
// Where the game is shown: a window with an overlay, or pictures off screen. One frame:
//
//   stage.poll()         window only; sleeps a moment while minimised
//   stage.begin_frame()  opens the command buffer, outside a render pass: the place for Imprint's record()
//   stage.draw(...)      optional; without it nothing is drawn
//   stage.end_frame()    submits and presents
//
// The game and Imprint share the device of stage.host().

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
  std::string device;  // see VulkanOptions::device
  bool validation = false;
  bool window = true;  // false: off screen
  std::uint32_t width = 1280;
  std::uint32_t height = 720;
  std::string title = "Imprint pet";
};

// The content of a picture. draw() reads the pointers and does not keep them.
struct Show {
  // One yard, or a kennel's. The first 16 are drawn as a grid; 4 in pictures and on a software device.
  std::vector<const WorldView*> yards;
  const WorldView* ghost = nullptr;  // the pet that does not learn, drawn translucent in the first yard
  bool then = false;                 // the second yard shows the same pet as it was
  bool panels = true;                // false: no cards, only bubbles, and a single yard from near
};

class Stage {
 public:
  static Result<std::unique_ptr<Stage>> create(const StageOptions& options);
  ~Stage();

  VulkanHost& host();

  // Input since the last call. Always empty off screen.
  PlayerInput poll();
  Result<FrameStart> begin_frame();
  Result<> draw(const Show& show, const OverlayState& overlay);
  Result<> end_frame();

  // The picture of the last ended frame, if draw() was called in it. Waits for the GPU.
  Result<Picture> capture();

 private:
  struct Parts;
  explicit Stage(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace pet
