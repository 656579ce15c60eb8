#include "picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_easy_font.h>
#pragma GCC diagnostic pop

using namespace imprint;

Result<Picture> load_picture(const std::string& path) {
  IMPRINT_ASSIGN(const HostTensor planes, training::read_picture(path));
  Picture picture(static_cast<int>(planes.shape[2]), static_cast<int>(planes.shape[1]));
  const std::size_t pixels = picture.rgb.size() / 3;
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = planes.floats[i % 3 * pixels + i / 3];
  return picture;
}

// A letter of stb_easy_font is made of boxes of whole units, about seven units high.
static void write_line(Picture& into, float left, float top, float unit, const std::string& words) {
  struct Corner {
    float x, y, z;
    unsigned char colour[4];
  };
  std::array<Corner, 16'384> corners{};
  std::string copy = words;
  const int quads = stb_easy_font_print(0, 0, copy.data(), nullptr, corners.data(), sizeof corners);
  for (int quad = 0; quad < quads; ++quad) {
    const Corner& from = corners[static_cast<std::size_t>(4 * quad)];
    const Corner& to = corners[static_cast<std::size_t>(4 * quad + 2)];
    const auto place = [&](float value, float start) { return static_cast<int>(start + value * unit); };
    for (int y = place(from.y, top); y < place(to.y, top); ++y)
      for (int x = place(from.x, left); x < place(to.x, left); ++x)
        for (int channel = 0; channel < 3; ++channel)
          if (x >= 0 && y >= 0 && x < into.width && y < into.height) into.at(x, y, channel) = 0.1f;
  }
}

Picture written(const std::vector<std::string>& lines) {
  constexpr int kMargin = 40, kLine = 80;
  constexpr float kUnit = 4, kGround = 0.85f;
  int width = 0;
  for (const std::string& line : lines) {
    std::string copy = line;
    width = std::max(width, static_cast<int>(kUnit * static_cast<float>(stb_easy_font_width(copy.data()))));
  }
  Picture picture(width + 2 * kMargin, kLine * static_cast<int>(lines.size()) + kMargin, kGround);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Picture line(picture.width, kLine, kGround);
    write_line(line, kMargin, kLine / 4, kUnit, lines[i]);
    if (i == 1) line = turned(line);
    std::ranges::copy(line.rgb, &picture.at(0, kMargin / 2 + static_cast<int>(i) * kLine, 0));
  }
  return picture;
}

Picture resized(const Picture& picture, Box box, int width, int height) {
  Picture result(width, height);
  const float step_x = static_cast<float>(box.width()) / static_cast<float>(width),
              step_y = static_cast<float>(box.height()) / static_cast<float>(height);
  // A pixel of the result is the mean of as many points as it covers pixels.
  const int points_x = std::max(1, static_cast<int>(std::ceil(step_x))),
            points_y = std::max(1, static_cast<int>(std::ceil(step_y)));
  const auto sample = [&](float x, float y, int channel) {
    const float left = std::clamp(x - 0.5f, 0.0f, static_cast<float>(picture.width - 1)),
                top = std::clamp(y - 0.5f, 0.0f, static_cast<float>(picture.height - 1));
    const int x0 = static_cast<int>(left), y0 = static_cast<int>(top),
              x1 = std::min(x0 + 1, picture.width - 1), y1 = std::min(y0 + 1, picture.height - 1);
    const float u = left - static_cast<float>(x0), v = top - static_cast<float>(y0);
    return (1 - v) * ((1 - u) * picture.at(x0, y0, channel) + u * picture.at(x1, y0, channel)) +
           v * ((1 - u) * picture.at(x0, y1, channel) + u * picture.at(x1, y1, channel));
  };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int channel = 0; channel < 3; ++channel) {
        float sum = 0;
        for (int j = 0; j < points_y; ++j)
          for (int i = 0; i < points_x; ++i)
            sum += sample(
                static_cast<float>(box.left) +
                    (static_cast<float>(x) + (static_cast<float>(i) + 0.5f) / static_cast<float>(points_x)) *
                        step_x,
                static_cast<float>(box.top) +
                    (static_cast<float>(y) + (static_cast<float>(j) + 0.5f) / static_cast<float>(points_y)) *
                        step_y,
                channel);
        result.at(x, y, channel) = sum / static_cast<float>(points_x * points_y);
      }
  return result;
}

Picture turned(const Picture& picture) {
  Picture result(picture.width, picture.height);
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      for (int channel = 0; channel < 3; ++channel)
        result.at(x, y, channel) = picture.at(picture.width - 1 - x, picture.height - 1 - y, channel);
  return result;
}
