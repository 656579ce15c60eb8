#pragma once
// Files, read whole or in parts, and written whole. Writing is atomic: a crash leaves the old file or the new
// one, never a mixture.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/shared_bytes.h"

namespace imprint {

// Paths are UTF-8. Errors: not_found (no such file), io (with the system's reason), invalid_argument (larger
// than size_limit bytes).
Result<std::vector<std::byte>> read_file(const std::string& path,
                                         std::uint64_t size_limit = std::uint64_t{4} << 30);

// The whole file, which the system reads where it is used. The file must not change while the bytes live.
// Errors: not_found, io (with the system's reason).
Result<SharedBytes> map_file(const std::string& path);

// Whether `name`, out of a file, is that of a file inside a folder: not a path to elsewhere ("../a", "/a",
// "D:a"), no control characters, 1 to 255 bytes.
bool is_file_name(std::string_view name);

// A file open for reading parts of it.
class FileReader {
 public:
  FileReader() = default;
  // Errors: not_found, io (a folder or a device, for instance).
  static Result<FileReader> open(const std::string& path);

  std::uint64_t size() const { return size_; }  // bytes, when it was opened
  // `length` bytes from `offset`. Errors: io; corrupt_file (the file ends before); out_of_host_memory.
  Result<std::vector<std::byte>> read(std::uint64_t offset, std::uint64_t length);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<std::FILE, Closer> file_;
};

// The paths of all that a folder holds, by name. Errors: not_found, io (no folder, or with the system's
// reason).
Result<std::vector<std::string>> list_folder(const std::string& path);

// Size in bytes. Errors: not_found, io (a folder, for instance).
Result<std::uint64_t> file_size(const std::string& path);

// Writes a temporary file beside `path`, flushes it to the disk and renames it. A symbolic link stays one;
// its target is replaced. On failure nothing is left behind. Errors: io (with the system's reason; or `path`
// exists and is no regular file).
Result<> write_file_atomic(const std::string& path, std::span<const std::byte> bytes);

// Whether write_file_atomic can write `path`, to know before a long computation. Creates and removes a
// temporary file. Errors: io.
Result<> check_replaceable(const std::string& path);

}  // namespace imprint
