#pragma once
// How a run was started, kept in its folder: a run that goes on says which options changed.

#include <string>
#include <vector>

#include "compute/base/result.h"
#include "tools/imprint/studio_run.h"

namespace imprint::tools {

// What decides how the games learn, one word each: "--every=1", then GAME and its own words.
std::vector<std::string> words_of_run(const StudioOptions& options);
// What differs, for a person to read; empty: nothing. GAME's words are compared from both ends, since their
// meaning is the game's.
std::string changed_words(const std::vector<std::string>& before, const std::vector<std::string>& now);
// Says on stdout what changed since the folder's newest start, where a run goes on, and keeps `options`.
Result<> note_command(const StudioOptions& options, bool goes_on);

}  // namespace imprint::tools
