#include "samples/pet/view/input/window.h"

// GLFW declares its Vulkan functions because Vulkan's header came first.
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <cstdint>

namespace pet {
namespace {

Window& window_of(GLFWwindow* handle) { return *static_cast<Window*>(glfwGetWindowUserPointer(handle)); }

}  // namespace

Result<std::unique_ptr<Window>> Window::create(std::uint32_t width, std::uint32_t height,
                                               const std::string& title) {
  if (!glfwInit()) {
    const char* reason = nullptr;
    glfwGetError(&reason);
    return Error{std::string("window: ") + (reason ? reason : "GLFW did not start") +
                 ". Use --headless without a display."};
  }
  std::unique_ptr<Window> made(new Window());
  if (!glfwVulkanSupported())
    return Error{"window: found no Vulkan driver that can show pictures on this display. Use --headless."};
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  made->window_ =
      glfwCreateWindow(static_cast<int>(width), static_cast<int>(height), title.c_str(), nullptr, nullptr);
  if (!made->window_) return Error{"window: GLFW could not open one. Use --headless."};
  made->set_callbacks();
  return made;
}

void Window::set_callbacks() {
  glfwSetWindowSizeLimits(window_, 640, 360, GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwSetWindowUserPointer(window_, this);
  glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int, int action, int modifiers) {
    if (action == GLFW_PRESS && window_of(w).events_.key) window_of(w).events_.key(key, modifiers);
  });
  glfwSetMouseButtonCallback(window_, [](GLFWwindow* w, int button, int action, int) {
    if (window_of(w).events_.mouse)
      window_of(w).events_.mouse(button, action == GLFW_PRESS, window_of(w).mouse_);
  });
  glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double x, double y) {
    // From screen units to pixels.
    int units_wide = 1, units_high = 1, pixels_wide = 1, pixels_high = 1;
    glfwGetWindowSize(w, &units_wide, &units_high);
    glfwGetFramebufferSize(w, &pixels_wide, &pixels_high);
    const Vec2 at{static_cast<float>(x * pixels_wide / std::max(units_wide, 1)),
                  static_cast<float>(y * pixels_high / std::max(units_high, 1))};
    Window& window = window_of(w);
    const Vec2 moved{at.x - window.mouse_.x, at.y - window.mouse_.y};
    window.mouse_ = at;
    if (window.events_.moved) window.events_.moved(at, moved);
  });
  glfwSetScrollCallback(window_, [](GLFWwindow* w, double, double steps) {
    if (window_of(w).events_.wheel) window_of(w).events_.wheel(static_cast<float>(steps));
  });
  glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) { window_of(w).stale_ = true; });
}

Window::~Window() {
  detach();
  if (window_) glfwDestroyWindow(window_);
  glfwTerminate();
}

void Window::fill(VulkanOptions& options) const {
  std::uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  options.instance_extensions.assign(names, names + count);
  options.create_surface = [window = window_](VkInstance instance) -> Result<VkSurfaceKHR> {
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    PET_CHECK(check(glfwCreateWindowSurface(instance, window, nullptr, &surface), "glfwCreateWindowSurface"));
    return surface;
  };
}

Result<> Window::attach(VulkanHost& host) {
  host_ = &host;
  acquired_.resize(VulkanHost::kFramesInFlight);
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  for (VkSemaphore& semaphore : acquired_)
    PET_CHECK(check(vkCreateSemaphore(host.device(), &info, nullptr, &semaphore), "vkCreateSemaphore"));
  return {};
}

void Window::detach() {
  if (!host_) return;
  {
    const std::lock_guard lock(host_->queue_mutex());
    vkDeviceWaitIdle(host_->device());
  }
  destroy_swapchain();
  for (VkSemaphore semaphore : acquired_) vkDestroySemaphore(host_->device(), semaphore, nullptr);
  acquired_.clear();
  host_ = nullptr;
}

void Window::poll() {
  if (hidden())
    glfwWaitEventsTimeout(0.05);  // minimised: no need to hurry
  else
    glfwPollEvents();
}
bool Window::closed() const { return glfwWindowShouldClose(window_); }
bool Window::pressed(int key) const { return glfwGetKey(window_, key) == GLFW_PRESS; }

std::optional<PadState> Window::pad() const {
  static_assert(PadState::a == GLFW_GAMEPAD_BUTTON_A && PadState::y == GLFW_GAMEPAD_BUTTON_Y &&
                PadState::start == GLFW_GAMEPAD_BUTTON_START &&
                PadState::left == GLFW_GAMEPAD_BUTTON_DPAD_LEFT &&
                PadState::kButtons == GLFW_GAMEPAD_BUTTON_LAST + 1 &&
                PadState::left_trigger == GLFW_GAMEPAD_AXIS_LEFT_TRIGGER &&
                PadState::kAxes == GLFW_GAMEPAD_AXIS_LAST + 1);
  GLFWgamepadstate now;
  for (int joystick = GLFW_JOYSTICK_1; joystick <= GLFW_JOYSTICK_LAST; ++joystick) {
    if (!glfwJoystickIsGamepad(joystick) || !glfwGetGamepadState(joystick, &now)) continue;
    PadState state;
    for (std::size_t i = 0; i < state.buttons.size(); ++i) state.buttons[i] = now.buttons[i] == GLFW_PRESS;
    for (std::size_t i = 0; i < state.axes.size(); ++i) state.axes[i] = now.axes[i];
    return state;
  }
  return std::nullopt;
}

VkExtent2D Window::size() const {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  return {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
}

bool Window::hidden() const {
  const VkExtent2D now = size();
  return now.width == 0 || now.height == 0 || glfwGetWindowAttrib(window_, GLFW_ICONIFIED);
}

Result<VkSurfaceFormatKHR> Window::choose_format() const {
  std::uint32_t count = 0;
  PET_CHECK(
      check(vkGetPhysicalDeviceSurfaceFormatsKHR(host_->physical_device(), host_->surface(), &count, nullptr),
            "vkGetPhysicalDeviceSurfaceFormatsKHR"));
  std::vector<VkSurfaceFormatKHR> formats(count);
  PET_CHECK(check(vkGetPhysicalDeviceSurfaceFormatsKHR(host_->physical_device(), host_->surface(), &count,
                                                       formats.data()),
                  "vkGetPhysicalDeviceSurfaceFormatsKHR"));
  if (formats.empty()) return Error{"window: found no picture format"};
  // The renderer has encoded its colours for the screen: the copy must not change them.
  for (const VkSurfaceFormatKHR& format : formats)
    if (format.format == VK_FORMAT_B8G8R8A8_UNORM || format.format == VK_FORMAT_R8G8B8A8_UNORM) return format;
  return formats[0];
}

Result<> Window::create_swapchain() {
  const VkDevice device = host_->device();
  {
    // The screen may still read pictures of the old swapchain. Vulkan 1.1 has no other way to wait for that.
    const std::lock_guard lock(host_->queue_mutex());
    PET_CHECK(check(vkDeviceWaitIdle(device), "vkDeviceWaitIdle"));
  }
  VkSurfaceCapabilitiesKHR can;
  PET_CHECK(check(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(host_->physical_device(), host_->surface(), &can),
                  "vkGetPhysicalDeviceSurfaceCapabilitiesKHR"));
  VkExtent2D extent = can.currentExtent;
  if (extent.width == UINT32_MAX) {
    extent = size();
    extent.width = std::clamp(extent.width, can.minImageExtent.width, can.maxImageExtent.width);
    extent.height = std::clamp(extent.height, can.minImageExtent.height, can.maxImageExtent.height);
  }
  if (extent.width == 0 || extent.height == 0) return {};  // minimised meanwhile
  if (!(can.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT))
    return Error{"window: its pictures take no copies on this device. Use --headless."};

  PET_ASSIGN(const VkSwapchainKHR made, make_swapchain(can, extent));
  destroy_swapchain();
  swapchain_ = made;
  extent_ = extent;

  std::uint32_t count = 0;
  PET_CHECK(check(vkGetSwapchainImagesKHR(device, swapchain_, &count, nullptr), "vkGetSwapchainImagesKHR"));
  images_.resize(count);
  PET_CHECK(
      check(vkGetSwapchainImagesKHR(device, swapchain_, &count, images_.data()), "vkGetSwapchainImagesKHR"));
  finished_.resize(count);
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  for (VkSemaphore& s : finished_)
    PET_CHECK(check(vkCreateSemaphore(device, &semaphore, nullptr, &s), "vkCreateSemaphore"));
  stale_ = false;
  return {};
}

Result<VkSwapchainKHR> Window::make_swapchain(const VkSurfaceCapabilitiesKHR& can, VkExtent2D extent) {
  PET_ASSIGN(const VkSurfaceFormatKHR format, choose_format());
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = host_->surface();
  info.minImageCount =
      can.maxImageCount ? std::min(can.minImageCount + 1, can.maxImageCount) : can.minImageCount + 1;
  info.imageFormat = format.format;
  info.imageColorSpace = format.colorSpace;
  info.imageExtent = extent;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  info.imageSharingMode = VK_SHARING_MODE_EXCLUSIVE;
  info.preTransform = can.currentTransform;
  info.compositeAlpha = can.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;
  info.clipped = VK_TRUE;
  info.oldSwapchain = swapchain_;
  VkSwapchainKHR made = VK_NULL_HANDLE;
  PET_CHECK(check(vkCreateSwapchainKHR(host_->device(), &info, nullptr, &made), "vkCreateSwapchainKHR"));
  return made;
}

void Window::destroy_swapchain() {
  for (VkSemaphore semaphore : finished_) vkDestroySemaphore(host_->device(), semaphore, nullptr);
  finished_.clear();
  images_.clear();
  if (swapchain_) vkDestroySwapchainKHR(host_->device(), swapchain_, nullptr);
  swapchain_ = VK_NULL_HANDLE;
}

Result<bool> Window::acquire(std::uint32_t slot) {
  slot_ = slot;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (hidden()) return false;
    if (stale_ || !swapchain_) PET_CHECK(create_swapchain());
    if (!swapchain_ || stale_) return false;
    const VkResult result = vkAcquireNextImageKHR(host_->device(), swapchain_, UINT64_MAX, acquired_[slot_],
                                                  VK_NULL_HANDLE, &picture_);
    if (result == VK_ERROR_OUT_OF_DATE_KHR) {
      stale_ = true;
      continue;
    }
    PET_CHECK(check(result, "vkAcquireNextImageKHR"));
    if (result == VK_SUBOPTIMAL_KHR) stale_ = true;  // this picture can be shown; then a new swapchain
    return true;
  }
  return false;
}

void Window::show(VkCommandBuffer commands, VkImage image, VkExtent2D extent) {
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  barrier.newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = images_[picture_];
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0,
                       nullptr, 0, nullptr, 1, &barrier);

  VkImageBlit blit{};
  blit.srcSubresource = blit.dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  blit.srcOffsets[1] = {static_cast<std::int32_t>(extent.width), static_cast<std::int32_t>(extent.height), 1};
  blit.dstOffsets[1] = {static_cast<std::int32_t>(extent_.width), static_cast<std::int32_t>(extent_.height),
                        1};
  vkCmdBlitImage(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, images_[picture_],
                 VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &blit, VK_FILTER_LINEAR);

  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = 0;
  barrier.oldLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  barrier.newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0,
                       nullptr, 0, nullptr, 1, &barrier);
}

Result<> Window::present() {
  VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &finished_[picture_];
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain_;
  info.pImageIndices = &picture_;
  VkResult result;
  {
    const std::lock_guard lock(host_->queue_mutex());
    result = vkQueuePresentKHR(host_->queue(), &info);
  }
  if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR) {
    stale_ = true;
    return {};
  }
  return check(result, "vkQueuePresentKHR");
}

}  // namespace pet
