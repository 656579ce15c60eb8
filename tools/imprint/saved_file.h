#pragma once
// Saved brains, opened without the game that made them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/spec/brain_spec.h"

namespace CLI {
class App;
}

namespace imprint::tools {

struct SavedFile {
  std::vector<std::byte> bytes;
  agent::BrainSpec spec;
};

// The brain is what the file says, or `description`, a file as brain_file.h has it, unless that is empty. Its
// weights are no larger than the file, so that variables of them can be made. Bounds for a file of n bytes:
// time O(n log n); memory n, the file, beside those of agent::describe_file and of brain_file.h. Errors:
// not_found, io; those of agent::describe_file and load_brains; unsupported (the file says nothing, and there
// is no description); corrupt_file (a brain that is larger than the file).
Result<SavedFile> open_saved(const std::string& path, const std::string& description = "");

// Whether a file of `file.spec` can hold as many numbers. Errors: corrupt_file.
Result<> check_fits(const SavedFile& file, const std::string& path, std::uint64_t numbers);

// --brain-file
void add_description_option(CLI::App& command, std::string& description);

}  // namespace imprint::tools
