#pragma once
// The file beside a pet that keeps the player's names of commands.

#include <string>

#include "samples/pet/base/result.h"
#include "samples/pet/yard/cue_names.h"

namespace pet {

// One line per command: "sit Platz". A missing file means the default names. Fails as read_lines.
Result<CueNames> read_names(const std::string& file);
// Default names need no file. Keeps the old file where read_names refuses it, or refused it before (unread).
// Returns as replace_lines.
std::string write_names(const std::string& file, const CueNames& names, bool unread = false);

}  // namespace pet
