#pragma once
// Rules that a compiler does not check, as functions over a source tree.

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace imprint::house {

// Each returns one line "file:line: the fault, the rule" per violation, and nothing if the tree follows the
// rule.

// Imprint's sources under the tree's folders, as sorted paths relative to root, with slashes.
std::vector<std::string> all_sources(const std::filesystem::path& root,
                                     std::initializer_list<std::string_view> extensions);

// A room includes only rooms before it: see kRooms in the source. Folders inside a room keep an order too.
std::vector<std::string> wrong_includes(const std::filesystem::path& root);

// Calls that a guest in a game never makes: waiting for an idle device, looking for queues, printing, ending
// the process, reading the environment, numbers in the host's locale.
std::vector<std::string> forbidden_calls(const std::filesystem::path& root);

// At most 600 lines per file.
std::vector<std::string> oversized_files(const std::filesystem::path& root);

// At most 110 columns per line.
std::vector<std::string> wide_lines(const std::filesystem::path& root);

// At most 80 lines per function, from its first line to its closing brace.
std::vector<std::string> long_functions(const std::filesystem::path& root);

// At most three files include one another in a cycle. A header and its source count as one file.
std::vector<std::string> include_knots(const std::filesystem::path& root);

// Names that imprint/compute.h puts into `imprint` itself are the library's face: see kFaceNames in the
// source. Names that only rooms need are in the rooms' own namespaces.
std::vector<std::string> names_outside_the_face(const std::filesystem::path& root);

// Macros declare the operations of op_rows.h, so comments of tensor.h name them for its readers.
std::vector<std::string> undocumented_ops(const std::filesystem::path& root);

}  // namespace imprint::house
