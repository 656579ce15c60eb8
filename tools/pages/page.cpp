#include "tools/pages/page.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>

#include "compute/base/text.h"

namespace imprint::pages {
namespace {

namespace fs = std::filesystem;

// The line without `code`, so that nothing in it reads as a link or as prose.
std::string without_code(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] != '`') {
      out += line[i++];
      continue;
    }
    const std::size_t ticks = std::min(line.find_first_not_of('`', i), line.size()) - i;
    const std::size_t end = line.find(std::string(ticks, '`'), i + ticks);
    if (end == line.npos) break;
    out += ' ';
    i = end + ticks;
  }
  return out;
}

// GitHub's name of a heading: lower case, punctuation dropped, a hyphen for each space.
std::string slug(std::string_view heading) {
  std::string name;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '_' || c == '-' || byte >= 0x80)
      name += static_cast<char>(std::tolower(byte));
    else if (c == ' ')
      name += '-';
  }
  return name;
}

// [text](target), ![text](target), src="target" and href="target".
void find_links(std::string_view line, int number, std::vector<Link>& links) {
  const auto take = [&](std::string_view before, char close) {
    for (std::size_t i = line.find(before); i != line.npos; i = line.find(before, i + 1)) {
      const std::size_t begin = i + before.size(), end = line.find(close, begin);
      if (end == line.npos) return;
      links.push_back({number, std::string(trimmed(line.substr(begin, end - begin)))});
    }
  };
  take("](", ')');
  take("src=\"", '"');
  take("href=\"", '"');
}

void read_lines(Page& page) {
  std::map<std::string, int> seen;
  bool in_block = false, in_comment = false;
  std::string fence;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    const std::string_view text = trimmed(line);
    page.prose[i] = !in_block && !in_comment;
    if (in_block) {
      if (text.starts_with(fence))
        in_block = false;
      else
        page.blocks.back().text += line + "\n";
      continue;
    }
    if (text.starts_with("```")) {
      const std::size_t ticks = std::min(text.find_first_not_of('`'), text.size());
      fence = text.substr(0, ticks);
      page.blocks.push_back({static_cast<int>(i) + 1, std::string(trimmed(text.substr(ticks))),
                             i > 0 ? comment_in(page.lines[i - 1]) : "", ""});
      page.prose[i] = false, in_block = true;
      continue;
    }
    if (text.starts_with("<!--")) in_comment = true, page.prose[i] = false;
    if (in_comment) {
      in_comment = text.find("-->") == text.npos;
      continue;
    }
    find_links(without_code(line), static_cast<int>(i) + 1, page.links);
    if (const std::size_t level = text.find_first_not_of('#'); text.starts_with('#') && level < text.size()) {
      std::string name = slug(trimmed(text.substr(level)));
      if (const int repeated = seen[name]++; repeated > 0) name += imprint::text('-', repeated);
      page.anchors.push_back(std::move(name));
    }
  }
}

}  // namespace

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string comment_in(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with("<!--") || !line.ends_with("-->") || line.size() < 7) return {};
  return std::string(trimmed(line.substr(4, line.size() - 7)));
}

std::vector<Page> read_pages(const fs::path& root) {
  std::vector<Page> pages;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name.starts_with('.') || name.starts_with("build")))
      entry.disable_recursion_pending();
    else if (entry->path().extension() == ".md")
      pages.push_back({.path = fs::relative(entry->path(), root)});
  }
  std::ranges::sort(pages, {}, &Page::path);
  for (Page& page : pages) {
    page.lines = lines_of(read(root / page.path));
    page.prose.assign(page.lines.size(), true);
    read_lines(page);
  }
  return pages;
}

}  // namespace imprint::pages
