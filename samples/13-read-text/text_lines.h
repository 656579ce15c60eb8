#pragma once
// The lines of text in a map of probabilities, as the detector of PaddleOCR makes it.

#include <span>
#include <vector>

#include "picture.h"

// map: rows of `width` probabilities that a pixel is inside a line. Boxes in pixels of the map, from top to
// bottom, grown to the whole letters.
std::vector<Box> text_lines(std::span<const float> map, int width, int height);
