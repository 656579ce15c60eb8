#pragma once
// The pixels of picture files, with bounds. Internal.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::training {

struct Pixels {
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 0;              // 1: grey; 3: red, green, blue
  std::int64_t largest = 255;             // the value that is 1
  std::vector<std::uint8_t> values = {};  // rows of pixels
};

// memory_limit: bytes. Errors: as decode_picture.
Result<Pixels> decode_pixels(std::span<const std::byte> bytes, const std::string& name,
                             std::uint64_t memory_limit);

// The same of one format. A library without libpng and libjpeg-turbo (IMPRINT_PICTURES=OFF) gives
// `unsupported`.
Result<Pixels> png_pixels(std::span<const std::byte> bytes, const std::string& name,
                          std::uint64_t memory_limit);
Result<Pixels> jpeg_pixels(std::span<const std::byte> bytes, const std::string& name,
                           std::uint64_t memory_limit);

// The promises of a header, before memory is taken for them.
struct PictureExtents {
  std::int64_t height = 0, width = 0;
  std::int64_t pixels_per_byte = 0;  // no file holds more
  std::uint64_t memory = 0;          // bytes that decoding takes
};
Result<> check_extents(const PictureExtents& extents, std::size_t bytes, const std::string& name,
                       std::uint64_t memory_limit);

}  // namespace imprint::training
