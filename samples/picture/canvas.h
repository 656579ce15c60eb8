#pragma once
// A picture of filled shapes, drawn on the CPU. Places and lengths are in units of an area: (0, 0) is its top
// left corner, 1 its side.

#include <cstdint>
#include <string>
#include <vector>

namespace picture {

struct Point {
  float x = 0, y = 0;
};

inline constexpr std::uint32_t kInk = 0x2b2d42, kPaper = 0xf4f1e8, kGrey = 0xb9b5a7, kRed = 0xd1495b,
                               kBlue = 0x2e6f95, kGreen = 0x4f9d69, kGold = 0xe0a030;

class Canvas {
 public:
  Canvas(std::uint32_t width, std::uint32_t height, std::uint32_t paper = kPaper);
  std::uint32_t width() const { return width_; }
  std::uint32_t height() const { return height_; }
  const std::vector<std::uint8_t>& rgba() const { return rgba_; }  // top row first
  bool write_png(const std::string& path) const;

  void clear();
  // Where the shapes of the following calls lie, in pixels.
  void set_area(float left, float top, float side);

  // Colours are 0xRRGGBB.
  void box(Point corner, Point size, std::uint32_t colour);
  void disc(Point middle, float radius, std::uint32_t colour);
  void line(Point from, Point to, float thickness, std::uint32_t colour);
  // The top left corner of the first letter; height of a line.
  void text(Point corner, float height, const std::string& words, std::uint32_t colour);

 private:
  // Pixels of which `covers`, a function of their middle, is true.
  template <class Covers>
  void fill(Point least, Point most, std::uint32_t colour, const Covers& covers);

  std::uint32_t width_, height_, paper_;
  std::vector<std::uint8_t> rgba_;
  float left_ = 0, top_ = 0, side_ = 1;
};

}  // namespace picture
