// The command line: runs and looks into models, lists devices, measures.
// Exit status: 0 done; 1 the work failed; 2 the command line is wrong.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "imprint/version.h"
#include "tools/imprint/commands.h"
#ifdef IMPRINT_HAS_BENCH
#include "tools/imprint/bench.h"
#endif

namespace imprint::tools {

void set_work(CLI::App& command, std::function<Status()> work) {
  command.callback([name = command.get_name(), work = std::move(work)] {
    const Status status = work();
    if (status.ok()) return;
    std::fflush(stdout);
    std::fprintf(stderr, "imprint %s: %s\n", name.c_str(), status.error().message.c_str());
    throw CLI::RuntimeError(1);
  });
}

}  // namespace imprint::tools

int main(int argc, char** argv) {
  CLI::App app("Imprint: learning and inference on the game's own GPU");
  app.name("imprint");
  app.set_version_flag("--version", "imprint " IMP_VERSION_STRING);
  app.require_subcommand(1);
  imprint::tools::add_run(app);
  imprint::tools::add_inspect(app);
  imprint::tools::add_devices(app);
#ifdef IMPRINT_HAS_BENCH
  imprint::tools::add_bench(app);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "imprint: %s\n", error.what());
    return 1;
  }
  return 0;
}
