#include "engine-bridge/own/own_instance.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "compute/base/text.h"
#include "engine-bridge/own/creation_error.h"
#include "engine-bridge/own/loader.h"

namespace imprint::bridge {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

template <class F>
F find(PFN_vkGetInstanceProcAddr get, VkInstance instance, const char* name) {
  return reinterpret_cast<F>(get(instance, name));
}

Error no_device() {
  return make_error(ErrorCode::not_found,
                    "no Vulkan device: install a driver, or mesa-vulkan-drivers for software. The device cpu "
                    "needs none.");
}

Error instance_error(const char* call, VkResult result) {
  return result == VK_ERROR_INCOMPATIBLE_DRIVER ? no_device() : creation_error(call, result);
}

std::vector<VkExtensionProperties> instance_extensions(PFN_vkGetInstanceProcAddr get, const char* layer) {
  const auto enumerate = find<PFN_vkEnumerateInstanceExtensionProperties>(
      get, nullptr, "vkEnumerateInstanceExtensionProperties");
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> list;
  if (!enumerate || enumerate(layer, &count, nullptr) != VK_SUCCESS) return list;
  list.resize(count);
  if (enumerate(layer, &count, list.data()) < 0) count = 0;
  list.resize(std::min<std::size_t>(count, list.size()));
  return list;
}

bool contains(const std::vector<VkExtensionProperties>& list, const char* name) {
  return std::ranges::any_of(
      list, [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

// The Vulkan version that the layer was written for; 0: no such layer.
std::uint32_t layer_version(PFN_vkGetInstanceProcAddr get, std::string_view name) {
  const auto enumerate =
      find<PFN_vkEnumerateInstanceLayerProperties>(get, nullptr, "vkEnumerateInstanceLayerProperties");
  std::uint32_t count = 0;
  if (!enumerate || enumerate(&count, nullptr) != VK_SUCCESS) return 0;
  std::vector<VkLayerProperties> list(count);
  if (enumerate(&count, list.data()) < 0) return 0;
  list.resize(std::min<std::size_t>(count, list.size()));
  const auto found =
      std::ranges::find_if(list, [&](const VkLayerProperties& l) { return name == l.layerName; });
  return found == list.end() ? 0 : found->specVersion;
}

}  // namespace

Result<std::unique_ptr<OwnInstance>> OwnInstance::create(const InstanceOptions& options) {
  std::unique_ptr<OwnInstance> own(new OwnInstance);
  own->log_ = options.log;
  IMPRINT_ASSIGN(const SystemLoader loader, find_system_loader());
  const auto get = own->get_instance_proc_addr_ = loader.get_instance_proc_addr;

  std::uint32_t loader_version = VK_API_VERSION_1_0;
  if (const auto enumerate = find<PFN_vkEnumerateInstanceVersion>(get, nullptr, "vkEnumerateInstanceVersion"))
    enumerate(&loader_version);
  if (loader_version < VK_API_VERSION_1_1)
    return make_error(ErrorCode::not_found,
                      "Vulkan loader: found version 1.0, expected 1.1 or newer. Install a newer one.");
  own->api_version_ = options.api_version ? std::min(options.api_version, loader_version) : loader_version;

  const auto available = instance_extensions(get, nullptr);
  const bool portability = contains(available, "VK_KHR_portability_enumeration");
  if (portability) own->extensions_.push_back("VK_KHR_portability_enumeration");

  std::vector<const char*> layers;
  bool messages = false;
  const VkValidationFeatureEnableEXT checks[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT validation{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  if (options.validation) {
    own->validated_as_ = layer_version(get, kValidationLayer);
    if (own->validated_as_ == 0)
      return make_error(ErrorCode::unsupported,
                        text("validation: found no layer ", kValidationLayer,
                             ". Install vulkan-validationlayers (Debian), or the Vulkan SDK."));
    layers.push_back(kValidationLayer);
    const auto of_layer = instance_extensions(get, kValidationLayer);
    if (contains(of_layer, "VK_EXT_validation_features")) {
      own->extensions_.push_back("VK_EXT_validation_features");
      validation.enabledValidationFeatureCount = 1;
      validation.pEnabledValidationFeatures = checks;
    }
    messages = contains(of_layer, "VK_EXT_debug_utils") || contains(available, "VK_EXT_debug_utils");
    if (!messages)
      return make_error(
          ErrorCode::unsupported,
          "validation: found no VK_EXT_debug_utils, which the layer reports with. Update the loader.");
  }
  if (messages || (options.optional_extensions && contains(available, "VK_EXT_debug_utils")))
    own->extensions_.push_back("VK_EXT_debug_utils");

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "imprint";
  application.pEngineName = "imprint";
  application.apiVersion = own->api_version_;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  if (validation.enabledValidationFeatureCount) info.pNext = &validation;
  if (portability) info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(own->extensions_.size());
  info.ppEnabledExtensionNames = own->extensions_.data();
  const auto create = find<PFN_vkCreateInstance>(get, nullptr, "vkCreateInstance");
  if (!create)
    return make_error(ErrorCode::not_found, "Vulkan loader: found no vkCreateInstance. Reinstall it.");
  const VkResult result = create(&info, nullptr, &own->instance_);
  if (result != VK_SUCCESS) return instance_error("vkCreateInstance", result);
  IMPRINT_CHECK(own->load_functions());
  if (messages) IMPRINT_CHECK(own->create_messenger());
  return own;
}

OwnInstance::~OwnInstance() {
  if (messenger_) {
    const auto destroy = find<PFN_vkDestroyDebugUtilsMessengerEXT>(get_instance_proc_addr_, instance_,
                                                                   "vkDestroyDebugUtilsMessengerEXT");
    if (destroy) destroy(instance_, messenger_, nullptr);
  }
  if (instance_ && vkDestroyInstance) vkDestroyInstance(instance_, nullptr);
}

Result<> OwnInstance::load_functions() {
#define X(name)                                                       \
  name = find<PFN_##name>(get_instance_proc_addr_, instance_, #name); \
  if (!name)                                                          \
    return make_error(ErrorCode::not_found, "Vulkan loader: found no " #name ". Install a newer one.");
  IMPRINT_OWN_INSTANCE_FUNCTIONS(X)
#undef X
  return {};
}

Result<> OwnInstance::create_messenger() {
  const auto create = find<PFN_vkCreateDebugUtilsMessengerEXT>(get_instance_proc_addr_, instance_,
                                                               "vkCreateDebugUtilsMessengerEXT");
  if (!create)
    return make_error(
        ErrorCode::unsupported,
        "Vulkan loader: found no vkCreateDebugUtilsMessengerEXT, although VK_EXT_debug_utils is enabled.");
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  // Without the general type, in which the loader reports on installed drivers.
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = this;
  const VkResult result = create(instance_, &info, nullptr, &messenger_);
  if (result != VK_SUCCESS) return instance_error("vkCreateDebugUtilsMessengerEXT", result);
  return {};
}

VkBool32 OwnInstance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                 const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto& own = *static_cast<OwnInstance*>(user);
  const char* message = data && data->pMessage ? data->pMessage : "";
  {
    const std::lock_guard lock(own.mutex_);
    if (own.messages_++ == 0) own.first_message_ = message;
  }
  own.log_(LogLevel::error, message);
  return VK_FALSE;
}

std::string OwnInstance::first_validation_message() const {
  const std::lock_guard lock(mutex_);
  return first_message_;
}

Result<std::vector<VkPhysicalDevice>> OwnInstance::physical_devices() const {
  std::uint32_t count = 0;
  VkResult result = vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  if (result != VK_SUCCESS) return instance_error("vkEnumeratePhysicalDevices", result);
  std::vector<VkPhysicalDevice> devices(count);
  result = vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  if (result < 0) return instance_error("vkEnumeratePhysicalDevices", result);
  devices.resize(count);
  if (devices.empty()) return no_device();
  return devices;
}

}  // namespace imprint::bridge
