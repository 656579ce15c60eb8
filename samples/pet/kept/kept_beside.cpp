#include "samples/pet/kept/kept_beside.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace pet {
namespace {

bool is_free(const std::string& file) {
  // A name that cannot be examined counts as free: moving a file there reports the reason.
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::symlink_status(file, error).type();
  return type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none;
}

}  // namespace

std::string names_file(const std::string& pet_file) { return pet_file + ".names"; }

std::string life_file(const std::string& pet_file) { return pet_file + ".life"; }

std::string free_name(const std::string& file) {
  std::string found = file;
  for (int number = 2; !is_free(found) || !is_free(names_file(found)) || !is_free(life_file(found)); ++number)
    found = file + "-" + std::to_string(number);
  return found;
}

Result<> read_lines(const std::string& file, const std::string& heading,
                    const std::function<std::string(const std::string&)>& take) {
  std::ifstream lines(file);
  if (!lines) {
    // Only a missing file counts as empty. One that cannot be opened now (rights, handles) still has content.
    std::error_code error;
    if (!std::filesystem::exists(file, error) && !error) return {};
    return Error{"cannot open " + file + (error ? ": " + error.message() : std::string())};
  }
  std::string line;
  if (!std::getline(lines, line) || line != heading)
    return Error{file + ", line 1: found \"" + line + "\", expected \"" + heading + "\""};
  for (std::size_t number = 2; std::getline(lines, line); ++number) {
    if (const std::string why = take(line); !why.empty())
      return Error{file + ", line " + std::to_string(number) + ": " + why};
  }
  if (lines.bad()) return Error{"cannot read " + file};
  return {};
}

std::string replace_lines(const std::string& file, const std::string& heading,
                          std::span<const std::string> lines, bool keep_old) {
  const std::string temporary = file + ".new";
  if (!lines.empty()) {
    std::ofstream text(temporary);
    text << heading << "\n";
    for (const std::string& line : lines) text << line << "\n";
    text.close();
    if (!text) return "cannot write " + temporary;
  }
  std::error_code error;
  if (keep_old) {
    std::filesystem::rename(file, free_name(file + ".unread"), error);
    if (error && error != std::errc::no_such_file_or_directory)
      return "cannot keep " + file + " aside: " + error.message();
  }
  if (!lines.empty()) {
    std::filesystem::rename(temporary, file, error);
    return error ? "cannot write " + file + ": " + error.message() : std::string();
  }
  std::filesystem::remove(file, error);
  return error ? "cannot remove " + file + ": " + error.message() : std::string();
}

}  // namespace pet
