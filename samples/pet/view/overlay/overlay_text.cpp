// The field for a word: a command said by its name, or another name for it.

#include <imgui.h>

#include <algorithm>
#include <utility>

#include "samples/pet/view/overlay/overlay.h"

namespace pet {

void Overlay::begin_text(Text text, Cue cue, const OverlayState& state) {
  text_ = text;
  named_ = cue;
  typed_.fill('\0');
  if (text == Text::name) std::copy_n(state.names.text(cue).begin(), kCueNameBytes, typed_.begin());
  text_problem_.clear();
  text_opened_ = true;
  word_taken_ = false;
  ++opened_;
}

void Overlay::text_card(const OverlayState& state, PlayerInput& input) {
  if (wanted_text_ == Text::say) begin_text(Text::say, Cue::none, state);
  if (wanted_text_ == Text::name)
    begin_text(Text::name, last_cue_ == Cue::none ? kTricks[0] : last_cue_, state);
  wanted_text_ = Text::none;
  if (text_ == Text::none) return;

  const ImGuiIO& io = ImGui::GetIO();
  const float width = px(380), height = px(96), middle = column_left_ * 0.5f,
              bottom = io.DisplaySize.y - px(84);
  const ImVec2 low{middle - width * 0.5f, bottom - height - px(8)}, high{low.x + width, low.y + height};
  ImGui::SetNextWindowPos(low);
  ImGui::SetNextWindowSize({width, height});
  ImGui::Begin("word", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoBackground |
                   ImGuiWindowFlags_NoSavedSettings);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRectFullScreen();
  draw_card(list, low, high, px(10));
  list.PopClipRect();
  const std::string title =
      text_ == Text::say ? "Say a command" : std::string("What do you call \"") + name(named_) + "\"?";
  draw_text(list, fonts_.bold, {low.x + px(14), low.y + px(9)}, palette::kInk, title);
  const std::string hint = !text_problem_.empty() ? text_problem_
                           : text_ == Text::say   ? "Enter says it, Esc closes"
                                                : "Enter keeps it, empty gives back its own word, Esc closes";
  draw_text(list, fonts_.small, {low.x + px(14), high.y - px(24)},
            text_problem_.empty() ? palette::kSoft : palette::kPraise,
            fitted(fonts_.small, hint, width - px(28)));
  ImGui::PushFont(fonts_.body);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, palette::kFaint);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(8), px(5)});
  ImGui::SetCursorScreenPos({low.x + px(14), low.y + px(33)});
  ImGui::SetNextItemWidth(width - px(28));
  if (text_opened_) ImGui::SetKeyboardFocusHere();
  text_opened_ = false;
  ImGui::PushID(opened_);  // else it would keep the text of the previous time
  ImGui::InputText("##word", typed_.data(), typed_.size(), ImGuiInputTextFlags_AutoSelectAll);
  ImGui::PopID();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ImGui::End();

  if (!std::exchange(word_taken_, false)) return;
  text_problem_.clear();
  if (text_ == Text::say) {
    say(state, input);
  } else {
    CueNames names = state.names;
    text_problem_ = names.set(named_, typed_.data());
    if (text_problem_.empty()) input.name = PlayerInput::Name{named_, names.text(named_)};
  }
  if (text_problem_.empty()) {
    text_ = Text::none;
  } else {
    text_opened_ = true;  // to try again
  }
}

void Overlay::say(const OverlayState& state, PlayerInput& input) {
  const std::optional<Cue> cue = state.names.find(typed_.data());
  if (cue) input.cue = *cue;
  if (cue || typed_[0] == '\0') return;
  text_problem_ = "It knows no such word:";
  for (const Cue known : kTricks)
    text_problem_ += std::string(" ") + state.names.of(known) + (known == kTricks.back() ? "." : ",");
}

}  // namespace pet
