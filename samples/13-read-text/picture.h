#pragma once
// Pictures in memory, from files, and with words that the sample writes.

#include <cstddef>
#include <string>
#include <vector>

#include <imprint/compute.h>

struct Picture {
  int width = 0, height = 0;
  std::vector<float> rgb;  // rows of pixels of three values, 0 to 1

  Picture(int width_, int height_, float value = 1)
      : width(width_), height(height_), rgb(static_cast<std::size_t>(3 * width_ * height_), value) {}
  float& at(int x, int y, int channel) {
    return rgb[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) *
                   3 +
               static_cast<std::size_t>(channel)];
  }
  float at(int x, int y, int channel) const { return const_cast<Picture&>(*this).at(x, y, channel); }
};

// A rectangle of pixels; the right and bottom edges are outside.
struct Box {
  int left = 0, top = 0, right = 0, bottom = 0;
  int width() const { return right - left; }
  int height() const { return bottom - top; }
};

// A PNG, JPEG, PGM or PPM file. Errors: those of training::read_picture.
imprint::Result<Picture> load_picture(const std::string& path);

// Black words on a grey ground, a line each, the second upside down.
Picture written(const std::vector<std::string>& lines);

// The part of a picture in a box, at another size: means of pixels, or between pixels.
Picture resized(const Picture& picture, Box box, int width, int height);
Picture turned(const Picture& picture);  // by 180 degrees
