#pragma once
// The subcommands of `imprint`, one file each. A new one is a function here and a line in main.cpp.

#include <cstdint>
#include <functional>
#include <string>

#include "compute/base/result.h"

namespace CLI {
class App;
}

namespace imprint::tools {

void add_run(CLI::App& app);       // run.cpp
void add_inspect(CLI::App& app);   // inspect.cpp
void add_devices(CLI::App& app);   // devices.cpp
void add_doctor(CLI::App& app);    // doctor.cpp
void add_bake(CLI::App& app);      // bake.cpp
void add_export(CLI::App& app);    // export.cpp
void add_demos(CLI::App& app);     // demos.cpp
void add_studio(CLI::App& app);    // studio.cpp
void add_train(CLI::App& app);     // train.cpp
void add_quantise(CLI::App& app);  // quantise.cpp
void add_convert(CLI::App& app);   // quantise.cpp

// Runs `work` when the subcommand is chosen. On failure: one line on stderr, "imprint NAME: error", and exit
// status 1.
void set_work(CLI::App& command, std::function<Result<>()> work);

// Checks before the work that the file can be written. Errors: not_found (no such folder), io (it is a
// folder).
Result<> check_writable(const std::string& file);

// Help text for every --device.
inline constexpr const char* kDeviceHelp =
    "index or part of a name (see imprint devices), or cpu; default: the first discrete device, else the "
    "first "
    "integrated one, else any";

// --threads N
void add_threads_option(CLI::App& command, std::uint32_t& threads);

}  // namespace imprint::tools
