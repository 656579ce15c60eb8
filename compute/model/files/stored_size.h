#pragma once
// Size of a file on the disk.

#include <cstdint>
#include <string>

#include "compute/base/result.h"

namespace imprint {

// Bytes on the disk: less than the size of a sparse file. Errors: io (with the system's reason).
Result<std::uint64_t> stored_size(const std::string& path);

}  // namespace imprint
