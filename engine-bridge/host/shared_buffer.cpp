#include "engine-bridge/host/shared_buffer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace imprint::bridge {
namespace {

constexpr VkMemoryPropertyFlags kUnusable =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT;

Error refuse(const std::string& name, const std::string& what) {
  return make_error(ErrorCode::invalid_argument, "shared buffer '" + name + "': " + what);
}

Status check_size(const std::string& name, std::uint64_t size) {
  if (size == 0) return refuse(name, "size is 0");
  if (size % 4 != 0)
    return refuse(name, "size is " + std::to_string(size) + "; expected a multiple of 4 bytes");
  return {};
}

Status check_range(vk::Device& device, const HostBuffer& host) {
  IMPRINT_CHECK(check_size(host.name, host.size));
  const std::uint64_t step = buffer_range_alignment(device.capabilities());
  if (host.offset % step != 0)
    return refuse(host.name, "offset is " + std::to_string(host.offset) + "; expected a multiple of " +
                                 std::to_string(step) + " (minStorageBufferOffsetAlignment, 16 at least)");
  // All that Vulkan tells of a buffer's length is what memory it needs, which is no less.
  VkMemoryRequirements requirements{};
  device.functions().vkGetBufferMemoryRequirements(device.handle(), host.buffer, &requirements);
  if (host.offset > requirements.size || host.size > requirements.size - host.offset)
    return refuse(host.name, "offset " + std::to_string(host.offset) + " and size " +
                                 std::to_string(host.size) + " reach beyond the buffer, which has " +
                                 std::to_string(requirements.size) + " bytes");
  return {};
}

Status check_families(const vk::Device& device, const std::string& name, VkSharingMode sharing,
                      const std::vector<std::uint32_t>& families) {
  std::uint32_t known = 0;
  device.functions().vkGetPhysicalDeviceQueueFamilyProperties(device.physical_device(), &known, nullptr);
  for (const std::uint32_t family : families)
    if (family >= known)
      return refuse(name, "families lists " + std::to_string(family) + ", and the device has " +
                              std::to_string(known) + ", counted from 0");
  if (sharing == VK_SHARING_MODE_EXCLUSIVE) {
    if (families.size() <= 1) return {};
    return refuse(
        name,
        "families has " + std::to_string(families.size()) +
            " entries; expected the one that the host uses it in, as sharing is VK_SHARING_MODE_EXCLUSIVE");
  }
  if (sharing != VK_SHARING_MODE_CONCURRENT)
    return refuse(name, "sharing is " + std::to_string(sharing) +
                            "; expected VK_SHARING_MODE_EXCLUSIVE or VK_SHARING_MODE_CONCURRENT");
  if (families.size() < 2)
    return refuse(name, "families has " + std::to_string(families.size()) +
                            " entries; VK_SHARING_MODE_CONCURRENT needs two or more");
  for (std::size_t i = 0; i < families.size(); ++i)
    if (std::find(families.begin(), families.begin() + static_cast<std::ptrdiff_t>(i), families[i]) !=
        families.begin() + static_cast<std::ptrdiff_t>(i))
      return refuse(name, "families lists " + std::to_string(families[i]) + " twice");
  if (std::ranges::find(families, device.queue_family()) == families.end())
    return refuse(
        name,
        "families lacks " + std::to_string(device.queue_family()) +
            ", the family that Imprint's work runs in: create the buffer with it, or share it exclusively");
  return {};
}

// Memory of ours is not taken with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, and a second device has none of the
// features that newer usages belong to.
Status check_usage(const SharedBufferRequest& request) {
  if (request.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)
    return make_error(ErrorCode::unsupported,
                      "shared buffer '" + request.name +
                          "': usage has VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, which needs a "
                          "buffer of the host's own: import one");
  constexpr VkBufferUsageFlags kOfVulkan10 = (VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT << 1) - 1;
  if (request.exported && (request.usage & ~kOfVulkan10) != 0)
    return make_error(ErrorCode::unsupported,
                      "shared buffer '" + request.name +
                          "': usage has bits that are not of Vulkan 1.0, and is for two devices");
  return {};
}

Status check_use(const std::string& name, VkPipelineStageFlags stages, VkAccessFlags access) {
  if (access != 0 && stages == 0)
    return refuse(name, "access is set and stages is 0: name the stages in which the host uses it");
  return {};
}

}  // namespace

Result<std::shared_ptr<SharedBuffer>> SharedBuffer::import(vk::Device& device, const HostBuffer& host) {
  if (!host.buffer) return refuse(host.name, "buffer is null");
  if (!(host.usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT))
    return refuse(host.name, "usage lacks VK_BUFFER_USAGE_STORAGE_BUFFER_BIT: create the buffer with it");
  IMPRINT_CHECK(check_range(device, host));
  IMPRINT_CHECK(check_families(device, host.name, host.sharing, host.families));
  if (host.memory_flags & kUnusable)
    return make_error(ErrorCode::unsupported,
                      "shared buffer '" + host.name +
                          "': memory_flags has VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT or _PROTECTED_BIT, "
                          "which compute cannot "
                          "use: bind the buffer to other memory");
  if (host.device_address != 0 && !(host.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT))
    return refuse(host.name,
                  "device_address is set, but usage lacks VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT");
  IMPRINT_CHECK(check_use(host.name, host.stages, host.access));

  std::shared_ptr<SharedBuffer> shared(new SharedBuffer(device));
  shared->description_ = host;
  shared->our_family_ = device.queue_family();
  shared->transfers_ =
      host.sharing == VK_SHARING_MODE_EXCLUSIVE && shared->host_family() != device.queue_family();
  shared->ours_ = !shared->transfers_;
  if (host.memory_flags != 0 && !(host.memory_flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
    device.options().log(LogLevel::info,
                         "shared buffer '" + host.name +
                             "' lies in memory that is not device-local: kernels reach it more slowly");
  return shared;
}

Result<std::shared_ptr<SharedBuffer>> SharedBuffer::create(vk::Device& device,
                                                           const SharedBufferRequest& request) {
  IMPRINT_CHECK(check_size(request.name, request.size));
  IMPRINT_CHECK(check_usage(request));
  if (request.exported && request.sharing != VK_SHARING_MODE_EXCLUSIVE)
    return refuse(request.name, "sharing is not VK_SHARING_MODE_EXCLUSIVE, the only one between two devices");
  IMPRINT_CHECK(check_families(device, request.name, request.sharing, request.families));
  IMPRINT_CHECK(check_use(request.name, request.stages, request.access));
  std::shared_ptr<SharedBuffer> shared(new SharedBuffer(device));
  shared->our_family_ = device.queue_family();
  vk::DedicatedBuffer wanted{request.size, request.usage, {}};
  wanted.exported = request.exported;
  if (request.sharing == VK_SHARING_MODE_CONCURRENT) wanted.families = request.families;
  IMPRINT_ASSIGN(shared->allocation_, device.memory().allocate_dedicated(wanted));
  HostBuffer& made = shared->description_;
  made.name = request.name;
  made.buffer = shared->allocation_.buffer;
  made.offset = shared->allocation_.offset;
  made.size = request.size;
  made.usage = usage_of(request);
  made.sharing = request.sharing;
  made.families = request.families;
  made.memory_flags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  made.stages = request.stages;
  made.access = request.access;
  shared->external_ = request.exported != 0;
  // A new buffer belongs to nobody: the first who uses it needs no release from the other.
  shared->transfers_ =
      request.sharing == VK_SHARING_MODE_EXCLUSIVE && shared->host_family() != device.queue_family();
  vk::set_debug_name(device, VK_OBJECT_TYPE_BUFFER, made.buffer, "imprint " + request.name);
  return shared;
}

VkBufferUsageFlags SharedBuffer::usage_of(const SharedBufferRequest& request) {
  return request.usage | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
         VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
}

SharedBuffer::~SharedBuffer() {
  if (!allocation_ || !device_) return;
  device_->retire(device_->last_ticket(),
                  [&device = *device_, allocation = allocation_] { device.memory().free(allocation); });
}

void SharedBuffer::close() {
  if (allocation_) device_->memory().free(allocation_);
  device_ = nullptr;
}

vk::BlockMemoryInfo SharedBuffer::memory_info() const {
  return allocation_ && device_ ? device_->memory().memory_of(allocation_) : vk::BlockMemoryInfo{};
}

std::uint32_t SharedBuffer::host_family() const {
  if (external_) return VK_QUEUE_FAMILY_EXTERNAL;
  return description_.sharing == VK_SHARING_MODE_EXCLUSIVE && !description_.families.empty()
             ? description_.families[0]
             : our_family_;
}

BufferRange SharedBuffer::range(const std::shared_ptr<const SharedBuffer>& buffer, std::uint64_t first,
                                std::uint64_t bytes) {
  const HostBuffer& whole = buffer->description_;
  BufferRange range;
  range.buffer = whole.buffer;
  range.offset = whole.offset + first;
  range.size = bytes;
  range.copy_source = whole.usage & VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  range.copy_target = whole.usage & VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  range.keep = buffer;
  return range;
}

}  // namespace imprint::bridge
