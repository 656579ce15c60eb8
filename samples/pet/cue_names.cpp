#include "samples/pet/cue_names.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "samples/pet/life_file.h"

namespace pet {
namespace {

constexpr const char* kFirstLine = "imprint-pet-names 1";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

// U+0020 .. U+007E, U+00A1 .. U+00FF.
bool is_latin(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) continue;
    if ((byte != 0xc2 && byte != 0xc3) || i + 1 == text.size()) return false;
    const auto next = static_cast<unsigned char>(text[++i]);
    if (next < (byte == 0xc2 ? 0xa1 : 0x80) || next > 0xbf) return false;
  }
  return true;
}

bool is_free(const std::string& file) {
  // A place that cannot be looked at is no reason to look further: moving something there says why not.
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::symlink_status(file, error).type();
  return type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none;
}

bool is_readable(const std::string& file) {
  try {
    (void)read_names(file);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void put(CueNameText& into, std::string_view text) {
  into.fill('\0');
  std::copy(text.begin(), text.end(), into.begin());
}

}  // namespace

CueNames::CueNames() {
  for (size_t i = 0; i < kCueCount; ++i) put(texts_[i], name(static_cast<Cue>(i)));
}

std::optional<Cue> CueNames::find(std::string_view text) const {
  text = trimmed(text);
  for (const Cue cue : kTricks) {
    if (same(text, of(cue)) || same(text, name(cue))) return cue;
  }
  return std::nullopt;
}

std::string CueNames::set(Cue cue, std::string_view text) {
  text = trimmed(text);
  if (text.empty()) text = name(cue);
  if (text.size() >= kCueNameBytes) return "That name is too long: at most " + std::to_string(kCueNameBytes - 1) + " letters.";
  if (!is_latin(text)) return "That name has letters that cannot be shown.";
  if (const std::optional<Cue> other = find(text); other && *other != cue) {
    return "\"" + std::string(text) + "\" is what you call " + name(*other) + " already.";
  }
  put(texts_[static_cast<size_t>(cue)], text);
  return {};
}

bool CueNames::changed() const {
  return std::any_of(kTricks.begin(), kTricks.end(), [&](Cue cue) { return std::string_view(of(cue)) != name(cue); });
}

std::string names_file(const std::string& pet_file) { return pet_file + ".names"; }

CueNames read_names(const std::string& file) {
  CueNames names;
  std::ifstream lines(file);
  if (!lines) {
    // Only what is not there is nothing: what cannot be opened now, for want of a right or of a handle, are names all the same.
    std::error_code error;
    if (!std::filesystem::exists(file, error) && !error) return names;
    throw std::runtime_error("cannot open " + file + (error ? ": " + error.message() : std::string()));
  }
  std::string line;
  size_t number = 1;
  const auto refuse = [&](const std::string& why) { return std::runtime_error(file + ", line " + std::to_string(number) + ": " + why); };
  if (!std::getline(lines, line) || line != kFirstLine) throw refuse(std::string("expected \"") + kFirstLine + "\"");
  const CueNames own;
  while (std::getline(lines, line)) {
    ++number;
    if (trimmed(line).empty()) continue;
    const size_t blank = line.find(' ');
    const std::optional<Cue> cue = own.find(line.substr(0, blank));
    if (!cue || blank == std::string::npos) throw refuse("expected a command and its name");
    if (const std::string why = names.set(*cue, line.substr(blank)); !why.empty()) throw refuse(why);
  }
  if (lines.bad()) throw std::runtime_error("cannot read " + file);
  return names;
}

std::string write_names(const std::string& file, const CueNames& names, bool unread) {
  const std::string temporary = file + ".new";
  if (names.changed()) {
    std::ofstream text(temporary);
    text << kFirstLine << "\n";
    for (const Cue cue : kTricks) text << name(cue) << " " << names.of(cue) << "\n";
    text.close();
    if (!text) return "cannot write " + temporary;
  }
  std::error_code error;
  if (unread || !is_readable(file)) {
    std::filesystem::rename(file, free_name(file + ".unread"), error);
    if (error && error != std::errc::no_such_file_or_directory) return "cannot keep " + file + " aside: " + error.message();
  }
  if (names.changed()) {
    std::filesystem::rename(temporary, file, error);
    return error ? "cannot write " + file + ": " + error.message() : std::string();
  }
  std::filesystem::remove(file, error);
  return error ? "cannot remove " + file + ": " + error.message() : std::string();
}

std::string free_name(const std::string& file) {
  std::string found = file;
  for (int number = 2; !is_free(found) || !is_free(names_file(found)) || !is_free(life_file(found)); ++number) found = file + "-" + std::to_string(number);
  return found;
}

}  // namespace pet
