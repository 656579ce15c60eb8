#pragma once
// The overlay over the yard: cards with bars and curves, buttons, bubbles. Dear ImGui draws it, without a
// window too.

#include <memory>
#include <vector>

#include "samples/pet/view/input/player_input.h"
#include "samples/pet/view/overlay/overlay_draw.h"
#include "samples/pet/view/overlay/overlay_state.h"
#include "samples/pet/view/render/camera.h"
#include "samples/pet/view/render/vulkan_host.h"
#include "samples/pet/yard/world_view.h"

struct GLFWwindow;

namespace pet {

// Places of bubbles, in world coordinates.
struct Anchors {
  const Camera* camera = nullptr;
  const WorldView* world = nullptr;  // the first yard
  Vec2 offset;                       // the first yard's
  Vec3 pet, player;
  bool ghost = false;
  Vec3 ghost_pet;
  bool then = false;           // the second yard shows the pet as it was
  Vec2 then_offset;            // the second yard's
  float youngest_sign = 0.0f;  // seconds; see SceneView::draw
};

class Overlay {
 public:
  // `window` is null off screen.
  static Result<std::unique_ptr<Overlay>> create(VulkanHost& host, VkRenderPass pass, GLFWwindow* window);
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  // Builds the overlay of one frame. Adds what its buttons ask for to `input`.
  void build(VkExtent2D size, float seconds, const OverlayState& state, const Anchors& anchors, bool panels,
             PlayerInput& input);
  // Records the overlay inside the render pass given above.
  Result<> record(VkCommandBuffer commands);

  // The part of the picture without panels.
  Region free_region(VkExtent2D size, bool panels, bool kennel) const;

  bool wants_mouse() const;
  // The text field is open: keys are letters.
  bool typing() const { return text_ != Text::none; }
  // Open the text field in the next frame: to say a command, or to rename the last one.
  void ask_word() { wanted_text_ = Text::say; }
  void ask_name() { wanted_text_ = Text::name; }
  // While the field is open: take the word, or leave it. Dear ImGui misses a key that is down for less than a
  // slow frame, so these calls tell it.
  void take_word() { word_taken_ = true; }
  void leave_word() { text_ = Text::none; }
  void toggle_help() { help_ = !help_; }
  void scale_text(float factor);  // takes effect with the next apply_scale()
  // Fits all sizes to the picture and the wanted text size. Call between frames: new fonts wait for the GPU.
  Result<> apply_scale(VkExtent2D size);

 private:
  Overlay(VulkanHost& host, VkRenderPass pass, GLFWwindow* window);
  Result<> start_backend();
  void stop_backend();

  void pet_card(const OverlayState& state, const Anchors& anchors);
  void tricks_card(const OverlayState& state, const Anchors& anchors);
  void curve_card(const OverlayState& state);
  void gpu_card(const OverlayState& state);
  void then_labels(const OverlayState& state, const Anchors& anchors);
  void snapshots_card(const OverlayState& state, PlayerInput& input);
  void kennel_card(const OverlayState& state);
  void lesson_card(const OverlayState& state);
  void button_bar(const OverlayState& state, const Anchors& anchors, PlayerInput& input);
  void text_card(const OverlayState& state, PlayerInput& input);
  void say(const OverlayState& state, PlayerInput& input);
  void help_card(VkExtent2D size, const OverlayState& state);
  void captions(VkExtent2D size, const OverlayState& state, bool panels);
  void bubbles(const OverlayState& state, const Anchors& anchors, const Region& free, VkExtent2D size);

  enum class Text : std::uint8_t { none, say, name };
  void begin_text(Text text, Cue cue, const OverlayState& state);

  // Opens a card in the right column, below the last one. Returns the corner where its inside starts.
  ImVec2 begin_card(const char* name, float height);
  void end_card();
  // Off screen, pictures without cards are seen small, so their bubbles are drawn large.
  void enlarge(bool large);
  float px(float at_scale_one) const { return std::round(at_scale_one * scale_); }
  bool button(const char* id, ImVec2 low, ImVec2 high, const char* label, const char* key, ImU32 accent,
              bool active, const FeedbackKind* sign = nullptr);

  VulkanHost& host_;
  VkRenderPass pass_;
  GLFWwindow* window_;
  float scale_ = 1.0f, text_scale_ = 1.0f;  // 1 suits 1280 x 720
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  Fonts fonts_, picture_fonts_;
  bool help_ = false;
  Text text_ = Text::none, wanted_text_ = Text::none;
  Cue named_ = Cue::none, last_cue_ = Cue::none;
  std::array<char, 128> typed_{};  // longer than a name may be, so that no name is cut
  std::string text_problem_;
  int opened_ = 0;  // how often the text field was opened
  bool text_opened_ = false, word_taken_ = false;
  float column_left_ = 0.0f, column_top_ = 0.0f;  // where the next card of the right column begins, pixels
};

}  // namespace pet
