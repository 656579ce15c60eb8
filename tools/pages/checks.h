#pragma once
// What every page keeps to. Each function returns one line "page:line: found X, expected Y" a violation.

#include <filesystem>
#include <string>
#include <vector>

#include "tools/pages/page.h"

namespace imprint::pages {

// Relative links lead to a file of the tree, and what follows # to a heading of that page.
std::vector<std::string> broken_links(const std::filesystem::path& root, const std::vector<Page>& pages);

// C and C++ is compiled and run, or says why not: each block has a marker, and each name is there once.
std::vector<std::string> wrong_blocks(const std::filesystem::path& root, const std::vector<Page>& pages);

// README.md is at most 150 lines.
std::vector<std::string> long_readme(const std::vector<Page>& pages);

// Prose of pages, and comments of the public headers, without words that a reader has to translate.
std::vector<std::string> inverted_words(const std::filesystem::path& root, const std::vector<Page>& pages);

// Writes each program as NAME.cpp or NAME.c, each snippet as NAME.inc, and their list as list.cmake.
bool extract(const std::vector<Page>& pages, const std::filesystem::path& out);

}  // namespace imprint::pages
