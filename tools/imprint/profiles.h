#pragma once
// Capability profiles on the command line: by name, or as JSON files with one member for each of a profile's
// fields.

#include <string>

#include "compute/base/result.h"
#include "compute/vk/capability_profile.h"

namespace imprint::tools {

// "desktop", "software", "baseline", or a file. Fields that a file lacks are those of the baseline.
// Errors: not_found with the names that there are; io; corrupt_file (no JSON, an unknown field, a value that
// it cannot have).
Result<vk::CapabilityProfile> find_profile(const std::string& name_or_file);

// As a file has it.
std::string profile_json(const vk::CapabilityProfile& profile);

std::string profile_names();  // "desktop, software, baseline"

}  // namespace imprint::tools
