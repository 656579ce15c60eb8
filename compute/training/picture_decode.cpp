#include "compute/training/picture_decode.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "compute/base/text.h"

namespace imprint::training {
namespace {

// The next number of a netpbm header; comments run from # to the end of the line. -1: there is none.
std::int64_t header_number(std::string_view bytes, std::size_t& at) {
  while (at < bytes.size() && (bytes[at] == '#' || bytes[at] == ' ' || bytes[at] == '\n' ||
                               bytes[at] == '\r' || bytes[at] == '\t'))
    at = bytes[at] == '#' ? std::min(bytes.find('\n', at), bytes.size()) : at + 1;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), value);
  at = static_cast<std::size_t>(end - bytes.data());
  return error == std::errc() ? value : -1;
}

Result<Pixels> netpbm_pixels(std::span<const std::byte> content, const std::string& name) {
  const std::string_view bytes(reinterpret_cast<const char*>(content.data()), content.size());
  Pixels pixels{.channels = bytes.starts_with("P5") ? 1 : 3};
  std::size_t at = 2;
  pixels.width = header_number(bytes, at);
  pixels.height = header_number(bytes, at);
  pixels.largest = header_number(bytes, at);
  ++at;  // one space before the pixels
  const bool fits =
      pixels.width > 0 && pixels.height > 0 && pixels.width <= 1 << 24 && pixels.height <= 1 << 24 &&
      pixels.largest > 0 && pixels.largest < 256 && at <= bytes.size() &&
      bytes.size() - at == static_cast<std::size_t>(pixels.channels * pixels.width * pixels.height);
  if (!fits)
    return make_error(ErrorCode::corrupt_file,
                      text(name, ": expected a binary PGM or PPM of 8 bits, whole. Convert it."));
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  pixels.values.assign(first + at, first + bytes.size());
  return pixels;
}

}  // namespace

Result<> check_extents(const PictureExtents& extents, std::size_t bytes, const std::string& name,
                       std::uint64_t memory_limit) {
  constexpr std::int64_t kSlack = 1 << 16;
  const std::int64_t pixels = extents.height * extents.width;  // each at most 2^24
  const std::string found = text(extents.width, " x ", extents.height, " pixels");
  if (extents.memory > memory_limit)
    return make_error(
        ErrorCode::invalid_argument,
        text(name, ": found ", found, ", which take ", extents.memory, " bytes to decode, expected at most ",
             memory_limit, ". Raise memory_limit, or make the picture smaller."));
  if ((pixels - kSlack) / extents.pixels_per_byte > static_cast<std::int64_t>(bytes))
    return make_error(ErrorCode::corrupt_file, text(name, ": found ", found, " in ", bytes,
                                                    " bytes, expected more. The file is cut short."));
  return {};
}

Result<Pixels> decode_pixels(std::span<const std::byte> bytes, const std::string& name,
                             std::uint64_t memory_limit) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 8));
  if (start.starts_with("P5") || start.starts_with("P6")) return netpbm_pixels(bytes, name);
  if (start == "\x89PNG\r\n\x1a\n") return png_pixels(bytes, name, memory_limit);
  if (start.starts_with("\xff\xd8")) return jpeg_pixels(bytes, name, memory_limit);
  return make_error(ErrorCode::corrupt_file,
                    text(name, ": found an unknown format, expected PNG, JPEG, PGM or PPM"));
}

}  // namespace imprint::training
