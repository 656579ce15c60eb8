#pragma once
// The file beside a pet that keeps how uneasy it is about the sofa (Life::unease).

#include <span>
#include <string>
#include <vector>

#include "samples/pet/base/result.h"

namespace pet {

// One line per pet, in the order of the kennel: "unease 0.93". Pets without a line are at ease. Fails as
// read_lines.
Result<std::vector<float>> read_life(const std::string& file);
// unease: 0 .. 1 for each pet. Pets at ease need no file. Keeps the old file where read_life refuses it, or
// refused it before (unread). Returns as replace_lines.
std::string write_life(const std::string& file, std::span<const float> unease, bool unread = false);

}  // namespace pet
