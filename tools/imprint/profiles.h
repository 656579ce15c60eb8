#pragma once
// Capability profiles on the command line: by name, or as JSON files with one member per field.

#include <cstddef>
#include <span>
#include <string>

#include "compute/base/result.h"
#include "compute/vk/pipelines/capability_profile.h"

namespace imprint::tools {

// "desktop", "software", "baseline", or a file. Fields that a file lacks have the baseline's values.
// Errors: not_found (lists the names), io, corrupt_file (not JSON, an unknown field, a wrong value).
Result<vk::CapabilityProfile> find_profile(const std::string& name_or_file);

// A file's bytes. file: for messages, and the name where the file gives none.
// Bounds for n bytes: time O(n log n); memory 40 n + 64 KiB. find_profile reads at most 1 MiB.
Result<vk::CapabilityProfile> parse_profile(const std::string& file, std::span<const std::byte> bytes);

// The text of a profile file.
std::string profile_json(const vk::CapabilityProfile& profile);

std::string profile_names();  // "desktop, software, baseline"

}  // namespace imprint::tools
