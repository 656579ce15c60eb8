// The headers of PNG and JPEG files. ISO/IEC 15948, Portable Network Graphics; ITU-T T.81, Annex B.

#include "compute/base/text.h"
#include "compute/training/picture_decode.h"

namespace imprint::training {
namespace {

constexpr std::int64_t kMostScans = 64;         // encoders write about 10; each scan visits every pixel
constexpr std::int64_t kMostSymbols = 256;      // of a Huffman table
constexpr std::int64_t kLargestDeflate = 1032;  // bytes per byte: a match of 258 bytes takes 2 bits or more

std::uint32_t unsigned_at(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes[at + i]);
  return value;
}

Error damaged_picture(const std::string& name, const std::string& found) {
  return make_error(ErrorCode::corrupt_file, text(name, ": found ", found, ", expected a whole picture"));
}

// The segments of a JPEG file as stb_image meets them: where it stops at a marker, so does this.
class JpegSegments {
 public:
  JpegSegments(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<PictureHeader> walk() {
    at_ = 2;  // after the start of the image
    std::int64_t scans = 0;
    while (true) {
      const std::uint32_t marker = next_marker();
      if (marker == 0) return damaged_picture(name_, "an end without a marker");
      if (marker == 0xd9) break;  // the end of the image
      if (at_ + 2 > bytes_.size()) return damaged_picture(name_, "a segment that is cut off");
      const std::size_t length = unsigned_at(bytes_, at_, 2);
      if (length < 2 || at_ + length > bytes_.size())
        return damaged_picture(name_, text("a segment of ", length, " bytes at ", at_));
      const std::span<const std::byte> content = bytes_.subspan(at_ + 2, length - 2);
      at_ += length;
      if (marker == 0xc4) IMPRINT_CHECK(check_tables(content));
      if (marker >= 0xc0 && marker <= 0xc2) IMPRINT_CHECK(take_frame(content));
      if (marker != 0xda) continue;
      if (++scans > kMostScans) return damaged_picture(name_, text("more than ", kMostScans, " scans"));
      skip_scan();
    }
    if (header_.width < 1 || header_.height < 1) return damaged_picture(name_, "no frame");
    return header_;
  }

 private:
  // The next byte after 0xff that is no 0xff; 0: there is none. Other bytes between segments are skipped.
  std::uint32_t next_marker() {
    while (at_ < bytes_.size() && bytes_[at_] != std::byte{0xff}) ++at_;
    while (at_ < bytes_.size() && bytes_[at_] == std::byte{0xff}) ++at_;
    return at_ < bytes_.size() ? unsigned_at(bytes_, at_++, 1) : 0;
  }

  // To the 0xff of the next marker that is neither a stuffed zero nor a restart.
  void skip_scan() {
    for (; at_ + 1 < bytes_.size(); ++at_) {
      const std::uint32_t next = unsigned_at(bytes_, at_ + 1, 1);
      if (bytes_[at_] == std::byte{0xff} && next != 0 && next != 0xff && (next < 0xd0 || next > 0xd7)) return;
    }
    at_ = bytes_.size();
  }

  // Huffman tables: a class, 16 numbers of codes by their length, and a symbol per code.
  Result<> check_tables(std::span<const std::byte> content) const {
    while (!content.empty()) {
      if (content.size() < 17) return damaged_picture(name_, "a table that is cut off");
      std::int64_t symbols = 0;
      for (std::size_t i = 1; i <= 16; ++i) symbols += unsigned_at(content, i, 1);
      if (symbols > kMostSymbols || content.size() < 17 + static_cast<std::size_t>(symbols))
        return damaged_picture(name_, text("a table of ", symbols, " symbols"));
      content = content.subspan(17 + static_cast<std::size_t>(symbols));
    }
    return {};
  }

  Result<> take_frame(std::span<const std::byte> content) {
    if (header_.width > 0 || content.size() < 6) return damaged_picture(name_, "a second or damaged frame");
    header_.height = unsigned_at(content, 1, 2);
    header_.width = unsigned_at(content, 3, 2);
    // Two bits or more per block of 8 x 8 of each channel, of which one has all pixels; a run of empty blocks
    // in a progressive file takes less.
    header_.pixels_per_byte = 512;
    return {};
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  PictureHeader header_;
};

}  // namespace

Result<PictureHeader> png_header(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < 33 || unsigned_at(bytes, 12, 4) != 0x49484452u)  // IHDR
    return damaged_picture(name, text(bytes.size(), " bytes without a header"));
  const std::uint32_t width = unsigned_at(bytes, 16, 4), height = unsigned_at(bytes, 20, 4);
  constexpr std::uint32_t kMost = 1u << 24;
  if (width < 1 || height < 1 || width > kMost || height > kMost)
    return damaged_picture(name, text(width, " x ", height, " pixels"));
  const std::int64_t bits = unsigned_at(bytes, 24, 1);
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16)
    return damaged_picture(name, text(bits, " bits per value"));
  return PictureHeader{height, width, kLargestDeflate * 8 / bits};
}

Result<PictureHeader> jpeg_header(std::span<const std::byte> bytes, const std::string& name) {
  return JpegSegments(bytes, name).walk();
}

}  // namespace imprint::training
