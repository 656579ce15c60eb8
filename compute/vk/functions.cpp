#include "compute/vk/functions.h"

#include <string>
#include <string_view>

#include "compute/base/text.h"
#include "compute/vk/capabilities/capabilities.h"

namespace imprint::vk {
namespace {

// Falls back to the KHR and EXT names, which devices of lower versions have instead.
template <class Lookup>
PFN_vkVoidFunction find(const Lookup& lookup, const char* name) {
  if (const auto function = lookup(name)) return function;
  if (const auto function = lookup((std::string(name) + "KHR").c_str())) return function;
  return lookup((std::string(name) + "EXT").c_str());
}

Error missing(const char* name, const char* whose) {
  return make_error(ErrorCode::invalid_argument,
                    text("get_instance_proc_addr: found no ", name, ", which every ", whose,
                         " of vulkan 1.1 has. Pass the function that created the instance, and the instance "
                         "and device themselves."));
}

}  // namespace

Result<Functions> load_functions(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance,
                                 VkDevice device) {
  if (!get_instance_proc_addr)
    return make_error(ErrorCode::invalid_argument,
                      "get_instance_proc_addr: found null, expected the host's. Pass vkGetInstanceProcAddr.");
  if (!instance)
    return make_error(ErrorCode::invalid_argument,
                      "instance: found null, expected the host's. Pass what vkCreateInstance made.");
  if (!device)
    return make_error(ErrorCode::invalid_argument,
                      "device: found null, expected the host's. Pass what vkCreateDevice made.");

  Functions functions;
  const auto of_instance = [&](const char* name) { return get_instance_proc_addr(instance, name); };
#define X(name)                                                            \
  functions.name = reinterpret_cast<PFN_##name>(find(of_instance, #name)); \
  if (!functions.name) return missing(#name, "instance");
  IMPRINT_VK_INSTANCE_FUNCTIONS(X)
#undef X
#define X(name) functions.name = reinterpret_cast<PFN_##name>(of_instance(#name));
  IMPRINT_VK_OPTIONAL_INSTANCE_FUNCTIONS(X)
#undef X

  const auto of_device = [&](const char* name) { return functions.vkGetDeviceProcAddr(device, name); };
#define X(name)                                                    \
  functions.name = reinterpret_cast<PFN_##name>(of_device(#name)); \
  if (!functions.name) return missing(#name, "device");
  IMPRINT_VK_DEVICE_FUNCTIONS(X)
#undef X
#define X(name) functions.name = reinterpret_cast<PFN_##name>(find(of_device, #name));
  IMPRINT_VK_OPTIONAL_DEVICE_FUNCTIONS(X)
#undef X
  return functions;
}

void drop_undeclared(Functions& f, const Capabilities& has) {
  const auto keep = [](bool effective, auto&... functions) {
    if (!effective) ((functions = nullptr), ...);
  };
  keep(has.timeline_semaphore, f.vkGetSemaphoreCounterValue, f.vkWaitSemaphores, f.vkSignalSemaphore);
  keep(has.synchronization2, f.vkQueueSubmit2, f.vkCmdPipelineBarrier2);
  keep(has.host_query_reset, f.vkResetQueryPool);
  keep(has.debug_utils, f.vkSetDebugUtilsObjectNameEXT, f.vkCmdBeginDebugUtilsLabelEXT,
       f.vkCmdEndDebugUtilsLabelEXT, f.vkQueueBeginDebugUtilsLabelEXT, f.vkQueueEndDebugUtilsLabelEXT);
}

}  // namespace imprint::vk
