#pragma once
// Words that a reader has to translate.

#include <filesystem>
#include <string>
#include <vector>

#include "tools/pages/page.h"

namespace imprint::pages {

// Checks the prose of pages, and comments and string literals of C, C++, GLSL, CMake and shell sources. Each
// fault is one line "file:line: found X, expected Y".
std::vector<std::string> inverted_words(const std::filesystem::path& root, const std::vector<Page>& pages);

}  // namespace imprint::pages
