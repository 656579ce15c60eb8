// The overlay's frame and its Vulkan. Cards are in overlay_cards.cpp, bubbles in overlay_bubbles.cpp.

#include "samples/pet/view/overlay/overlay.h"

#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_vulkan.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pet {
namespace {

constexpr float kBodyPixels = 14.0f;
constexpr float kEnlarged = 2.5f;  // in pictures, which are seen small
constexpr float kColumn = 288.0f, kBar = 74.0f,
                kMargin = 10.0f;  // sizes at scale 1: right column, bar at the bottom

// Dear ImGui tells failures only to a callback without user data: the newest one is kept here.
VkResult backend_result = VK_SUCCESS;

Result<> backend_status() {
  return check(std::exchange(backend_result, VK_SUCCESS), "Dear ImGui's Vulkan back end");
}

void set_style(float scale) {
  ImGuiStyle style;
  style.ScaleAllSizes(scale);
  style.WindowPadding = {0.0f, 0.0f};
  style.WindowBorderSize = 0.0f;
  style.WindowMinSize = {1.0f, 1.0f};
  style.PopupRounding = 6.0f * scale;
  ImGui::StyleColorsLight(&style);
  style.Colors[ImGuiCol_PopupBg] = ImVec4(1.0f, 0.985f, 0.955f, 0.97f);
  style.Colors[ImGuiCol_Text] = ImGui::ColorConvertU32ToFloat4(palette::kInk);
  ImGui::GetStyle() = style;
}

}  // namespace

Overlay::Overlay(VulkanHost& host, VkRenderPass pass, GLFWwindow* window)
    : host_(host), pass_(pass), window_(window) {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;  // nothing is kept in files
  if (window_) ImGui_ImplGlfw_InitForVulkan(window_, true);
}

Result<std::unique_ptr<Overlay>> Overlay::create(VulkanHost& host, VkRenderPass pass, GLFWwindow* window) {
  std::unique_ptr<Overlay> made(new Overlay(host, pass, window));
  PET_CHECK(made->start_backend());
  return made;
}

Overlay::~Overlay() {
  (void)host_.wait_idle();  // after a device loss there is nothing to wait for
  stop_backend();
  if (window_) ImGui_ImplGlfw_Shutdown();
  ImGui::DestroyContext();
}

Result<> Overlay::start_backend() {
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 4};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
  pool.maxSets = 4;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  PET_CHECK(
      check(vkCreateDescriptorPool(host_.device(), &pool, nullptr, &descriptors_), "vkCreateDescriptorPool"));

  ImGui_ImplVulkan_InitInfo info{};
  info.Instance = host_.instance();
  info.PhysicalDevice = host_.physical_device();
  info.Device = host_.device();
  info.QueueFamily = host_.queue_family();
  info.Queue = host_.queue();
  info.DescriptorPool = descriptors_;
  info.MinImageCount = VulkanHost::kFramesInFlight;
  info.ImageCount = VulkanHost::kFramesInFlight;
  info.MSAASamples = VK_SAMPLE_COUNT_1_BIT;
  info.CheckVkResultFn = [](VkResult result) {
    if (result < 0) backend_result = result;
  };
  ImGui_ImplVulkan_Init(&info, pass_);

  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
  fonts_ = add_fonts(atlas, kBodyPixels * scale_);
  if (!window_) picture_fonts_ = add_fonts(atlas, kBodyPixels * scale_ * kEnlarged);
  set_style(scale_);
  PET_CHECK(host_.run_once([](VkCommandBuffer commands) { ImGui_ImplVulkan_CreateFontsTexture(commands); }));
  ImGui_ImplVulkan_DestroyFontUploadObjects();
  return backend_status();
}

void Overlay::stop_backend() {
  if (descriptors_ == VK_NULL_HANDLE) return;
  ImGui_ImplVulkan_Shutdown();
  vkDestroyDescriptorPool(host_.device(), descriptors_, nullptr);
  descriptors_ = VK_NULL_HANDLE;
}

void Overlay::scale_text(float factor) { text_scale_ = std::clamp(text_scale_ * factor, 0.7f, 2.0f); }

Result<> Overlay::apply_scale(VkExtent2D size) {
  // Shrinks with a small window so that everything fits; grows more slowly with a large one. Steps of 1/16
  // keep the dragging of an edge smooth.
  const float fit =
      std::min(static_cast<float>(size.width) / 1280.0f, static_cast<float>(size.height) / 700.0f);
  const float wanted =
      std::round((fit < 1.0f ? std::max(fit, 0.5f) : 1.0f + 0.7f * (fit - 1.0f)) * text_scale_ * 16.0f) /
      16.0f;
  if (wanted == scale_) return {};
  scale_ = wanted;
  PET_CHECK(host_.wait_idle());
  stop_backend();
  return start_backend();
}

bool Overlay::wants_mouse() const { return ImGui::GetIO().WantCaptureMouse; }

Region Overlay::free_region(VkExtent2D size, bool panels, bool kennel) const {
  if (!panels) return {0.03f, kennel ? 0.03f : 0.17f, 0.97f, 0.93f};
  const float width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  return {(kennel ? px(200.0f) : px(kMargin)) / width, px(30.0f) / height,
          (width - px(kColumn) - px(kMargin)) / width, (height - px(kBar) - px(kMargin)) / height};
}

void Overlay::build(VkExtent2D size, float seconds, const OverlayState& state, const Anchors& anchors,
                    bool panels, PlayerInput& input) {
  ImGuiIO& io = ImGui::GetIO();
  if (window_) ImGui_ImplGlfw_NewFrame();
  io.DisplaySize = {static_cast<float>(size.width), static_cast<float>(size.height)};
  io.DisplayFramebufferScale = {1.0f, 1.0f};
  io.DeltaTime = std::clamp(seconds, 1e-4f, 1.0f);
  ImGui_ImplVulkan_NewFrame();
  ImGui::NewFrame();

  const bool large = !panels && !window_;
  if (large) enlarge(true);
  Region free = free_region(size, panels, !state.kennel.empty());
  if (!panels) free.top = 0.02f;
  bubbles(state, anchors, free, size);
  if (panels) {
    column_left_ = io.DisplaySize.x - px(kColumn) - px(kMargin);
    column_top_ = px(kMargin);
    pet_card(state, anchors);
    tricks_card(state, anchors);
    curve_card(state);
    gpu_card(state);
    snapshots_card(state, input);
    if (!state.kennel.empty()) kennel_card(state);
    lesson_card(state);
    button_bar(state, anchors, input);
    if (anchors.world->cue != Cue::none) last_cue_ = anchors.world->cue;
    text_card(state, input);
    if (state.further_windows) state.further_windows();
    if (help_) help_card(size, state);
  }
  captions(size, state, panels);
  if (large) enlarge(false);
  ImGui::Render();
}

void Overlay::enlarge(bool large) {
  std::swap(fonts_, picture_fonts_);
  scale_ *= large ? kEnlarged : 1.0f / kEnlarged;
}

Result<> Overlay::record(VkCommandBuffer commands) {
  ImGui_ImplVulkan_RenderDrawData(ImGui::GetDrawData(), commands);
  return backend_status();
}

}  // namespace pet
