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

constexpr float kCaptionHeight = 58.0f, kRowTitle = 50.0f;

// A tick or a cross on a disc.
void draw_verdict(ImDrawList& list, ImVec2 center, bool right) {
  const auto at = [&](float x, float y) { return ImVec2{center.x + x, center.y + y}; };
  list.AddCircleFilled(center, 18.0f, right ? palette::kGood : palette::kWrong, 32);
  if (right) {
    list.AddLine(at(-8.0f, 1.0f), at(-2.0f, 7.0f), IM_COL32_WHITE, 5.0f);
    list.AddLine(at(-3.0f, 7.0f), at(8.0f, -6.0f), IM_COL32_WHITE, 5.0f);
  } else {
    list.AddLine(at(-7.0f, -7.0f), at(7.0f, 7.0f), IM_COL32_WHITE, 5.0f);
    list.AddLine(at(-7.0f, 7.0f), at(7.0f, -7.0f), IM_COL32_WHITE, 5.0f);
  }
}

void draw_moment(ImDrawList& list, const Fonts& fonts, const Moment& moment, const Area& area) {
  const float picture_bottom = area.top + (area.right - area.left) * kPictureRatio;
  draw_card(list, area.low(), area.high(), 14.0f);
  const ImVec2 badge{area.left + 32.0f, picture_bottom + kCaptionHeight * 0.5f};
  draw_verdict(list, badge, moment.right);
  draw_text(list, fonts.body, {area.left + 62.0f, badge.y - fonts.body->FontSize * 0.5f}, palette::kInk,
            fitted(fonts.body, moment.caption, area.right - area.left - 72.0f));
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
  const float top = area.top + 62.0f, row = (area.bottom - 14.0f - top) /
                                            static_cast<float>(std::max<std::size_t>(data.tricks.size(), 1));
  const float left = area.left + 22.0f + names + 18.0f,
              right = area.right - 38.0f - text_size(fonts.bold, "100%").x;
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
  plot.thickness = 4.0f;
  draw_curve(list, fonts, {area.left + 18.0f, area.top + 58.0f}, {area.right - 12.0f, area.bottom - 50.0f},
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
    draw_sign(list, sign.kind, {at, area.bottom - 28.0f}, 11.0f, color_of(sign.kind));
    const std::string text = std::to_string(count) + " " + sign.text;
    draw_text(list, fonts.body, {at + 20.0f, area.bottom - 28.0f - fonts.body->FontSize * 0.5f},
              palette::kInk, text);
    at += text_size(fonts.body, text).x + 56.0f;
  }
}

constexpr std::size_t kMostColumns = 4;

std::size_t count_of(const MomentRow& row) { return std::min(row.moments.size(), kMostColumns); }

struct Placed {
  const Moment* moment;
  Area area;
};

// Draws the rows of cards from `top` on and moves it below them. All cards have one size.
std::vector<Placed> draw_rows(ImDrawList& list, const Fonts& fonts, const std::vector<MomentRow>& rows,
                              float cell, float& top) {
  std::vector<Placed> placed;
  for (const MomentRow& row : rows) {
    if (row.moments.empty()) continue;
    draw_text(list, fonts.bold, {kSheetMargin, top + 6.0f}, palette::kInk, row.title);
    top += kRowTitle;
    const float bottom = top + cell * kPictureRatio + kCaptionHeight;
    for (std::size_t i = 0; i < count_of(row); ++i) {
      const float left = kSheetMargin + static_cast<float>(i) * (cell + kSheetGap);
      placed.push_back({&row.moments[i], {left, top, left + cell, bottom}});
      draw_moment(list, fonts, row.moments[i], placed.back().area);
    }
    top = bottom + kSheetGap;
  }
  return placed;
}

// Before any is drawn.
float height_of(const std::vector<MomentRow>& rows, float cell) {
  float height = 0.0f;
  for (const MomentRow& row : rows)
    if (!row.moments.empty()) height += kRowTitle + cell * kPictureRatio + kCaptionHeight + kSheetGap;
  return height;
}

}  // namespace

Picture draw_sheet(const SheetData& data) {
  // Uses a separate context. Afterwards the window's, if any, is current again.
  ImGuiContext* const before = ImGui::GetCurrentContext();
  ImGuiContext* const own = ImGui::CreateContext();
  ImGui::SetCurrentContext(own);
  ImGui::GetIO().IniFilename = nullptr;
  const Fonts fonts = add_fonts(*ImGui::GetIO().Fonts, 26.0f);
  FontTexture texture(*ImGui::GetIO().Fonts);

  std::size_t columns = 1;
  for (const MomentRow& row : data.rows) columns = std::max(columns, count_of(row));
  columns = std::max<std::size_t>(columns, 2);  // a single picture of the page's width would be the page
  const float cell =
      (kWidth - 2 * kSheetMargin - kSheetGap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  const float facts = data.facts.empty() ? 0.0f : 44.0f, chart_height = 380.0f;
  float top = 134.0f;
  const float height = top + height_of(data.rows, cell) + 10.0f + chart_height + facts + kSheetMargin;
  Picture page =
      blank_page(static_cast<std::uint32_t>(kWidth), static_cast<std::uint32_t>(std::lround(height)));

  ImGui::GetIO().DisplaySize = {kWidth, height};
  ImGui::GetIO().DeltaTime = 1.0f / 60.0f;
  ImGui::NewFrame();
  ImDrawList& list = *ImGui::GetForegroundDrawList();
  draw_text(list, fonts.title, {kSheetMargin, 30.0f}, palette::kInk, data.title);
  draw_text(list, fonts.small, {kSheetMargin, 86.0f}, palette::kSoft,
            fitted(fonts.small, data.subtitle, kWidth - 2 * kSheetMargin));
  const std::vector<Placed> placed = draw_rows(list, fonts, data.rows, cell, top);
  const float chart_top = top + 10.0f, chart_bottom = chart_top + chart_height;
  const float middle = kSheetMargin + (kWidth - 2 * kSheetMargin) * 0.62f;
  draw_learning(list, fonts, data, {kSheetMargin, chart_top, middle, chart_bottom});
  draw_tricks(list, fonts, data, {middle + kSheetGap, chart_top, kWidth - kSheetMargin, chart_bottom});
  std::string line;
  for (const std::string& fact : data.facts) line += (line.empty() ? "" : "   |   ") + fact;
  if (!line.empty())
    draw_text(list, fonts.small, {kSheetMargin + 4.0f, chart_bottom + 22.0f}, palette::kSoft,
              fitted(fonts.small, line, kWidth - 2 * kSheetMargin));
  ImGui::Render();
  paint(page, *ImGui::GetDrawData(), texture);
  for (const Placed& card : placed) {
    // Pictures lie on their cards, so they are painted after them.
    const Area& a = card.area;
    paint_picture(page, card.moment->picture, a.left + 6.0f, a.top + 6.0f, a.right - 6.0f,
                  a.top + (a.right - a.left) * kPictureRatio, 10.0f);
  }
  ImGui::DestroyContext(own);
  ImGui::SetCurrentContext(before);
  return page;
}

}  // namespace pet
