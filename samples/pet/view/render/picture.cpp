#include "samples/pet/view/render/picture.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
#include <stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace pet {

bool write_png(const Picture& picture, const std::string& path) {
  if (picture.empty()) return false;
  const int width = static_cast<int>(picture.width), height = static_cast<int>(picture.height);
  return stbi_write_png(path.c_str(), width, height, 4, picture.rgba.data(), width * 4) != 0;
}

}  // namespace pet
