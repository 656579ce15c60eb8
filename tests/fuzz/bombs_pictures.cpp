// PNG and JPEG files below 1 MB that ask for much.

#include <zlib.h>

#include <string>

#include "tests/fuzz/bombs.h"

namespace imprint::fuzz {
namespace {

constexpr std::size_t kMostPicture = 900'000;  // bytes

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

std::string chunk(const std::string& name_and_data) {
  const auto* begin = reinterpret_cast<const Bytef*>(name_and_data.data());
  const auto sum = static_cast<std::uint32_t>(crc32(0, begin, static_cast<uInt>(name_and_data.size())));
  return big_endian(static_cast<std::uint32_t>(name_and_data.size() - 4)) + name_and_data + big_endian(sum);
}

// flush: Z_FULL_FLUSH, after which such parts may follow each other, or Z_FINISH.
std::string deflated_zeros(std::size_t count, int flush) {
  std::string plain(count, '\0'), packed(count / 500 + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(count);
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, flush);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// This many zeros, compressed: a thousandth of them. The end of RFC 1950 is a sum that for zeros is simple.
std::string zeros(std::size_t count) {
  constexpr std::size_t kPart = 1 << 20;
  static const std::string part = deflated_zeros(kPart, Z_FULL_FLUSH);
  std::string all = "\x78\xda";
  for (std::size_t i = 0; i < count / kPart; ++i) all += part;
  return all + deflated_zeros(count % kPart, Z_FINISH) +
         big_endian(static_cast<std::uint32_t>(count % 65521) << 16 | 1);
}

// A grey picture. further: chunks before the pixels.
FileBytes png(std::uint32_t width, std::uint32_t height, char bits, const std::string& pixels,
              const std::string& further = {}, char interlaced = 0) {
  const std::string form{bits, 0, 0, 0, interlaced};
  return bytes_of("\x89PNG\r\n\x1a\n" + chunk("IHDR" + big_endian(width) + big_endian(height) + form) +
                  further + chunk("IDAT" + pixels) + chunk("IEND"));
}

std::string repeated(const std::string& part, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += part;
  return all;
}

FileBytes jpeg(const std::string& segments) { return bytes_of("\xff\xd8" + segments + "\xff\xd9"); }

std::string segment(char marker, const std::string& content) {
  const std::size_t size = content.size() + 2;
  return std::string{'\xff', marker, static_cast<char>(size >> 8), static_cast<char>(size & 255)} + content;
}

std::string frame(char marker, char channels) {
  std::string content{8, '\x7f', '\xff', '\x7f', '\xff', channels};  // 32767 x 32767
  for (char i = 0; i < channels; ++i) content += {static_cast<char>(i + 1), 0x11, 0};
  return segment(marker, content);
}

}  // namespace

std::vector<Bomb> picture_bombs() {
  const auto make = [](FileBytes file) { return [file = std::move(file)] { return file; }; };
  std::vector<Bomb> bombs{{kHarmless, BombKind::picture, make(png(1, 1, 8, zeros(2)))}};
  const auto add = [&](const char* name, FileBytes file) {
    bombs.push_back({name, BombKind::picture, make(std::move(file))});
  };
  add("pixels of one bit", png(3600, 3600, 1, zeros(3600 * 451)));
  add("interlaced pixels", png(2000, 2000, 8, zeros(2000 * 2001 + 8000), {}, 1));
  add("a tall picture", png(1, 1 << 21, 8, zeros(1 << 22)));
  add("pixels after the last", png(1, 1, 8, zeros(800'000'000)));
  add("extents of 2^24", png(1 << 24, 1 << 24, 8, zeros(2)));
  add("a text of zeros",
      png(1, 1, 8, zeros(2), chunk("zTXt" + std::string("k\0\0", 3) + zeros(400'000'000))));
  add("a profile of zeros",
      png(1, 1, 8, zeros(2), chunk("iCCP" + std::string("k\0\0", 3) + zeros(400'000'000))));
  add("many chunks", png(1, 1, 8, zeros(2), repeated(chunk("teXt"), kMostPicture)));
  add("many comments", jpeg(repeated(segment('\xfe', ""), kMostPicture)));
  add("many tables", jpeg(repeated(segment('\xdb', std::string(65, '\1')), kMostPicture)));
  add("a large frame", jpeg(frame('\xc0', 3)));
  add("a large progressive frame", jpeg(frame('\xc2', 3) + segment('\xda', std::string("\1\1\0\0\0\0", 6))));
  return bombs;
}

}  // namespace imprint::fuzz
