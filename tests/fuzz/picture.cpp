#include "compute/training/picture.h"

#include <algorithm>

#include "tests/fuzz/harness.h"

namespace imprint::fuzz {

void picture(Bytes bytes) {
  // A small limit, so that mutations of extents meet it.
  const training::PictureOptions whole{.memory_limit = 16 << 20},
      small{.height = 5, .width = 9, .channels = 1, .memory_limit = 16 << 20};
  const auto found = training::decode_picture(bytes, "a picture", whole);
  check_error(found);
  const auto resized = training::decode_picture(bytes, "a picture", small);
  require(found.ok() == resized.ok(), "a picture decodes at every size or at none");
  if (!found) return;
  require(static_cast<std::int64_t>(found->floats.size()) == found->shape.element_count(),
          "a picture has a value per pixel");
  const auto is_value = [](float value) { return value >= 0 && value <= 1.0001f; };
  require(std::ranges::all_of(found->floats, is_value), "values are from 0 to 1");
  require(resized->floats.size() == 45 && std::ranges::all_of(resized->floats, is_value),
          "values of a smaller picture are from 0 to 1");
}

}  // namespace imprint::fuzz
