#pragma once
// Dear ImGui's triangles on paper: a small software rasteriser, so that a sheet needs no device.

#include <imgui.h>

#include "samples/pet/view/render/picture.h"

namespace pet {

// The atlas as coverage. Marks it as built, so that frames may be drawn with it.
struct FontTexture {
  explicit FontTexture(ImFontAtlas& atlas);
  const unsigned char* coverage = nullptr;
  int width = 0, height = 0;
};

Picture blank_page(std::uint32_t width, std::uint32_t height);  // with a soft background
void paint(Picture& page, const ImDrawData& data, const FontTexture& texture);
// Scales to fill the rectangle, cutting what is too long, with rounded corners.
void paint_picture(Picture& page, const Picture& picture, float left, float top, float right, float bottom,
                   float rounding);

}  // namespace pet
