#include "engine-bridge/own/device_link.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "compute/base/text.h"
#include "engine-bridge/own/external_handle.h"

#define IMPRINT_LINK_FUNCTIONS(X)  \
  X(vkCreateBuffer)                \
  X(vkDestroyBuffer)               \
  X(vkGetBufferMemoryRequirements) \
  X(vkAllocateMemory)              \
  X(vkFreeMemory)                  \
  X(vkBindBufferMemory)

namespace imprint::bridge {
namespace {

Error refuse(const std::string& why) { return make_error(ErrorCode::unsupported, why); }

bool lists(std::span<const char* const> list, std::string_view name) {
  return std::ranges::any_of(list, [&](const char* each) { return each && name == each; });
}

// The host declares the extension, and Vulkan 1.1 or the older extensions that it builds on.
Result<> check_declared(const vk::DeviceDescription& host, const char* extension,
                        std::initializer_list<const char*> device,
                        std::initializer_list<const char*> instance) {
  if (!lists(host.device_extensions, extension))
    return refuse(text("the host's device does not declare ", extension));
  if (host.api_version >= VK_API_VERSION_1_1) return {};
  for (const char* name : device)
    if (!lists(host.device_extensions, name))
      return refuse(text("the host's device does not declare ", name, ", which Vulkan 1.0 needs"));
  for (const char* name : instance)
    if (!lists(host.instance_extensions, name))
      return refuse(text("the host's instance does not declare ", name, ", which Vulkan 1.0 needs"));
  return {};
}

// The functions of the host's device that an imported buffer needs.
struct HostDevice {
  VkDevice device = VK_NULL_HANDLE;
  PFN_vkGetDeviceProcAddr get = nullptr;
  std::optional<VkAllocationCallbacks> callbacks;
#define X(name) PFN_##name name = nullptr;
  IMPRINT_LINK_FUNCTIONS(X)
#undef X

  static Result<HostDevice> load(const vk::DeviceDescription& host) {
    HostDevice found;
    found.device = host.device;
    if (host.allocation_callbacks) found.callbacks = *host.allocation_callbacks;
    if (!host.get_instance_proc_addr || !host.instance || !host.device)
      return refuse("the host gives no device");
    found.get = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        host.get_instance_proc_addr(host.instance, "vkGetDeviceProcAddr"));
    if (!found.get) return refuse("the host's loader has no vkGetDeviceProcAddr");
#define X(name)                                                             \
  found.name = reinterpret_cast<PFN_##name>(found.get(host.device, #name)); \
  if (!found.name) return refuse("the host's loader has no " #name);
    IMPRINT_LINK_FUNCTIONS(X)
#undef X
    return found;
  }
  const VkAllocationCallbacks* allocator() const { return callbacks ? &*callbacks : nullptr; }
};

class ImportedBuffer final : public HostSide {
 public:
  explicit ImportedBuffer(const HostDevice& host) : host_(host) {}
  ~ImportedBuffer() override {
    if (buffer_) host_.vkDestroyBuffer(host_.device, buffer_, host_.allocator());
    if (memory_) host_.vkFreeMemory(host_.device, memory_, host_.allocator());
  }
  VkBuffer buffer() const override { return buffer_; }
  VkDeviceMemory memory() const override { return memory_; }

  // With the same size and memory type as on Imprint's device.
  Result<> import(ExternalHandle handle, const vk::BlockMemoryInfo& memory, const HostBuffer& shared) {
    const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                    nullptr, kMemoryHandle};
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
    info.size = shared.size;
    info.usage = shared.usage;
    VkResult result = host_.vkCreateBuffer(host_.device, &info, host_.allocator(), &buffer_);
    if (result != VK_SUCCESS) return external_error("vkCreateBuffer on the host's device", result);
    VkMemoryRequirements needs{};
    host_.vkGetBufferMemoryRequirements(host_.device, buffer_, &needs);
    if (needs.size > memory.bytes || !(needs.memoryTypeBits >> memory.memory_type & 1u))
      return refuse("the host's device needs other memory for such a buffer than Imprint's device uses");
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = memory.bytes;
    allocate.memoryTypeIndex = memory.memory_type;
    result =
        handle.import_memory(host_.vkAllocateMemory, host_.device, allocate, host_.allocator(), &memory_);
    if (result != VK_SUCCESS)
      return external_error("vkAllocateMemory, importing on the host's device,", result);
    result = host_.vkBindBufferMemory(host_.device, buffer_, memory_, 0);
    if (result != VK_SUCCESS) return external_error("vkBindBufferMemory on the host's device", result);
    return {};
  }

 private:
  const HostDevice host_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

class Link final : public DeviceLink {
 public:
  Link(const HostDevice& host, Context& context) : host_(host), context_(context) {}

  // Whether the GPU exports and imports such memory. Both devices are of the same GPU.
  Result<> check_memory(const vk::DeviceDescription& own) {
    if (!lists(own.device_extensions, kMemoryExtension))
      return refuse(text("the device does not support ", kMemoryExtension));
    const auto ask = reinterpret_cast<PFN_vkGetPhysicalDeviceExternalBufferProperties>(
        own.get_instance_proc_addr(own.instance, "vkGetPhysicalDeviceExternalBufferProperties"));
    if (!ask) return refuse("the loader has no vkGetPhysicalDeviceExternalBufferProperties");
    ask_ = [ask, device = own.physical_device](VkBufferUsageFlags usage) {
      VkPhysicalDeviceExternalBufferInfo info{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
      info.usage = usage;
      info.handleType = kMemoryHandle;
      VkExternalBufferProperties found{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
      ask(device, &info, &found);
      return found.externalMemoryProperties.externalMemoryFeatures;
    };
    IMPRINT_CHECK(check_usage(SharedBuffer::usage_of({})));
    get_ = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        own.get_instance_proc_addr(own.instance, "vkGetDeviceProcAddr"));
    return get_ ? Result<>() : Result<>(refuse("the loader has no vkGetDeviceProcAddr"));
  }

  Result<> check_usage(VkBufferUsageFlags usage) const {
    const VkExternalMemoryFeatureFlags features = ask_(usage);
    constexpr VkExternalMemoryFeatureFlags kBoth =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    if ((features & kBoth) != kBoth)
      return refuse("the device cannot export and import a buffer of this usage");
    if (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT)
      return refuse("the device exports only memory dedicated to one buffer");
    return {};
  }

  Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) override {
    SharedBufferRequest exported = request;
    exported.families.clear();
    exported.stages = exported.access = 0;  // Imprint shares no queue with the host
    exported.exported = kMemoryHandle;
    IMPRINT_CHECK(check_usage(SharedBuffer::usage_of(exported)));
    IMPRINT_ASSIGN(std::shared_ptr<SharedBuffer> buffer, context_.create_buffer(exported));
    if (Result<> imported = import(*buffer); !imported.ok()) {
      context_.device().options().log(
          LogLevel::warning, text("shared buffer '", request.name,
                                  "': the host's device cannot import its memory, so observations and ",
                                  "actions pass through host memory: ", imported.error().message));
      return std::move(imported).error();
    }
    return buffer;
  }

 private:
  Result<> import(SharedBuffer& buffer) const {
    const vk::BlockMemoryInfo memory = buffer.memory_info();
    IMPRINT_ASSIGN(ExternalHandle handle,
                   ExternalHandle::of_memory(get_, context_.device().handle(), memory.memory));
    auto side = std::make_unique<ImportedBuffer>(host_);
    IMPRINT_CHECK(side->import(std::move(handle), memory, buffer.description()));
    buffer.set_host_side(std::move(side));
    return {};
  }

  const HostDevice host_;
  Context& context_;
  PFN_vkGetDeviceProcAddr get_ = nullptr;  // of Imprint's device
  std::function<VkExternalMemoryFeatureFlags(VkBufferUsageFlags)> ask_;
};

}  // namespace

GpuIdentity identify(const vk::DeviceDescription& description) {
  GpuIdentity found;
  if (!description.get_instance_proc_addr || !description.instance || !description.physical_device)
    return found;
  const bool extensions = lists(description.instance_extensions, "VK_KHR_get_physical_device_properties2") &&
                          lists(description.instance_extensions, "VK_KHR_external_memory_capabilities");
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &id};
  const auto ask = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(
      description.get_instance_proc_addr(description.instance, "vkGetPhysicalDeviceProperties"));
  if (!ask) return found;
  ask(description.physical_device, &properties.properties);
  found.name = properties.properties.deviceName;
  const bool core =
      description.api_version >= VK_API_VERSION_1_1 && properties.properties.apiVersion >= VK_API_VERSION_1_1;
  const auto ask_more =
      core || extensions
          ? reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(description.get_instance_proc_addr(
                description.instance,
                core ? "vkGetPhysicalDeviceProperties2" : "vkGetPhysicalDeviceProperties2KHR"))
          : nullptr;
  if (!ask_more) return found;
  ask_more(description.physical_device, &properties);
  found.known = true;
  std::memcpy(found.device.data(), id.deviceUUID, VK_UUID_SIZE);
  std::memcpy(found.driver.data(), id.driverUUID, VK_UUID_SIZE);
  return found;
}

std::vector<const char*> link_extensions() { return {kMemoryExtension}; }

Result<std::unique_ptr<DeviceLink>> DeviceLink::make(const vk::DeviceDescription& host,
                                                     const vk::DeviceDescription& own, Context& context) {
  IMPRINT_CHECK(
      check_declared(host, kMemoryExtension, {"VK_KHR_external_memory"},
                     {"VK_KHR_get_physical_device_properties2", "VK_KHR_external_memory_capabilities"}));
  const GpuIdentity there = identify(host), here = identify(own);
  if (!there.known || !here.known) return refuse("the host's device does not tell which GPU it is");
  if (there.device != here.device || there.driver != here.driver)
    return refuse("the two devices are not of the same GPU and driver");
  IMPRINT_ASSIGN(const HostDevice functions, HostDevice::load(host));
  auto link = std::make_unique<Link>(functions, context);
  IMPRINT_CHECK(link->check_memory(own));
  return std::unique_ptr<DeviceLink>(std::move(link));
}

}  // namespace imprint::bridge
