#include "engine-bridge/host/shared_buffer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compute/base/amount.h"
#include "compute/base/text.h"

namespace imprint::bridge {
namespace {

constexpr VkMemoryPropertyFlags kUnusable =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT;

template <class... Parts>
Error wrong_buffer(const std::string& name, const Parts&... parts) {
  return make_error(ErrorCode::invalid_argument, text("shared buffer '", name, "': ", parts...));
}

template <class... Parts>
Error unsupported_buffer(const std::string& name, const Parts&... parts) {
  return make_error(ErrorCode::unsupported, text("shared buffer '", name, "': ", parts...));
}

Result<> check_size(const std::string& name, std::uint64_t size) {
  if (size > 0 && size % 4 == 0) return {};
  return wrong_buffer(name, "size: found ", size, ", expected a multiple of 4 bytes above 0.");
}

Result<> check_range(vk::Device& device, const HostBuffer& host) {
  IMPRINT_CHECK(check_size(host.name, host.size));
  const std::uint64_t step = buffer_range_alignment(device.capabilities());
  if (host.offset % step != 0)
    return wrong_buffer(host.name, "offset: found ", host.offset, ", expected a multiple of ", step,
                        " (minStorageBufferOffsetAlignment, at least 16).");
  // Vulkan tells nothing of a buffer's length but the memory it needs, which is no less.
  VkMemoryRequirements requirements{};
  device.functions().vkGetBufferMemoryRequirements(device.handle(), host.buffer, &requirements);
  if (host.offset > requirements.size || host.size > requirements.size - host.offset)
    return wrong_buffer(host.name, "offset and size: found ", host.offset, " and ", host.size,
                        ", expected a range within the buffer's ", requirements.size, " bytes.");
  return {};
}

Result<> check_families(const vk::Device& device, const std::string& name, VkSharingMode sharing,
                        const std::vector<std::uint32_t>& families) {
  std::uint32_t known = 0;
  device.functions().vkGetPhysicalDeviceQueueFamilyProperties(device.physical_device(), &known, nullptr);
  for (const std::uint32_t family : families)
    if (family >= known)
      return wrong_buffer(name, "families: found ", family, ", expected 0 .. ", known - 1, ".");
  if (sharing == VK_SHARING_MODE_EXCLUSIVE) {
    if (families.size() <= 1) return {};
    return wrong_buffer(name, "families: found ", amount(families.size(), "entry"),
                        ", expected at most 1 with ",
                        "VK_SHARING_MODE_EXCLUSIVE. Name the family that the host uses it in.");
  }
  if (sharing != VK_SHARING_MODE_CONCURRENT)
    return wrong_buffer(name, "sharing: found ", static_cast<std::uint32_t>(sharing),
                        ", expected VK_SHARING_MODE_EXCLUSIVE or VK_SHARING_MODE_CONCURRENT.");
  if (families.size() < 2)
    return wrong_buffer(name, "families: found ", amount(families.size(), "entry"),
                        ", expected 2 or more with VK_SHARING_MODE_CONCURRENT.");
  for (std::size_t i = 0; i < families.size(); ++i)
    if (std::find(families.begin(), families.begin() + static_cast<std::ptrdiff_t>(i), families[i]) !=
        families.begin() + static_cast<std::ptrdiff_t>(i))
      return wrong_buffer(name, "families: found ", families[i], " twice, expected each family once.");
  if (std::ranges::find(families, device.queue_family()) == families.end())
    return wrong_buffer(name, "families: found no ", device.queue_family(),
                        ", the family of Imprint's work. ",
                        "Create the buffer with it, or share it exclusively.");
  return {};
}

// Imprint's memory is allocated without VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT. A second device enables no
// feature that newer usages need.
Result<> check_usage(const SharedBufferRequest& request) {
  if (request.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)
    return unsupported_buffer(request.name,
                              "usage: found VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, which only a ",
                              "host's buffer can have. Import one.");
  constexpr VkBufferUsageFlags kVulkan10 = (VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT << 1) - 1;
  if (request.exported && (request.usage & ~kVulkan10) != 0)
    return unsupported_buffer(request.name,
                              "usage: found bits newer than Vulkan 1.0, which two devices cannot ",
                              "share. Clear them.");
  return {};
}

Result<> check_use(const std::string& name, VkPipelineStageFlags stages, VkAccessFlags access) {
  if (access == 0 || stages != 0) return {};
  return wrong_buffer(name, "stages: found 0 with access set, expected the stages of the host's accesses.");
}

}  // namespace

Result<std::shared_ptr<SharedBuffer>> SharedBuffer::import(vk::Device& device, const HostBuffer& host) {
  if (!host.buffer) return wrong_buffer(host.name, "buffer: found null, expected a VkBuffer.");
  if (!(host.usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT))
    return wrong_buffer(host.name,
                        "usage: found no VK_BUFFER_USAGE_STORAGE_BUFFER_BIT. Create the buffer with it.");
  IMPRINT_CHECK(check_range(device, host));
  IMPRINT_CHECK(check_families(device, host.name, host.sharing, host.families));
  if (host.memory_flags & kUnusable)
    return unsupported_buffer(host.name, "memory_flags: found VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT or ",
                              "_PROTECTED_BIT, which compute cannot use. Bind the buffer to other memory.");
  if (host.device_address != 0 && !(host.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT))
    return wrong_buffer(host.name, "device_address: found one, expected 0 without ",
                        "VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT in usage.");
  IMPRINT_CHECK(check_use(host.name, host.stages, host.access));

  std::shared_ptr<SharedBuffer> shared(new SharedBuffer(device));
  shared->description_ = host;
  shared->imprint_family_ = device.queue_family();
  shared->transfers_ =
      host.sharing == VK_SHARING_MODE_EXCLUSIVE && shared->host_family() != device.queue_family();
  shared->owned_by_imprint_ = !shared->transfers_;
  if (host.memory_flags != 0 && !(host.memory_flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
    device.options().log(LogLevel::info,
                         text("shared buffer '", host.name,
                              "': its memory is not device-local, so kernels read and write it slowly."));
  return shared;
}

Result<std::shared_ptr<SharedBuffer>> SharedBuffer::create(vk::Device& device,
                                                           const SharedBufferRequest& request) {
  IMPRINT_CHECK(check_size(request.name, request.size));
  IMPRINT_CHECK(check_usage(request));
  if (request.exported && request.sharing != VK_SHARING_MODE_EXCLUSIVE)
    return wrong_buffer(request.name, "sharing: found VK_SHARING_MODE_CONCURRENT, expected ",
                        "VK_SHARING_MODE_EXCLUSIVE between two devices.");
  IMPRINT_CHECK(check_families(device, request.name, request.sharing, request.families));
  IMPRINT_CHECK(check_use(request.name, request.stages, request.access));
  std::shared_ptr<SharedBuffer> shared(new SharedBuffer(device));
  shared->imprint_family_ = device.queue_family();
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
  // A new buffer has no owner yet, so its first acquire needs no release.
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
             : imprint_family_;
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
