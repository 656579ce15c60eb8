#include "samples/pet/kept/folders.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace pet {
namespace {

std::string person_directory(const char* variable, const char* home_part, const char* windows_variable) {
  std::filesystem::path base;
  if (const char* set = std::getenv(variable); set && *set) {
    base = set;
  } else if (const char* windows = std::getenv(windows_variable); windows && *windows) {
    base = windows;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    base = std::filesystem::path(home) / home_part;
  } else {
    return {};
  }
  base /= "imprint-pet";
  std::error_code error;
  std::filesystem::create_directories(base, error);
  return error ? std::string() : base.string();
}

}  // namespace

std::string data_directory() { return person_directory("XDG_DATA_HOME", ".local/share", "APPDATA"); }
std::filesystem::path temporary_directory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  return error ? std::filesystem::path(".") : path;
}

std::string cache_directory() { return person_directory("XDG_CACHE_HOME", ".cache", "LOCALAPPDATA"); }

}  // namespace pet
