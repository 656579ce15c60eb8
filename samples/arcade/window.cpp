#include "window.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>

namespace arcade {

bool Window::fail(const char* what, VkResult result) {
  error_ = what;
  if (result != VK_SUCCESS) error_ += " failed with VkResult " + std::to_string(static_cast<int>(result));
  return false;
}

bool Window::open(const char* title, const Canvas& canvas) {
  if (!glfwInit()) return fail("window: found no display. Leave --window out to play without one.");
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_RESIZABLE, GLFW_FALSE);
  window_ = glfwCreateWindow(static_cast<int>(canvas.width()), static_cast<int>(canvas.height()), title,
                             nullptr, nullptr);
  if (!window_) return fail("window: the display refused to open one");
  std::uint32_t count = 0;
  const char** const names = glfwGetRequiredInstanceExtensions(&count);
  if (!names) return fail("window: this display has no Vulkan surfaces");
  instance_extensions_.assign(names, names + count);
  return true;
}

std::span<const char* const> Window::device_extensions() {
  static constexpr const char* kNames[] = {VK_KHR_SWAPCHAIN_EXTENSION_NAME};
  return kNames;
}

bool Window::attach(Host& host) {
  host_ = &host;
  if (const VkResult r = glfwCreateWindowSurface(host.instance(), window_, nullptr, &surface_);
      r != VK_SUCCESS)
    return fail("glfwCreateWindowSurface", r);
  VkBool32 supported = VK_FALSE;
  vkGetPhysicalDeviceSurfaceSupportKHR(host.physical_device(), host.family(), surface_, &supported);
  if (!supported)
    return fail("device: its queue cannot present to this window. Choose another with --device.");
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, nullptr, 0};
  for (VkSemaphore& semaphore : acquired_)
    if (const VkResult r = vkCreateSemaphore(host.device(), &info, nullptr, &semaphore); r != VK_SUCCESS)
      return fail("vkCreateSemaphore", r);
  return make_swapchain();
}

bool Window::make_swapchain() {
  const VkDevice device = host_->device();
  VkSurfaceCapabilitiesKHR can{};
  if (const VkResult r = vkGetPhysicalDeviceSurfaceCapabilitiesKHR(host_->physical_device(), surface_, &can);
      r != VK_SUCCESS)
    return fail("vkGetPhysicalDeviceSurfaceCapabilitiesKHR", r);
  std::uint32_t count = 0;
  vkGetPhysicalDeviceSurfaceFormatsKHR(host_->physical_device(), surface_, &count, nullptr);
  std::vector<VkSurfaceFormatKHR> formats(count);
  vkGetPhysicalDeviceSurfaceFormatsKHR(host_->physical_device(), surface_, &count, formats.data());
  const auto format = std::ranges::find_if(formats, [](const VkSurfaceFormatKHR& each) {
    return each.format == VK_FORMAT_B8G8R8A8_UNORM || each.format == VK_FORMAT_R8G8B8A8_UNORM;
  });
  if (format == formats.end()) return fail("window: its surface has no format of four bytes");
  is_blue_first_ = format->format == VK_FORMAT_B8G8R8A8_UNORM;
  if ((can.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT) == 0)
    return fail("window: its pictures take no copies");

  extent_ = can.currentExtent;
  if (extent_.width == UINT32_MAX) {  // the window takes the swapchain's size
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    extent_ = {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
  }
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = surface_;
  info.minImageCount =
      can.maxImageCount == 0 ? can.minImageCount + 1 : std::min(can.minImageCount + 1, can.maxImageCount);
  info.imageFormat = format->format;
  info.imageColorSpace = format->colorSpace;
  info.imageExtent = extent_;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  info.imageSharingMode = VK_SHARING_MODE_EXCLUSIVE;
  info.preTransform = can.currentTransform;
  info.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;
  info.clipped = VK_TRUE;
  if (const VkResult r = vkCreateSwapchainKHR(device, &info, nullptr, &swapchain_); r != VK_SUCCESS)
    return fail("vkCreateSwapchainKHR", r);
  vkGetSwapchainImagesKHR(device, swapchain_, &count, nullptr);
  images_.resize(count);
  vkGetSwapchainImagesKHR(device, swapchain_, &count, images_.data());
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, nullptr, 0};
  finished_.assign(images_.size(), VK_NULL_HANDLE);
  for (VkSemaphore& made : finished_)
    if (const VkResult r = vkCreateSemaphore(device, &semaphore, nullptr, &made); r != VK_SUCCESS)
      return fail("vkCreateSemaphore", r);
  return true;
}

void Window::destroy_swapchain() {
  for (VkSemaphore semaphore : finished_) vkDestroySemaphore(host_->device(), semaphore, nullptr);
  finished_.clear();
  vkDestroySwapchainKHR(host_->device(), swapchain_, nullptr);
  swapchain_ = VK_NULL_HANDLE;
}

void Window::detach() {
  if (!host_) return;
  vkDeviceWaitIdle(host_->device());
  destroy_swapchain();
  for (VkSemaphore semaphore : acquired_) vkDestroySemaphore(host_->device(), semaphore, nullptr);
  vkDestroyBuffer(host_->device(), staging_, nullptr);
  vkFreeMemory(host_->device(), memory_, nullptr);
  vkDestroySurfaceKHR(host_->instance(), surface_, nullptr);
  host_ = nullptr;
}

Window::~Window() {
  detach();
  if (window_) glfwDestroyWindow(window_);
  glfwTerminate();
}

bool Window::poll() {
  glfwPollEvents();
  return !glfwWindowShouldClose(window_) && glfwGetKey(window_, GLFW_KEY_ESCAPE) != GLFW_PRESS;
}

bool Window::is_space_down() const { return glfwGetKey(window_, GLFW_KEY_SPACE) == GLFW_PRESS; }

bool Window::make_staging(VkDeviceSize bytes) {
  canvas_bytes_ = bytes;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes * Host::kFramesInFlight;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  if (const VkResult r = vkCreateBuffer(host_->device(), &info, nullptr, &staging_); r != VK_SUCCESS)
    return fail("vkCreateBuffer", r);
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(host_->device(), staging_, &needs);
  VkPhysicalDeviceMemoryProperties has{};
  vkGetPhysicalDeviceMemoryProperties(host_->physical_device(), &has);
  // Every device has a type that is both, for each buffer.
  constexpr VkMemoryPropertyFlags kWanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  while (allocate.memoryTypeIndex + 1 < has.memoryTypeCount &&
         ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u) == 0 ||
          (has.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kWanted) != kWanted))
    ++allocate.memoryTypeIndex;
  if (const VkResult r = vkAllocateMemory(host_->device(), &allocate, nullptr, &memory_); r != VK_SUCCESS)
    return fail("vkAllocateMemory", r);
  vkBindBufferMemory(host_->device(), staging_, memory_, 0);
  void* mapped = nullptr;
  if (const VkResult r = vkMapMemory(host_->device(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped); r != VK_SUCCESS)
    return fail("vkMapMemory", r);
  mapped_ = static_cast<std::uint8_t*>(mapped);
  return true;
}

bool Window::acquire() {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const VkResult r = vkAcquireNextImageKHR(host_->device(), swapchain_, UINT64_MAX, acquired_[slot_],
                                             VK_NULL_HANDLE, &picture_);
    if (r == VK_SUCCESS || r == VK_SUBOPTIMAL_KHR) return true;
    if (r != VK_ERROR_OUT_OF_DATE_KHR) return fail("vkAcquireNextImageKHR", r);
    vkDeviceWaitIdle(host_->device());
    destroy_swapchain();
    if (!make_swapchain()) return false;
  }
  return fail("window: its pictures are out of date again and again");
}

bool Window::show(VkCommandBuffer commands, const Canvas& canvas, std::uint32_t slot) {
  slot_ = slot;
  if (!staging_ && !make_staging(canvas.rgba().size())) return false;
  if (!acquire()) return false;
  std::uint8_t* to = mapped_ + slot * canvas_bytes_;
  std::ranges::copy(canvas.rgba(), to);
  if (is_blue_first_)
    for (VkDeviceSize i = 0; i < canvas_bytes_; i += 4) std::swap(to[i], to[i + 2]);
  record_copy(commands, canvas);
  return true;
}

void Window::record_copy(VkCommandBuffer commands, const Canvas& canvas) const {
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  barrier.newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = images_[picture_];
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0,
                       nullptr, 0, nullptr, 1, &barrier);
  VkBufferImageCopy copy{};
  copy.bufferOffset = slot_ * canvas_bytes_;
  copy.bufferRowLength = canvas.width();
  copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  copy.imageExtent = {std::min(canvas.width(), extent_.width), std::min(canvas.height(), extent_.height), 1};
  vkCmdCopyBufferToImage(commands, staging_, images_[picture_], VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1,
                         &copy);
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = 0;
  barrier.oldLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  barrier.newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0,
                       nullptr, 0, nullptr, 1, &barrier);
}

bool Window::present() {
  const VkSemaphore finished = finished_[picture_];
  VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &finished;
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain_;
  info.pImageIndices = &picture_;
  const VkResult r = vkQueuePresentKHR(host_->queue(), &info);
  // The next acquire meets an old swapchain, and replaces it.
  if (r == VK_SUCCESS || r == VK_SUBOPTIMAL_KHR || r == VK_ERROR_OUT_OF_DATE_KHR) return true;
  return fail("vkQueuePresentKHR", r);
}

}  // namespace arcade
