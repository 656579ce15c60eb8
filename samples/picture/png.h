#pragma once
// PNG files.

#include <cstdint>
#include <string>
#include <vector>

namespace picture {

// rgba: width * height * 4, top row first. False when the file could not be written.
bool write_png(const std::string& path, std::uint32_t width, std::uint32_t height,
               const std::vector<std::uint8_t>& rgba);

}  // namespace picture
