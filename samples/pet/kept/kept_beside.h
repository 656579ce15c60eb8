#pragma once
// Small text files beside a pet's own file: a heading, then lines. A person may edit them.

#include <functional>
#include <span>
#include <string>

#include "samples/pet/base/result.h"

namespace pet {

std::string names_file(const std::string& pet_file);  // CueNames, in pet_file.names
std::string life_file(const std::string& pet_file);   // Life::unease, in pet_file.life
// The first of file, file-2, file-3 ... that is free for a pet and for the files beside it.
std::string free_name(const std::string& file);

// Gives each line below the heading to `take`, which returns what is wrong with it, or "". A missing file has
// no lines. Fails with the wrong line, or when the file exists and cannot be opened.
Result<> read_lines(const std::string& file, const std::string& heading,
                    const std::function<std::string(const std::string&)>& take);

// Writes heading and lines to another name, then renames that to `file`. Without lines it removes the file.
// keep_old: first moves the existing file to free_name(file + ".unread"). Returns why the lines are not on
// disk, or
// "".
std::string replace_lines(const std::string& file, const std::string& heading,
                          std::span<const std::string> lines, bool keep_old);

}  // namespace pet
