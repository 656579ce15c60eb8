// The command line: runs and inspects models, lists devices, bakes kernels, measures, trains.
// Exit status: 0 done; 1 the work failed; 2 the command line is wrong.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "compute/base/text.h"
#include "imprint/version.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/help.h"

namespace imprint::tools {

void set_work(CLI::App& command, std::function<Result<>()> work) {
  const CLI::App* parent = command.get_parent();
  const bool nested = parent != nullptr && parent->get_parent() != nullptr;  // demos extract
  std::string name = nested ? parent->get_name() + " " + command.get_name() : command.get_name();
  command.callback([name = std::move(name), work = std::move(work)] {
    const Result<> status = work();
    if (status.ok()) return;
    std::fflush(stdout);
    // Names of files and of what they hold may stand in it: no control character reaches the terminal.
    std::string message = status.error().message;
    std::ranges::replace_if(
        message, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F; },
        '?');
    std::fprintf(stderr, "imprint %s: %s\n", name.c_str(), message.c_str());
    throw CLI::RuntimeError(1);
  });
}

void add_threads_option(CLI::App& command, std::uint32_t& threads) {
  command
      .add_option(
          "--threads", threads,
          "with --device cpu: threads of one run, with the same results for any number; 0: one per core")
      ->check(CLI::Range(0u, kMostCpuThreads))
      ->option_text("N=1");
}

Result<> check_writable(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    return make_error(ErrorCode::not_found, text("cannot write '", file, "': there is no folder '",
                                                 folder.string(), "'. Create it."));
  if (std::filesystem::is_directory(file, error))
    return make_error(ErrorCode::io, text("cannot write '", file, "': it is a folder. Name a file."));
  return {};
}

namespace {

std::string commands_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// One line that names the fault. CLI11 reports a missing argument before an unknown one, which is often the
// cause.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> before = app.remaining(), all = app.remaining(true);
  const bool in_command = before.empty() && !app.get_subcommands().empty();
  const std::string name = in_command ? "imprint " + app.get_subcommands().front()->get_name() : "imprint";
  const std::string help = text(". See ", name, " --help.");
  // Its further arguments are those of the program that it starts.
  if (in_command && app.get_subcommands().front()->get_prefix_command())
    return text(name, ": ", error.what(), help);
  if (!all.empty() && all.front().starts_with("-"))
    return text(name, ": there is no option '", all.front(), "'", help);
  if (!before.empty())
    return text(name, ": command: found '", before.front(), "', expected one of ", commands_of(app), ".");
  if (!in_command) return text(name, ": command: found none, expected one of ", commands_of(app), help);
  if (!all.empty()) return text(name, ": found '", all.front(), "', expected no further argument", help);
  return text(name, ": ", error.what(), help);
}

}  // namespace
}  // namespace imprint::tools

int main(int argc, char** argv) {
  CLI::App app("Imprint: learning and inference on the game's own GPU");
  app.name("imprint");
  app.set_version_flag("--version", "imprint " IMP_VERSION_STRING);
  app.require_subcommand(1);
  app.formatter(imprint::tools::help_formatter());
  imprint::tools::add_run(app);
  imprint::tools::add_inspect(app);
  imprint::tools::add_devices(app);
  imprint::tools::add_doctor(app);
  imprint::tools::add_bake(app);
  imprint::tools::add_bench(app);
  imprint::tools::add_explain(app);
  imprint::tools::add_tune(app);
  imprint::tools::add_studio(app);
  imprint::tools::add_train(app);
  imprint::tools::add_export(app);
  imprint::tools::add_demos(app);
  imprint::tools::add_quantise(app);
  imprint::tools::add_convert(app);
  app.footer(  // last, or the commands would inherit it
      "Help for a command: imprint COMMAND --help. Exit status: 0 = done, 1 = the work failed, 2 = the "
      "command line is wrong.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help and version
    std::fprintf(stderr, "%s\n", imprint::tools::complaint(app, error).c_str());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "imprint: out of memory. Close other programs, or give smaller files or sizes.\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "imprint: %s\n", error.what());
    return 1;
  }
  return 0;
}
