#include "compute/model/files/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <system_error>

#include "compute/base/large_pages.h"
#include "compute/base/text.h"

#if defined(_WIN32)
#include <io.h>
#include <process.h>
#else
#include <unistd.h>
#endif

namespace imprint {
namespace {

namespace fs = std::filesystem;

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, Closer>;

fs::path path_of(const std::string& utf8) { return fs::path(std::u8string(utf8.begin(), utf8.end())); }

FileHandle open(const fs::path& path, bool write) {
#if defined(_WIN32)
  return FileHandle(_wfopen(path.c_str(), write ? L"wbx" : L"rb"));
#else
  return FileHandle(std::fopen(path.c_str(), write ? "wbx" : "rb"));
#endif
}

bool flush_to_disk(std::FILE* file) {
  if (std::fflush(file) != 0) return false;
#if defined(_WIN32)
  return _commit(_fileno(file)) == 0;
#else
  return fsync(fileno(file)) == 0;
#endif
}

bool seek(std::FILE* file, std::uint64_t offset) {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
#if defined(_WIN32)
  return _fseeki64(file, static_cast<std::int64_t>(offset), SEEK_SET) == 0;
#else
  return fseeko(file, static_cast<off_t>(offset), SEEK_SET) == 0;
#endif
}

// Unique among files that this and other processes write at the same time.
std::string temporary_suffix() {
  static std::atomic<unsigned> count{0};
#if defined(_WIN32)
  const auto process = static_cast<unsigned long>(_getpid());
#else
  const auto process = static_cast<unsigned long>(getpid());
#endif
  return ".new-" + std::to_string(process) + "-" + std::to_string(count.fetch_add(1));
}

Error system_error(const std::string& action, const std::string& path, int number) {
  const std::string reason = std::generic_category().message(number);
  return make_error(number == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                    action + " '" + path + "': " + reason);
}

constexpr int kMaxLinks = 40;  // as Linux follows

// The file that a save replaces, at the end of symbolic links. Refuses anything but a regular file: renaming
// over a device or pipe would replace it for every process.
Result<fs::path> target_of(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorCode::io, "cannot write '" + path + "': " + why);
  };
  if (path.empty()) return refuse("this names no file");
  std::error_code code;
  fs::path target = path_of(path);
  fs::file_status status = fs::symlink_status(target, code);
  for (int links = 0; fs::is_symlink(status); ++links) {
    if (links == kMaxLinks)
      return refuse("more than " + std::to_string(kMaxLinks) + " symbolic links follow one another");
    const fs::path next = fs::read_symlink(target, code);
    if (code) return refuse(code.message());
    target = target.parent_path() / next;  // an absolute one stands alone
    status = fs::symlink_status(target, code);
  }
  if (fs::is_directory(status)) return refuse("it is a folder");
  if (const fs::path folder = target.parent_path(); !folder.empty()) {
    const auto name = folder.u8string();
    const std::string quoted = "'" + std::string(name.begin(), name.end()) + "'";
    const fs::file_status held_by = fs::status(folder, code);
    if (held_by.type() == fs::file_type::not_found) return refuse("there is no folder " + quoted);
    if (fs::exists(held_by) && !fs::is_directory(held_by)) return refuse(quoted + " is no folder");
  }
  if (fs::exists(status) && !fs::is_regular_file(status))
    return refuse("it is no regular file but a device, pipe or socket, which a save would replace");
  return target;
}

// Becomes the target when it is complete.
struct Temporary {
  fs::path path;
  FileHandle file;
};

Result<Temporary> make_temporary(const std::string& path, const fs::path& target) {
  Temporary made{target, nullptr};
  made.path += temporary_suffix();
  errno = 0;
  made.file = open(made.path, true);
  if (!made.file)
    return make_error(ErrorCode::io,
                      "cannot write '" + path + "': " + std::generic_category().message(errno));
  return made;
}

}  // namespace

// Iterators throw when they are incremented by ++.
bool is_file_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return !name.empty() && name.size() <= kLongest && name.find_first_of("/\\:") == name.npos && name != "." &&
         name != ".." && std::ranges::none_of(name, is_odd);
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
  std::vector<std::string> found;
  std::error_code code;
  for (auto entry = fs::directory_iterator(path_of(path), code); !code && entry != fs::directory_iterator();
       entry.increment(code)) {
    const std::u8string name = entry->path().u8string();
    found.emplace_back(name.begin(), name.end());
  }
  if (code)
    return make_error(code == std::errc::no_such_file_or_directory ? ErrorCode::not_found : ErrorCode::io,
                      text("cannot list the folder '", path, "': ", code.message()));
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::uint64_t> file_size(const std::string& path) {
  std::error_code code;
  const fs::path where = path_of(path);
  const fs::file_status status = fs::status(where, code);
  if (status.type() == fs::file_type::not_found)
    return make_error(ErrorCode::not_found, "cannot read '" + path + "': there is no such file");
  if (code) return make_error(ErrorCode::io, "cannot read '" + path + "': " + code.message());
  if (fs::is_directory(status))
    return make_error(ErrorCode::io, "cannot read '" + path + "': it is a folder");
  if (!fs::is_regular_file(status))
    return make_error(ErrorCode::io,
                      "cannot read '" + path + "': it is no regular file but a device, pipe or socket");
  const std::uintmax_t size = fs::file_size(where, code);
  if (code) return make_error(ErrorCode::io, "cannot read '" + path + "': " + code.message());
  return static_cast<std::uint64_t>(size);
}

Result<FileReader> FileReader::open(const std::string& path) {
  FileReader reader;
  IMPRINT_ASSIGN(reader.size_, file_size(path));
  errno = 0;
  reader.file_.reset(imprint::open(path_of(path), false).release());
  if (!reader.file_) return system_error("cannot read", path, errno);
  reader.path_ = path;
  return reader;
}

Result<std::vector<std::byte>> FileReader::read(std::uint64_t offset, std::uint64_t length) {
  if (offset > size_ || length > size_ - offset)
    return make_error(ErrorCode::corrupt_file, text("'", path_, "': found ", size_, " bytes, expected ",
                                                    length, " from byte ", offset, " on"));
  std::vector<std::byte> bytes;
  try {
    bytes.reserve(static_cast<std::size_t>(length));
    prefer_large_pages(bytes.data(), bytes.capacity());  // weights stay here
    bytes.resize(static_cast<std::size_t>(length));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory,
                      text("cannot read '", path_, "': no memory for ", length, " bytes"));
  }
  if (bytes.empty()) return bytes;
  errno = 0;
  if (!seek(file_.get(), offset)) return system_error("cannot read", path_, errno);
  if (std::fread(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    return std::ferror(file_.get())
               ? system_error("cannot read", path_, errno)
               : make_error(ErrorCode::corrupt_file, text("'", path_, "' became shorter while it was read"));
  return bytes;
}

Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t size_limit) {
  IMPRINT_ASSIGN(FileReader reader, FileReader::open(path));
  if (reader.size() > size_limit)
    return make_error(ErrorCode::invalid_argument,
                      text("'", path, "': found ", reader.size(), " bytes, expected at most ", size_limit));
  return reader.read(0, reader.size());
}

Result<> check_replaceable(const std::string& path) {
  IMPRINT_ASSIGN(const fs::path target, target_of(path));
  IMPRINT_ASSIGN(Temporary probe, make_temporary(path, target));
  probe.file.reset();
  std::error_code ignored;
  fs::remove(probe.path, ignored);
  return {};
}

Result<> write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
  IMPRINT_ASSIGN(const fs::path target, target_of(path));
  IMPRINT_ASSIGN(Temporary temporary, make_temporary(path, target));
  std::FILE* const file = temporary.file.get();
  const bool written = (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size()) &&
                       flush_to_disk(file);
  const int number = errno;
  // Some file systems report a full disk only on closing.
  const bool closed = std::fclose(temporary.file.release()) == 0;
  std::error_code ignored;
  if (!written || !closed) {
    const int reason = written ? errno : number;
    fs::remove(temporary.path, ignored);
    return make_error(ErrorCode::io,
                      "cannot write '" + path + "': " + std::generic_category().message(reason));
  }
  std::error_code code;
  fs::rename(temporary.path, target, code);
  if (code) {
    fs::remove(temporary.path, ignored);
    return make_error(ErrorCode::io, "cannot write '" + path + "': " + code.message());
  }
  return {};
}

}  // namespace imprint
