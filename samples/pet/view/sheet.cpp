#include "samples/pet/view/sheet.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "samples/pet/view/models/mesh_math.h"
#include "samples/pet/view/overlay/overlay_draw.h"
#include "samples/pet/view/sheet_paint.h"

namespace pet {
namespace {

constexpr float kWidth = 1600.0f, kSheetMargin = 40.0f, kSheetGap = 20.0f;
constexpr float kPictureRatio = 9.0f / 16.0f;

struct Area {
  float left, top, right, bottom;
  ImVec2 low() const { return {left, top}; }
  ImVec2 high() const { return {right, bottom}; }
};

void draw_moment(ImDrawList& list, const Fonts& fonts, const Moment& moment, int number, const Area& area) {
  const float picture_bottom = area.top + (area.right - area.left) * kPictureRatio;
  draw_card(list, area.low(), area.high(), 14.0f);
  const ImVec2 badge{area.left + 26.0f, picture_bottom + 23.0f};
  list.AddCircleFilled(badge, 14.0f, palette::kShow, 28);
  draw_text_centered(list, fonts.bold, {badge.x, badge.y - fonts.bold->FontSize * 0.5f}, IM_COL32_WHITE,
                     std::to_string(number));
  draw_text(list, fonts.body, {area.left + 50.0f, badge.y - fonts.body->FontSize * 0.5f}, palette::kInk,
            fitted(fonts.body, moment.caption, area.right - area.left - 60.0f));
}

void draw_tricks(ImDrawList& list, const Fonts& fonts, const SheetData& data, const Area& area) {
  draw_card(list, area.low(), area.high(), 14.0f);
  draw_text(list, fonts.bold, {area.left + 22.0f, area.top + 16.0f}, palette::kInk, "Success per trick");
  const std::string key = "before the lessons";
  const float key_x = area.right - 22.0f - text_size(fonts.small, key).x;
  draw_text(list, fonts.small, {key_x, area.top + 19.0f}, palette::kSoft, key);
  list.AddLine({key_x - 14.0f, area.top + 18.0f}, {key_x - 14.0f, area.top + 36.0f}, palette::kInk, 3.0f);

  float names = 0.0f;
  for (const SheetTrick& trick : data.tricks)
    names = std::max(names, text_size(fonts.body, capitalized(trick.name)).x);
  const float top = area.top + 54.0f, row = (area.bottom - 14.0f - top) /
                                            static_cast<float>(std::max<std::size_t>(data.tricks.size(), 1));
  const float left = area.left + 22.0f + names + 18.0f, right = area.right - 88.0f;
  for (std::size_t i = 0; i < data.tricks.size(); ++i) {
    const SheetTrick& trick = data.tricks[i];
    const float middle = top + (static_cast<float>(i) + 0.5f) * row, half = std::min(13.0f, row * 0.32f);
    draw_text(list, fonts.body, {area.left + 22.0f, middle - fonts.body->FontSize * 0.5f}, palette::kInk,
              capitalized(trick.name));
    draw_bar(list, {left, middle - half}, {right, middle + half}, trick.success,
             trick.success >= 0.9f ? palette::kGood : palette::kLearn);
    const float before = mix(left, right, clamp01(trick.before));
    list.AddLine({before, middle - half - 4.0f}, {before, middle + half + 4.0f}, palette::kInk, 3.0f);
    draw_text(list, fonts.bold, {right + 16.0f, middle - fonts.bold->FontSize * 0.5f}, palette::kInk,
              percent(trick.success));
  }
}

void draw_learning(ImDrawList& list, const Fonts& fonts, const SheetData& data, const Area& area) {
  draw_card(list, area.low(), area.high(), 14.0f);
  draw_text(list, fonts.bold, {area.left + 22.0f, area.top + 16.0f}, palette::kInk,
            "Success of all tricks over time");
  float x = area.right - 22.0f;
  const auto key = [&](const char* text, ImU32 color, bool dashed) {
    x -= text_size(fonts.small, text).x;
    draw_text(list, fonts.small, {x, area.top + 19.0f}, palette::kSoft, text);
    const float y = area.top + 28.0f;
    if (dashed) {
      list.AddLine({x - 32.0f, y}, {x - 22.0f, y}, color, 4.0f);
      list.AddLine({x - 17.0f, y}, {x - 8.0f, y}, color, 4.0f);
    } else {
      list.AddLine({x - 32.0f, y}, {x - 8.0f, y}, color, 4.0f);
    }
    x -= 50.0f;
  };
  if (!data.ghost_curve.empty()) key("learning off", palette::kGhost, true);
  key("learning", palette::kLearn, false);

  CurvePlot plot;
  plot.curve = &data.curve;
  plot.ghost = data.ghost_curve.empty() ? nullptr : &data.ghost_curve;
  plot.ticks = &data.ticks;
  plot.thickness = 3.5f;
  draw_curve(list, fonts, {area.left + 18.0f, area.top + 50.0f}, {area.right - 12.0f, area.bottom - 42.0f},
             plot);

  // The legend of the signs under the curve.
  const struct {
    FeedbackKind kind;
    const char* text;
  } signs[] = {{FeedbackKind::praise, "praise"},
               {FeedbackKind::scold, "scold"},
               {FeedbackKind::treat, "treat"},
               {FeedbackKind::click, "click"},
               {FeedbackKind::demonstration, "lessons"}};
  float at = area.left + 30.0f;
  for (const auto& sign : signs) {
    std::size_t count = 0;
    for (const FeedbackTick& tick : data.ticks) count += tick.kind == sign.kind;
    if (count == 0) continue;
    draw_sign(list, sign.kind, {at, area.bottom - 24.0f}, 8.0f, color_of(sign.kind));
    const std::string text = std::to_string(count) + " " + sign.text;
    draw_text(list, fonts.small, {at + 16.0f, area.bottom - 24.0f - fonts.small->FontSize * 0.5f},
              palette::kSoft, text);
    at += text_size(fonts.small, text).x + 46.0f;
  }
}

// One row for up to four moments, two for more.
std::size_t columns_of(std::size_t moments) {
  return moments <= 4 ? std::max<std::size_t>(moments, 1) : (moments + 1) / 2;
}

}  // namespace

Picture draw_sheet(const SheetData& data) {
  // Uses a separate context. Afterwards the window's, if any, is current again.
  ImGuiContext* const before = ImGui::GetCurrentContext();
  ImGuiContext* const own = ImGui::CreateContext();
  ImGui::SetCurrentContext(own);
  ImGui::GetIO().IniFilename = nullptr;
  const Fonts fonts = add_fonts(*ImGui::GetIO().Fonts, 19.0f);
  FontTexture texture(*ImGui::GetIO().Fonts);

  const std::size_t count = std::min<std::size_t>(data.moments.size(), 8), columns = columns_of(count),
                    rows = count ? (count + columns - 1) / columns : 0;
  const float cell =
      (kWidth - 2 * kSheetMargin - kSheetGap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  const float cell_height = cell * kPictureRatio + 46.0f;
  const float facts = data.facts.empty() ? 0.0f : 44.0f;
  const float top = 128.0f, chart_top = top + static_cast<float>(rows) * (cell_height + kSheetGap) + 4.0f,
              chart_height = 360.0f;
  const float height = chart_top + chart_height + facts + kSheetMargin;
  Picture page =
      blank_page(static_cast<std::uint32_t>(kWidth), static_cast<std::uint32_t>(std::lround(height)));

  ImGui::GetIO().DisplaySize = {kWidth, height};
  ImGui::GetIO().DeltaTime = 1.0f / 60.0f;
  ImGui::NewFrame();
  ImDrawList& list = *ImGui::GetForegroundDrawList();
  draw_text(list, fonts.title, {kSheetMargin, 32.0f}, palette::kInk, data.title);
  draw_text(list, fonts.body, {kSheetMargin, 78.0f}, palette::kSoft,
            fitted(fonts.body, data.subtitle, kWidth - 2 * kSheetMargin));
  std::vector<Area> areas;
  for (std::size_t i = 0; i < count; ++i) {
    // Centres a last row that is not full.
    const std::size_t in_row = std::min(columns, count - i / columns * columns);
    const float indent = 0.5f * static_cast<float>(columns - in_row) * (cell + kSheetGap);
    const float left = kSheetMargin + indent + static_cast<float>(i % columns) * (cell + kSheetGap),
                up = top + static_cast<float>(i / columns) * (cell_height + kSheetGap);
    areas.push_back({left, up, left + cell, up + cell_height});
    draw_moment(list, fonts, data.moments[i], static_cast<int>(i + 1), areas.back());
  }
  const float middle = kSheetMargin + (kWidth - 2 * kSheetMargin) * 0.62f;
  draw_learning(list, fonts, data, {kSheetMargin, chart_top, middle, chart_top + chart_height});
  draw_tricks(list, fonts, data,
              {middle + kSheetGap, chart_top, kWidth - kSheetMargin, chart_top + chart_height});
  std::string line;
  for (const std::string& fact : data.facts) line += (line.empty() ? "" : "   |   ") + fact;
  if (!line.empty())
    draw_text(list, fonts.small, {kSheetMargin + 4.0f, chart_top + chart_height + 22.0f}, palette::kSoft,
              fitted(fonts.small, line, kWidth - 2 * kSheetMargin));
  ImGui::Render();
  paint(page, *ImGui::GetDrawData(), texture);
  for (std::size_t i = 0; i < count; ++i) {
    // Pictures lie on their cards, so they are painted after them.
    const Area& a = areas[i];
    paint_picture(page, data.moments[i].picture, a.left + 6.0f, a.top + 6.0f, a.right - 6.0f,
                  a.top + (a.right - a.left) * kPictureRatio, 10.0f);
  }
  ImGui::DestroyContext(own);
  ImGui::SetCurrentContext(before);
  return page;
}

}  // namespace pet
