// The cards of the right column and the bar of buttons below the yard.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "samples/pet/view/models/mesh_math.h"
#include "samples/pet/view/overlay/overlay.h"

namespace pet {
namespace {

constexpr float kCardWidth = 288.0f, kPad = 12.0f, kGap = 8.0f, kRound = 10.0f;
constexpr ImGuiWindowFlags kPlainWindow = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                          ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoSavedSettings |
                                          ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoFocusOnAppearing;

std::string microseconds(float us) {
  char text[32];
  if (us >= 1000.0f)
    std::snprintf(text, sizeof(text), "%.2f ms", static_cast<double>(us) / 1000.0);
  else
    std::snprintf(text, sizeof(text), "%.0f us", static_cast<double>(us));
  return text;
}

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

}  // namespace

ImVec2 Overlay::begin_card(const char* name, float height) {
  const ImVec2 low{column_left_, column_top_}, high{column_left_ + px(kCardWidth), column_top_ + px(height)};
  column_top_ = high.y + px(kGap);
  ImGui::SetNextWindowPos(low);
  ImGui::SetNextWindowSize({high.x - low.x, high.y - low.y});
  ImGui::Begin(name, nullptr, kPlainWindow);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRectFullScreen();
  draw_card(list, low, high, px(kRound));
  return {low.x + px(kPad), low.y + px(kPad * 0.8f)};
}

void Overlay::end_card() {
  ImGui::GetWindowDrawList()->PopClipRect();
  ImGui::End();
}

void Overlay::pet_card(const OverlayState& state, const Anchors& anchors) {
  const ImVec2 at = begin_card("pet", 54);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float right = column_left_ + px(kCardWidth - kPad);
  draw_text(list, fonts_.title, {at.x, at.y - px(1)}, palette::kInk, state.pet_name);
  const std::string clock = clock_text(state.seconds);
  draw_text(list, fonts_.title, {right - text_size(fonts_.title, clock).x, at.y - px(1)}, palette::kSoft,
            clock);
  std::string mood = state.paused      ? "paused"
                     : !state.learning ? "not learning"
                     : state.slow      ? "learning, slow motion"
                                       : "learning";
  if (state.learner != Learner::feedback) mood += std::string(" (") + name(state.learner) + ")";
  const float x = at.x + text_size(fonts_.title, state.pet_name).x + px(10);
  list.AddCircleFilled({x + px(4), at.y + px(13)}, px(4),
                       state.paused     ? palette::kSoft
                       : state.learning ? palette::kGood
                                        : palette::kScold,
                       16);
  // The dot says whether the pet learns, so a long description needs no further word.
  const float room = right - text_size(fonts_.title, clock).x - px(8) - x - px(13);
  const auto fits = [&](const std::string& words) { return text_size(fonts_.small, words).x <= room; };
  const std::string& character = state.temperament;
  if (!character.empty() && fits(mood + "; " + character))
    mood += "; " + character;
  else if (state.learning && !state.paused && !character.empty())
    mood = fits(character) || character.find(", ") == std::string::npos
               ? character
               : character.substr(character.find(", ") + 2);
  draw_text(list, fonts_.small, {x + px(13), at.y + px(6)}, palette::kSoft, fitted(fonts_.small, mood, room));

  // Three needs, as the pet feels them.
  const Drives& drives = anchors.world->pet.drives;
  const float width = (px(kCardWidth - 2 * kPad) - 2 * px(8)) / 3.0f;
  const struct {
    const char* name;
    float value;
    ImU32 color;
  } needs[] = {{"hungry", drives.hunger, palette::kTreat},
               {"lively", drives.energy, palette::kGood},
               {"bored", drives.boredom, palette::kScold}};
  for (int i = 0; i < 3; ++i) {
    const float left = at.x + static_cast<float>(i) * (width + px(8)), y = at.y + px(27);
    draw_text(list, fonts_.small, {left, y - px(1)}, palette::kSoft, needs[i].name);
    const float name_width = px(46);
    draw_bar(list, {left + name_width, y + px(4)}, {left + width, y + px(9)}, needs[i].value, needs[i].color);
  }
  end_card();
}

void Overlay::tricks_card(const OverlayState& state, const Anchors& anchors) {
  const ImVec2 at = begin_card("tricks", 194);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  draw_text(list, fonts_.bold, at, palette::kInk, "Tricks");
  const float right = column_left_ + px(kCardWidth - kPad);
  float y = at.y + px(25);
  const auto row = [&](const char* label, const TrickScore& score, bool active, ImU32 highlight) {
    if (active)
      list.AddRectFilled({at.x - px(5), y - px(3)}, {right + px(5), y + px(18)}, faded(highlight, 0.16f),
                         px(5));
    draw_text(list, active ? fonts_.bold : fonts_.body, {at.x, y}, palette::kInk, label);
    const float bar_left = at.x + px(66), bar_right = right - px(62);
    draw_bar(list, {bar_left, y + px(3)}, {bar_right, y + px(14)}, score.tries ? score.success : 0.0f,
             score.mastered ? palette::kGood : palette::kLearn);
    const std::string text = score.tries ? percent(score.success) : "new";
    draw_text(list, fonts_.body, {right - px(20) - text_size(fonts_.body, text).x, y},
              score.tries ? palette::kInk : palette::kSoft, text);
    if (score.mastered) draw_star(list, {right - px(6), y + px(8)}, px(7), palette::kClick);
    y += px(22);
  };
  const WorldView& world = *anchors.world;
  for (std::size_t i = 0; i < kTricks.size(); ++i)
    row(fitted(fonts_.body, capitalized(state.names.of(kTricks[i])), px(60)).c_str(), state.tricks[i],
        world.cue == kTricks[i] && !world.trial_over, palette::kShow);
  row("Off sofa", state.rule, world.pet.unasked && world.pet.action == kSofaAction, palette::kScold);
  row("Chain", state.chain, !world.then.empty(), palette::kShow);
  end_card();
}

void Overlay::curve_card(const OverlayState& state) {
  const ImVec2 at = begin_card("curve", 162);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float right = column_left_ + px(kCardWidth - kPad);
  draw_text(list, fonts_.bold, at, palette::kInk, "Success over time");
  if (!state.ghost_curve.empty()) {
    const std::string text = "ghost: learning off";
    const float x = right - text_size(fonts_.small, text).x;
    draw_text(list, fonts_.small, {x, at.y + px(2)}, palette::kSoft, text);
    list.AddLine({x - px(22), at.y + px(8)}, {x - px(14), at.y + px(8)}, palette::kGhost, px(2));
    list.AddLine({x - px(11), at.y + px(8)}, {x - px(4), at.y + px(8)}, palette::kGhost, px(2));
  }
  CurvePlot plot;
  plot.curve = &state.curve;
  plot.ghost = state.ghost_curve.empty() ? nullptr : &state.ghost_curve;
  plot.ticks = &state.ticks;
  plot.thickness = px(2);
  draw_curve(list, fonts_, {at.x - px(2), at.y + px(20)}, {right + px(4), column_top_ - px(kGap) - px(6)},
             plot);
  end_card();
}

void Overlay::gpu_card(const OverlayState& state) {
  const ImVec2 at = begin_card("gpu", 116);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float right = column_left_ + px(kCardWidth - kPad);
  draw_text(list, fonts_.bold, at, palette::kInk, "Between two frames");
  const std::string rate = number("%.1f updates/s", static_cast<double>(state.updates_per_second));
  draw_text(list, fonts_.small, {right - text_size(fonts_.small, rate).x, at.y + px(2)}, palette::kSoft,
            rate);

  // One bar: acting, then learning, up to the budget's mark.
  const ImVec2 low{at.x, at.y + px(25)}, high{right, at.y + px(39)};
  const float used = state.infer_gpu_us + state.learn_gpu_us;
  const float whole = std::max({state.budget_us * 1.25f, used * 1.05f, 1.0f});
  const auto x_of = [&](float us) { return low.x + (high.x - low.x) * us / whole; };
  list.AddRectFilled(low, high, palette::kFaint, px(4));
  list.AddRectFilled(low, {x_of(state.infer_gpu_us), high.y}, palette::kShow, px(4),
                     ImDrawFlags_RoundCornersLeft);
  list.AddRectFilled({x_of(state.infer_gpu_us), low.y}, {x_of(used), high.y}, palette::kLearn, px(4),
                     ImDrawFlags_RoundCornersRight);
  if (state.budget_us > 0.0f)
    list.AddLine({x_of(state.budget_us), low.y - px(4)}, {x_of(state.budget_us), high.y + px(4)},
                 palette::kInk, px(2));

  float y = high.y + px(6), x = at.x;
  const auto key = [&](ImU32 color, const std::string& text) {
    if (x + px(12) + text_size(fonts_.small, text).x > right) {
      x = at.x;
      y += px(16);
    }
    list.AddRectFilled({x, y + px(3)}, {x + px(8), y + px(11)}, color, px(2));
    draw_text(list, fonts_.small, {x + px(12), y}, palette::kInk, text);
    x += px(12) + text_size(fonts_.small, text).x + px(12);
  };
  key(palette::kShow, "act " + microseconds(state.infer_gpu_us));
  key(palette::kLearn, "learn " + microseconds(state.learn_gpu_us));
  // A single slice of a software device may be longer than the budget.
  const bool over = state.budget_us > 0.0f && used > state.budget_us;
  const bool software = state.device.find("llvmpipe") != std::string::npos;
  if (state.budget_us > 0.0f)
    key(palette::kInk, "budget " + microseconds(state.budget_us) +
                           (!over      ? ""
                            : software ? ": a software GPU exceeds it"
                                       : ": exceeded at deadlines"));
  y += px(16);
  draw_text(list, fonts_.small, {at.x, y}, palette::kSoft,
            "CPU " + microseconds(state.frame_cpu_us) +
                (state.frame_ms > 0.0f ? number(" of a frame of %.1f ms", static_cast<double>(state.frame_ms))
                                       : ""));
  y += px(15);
  const std::string steps = std::to_string(state.minibatches) + " steps  ";
  draw_text(list, fonts_.small, {at.x, y}, palette::kSoft,
            steps + fitted(fonts_.small, state.device, right - at.x - text_size(fonts_.small, steps).x));
  end_card();
}

void Overlay::snapshots_card(const OverlayState& state, PlayerInput& input) {
  const ImVec2 at = begin_card("snapshots", 84);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float right = column_left_ + px(kCardWidth - kPad);
  draw_text(list, fonts_.bold, at, palette::kInk, "Memories");
  const float button_width = px(60), button_height = px(21), gap = px(5), y = at.y - px(3);
  const auto place = [&](int from_right) {
    return right - static_cast<float>(from_right + 1) * button_width - static_cast<float>(from_right) * gap;
  };
  const auto next = [&](int from_right, const char* label, const char* key, ImU32 accent, bool active) {
    const float left = place(from_right);
    return button(label, {left, y}, {left + button_width, y + button_height}, label, key, accent, active);
  };
  if (next(2, "keep", "F6", palette::kShow, false)) input.snapshot = true;
  if (next(1, "then", "Y", palette::kGhost, state.then.has_value())) input.then = true;
  if (next(0, "undo", "U", palette::kScold, false)) input.undo = true;

  const float line_y = at.y + px(38), last = std::max(static_cast<float>(state.seconds), 30.0f);
  const float left = at.x + px(8), end = right - px(8);
  list.AddLine({left, line_y}, {end, line_y}, palette::kFaint, px(3));
  list.AddCircleFilled({left + (end - left) * clamp01(static_cast<float>(state.seconds) / last), line_y},
                       px(4), palette::kLearn, 16);
  for (std::size_t i = 0; i < state.snapshots.size(); ++i) {
    const SnapshotEntry& entry = state.snapshots[i];
    const ImVec2 p{left + (end - left) * clamp01(entry.seconds / last), line_y};
    const float r = px(7);
    ImGui::PushID(static_cast<int>(i));
    ImGui::SetCursorScreenPos({p.x - r, p.y - r});
    if (ImGui::InvisibleButton("memory", {2 * r, 2 * r})) input.restore = i;
    const bool hovered = ImGui::IsItemHovered();
    if (hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Right)) input.then_at = i;
    if (hovered) {
      ImGui::SetTooltip("  %s: %s  -  click to go back, right-click to see it beside  ",
                        clock_text(entry.seconds).c_str(),
                        entry.examined ? percent(entry.success).c_str() : "not examined yet");
    }
    ImGui::PopID();
    if (state.then == i) list.AddCircle(p, r * 1.6f, palette::kGhost, 24, px(3));
    list.AddCircleFilled(p, hovered ? r * 1.2f : r, palette::kShow, 20);
    list.AddCircleFilled(p, r * 0.45f, palette::kCard, 16);
  }
  if (state.snapshots.empty()) {
    draw_text(list, fonts_.small, {at.x, line_y + px(12)}, palette::kSoft,
              "none yet: keep what it knows now");
  } else {
    const SnapshotEntry& newest = state.snapshots.back();
    draw_text(list, fonts_.small, {at.x, line_y + px(12)}, palette::kSoft,
              "newest " + clock_text(newest.seconds) +
                  (newest.examined ? ", it could do " + percent(newest.success) + " then" : ""));
  }
  end_card();
}

// One cell per pet: the darker, the more it can do.
void Overlay::kennel_card(const OverlayState& state) {
  const float left = px(10), width = px(184), pad = px(12);
  std::size_t columns = 1;
  while (columns * columns < state.kennel.size()) ++columns;
  const std::size_t rows = (state.kennel.size() + columns - 1) / columns;
  const float cell = std::min(px(28), (width - 2 * pad) / static_cast<float>(columns));
  const ImVec2 low{left, px(62)}, high{left + width, px(62) + px(50) + cell * static_cast<float>(rows) + pad};
  ImGui::SetNextWindowPos(low);
  ImGui::SetNextWindowSize({high.x - low.x, high.y - low.y});
  ImGui::Begin("kennel", nullptr, kPlainWindow | ImGuiWindowFlags_NoInputs);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRectFullScreen();
  draw_card(list, low, high, px(kRound));
  float sum = 0.0f;
  for (float success : state.kennel) sum += success;
  draw_text(list, fonts_.bold, {low.x + pad, low.y + px(9)}, palette::kInk,
            "Kennel of " + std::to_string(state.kennel.size()));
  draw_text(list, fonts_.small, {low.x + pad, low.y + px(28)}, palette::kSoft,
            percent(sum / static_cast<float>(state.kennel.size())) + " on average");
  for (std::size_t i = 0; i < state.kennel.size(); ++i) {
    const ImVec2 p{low.x + pad + cell * static_cast<float>(i % columns),
                   low.y + px(50) + cell * static_cast<float>(i / columns)};
    const float s = clamp01(state.kennel[i]);
    const Vec3 color =
        mix(Vec3{0.95f, 0.89f, 0.80f}, s >= 0.9f ? Vec3{0.30f, 0.58f, 0.25f} : Vec3{0.90f, 0.48f, 0.17f},
            0.12f + 0.88f * s);
    list.AddRectFilled({p.x + 1, p.y + 1}, {p.x + cell - 1, p.y + cell - 1},
                       ImGui::ColorConvertFloat4ToU32({color.x, color.y, color.z, 1.0f}), px(3));
  }
  list.PopClipRect();
  ImGui::End();
}

void Overlay::lesson_card(const OverlayState& state) {
  if (state.lesson.empty()) return;
  const std::string text = fitted(fonts_.body, state.lesson, column_left_ - px(120));
  const float width = text_size(fonts_.body, text).x + px(52), height = px(32);
  const ImVec2 low{px(10), px(10)}, high{px(10) + width, px(10) + height};
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  draw_card(list, low, high, height * 0.5f);
  draw_star(list, {low.x + px(20), low.y + height * 0.5f}, px(8), palette::kClick);
  draw_text(list, fonts_.body, {low.x + px(36), low.y + (height - fonts_.body->FontSize) * 0.5f},
            palette::kInk, text);
}

bool Overlay::button(const char* id, ImVec2 low, ImVec2 high, const char* label, const char* key,
                     ImU32 accent, bool active, const FeedbackKind* sign) {
  ImGui::SetCursorScreenPos(low);
  const bool pressed = ImGui::InvisibleButton(id, {high.x - low.x, high.y - low.y});
  const bool hovered = ImGui::IsItemHovered(), held = ImGui::IsItemActive();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float round = std::min(px(8), (high.y - low.y) * 0.5f);
  list.AddRectFilled(low, high,
                     active ? accent
                            : faded(accent, held      ? 0.42f
                                            : hovered ? 0.28f
                                                      : 0.15f),
                     round);
  list.AddRect(low, high, faded(accent, 0.7f), round, 0, std::max(1.0f, px(1)));
  const ImU32 ink = active ? IM_COL32_WHITE : palette::kInk;
  const float middle = (low.x + high.x) * 0.5f;
  const bool tall = high.y - low.y > px(34);
  if (!tall) {  // label and key in one line
    const std::string text = std::string(label) + "  ";
    const float width = text_size(fonts_.small, text + key).x, x = middle - width * 0.5f,
                y = (low.y + high.y - fonts_.small->FontSize) * 0.5f;
    draw_text(list, fonts_.small, {x, y}, ink, text);
    draw_text(list, fonts_.small, {x + text_size(fonts_.small, text).x, y}, active ? ink : palette::kSoft,
              key);
    return pressed;
  }
  const float width = text_size(fonts_.body, label).x, sign_width = sign ? px(17) : 0.0f;
  const float x = middle - (width + sign_width) * 0.5f, y = low.y + px(7);
  if (sign)
    draw_sign(list, *sign, {x + px(5), y + fonts_.body->FontSize * 0.5f}, px(6.5f), active ? ink : accent);
  draw_text(list, fonts_.body, {x + sign_width, y}, ink, label);
  draw_text_centered(list, fonts_.small, {middle, high.y - px(6) - fonts_.small->FontSize},
                     active ? ink : palette::kSoft, key);
  return pressed;
}

void Overlay::button_bar(const OverlayState& state, const Anchors& anchors, PlayerInput& input) {
  const ImGuiIO& io = ImGui::GetIO();
  const float height = px(64);
  const ImVec2 low{px(10), io.DisplaySize.y - height - px(10)},
      high{column_left_ - px(kGap), io.DisplaySize.y - px(10)};
  ImGui::SetNextWindowPos(low);
  ImGui::SetNextWindowSize({high.x - low.x, high.y - low.y});
  ImGui::Begin("buttons", nullptr, kPlainWindow);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRectFullScreen();
  draw_card(list, low, high, px(kRound));
  const float pad = px(8), gap = px(5), divider = px(18);
  const float width = (high.x - low.x - 2 * pad - divider - 9 * gap) / 11.0f;
  float x = low.x + pad;
  const auto next = [&](const char* label, const char* key, ImU32 accent, bool active,
                        const FeedbackKind* sign = nullptr) {
    const bool pressed =
        button(label, {x, low.y + pad}, {x + width, high.y - pad}, label, key, accent, active, sign);
    x += width + gap;
    return pressed;
  };
  for (std::size_t i = 0; i < kTricks.size(); ++i) {
    const std::string label = fitted(fonts_.body, capitalized(state.names.of(kTricks[i])), width - px(8)),
                      key = std::to_string(i + 1);
    const bool active = anchors.world->cue == kTricks[i] && !anchors.world->trial_over;
    ImGui::PushID(static_cast<int>(i));
    if (next(label.c_str(), key.c_str(), palette::kShow, active))
      (io.KeyShift ? input.chain : input.cue) = kTricks[i];
    if (ImGui::IsItemHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Right)) input.chain = kTricks[i];
    if (ImGui::IsItemHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Middle))
      begin_text(Text::name, kTricks[i], state);
    ImGui::PopID();
  }
  list.AddLine({x - gap * 0.5f + divider * 0.5f, low.y + pad},
               {x - gap * 0.5f + divider * 0.5f, high.y - pad}, palette::kFaint, px(1));
  x += divider;
  constexpr FeedbackKind kinds[] = {FeedbackKind::praise, FeedbackKind::scold, FeedbackKind::treat,
                                    FeedbackKind::click, FeedbackKind::demonstration};
  if (next("Praise", "P", palette::kPraise, false, &kinds[0])) ++input.praise;
  if (next("Scold", "S", palette::kScold, false, &kinds[1])) ++input.scold;
  if (next("Treat", "T", palette::kTreat, false, &kinds[2])) ++input.treat;
  if (next("Click", "C", palette::kClick, false, &kinds[3])) ++input.click;
  if (next("Show", "D", palette::kShow, anchors.world->demonstrating, &kinds[4])) input.demonstrate = true;
  if (next("No!", "N", palette::kInk, false)) input.interrupt = true;
  list.PopClipRect();
  ImGui::End();
}

void Overlay::help_card(VkExtent2D size, const OverlayState& state) {
  const struct {
    const char* key;
    const char* what;
  } lines[] = {
      {"1 - 5, or Enter and its name", "give a command: sit, spin, come, fetch, bed"},
      {"F3, middle click", "your own name for the last command, or a button's"},
      {"Shift + 1 - 5, right click", "what to do after that: a chain"},
      {"P, click or stroke the pet", "praise what it did"},
      {"S  or right-click the pet", "scold what it did"},
      {"T", "a treat: counts twice, and may come a little late"},
      {"C", "clicker: praise for this very instant"},
      {"D", "show the trick of the command in force"},
      {"drag the pet", "lead it to you, ball, bed or bowl: shows what is right now"},
      {"N", "no! stops what it does, and blames exactly that"},
      {"left alone", "it does what it likes: scold it off the sofa, also while it lies there"},
      {"click the ground", "walk there; drag the ball to move it"},
      {"right-drag, wheel, Home", "turn the view, zoom, reset"},
      {"Space, L", "pause, slow motion"},
      {"G, O", "ghost that does not learn, learning on or off"},
      {"M", "another learner: feedback, DQN, COACH, PPO, learning off"},
      {"H", "holding P praises again and again, or only once"},
      {"A", "one-key play: the game gives the commands"},
      {"F5, F6, U", "save, keep a memory, back to the newest memory"},
      {"Y", "see the pet as it was: an older memory with each press"},
      {"F2", "how quick are you? five presses tell where praise looks"},
      {"gamepad: cross, bumpers", "commands: sit, spin, come, fetch; left bed, right show"},
      {"gamepad: A, B, X, Y, trigger", "praise, scold, treat, click, no!; sticks walk and look"},
      {"+  -", "text size"},
      {"F4", "how the brain learns: curves, counts, memory"},
      {"F1, Esc", "close this help, quit"},
  };
  const float words_at = px(236);
  float width = px(600);
  for (const auto& line : lines)
    width = std::max(width, px(24) + words_at + text_size(fonts_.body, line.what).x);
  const float row = px(22), height = px(92) + row * static_cast<float>(std::size(lines));
  const ImVec2 low{(static_cast<float>(size.width) - width) * 0.5f,
                   (static_cast<float>(size.height) - height) * 0.5f},
      high{low.x + width, low.y + height};
  ImDrawList& list = *ImGui::GetForegroundDrawList();
  draw_card(list, low, high, px(14));
  list.AddRectFilled(low, high, palette::rgb(0xfffbf4, 200), px(14));
  draw_text(list, fonts_.title, {low.x + px(24), low.y + px(18)}, palette::kInk, "How to teach");
  for (std::size_t i = 0; i < std::size(lines); ++i) {
    const float y = low.y + px(54) + row * static_cast<float>(i);
    draw_text(list, fonts_.bold, {low.x + px(24), y}, palette::kShow, lines[i].key);
    draw_text(list, fonts_.body, {low.x + words_at, y}, palette::kInk, lines[i].what);
  }
  draw_text(list, fonts_.small, {low.x + px(24), high.y - px(28)}, palette::kSoft,
            fitted(fonts_.small, state.keeping, width - px(48)));
}

}  // namespace pet
