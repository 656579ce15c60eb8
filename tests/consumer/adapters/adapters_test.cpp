// The adapters compile against declarations of the engines' interfaces and fill in the right values. The
// engines themselves do not run here.

#include "samples/adapters/godot.h"
#include "samples/adapters/unity.h"
#include "samples/adapters/unreal.h"
#include "samples/adapters/vsg.h"
#include "samples/adapters/vulkan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace imprint::adapters {
namespace {

template <class Handle>
Handle handle(std::uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}

PFN_vkVoidFunction VKAPI_CALL no_function(VkInstance, const char*) { return nullptr; }

void expect_handles(const imp_vk_device_info& info, std::uintptr_t instance, std::uintptr_t physical_device,
                    std::uintptr_t device) {
  EXPECT_EQ(info.header.size, sizeof info);
  EXPECT_EQ(info.instance, handle<VkInstance>(instance));
  EXPECT_EQ(info.physical_device, handle<VkPhysicalDevice>(physical_device));
  EXPECT_EQ(info.device, handle<VkDevice>(device));
}

TEST(AdapterUnity, FillsInUnitysDevice) {
  IUnityGraphicsVulkan vulkan{[] {
    UnityVulkanInstance unity{};
    unity.pipelineCache = handle<VkPipelineCache>(5);
    unity.instance = handle<VkInstance>(1);
    unity.physicalDevice = handle<VkPhysicalDevice>(2);
    unity.device = handle<VkDevice>(3);
    unity.graphicsQueue = handle<VkQueue>(4);
    unity.getInstanceProcAddr = no_function;
    unity.queueFamilyIndex = 6;
    return unity;
  }};
  const imp_vk_device_info record = describe_unity(vulkan, UnityAccess::record);
  expect_handles(record, 1, 2, 3);
  EXPECT_EQ(record.get_instance_proc_addr, reinterpret_cast<imp_get_instance_proc_addr>(no_function));
  EXPECT_EQ(record.api_version, VK_API_VERSION_1_1);
  EXPECT_EQ(record.pipeline_cache, 5u);
  EXPECT_EQ(record.queue.queue, nullptr);
  EXPECT_EQ(record.queue.family, 6u);
  const imp_vk_device_info submit = describe_unity(vulkan, UnityAccess::submit);
  EXPECT_EQ(submit.queue.queue, handle<VkQueue>(4));
  EXPECT_EQ(submit.queue.access, IMP_QUEUE_SINGLE_THREAD);
  UnityVulkanRecordingState state{};
  state.currentFrameNumber = 9;
  state.safeFrameNumber = 7;
  const imp_frame_info frame = unity_frame(state, 0.5);
  EXPECT_EQ(frame.frame, 9u);
  EXPECT_EQ(frame.safe_frame, 7u);
  EXPECT_EQ(frame.time_s, 0.5);
  state.commandBuffer = handle<VkCommandBuffer>(8);
  EXPECT_EQ(unity_recording(state).command_buffer, handle<VkCommandBuffer>(8));
  EXPECT_EQ(unity_recording(state).state, 0u);
  state.renderPass = handle<VkRenderPass>(9);
  state.commandBufferLevel = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  EXPECT_EQ(unity_recording(state).state,
            static_cast<std::uint32_t>(IMP_RECORD_IN_RENDER_PASS | IMP_RECORD_SECONDARY));
}

class FakeRhi : public IVulkanDynamicRHI {
 public:
  std::uint32_t RHIGetVulkanVersion() const override { return VK_API_VERSION_1_3; }
  VkInstance RHIGetVkInstance() const override { return handle<VkInstance>(1); }
  VkPhysicalDevice RHIGetVkPhysicalDevice() const override { return handle<VkPhysicalDevice>(2); }
  VkDevice RHIGetVkDevice() const override { return handle<VkDevice>(3); }
  const VkAllocationCallbacks* RHIGetVkAllocationCallbacks() override { return &allocation; }
  std::uint32_t RHIGetGraphicsQueueIndex() const override { return 7; }
  std::uint32_t RHIGetGraphicsQueueFamilyIndex() const override { return 6; }
  void* RHIGetVkInstanceProcAddr(const char* name) const override {
    return std::strcmp(name, "vkGetInstanceProcAddr") == 0 ? reinterpret_cast<void*>(no_function) : nullptr;
  }
  TArray<FAnsiString> RHIGetLoadedDeviceExtensions() const override {
    TArray<FAnsiString> names;
    names.push_back({"VK_KHR_swapchain"});
    names.push_back({"VK_EXT_memory_budget"});
    return names;
  }
  VkAllocationCallbacks allocation{};
};

TEST(AdapterUnreal, FillsInTheRhisDevice) {
  FakeRhi rhi;
  const UnrealDevice made = describe_unreal(rhi);
  expect_handles(made.info, 1, 2, 3);
  EXPECT_EQ(made.info.get_instance_proc_addr, reinterpret_cast<imp_get_instance_proc_addr>(no_function));
  EXPECT_EQ(made.info.api_version, VK_API_VERSION_1_3);
  EXPECT_EQ(made.info.allocation_callbacks, &rhi.allocation);
  ASSERT_EQ(made.info.device_extension_count, 2u);
  EXPECT_STREQ(made.info.device_extensions[0], "VK_KHR_swapchain");
  EXPECT_STREQ(made.info.device_extensions[1], "VK_EXT_memory_budget");
  EXPECT_EQ(made.info.queue.queue, nullptr);
  EXPECT_EQ(made.info.queue.family, 6u);
  EXPECT_EQ(made.info.queue.access, IMP_QUEUE_RECORD_ONLY);
}

TEST(AdapterGodot, FillsInTheDriversResources) {
  godot::RenderingDevice rendering;
  const imp_vk_device_info info =
      describe_godot(rendering, reinterpret_cast<imp_get_instance_proc_addr>(no_function));
  expect_handles(info, 0x102, 0x101, 0x100);
  EXPECT_EQ(info.queue.queue, handle<VkQueue>(0x103));
  EXPECT_EQ(info.queue.family, 0x104u);
  EXPECT_EQ(info.queue.access, IMP_QUEUE_SINGLE_THREAD);
}

TEST(AdapterVsg, FillsInInstanceDeviceAndDeclaredExtensions) {
  vsg::Instance instance;
  vsg::PhysicalDevice physical_device;
  vsg::AllocationCallbacks allocation{};
  vsg::Device device;
  instance.instance = handle<VkInstance>(1);
  physical_device.device = handle<VkPhysicalDevice>(2);
  device.device = handle<VkDevice>(3);
  device.instance = &instance;
  device.physical_device = &physical_device;
  device.allocation = &allocation;
  device.enabledExtensions = {"VK_KHR_swapchain"};
  const imp_vk_device_info info = describe_vsg(device, 6);
  expect_handles(info, 1, 2, 3);
  EXPECT_EQ(info.get_instance_proc_addr,
            reinterpret_cast<imp_get_instance_proc_addr>(&vkGetInstanceProcAddr));
  EXPECT_EQ(info.api_version, VK_API_VERSION_1_1);
  ASSERT_EQ(info.device_extension_count, 1u);
  EXPECT_STREQ(info.device_extensions[0], "VK_KHR_swapchain");
  EXPECT_EQ(info.allocation_callbacks, &allocation);
  EXPECT_EQ(info.queue.family, 6u);
  EXPECT_EQ(info.queue.queue, nullptr);

  vsg::Queue queue;
  queue.queue = handle<VkQueue>(4);
  queue.family = 5;
  VsgQueue through(queue);
  const imp_vk_device_info submits = describe_vsg(device, 6, {}, &through);
  EXPECT_EQ(submits.queue.access, IMP_QUEUE_SUBMIT_CALLBACK);
  EXPECT_EQ(submits.queue.submit_without_fence, 1u);
  EXPECT_EQ(submits.queue.family, 5u);
  const VkSubmitInfo infos[2]{};
  EXPECT_EQ(submits.queue.submit(submits.queue.user, queue.queue, 2, infos, 0), VK_SUCCESS);
  EXPECT_EQ(queue.submitted, 2u);
}

// The create infos are gone by the time the context is made. The adapter has copies of all that Imprint
// reads.
TEST(AdapterVulkan, KeepsWhatTheGamePassed) {
  VulkanGuest guest;
  {
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_2;
    std::string name = "VK_KHR_surface", swapchain = "VK_KHR_swapchain";
    const char* names[] = {name.c_str()};
    const char* device_names[] = {swapchain.c_str()};
    VkInstanceCreateInfo instance{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    instance.pApplicationInfo = &application;
    instance.enabledExtensionCount = 1;
    instance.ppEnabledExtensionNames = names;
    guest.made_instance(instance, handle<VkInstance>(1),
                        reinterpret_cast<PFN_vkGetInstanceProcAddr>(no_function));
    // An unknown struct, then what engines chain, with Features2 last.
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    features.features.shaderInt16 = VK_TRUE;
    VkPhysicalDeviceVulkan12Features newer{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &features};
    newer.timelineSemaphore = VK_TRUE;
    VkPhysicalDevice16BitStorageFeatures storage{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                                                 &newer};
    VkDeviceGroupDeviceCreateInfo unknown{VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO, &storage};
    VkDeviceCreateInfo device{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &unknown};
    device.enabledExtensionCount = 1;
    device.ppEnabledExtensionNames = device_names;
    guest.made_device(device, handle<VkPhysicalDevice>(2), handle<VkDevice>(3));
    name = swapchain = "gone";
    newer.timelineSemaphore = VK_FALSE;
  }
  const imp_vk_device_info record = guest.record_only(6);
  expect_handles(record, 1, 2, 3);
  EXPECT_EQ(record.api_version, VK_API_VERSION_1_2);
  ASSERT_EQ(record.instance_extension_count, 1u);
  EXPECT_STREQ(record.instance_extensions[0], "VK_KHR_surface");
  ASSERT_EQ(record.device_extension_count, 1u);
  EXPECT_STREQ(record.device_extensions[0], "VK_KHR_swapchain");
  const auto* features = static_cast<const VkPhysicalDeviceFeatures2*>(record.features);
  ASSERT_EQ(features->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  EXPECT_EQ(features->features.shaderInt16, VK_TRUE);
  const auto* storage = static_cast<const VkPhysicalDevice16BitStorageFeatures*>(features->pNext);
  ASSERT_EQ(storage->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  const auto* newer = static_cast<const VkPhysicalDeviceVulkan12Features*>(storage->pNext);
  ASSERT_EQ(newer->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  EXPECT_EQ(newer->timelineSemaphore, VK_TRUE);
  EXPECT_EQ(newer->pNext, nullptr);
  const imp_vk_device_info locked = guest.locked(handle<VkQueue>(4), 6);
  locked.queue.lock(locked.queue.user, locked.queue.queue);
  bool taken = true;
  std::thread([&] { taken = !guest.queue_lock().try_lock(); }).join();
  EXPECT_TRUE(taken);
  locked.queue.unlock(locked.queue.user, locked.queue.queue);

  VkPhysicalDeviceFeatures old{};
  old.shaderInt64 = VK_TRUE;
  VkDeviceCreateInfo plain{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  plain.pEnabledFeatures = &old;
  guest.made_device(plain, handle<VkPhysicalDevice>(2), handle<VkDevice>(3));
  const auto* alone = static_cast<const VkPhysicalDeviceFeatures2*>(guest.record_only(6).features);
  EXPECT_EQ(alone->features.shaderInt64, VK_TRUE);
  EXPECT_EQ(alone->pNext, nullptr);
}

}  // namespace
}  // namespace imprint::adapters
