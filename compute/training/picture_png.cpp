// PNG files by libpng. Its errors come by longjmp to read_png_head and read_png_rows, through functions of C
// and callbacks here, none of which holds an object with a destructor.

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <new>

#include "compute/base/text.h"
#include "compute/training/picture_decode.h"

namespace imprint::training {
namespace {

constexpr png_uint_32 kMostPngSide = 1u << 24;
constexpr std::int64_t kLargestDeflate = 1032;  // bytes per byte: a match of 258 bytes takes 2 bits or more
constexpr std::size_t kMostExcess = 4096;       // bytes of compressed pixels after the last pixel

struct PngReader {
  PngReader(std::span<const std::byte> file, std::uint64_t memory_limit)
      : at(file.data()),
        left(file.size()),
        memory_left(static_cast<std::size_t>(std::min<std::uint64_t>(memory_limit, SIZE_MAX))) {}
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() {
    if (png != nullptr) png_destroy_read_struct(&png, &info, nullptr);
  }

  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::byte* at;
  std::size_t left;         // bytes of the file
  std::size_t memory_left;  // bytes that libpng may still take
  std::uint64_t rows_to_inflate = UINT64_MAX;
  std::size_t excess = 0;  // bytes of compressed pixels after them
  std::jmp_buf stop;
  char message[96] = "";
};

void stop_png(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, message, sizeof reader->message - 1);
  std::longjmp(reader->stop, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

struct alignas(std::max_align_t) PngBlock {
  std::size_t bytes;
};

void* take_memory(png_structp png, png_alloc_size_t bytes) {
  auto* reader = static_cast<PngReader*>(png_get_mem_ptr(png));
  if (bytes > reader->memory_left) return nullptr;
  void* memory = std::malloc(sizeof(PngBlock) + bytes);
  if (memory == nullptr) return nullptr;
  reader->memory_left -= bytes;
  return new (memory) PngBlock{bytes} + 1;
}

void give_memory(png_structp png, void* given) {
  if (given == nullptr) return;
  PngBlock* block = static_cast<PngBlock*>(given) - 1;
  static_cast<PngReader*>(png_get_mem_ptr(png))->memory_left += block->bytes;
  std::free(block);
}

void take_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->left) png_error(png, "an early end of the file");
  // libpng inflates what follows the last pixel. A small file may hold a gigabyte of it.
  if (reader->rows_to_inflate == 0 && png_get_io_chunk_type(png) == 0x49444154u) {  // IDAT
    reader->excess += count;
    if (reader->excess > kMostExcess) png_error(png, "more pixels than the header states");
  }
  std::memcpy(to, reader->at, count);
  reader->at += count;
  reader->left -= count;
}

void count_row(png_structp png, png_row_infop, png_bytep) {
  --static_cast<PngReader*>(png_get_io_ptr(png))->rows_to_inflate;
}

std::uint64_t rows_of(png_structp png, png_infop info) {
  const std::uint32_t height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  if (png_get_interlace_type(png, info) == PNG_INTERLACE_NONE) return height;
  std::uint64_t rows = 0;
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass)
    if (PNG_PASS_COLS(width, pass) > 0) rows += PNG_PASS_ROWS(height, pass);
  return rows;
}

// To the first chunk of pixels. false: there is a message.
bool read_png_head(PngReader& reader) {
  if (setjmp(reader.stop) != 0) return false;
  reader.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reader, stop_png, ignore_warning, &reader,
                                        take_memory, give_memory);
  if (reader.png == nullptr) return false;
  reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) return false;
  png_set_read_fn(reader.png, &reader, take_bytes);
  png_set_user_limits(reader.png, kMostPngSide, kMostPngSide);
  // Skips texts, colour profiles and all else that does not change the values of pixels.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(reader.png, reader.info);
  return true;
}

// Rows of grey, or of red, green and blue, 8 bits each.
bool read_png_rows(PngReader& reader, std::uint8_t* rows, std::size_t row_bytes, std::uint32_t height) {
  if (setjmp(reader.stop) != 0) return false;
  png_set_strip_16(reader.png);
  png_set_palette_to_rgb(reader.png);
  png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_read_user_transform_fn(reader.png, count_row);
  reader.rows_to_inflate = rows_of(reader.png, reader.info);
  const int passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes)
    png_error(reader.png, "an unknown form of pixels");
  for (int pass = 0; pass < passes; ++pass)
    for (std::uint32_t y = 0; y < height; ++y) png_read_row(reader.png, rows + y * row_bytes, nullptr);
  png_read_end(reader.png, nullptr);
  return true;
}

Error bad_png(const PngReader& reader, const std::string& name) {
  return make_error(ErrorCode::corrupt_file,
                    text(name, ": found ", reader.message[0] != 0 ? reader.message : "too little memory",
                         ", expected a whole PNG"));
}

}  // namespace

Result<Pixels> png_pixels(std::span<const std::byte> bytes, const std::string& name,
                          std::uint64_t memory_limit) {
  PngReader reader(bytes, memory_limit);
  if (!read_png_head(reader)) return bad_png(reader, name);
  const std::uint32_t height = png_get_image_height(reader.png, reader.info),
                      width = png_get_image_width(reader.png, reader.info);
  const int bits = png_get_bit_depth(reader.png, reader.info) * png_get_channels(reader.png, reader.info);
  const bool is_grey = (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR) == 0;
  Pixels pixels{.height = height, .width = width, .channels = is_grey ? 1 : 3};
  // libpng holds a few rows, and inflates through a window of 32 KiB.
  constexpr std::uint64_t kRowBytesPerPixel = 32, kInflate = 1 << 16;
  const std::uint64_t result = static_cast<std::uint64_t>(pixels.height * pixels.width * pixels.channels);
  IMPRINT_CHECK(check_extents({.height = height,
                               .width = width,
                               .pixels_per_byte = kLargestDeflate * 8 / bits,
                               .memory = result + kRowBytesPerPixel * width + kInflate},
                              bytes.size(), name, memory_limit));
  reader.memory_left -= std::min<std::size_t>(reader.memory_left, result);
  pixels.values.resize(result);
  const std::size_t row_bytes = static_cast<std::size_t>(pixels.width * pixels.channels);
  if (!read_png_rows(reader, pixels.values.data(), row_bytes, height)) return bad_png(reader, name);
  return pixels;
}

}  // namespace imprint::training
