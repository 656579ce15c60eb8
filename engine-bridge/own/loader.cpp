#include "engine-bridge/own/loader.h"

#include "compute/base/text.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace imprint::bridge {
namespace {

#if defined(_WIN32)
constexpr const char* kNames[] = {"vulkan-1.dll"};
constexpr const char* kRemedy = "install a graphics driver with Vulkan";
PFN_vkGetInstanceProcAddr look_in(const char* name) {
  const HMODULE library = LoadLibraryA(name);
  return library ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(
                       reinterpret_cast<void*>(GetProcAddress(library, "vkGetInstanceProcAddr")))
                 : nullptr;
}
#else
#if defined(__APPLE__)
constexpr const char* kNames[] = {"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"};
constexpr const char* kRemedy = "install the Vulkan SDK";
#else
constexpr const char* kNames[] = {"libvulkan.so.1", "libvulkan.so"};
constexpr const char* kRemedy = "install libvulkan1";
#endif
PFN_vkGetInstanceProcAddr look_in(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"))
                 : nullptr;
}
#endif

}  // namespace

Result<SystemLoader> find_system_loader() {
  for (const char* name : kNames) {
    if (const auto found = look_in(name)) return SystemLoader{found};
  }
  return make_error(ErrorCode::not_found, text("no Vulkan loader: ", kRemedy));
}

}  // namespace imprint::bridge
