#pragma once
// Checks of the pages. Each function returns one line "page:line: found X, expected Y" per violation.

#include <filesystem>
#include <string>
#include <vector>

#include "tools/pages/page.h"

namespace imprint::pages {

// Relative links lead to a file of the tree, and their #fragment to a heading of that page.
std::vector<std::string> broken_links(const std::filesystem::path& root, const std::vector<Page>& pages);

// C and C++ blocks are compiled and run, or say why not: each block has a marker, and names are unique.
std::vector<std::string> wrong_blocks(const std::filesystem::path& root, const std::vector<Page>& pages);

// README.md is at most 150 lines.
std::vector<std::string> long_readme(const std::vector<Page>& pages);

// Writes each program as NAME.cpp or NAME.c, each snippet as NAME.inc, and their list as list.cmake.
bool extract(const std::vector<Page>& pages, const std::filesystem::path& out);

}  // namespace imprint::pages
