#pragma once
// Folders of the person who plays, made when missing; empty when there is none.

#include <string>

namespace pet {

// What a pet remembers: "imprint-pet" in $XDG_DATA_HOME, ~/.local/share or %APPDATA%.
std::string data_directory();
// What can be made again: in $XDG_CACHE_HOME, ~/.cache or %LOCALAPPDATA%.
std::string cache_directory();

}  // namespace pet
