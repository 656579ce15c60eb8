// JPEG files by libjpeg-turbo. Its errors come by longjmp to read_jpeg_head and read_jpeg_rows, through
// functions of C and callbacks here, none of which holds an object with a destructor.

#include <cstdio>  // each of these three needs the one before
//
#include <jpeglib.h>
//
#include <jerror.h>

#include <algorithm>
#include <climits>
#include <csetjmp>
#include <cstring>

#include "compute/base/text.h"
#include "compute/training/picture_decode.h"

namespace imprint::training {
namespace {

constexpr int kMostScans = 64;  // encoders write about 10; each scan visits every pixel

struct JpegReader {
  explicit JpegReader(std::span<const std::byte> file);
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&decoder); }

  jpeg_decompress_struct decoder = {};
  jpeg_error_mgr errors = {};
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf stop;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void stop_jpeg(j_common_ptr decoder) {
  auto* reader = static_cast<JpegReader*>(decoder->client_data);
  reader->errors.format_message(decoder, reader->message);
  std::longjmp(reader->stop, 1);
}

// Damage to pixels is a warning to libjpeg, which then makes them up.
void stop_at_damage(j_common_ptr decoder, int level) {
  if (level >= 0) return;
  switch (decoder->err->msg_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
      stop_jpeg(decoder);
    default:
      return;
  }
}

void stop_after_many_scans(j_common_ptr decoder) {
  if (reinterpret_cast<j_decompress_ptr>(decoder)->input_scan_number <= kMostScans) return;
  auto* reader = static_cast<JpegReader*>(decoder->client_data);
  std::snprintf(reader->message, sizeof reader->message, "more than %d scans", kMostScans);
  std::longjmp(reader->stop, 1);
}

void print_nothing(j_common_ptr) {}
void begin_source(j_decompress_ptr) {}
void end_source(j_decompress_ptr) {}

boolean stop_at_end(j_decompress_ptr decoder) {
  decoder->err->msg_code = JERR_INPUT_EOF;
  stop_jpeg(reinterpret_cast<j_common_ptr>(decoder));
}

void skip_bytes(j_decompress_ptr decoder, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *decoder->src;
  if (static_cast<unsigned long>(count) > source.bytes_in_buffer) stop_at_end(decoder);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<std::size_t>(count);
}

JpegReader::JpegReader(std::span<const std::byte> file) {
  decoder.err = jpeg_std_error(&errors);
  errors.error_exit = stop_jpeg;
  errors.emit_message = stop_at_damage;
  errors.output_message = print_nothing;
  decoder.client_data = this;
  source.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
  source.bytes_in_buffer = file.size();
  source.init_source = begin_source;
  source.fill_input_buffer = stop_at_end;
  source.skip_input_data = skip_bytes;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = end_source;
  progress.progress_monitor = stop_after_many_scans;
}

// To the first scan. false: there is a message.
bool read_jpeg_head(JpegReader& reader) {
  if (setjmp(reader.stop) != 0) return false;
  jpeg_create_decompress(&reader.decoder);
  reader.decoder.src = &reader.source;
  reader.decoder.progress = &reader.progress;
  jpeg_read_header(&reader.decoder, TRUE);
  return true;
}

// Rows of grey; of red, green and blue; or of cyan, magenta, yellow and black.
bool read_jpeg_rows(JpegReader& reader, std::uint8_t* rows, std::size_t row_bytes) {
  if (setjmp(reader.stop) != 0) return false;
  jpeg_decompress_struct& decoder = reader.decoder;
  decoder.do_block_smoothing = FALSE;  // it makes up what a progressive file lacks
  jpeg_start_decompress(&decoder);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = rows + decoder.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  return true;
}

// Adobe's programs write inks as what they leave of the light.
void inks_to_colours(Pixels& pixels, bool is_inverted) {
  const std::size_t count = pixels.values.size() / 4;
  std::uint8_t* values = pixels.values.data();
  const auto light = [is_inverted](std::uint8_t ink) { return is_inverted ? ink : 255 - ink; };
  for (std::size_t i = 0; i < count; ++i) {
    const int black = light(values[4 * i + 3]);
    for (std::size_t c = 0; c < 3; ++c)
      values[3 * i + c] = static_cast<std::uint8_t>((light(values[4 * i + c]) * black + 127) / 255);
  }
  pixels.channels = 3;
  pixels.values.resize(3 * count);
}

// The coefficients of a file of several scans, and the rows that the steps of decoding pass on. libjpeg
// rounds sides up to whole blocks of at most 4 x 4 blocks of 8 x 8.
std::uint64_t jpeg_memory(j_decompress_ptr decoder) {
  constexpr std::uint64_t kTables = 1 << 18, kRows = 64;
  const auto rounded = [](JDIMENSION side) { return (std::uint64_t{side} + 31) / 32 * 32; };
  const std::uint64_t channels = static_cast<std::uint64_t>(decoder->num_components),
                      height = rounded(decoder->image_height), width = rounded(decoder->image_width);
  const std::uint64_t coefficients = jpeg_has_multiple_scans(decoder) ? height * width * channels * 2 : 0;
  const std::uint64_t result = std::uint64_t{decoder->image_height} * decoder->image_width * channels;
  return result + coefficients + kRows * width * channels + kTables;
}

Error bad_jpeg(const JpegReader& reader, const std::string& name) {
  return make_error(ErrorCode::corrupt_file,
                    text(name, ": found ", reader.message, ", expected a whole JPEG"));
}

}  // namespace

Result<Pixels> jpeg_pixels(std::span<const std::byte> bytes, const std::string& name,
                           std::uint64_t memory_limit) {
  JpegReader reader(bytes);
  if (!read_jpeg_head(reader)) return bad_jpeg(reader, name);
  jpeg_decompress_struct& decoder = reader.decoder;
  const int channels = decoder.num_components;
  if (channels != 1 && channels != 3 && channels != 4)
    return make_error(ErrorCode::corrupt_file,
                      text(name, ": found ", channels, " channels, expected 1, 3 or 4"));
  Pixels pixels{.height = decoder.image_height, .width = decoder.image_width, .channels = channels};
  // Two bits or more per block of 8 x 8 of each channel, of which one has all pixels; a run of empty blocks
  // in a progressive file takes less.
  const PictureExtents extents{.height = pixels.height,
                               .width = pixels.width,
                               .pixels_per_byte = 512,
                               .memory = jpeg_memory(&decoder)};
  IMPRINT_CHECK(check_extents(extents, bytes.size(), name, memory_limit));
  decoder.mem->max_memory_to_use = static_cast<long>(std::min<std::uint64_t>(extents.memory, LONG_MAX));
  decoder.out_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  pixels.values.resize(static_cast<std::size_t>(pixels.height * pixels.width * channels));
  if (!read_jpeg_rows(reader, pixels.values.data(), static_cast<std::size_t>(pixels.width * channels)))
    return bad_jpeg(reader, name);
  if (channels == 4) inks_to_colours(pixels, decoder.saw_Adobe_marker);
  return pixels;
}

}  // namespace imprint::training
