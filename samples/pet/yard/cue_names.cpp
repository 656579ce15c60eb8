#include "samples/pet/yard/cue_names.h"

#include <algorithm>

namespace pet {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// U+0020 .. U+007E, U+00A1 .. U+00FF.
bool is_latin(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) continue;
    if ((byte != 0xc2 && byte != 0xc3) || i + 1 == text.size()) return false;
    const auto next = static_cast<unsigned char>(text[++i]);
    if (next < (byte == 0xc2 ? 0xa1 : 0x80) || next > 0xbf) return false;
  }
  return true;
}

void put(CueNameText& into, std::string_view text) {
  into.fill('\0');
  std::copy(text.begin(), text.end(), into.begin());
}

}  // namespace

CueNames::CueNames() {
  for (std::size_t i = 0; i < kCueCount; ++i) put(texts_[i], name(static_cast<Cue>(i)));
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
  if (text.size() >= kCueNameBytes)
    return "That name is too long: at most " + std::to_string(kCueNameBytes - 1) + " letters.";
  if (!is_latin(text)) return "That name has letters that cannot be shown.";
  if (const std::optional<Cue> other = find(text); other && *other != cue) {
    return "\"" + std::string(text) + "\" is what you call " + name(*other) + " already.";
  }
  put(texts_[static_cast<std::size_t>(cue)], text);
  return {};
}

bool CueNames::changed() const {
  return std::any_of(kTricks.begin(), kTricks.end(),
                     [&](Cue cue) { return std::string_view(of(cue)) != name(cue); });
}

}  // namespace pet
