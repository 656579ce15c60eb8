#include "tools/imprint/curve_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "compute/base/text.h"
#include "compute/training/report.h"
#include "samples/picture/canvas.h"

namespace imprint::tools {
namespace {

using picture::Canvas;

// A white canvas whose units are pixels.
Canvas canvas_of(int width, int height) {
  Canvas canvas(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 0xffffff);
  canvas.set_area(0, 0, 1);
  return canvas;
}

// Corners in pixels.
void box(Canvas& canvas, int left, int top, int right, int bottom, std::uint32_t colour) {
  canvas.box({static_cast<float>(left), static_cast<float>(top)},
             {static_cast<float>(right - left), static_cast<float>(bottom - top)}, colour);
}

void words(Canvas& canvas, int left, int top, const std::string& text, std::uint32_t colour) {
  constexpr float kHeight = 12;
  canvas.text({static_cast<float>(left), static_cast<float>(top)}, kHeight, text, colour);
}

Result<> write(const Canvas& canvas, const std::string& path) {
  if (canvas.write_png(path)) return {};
  return make_error(ErrorCode::io, text(path, ": found no room or no permission to write"));
}

std::string axis_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// One chart in the square of `side` pixels whose left edge is given.
void draw_chart(Canvas& canvas, int left, int side, const std::string& title,
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
    box(canvas, start, y, right, y + 1, 0xdddddd);
    words(canvas, left + 6, y - 3, axis_number(low + (high - low) * i / 4), 0x444444);
  }
  words(canvas, start, bottom + 10, text("step ", axis_number(first)), 0x444444);
  words(canvas, right - 50, bottom + 10, axis_number(last), 0x444444);
  words(canvas, start, 12, title, 0x000000);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::uint32_t colour = kColours[i % std::size(kColours)];
    words(canvas, start + 90 * static_cast<int>(i), 26, lines[i].name, colour);
    double old_x = NAN, old_y = NAN;
    for (const auto& [x, y] : lines[i].points) {
      const double across = start + (right - start) * (x - first) / (last - first),
                   down = bottom - (bottom - top) * (y - low) / (high - low);
      if (std::isfinite(y) && std::isfinite(old_y))
        canvas.line({static_cast<float>(old_x), static_cast<float>(old_y)},
                    {static_cast<float>(across), static_cast<float>(down)}, 2, colour);
      old_x = across, old_y = std::isfinite(y) ? down : NAN;
    }
  }
}

}  // namespace

Result<> write_curve_picture(const std::string& path, const std::string& title,
                             const training::Curves& curves) {
  constexpr int kSide = 400;
  const bool has_metric = !curves.metric_names.empty();
  Canvas canvas = canvas_of(has_metric ? 2 * kSide : kSide, kSide);
  draw_chart(canvas, 0, kSide, title + ": loss", training::curve_lines(curves));
  if (has_metric)
    draw_chart(canvas, kSide, kSide, curves.metric_names[0],
               training::curve_lines(curves, curves.metric_names[0]));
  return write(canvas, path);
}

Result<> write_pictures(const std::string& path, const HostTensor& pictures) {
  constexpr int kScale = 4;
  const int count = static_cast<int>(pictures.shape[0]), high = static_cast<int>(pictures.shape[1]),
            wide = static_cast<int>(pictures.shape[2]), in_row = std::min(count, 10);
  Canvas canvas =
      canvas_of(in_row * (wide + 1) * kScale, (count + in_row - 1) / in_row * (high + 1) * kScale);
  for (int n = 0; n < count; ++n)
    for (int y = 0; y < high; ++y)
      for (int x = 0; x < wide; ++x) {
        const float ink =
            std::clamp(pictures.floats[static_cast<std::size_t>((n * high + y) * wide + x)], 0.0f, 1.0f);
        const auto grey = static_cast<std::uint32_t>(255 - std::lround(255 * ink));
        const int left = (n % in_row * (wide + 1) + x) * kScale, top = (n / in_row * (high + 1) + y) * kScale;
        box(canvas, left, top, left + kScale, top + kScale, grey * 0x10101);
      }
  return write(canvas, path);
}

}  // namespace imprint::tools
