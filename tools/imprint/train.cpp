// imprint train: trains one of the examples of samples/11-networks and reports how it went.

#if !defined(_WIN32)
#include <sys/ioctl.h>
#include <unistd.h>
#endif

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "compute/base/text.h"
#include "compute/training/dashboard.h"
#include "compute/training/report.h"
#include "compute/training/stop_signal.h"
#include "samples/11-networks/examples.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/curve_picture.h"

namespace imprint::tools {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string example, device, folder, data;
  bool list = false, small = false, resume = false;
  std::uint64_t seed = 1;
  std::int64_t epochs = 0, steps = -1;
};

#if defined(_WIN32)
bool shows_control_codes() { return false; }
std::size_t terminal_columns() { return 80; }
#else
bool shows_control_codes() {
  const char* kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}
std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
#endif

std::string names_of_examples() {
  std::string names;
  for (const examples::Example& example : examples::all_examples())
    names += text(names.empty() ? "" : ", ", example.name);
  return names;
}

const examples::Example* find_example(const std::string& name) {
  for (const examples::Example& example : examples::all_examples())
    if (name == example.name) return &example;
  return nullptr;
}

// Pages and pictures beside the checkpoints.
Result<> write_pages(const std::string& folder, const examples::Example& example,
                     const examples::Finding& found, const std::vector<std::string>& notes) {
  const auto in_folder = [&](const char* name) { return (fs::path(folder) / name).string(); };
  IMPRINT_ASSIGN(const training::Curves curves, training::read_curves(in_folder("curves.csv")));
  IMPRINT_CHECK(training::write_report(in_folder("report.html"), example.title, curves, notes));
  IMPRINT_CHECK(write_curve_picture(in_folder("curves.png"), example.name, curves));
  if (found.pictures.shape.rank() == 3)
    IMPRINT_CHECK(write_pictures(in_folder("pictures.png"), found.pictures));
  std::printf("report: %s, with curves and checkpoints beside it\n", in_folder("report.html").c_str());
  return {};
}

Result<> train_example(const TrainOptions& options) {
  if (options.list) {
    for (const examples::Example& example : examples::all_examples())
      std::printf("%-12s %s\n", example.name, example.title);
    return {};
  }
  const examples::Example* example = find_example(options.example);
  if (example == nullptr)
    return make_error(ErrorCode::not_found, text("EXAMPLE: found '", options.example, "', expected one of ",
                                                 names_of_examples(), "."));
  if (options.resume && options.folder.empty())
    return make_error(ErrorCode::invalid_argument, "--resume: found no --folder, expected that of the run.");
  if (!options.folder.empty()) {
    std::error_code error;
    fs::create_directories(options.folder, error);
    if (error)
      return make_error(ErrorCode::io,
                        text("--folder: cannot make '", options.folder, "': ", error.message()));
  }
  IMPRINT_ASSIGN(Computer computer, Computer::open(options.device));
  std::printf("%s on %s\n", example->title, computer.name().c_str());
  std::fflush(stdout);
  const training::StopSignal stop;
  training::Dashboard dashboard(std::cout, shows_control_codes(), terminal_columns());
  IMPRINT_ASSIGN(const examples::Finding found, example->run({.session = computer.session(),
                                                              .small = options.small,
                                                              .seed = options.seed,
                                                              .data = options.data,
                                                              .folder = options.folder,
                                                              .resume = options.resume,
                                                              .epochs = options.epochs,
                                                              .steps = options.steps,
                                                              .report = std::ref(dashboard),
                                                              .stop = stop.flag(),
                                                              .save = stop.save_flag()}));
  std::vector<std::string> notes = found.notes;
  char value[32];
  std::snprintf(value, sizeof value, "%.4f", found.value);
  notes.push_back(found.measure + ": " + value);
  for (const std::string& note : notes) std::printf("%s\n", note.c_str());
  // Without a step there are no curves.
  if (!options.folder.empty() && options.steps != 0)
    IMPRINT_CHECK(write_pages(options.folder, *example, found, notes));
  if (found.interrupted) {
    std::printf("stopped before its end%s\n", options.folder.empty() ? "" : "; --resume continues it");
    return {};
  }
  if (options.epochs > 0 || options.steps >= 0 || found.value >= found.goal) return {};
  return make_error(ErrorCode::wrong_state,
                    text(found.measure, ": found ", value, ", expected ", found.goal, " or more."));
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "train", "train an example network: digits, a GPT, diffusion, LoRA and others (samples/11-networks)");
  auto options = std::make_shared<TrainOptions>();
  command->add_option("EXAMPLE", options->example, "one of " + names_of_examples());
  command->add_flag("--list", options->list, "only print the examples");
  command->add_option("--device", options->device, kDeviceHelp)->type_name("DEVICE");
  command->add_option("--folder", options->folder, "for checkpoints, curves, report.html and pictures")
      ->type_name("DIR");
  command
      ->add_option("--data", options->data,
                   "MNIST's four files in a folder, a folder of pictures per class for pictures, or a text "
                   "for char-gpt; "
                   "default: made up by a generator")
      ->type_name("PATH");
  command->add_flag("--small", options->small, "a smaller network and less data: seconds on a CPU");
  command->add_flag("--resume", options->resume,
                    "continue the run in --folder; a complete one needs a larger --epochs or --steps");
  command->add_option("--seed", options->seed, "seed of weights, data and order")->option_text("N=1");
  command->add_option("--epochs", options->epochs, "passes over the data; 0: the example's own")
      ->check(CLI::Range(0, 100000))
      ->option_text("N=0");
  command
      ->add_option("--steps", options->steps,
                   "steps of the optimiser; 0: only write last.safetensors, with the first weights, into "
                   "--folder; default: the example's own")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->option_text("N");
  set_work(*command, [options] { return train_example(*options); });
}

}  // namespace imprint::tools
