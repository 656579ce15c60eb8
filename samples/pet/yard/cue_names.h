#pragma once
// What the player calls the commands. The pet hears which command it is, not the word: a new name needs no
// new lesson.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "samples/pet/yard/world_view.h"

namespace pet {

// Of a name, in bytes, with the zero at its end.
inline constexpr std::size_t kCueNameBytes = 32;
using CueNameText = std::array<char, kCueNameBytes>;

class CueNames {
 public:
  CueNames();  // sit, spin, come, fetch, bed

  const char* of(Cue cue) const { return text(cue).data(); }
  const CueNameText& text(Cue cue) const { return texts_[static_cast<std::size_t>(cue)]; }
  // By its name, or by the word that it came with: no other command can take that. Without regard to case, of
  // ASCII letters, and to blanks around it.
  std::optional<Cue> find(std::string_view text) const;

  // Gives a command another name; nothing but blanks gives it back its own. UTF-8 of printable Latin letters
  // (up to U+00FF, which is what the fonts have), at most kCueNameBytes - 1 bytes, no word for another
  // command. Else it stays as it was, and the answer says why; empty: done.
  std::string set(Cue cue, std::string_view text);
  bool changed() const;  // any of them

 private:
  std::array<CueNameText, kCueCount> texts_;
};

}  // namespace pet
