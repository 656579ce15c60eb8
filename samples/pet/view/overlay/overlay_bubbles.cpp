// Bubbles in the scene: the pet's thought, the player's word, names of credited actions, captions.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "samples/pet/view/models/mesh_math.h"
#include "samples/pet/view/overlay/overlay.h"

namespace pet {
namespace {

struct Box {
  ImVec2 low, high;
};

// Those of one picture, in this order.
class Bubbles {
 public:
  Bubbles(const Fonts& fonts, float scale, const OverlayState& state, const Anchors& anchors,
          const Region& free, VkExtent2D size)
      : fonts_(fonts),
        scale_(scale),
        state_(state),
        anchors_(anchors),
        world_(*anchors.world),
        free_(free),
        size_(size) {}

  // The action that the newest signals were credited to, by name, at the place where it began.
  void credits() {
    for (const FeedbackMarker& marker : world_.markers) {
      const float age = std::max(static_cast<float>(world_.time_s - marker.time_s), anchors_.youngest_sign);
      if (!marker.credited || age > 1.5f) continue;
      const auto at = on_ground(marker.onset_position);
      if (!at) continue;
      const float shown = smooth(0.1f, 0.3f, age) * (1.0f - smooth(1.2f, 1.5f, age));
      kept_.assign(1, {label(*at, px(16), name(marker.action, marker.unasked), marker.kind,
                             color_of(marker.kind), shown),
                       px(4)});
    }
  }

  // Where the hand leads it.
  void lead() {
    if (!world_.lure.active) return;
    const auto at = on_ground(world_.lure.at);
    if (!at) return;
    const std::string text =
        world_.lure.leads ? std::string("let go: ") + name(world_.lure.action) : "lead it to something";
    label(*at, px(20), text, FeedbackKind::demonstration, world_.lure.leads ? palette::kShow : palette::kSoft,
          1.0f);
  }

  // The player's word.
  void word() {
    if (world_.cue == Cue::none || world_.trial_over) return;
    const auto at = anchors_.camera->project(anchors_.player);
    if (!at) return;
    const float spoken = static_cast<float>(world_.time_s - world_.cue_since_s);
    std::string text = capitalized(state_.names.of(world_.cue));
    for (const Cue next : world_.then) text += std::string(", ") + state_.names.of(next);
    if (spoken < 2.0f) text += "!";
    const ImVec2 inner = text_size(fonts_.title, text);
    const Box box = box_above(*at, {inner.x + px(24), inner.y + px(10)}, px(12));
    kept_.push_back({box, px(14)});
    const ImU32 fill = faded(palette::rgb(0x2b93b8), spoken < 2.0f ? 1.0f : 0.72f);
    list_.AddRectFilled(box.low, box.high, fill, px(10));
    const float foot = std::clamp(at->x, box.low.x + px(16), box.high.x - px(16));
    list_.AddTriangleFilled({foot - px(7), box.high.y - 1}, {foot, box.high.y + px(10)},
                            {foot + px(7), box.high.y - 1}, fill);
    draw_text(list_, fonts_.title, {box.low.x + px(12), box.low.y + px(4)}, IM_COL32_WHITE, text);
  }

  // The pet's thought: its two best ideas, and how sure it is.
  void thought() {
    const Thought& thought = world_.pet.thought;
    if (!thought.valid) return;
    const auto at = anchors_.camera->project(anchors_.pet);
    if (!at) return;
    const float row = px(21),
                name_width = std::max(text_size(fonts_.bold, name(thought.actions[0], thought.unasked)).x,
                                      text_size(fonts_.body, name(thought.actions[1], thought.unasked)).x);
    const float bar = px(52), mark = thought.undecided ? px(20) : 0.0f;
    Box box = box_above(*at, {name_width + bar + px(34) + mark, 2 * row + px(12)}, px(26));
    const Box head{{at->x - px(22), at->y}, {at->x + px(22), at->y + px(30)}};
    keep_clear(box, head, px(6));
    for (const Kept& other : kept_) keep_clear(box, other.box, other.gap);
    cloud(box, *at);
    for (int i = 0; i < 2; ++i) {
      const float y = box.low.y + px(6) + row * static_cast<float>(i);
      const float x = box.low.x + px(14);
      draw_text(list_, i == 0 ? fonts_.bold : fonts_.body, {x, y + px(2)},
                i == 0 ? palette::kInk : palette::kSoft,
                name(thought.actions[static_cast<std::size_t>(i)], thought.unasked));
      const float left = box.high.x - px(12) - bar - mark;
      draw_bar(list_, {left, y + px(6)}, {left + bar, y + px(14)},
               thought.confidence[static_cast<std::size_t>(i)], i == 0 ? palette::kShow : palette::kGhost);
    }
    if (thought.undecided)
      draw_text(list_, fonts_.title,
                {box.high.x - px(24), box.low.y + (box.high.y - box.low.y - fonts_.title->FontSize) * 0.5f},
                palette::kLearn, "?");
  }

  void ghost() {
    if (!anchors_.ghost) return;
    const auto at = anchors_.camera->project(anchors_.ghost_pet);
    if (!at) return;
    const std::string text = "learning off";
    const ImVec2 inner = text_size(fonts_.small, text);
    const Box box = box_above(*at, {inner.x + px(14), inner.y + px(5)}, 0.0f);
    list_.AddRectFilled(box.low, box.high, palette::rgb(0x5f7ba3, 215), px(8));
    draw_text(list_, fonts_.small, {box.low.x + px(7), box.low.y + px(2)}, IM_COL32_WHITE, text);
  }

 private:
  // The thought keeps clear of the newest credit and the player's word.
  struct Kept {
    Box box;
    float gap;
  };

  float px(float at_scale_one) const { return std::round(at_scale_one * scale_); }

  std::optional<Vec2> on_ground(Vec2 place) const {
    return anchors_.camera->project({place.x + anchors_.offset.x, place.y + anchors_.offset.y, 0.0f});
  }

  // A box of that size above a point, kept within the free part of the picture.
  Box box_above(Vec2 point, ImVec2 size, float lift) const {
    const float left = free_.left * static_cast<float>(size_.width),
                right = free_.right * static_cast<float>(size_.width);
    const float top = free_.top * static_cast<float>(size_.height);
    const float x = std::clamp(point.x - size.x * 0.5f, left, std::max(left, right - size.x));
    const float y = std::max(point.y - lift - size.y, top);
    return {{x, y}, {x + size.x, y + size.y}};
  }

  // Moves a box beside another that it would cover: to the side that it leans to, or the other where there is
  // no room.
  void keep_clear(Box& box, const Box& other, float gap) const {
    if (box.low.x > other.high.x + gap || other.low.x > box.high.x + gap || box.low.y > other.high.y + gap ||
        other.low.y > box.high.y + gap)
      return;
    const float left = free_.left * static_cast<float>(size_.width),
                right = free_.right * static_cast<float>(size_.width), width = box.high.x - box.low.x;
    const float at_right = other.high.x + gap, at_left = other.low.x - gap - width;
    const bool leans_right = box.low.x + box.high.x >= other.low.x + other.high.x;
    const bool fits_right = at_right + width <= right, fits_left = at_left >= left;
    const float x = (leans_right && fits_right) || !fits_left ? at_right : at_left;
    box.high.x = x + width;
    box.low.x = x;
  }

  // A sign and its words below a point.
  Box label(Vec2 at, float below, const std::string& text, FeedbackKind sign, ImU32 color, float shown) {
    const float width = text_size(fonts_.bold, text).x + px(34), height = px(24);
    const ImVec2 low{at.x - width * 0.5f, at.y + below}, high{low.x + width, low.y + height};
    list_.AddRectFilled(low, high, faded(palette::rgb(0xfffbf4, 240), shown), height * 0.5f);
    list_.AddRect(low, high, faded(color, shown), height * 0.5f, 0, px(2));
    draw_sign(list_, sign, {low.x + px(15), low.y + height * 0.5f}, px(6), faded(color, shown));
    draw_text(list_, fonts_.bold, {low.x + px(26), low.y + (height - fonts_.bold->FontSize) * 0.5f},
              faded(palette::kInk, shown), text);
    return {low, high};
  }

  // Rising dots lead to it from the head.
  void cloud(const Box& box, Vec2 head) {
    const ImU32 fill = palette::rgb(0xffffff, 236);
    const float middle = (box.low.x + box.high.x) * 0.5f;
    for (int i = 0; i < 2; ++i) {
      const float t = 0.25f + 0.45f * static_cast<float>(i);
      list_.AddCircleFilled({mix(head.x, std::clamp(head.x, box.low.x + px(20), box.high.x - px(20)), t),
                             mix(head.y, box.high.y, t)},
                            px(3.0f + 2.0f * static_cast<float>(i)), fill, 18);
    }
    list_.AddRectFilled({box.low.x - 1, box.low.y}, {box.high.x + 1, box.high.y + px(2)},
                        palette::rgb(0x3a3340, 26), px(20));
    list_.AddRectFilled(box.low, box.high, fill, px(19));
    list_.AddCircleFilled({middle - px(18), box.low.y + px(5)}, px(13), fill, 24);
    list_.AddCircleFilled({middle + px(14), box.low.y + px(4)}, px(11), fill, 24);
  }

  ImDrawList& list_ = *ImGui::GetBackgroundDrawList();
  const Fonts& fonts_;
  const float scale_;
  const OverlayState& state_;
  const Anchors& anchors_;
  const WorldView& world_;
  const Region& free_;
  const VkExtent2D size_;
  std::vector<Kept> kept_;
};

}  // namespace

void Overlay::bubbles(const OverlayState& state, const Anchors& anchors, const Region& free,
                      VkExtent2D size) {
  if (!state.kennel.empty() && state.kennel.size() > 4) return;  // too many to read
  Bubbles bubbles(fonts_, scale_, state, anchors, free, size);
  bubbles.credits();
  bubbles.lead();
  bubbles.word();
  bubbles.thought();
  if (anchors.then) then_labels(state, anchors);
  bubbles.ghost();
}

// Below each of the two yards: which pet it is.
void Overlay::then_labels(const OverlayState& state, const Anchors& anchors) {
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  const auto label = [&](Vec2 offset, const std::string& text, ImU32 fill) {
    const auto at = anchors.camera->project({offset.x, offset.y - kYardHalf - 0.6f, 0.0f});
    if (!at) return;
    const ImVec2 inner = text_size(fonts_.bold, text);
    const ImVec2 low{at->x - inner.x * 0.5f - px(12), at->y},
        high{at->x + inner.x * 0.5f + px(12), at->y + inner.y + px(8)};
    list.AddRectFilled(low, high, fill, px(10));
    draw_text(list, fonts_.bold, {low.x + px(12), low.y + px(4)}, IM_COL32_WHITE, text);
  };
  label(anchors.offset, "now", palette::rgb(0x5fa545, 235));
  if (!state.then || *state.then >= state.snapshots.size()) return;
  const SnapshotEntry& entry = state.snapshots[*state.then];
  const std::string when =
      entry.seconds < 0.5f ? "as it was when you came" : "as it was at " + clock_text(entry.seconds);
  label(anchors.then_offset, when + (entry.examined ? ": " + percent(entry.success) : ""),
        palette::rgb(0x5f7ba3, 235));
}

void Overlay::captions(VkExtent2D size, const OverlayState& state, bool panels) {
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  const float middle = (panels ? column_left_ : static_cast<float>(size.width)) * 0.5f;
  const auto pill = [&](ImFont* font, const std::string& text, float y, ImU32 fill, ImU32 ink) {
    const ImVec2 inner = text_size(font, text);
    const float height = inner.y + px(12);
    list.AddRectFilled({middle - inner.x * 0.5f - px(16), y}, {middle + inner.x * 0.5f + px(16), y + height},
                       fill, height * 0.5f);
    draw_text_centered(list, font, {middle, y + px(6)}, ink, text);
  };
  const float bottom = static_cast<float>(size.height) - (panels ? px(84) : px(12));
  if (!state.caption.empty())
    pill(fonts_.bold, state.caption, bottom - px(34), palette::rgb(0x3a3340, 205), IM_COL32_WHITE);
  if (!state.status.empty() && panels)
    pill(fonts_.body, fitted(fonts_.body, state.status, column_left_ - px(60)), px(50),
         palette::rgb(0xfffbf4, 240), palette::kInk);
  if (state.paused && panels)
    pill(fonts_.title, "paused", static_cast<float>(size.height) * 0.42f, palette::rgb(0x3a3340, 190),
         IM_COL32_WHITE);
}

}  // namespace pet
