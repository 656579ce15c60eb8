#include "samples/pet/view/sheet_paint.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "samples/pet/view/models/mesh_math.h"

namespace pet {
namespace {

void blend(std::uint8_t* pixel, const float* color, float alpha) {
  for (int c = 0; c < 3; ++c)
    pixel[c] = static_cast<std::uint8_t>(std::lround(mix(static_cast<float>(pixel[c]), color[c], alpha)));
}

float channel(ImU32 color, int shift) { return static_cast<float>(color >> shift & 255u); }

float coverage(const FontTexture& texture, float u, float v) {
  // Between texel centres, as a GPU's linear filter does.
  const float x = u * static_cast<float>(texture.width) - 0.5f,
              y = v * static_cast<float>(texture.height) - 0.5f;
  const int x0 = static_cast<int>(std::floor(x)), y0 = static_cast<int>(std::floor(y));
  const auto at = [&](int tx, int ty) {
    tx = std::clamp(tx, 0, texture.width - 1);
    ty = std::clamp(ty, 0, texture.height - 1);
    return static_cast<float>(
        texture.coverage[static_cast<std::size_t>(ty) * static_cast<std::size_t>(texture.width) +
                         static_cast<std::size_t>(tx)]);
  };
  const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
  return mix(mix(at(x0, y0), at(x0 + 1, y0), fx), mix(at(x0, y0 + 1), at(x0 + 1, y0 + 1), fx), fy) / 255.0f;
}

void paint_triangle(Picture& page, const ImVec4& clip, const ImDrawVert& a, const ImDrawVert& b,
                    const ImDrawVert& c, const FontTexture& texture) {
  const float area = (b.pos.x - a.pos.x) * (c.pos.y - a.pos.y) - (b.pos.y - a.pos.y) * (c.pos.x - a.pos.x);
  if (std::abs(area) < 1e-6f) return;
  const int left =
      std::max(static_cast<int>(std::floor(std::max(clip.x, std::min({a.pos.x, b.pos.x, c.pos.x})))), 0);
  const int right =
      std::min(static_cast<int>(std::ceil(std::min(clip.z, std::max({a.pos.x, b.pos.x, c.pos.x})))),
               static_cast<int>(page.width));
  const int top =
      std::max(static_cast<int>(std::floor(std::max(clip.y, std::min({a.pos.y, b.pos.y, c.pos.y})))), 0);
  const int bottom =
      std::min(static_cast<int>(std::ceil(std::min(clip.w, std::max({a.pos.y, b.pos.y, c.pos.y})))),
               static_cast<int>(page.height));
  // A pixel on the common edge of two triangles must be painted by one of them: edges that point up or left
  // own theirs.
  const float sign = area > 0.0f ? 1.0f : -1.0f;
  const auto owns = [&](const ImVec2& p, const ImVec2& q) {
    return (q.y - p.y) * sign < 0.0f || (q.y == p.y && (q.x - p.x) * sign > 0.0f);
  };
  const bool own_a = owns(b.pos, c.pos), own_b = owns(c.pos, a.pos), own_c = owns(a.pos, b.pos);
  for (int y = top; y < bottom; ++y)
    for (int x = left; x < right; ++x) {
      const float px = static_cast<float>(x) + 0.5f, py = static_cast<float>(y) + 0.5f;
      const auto edge = [&](const ImVec2& p, const ImVec2& q) {
        return ((q.x - p.x) * (py - p.y) - (q.y - p.y) * (px - p.x)) / area;
      };
      const float wa = edge(b.pos, c.pos), wb = edge(c.pos, a.pos), wc = edge(a.pos, b.pos);
      if (wa < 0.0f || wb < 0.0f || wc < 0.0f || (wa == 0.0f && !own_a) || (wb == 0.0f && !own_b) ||
          (wc == 0.0f && !own_c))
        continue;
      const auto mixed = [&](int shift) {
        return wa * channel(a.col, shift) + wb * channel(b.col, shift) + wc * channel(c.col, shift);
      };
      const float color[3] = {mixed(IM_COL32_R_SHIFT), mixed(IM_COL32_G_SHIFT), mixed(IM_COL32_B_SHIFT)};
      const float cover =
          coverage(texture, wa * a.uv.x + wb * b.uv.x + wc * c.uv.x, wa * a.uv.y + wb * b.uv.y + wc * c.uv.y);
      blend(&page.rgba[(static_cast<std::size_t>(y) * page.width + static_cast<std::size_t>(x)) * 4], color,
            mixed(IM_COL32_A_SHIFT) / 255.0f * cover);
    }
}

}  // namespace

FontTexture::FontTexture(ImFontAtlas& atlas) {
  unsigned char* pixels = nullptr;
  atlas.GetTexDataAsAlpha8(&pixels, &width, &height);
  coverage = pixels;
}

Picture blank_page(std::uint32_t width, std::uint32_t height) {
  Picture page{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width) * height * 4)};
  for (std::uint32_t y = 0; y < height; ++y) {
    const float t = static_cast<float>(y) / static_cast<float>(height);
    const Vec3 color = mix(Vec3{226.0f, 241.0f, 243.0f}, Vec3{251.0f, 240.0f, 224.0f}, smooth(t));
    for (std::uint32_t x = 0; x < width; ++x) {
      std::uint8_t* pixel = &page.rgba[(static_cast<std::size_t>(y) * width + x) * 4];
      pixel[0] = static_cast<std::uint8_t>(color.x);
      pixel[1] = static_cast<std::uint8_t>(color.y);
      pixel[2] = static_cast<std::uint8_t>(color.z);
      pixel[3] = 255;
    }
  }
  return page;
}

void paint(Picture& page, const ImDrawData& data, const FontTexture& texture) {
  for (int l = 0; l < data.CmdListsCount; ++l) {
    const ImDrawList& list = *data.CmdLists[l];
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (command.UserCallback) continue;
      const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
      const ImDrawVert* vertex = list.VtxBuffer.Data + command.VtxOffset;
      for (unsigned i = 0; i + 2 < command.ElemCount; i += 3)
        paint_triangle(page, command.ClipRect, vertex[index[i]], vertex[index[i + 1]], vertex[index[i + 2]],
                       texture);
    }
  }
}

void paint_picture(Picture& page, const Picture& picture, float left, float top, float right, float bottom,
                   float rounding) {
  if (picture.empty()) return;
  const float scale = std::max((right - left) / static_cast<float>(picture.width),
                               (bottom - top) / static_cast<float>(picture.height));
  const float from_x = (static_cast<float>(picture.width) - (right - left) / scale) * 0.5f,
              from_y = (static_cast<float>(picture.height) - (bottom - top) / scale) * 0.5f;
  constexpr int kTaps = 3;  // a side: pictures shrink by two to four
  for (int y = static_cast<int>(top); y < static_cast<int>(bottom); ++y)
    for (int x = static_cast<int>(left); x < static_cast<int>(right); ++x) {
      float sum[3] = {};
      for (int s = 0; s < kTaps * kTaps; ++s) {
        const float sx =
            from_x + (static_cast<float>(x) - left + (static_cast<float>(s % kTaps) + 0.5f) / kTaps) / scale;
        const float sy =
            from_y + (static_cast<float>(y) - top + (static_cast<float>(s / kTaps) + 0.5f) / kTaps) / scale;
        const std::uint32_t tx = std::min(static_cast<std::uint32_t>(std::max(sx, 0.0f)), picture.width - 1),
                            ty = std::min(static_cast<std::uint32_t>(std::max(sy, 0.0f)), picture.height - 1);
        const std::uint8_t* texel = &picture.rgba[(static_cast<std::size_t>(ty) * picture.width + tx) * 4];
        for (int c = 0; c < 3; ++c) sum[c] += static_cast<float>(texel[c]) / (kTaps * kTaps);
      }
      const float cx = std::clamp(static_cast<float>(x) + 0.5f, left + rounding, right - rounding),
                  cy = std::clamp(static_cast<float>(y) + 0.5f, top + rounding, bottom - rounding);
      const float out = std::hypot(static_cast<float>(x) + 0.5f - cx, static_cast<float>(y) + 0.5f - cy);
      blend(&page.rgba[(static_cast<std::size_t>(y) * page.width + static_cast<std::size_t>(x)) * 4], sum,
            clamp01(rounding + 0.5f - out));
    }
}

}  // namespace pet
