// Rules about the shape of the code: sizes of files and functions, line width, knots of includes.

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "compute/base/text.h"
#include "tests/unit/house_rules.h"

namespace imprint::house {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileLines = 600, kMaxFunctionLines = 80, kMaxColumns = 110, kMaxKnot = 3;

std::string read(const fs::path& file) {
  std::ostringstream content;
  content << std::ifstream(file).rdbuf();
  return content.str();
}

// The end of the raw string literal whose R stands at `begin`.
std::size_t after_raw_string(const std::string& text, std::size_t begin) {
  const std::size_t open = text.find('(', begin);
  if (open == text.npos) return text.size();
  const std::string close = ")" + text.substr(begin + 2, open - begin - 2) + "\"";
  const std::size_t end = text.find(close, open);
  return end == text.npos ? text.size() : end + close.size();
}

// The end of the string or character literal that begins at `begin`.
std::size_t after_quoted(const std::string& text, std::size_t begin) {
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != text[begin] && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The end of the comment, literal or preprocessor line that begins at `at`; `at` if none begins there.
std::size_t after_opaque(const std::string& text, std::size_t at) {
  if (text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") == 0) {
    const std::size_t end = text.find("*/", at + 2);
    return end == text.npos ? text.size() : end + 2;
  }
  const bool word_before = at > 0 && is_word(text[at - 1]);
  if (text.compare(at, 2, "R\"") == 0 && !word_before) return after_raw_string(text, at);
  if (text[at] == '"') return after_quoted(text, at);
  if (text[at] == '\'' && !word_before) return after_quoted(text, at);  // else a digit separator
  if (text[at] == '#' && text.find_last_not_of(" \t", at - 1) == text.rfind('\n', at)) {
    std::size_t end = text.find('\n', at);
    while (end != text.npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
    return std::min(end, text.size());
  }
  return at;
}

// The text with comments, literals and preprocessor lines blanked. Line numbers stay.
std::string code_of(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = after_opaque(text, at);
    for (std::size_t i = at; i < end; ++i)
      if (text[i] != '\n') text[i] = ' ';
    at = std::max(end, at + 1);
  }
  return text;
}

enum class Block { scope, function, other };

// The kind of block that a brace opens, by the text of the statement before it.
Block block_kind(const std::string& head) {
  static const std::regex scope(
      R"(^\s*(inline\s+)?(namespace|extern)\b|^[^()=]*\b(class|struct|union|enum)\b)");
  if (std::regex_search(head, scope)) return Block::scope;
  const std::size_t open = head.find('(');
  return open != head.npos && head.find_last_of('=', open) == head.npos ? Block::function : Block::other;
}

struct LongFunction {
  std::size_t line, lines;
  std::string name;
};

// The function's name: the word before its first parenthesis.
std::string function_name(const std::string& head) {
  std::size_t end = head.find('(');
  while (end > 0 && head[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && (is_word(head[begin - 1]) || head[begin - 1] == ':' || head[begin - 1] == '~')) --begin;
  return head.substr(begin, end - begin);
}

std::vector<LongFunction> long_functions_of(const std::string& code) {
  struct Open {
    Block kind;
    std::size_t line;
    std::string name;
  };
  std::vector<Open> open;
  std::vector<LongFunction> found;
  std::size_t line = 1, head_line = 1;
  std::string head;
  bool inside = false;  // a function
  for (std::size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    if (c == '\n') ++line;
    if (c == '{') {
      const bool initialiser = at > 0 && (is_word(code[at - 1]) || code[at - 1] == '>');
      const Block kind = inside || initialiser ? Block::other : block_kind(head);
      open.push_back({kind, head_line, kind == Block::function ? function_name(head) : ""});
      inside |= kind == Block::function;
      if (kind != Block::other) head.clear();
    } else if (c == '}' && !open.empty()) {
      const Open closed = open.back();
      open.pop_back();
      if (closed.kind == Block::function) {
        inside = false;
        if (const std::size_t lines = line - closed.line + 1; lines > kMaxFunctionLines)
          found.push_back({closed.line, lines, closed.name});
      }
      if (closed.kind != Block::other) head.clear();
    } else if (c == ';') {
      head.clear();
    } else if (!std::isspace(static_cast<unsigned char>(c)) || !head.empty()) {
      if (head.empty()) head_line = line;
      head += c == '\n' ? ' ' : c;
    }
  }
  return found;
}

// A .hpp counts apart from the C header of the same name.
std::string without_extension(const std::string& file) {
  return file.ends_with(".hpp") ? file : file.substr(0, file.rfind('.'));
}

using Graph = std::map<std::string, std::set<std::string>>;

// A header and its source count as one file.
Graph include_graph(const fs::path& root) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*"([^"]+)")re");
  Graph graph;
  for (const std::string& file : all_sources(root, {".h", ".hpp", ".cpp", ".c"})) {
    std::ifstream stream(root / file);
    auto& targets = graph[without_extension(file)];
    std::string line;
    while (std::getline(stream, line)) {
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      const std::string beside = (fs::path(file).parent_path() / match[1].str()).generic_string();
      const std::string target = fs::exists(root / match[1].str()) ? match[1].str() : beside;
      if (without_extension(target) != without_extension(file)) targets.insert(without_extension(target));
    }
  }
  return graph;
}

std::set<std::string> reachable(const Graph& graph, const std::string& from) {
  std::set<std::string> seen;
  std::vector<std::string> waiting{from};
  while (!waiting.empty()) {
    const auto node = graph.find(waiting.back());
    waiting.pop_back();
    if (node == graph.end()) continue;
    for (const std::string& target : node->second)
      if (seen.insert(target).second) waiting.push_back(target);
  }
  return seen;
}

}  // namespace

std::vector<std::string> oversized_files(const fs::path& root) {
  std::vector<std::string> faults;
  for (const std::string& file :
       all_sources(root, {".h", ".hpp", ".cpp", ".c", ".comp", ".glsl", ".vert", ".frag"})) {
    const std::string content = read(root / file);
    const auto lines = std::ranges::count(content, '\n');
    if (std::cmp_greater(lines, kMaxFileLines))
      faults.push_back(
          text(file, ": found ", lines, " lines, expected at most ", kMaxFileLines, ". Split it."));
  }
  return faults;
}

std::vector<std::string> wide_lines(const fs::path& root) {
  std::vector<std::string> faults;
  for (const std::string& file :
       all_sources(root, {".h", ".hpp", ".cpp", ".c", ".comp", ".glsl", ".vert", ".frag"})) {
    std::ifstream stream(root / file);
    std::string line;
    for (std::size_t number = 1; std::getline(stream, line); ++number) {
      // A character of UTF-8 is one column.
      const auto columns = std::ranges::count_if(
          line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
      if (std::cmp_greater(columns, kMaxColumns))
        faults.push_back(text(file, ":", number, ": found ", columns, " columns, expected at most ",
                              kMaxColumns, ". Run clang-format."));
    }
  }
  return faults;
}

std::vector<std::string> long_functions(const fs::path& root) {
  std::vector<std::string> faults;
  for (const std::string& file : all_sources(root, {".h", ".hpp", ".cpp", ".c"}))
    for (const LongFunction& found : long_functions_of(code_of(read(root / file))))
      faults.push_back(text(file, ":", found.line, ": ", found.name, ": found ", found.lines,
                            " lines, expected at most ", kMaxFunctionLines, ". Split it."));
  return faults;
}

std::vector<std::string> include_knots(const fs::path& root) {
  const Graph graph = include_graph(root);
  std::map<std::string, std::set<std::string>> reached;
  for (const auto& [file, targets] : graph) reached[file] = reachable(graph, file);
  std::set<std::string> done;
  std::vector<std::string> faults;
  for (const auto& [file, targets] : graph) {
    if (done.contains(file) || !reached[file].contains(file)) continue;
    std::string names;
    std::size_t size = 0;
    for (const std::string& other : reached[file]) {
      if (!reached[other].contains(file)) continue;
      done.insert(other);
      names += (size++ ? " " : "") + other;
    }
    if (size > kMaxKnot)
      faults.push_back(text("includes: found a knot of ", size, " files, expected at most ", kMaxKnot,
                            ". Break the cycle: ", names));
  }
  return faults;
}

}  // namespace imprint::house
