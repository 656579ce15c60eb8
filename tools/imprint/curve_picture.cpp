#include "tools/imprint/curve_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
#include <stb_easy_font.h>
#include <stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include "compute/base/text.h"
#include "compute/training/report.h"

namespace imprint::tools {
namespace {

struct Raster {
  int width, height;
  std::vector<std::uint8_t> pixels;  // RGB

  Raster(int w, int h) : width(w), height(h), pixels(static_cast<std::size_t>(3 * w * h), 255) {}

  void box(int left, int top, int right, int bottom, std::uint32_t colour) {
    for (int y = std::max(top, 0); y < std::min(bottom, height); ++y)
      for (int x = std::max(left, 0); x < std::min(right, width); ++x)
        for (int i = 0; i < 3; ++i)
          pixels[static_cast<std::size_t>(3 * (y * width + x) + i)] =
              static_cast<std::uint8_t>(colour >> (16 - 8 * i));
  }
  void line(double x0, double y0, double x1, double y1, std::uint32_t colour) {
    const int steps = 1 + static_cast<int>(2 * std::hypot(x1 - x0, y1 - y0));
    for (int i = 0; i <= steps; ++i) {
      const int x = static_cast<int>(std::lround(x0 + (x1 - x0) * i / steps)),
                y = static_cast<int>(std::lround(y0 + (y1 - y0) * i / steps));
      box(x - 1, y - 1, x + 1, y + 1, colour);
    }
  }
  // By stb_easy_font: ASCII, seven pixels high.
  void words(int left, int top, std::string words, std::uint32_t colour) {
    struct Corner {
      float x, y, z;
      std::uint8_t colour[4];
    };
    std::vector<Corner> corners(words.size() * 80 + 4);
    const int quads = stb_easy_font_print(0, 0, words.data(), nullptr, corners.data(),
                                          static_cast<int>(corners.size() * sizeof(Corner)));
    for (int i = 0; i < quads; ++i) {
      const Corner &a = corners[static_cast<std::size_t>(4 * i)],
                   &c = corners[static_cast<std::size_t>(4 * i + 2)];
      box(left + static_cast<int>(a.x), top + static_cast<int>(a.y), left + static_cast<int>(c.x),
          top + static_cast<int>(c.y), colour);
    }
  }
  Result<> write(const std::string& path) const {
    if (stbi_write_png(path.c_str(), width, height, 3, pixels.data(), 3 * width) != 0) return {};
    return make_error(ErrorCode::io, text(path, ": found no room or no permission to write"));
  }
};

std::string axis_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// One chart in the square of `side` pixels whose left edge is given.
void draw_chart(Raster& raster, int left, int side, const std::string& title,
                const std::vector<training::ChartLine>& lines) {
  constexpr std::uint32_t kColours[] = {0x1f77b4, 0xd62728};
  double low = INFINITY, high = -INFINITY, first = INFINITY, last = -INFINITY;
  for (const training::ChartLine& line : lines)
    for (const auto& [x, y] : line.points) {
      if (!std::isfinite(y)) continue;
      low = std::fmin(low, y), high = std::fmax(high, y), first = std::fmin(first, x),
      last = std::fmax(last, x);
    }
  if (!(low < high)) low -= 0.5, high += 0.5;
  if (!(first < last)) last = first + 1;
  const int right = left + side - 16, start = left + 48, top = 40, bottom = side - 32;
  for (int i = 0; i <= 4; ++i) {
    const int y = bottom - (bottom - top) * i / 4;
    raster.box(start, y, right, y + 1, 0xdddddd);
    raster.words(left + 6, y - 3, axis_number(low + (high - low) * i / 4), 0x444444);
  }
  raster.words(start, bottom + 10, text("step ", axis_number(first)), 0x444444);
  raster.words(right - 50, bottom + 10, axis_number(last), 0x444444);
  raster.words(start, 12, title, 0x000000);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::uint32_t colour = kColours[i % std::size(kColours)];
    raster.words(start + 90 * static_cast<int>(i), 26, lines[i].name, colour);
    double old_x = NAN, old_y = NAN;
    for (const auto& [x, y] : lines[i].points) {
      const double across = start + (right - start) * (x - first) / (last - first),
                   down = bottom - (bottom - top) * (y - low) / (high - low);
      if (std::isfinite(y) && std::isfinite(old_y)) raster.line(old_x, old_y, across, down, colour);
      old_x = across, old_y = std::isfinite(y) ? down : NAN;
    }
  }
}

}  // namespace

Result<> write_curve_picture(const std::string& path, const std::string& title,
                             const training::Curves& curves) {
  constexpr int kSide = 400;
  const bool has_metric = !curves.metric_names.empty();
  Raster raster(has_metric ? 2 * kSide : kSide, kSide);
  draw_chart(raster, 0, kSide, title + ": loss", training::curve_lines(curves));
  if (has_metric)
    draw_chart(raster, kSide, kSide, curves.metric_names[0],
               training::curve_lines(curves, curves.metric_names[0]));
  return raster.write(path);
}

Result<> write_pictures(const std::string& path, const HostTensor& pictures) {
  constexpr int kScale = 4;
  const int count = static_cast<int>(pictures.shape[0]), high = static_cast<int>(pictures.shape[1]),
            wide = static_cast<int>(pictures.shape[2]), in_row = std::min(count, 10);
  Raster raster(in_row * (wide + 1) * kScale, (count + in_row - 1) / in_row * (high + 1) * kScale);
  for (int n = 0; n < count; ++n)
    for (int y = 0; y < high; ++y)
      for (int x = 0; x < wide; ++x) {
        const float ink =
            std::clamp(pictures.floats[static_cast<std::size_t>((n * high + y) * wide + x)], 0.0f, 1.0f);
        const auto grey = static_cast<std::uint32_t>(255 - std::lround(255 * ink));
        const int left = (n % in_row * (wide + 1) + x) * kScale, top = (n / in_row * (high + 1) + y) * kScale;
        raster.box(left, top, left + kScale, top + kScale, grey * 0x10101);
      }
  return raster.write(path);
}

}  // namespace imprint::tools
