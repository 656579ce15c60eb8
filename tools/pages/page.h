#pragma once
// A page of the tree as its checks see it: prose, headings, links, blocks of code and tables.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace imprint::pages {

struct Link {
  int line = 0;
  std::string target;
};

// The text between two fences, and the comment directly before the first.
struct Block {
  int line = 0;          // of the opening fence
  std::string language;  // "cpp", "c", "sh", ...; may be empty
  std::string marker;    // "program: NAME plugin", "snippet: NAME", "shown: why"; empty without a comment
  std::string text;
};

struct Page {
  std::filesystem::path path;  // relative to the tree
  std::vector<std::string> lines;
  std::vector<bool> prose;  // a flag per line: outside of fences and of comments
  std::vector<Block> blocks;
  std::vector<Link> links;
  std::vector<std::string> anchors;  // as GitHub names them
};

std::string read(const std::filesystem::path& file);
std::vector<std::string> lines_of(std::string_view text);
std::string_view trimmed(std::string_view text);  // without spaces and tabs around it

// All .md files of the tree except those of build folders, ordered by path.
std::vector<Page> read_pages(const std::filesystem::path& root);

// The words of "<!-- WORDS -->", trimmed; empty when the line is no such comment.
std::string comment_in(std::string_view line);

}  // namespace imprint::pages
