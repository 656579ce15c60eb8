#pragma once
// The subcommands of `imprint`, one file each. A new one is a function here and a line in main.cpp.

#include <functional>
#include <string>

#include "compute/base/result.h"

namespace CLI {
class App;
}

namespace imprint::tools {

void add_run(CLI::App& app);      // run.cpp
void add_inspect(CLI::App& app);  // inspect.cpp
void add_devices(CLI::App& app);  // devices.cpp
void add_bake(CLI::App& app);     // bake.cpp

// Does the work when the subcommand is chosen. A failure is one line on stderr, "imprint NAME: what went
// wrong", and exit status 1.
void set_work(CLI::App& command, std::function<Status()> work);

// An error when the file cannot be made for want of a folder, or is one. Better asked before the work than
// after it.
Status check_writable(const std::string& file);

// Help text for every --device.
inline constexpr const char* kDeviceHelp =
    "index or part of a name, see imprint devices, or cpu; default: the first discrete one, else integrated, "
    "else any";

}  // namespace imprint::tools
