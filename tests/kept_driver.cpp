// A driver that is loaded and unloaded some thirty times in one process may refuse the next time. Programs
// that open many devices link this: an instance of its own keeps the drivers loaded from before the first
// test to the end of the process. Where there is no Vulkan there is nothing to keep.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace {

class KeptDriver : public testing::Environment {
 public:
  void SetUp() override {
    void* const loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto get = loader
                         ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"))
                         : nullptr;
    const auto create =
        get ? reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance")) : nullptr;
    const VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    if (!create || instance_ || create(&info, nullptr, &instance_) != VK_SUCCESS) return;
    // Some are loaded only when somebody asks for their devices.
    const auto enumerate =
        reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(get(instance_, "vkEnumeratePhysicalDevices"));
    std::uint32_t count = 0;
    if (enumerate) enumerate(instance_, &count, nullptr);
  }

 private:
  VkInstance instance_ = VK_NULL_HANDLE;  // never destroyed: what the tests leave to the end of the process
                                          // still needs the driver
};

const auto* const kept_driver = testing::AddGlobalTestEnvironment(new KeptDriver);

}  // namespace
