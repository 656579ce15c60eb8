#include "samples/pet/view/overlay/overlay_draw.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "samples/pet/view/models/mesh_math.h"

namespace pet {
namespace {

ImVec2 operator+(ImVec2 a, ImVec2 b) { return {a.x + b.x, a.y + b.y}; }
ImVec2 operator*(ImVec2 a, float s) { return {a.x * s, a.y * s}; }

// The first that exists. Debian, Fedora, Arch, macOS, Windows.
std::string font_file(bool bold) {
  const char* const regular_files[] = {
      "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
      "/usr/share/fonts/TTF/DejaVuSans.ttf", "/System/Library/Fonts/Supplemental/Arial.ttf",
      "C:/Windows/Fonts/segoeui.ttf"};
  const char* const bold_files[] = {
      "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
      "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans-Bold.ttf", "/usr/share/fonts/TTF/DejaVuSans-Bold.ttf",
      "/System/Library/Fonts/Supplemental/Arial Bold.ttf", "C:/Windows/Fonts/segoeuib.ttf"};
  std::error_code ignored;
  for (const char* file : bold ? bold_files : regular_files)
    if (std::filesystem::exists(file, ignored)) return file;
  return {};
}

ImFont* add_font(ImFontAtlas& atlas, float pixels, bool bold) {
  const std::string file = font_file(bold);
  if (!file.empty())
    if (ImFont* font = atlas.AddFontFromFileTTF(file.c_str(), std::round(pixels))) return font;
  ImFontConfig config;
  config.SizePixels = 13.0f * std::max(1.0f, std::round(pixels / 15.0f));
  return atlas.AddFontDefault(&config);
}

float nice_step(float span, int most) {
  for (float step : {5.0f, 10.0f, 15.0f, 30.0f, 60.0f, 120.0f, 300.0f, 600.0f, 1800.0f})
    if (span / step <= static_cast<float>(most)) return step;
  return 3600.0f;
}

// Not the first byte of a letter in UTF-8.
bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

void draw_line(ImDrawList& list, const std::vector<ImVec2>& points, ImU32 color, float thickness) {
  if (points.size() == 1) list.AddCircleFilled(points[0], thickness * 1.5f, color);
  if (points.size() > 1)
    list.AddPolyline(points.data(), static_cast<int>(points.size()), color, 0, thickness);
}

void draw_dashes(ImDrawList& list, const std::vector<ImVec2>& points, ImU32 color, float thickness,
                 float dash) {
  float run = 0.0f;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const ImVec2 from = points[i - 1], way = points[i] + from * -1.0f;
    const float far = std::hypot(way.x, way.y);
    for (float at = 0.0f; at < far;) {
      const float in_dash = std::fmod(run, 2.0f * dash);
      const float step = std::min(far - at, (in_dash < dash ? dash : 2.0f * dash) - in_dash + 1e-3f);
      if (in_dash < dash)
        list.AddLine(from + way * (at / far), from + way * ((at + step) / far), color, thickness);
      at += step;
      run += step;
    }
  }
}

}  // namespace

ImU32 faded(ImU32 color, float opacity) {
  const float alpha = static_cast<float>(color >> IM_COL32_A_SHIFT & 255u) * clamp01(opacity);
  return (color & ~IM_COL32_A_MASK) | static_cast<ImU32>(std::lround(alpha)) << IM_COL32_A_SHIFT;
}

ImU32 color_of(FeedbackKind kind) {
  switch (kind) {
    case FeedbackKind::praise:
      return palette::kPraise;
    case FeedbackKind::scold:
      return palette::kScold;
    case FeedbackKind::treat:
      return palette::kTreat;
    case FeedbackKind::click:
      return palette::kClick;
    case FeedbackKind::demonstration:
      return palette::kShow;
  }
  return palette::kInk;
}

Fonts add_fonts(ImFontAtlas& atlas, float pixels) {
  Fonts fonts;
  fonts.body = add_font(atlas, pixels, false);  // the first is Dear ImGui's default
  fonts.small = add_font(atlas, pixels * 0.82f, false);
  fonts.bold = add_font(atlas, pixels, true);
  fonts.title = add_font(atlas, pixels * 1.5f, true);
  return fonts;
}

void draw_star(ImDrawList& list, ImVec2 center, float radius, ImU32 color) {
  ImVec2 points[10];
  for (int i = 0; i < 10; ++i) {
    const float a = kPi * (-0.5f + static_cast<float>(i) / 5.0f), r = i % 2 ? radius * 0.5f : radius;
    points[i] = center + ImVec2{r * std::cos(a), r * std::sin(a)};
  }
  // A pentagon and five points: filling needs convex parts. They overlap by a hair, so that smoothed edges
  // leave no seam.
  for (int i = 0; i < 10; i += 2)
    list.AddTriangleFilled(points[(i + 9) % 10] * 0.96f + center * 0.04f, points[i],
                           points[i + 1] * 0.96f + center * 0.04f, color);
  ImVec2 core[5];
  for (int i = 0; i < 5; ++i) core[i] = points[2 * i + 1];
  list.AddConvexPolyFilled(core, 5, color);
}

void draw_sign(ImDrawList& list, FeedbackKind kind, ImVec2 c, float r, ImU32 color) {
  switch (kind) {
    case FeedbackKind::praise: {
      // Two round lobes, and the tangents from the tip to them.
      const ImVec2 lobe{0.46f * r, -0.28f * r}, tip{0.0f, 0.92f * r};
      const float radius = 0.5f * r, far = std::hypot(lobe.x, tip.y - lobe.y);
      const float angle = std::atan2(lobe.y - tip.y, lobe.x) + std::asin(radius / far),
                  run = std::sqrt(far * far - radius * radius);
      const ImVec2 tangent{run * std::cos(angle), tip.y + run * std::sin(angle)};
      const ImVec2 body[5] = {c + tip, c + tangent, c + lobe, c + ImVec2{-lobe.x, lobe.y},
                              c + ImVec2{-tangent.x, tangent.y}};
      list.AddConvexPolyFilled(body, 5, color);
      list.AddCircleFilled(c + lobe, radius, color, 20);
      list.AddCircleFilled(c + ImVec2{-lobe.x, lobe.y}, radius, color, 20);
      break;
    }
    case FeedbackKind::scold: {
      const float e = r * 0.68f, w = std::max(1.5f, r * 0.46f);
      list.AddLine(c + ImVec2{-e, -e}, c + ImVec2{e, e}, color, w);
      list.AddLine(c + ImVec2{-e, e}, c + ImVec2{e, -e}, color, w);
      break;
    }
    case FeedbackKind::treat: {
      const float e = r * 0.62f, k = r * 0.36f;
      list.AddLine(c + ImVec2{-e, 0}, c + ImVec2{e, 0}, color, r * 0.55f);
      for (float x : {-e, e})
        for (float y : {-k * 0.8f, k * 0.8f}) list.AddCircleFilled(c + ImVec2{x * 1.1f, y}, k, color, 14);
      break;
    }
    case FeedbackKind::click:
      draw_star(list, c, r * 1.08f, color);
      break;
    case FeedbackKind::demonstration:
      list.AddCircle(c, r * 0.78f, color, 20, std::max(1.5f, r * 0.32f));
      list.AddCircleFilled(c, r * 0.28f, color, 12);
      break;
  }
}

void draw_text(ImDrawList& list, ImFont* font, ImVec2 at, ImU32 color, const std::string& text) {
  list.AddText(font, font->FontSize, {std::round(at.x), std::round(at.y)}, color, text.c_str(),
               text.c_str() + text.size());
}

ImVec2 text_size(ImFont* font, const std::string& text) {
  return font->CalcTextSizeA(font->FontSize, 1e9f, 0.0f, text.c_str(), text.c_str() + text.size());
}

void draw_text_centered(ImDrawList& list, ImFont* font, ImVec2 at, ImU32 color, const std::string& text) {
  draw_text(list, font, {at.x - text_size(font, text).x * 0.5f, at.y}, color, text);
}

std::string fitted(ImFont* font, const std::string& text, float width) {
  if (text_size(font, text).x <= width) return text;
  std::string cut = text;
  while (!cut.empty() && text_size(font, cut + "...").x > width) {
    while (cut.size() > 1 && is_continuation(cut.back())) cut.pop_back();
    cut.pop_back();
  }
  return cut + "...";
}

void draw_card(ImDrawList& list, ImVec2 low, ImVec2 high, float rounding) {
  for (int i = 3; i >= 1; --i) {
    const float grow = static_cast<float>(i) * 1.5f - 1.0f;
    list.AddRect(low + ImVec2{-grow, -grow + 2.0f}, high + ImVec2{grow, grow + 2.0f},
                 palette::rgb(0x3a3340, 14), rounding + grow, 0, 3.0f);
  }
  list.AddRectFilled(low, high, palette::kCard, rounding);
  list.AddRect(low, high, palette::kCardEdge, rounding);
}

void draw_bar(ImDrawList& list, ImVec2 low, ImVec2 high, float value, ImU32 color) {
  const float height = high.y - low.y, round = height * 0.5f;
  list.AddRectFilled(low, high, palette::kFaint, round);
  if (value > 0.0f)
    list.AddRectFilled(low, {low.x + std::max(height, (high.x - low.x) * clamp01(value)), high.y}, color,
                       round);
}

void draw_curve(ImDrawList& list, const Fonts& fonts, ImVec2 low, ImVec2 high, const CurvePlot& plot) {
  const float line = fonts.small->FontSize;
  const float strip = plot.ticks ? line * 1.15f : 0.0f;
  const ImVec2 from{low.x + text_size(fonts.small, "100%").x + line * 0.5f, low.y + line * 0.5f};
  const ImVec2 to{high.x - line * 0.6f, high.y - line * 1.35f - strip};

  float last = 30.0f;
  if (plot.curve && !plot.curve->empty()) last = std::max(last, plot.curve->back().seconds);
  if (plot.ghost && !plot.ghost->empty()) last = std::max(last, plot.ghost->back().seconds);
  if (plot.ticks && !plot.ticks->empty()) last = std::max(last, plot.ticks->back().seconds);
  const auto at = [&](float seconds, float success) {
    return ImVec2{mix(from.x, to.x, seconds / last), mix(to.y, from.y, clamp01(success))};
  };
  const auto line_of = [&](const std::vector<CurvePoint>& curve) {
    std::vector<ImVec2> points;
    for (const CurvePoint& p : curve) points.push_back(at(p.seconds, p.success));
    return points;
  };

  for (float level : {0.0f, 0.5f, 1.0f}) {
    const float y = at(0.0f, level).y;
    list.AddLine({from.x, y}, {to.x, y}, palette::kFaint, 1.0f);
    const std::string label = percent(level);
    draw_text(list, fonts.small, {from.x - text_size(fonts.small, label).x - line * 0.4f, y - line * 0.5f},
              palette::kSoft, label);
  }
  draw_dashes(list, {at(0.0f, 0.9f), at(last, 0.9f)}, faded(palette::kGood, 0.75f), 1.0f, line * 0.3f);
  const int most = std::max(2, static_cast<int>((to.x - from.x) / (line * 4.2f)));
  const float step = nice_step(last, most);
  for (float s = 0.0f; s <= last + 0.01f; s += step) {
    const float x = at(s, 0.0f).x;
    list.AddLine({x, to.y}, {x, to.y + line * 0.25f}, palette::kSoft, 1.0f);
    const std::string label = last < 120.0f ? std::to_string(static_cast<int>(s)) + " s" : clock_text(s);
    draw_text_centered(list, fonts.small, {x, to.y + line * 0.3f + strip}, palette::kSoft, label);
  }
  if (plot.ghost) draw_dashes(list, line_of(*plot.ghost), palette::kGhost, plot.thickness, line * 0.45f);
  if (plot.curve) {
    const std::vector<ImVec2> points = line_of(*plot.curve);
    for (std::size_t i = 1; i < points.size(); ++i)
      list.AddQuadFilled(points[i - 1], points[i], {points[i].x, to.y}, {points[i - 1].x, to.y},
                         faded(palette::kLearn, 0.14f));
    draw_line(list, points, palette::kLearn, plot.thickness * 1.3f);
    if (!points.empty()) list.AddCircleFilled(points.back(), plot.thickness * 2.0f, palette::kLearn, 16);
  }
  if (plot.ticks) {
    const float radius = line * 0.30f, y = to.y + line * 0.25f + strip * 0.5f;
    // Where signs crowd, each column keeps its newest.
    float taken = high.x + radius;
    for (std::size_t i = plot.ticks->size(); i-- > 0;) {
      const FeedbackTick& tick = (*plot.ticks)[i];
      const float x = at(tick.seconds, 0.0f).x;
      if (x > taken - 1.7f * radius && i + 1 != plot.ticks->size()) continue;
      draw_sign(list, tick.kind, {x, y}, radius, color_of(tick.kind));
      taken = x;
    }
  }
}

std::string percent(float value) {
  return std::to_string(static_cast<int>(std::lround(clamp01(value) * 100.0f))) + "%";
}

std::string clock_text(double seconds) {
  const long whole = std::max(0L, static_cast<long>(seconds));
  char text[32];
  std::snprintf(text, sizeof(text), "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

std::string capitalized(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  // U+00E0 .. U+00FE without the division sign: their capitals are 0x20 before. No font here has the capital
  // of U+00FF.
  const auto second = static_cast<unsigned char>(text.size() > 1 ? text[1] : 0);
  if (text[0] == '\xc3' && second >= 0xa0 && second <= 0xbe && second != 0xb7)
    text[1] = static_cast<char>(second - 0x20);
  return text;
}

}  // namespace pet
