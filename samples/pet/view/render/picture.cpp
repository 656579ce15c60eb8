#include "samples/pet/view/render/picture.h"

#include "png.h"

namespace pet {

bool write_png(const Picture& picture, const std::string& path) {
  return ::picture::write_png(path, picture.width, picture.height, picture.rgba);
}

}  // namespace pet
