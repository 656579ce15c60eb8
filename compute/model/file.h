#pragma once
// Whole files in and out. Writing is atomic: a crash leaves the old file or the new one, never a mixture.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint {

// Paths are UTF-8. Errors: not_found (no such file), io (with the system's reason), invalid_argument (larger
// than size_limit bytes).
Result<std::vector<std::byte>> read_file(const std::string& path,
                                         std::uint64_t size_limit = std::uint64_t{4} << 30);

// `length` bytes from `offset`. Errors: as read_file; corrupt_file when the file ends before.
Result<std::vector<std::byte>> read_file_part(const std::string& path, std::uint64_t offset,
                                              std::uint64_t length);

// Size in bytes. Errors: not_found, io (a folder, for one).
Result<std::uint64_t> file_size(const std::string& path);

// Writes a temporary file beside `path`, flushes it to the disk and renames it; a symbolic link stays one,
// and what it names is replaced. On failure nothing is left behind. Errors: io (with the system's reason; or
// `path` is there and no regular file).
Status write_file_atomic(const std::string& path, std::span<const std::byte> bytes);

// Whether write_file_atomic may replace what is at `path` and can make files beside it, for those who want to
// know before they compute: it makes one and takes it away again. Errors: io.
Status check_replaceable(const std::string& path);

}  // namespace imprint
