#include "samples/pet/view/stage.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "samples/pet/view/input/window.h"
#include "samples/pet/view/overlay/overlay.h"
#include "samples/pet/view/render/renderer.h"
#include "samples/pet/view/scene_view.h"
#include "samples/pet/view/stage_input.h"

namespace pet {
namespace {

constexpr std::size_t kPicturedYards = 4;

}  // namespace

struct Stage::Parts {
  // The order matters: each member needs those before it until it is destroyed.
  std::unique_ptr<Window> window;
  std::unique_ptr<VulkanHost> host;
  std::unique_ptr<Renderer> renderer;
  std::unique_ptr<Overlay> overlay;

  SceneView scene;
  DrawList list;
  Camera camera;
  StageInput input;
  FrameStart frame;
  bool acquired = false;
  std::chrono::steady_clock::time_point polled = std::chrono::steady_clock::now();
  double last_seconds = -1.0;  // time of the last drawn frame: real with a window, simulated without

  ~Parts() {
    if (host) (void)host->wait_idle();
    overlay.reset();
    renderer.reset();
    if (window) window->detach();
  }
};

Stage::Stage(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Stage>> Stage::create(const StageOptions& options) {
  auto parts = std::make_unique<Parts>();
  Parts& p = *parts;
  VulkanOptions vulkan;
  vulkan.device = options.device;
  vulkan.validation = options.validation;
  VkExtent2D extent{options.width, options.height};
  if (options.window) {
    PET_ASSIGN(p.window, Window::create(options.width, options.height, options.title));
    p.window->fill(vulkan);
  }
  PET_ASSIGN(p.host, VulkanHost::create(vulkan));
  if (p.window) {
    PET_CHECK(p.window->attach(*p.host));
    p.window->set_events(p.input.events());
    extent = p.window->size();
  }
  const bool quick = p.window && p.host->properties().deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  if (quick) p.scene = SceneView(4);
  PET_ASSIGN(p.renderer, Renderer::create(*p.host, extent, quick));
  PET_ASSIGN(p.overlay,
             Overlay::create(*p.host, p.renderer->overlay_pass(), p.window ? p.window->handle() : nullptr));
  p.input.attach(p.camera, *p.overlay);
  return std::unique_ptr<Stage>(new Stage(std::move(parts)));
}

Stage::~Stage() = default;

VulkanHost& Stage::host() { return *parts_->host; }

PlayerInput Stage::poll() {
  Parts& p = *parts_;
  if (!p.window) return {};
  p.window->poll();
  if (p.window->closed()) p.input.pending().quit = true;
  const auto now = std::chrono::steady_clock::now();
  const float seconds = std::chrono::duration<float>(now - p.polled).count();
  p.polled = now;
  const std::optional<PadState> pad = p.window->pad();
  p.input.pad(pad, std::min(seconds, 0.1f));
  p.input.hold(p.window->pressed(StageInput::praise_key()) || (pad && pad->buttons[PadState::a]), seconds);
  return p.input.take();
}

Result<FrameStart> Stage::begin_frame() {
  Parts& p = *parts_;
  // Resizing waits for the GPU, so it comes before the frame opens.
  if (p.window && !p.window->hidden()) {
    const VkExtent2D now = p.window->size(), was = p.renderer->extent();
    if (now.width != was.width || now.height != was.height) PET_CHECK(p.renderer->resize(now));
  }
  PET_CHECK(p.overlay->apply_scale(p.renderer->extent()));
  p.acquired = false;
  PET_ASSIGN(p.frame, p.host->begin_frame());
  return p.frame;
}

Result<> Stage::draw(const Show& show, const OverlayState& overlay) {
  Parts& p = *parts_;
  if (show.yards.empty()) return {};
  // A picture of a kennel is seen small: it shows a few yards only.
  std::vector<const WorldView*> yards = show.yards;
  if (!show.panels && yards.size() > kPicturedYards) yards.resize(kPicturedYards);
  if (p.window) {
    PET_ASSIGN(p.acquired, p.window->acquire(p.frame.slot));
    if (!p.acquired) return {};
  }

  const WorldView& first = *yards[0];
  const double now =
      p.window ? std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()
               : first.time_s;
  const float seconds = p.last_seconds < 0.0 ? 1.0f : static_cast<float>(std::max(0.0, now - p.last_seconds));
  p.last_seconds = now;
  p.scene.update(yards, show.ghost, seconds);

  const VkExtent2D extent = p.renderer->extent();
  const Region region = p.overlay->free_region(extent, show.panels, !overlay.kennel.empty());
  const bool close = !show.panels && yards.size() == 1;
  const SceneView::Frame view =
      close ? p.scene.close_frame(first) : SceneView::Frame{p.scene.center(), p.scene.half()};
  p.camera.frame(static_cast<float>(extent.width), static_cast<float>(extent.height), region, view.center,
                 view.half, close ? 1.7f : 1.4f);
  const float youngest_sign = close && !p.window ? 0.5f : 0.0f;
  p.scene.draw(yards, show.ghost, p.camera, youngest_sign, show.then, p.list);
  const Vec2 half = p.scene.half();
  PET_CHECK(p.renderer->draw(p.frame, p.camera, p.list, static_cast<float>(std::fmod(first.time_s, 3600.0)),
                             p.scene.center(), std::hypot(half.x, half.y) + 0.3f));

  Anchors anchors;
  anchors.youngest_sign = youngest_sign;
  anchors.camera = &p.camera;
  anchors.world = &first;
  anchors.offset = p.scene.offset(0);
  const Vec3 offset{anchors.offset.x, anchors.offset.y, 0.0f};
  anchors.pet = p.scene.pet_top(first) + offset;
  anchors.player = SceneView::player_top(first) + offset;
  anchors.then = show.then;
  if (show.then && yards.size() > 1) anchors.then_offset = p.scene.offset(1);
  anchors.ghost = show.ghost && SceneView::ghost_apart(first, *show.ghost) > 0.5f;
  if (anchors.ghost) anchors.ghost_pet = p.scene.ghost_top(*show.ghost) + offset;
  p.overlay->build(extent, seconds, overlay, anchors, show.panels, p.input.pending());
  p.renderer->begin_overlay(p.frame.commands);
  PET_CHECK(p.overlay->record(p.frame.commands));
  p.renderer->end_overlay(p.frame.commands);
  if (p.window) p.window->show(p.frame.commands, p.renderer->image(), extent);
  p.input.see(first, anchors);
  return {};
}

Result<> Stage::end_frame() {
  Parts& p = *parts_;
  if (!p.acquired) return p.host->end_frame();
  PET_CHECK(p.host->end_frame(p.window->acquired(), p.window->finished()));
  return p.window->present();
}

Result<Picture> Stage::capture() { return parts_->renderer->capture(); }

}  // namespace pet
