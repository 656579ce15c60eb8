#include "samples/pet/kept/names_file.h"

#include <vector>

#include "samples/pet/kept/kept_beside.h"

namespace pet {
namespace {

constexpr const char* kNamesHeading = "imprint-pet-names 1";

}  // namespace

Result<CueNames> read_names(const std::string& file) {
  CueNames names;
  const CueNames own;
  PET_CHECK(read_lines(file, kNamesHeading, [&](const std::string& line) -> std::string {
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) return {};
    const std::size_t blank = line.find(' ');
    const std::optional<Cue> cue = own.find(line.substr(0, blank));
    if (!cue || blank == std::string::npos) return "found \"" + line + "\", expected a command and its name";
    return names.set(*cue, line.substr(blank));
  }));
  return names;
}

std::string write_names(const std::string& file, const CueNames& names, bool unread) {
  std::vector<std::string> lines;
  if (names.changed()) {
    for (const Cue cue : kTricks) lines.push_back(std::string(name(cue)) + " " + names.of(cue));
  }
  return replace_lines(file, kNamesHeading, lines, unread || !read_names(file));
}

}  // namespace pet
