#pragma once
// Capability profiles on the command line: by name, or as JSON files with one member per field.

#include <string>

#include "compute/base/result.h"
#include "compute/vk/capability_profile.h"

namespace imprint::tools {

// "desktop", "software", "baseline", or a file. Fields that a file lacks have the baseline's values.
// Errors: not_found (lists the names), io, corrupt_file (not JSON, an unknown field, a wrong value).
Result<vk::CapabilityProfile> find_profile(const std::string& name_or_file);

// The text of a profile file.
std::string profile_json(const vk::CapabilityProfile& profile);

std::string profile_names();  // "desktop, software, baseline"

}  // namespace imprint::tools
