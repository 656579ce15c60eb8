#pragma once
// A small software rasteriser of Dear ImGui's triangles, so that a sheet needs no device.

#include <imgui.h>

#include "samples/pet/view/render/picture.h"

namespace pet {

// The atlas as coverage values. Marks the atlas as built, so that frames can use it.
struct FontTexture {
  explicit FontTexture(ImFontAtlas& atlas);
  const unsigned char* coverage = nullptr;
  int width = 0, height = 0;
};

Picture blank_page(std::uint32_t width, std::uint32_t height);  // with a soft background
void paint(Picture& page, const ImDrawData& data, const FontTexture& texture);
// Scales and crops to fill the rectangle, with rounded corners.
void paint_picture(Picture& page, const Picture& picture, float left, float top, float right, float bottom,
                   float rounding);

}  // namespace pet
