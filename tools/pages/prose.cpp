#include "tools/pages/prose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ranges>

#include "tools/pages/page.h"

namespace imprint::pages {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Passage> read_c() {
    while (at_ < text_.size()) {
      if (has("//"))
        read_line_comment();
      else if (has("/*"))
        read_block_comment();
      else if (has("R\"") && (at_ == 0 || !is_word(text_[at_ - 1])))
        read_raw_string();
      else if (text_[at_] == '"')
        read_string();
      else if (text_[at_] == '\'' && (at_ == 0 || !is_word(text_[at_ - 1])))
        skip_character();
      else
        skip_code();
    }
    return std::move(passages_);
  }

  std::vector<Passage> read_script() {
    for (const std::string& line : lines_of(text_)) {
      const std::size_t hash = comment_of(line);
      const std::string_view code = trimmed(std::string_view(line).substr(0, hash));
      if (!code.empty()) {
        joins_ = false;
        add(false, code, false);
      }
      if (hash < line.size()) add(true, std::string_view(line).substr(hash + 1), true);
      joins_ = code.empty() && hash < line.size();
      ++line_;
    }
    return std::move(passages_);
  }

 private:
  bool has(std::string_view start) const { return text_.substr(at_).starts_with(start); }

  // A part joins the passage before it if only blanks lie between, and both are comments or both are strings.
  void add(bool comment, std::string_view part, bool spaced) {
    if (!joins_ || passages_.empty() || passages_.back().comment != comment)
      passages_.push_back({.comment = comment, .text = {}, .lines = {}});
    Passage& passage = passages_.back();
    if (spaced && !passage.text.empty()) passage.text += ' ';
    passage.lines.emplace_back(passage.text.size(), line_);
    passage.text += comment ? trimmed(part) : part;
    joins_ = true;
  }

  void move_to(std::size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<int>(std::ranges::count(text_.substr(at_, end - at_), '\n'));
    at_ = end;
  }

  // A comment after code stands for itself.
  void read_line_comment() {
    const std::size_t start = text_.rfind('\n', at_) + 1, end = std::min(text_.find('\n', at_), text_.size());
    if (!trimmed(text_.substr(start, at_ - start)).empty()) joins_ = false;
    add(true, text_.substr(at_ + 2, end - at_ - 2), true);
    move_to(end);
  }

  void read_block_comment() {
    const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
    joins_ = false;
    for (const std::string& line : lines_of(text_.substr(at_ + 2, end - at_ - 2))) {
      std::string_view part = trimmed(line);
      if (part.starts_with("* ")) part.remove_prefix(2);
      add(true, part, true);
      ++line_;
    }
    line_ -= 1;
    joins_ = false;
    at_ = std::min(end + 2, text_.size());
  }

  void read_raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == text_.npos) return move_to(text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    const std::size_t end = std::min(text_.find(close, open), text_.size());
    const int line = line_;
    for (const std::string& part : lines_of(text_.substr(open + 1, end - open - 1))) {
      add(false, part, true);
      ++line_;
    }
    line_ = line;
    move_to(end + close.size());
  }

  void read_string() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    add(false, text_.substr(at_ + 1, end - at_ - 1), false);
    move_to(end + 1);
  }

  void skip_character() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '\'' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    joins_ = false;
    move_to(end + 1);
  }

  void skip_code() {
    if (!std::isspace(static_cast<unsigned char>(text_[at_]))) joins_ = false;
    if (has("\n\n")) joins_ = false;
    move_to(at_ + 1);
  }

  // A # begins a comment at the start of a line or after a blank.
  static std::size_t comment_of(const std::string& line) {
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] == '#' && (i == 0 || line[i - 1] == ' ')) return i;
    return line.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool joins_ = false;
  std::vector<Passage> passages_;
};

}  // namespace

int Passage::line_at(std::size_t offset) const {
  int line = 0;
  for (const auto& [start, number] : lines)
    if (start <= offset) line = number;
  return line;
}

Language language_of(const std::filesystem::path& file, std::string_view content) {
  static constexpr std::array kC = {".c", ".cpp", ".h", ".hpp", ".glsl", ".comp", ".vert", ".frag", ".inc"};
  const std::string extension = file.extension().string();
  if (std::ranges::find(kC, extension) != kC.end()) return Language::c;
  if (extension == ".cmake" || file.filename() == "CMakeLists.txt" || content.starts_with("#!"))
    return Language::script;
  return Language::none;
}

std::vector<Passage> passages_of(Language language, std::string_view content) {
  Reader reader(content);
  return language == Language::c ? reader.read_c() : reader.read_script();
}

}  // namespace imprint::pages
