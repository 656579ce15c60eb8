#include <cerrno>
#include <filesystem>
#include <system_error>

#include "compute/model/files/file.h"
#include "compute/model/files/stored_size.h"

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX  // MinGW's headers define it themselves
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace imprint {
namespace {

// The view of a file and its size, or null with the system's error number. The size is that of the open file:
// the path may lead to another file by now, or to a pipe, which must not block.
#if defined(_WIN32)
std::shared_ptr<const void> mapped(const std::string& path, std::size_t& size, int& number) {
  const std::filesystem::path where(std::u8string(path.begin(), path.end()));
  const auto failed = [&] {
    number = static_cast<int>(GetLastError());
    return nullptr;
  };
  const HANDLE file = CreateFileW(where.c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING,
                                  FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return failed();
  LARGE_INTEGER bytes{};
  if (GetFileType(file) != FILE_TYPE_DISK || !GetFileSizeEx(file, &bytes) || bytes.QuadPart == 0) {
    failed();
    CloseHandle(file);
    return nullptr;
  }
  size = static_cast<std::size_t>(bytes.QuadPart);
  const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
  CloseHandle(file);
  if (!mapping) return failed();
  const void* view = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
  if (!view) failed();
  CloseHandle(mapping);
  if (!view) return nullptr;
  return {view, [](const void* begin) { UnmapViewOfFile(begin); }};
}
#else
std::shared_ptr<const void> mapped(const std::string& path, std::size_t& size, int& number) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    number = errno;
    return nullptr;
  }
  struct stat status {};
  const bool stated = fstat(file, &status) == 0;
  if (!stated || !S_ISREG(status.st_mode) || status.st_size <= 0) {
    number = stated ? EINVAL : errno;
    ::close(file);
    return nullptr;
  }
  size = static_cast<std::size_t>(status.st_size);
  void* view = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  number = errno;
  ::close(file);
  if (view == MAP_FAILED) return nullptr;
  return {view, [size = size](const void* begin) { munmap(const_cast<void*>(begin), size); }};
}
#endif

}  // namespace

Result<SharedBytes> map_file(const std::string& path) {
  IMPRINT_ASSIGN(const std::uint64_t bytes, file_size(path));
  if (bytes == 0) return SharedBytes();
  std::size_t size = 0;
  int number = 0;
  std::shared_ptr<const void> view = mapped(path, size, number);
  if (!view)
    return make_error(ErrorCode::io, "cannot map '" + path + "': " + std::system_category().message(number));
  const auto* begin = static_cast<const std::byte*>(view.get());
  return SharedBytes(std::span(begin, size), std::move(view));
}

Result<std::uint64_t> stored_size(const std::string& path) {
  const auto failed = [&](int number) {
    return make_error(ErrorCode::io, "cannot read '" + path + "': " + std::system_category().message(number));
  };
#if defined(_WIN32)
  const std::filesystem::path where(std::u8string(path.begin(), path.end()));
  DWORD high = 0;
  SetLastError(NO_ERROR);
  const DWORD low = GetCompressedFileSizeW(where.c_str(), &high);
  if (const DWORD number = GetLastError(); low == INVALID_FILE_SIZE && number != NO_ERROR)
    return failed(static_cast<int>(number));
  return std::uint64_t{high} << 32 | low;
#else
  constexpr std::uint64_t kBlock = 512;  // of st_blocks, on each system that Imprint runs on
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return failed(errno);
  return kBlock * static_cast<std::uint64_t>(status.st_blocks);
#endif
}

}  // namespace imprint
