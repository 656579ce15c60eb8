#include "tools/pages/checks.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "compute/base/text.h"

namespace imprint::pages {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadmeLines = 150;

// Folders: the programs that include snippets.
constexpr const char* kHarnesses = "tests/consumer/pages";
constexpr const char* kPublicHeaders[] = {"plugin/include", "compute/include"};

// Of the left column of our list of words: those that are never right.
const std::vector<std::pair<std::regex, const char*>>& replacements() {
  static const auto flags = std::regex::icase | std::regex::optimize;
  static const std::vector<std::pair<std::regex, const char*>> all = {
      {std::regex(R"(\bthe processor\b)", flags), "\"the CPU\""},
      {std::regex(R"(\banew\b)", flags), "\"again\""},
      {std::regex(R"(\bfor want of\b)", flags), "\"without\""},
      {std::regex(R"(\bbut for\b)", flags), "\"except\""},
      {std::regex(R"(\bin the place of\b)", flags), "\"instead of\""},
      {std::regex(R"(\b(whoever|somebody)\b)", flags), "the name of who does it"},
      {std::regex(R"(\bso many\b)", flags), "a number"},
      {std::regex(R"(\bof the host's\s*([,.;:)]|$))", flags), "\"the host's X\""},
      {std::regex(R"(\bof (ours|our own)\b)", flags), "\"Imprint's\""},
  };
  return all;
}

struct Marker {
  std::string kind, name, library;
};

Marker marker_of(const Block& block) {
  std::istringstream words(block.marker);
  Marker marker;
  words >> marker.kind >> marker.name >> marker.library;
  return marker;
}

bool is_code(const Block& block) { return block.language == "cpp" || block.language == "c"; }

std::string at(const fs::path& page, int line) { return text(page.generic_string(), ':', line, ": "); }

}  // namespace

std::vector<std::string> broken_links(const fs::path& root, const std::vector<Page>& pages) {
  std::vector<std::string> faults;
  for (const Page& page : pages)
    for (const Link& link : page.links) {
      if (link.target.find("://") != std::string::npos || link.target.starts_with("mailto:")) continue;
      const std::size_t hash = std::min(link.target.find('#'), link.target.size());
      const std::string file = link.target.substr(0, hash);
      const fs::path path = file.empty() ? page.path : (page.path.parent_path() / file).lexically_normal();
      if (path.is_absolute() || path.generic_string().starts_with("..") || !fs::exists(root / path)) {
        faults.push_back(at(page.path, link.line) + "found a link to " + link.target +
                         ", expected a file of the tree");
        continue;
      }
      if (hash == link.target.size()) continue;
      const auto other = std::ranges::find(pages, path, &Page::path);
      if (other == pages.end() ||
          std::ranges::find(other->anchors, link.target.substr(hash + 1)) == other->anchors.end())
        faults.push_back(at(page.path, link.line) + "found a link to " + link.target +
                         ", expected a heading of that page");
    }
  return faults;
}

std::vector<std::string> wrong_blocks(const fs::path& root, const std::vector<Page>& pages) {
  std::vector<std::string> faults;
  std::map<std::string, std::string> names;  // and where each was first
  std::string harnesses;
  for (const auto& entry : fs::directory_iterator(root / kHarnesses))
    if (entry.is_regular_file()) harnesses += read(entry.path());
  for (const Page& page : pages)
    for (const Block& block : page.blocks) {
      if (!is_code(block)) continue;
      const std::string where = at(page.path, block.line);
      const Marker marker = marker_of(block);
      if (marker.kind == "shown:" && !marker.name.empty()) continue;
      if (marker.kind != "program:" && marker.kind != "snippet:") {
        faults.push_back(where +
                         "found code without a marker, expected <!-- program: NAME plugin|compute -->, "
                         "<!-- snippet: NAME --> or <!-- shown: why --> in the line before");
        continue;
      }
      if (marker.kind == "program:" && marker.library != "plugin" && marker.library != "compute")
        faults.push_back(where + "found a program of library '" + marker.library +
                         "', expected plugin or compute");
      if (marker.kind == "snippet:" &&
          harnesses.find("#include \"" + marker.name + ".inc\"") == harnesses.npos)
        faults.push_back(where + "found snippet " + marker.name + ", expected a program in " + kHarnesses +
                         " that includes " + marker.name + ".inc");
      if (const auto [first, fresh] = names.emplace(marker.name, where); !fresh)
        faults.push_back(where + "found the name " + marker.name +
                         " again, expected one of its own; first at " + first->second);
    }
  return faults;
}

std::vector<std::string> long_readme(const std::vector<Page>& pages) {
  const auto readme = std::ranges::find(pages, fs::path("README.md"), &Page::path);
  if (readme == pages.end()) return {"README.md: found none, expected one"};
  if (readme->lines.size() <= kReadmeLines) return {};
  return {text("README.md:", readme->lines.size(), ": found ", readme->lines.size(),
               " lines, expected at most ", kReadmeLines)};
}

std::vector<std::string> inverted_words(const fs::path& root, const std::vector<Page>& pages) {
  std::vector<std::string> faults;
  const auto look = [&](const fs::path& path, int number, const std::string& line) {
    for (const auto& [pattern, better] : replacements())
      if (std::smatch found; std::regex_search(line, found, pattern))
        faults.push_back(at(path, number) + "found \"" + found.str() + "\", expected " + better);
  };
  for (const Page& page : pages)
    for (std::size_t i = 0; i < page.lines.size(); ++i)
      if (page.prose[i]) look(page.path, static_cast<int>(i) + 1, page.lines[i]);
  for (const char* folder : kPublicHeaders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      int number = 0;
      for (const std::string& line : lines_of(read(entry.path())))
        look(fs::relative(entry.path(), root), ++number, line);
    }
  return faults;
}

bool extract(const std::vector<Page>& pages, const fs::path& out) {
  fs::create_directories(out);
  std::ofstream list(out / "list.cmake");
  for (const Page& page : pages)
    for (const Block& block : page.blocks) {
      const Marker marker = marker_of(block);
      if (!is_code(block) || (marker.kind != "program:" && marker.kind != "snippet:")) continue;
      const bool snippet = marker.kind == "snippet:";
      std::ofstream file(out / (marker.name + "." + (snippet ? "inc" : block.language)));
      file << "#line " << block.line + 1 << " \"" << page.path.generic_string() << "\"\n" << block.text;
      if (!file) return false;
      list << "page_" << (snippet ? "snippet(" : "program(") << marker.name << ' '
           << (snippet ? "" : block.language + " " + marker.library) << ")\n";
    }
  return static_cast<bool>(list);
}

}  // namespace imprint::pages
