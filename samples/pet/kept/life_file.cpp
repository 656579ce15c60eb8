#include "samples/pet/kept/life_file.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "samples/pet/kept/kept_beside.h"

namespace pet {
namespace {

constexpr const char* kLifeHeading = "imprint-pet-life 1";

}  // namespace

Result<std::vector<float>> read_life(const std::string& file) {
  std::vector<float> unease;
  PET_CHECK(read_lines(file, kLifeHeading, [&](const std::string& line) -> std::string {
    std::istringstream words(line);
    std::string word, rest;
    float value = -1.0f;
    if (!(words >> word >> value) || word != "unease" || !(value >= 0.0f && value <= 1.0f) || words >> rest) {
      return "found \"" + line + "\", expected \"unease\" and a number from 0 to 1";
    }
    unease.push_back(value);
    return {};
  }));
  return unease;
}

std::string write_life(const std::string& file, std::span<const float> unease, bool unread) {
  std::vector<std::string> lines;
  if (std::any_of(unease.begin(), unease.end(), [](float value) { return value > 0.0f; })) {
    for (const float value : unease) {
      char line[40];
      std::snprintf(line, sizeof line, "unease %.9g", static_cast<double>(value));  // the same bits when read
      lines.emplace_back(line);
    }
  }
  return replace_lines(file, kLifeHeading, lines, unread || !read_life(file));
}

}  // namespace pet
