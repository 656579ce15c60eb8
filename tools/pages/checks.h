#pragma once
// Checks of the pages. Each function returns one line "page:line: found X, expected Y" per violation.

#include <filesystem>
#include <string>
#include <vector>

#include "tools/pages/page.h"

namespace imprint::pages {

// Relative links lead to a file, and their #fragment to a heading of that page. may_leave: the file may lie
// outside root, as the headers of an installation do.
std::vector<std::string> broken_links(const std::filesystem::path& root, const std::vector<Page>& pages,
                                      bool may_leave);

// C and C++ blocks are compiled and run, or say why not: each block has a marker, and names are unique.
std::vector<std::string> wrong_blocks(const std::filesystem::path& root, const std::vector<Page>& pages);

// README.md is at most 150 lines.
std::vector<std::string> long_readme(const std::vector<Page>& pages);

// Writes each program as NAME.cpp or NAME.c, each snippet as NAME.inc, and their list as list.cmake.
bool extract(const std::vector<Page>& pages, const std::filesystem::path& out);

}  // namespace imprint::pages
