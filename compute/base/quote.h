#pragma once
// Prepares text from a file for messages: short and on one line, whatever the file holds.

#include <string>
#include <string_view>

namespace imprint {

inline constexpr std::size_t kLongestQuote = 96;  // bytes

// At most `longest` bytes of `found`, then "..." if it was cut. Control characters become '?'.
inline std::string clipped(std::string_view found, std::size_t longest = kLongestQuote) {
  const bool cut = found.size() > longest;
  std::size_t length = cut ? longest : found.size();
  // Never cut inside a UTF-8 sequence.
  while (cut && length > 0 && (static_cast<unsigned char>(found[length]) & 0xC0) == 0x80) --length;
  std::string out(found.substr(0, length));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return cut ? out + "..." : out;
}

inline std::string quote(std::string_view name) { return "'" + clipped(name) + "'"; }

}  // namespace imprint
