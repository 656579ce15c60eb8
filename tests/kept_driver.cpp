// Some drivers fail after about thirty loads and unloads in one process. Programs that open many devices link
// this file. It holds one VkInstance from before the first test to the end of the process, which keeps the
// drivers loaded. Without Vulkan it does nothing.

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
    // The loader loads some drivers only when their devices are enumerated.
    const auto enumerate =
        reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(get(instance_, "vkEnumeratePhysicalDevices"));
    std::uint32_t count = 0;
    if (enumerate) enumerate(instance_, &count, nullptr);
  }

 private:
  // Never destroyed: objects that tests leave until the process ends still need the driver.
  VkInstance instance_ = VK_NULL_HANDLE;
};

const auto* const kept_driver = testing::AddGlobalTestEnvironment(new KeptDriver);

}  // namespace
