#include "compute/training/picture.h"

#include <algorithm>
#include <vector>

#include "tests/fuzz/harness.h"

namespace imprint::fuzz {
namespace {

std::uint32_t crc_of(Bytes bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// The chunks of a PNG file with the sums that they should have, so that mutations reach what reads them.
std::vector<std::byte> with_sums(Bytes bytes) {
  constexpr std::size_t kSignature = 8, kHead = 8, kSum = 4;  // bytes; a chunk's head is its length and name
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  if (file.empty() || file[0] != std::byte{0x89}) return file;
  for (std::size_t at = kSignature; at + kHead + kSum <= file.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<std::size_t>(file[at + i]);
    if (length > file.size() - at - kHead - kSum) break;
    std::uint32_t sum = crc_of(std::span(file).subspan(at + 4, 4 + length));
    for (std::size_t i = 4; i-- > 0; sum >>= 8)
      file[at + kHead + length + i] = static_cast<std::byte>(sum & 255);
    at += kHead + length + kSum;
  }
  return file;
}

}  // namespace

void picture(Bytes bytes) {
  const std::vector<std::byte> file = with_sums(bytes);
  // A small limit, so that mutations of extents meet it.
  const training::PictureOptions whole{.memory_limit = 320 << 10},
      small{.height = 5, .width = 9, .channels = 1, .memory_limit = 320 << 10};
  const auto found = training::decode_picture(file, "a picture", whole);
  check_error(found);
  if (!found) return;
  const auto resized = training::decode_picture(file, "a picture", small);
  require(resized.ok(), "a picture that decodes does so at every size");
  require(static_cast<std::int64_t>(found->floats.size()) == found->shape.element_count(),
          "a picture has a value per pixel");
  const auto is_value = [](float value) { return value >= 0 && value <= 1.0001f; };
  require(std::ranges::all_of(found->floats, is_value), "values are from 0 to 1");
  require(resized->floats.size() == 45 && std::ranges::all_of(resized->floats, is_value),
          "values of a smaller picture are from 0 to 1");
}

}  // namespace imprint::fuzz
