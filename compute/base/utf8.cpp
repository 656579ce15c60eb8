#include "compute/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace imprint {
namespace {

// Length of the first sequence, in bytes; 0 if it is malformed.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
  };
  const auto within = [&](std::size_t i, std::uint8_t low, std::uint8_t high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const auto follow = [&](std::size_t i) { return within(i, 0x80, 0xBF); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follow(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return within(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follow(2) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return within(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follow(2) && follow(3) ? 4
                                                                                                         : 0;
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace imprint
