#include "samples/pet/life_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "samples/pet/cue_names.h"

namespace pet {
namespace {

constexpr const char* kFirstLineOfLife = "imprint-pet-life 1";

bool is_readable_life(const std::string& file) {
  try {
    (void)read_life(file);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

std::string life_file(const std::string& pet_file) { return pet_file + ".life"; }

std::vector<float> read_life(const std::string& file) {
  std::vector<float> unease;
  std::ifstream lines(file);
  if (!lines) {
    std::error_code error;
    if (!std::filesystem::exists(file, error) && !error) return unease;
    throw std::runtime_error("cannot open " + file + (error ? ": " + error.message() : std::string()));
  }
  std::string line;
  size_t number = 1;
  const auto refuse = [&](const std::string& why) { return std::runtime_error(file + ", line " + std::to_string(number) + ": " + why); };
  if (!std::getline(lines, line) || line != kFirstLineOfLife) throw refuse(std::string("expected \"") + kFirstLineOfLife + "\"");
  while (std::getline(lines, line)) {
    ++number;
    std::istringstream words(line);
    std::string word, rest;
    float value = -1.0f;
    if (!(words >> word >> value) || word != "unease" || !(value >= 0.0f && value <= 1.0f) || words >> rest) {
      throw refuse("expected \"unease\" and a number from 0 to 1");
    }
    unease.push_back(value);
  }
  if (lines.bad()) throw std::runtime_error("cannot read " + file);
  return unease;
}

std::string write_life(const std::string& file, std::span<const float> unease, bool unread) {
  const bool wanted = std::any_of(unease.begin(), unease.end(), [](float value) { return value > 0.0f; });
  const std::string temporary = file + ".new";
  if (wanted) {
    std::ofstream text(temporary);
    text << kFirstLineOfLife << "\n";
    for (const float value : unease) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));  // the same bits when read
      text << "unease " << digits << "\n";
    }
    text.close();
    if (!text) return "cannot write " + temporary;
  }
  std::error_code error;
  if (unread || !is_readable_life(file)) {
    std::filesystem::rename(file, free_name(file + ".unread"), error);
    if (error && error != std::errc::no_such_file_or_directory) return "cannot keep " + file + " aside: " + error.message();
  }
  if (wanted) {
    std::filesystem::rename(temporary, file, error);
    return error ? "cannot write " + file + ": " + error.message() : std::string();
  }
  std::filesystem::remove(file, error);
  return error ? "cannot remove " + file + ": " + error.message() : std::string();
}

}  // namespace pet
