#pragma once
// The player's folders, created when missing. Empty when there is no place for them.

#include <filesystem>
#include <string>

namespace pet {

// For saved pets: "imprint-pet" in $XDG_DATA_HOME, ~/.local/share or %APPDATA%.
std::string data_directory();
// For files that can be made again: the same in $XDG_CACHE_HOME, ~/.cache or %LOCALAPPDATA%.
std::string cache_directory();
// For temporary files; "." when the system names none.
std::filesystem::path temporary_directory();

}  // namespace pet
