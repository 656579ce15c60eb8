#pragma once
// The prose of a source file: its comments and string literals.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace imprint::pages {

// A comment of one or more lines, or adjacent string literals, joined to one line of text.
struct Passage {
  bool comment = false;
  std::string text;
  std::vector<std::pair<std::size_t, int>> lines;  // offset in `text` and line of each part, ascending

  int line_at(std::size_t offset) const;
};

enum class Language { none, c, script };  // script: CMake and shell, where # begins a comment

Language language_of(const std::filesystem::path& file, std::string_view content);

// All passages of a file, in order. Scripts: each line without its comment counts as a string literal.
std::vector<Passage> passages_of(Language language, std::string_view content);

}  // namespace imprint::pages
