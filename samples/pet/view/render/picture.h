#ifndef IMPRINT_SAMPLES_PET_VIEW_RENDER_PICTURE_H_
#define IMPRINT_SAMPLES_PET_VIEW_RENDER_PICTURE_H_
// A picture in memory, and PNG files.

#include <cstdint>
#include <string>
#include <vector>

namespace pet {

struct Picture {
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint8_t> rgba;  // width * height * 4, top row first

  bool empty() const { return rgba.empty(); }
};

// False when the file could not be written.
bool write_png(const Picture& picture, const std::string& path);

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_VIEW_RENDER_PICTURE_H_
