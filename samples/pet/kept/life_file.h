#pragma once
// What of a pet's life is kept beside its mind, in life_file: how uneasy it is about the sofa (Life::unease).

#include <span>
#include <string>
#include <vector>

namespace pet {

// One line a pet, in the order of the kennel: "unease 0.93". Pets that are not in it are at ease, as all are
// without such a file. Throws as read_lines does.
std::vector<float> read_life(const std::string& file);
// unease: 0 .. 1 of each pet. As replace_lines; pets at ease need no file. The old file is kept where
// read_life refuses it, or refused it before (unread).
std::string write_life(const std::string& file, std::span<const float> unease, bool unread = false);

}  // namespace pet
