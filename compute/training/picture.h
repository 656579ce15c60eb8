#pragma once
// Pictures from files: PNG, JPEG, and binary PGM and PPM. A damaged or hostile file gives an error.
//
// libpng and libjpeg-turbo decode. Bounds for a file of n bytes, meanwhile: memory is at most
// PictureOptions::memory_limit, by default 64 n + 48 MiB and never more than 256 MiB; and at most 12 bytes
// per pixel of sides that are rounded up to 32, 256 bytes per column and 256 KiB. The extents of the header
// are checked before anything is decoded: against the limit, and against the most pixels that a file of its
// size holds. Time is linear in the file and its pixels; a JPEG has at most 64 scans.
//
// A build with IMPRINT_PICTURES=OFF has neither library: PNG and JPEG files give `unsupported`.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compute/base/result.h"
#include "compute/program/run.h"

namespace imprint::training {

enum class PictureFit : std::uint8_t {
  crop,     // fills the wanted size; both ends of the longer axis are cut off
  stretch,  // each axis by its own factor
  pad       // fits inside the wanted size; the rest is black
};

struct PictureOptions {
  std::int64_t height = 0, width = 0;  // pixels; 0, both: those of the file
  std::int64_t channels = 3;           // 3: red, green, blue; 1: grey. Transparency is dropped
  PictureFit fit = PictureFit::crop;   // to height and width
  // Bytes, without the result. 0: 64 per byte of the file and 48 MiB, at most 256 MiB, which admits all but
  // huge pictures of one colour.
  std::uint64_t memory_limit = 0;
};

// [channels, height, width] in [0, 1]. Smaller pictures are means of pixels, larger ones lie between them:
// the triangle filter of PIL's BILINEAR. Errors: io, not_found, corrupt_file (damaged, or another format),
// invalid_argument (options; more pixels than memory_limit admits).
Result<HostTensor> read_picture(const std::string& path, const PictureOptions& options = {});
// The same from a file's bytes. name: for errors.
Result<HostTensor> decode_picture(std::span<const std::byte> bytes, const std::string& name,
                                  const PictureOptions& options = {});

}  // namespace imprint::training
