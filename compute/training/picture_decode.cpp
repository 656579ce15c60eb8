#include "compute/training/picture_decode.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "compute/base/text.h"

namespace imprint::training {
namespace {

// Memory of one decoder, for stb_image's macros. A file may inflate to any size, whatever its header says.
// Zeros, since tables that a JPEG uses without defining them are read.
thread_local std::size_t decoder_bytes_left = 0;

struct alignas(std::max_align_t) DecoderBlock {
  std::size_t bytes;
};

void* decoder_malloc(std::size_t bytes) {
  if (bytes > decoder_bytes_left) return nullptr;
  void* memory = std::calloc(1, sizeof(DecoderBlock) + bytes);
  if (memory == nullptr) return nullptr;
  decoder_bytes_left -= bytes;
  return new (memory) DecoderBlock{bytes} + 1;
}

void decoder_free(void* given) {
  if (given == nullptr) return;
  DecoderBlock* block = static_cast<DecoderBlock*>(given) - 1;
  decoder_bytes_left += block->bytes;
  std::free(block);
}

void* decoder_realloc(void* given, std::size_t bytes) {
  void* moved = decoder_malloc(bytes);
  if (moved == nullptr || given == nullptr) return moved;
  std::memcpy(moved, given, std::min(bytes, (static_cast<DecoderBlock*>(given) - 1)->bytes));
  decoder_free(given);
  return moved;
}

// An empty part of a file may come before there is memory to copy it to, which memcpy does not allow.
void* decoder_copy(void* to, const void* from, std::size_t bytes) {
  return bytes > 0 ? std::memcpy(to, from, bytes) : to;
}

}  // namespace
}  // namespace imprint::training

#define memcpy(to, from, bytes) imprint::training::decoder_copy(to, from, bytes)
#define STBI_MALLOC(bytes) imprint::training::decoder_malloc(bytes)
#define STBI_REALLOC(memory, bytes) imprint::training::decoder_realloc(memory, bytes)
#define STBI_FREE(memory) imprint::training::decoder_free(memory)
#define STBI_ASSERT(holds) static_cast<void>(0)
#define STBI_NO_STDIO
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#if defined(__clang__)
// Behind the end of a JPEG's bits it shifts zeros by more than 31.
#pragma clang attribute push(__attribute__((no_sanitize("shift"))), apply_to = function)
#endif
#include <stb_image.h>
#if defined(__clang__)
#pragma clang attribute pop
#endif
#undef memcpy
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

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

Result<> check_extents(const PictureHeader& header, std::size_t bytes, const std::string& name,
                       std::uint64_t memory_limit) {
  constexpr std::uint64_t kBytesPerPixel = 16;
  constexpr std::int64_t kSlack = 1 << 16;
  const std::int64_t pixels = header.width * header.height;  // each below 2^25
  const std::string extents = text(header.width, " x ", header.height, " pixels");
  if (static_cast<std::uint64_t>(pixels) > memory_limit / kBytesPerPixel)
    return make_error(ErrorCode::invalid_argument,
                      text(name, ": found ", extents, ", expected at most ", memory_limit / kBytesPerPixel,
                           " in all. Raise memory_limit, or make the picture smaller."));
  if ((pixels - kSlack) / header.pixels_per_byte > static_cast<std::int64_t>(bytes))
    return make_error(ErrorCode::corrupt_file, text(name, ": found ", extents, " in ", bytes,
                                                    " bytes, expected more. The file is cut short."));
  return {};
}

// A PNG of 16 bits with transparency takes three copies; a JPEG has whole blocks of pixels.
std::uint64_t memory_for(const PictureHeader& header, std::size_t bytes) {
  const auto rounded = [](std::int64_t side) { return static_cast<std::uint64_t>((side + 31) / 32 * 32); };
  return 24 * rounded(header.width) * rounded(header.height) + 3 * bytes + (1 << 20);
}

}  // namespace

Result<Pixels> decode_pixels(std::span<const std::byte> bytes, const std::string& name,
                             std::uint64_t memory_limit) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 8));
  if (start.starts_with("P5") || start.starts_with("P6")) return netpbm_pixels(bytes, name);
  const bool is_png = start == "\x89PNG\r\n\x1a\n", is_jpeg = start.starts_with("\xff\xd8");
  if (!is_png && !is_jpeg)
    return make_error(ErrorCode::corrupt_file,
                      text(name, ": found an unknown format, expected PNG, JPEG, PGM or PPM"));
  IMPRINT_ASSIGN(const PictureHeader header, is_png ? png_header(bytes, name) : jpeg_header(bytes, name));
  IMPRINT_CHECK(check_extents(header, bytes.size(), name, memory_limit));
  if (bytes.size() > std::size_t{1} << 30)
    return make_error(ErrorCode::invalid_argument,
                      text(name, ": found ", bytes.size(), " bytes, expected at most 2^30"));

  decoder_bytes_left = static_cast<std::size_t>(std::min(memory_limit, memory_for(header, bytes.size())));
  const auto* first = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int size = static_cast<int>(bytes.size());
  int width = 0, height = 0, found = 0;
  if (stbi_info_from_memory(first, size, &width, &height, &found) == 0) found = 3;
  const int channels = found <= 2 ? 1 : 3;  // the second or fourth is transparency
  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(first, size, &width, &height, &found, channels), stbi_image_free);
  if (!decoded)
    return make_error(ErrorCode::corrupt_file, text(name, ": found ", stbi_failure_reason(),
                                                    ", expected a whole ", is_png ? "PNG" : "JPEG"));
  if (width != header.width || height != header.height)
    return make_error(ErrorCode::corrupt_file, text(name, ": found two sizes, expected one"));
  Pixels pixels{.height = height, .width = width, .channels = channels};
  const std::size_t count = static_cast<std::size_t>(pixels.height * pixels.width * pixels.channels);
  pixels.values.assign(decoded.get(), decoded.get() + count);
  return pixels;
}

}  // namespace imprint::training
