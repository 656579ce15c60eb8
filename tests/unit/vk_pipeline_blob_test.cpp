// The envelope of a driver's pipeline cache, and data that must never reach a driver.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "compute/vk/pipelines/pipeline_blob.h"

namespace imprint::vk {
namespace {

using testing::HasSubstr;

class PipelineBlob : public testing::Test {
 protected:
  PipelineBlob() {
    device_.vendor_id = 0x10de;
    device_.device_id = 0x2335;
    device_.device_name = "a GPU";
    for (std::size_t i = 0; i < device_.pipeline_cache_uuid.size(); ++i)
      device_.pipeline_cache_uuid[i] = static_cast<std::uint8_t>(i);
  }
  // A driver's data: its header and opaque bytes.
  std::vector<std::byte> data(std::uint32_t version = VK_PIPELINE_CACHE_HEADER_VERSION_ONE) const {
    VkPipelineCacheHeaderVersionOne header{sizeof header,
                                           static_cast<VkPipelineCacheHeaderVersion>(version),
                                           device_.vendor_id,
                                           device_.device_id,
                                           {}};
    std::ranges::copy(device_.pipeline_cache_uuid, header.pipelineCacheUUID);
    std::vector<std::byte> bytes(sizeof header + 100, std::byte{42});
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
  ErrorCode refusal(std::span<const std::byte> blob) const {
    const auto found = unwrap_pipeline_cache(blob, device_);
    EXPECT_FALSE(found.ok());
    return found.ok() ? ErrorCode::internal : found.error().code;
  }

  Capabilities device_;
};

TEST_F(PipelineBlob, GivesTheDriversBytesBack) {
  const std::vector<std::byte> given = data(), blob = wrap_pipeline_cache(given);
  const auto found = unwrap_pipeline_cache(blob, device_);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(std::ranges::equal(*found, given));
}

TEST_F(PipelineBlob, EveryTruncationAndEveryFlippedByteIsRefused) {
  const std::vector<std::byte> blob = wrap_pipeline_cache(data());
  for (std::size_t size = 0; size < blob.size(); ++size)
    EXPECT_EQ(refusal(std::span(blob).first(size)), ErrorCode::corrupt_file) << size;
  for (std::size_t i = 0; i < blob.size(); ++i) {
    std::vector<std::byte> damaged = blob;
    damaged[i] ^= std::byte{0x10};
    EXPECT_EQ(refusal(damaged), ErrorCode::corrupt_file) << i;
  }
}

TEST_F(PipelineBlob, AnotherGpuOrDriverIsRefusedByName) {
  const std::vector<std::byte> blob = wrap_pipeline_cache(data());
  const Capabilities own = device_;
  device_.pipeline_cache_uuid[3] ^= 1;
  EXPECT_EQ(refusal(blob), ErrorCode::unsupported);
  device_ = own;
  device_.device_id = 1;
  EXPECT_EQ(refusal(blob), ErrorCode::unsupported);
  device_ = own;
  device_.vendor_id = 1;
  EXPECT_EQ(refusal(blob), ErrorCode::unsupported);
  EXPECT_THAT(unwrap_pipeline_cache(blob, device_).error().message, HasSubstr("a GPU"));
}

TEST_F(PipelineBlob, HeadersOfNoKnownKindAreRefused) {
  EXPECT_EQ(refusal(wrap_pipeline_cache(data(2))), ErrorCode::corrupt_file);
  std::vector<std::byte> longer = data();
  EXPECT_EQ(refusal(wrap_pipeline_cache(std::span(longer).first(20))), ErrorCode::corrupt_file);
  const std::uint32_t size = 5000;
  std::memcpy(longer.data(), &size, sizeof size);
  EXPECT_EQ(refusal(wrap_pipeline_cache(longer)), ErrorCode::corrupt_file);
}

}  // namespace
}  // namespace imprint::vk
