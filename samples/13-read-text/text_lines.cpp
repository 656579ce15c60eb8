#include "text_lines.h"

#include <algorithm>

namespace {

// Pixels that touch each other, of the map above a limit.
struct Region {
  Box box;
  float sum = 0;
  int pixels = 0;
};

Region flood(std::span<const float> map, std::vector<char>& open, int width, int height, int start) {
  Region region{{start % width, start / width, start % width + 1, start / width + 1}};
  std::vector<int> stack{start};
  open[static_cast<std::size_t>(start)] = 0;
  while (!stack.empty()) {
    const int pixel = stack.back(), x = pixel % width, y = pixel / width;
    stack.pop_back();
    Box& box = region.box;
    box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1),
           std::max(box.bottom, y + 1)};
    region.sum += map[static_cast<std::size_t>(pixel)];
    ++region.pixels;
    for (int v = std::max(0, y - 1); v <= std::min(height - 1, y + 1); ++v)
      for (int u = std::max(0, x - 1); u <= std::min(width - 1, x + 1); ++u)
        if (char& next = open[static_cast<std::size_t>(v * width + u)]; next) {
          next = 0;
          stack.push_back(v * width + u);
        }
  }
  return region;
}

}  // namespace

std::vector<Box> text_lines(std::span<const float> map, int width, int height) {
  constexpr float kInside = 0.3f, kLeastMean = 0.5f;
  constexpr int kLeastSide = 3;
  // The detector marks the middle of a line: its area times this, over its perimeter, is missing around it.
  constexpr float kGrowth = 1.6f;
  std::vector<char> open(map.size());
  std::ranges::transform(map, open.begin(), [](float p) { return static_cast<char>(p > kInside); });
  std::vector<Box> lines;
  for (int pixel = 0; pixel < width * height; ++pixel) {
    if (!open[static_cast<std::size_t>(pixel)]) continue;
    const Region region = flood(map, open, width, height, pixel);
    const Box& box = region.box;
    if (std::min(box.width(), box.height()) < kLeastSide ||
        region.sum < kLeastMean * static_cast<float>(region.pixels))
      continue;
    const int grow = static_cast<int>(kGrowth * static_cast<float>(box.width() * box.height()) /
                                      static_cast<float>(2 * (box.width() + box.height())));
    lines.push_back({std::max(0, box.left - grow), std::max(0, box.top - grow),
                     std::min(width, box.right + grow), std::min(height, box.bottom + grow)});
  }
  std::ranges::sort(lines, {}, [](const Box& box) { return box.top; });
  return lines;
}
