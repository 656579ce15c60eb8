#include "compute/vk/pipelines/pipeline_blob.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "compute/base/hash.h"

namespace imprint::vk {
namespace {

constexpr std::array<char, 8> kBlobMagic = {'i', 'm', 'p', '-', 'p', 'l', 'c', '1'};
constexpr std::size_t kBlobEnvelope = kBlobMagic.size() + 16;

// VkPipelineCacheHeaderVersionOne with a number instead of its enum: foreign bytes may hold any value.
struct DriverHeader {
  std::uint32_t size, version, vendor_id, device_id;
  std::uint8_t uuid[VK_UUID_SIZE];
};
static_assert(sizeof(DriverHeader) == sizeof(VkPipelineCacheHeaderVersionOne));

std::array<std::byte, 16> hash_of(std::span<const std::byte> data) {
  const Hash128 hash = Hasher().bytes(data).digest();
  std::array<std::byte, 16> bytes;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(hash.low >> (8 * i));
    bytes[8 + i] = static_cast<std::byte>(hash.high >> (8 * i));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> wrap_pipeline_cache(std::span<const std::byte> data) {
  std::vector<std::byte> blob(kBlobEnvelope + data.size());
  std::memcpy(blob.data(), kBlobMagic.data(), kBlobMagic.size());
  std::ranges::copy(hash_of(data), blob.begin() + kBlobMagic.size());
  std::ranges::copy(data, blob.begin() + kBlobEnvelope);
  return blob;
}

Result<std::span<const std::byte>> unwrap_pipeline_cache(std::span<const std::byte> blob,
                                                         const Capabilities& device) {
  const auto damaged = [](const char* how) {
    return make_error(ErrorCode::corrupt_file, std::string("pipeline cache: ") + how);
  };
  if (blob.size() < kBlobEnvelope || std::memcmp(blob.data(), kBlobMagic.data(), kBlobMagic.size()) != 0)
    return damaged("found other bytes, expected a pipeline cache of this library");
  const std::span<const std::byte> data = blob.subspan(kBlobEnvelope);
  if (!std::ranges::equal(blob.subspan(kBlobMagic.size(), 16), hash_of(data)))
    return damaged("found a damaged or truncated one. Make a new one.");

  DriverHeader header;
  if (data.size() < sizeof header)
    return damaged("found too few bytes in the driver's part. Make a new one.");
  std::memcpy(&header, data.data(), sizeof header);
  if (header.version != std::uint32_t{VK_PIPELINE_CACHE_HEADER_VERSION_ONE} || header.size < sizeof header ||
      header.size > data.size())
    return damaged("found an unknown header in the driver's part. Make a new one.");
  if (header.vendor_id != device.vendor_id || header.device_id != device.device_id ||
      !std::ranges::equal(header.uuid, device.pipeline_cache_uuid)) {
    return make_error(ErrorCode::unsupported,
                      "pipeline cache: found one of another GPU or driver, expected " + device.device_name +
                          ", " + device.driver_name + ". Make a new one.");
  }
  return data;
}

}  // namespace imprint::vk
