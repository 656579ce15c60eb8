#include "tests/hosts/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace imprint::hosts {
namespace {

constexpr VkDeviceSize kPictureBytes = VkDeviceSize{4} * Engine::kExtent.width * Engine::kExtent.height;

std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t hash = 14695981039346656037ull;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
  }
  return hash;
}

VkImageMemoryBarrier barrier_of(VkImage image, VkImageLayout from, VkImageLayout to, VkAccessFlags before,
                                VkAccessFlags after) {
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.srcAccessMask = before;
  barrier.dstAccessMask = after;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  return barrier;
}

}  // namespace

Engine::Engine(const EngineOptions& options) : slots_(options.frames_in_flight) {
  if (options.window != WindowLibrary::none) window_ = open_window(options.window);
  ok_ = (window_ || options.window == WindowLibrary::none) && make_instance(options) &&
        make_device(options) && std::ranges::all_of(slots_, [this](Slot& slot) { return make_slot(slot); }) &&
        (!surface_ || make_swapchain());
}

Engine::~Engine() {
  if (device_) {
    vkDeviceWaitIdle(device_);
    destroy_swapchain();
    for (Slot& slot : slots_) {
      vkDestroySemaphore(device_, slot.acquired, nullptr);
      vkDestroyFence(device_, slot.done, nullptr);
      vkDestroyCommandPool(device_, slot.pool, nullptr);
      slot.target.destroy();
      vkDestroyBuffer(device_, slot.read, nullptr);
      vkFreeMemory(device_, slot.read_memory, nullptr);
    }
    scene_.destroy();
    vkDestroyDevice(device_, nullptr);
  }
  if (surface_) vkDestroySurfaceKHR(instance_, surface_, nullptr);
  if (messenger_) {
    reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"))(instance_, messenger_, nullptr);
  }
  if (instance_) vkDestroyInstance(instance_, nullptr);
  window_.reset();
  EXPECT_EQ(messages_, 0u) << first_message_;
}

VkDeviceMemory Engine::allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags flags) {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_device_, &memory);
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = std::max(needs.size + 1, VkDeviceSize{1} << 20);  // the size of an engine's block
  while (info.memoryTypeIndex < memory.memoryTypeCount &&
         (!(needs.memoryTypeBits >> info.memoryTypeIndex & 1) ||
          (memory.memoryTypes[info.memoryTypeIndex].propertyFlags & flags) != flags)) {
    ++info.memoryTypeIndex;
  }
  VkDeviceMemory made = VK_NULL_HANDLE;
  works(vkAllocateMemory(device_, &info, nullptr, &made), "vkAllocateMemory");
  return made;
}

bool Engine::make_slot(Slot& slot) {
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool.queueFamilyIndex = family_;
  if (!works(vkCreateCommandPool(device_, &pool, nullptr, &slot.pool), "vkCreateCommandPool")) return false;
  VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  commands.commandPool = slot.pool;
  commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands.commandBufferCount = 1;
  VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  if (!works(vkAllocateCommandBuffers(device_, &commands, &slot.commands), "vkAllocateCommandBuffers") ||
      !works(vkCreateFence(device_, &fence, nullptr, &slot.done), "vkCreateFence") ||
      !works(vkCreateSemaphore(device_, &semaphore, nullptr, &slot.acquired), "vkCreateSemaphore")) {
    return false;
  }
  const auto load =
      reinterpret_cast<PFN_vkGetDeviceProcAddr>(vkGetInstanceProcAddr(instance_, "vkGetDeviceProcAddr"));
  slot.target.make(load, device_, kExtent);
  if (&slot == &slots_.front())
    scene_.make(load, device_, slot.target.render_pass());  // the other targets' passes are compatible

  VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  buffer.size = kPictureBytes;
  buffer.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (!works(vkCreateBuffer(device_, &buffer, nullptr, &slot.read), "vkCreateBuffer")) return false;
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device_, slot.read, &needs);
  slot.read_memory =
      allocate(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  void* mapped = nullptr;
  if (!works(vkBindBufferMemory(device_, slot.read, slot.read_memory, 0), "vkBindBufferMemory") ||
      !works(vkMapMemory(device_, slot.read_memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory")) {
    return false;
  }
  slot.pixels = static_cast<const std::uint8_t*>(mapped);
  return true;
}

bool Engine::make_swapchain() {
  VkSurfaceCapabilitiesKHR can{};
  vkGetPhysicalDeviceSurfaceCapabilitiesKHR(physical_device_, surface_, &can);
  std::uint32_t count = 0;
  vkGetPhysicalDeviceSurfaceFormatsKHR(physical_device_, surface_, &count, nullptr);
  std::vector<VkSurfaceFormatKHR> formats(count);
  vkGetPhysicalDeviceSurfaceFormatsKHR(physical_device_, surface_, &count, formats.data());
  if (formats.empty()) return ADD_FAILURE() << "the window has no picture format", false;
  vkGetPhysicalDeviceSurfacePresentModesKHR(physical_device_, surface_, &count, nullptr);
  std::vector<VkPresentModeKHR> modes(count);
  vkGetPhysicalDeviceSurfacePresentModesKHR(physical_device_, surface_, &count, modes.data());
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = surface_;
  info.minImageCount =
      can.maxImageCount ? std::min(can.minImageCount + 1, can.maxImageCount) : can.minImageCount + 1;
  info.imageFormat = formats[0].format;
  info.imageColorSpace = formats[0].colorSpace;
  info.imageExtent = can.currentExtent;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  info.preTransform = can.currentTransform;
  info.compositeAlpha = can.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  // Not paced by a screen: frames come as fast as possible.
  info.presentMode = std::ranges::find(modes, VK_PRESENT_MODE_IMMEDIATE_KHR) != modes.end()
                         ? VK_PRESENT_MODE_IMMEDIATE_KHR
                         : VK_PRESENT_MODE_FIFO_KHR;
  info.clipped = VK_TRUE;
  info.oldSwapchain = swapchain_;
  VkSwapchainKHR made = VK_NULL_HANDLE;
  if (!works(vkCreateSwapchainKHR(device_, &info, nullptr, &made), "vkCreateSwapchainKHR")) return false;
  destroy_swapchain();
  swapchain_ = made;
  swapchain_extent_ = info.imageExtent;
  vkGetSwapchainImagesKHR(device_, swapchain_, &count, nullptr);
  swapchain_images_.resize(count);
  vkGetSwapchainImagesKHR(device_, swapchain_, &count, swapchain_images_.data());
  drawn_.resize(count);
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  return std::ranges::all_of(drawn_, [&](VkSemaphore& made_semaphore) {
    return works(vkCreateSemaphore(device_, &semaphore, nullptr, &made_semaphore), "vkCreateSemaphore");
  });
}

void Engine::destroy_swapchain() {
  for (const VkSemaphore semaphore : drawn_) vkDestroySemaphore(device_, semaphore, nullptr);
  drawn_.clear();
  if (swapchain_) vkDestroySwapchainKHR(device_, swapchain_, nullptr);
  swapchain_ = VK_NULL_HANDLE;
}

void Engine::resize() {
  if (!surface_) return;
  window_->resize(280, 200);
  {
    const std::lock_guard lock(guest_.queue_lock());
    works(vkDeviceWaitIdle(device_), "vkDeviceWaitIdle");
  }
  make_swapchain();
}

void Engine::collect(Slot& slot) {
  works(vkWaitForFences(device_, 1, &slot.done, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  if (slot.number == 0) return;
  safe_frame_ = std::max(safe_frame_, slot.number);
  pictures_.resize(std::max<std::size_t>(pictures_.size(), slot.number));
  pictures_[slot.number - 1] = hash_of(slot.pixels, kPictureBytes);
  slot.number = 0;
}

Engine::Frame Engine::begin_frame() {
  ++number_;
  Slot& slot = slots_[number_ % slots_.size()];
  collect(slot);
  if (surface_) {
    window_->poll();
    for (int attempt = 0; attempt < 3; ++attempt) {
      const VkResult result =
          vkAcquireNextImageKHR(device_, swapchain_, UINT64_MAX, slot.acquired, VK_NULL_HANDLE, &picture_);
      if (result == VK_SUCCESS || result == VK_SUBOPTIMAL_KHR) break;
      EXPECT_EQ(result, VK_ERROR_OUT_OF_DATE_KHR);
      resize();
    }
  }
  works(vkResetFences(device_, 1, &slot.done), "vkResetFences");
  works(vkResetCommandPool(device_, slot.pool, 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  works(vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  scene_.bind(slot.commands, kExtent);
  return {slot.commands, number_, safe_frame_};
}

// Copies the picture to host memory and to the window.
void Engine::show(Slot& slot) {
  slot.target.copy(slot.commands, slot.read);
  VkBufferMemoryBarrier read{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
  read.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  read.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  read.srcQueueFamilyIndex = read.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  read.buffer = slot.read;
  read.size = VK_WHOLE_SIZE;
  vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 0,
                       nullptr, 1, &read, 0, nullptr);
  if (!surface_) return;

  const VkImage shown = swapchain_images_[picture_];
  VkImageMemoryBarrier barrier =
      barrier_of(shown, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 0,
                 VK_ACCESS_TRANSFER_WRITE_BIT);
  vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0,
                       nullptr, 0, nullptr, 1, &barrier);
  VkImageBlit blit{};
  blit.srcSubresource = blit.dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  blit.srcOffsets[1] = {static_cast<std::int32_t>(kExtent.width), static_cast<std::int32_t>(kExtent.height),
                        1};
  blit.dstOffsets[1] = {static_cast<std::int32_t>(swapchain_extent_.width),
                        static_cast<std::int32_t>(swapchain_extent_.height), 1};
  vkCmdBlitImage(slot.commands, slot.target.image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, shown,
                 VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &blit, VK_FILTER_NEAREST);
  barrier = barrier_of(shown, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR,
                       VK_ACCESS_TRANSFER_WRITE_BIT, 0);
  vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0,
                       0, nullptr, 0, nullptr, 1, &barrier);
}

void Engine::end_frame(Place pet) {
  Slot& slot = slots_[number_ % slots_.size()];
  VkClearColorValue clear{};
  clear.float32[2] = 0.25f;
  slot.target.begin(slot.commands, clear);
  scene_.draw(slot.commands, static_cast<float>(number_) / 60,
              pet);  // with the state bound before Imprint recorded
  slot.target.end(slot.commands);
  show(slot);
  works(vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");

  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &slot.commands;
  if (surface_) {
    submit.waitSemaphoreCount = submit.signalSemaphoreCount = 1;
    submit.pWaitSemaphores = &slot.acquired;
    submit.pWaitDstStageMask = &stage;
    submit.pSignalSemaphores = &drawn_[picture_];
  }
  slot.number = number_;
  const std::lock_guard lock(guest_.queue_lock());
  works(vkQueueSubmit(queue_, 1, &submit, slot.done), "vkQueueSubmit");
  if (!surface_) return;
  VkPresentInfoKHR present{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
  present.waitSemaphoreCount = 1;
  present.pWaitSemaphores = &drawn_[picture_];
  present.swapchainCount = 1;
  present.pSwapchains = &swapchain_;
  present.pImageIndices = &picture_;
  const VkResult result = vkQueuePresentKHR(queue_, &present);
  EXPECT_TRUE(result == VK_SUCCESS || result == VK_SUBOPTIMAL_KHR || result == VK_ERROR_OUT_OF_DATE_KHR)
      << result;
}

void Engine::finish_frames() {
  for (Slot& slot : slots_) collect(slot);
}

}  // namespace imprint::hosts
