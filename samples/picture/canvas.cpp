#include "canvas.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "png.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb_easy_font.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace picture {

Canvas::Canvas(std::uint32_t width, std::uint32_t height, std::uint32_t paper)
    : width_(width), height_(height), paper_(paper), rgba_(std::size_t{4} * width * height) {
  clear();
}

bool Canvas::write_png(const std::string& path) const {
  return picture::write_png(path, width_, height_, rgba_);
}

void Canvas::set_area(float left, float top, float side) {
  left_ = left;
  top_ = top;
  side_ = side;
}

template <class Covers>
void Canvas::fill(Point least, Point most, std::uint32_t colour, const Covers& covers) {
  const auto pixel = [](float at, std::uint32_t end) {
    return static_cast<std::uint32_t>(std::clamp(at, 0.0f, static_cast<float>(end)));
  };
  const std::uint32_t right = pixel(std::ceil(left_ + most.x * side_), width_);
  const std::uint32_t bottom = pixel(std::ceil(top_ + most.y * side_), height_);
  for (std::uint32_t y = pixel(top_ + least.y * side_, height_); y < bottom; ++y)
    for (std::uint32_t x = pixel(left_ + least.x * side_, width_); x < right; ++x) {
      const Point at{(static_cast<float>(x) + 0.5f - left_) / side_,
                     (static_cast<float>(y) + 0.5f - top_) / side_};
      if (!covers(at)) continue;
      std::uint8_t* const rgba = rgba_.data() + 4 * (std::size_t{y} * width_ + x);
      for (int i = 0; i < 3; ++i) rgba[i] = static_cast<std::uint8_t>(colour >> (16 - 8 * i));
      rgba[3] = 255;
    }
}

void Canvas::clear() {
  const float left = left_, top = top_, side = side_;
  set_area(0, 0, static_cast<float>(std::max(width_, height_)));
  box({0, 0}, {1, 1}, paper_);
  set_area(left, top, side);
}

void Canvas::box(Point corner, Point size, std::uint32_t colour) {
  const Point end{corner.x + size.x, corner.y + size.y};
  fill(corner, end, colour,
       [&](Point at) { return at.x >= corner.x && at.y >= corner.y && at.x < end.x && at.y < end.y; });
}

void Canvas::disc(Point middle, float radius, std::uint32_t colour) {
  fill({middle.x - radius, middle.y - radius}, {middle.x + radius, middle.y + radius}, colour,
       [&](Point at) { return std::hypot(at.x - middle.x, at.y - middle.y) <= radius; });
}

void Canvas::line(Point from, Point to, float thickness, std::uint32_t colour) {
  const float half = thickness / 2, dx = to.x - from.x, dy = to.y - from.y;
  const float length = std::max(dx * dx + dy * dy, 1e-12f);
  fill({std::min(from.x, to.x) - half, std::min(from.y, to.y) - half},
       {std::max(from.x, to.x) + half, std::max(from.y, to.y) + half}, colour, [&](Point at) {
         const float along = std::clamp(((at.x - from.x) * dx + (at.y - from.y) * dy) / length, 0.0f, 1.0f);
         return std::hypot(at.x - from.x - along * dx, at.y - from.y - along * dy) <= half;
       });
}

void Canvas::text(Point corner, float height, const std::string& words, std::uint32_t colour) {
  struct Vertex {
    float x, y, z;
    std::uint8_t colour[4];
  };
  constexpr float kLine = 12;  // of the font, in its own units
  std::array<Vertex, 4 * 2000> vertices;
  std::string copy = words;
  const int quads = stb_easy_font_print(0, 0, copy.data(), nullptr, vertices.data(), sizeof vertices);
  const float scale = height / kLine;
  for (int i = 0; i < quads; ++i) {
    const Vertex& least = vertices[static_cast<std::size_t>(4 * i)];
    const Vertex& most = vertices[static_cast<std::size_t>(4 * i + 2)];
    box({corner.x + least.x * scale, corner.y + least.y * scale},
        {(most.x - least.x) * scale, (most.y - least.y) * scale}, colour);
  }
}

}  // namespace picture
