#pragma once
// The rules of the house that a compiler does not know, as functions over a source tree.

#include <filesystem>
#include <string>
#include <vector>

namespace imprint::house {

// Each returns one line "file:line: what is wrong, what is allowed" a violation; empty when the tree keeps
// the rule.

// A room includes only rooms before it: see kRooms in the source.
std::vector<std::string> wrong_includes(const std::filesystem::path& root);

// Calls that a guest in somebody's game never makes: waiting for idle, looking for queues, printing, ending
// the process, reading the environment.
std::vector<std::string> forbidden_calls(const std::filesystem::path& root);

// At most 800 lines a file.
std::vector<std::string> oversized_files(const std::filesystem::path& root);

}  // namespace imprint::house
