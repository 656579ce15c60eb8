// imprint studio, in a build without MPI.

#include <CLI/CLI.hpp>

#include "tools/imprint/commands.h"

namespace imprint::tools {

void add_studio(CLI::App& app) {
  CLI::App* command = app.add_subcommand("studio", "train a brain in many games at once (not in this build)");
  command->allow_extras();
  set_work(*command, [] {
    return make_error(ErrorCode::unsupported,
                      "found a build without MPI, expected one with it. Install libopenmpi-dev and "
                      "openmpi-bin (Debian), then configure and build again.");
  });
}

}  // namespace imprint::tools
