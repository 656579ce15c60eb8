#pragma once
// Capability profiles on the command line: by name, or as JSON files with one member for each of a profile's
// fields.

#include <cstddef>
#include <span>
#include <string>

#include "compute/base/result.h"
#include "compute/vk/capability_profile.h"

namespace imprint::tools {

// "desktop", "software", "baseline", or a file. Fields that a file lacks are those of the baseline.
// Errors: not_found with the names that there are; io; corrupt_file (no JSON, an unknown field, a value that
// it cannot have).
Result<vk::CapabilityProfile> find_profile(const std::string& name_or_file);

// A file's bytes. file: for messages, and the name where the file gives none.
// Bounds for n bytes: time O(n log n); memory 40 n + 64 KiB. find_profile reads at most 1 MiB.
Result<vk::CapabilityProfile> parse_profile(const std::string& file, std::span<const std::byte> bytes);

// As a file has it.
std::string profile_json(const vk::CapabilityProfile& profile);

std::string profile_names();  // "desktop, software, baseline"

}  // namespace imprint::tools
