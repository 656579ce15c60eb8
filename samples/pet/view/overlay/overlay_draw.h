#pragma once
// Drawing tools of the overlay and the sheet: colours, fonts, signs, bars and curves.

#include <imgui.h>

#include <string>
#include <vector>

#include "samples/pet/view/overlay/overlay_state.h"

namespace pet {

namespace palette {
inline constexpr ImU32 rgb(unsigned hex, unsigned alpha = 255) {
  return IM_COL32(hex >> 16 & 255, hex >> 8 & 255, hex & 255, alpha);
}
inline constexpr ImU32 kCard = rgb(0xfffbf4, 238);
inline constexpr ImU32 kCardEdge = rgb(0x6b5b4a, 40);
inline constexpr ImU32 kInk = rgb(0x3a3340);
inline constexpr ImU32 kSoft = rgb(0x7d7482);
inline constexpr ImU32 kFaint = rgb(0x3a3340, 34);
inline constexpr ImU32 kPraise = rgb(0xee4668);
inline constexpr ImU32 kScold = rgb(0x5a4f96);
inline constexpr ImU32 kTreat = rgb(0xd9902f);
inline constexpr ImU32 kClick = rgb(0xe9b21c);
inline constexpr ImU32 kShow = rgb(0x2b93b8);
inline constexpr ImU32 kGood = rgb(0x5fa545);
inline constexpr ImU32 kWrong = rgb(0xd1495b);
inline constexpr ImU32 kLearn = rgb(0xf08a3c);
inline constexpr ImU32 kGhost = rgb(0x8fa8c8);
}  // namespace palette

ImU32 faded(ImU32 color, float opacity);
ImU32 color_of(FeedbackKind kind);

// A system sans serif if there is one, else Dear ImGui's pixel font, which is sharp only at multiples of 13
// pixels.
struct Fonts {
  ImFont* small = nullptr;
  ImFont* body = nullptr;
  ImFont* bold = nullptr;
  ImFont* title = nullptr;
};
Fonts add_fonts(ImFontAtlas& atlas, float pixels);  // of body text

// Signs differ in shape, so that players need not tell colours apart.
void draw_sign(ImDrawList& list, FeedbackKind kind, ImVec2 center, float radius, ImU32 color);
void draw_star(ImDrawList& list, ImVec2 center, float radius, ImU32 color);

void draw_text(ImDrawList& list, ImFont* font, ImVec2 at, ImU32 color, const std::string& text);
ImVec2 text_size(ImFont* font, const std::string& text);
// Centred at `at.x`, its top at `at.y`.
void draw_text_centered(ImDrawList& list, ImFont* font, ImVec2 at, ImU32 color, const std::string& text);
// Cut with an ellipsis where it would be wider, between two letters of UTF-8.
std::string fitted(ImFont* font, const std::string& text, float width);

void draw_card(ImDrawList& list, ImVec2 low, ImVec2 high, float rounding);
void draw_bar(ImDrawList& list, ImVec2 low, ImVec2 high, float value, ImU32 color);

struct CurvePlot {
  const std::vector<CurvePoint>* curve = nullptr;
  const std::vector<CurvePoint>* ghost = nullptr;    // may be null
  const std::vector<FeedbackTick>* ticks = nullptr;  // may be null
  float thickness = 2.0f;
};
// Axes with per cent and seconds, the 90 % line, both curves and, below them, a strip of signs.
void draw_curve(ImDrawList& list, const Fonts& fonts, ImVec2 low, ImVec2 high, const CurvePlot& plot);

std::string percent(float value);           // "95%"
std::string clock_text(double seconds);     // "1:24"
std::string capitalized(std::string text);  // of UTF-8; letters of ASCII and Latin-1

}  // namespace pet
