// A host that is made as Dear ImGui's Vulkan example is: ImGui_ImplVulkanH_Window has swapchain, command
// buffers and fences, one of each per swapchain image. A creature learns through samples/adapters/vulkan.h,
// the window is resized meanwhile, and read-back pictures are those without Imprint.

#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_impl_vulkan.h>

#include <cstring>
#include <set>

#include "samples/adapters/vulkan.h"
#include "tests/hosts/advice.h"
#include "tests/hosts/creature.h"
#include "tests/hosts/window.h"

// So that the test can read pictures back: the example's swapchain can only be drawn to.
extern "C" VKAPI_ATTR VkResult VKAPI_CALL vkCreateSwapchainKHR(VkDevice device,
                                                               const VkSwapchainCreateInfoKHR* info,
                                                               const VkAllocationCallbacks* allocation,
                                                               VkSwapchainKHR* swapchain) {
  VkSwapchainCreateInfoKHR readable = *info;
  readable.imageUsage |= VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  const auto create =
      reinterpret_cast<PFN_vkCreateSwapchainKHR>(vkGetDeviceProcAddr(device, "vkCreateSwapchainKHR"));
  return create(device, &readable, allocation, swapchain);
}

namespace imprint::hosts {
namespace {

constexpr std::uint64_t kFrames = 1500, kResizeAt = 300;
constexpr std::uint64_t kRead[] = {200, 600, 1400};

#define WORKS(call) EXPECT_EQ(call, VK_SUCCESS)

class Example {
 public:
  explicit Example(bool teach) : teach_(teach), window_(open_window(WindowLibrary::glfw)) {
    if (!window_) return;
    make_instance();
    make_device();
    make_imgui();
  }
  ~Example() {
    if (!device_) return;
    vkDeviceWaitIdle(device_);
    ImGui_ImplVulkan_Shutdown();
    ImGui::DestroyContext();
    ImGui_ImplVulkanH_DestroyWindow(instance_, device_, &wd_, nullptr);
    vkDestroyBuffer(device_, read_, nullptr);
    vkFreeMemory(device_, memory_, nullptr);
    vkDestroyDescriptorPool(device_, pool_, nullptr);
    vkDestroyDevice(device_, nullptr);
    load<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(instance_, messenger_,
                                                                                 nullptr);
    vkDestroyInstance(instance_, nullptr);
  }

  void play() {
    if (!device_) return;
    if (teach_) return teach();
    run([](VkCommandBuffer) {});
  }
  void teach() {
    // imprint: begin
    game::Made<game::Context> context =
        game::Context::create(game::Library(imp_get_api), guest_.record_only(family_));
    game::Made<game::Brain> brain =
        context->create_brain(game::BrainDesc::of(game::FeedbackOptions(), 2, {4}));
    game::Made<game::Agent> agent = brain->create_agent();
    ASSERT_TRUE(agent && context->warmup()) << game::Library(imp_get_api).last_error();
    game::Frames clock(0);  // it is told which frames are complete
    // imprint: end
    run([&](VkCommandBuffer commands) {
      // imprint: begin
      clock.completed(submitted_[wd_.FrameIndex]);
      game::Frame frame(*context, clock.next(1.0 / 60));
      const game::Action action = frame.act(*agent);
      if (action.is_new) frame.keep(agent->reward(meadow.step(action.choices()[0])));
      if (action.is_new && meadow.ended()) frame.keep(agent->end_episode(game::EpisodeEnd::terminated));
      if (action.wants_observation) frame.keep(agent->observe(meadow.look()));
      frame.record(commands);
      EXPECT_TRUE(frame.end()) << frame.end().message();
      // imprint: end
    });
    // imprint: begin
    EXPECT_TRUE(context->close()) << game::Library(imp_get_api).last_error();
    // imprint: end
  }

  Meadow meadow;
  std::vector<std::vector<std::uint8_t>> pictures;
  std::set<std::string> messages;

 private:
  template <class Function>
  Function load(const char* name) {
    return reinterpret_cast<Function>(vkGetInstanceProcAddr(instance_, name));
  }

  template <class Guest>
  void run(const Guest& guest) {
    for (number_ = 1; number_ <= kFrames && !testing::Test::HasFailure(); ++number_) {
      window_->poll();
      if (number_ == kResizeAt) resize(280, 200);
      draw();
      frame(guest);
    }
    WORKS(vkDeviceWaitIdle(device_));
  }

  void make_instance() {
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_1;
    std::vector<const char*> extensions = window_->instance_extensions();
    extensions.push_back("VK_EXT_debug_utils");
    extensions.push_back("VK_EXT_validation_features");
    const char* layer = "VK_LAYER_KHRONOS_validation";
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, &kValidation};
    info.pApplicationInfo = &application;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    WORKS(vkCreateInstance(&info, nullptr, &instance_));
    // imprint: begin
    guest_.made_instance(info, instance_, vkGetInstanceProcAddr);
    // imprint: end
    VkDebugUtilsMessengerCreateInfoEXT listen{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    listen.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    listen.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    listen.pUserData = this;
    listen.pfnUserCallback = [](VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) -> VkBool32 {
      if (!is_explained(*data))
        static_cast<Example*>(user)->messages.insert(data->pMessageIdName ? data->pMessageIdName : "");
      return VK_FALSE;
    };
    WORKS(load<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(instance_, &listen,
                                                                                     nullptr, &messenger_));
  }

  void make_device() {
    std::uint32_t count = 1;
    vkEnumeratePhysicalDevices(instance_, &count, &physical_device_);
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueCount = 1;  // of family 0, which draws, computes and presents wherever there is a window
    queue.pQueuePriorities = &priority;
    const char* swapchain = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &swapchain;
    WORKS(vkCreateDevice(physical_device_, &info, nullptr, &device_));
    // imprint: begin
    guest_.made_device(info, physical_device_, device_);
    // imprint: end
    vkGetDeviceQueue(device_, family_, 0, &queue_);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
    pool.maxSets = pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    WORKS(vkCreateDescriptorPool(device_, &pool, nullptr, &pool_));
    VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer.size = kReadBytes;
    buffer.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    WORKS(vkCreateBuffer(device_, &buffer, nullptr, &read_));
    VkMemoryAllocateInfo memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    memory.allocationSize = kReadBytes + 4096;
    VkPhysicalDeviceMemoryProperties types{};
    vkGetPhysicalDeviceMemoryProperties(physical_device_, &types);
    constexpr VkMemoryPropertyFlags kHost =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    while ((types.memoryTypes[memory.memoryTypeIndex].propertyFlags & kHost) != kHost)
      ++memory.memoryTypeIndex;
    WORKS(vkAllocateMemory(device_, &memory, nullptr, &memory_));
    WORKS(vkBindBufferMemory(device_, read_, memory_, 0));
    WORKS(vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&pixels_)));
  }

  void make_imgui() {
    wd_.Surface = window_->make_surface(instance_);
    const VkFormat format = VK_FORMAT_B8G8R8A8_UNORM;
    wd_.SurfaceFormat = ImGui_ImplVulkanH_SelectSurfaceFormat(physical_device_, wd_.Surface, &format, 1,
                                                              VK_COLORSPACE_SRGB_NONLINEAR_KHR);
    const VkPresentModeKHR mode = VK_PRESENT_MODE_IMMEDIATE_KHR;
    wd_.PresentMode = ImGui_ImplVulkanH_SelectPresentMode(physical_device_, wd_.Surface, &mode, 1);
    make_frames(320, 240);
    ImGui::CreateContext();
    ImGui_ImplVulkan_InitInfo info{};
    info.Instance = instance_;
    info.PhysicalDevice = physical_device_;
    info.Device = device_;
    info.QueueFamily = family_;
    info.Queue = queue_;
    info.DescriptorPool = pool_;
    info.MinImageCount = 2;
    info.ImageCount = wd_.ImageCount;
    info.MSAASamples = VK_SAMPLE_COUNT_1_BIT;
    ImGui_ImplVulkan_Init(&info, wd_.RenderPass);
    const VkCommandBuffer commands = begin(wd_.Frames[0]);
    ImGui_ImplVulkan_CreateFontsTexture(commands);
    WORKS(vkEndCommandBuffer(commands));
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    WORKS(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE));
    WORKS(vkDeviceWaitIdle(device_));
    ImGui_ImplVulkan_DestroyFontUploadObjects();
  }

  void make_frames(int width, int height) {
    ImGui_ImplVulkanH_CreateOrResizeWindow(instance_, physical_device_, device_, &wd_, family_, nullptr,
                                           width, height, 2);
    submitted_.assign(wd_.ImageCount, 0);
  }
  void resize(int width, int height) {
    window_->resize(width, height);
    WORKS(vkDeviceWaitIdle(device_));
    make_frames(width, height);
  }

  VkCommandBuffer begin(const ImGui_ImplVulkanH_Frame& slot) {
    WORKS(vkResetCommandPool(device_, slot.CommandPool, 0));
    VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    WORKS(vkBeginCommandBuffer(slot.CommandBuffer, &info));
    return slot.CommandBuffer;
  }

  void draw() {
    ImGui::GetIO().DisplaySize = ImVec2(static_cast<float>(wd_.Width), static_cast<float>(wd_.Height));
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui_ImplVulkan_NewFrame();
    ImGui::NewFrame();
    ImGui::GetBackgroundDrawList()->AddText(ImVec2(10 + static_cast<float>(number_ % 50), 20),
                                            IM_COL32(250, 200, 80, 255), "a creature learns");
    ImGui::Render();
  }

  template <class Guest>
  void frame(const Guest& guest) {
    ImGui_ImplVulkanH_FrameSemaphores& sync = wd_.FrameSemaphores[wd_.SemaphoreIndex];
    const VkResult acquired = vkAcquireNextImageKHR(
        device_, wd_.Swapchain, UINT64_MAX, sync.ImageAcquiredSemaphore, VK_NULL_HANDLE, &wd_.FrameIndex);
    ASSERT_TRUE(acquired == VK_SUCCESS || acquired == VK_SUBOPTIMAL_KHR) << acquired;
    ImGui_ImplVulkanH_Frame& slot = wd_.Frames[wd_.FrameIndex];
    WORKS(vkWaitForFences(device_, 1, &slot.Fence, VK_TRUE, UINT64_MAX));
    WORKS(vkResetFences(device_, 1, &slot.Fence));
    const VkCommandBuffer commands = begin(slot);
    guest(commands);
    submitted_[wd_.FrameIndex] = number_;
    VkRenderPassBeginInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
    pass.renderPass = wd_.RenderPass;
    pass.framebuffer = slot.Framebuffer;
    pass.renderArea.extent = {static_cast<std::uint32_t>(wd_.Width), static_cast<std::uint32_t>(wd_.Height)};
    pass.clearValueCount = 1;
    pass.pClearValues = &wd_.ClearValue;
    vkCmdBeginRenderPass(commands, &pass, VK_SUBPASS_CONTENTS_INLINE);
    ImGui_ImplVulkan_RenderDrawData(ImGui::GetDrawData(), commands);
    vkCmdEndRenderPass(commands);
    const bool reads = std::ranges::find(kRead, number_) != std::end(kRead);
    if (reads) read_back(commands, slot.Backbuffer);
    WORKS(vkEndCommandBuffer(commands));
    submit_and_present(slot, sync);
    if (!reads) return;
    WORKS(vkDeviceWaitIdle(device_));
    pictures.emplace_back(pixels_, pixels_ + 4 * wd_.Width * wd_.Height);
  }

  void submit_and_present(ImGui_ImplVulkanH_Frame& slot, ImGui_ImplVulkanH_FrameSemaphores& sync) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.waitSemaphoreCount = submit.commandBufferCount = submit.signalSemaphoreCount = 1;
    submit.pWaitSemaphores = &sync.ImageAcquiredSemaphore;
    submit.pWaitDstStageMask = &stage;
    submit.pCommandBuffers = &slot.CommandBuffer;
    submit.pSignalSemaphores = &sync.RenderCompleteSemaphore;
    WORKS(vkQueueSubmit(queue_, 1, &submit, slot.Fence));
    VkPresentInfoKHR present{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
    present.waitSemaphoreCount = present.swapchainCount = 1;
    present.pWaitSemaphores = &sync.RenderCompleteSemaphore;
    present.pSwapchains = &wd_.Swapchain;
    present.pImageIndices = &wd_.FrameIndex;
    const VkResult shown = vkQueuePresentKHR(queue_, &present);
    EXPECT_TRUE(shown == VK_SUCCESS || shown == VK_SUBOPTIMAL_KHR) << shown;
    wd_.SemaphoreIndex = (wd_.SemaphoreIndex + 1) % wd_.ImageCount;
  }

  void read_back(VkCommandBuffer commands, VkImage image) {
    VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
    barrier.oldLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
    barrier.newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image;
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0,
                         nullptr, 0, nullptr, 1, &barrier);
    VkBufferImageCopy region{};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {static_cast<std::uint32_t>(wd_.Width), static_cast<std::uint32_t>(wd_.Height), 1};
    vkCmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, read_, 1, &region);
    std::swap(barrier.oldLayout, barrier.newLayout);
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
    barrier.dstAccessMask = 0;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0,
                         nullptr, 0, nullptr, 1, &barrier);
  }

  static constexpr VkDeviceSize kReadBytes = VkDeviceSize{4} * 320 * 240;
  bool teach_;
  std::unique_ptr<Window> window_;
  // imprint: begin
  adapters::VulkanGuest guest_;
  // imprint: end
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkBuffer read_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint8_t* pixels_ = nullptr;
  ImGui_ImplVulkanH_Window wd_;
  std::vector<std::uint64_t> submitted_;  // the newest frame of each swapchain image
  std::uint64_t number_ = 0;
};

TEST(T8ImGuiHost, ACreatureLearnsAndThePictureIsTheSame) {
  std::vector<std::vector<std::uint8_t>> pictures;
  std::set<std::string> messages;
  {
    Example with(true);
    with.play();
    EXPECT_GE(with.meadow.success(), 0.9f);
    pictures = with.pictures;
    messages = with.messages;
  }
  Example without(false);
  without.play();
  ASSERT_EQ(pictures.size(), std::size(kRead));
  EXPECT_NE(pictures[0], pictures[1]);
  EXPECT_EQ(pictures, without.pictures);
  EXPECT_EQ(messages, without.messages) << "what validation says of Imprint";
}

}  // namespace
}  // namespace imprint::hosts
