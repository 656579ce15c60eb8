#include "tools/pages/checks.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "compute/base/text.h"

namespace imprint::pages {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadmeLines = 150;

// The programs that include snippets.
constexpr const char* kHarnesses = "tests/consumer/pages";

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

std::vector<std::string> broken_links(const fs::path& root, const std::vector<Page>& pages, bool may_leave) {
  std::vector<std::string> faults;
  for (const Page& page : pages)
    for (const Link& link : page.links) {
      if (link.target.find("://") != std::string::npos || link.target.starts_with("mailto:")) continue;
      const std::size_t hash = std::min(link.target.find('#'), link.target.size());
      const std::string file = link.target.substr(0, hash);
      const fs::path path = file.empty() ? page.path : (page.path.parent_path() / file).lexically_normal();
      const bool leaves = path.is_absolute() || path.generic_string().starts_with("..");
      if ((leaves && !may_leave) || !fs::exists(root / path)) {
        faults.push_back(at(page.path, link.line) + "found a link to " + link.target + ", expected a file" +
                         (may_leave ? "" : " of the tree"));
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
