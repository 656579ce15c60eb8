#pragma once
// What the player calls the commands, as it is kept beside a pet.

#include <string>

#include "samples/pet/yard/cue_names.h"

namespace pet {

// One line a command, in names_file: "sit Platz". Without such a file, the names as they come. Throws as
// read_lines does.
CueNames read_names(const std::string& file);
// As replace_lines; names as they come need no file. The old file is kept where read_names refuses it, or
// refused it before (unread).
std::string write_names(const std::string& file, const CueNames& names, bool unread = false);

}  // namespace pet
