#include "compute/vk/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "compute/vk/handle.h"
#include "tests/gpu/vk_fixture.h"

namespace imprint::vk {
namespace {

using test::HostDevice;
using test::Instance;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StrEq;

// Returns the unique value, or fails the test and names what the machine lacks.
template <class T>
T take(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().message;
    return T{};
  }
  return std::move(result).value();
}

bool has_loss(const Device& device, const std::string& item) {
  for (const auto& loss : device.missing_features()) {
    if (loss.item == item) return true;
  }
  return false;
}

TEST(VkDevice, AdoptsTheDeclaredFeatures) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  VkPhysicalDeviceVulkan12Features features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  features.timelineSemaphore = VK_TRUE;
  features.hostQueryReset = VK_TRUE;
  {
    const auto host = take(HostDevice::create(*instance, &features));
    ASSERT_TRUE(host);
    const auto device = take(Device::adopt(host->description(), {}));
    ASSERT_TRUE(device);
    const Capabilities& capabilities = device->capabilities();
    EXPECT_TRUE(capabilities.timeline_semaphore);
    EXPECT_TRUE(capabilities.host_query_reset);
    EXPECT_FALSE(capabilities.synchronization2);
    EXPECT_TRUE(has_loss(*device, "synchronization2"));
    EXPECT_FALSE(has_loss(*device, "timelineSemaphore"));
    EXPECT_EQ(capabilities.debug_utils, instance->validated());
    EXPECT_FALSE(capabilities.device_name.empty());
    EXPECT_FALSE(capabilities.driver_name.empty());
    EXPECT_GE(capabilities.max_storage_buffer_range, 1u << 27);
    EXPECT_GE(capabilities.max_storage_buffers_per_stage, 4u);
    EXPECT_GE(capabilities.subgroup_size, 1u);
    EXPECT_EQ(device->handle(), host->description().device);
    EXPECT_EQ(device->allocation_callbacks(), nullptr);
    EXPECT_TRUE(device->functions().vkWaitSemaphores);
  }
  EXPECT_THAT(instance->messages(), IsEmpty());
}

TEST(VkDevice, AdoptsABareDeviceOf11ByExtensionsAlone) {
  const auto instance = take(Instance::create(VK_API_VERSION_1_1));
  ASSERT_TRUE(instance);
  {
    const auto bare = take(HostDevice::create(*instance));
    const auto extended_host = [&] {
      VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, nullptr, VK_TRUE};
      auto host = take(HostDevice::create(*instance, &timeline, {"VK_KHR_timeline_semaphore"}));
      auto adopted = take(Device::adopt(host->description(), {}));
      return std::pair(std::move(host), std::move(adopted));
    }();
    ASSERT_TRUE(bare && extended_host.first && extended_host.second);
    const auto device = take(Device::adopt(bare->description(), {}));
    ASSERT_TRUE(device);
    EXPECT_EQ(device->capabilities().api_version, VK_API_VERSION_1_1);
    EXPECT_FALSE(device->capabilities().timeline_semaphore);
    EXPECT_GE(device->missing_features().size(), 8u);
    EXPECT_TRUE(extended_host.second->capabilities().timeline_semaphore);
    EXPECT_TRUE(extended_host.second->functions().vkGetSemaphoreCounterValue) << "found under its KHR name";
  }
  EXPECT_THAT(instance->messages(), IsEmpty());
}

TEST(VkDevice, Refuses10AndNamesTheField) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  const auto host = take(HostDevice::create(*instance));
  auto description = host->description();
  description.api_version = VK_API_VERSION_1_0;
  const auto device = Device::adopt(description, {});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::unsupported);
  EXPECT_THAT(device.error().message, HasSubstr("VkApplicationInfo::apiVersion"));
}

TEST(VkDevice, NamesTheFieldThatIsMissing) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  const auto host = take(HostDevice::create(*instance));
  const auto refusal = [&](auto change) {
    auto description = host->description();
    change(description);
    const auto device = Device::adopt(description, {});
    EXPECT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, ErrorCode::invalid_argument);
    return device.error().message;
  };
  EXPECT_THAT(refusal([](DeviceDescription& d) { d.get_instance_proc_addr = nullptr; }),
              HasSubstr("get_instance_proc_addr: found null"));
  EXPECT_THAT(refusal([](DeviceDescription& d) { d.instance = VK_NULL_HANDLE; }),
              HasSubstr("instance: found null"));
  EXPECT_THAT(refusal([](DeviceDescription& d) { d.physical_device = VK_NULL_HANDLE; }),
              HasSubstr("physical_device: found null"));
  EXPECT_THAT(refusal([](DeviceDescription& d) { d.device = VK_NULL_HANDLE; }),
              HasSubstr("device: found null"));
  EXPECT_THAT(refusal([](DeviceDescription& d) { d.queue_family = 77; }),
              HasSubstr("queue.family: found 77"));
  EXPECT_THAT(refusal([](DeviceDescription& d) {
                d.get_instance_proc_addr = [](VkInstance, const char*) -> PFN_vkVoidFunction {
                  return nullptr;
                };
              }),
              HasSubstr("found no vkGetDeviceProcAddr"));
}

TEST(VkDevice, LivesTwiceInOneProcess) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  {
    VkPhysicalDeviceVulkan12Features features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    features.timelineSemaphore = VK_TRUE;
    const auto host_a = take(HostDevice::create(*instance, &features)),
               host_b = take(HostDevice::create(*instance));
    ASSERT_TRUE(host_a && host_b);
    auto a = take(Device::adopt(host_a->description(), {}));
    auto b = take(Device::adopt(host_b->description(), {}));
    auto again = take(Device::adopt(host_a->description(), {}));  // two on one device
    ASSERT_TRUE(a && b && again);
    EXPECT_TRUE(a->capabilities().timeline_semaphore);
    EXPECT_FALSE(b->capabilities().timeline_semaphore);
    for (Device* device : {a.get(), b.get(), again.get()}) {
      auto memory = device->memory().allocate(1024, 16, MemoryUse::upload);
      ASSERT_TRUE(memory.ok());
      std::memset(memory->mapped, 1, 1024);
      device->memory().free(*memory);
    }
    a.reset();
    EXPECT_TRUE(again->memory().allocate(64, 16, MemoryUse::device).ok());
    EXPECT_TRUE(b->pipelines().layouts(2).ok());
  }
  EXPECT_THAT(instance->messages(), IsEmpty());
}

// Counts the driver's calls to the host's allocator. Allocations and frees must match.
struct CountingAllocator {
  int allocations = 0, frees = 0;
  VkAllocationCallbacks callbacks() {
    VkAllocationCallbacks c{};
    c.pUserData = this;
    c.pfnAllocation = [](void* user, std::size_t size, std::size_t alignment,
                         VkSystemAllocationScope) -> void* {
      ++static_cast<CountingAllocator*>(user)->allocations;
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    c.pfnReallocation = [](void* user, void* old, std::size_t size, std::size_t,
                           VkSystemAllocationScope) -> void* {
      if (!old) ++static_cast<CountingAllocator*>(user)->allocations;
      return std::realloc(old, size);
    };
    c.pfnFree = [](void* user, void* memory) {
      if (memory) ++static_cast<CountingAllocator*>(user)->frees;
      std::free(memory);
    };
    return c;
  }
};

TEST(VkDevice, UsesTheHostsAllocationCallbacksThroughout) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  CountingAllocator allocator;
  {
    const auto host = take(HostDevice::create(*instance));
    auto description = host->description();
    std::unique_ptr<Device> device;
    {
      const VkAllocationCallbacks callbacks = allocator.callbacks();  // read during adopt only
      description.allocation_callbacks = &callbacks;
      device = take(Device::adopt(description, {}));
    }
    ASSERT_TRUE(device);
    ASSERT_TRUE(device->allocation_callbacks());
    const auto memory = device->memory().allocate(4096, 16, MemoryUse::device);
    ASSERT_TRUE(memory.ok());
    device->memory().free(*memory);
    ASSERT_TRUE(device->pipelines().layouts(1).ok());
  }
  EXPECT_GT(allocator.allocations, 0);
  EXPECT_EQ(allocator.allocations, allocator.frees);
  EXPECT_THAT(instance->messages(), IsEmpty());
}

TEST(VkDevice, RetiresByTicketAndEmptiesWhenItEnds) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  std::string order;
  {
    const auto host = take(HostDevice::create(*instance));
    const auto device = take(Device::adopt(host->description(), {}));
    ASSERT_TRUE(device);
    const auto memory = device->memory().allocate(256, 16, MemoryUse::device);
    ASSERT_TRUE(memory.ok());
    const Ticket first = device->completion().next(), second = device->completion().next();
    EXPECT_EQ(device->last_ticket(), second);
    device->retire(second, [&] { order += "b"; });
    device->retire(first, [&] { order += "a"; });
    device->retire(Ticket{99}, [&order, d = device.get(), held = *memory] {
      order += "c";
      d->memory().free(held);  // pool and device are still there
    });
    EXPECT_FALSE(device->is_complete(first));
    device->collect();
    EXPECT_THAT(order, StrEq(""));

    Ticket gpu = first;
    device->completion().set_poll([&gpu] { return gpu; });
    EXPECT_TRUE(device->is_complete(first));
    EXPECT_FALSE(device->is_complete(second));
    device->collect();
    EXPECT_THAT(order, StrEq("a"));
    gpu = second;
    device->collect();
    EXPECT_THAT(order, StrEq("ab"));
    device->retire(second, [&] { order += "!"; });
    EXPECT_THAT(order, StrEq("ab!")) << "complete already";
    device->completion().set_poll({});
  }
  EXPECT_THAT(order, StrEq("ab!c"));
  EXPECT_THAT(instance->messages(), IsEmpty());
}

TEST(VkDevice, MakesNoMoreCallsOnceLost) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  const auto host = take(HostDevice::create(*instance));
  const auto device = take(Device::adopt(host->description(), {}));
  ASSERT_TRUE(device);
  int polled = 0;
  device->completion().set_poll([&] {
    ++polled;
    return Ticket{0};
  });
  const Error error = vulkan_error(*device, "vkQueueSubmit", VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(error.code, ErrorCode::device_lost);
  EXPECT_EQ(error.message, "vkQueueSubmit: VK_ERROR_DEVICE_LOST");
  EXPECT_TRUE(device->lost());
  EXPECT_FALSE(device->is_complete(Ticket{1}));
  device->collect();
  EXPECT_EQ(polled, 0);
  EXPECT_EQ(device->memory().allocate(16, 16, MemoryUse::device).error().code, ErrorCode::device_lost);
  const KernelSource source{"any", "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n", 0};
  EXPECT_EQ(device->pipelines().get(std::span(&source, 1)).error().code, ErrorCode::device_lost);
}

TEST(VkDevice, TurnsResultsIntoCodes) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  const auto host = take(HostDevice::create(*instance));
  const auto device = take(Device::adopt(host->description(), {}));
  ASSERT_TRUE(device);
  EXPECT_EQ(vulkan_error(*device, "x", VK_ERROR_OUT_OF_DEVICE_MEMORY).code, ErrorCode::out_of_device_memory);
  EXPECT_EQ(vulkan_error(*device, "x", VK_ERROR_OUT_OF_HOST_MEMORY).code, ErrorCode::out_of_host_memory);
  EXPECT_EQ(vulkan_error(*device, "x", VK_TIMEOUT).code, ErrorCode::not_ready);
  EXPECT_EQ(vulkan_error(*device, "x", static_cast<VkResult>(-12345)).message, "x: VkResult -12345");
  EXPECT_FALSE(device->lost());
}

TEST(VkFixture, ReportsValidationErrors) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  if (!instance->validated()) GTEST_SKIP() << "VK_LAYER_KHRONOS_validation is not installed";
  {
    const auto host = take(HostDevice::create(*instance));
    const auto device = take(Device::adopt(host->description(), {}));
    ASSERT_TRUE(device);
    const Functions& f = device->functions();
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    take(make_handle<VkFence>(*device, "vkCreateFence", f.vkCreateFence, f.vkDestroyFence, info)).release();
  }
  EXPECT_THAT(instance->messages(), Contains(HasSubstr("VkFence"))) << "a leaked fence";
}

TEST(VkHandle, IsOwnedByOne) {
  const auto instance = take(Instance::create());
  ASSERT_TRUE(instance);
  {
    const auto host = take(HostDevice::create(*instance));
    const auto device = take(Device::adopt(host->description(), {}));
    ASSERT_TRUE(device);
    const Functions& f = device->functions();
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    auto fence =
        take(make_handle<VkFence>(*device, "vkCreateFence", f.vkCreateFence, f.vkDestroyFence, info));
    const VkFence raw = fence.get();
    ASSERT_TRUE(fence);
    Handle<VkFence> other = std::move(fence);
    EXPECT_FALSE(fence);
    EXPECT_EQ(other.get(), raw);
    fence = std::move(other);
    EXPECT_EQ(fence.get(), raw);
    const VkFence given = fence.release();
    EXPECT_FALSE(fence);
    f.vkDestroyFence(device->handle(), given, nullptr);
  }
  EXPECT_THAT(instance->messages(), IsEmpty()) << "a leaked fence shows when the device is destroyed";
}

}  // namespace
}  // namespace imprint::vk
