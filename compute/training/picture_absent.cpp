// A library without libpng and libjpeg-turbo (IMPRINT_PICTURES=OFF), for games that only play.

#include "compute/base/text.h"
#include "compute/training/picture_decode.h"

namespace imprint::training {
namespace {

Error no_pictures(const std::string& name, const char* format) {
  return make_error(ErrorCode::unsupported,
                    text(name, ": found a ", format,
                         ", expected PGM or PPM: this library has IMPRINT_PICTURES=OFF. "
                         "Convert the picture, or build with ON."));
}

}  // namespace

Result<Pixels> png_pixels(std::span<const std::byte>, const std::string& name, std::uint64_t) {
  return no_pictures(name, "PNG");
}
Result<Pixels> jpeg_pixels(std::span<const std::byte>, const std::string& name, std::uint64_t) {
  return no_pictures(name, "JPEG");
}

}  // namespace imprint::training
