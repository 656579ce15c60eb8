#pragma once
// The player's names of the commands. The pet gets the command, not the word, so a new name needs no new
// lesson.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "samples/pet/yard/world_view.h"

namespace pet {

// Size of a name in bytes, with the final zero.
inline constexpr std::size_t kCueNameBytes = 32;
using CueNameText = std::array<char, kCueNameBytes>;

class CueNames {
 public:
  CueNames();  // sit, spin, come, fetch, bed

  const char* of(Cue cue) const { return text(cue).data(); }
  const CueNameText& text(Cue cue) const { return texts_[static_cast<std::size_t>(cue)]; }
  // Finds a command by its name, or by its original word, which no other command can take. Ignores the case
  // of ASCII letters and surrounding blanks.
  std::optional<Cue> find(std::string_view text) const;

  // Renames a command; blanks restore its original word. A name has printable Latin letters in UTF-8 (up to
  // U+00FF, as the fonts), at most kCueNameBytes - 1 bytes, and names no other command. Returns why a name is
  // refused, or "".
  std::string set(Cue cue, std::string_view text);
  bool changed() const;  // any name differs from its original

 private:
  std::array<CueNameText, kCueCount> texts_;
};

}  // namespace pet
