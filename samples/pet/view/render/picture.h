#pragma once
// A picture in memory, and PNG files.

#include <cstdint>
#include <string>
#include <vector>

namespace pet {

struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgba;  // width * height * 4, top row first

  bool empty() const { return rgba.empty(); }
};

// False when the file could not be written.
bool write_png(const Picture& picture, const std::string& path);

}  // namespace pet
