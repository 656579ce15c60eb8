// imprint studio: starts many copies of a headless game that learn one brain together, and starts them again
// from the newest checkpoint when one dies or hangs.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "engine-bridge/own/standalone.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/studio_job.h"
#include "tools/studio/run_folder.h"

namespace imprint::tools {
namespace {

constexpr int kRefusedStatus = 3;  // tools/studio/group.h

struct StudioOptions {
  std::uint32_t games = 2, every = 1, evaluators = 0, checkpoint = 50, restarts = 10;
  std::uint64_t steps = 0, seed = 1;
  double patience_s = 60, report_s = 1;
  std::string curriculum, folder = "studio-run", devices = "auto", mpirun = "mpirun", share = "updates";
  std::vector<std::string> mpirun_options, game;
};

// Every GPU of this computer, by number; the CPU if there is none.
std::string found_devices() {
  std::string list;
  const auto devices = bridge::list_devices();
  if (devices)
    for (const bridge::PhysicalDeviceSummary& device : *devices) {
      const VkPhysicalDeviceType type = device.capabilities.device_type;
      if (type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU)
        list += text(list.empty() ? "" : ",", device.index);
    }
  return list.empty() ? "cpu" : list;
}

// The variables that studio::Settings::from_environment reads; returns their names.
std::vector<std::string> set_environment(const StudioOptions& options, const std::string& devices) {
  const std::pair<const char*, std::string> variables[] = {
      {"IMPRINT_STUDIO_STEPS", text(options.steps)},
      {"IMPRINT_STUDIO_FOLDER", options.folder},
      {"IMPRINT_STUDIO_EVERY", text(options.every)},
      {"IMPRINT_STUDIO_CHECKPOINT", text(options.checkpoint)},
      {"IMPRINT_STUDIO_SEED", text(options.seed)},
      {"IMPRINT_STUDIO_REPORT", text(options.report_s)},
      {"IMPRINT_STUDIO_SHARE", options.share},
      {"IMPRINT_STUDIO_EVALUATORS", text(options.evaluators)},
      {"IMPRINT_STUDIO_CURRICULUM", options.curriculum},
      {"IMPRINT_STUDIO_DEVICES", devices}};
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) {
    ::setenv(name, value.c_str(), 1);
    names.emplace_back(name);
  }
  return names;
}

StudioJob job_of(const StudioOptions& options, const std::vector<std::string>& variables) {
  StudioJob job;
  job.folder = options.folder;
  job.games = options.games;
  job.patience_s = options.patience_s;
  job.command = {options.mpirun, "-q", "--oversubscribe", "--bind-to", "none", "-np", text(options.games)};
  if (::geteuid() == 0) job.command.emplace_back("--allow-run-as-root");
  for (const std::string& name : variables) job.command.insert(job.command.end(), {"-x", name});
  job.command.insert(job.command.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  job.command.insert(job.command.end(), options.game.begin(), options.game.end());
  return job;
}

std::uint64_t newest_checkpoint(const std::string& folder) {
  const auto found = studio::RunFolder(folder).newest();
  return found && *found ? (*found)->number : 0;
}

Result<> run_jobs(const StudioOptions& given) {
  StudioOptions options = given;
  std::error_code error;
  options.folder = std::filesystem::absolute(options.folder, error).string();
  std::filesystem::create_directories(options.folder, error);
  if (!options.curriculum.empty())
    options.curriculum = std::filesystem::absolute(options.curriculum).string();
  if (error)
    return make_error(ErrorCode::io, text("--folder: cannot make '", options.folder, "': ", error.message()));
  const std::string devices = options.devices == "auto" ? found_devices() : options.devices;
  const std::vector<std::string> variables = set_environment(options, devices);
  std::printf("studio: %s on %s; files in %s\n", amount(options.games, "game").c_str(), devices.c_str(),
              options.folder.c_str());
  std::fflush(stdout);
  std::filesystem::remove_all(options.folder + "/alive", error);
  const StudioJob job = job_of(options, variables);
  std::uint32_t in_a_row = 0;
  for (;;) {
    const std::uint64_t before = newest_checkpoint(options.folder);
    const StudioJobEnd end = run_studio_job(job);
    if (end.kind == StudioJobEnd::Kind::done) {
      std::printf("studio: the brain is %s/final.brain\n", options.folder.c_str());
      return {};
    }
    if (end.kind == StudioJobEnd::Kind::stopped)
      return make_error(ErrorCode::wrong_state,
                        "stopped by a signal. The same command goes on from the newest checkpoint.");
    if (end.status == kRefusedStatus)
      return make_error(ErrorCode::wrong_state, "a game refused to go on; see its message above.");
    in_a_row = newest_checkpoint(options.folder) > before ? 0 : in_a_row + 1;
    if (in_a_row > options.restarts || end.status == 127)
      return make_error(ErrorCode::wrong_state,
                        text(end.reason, " Ended ", in_a_row, " times without a new checkpoint."));
    std::fprintf(stderr, "studio: %s Starts again from checkpoint %llu.\n", end.reason.c_str(),
                 static_cast<unsigned long long>(newest_checkpoint(options.folder)));
  }
}

}  // namespace

void add_studio(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "studio", "train a brain in many games at once: imprint studio [OPTIONS] GAME [ARGS...]");
  auto options = std::make_shared<StudioOptions>();
  command->add_option("--games", options->games, "processes that play and learn")
      ->check(CLI::Range(1, 100000))
      ->option_text("N=2");
  command->add_option("--steps", options->steps, "decisions of all games; 0: the game ends the run")
      ->option_text("N=0");
  command
      ->add_option("--folder", options->folder,
                   "for checkpoints, curve.csv and final.brain; a run in it goes on")
      ->option_text("DIR=studio-run");
  command
      ->add_option("--devices", options->devices,
                   "devices that the games of a computer share in turn: 0,1 or cpu; auto: all GPUs")
      ->option_text("LIST=auto");
  command
      ->add_option(
          "--share", options->share,
          "updates: average the brains after each learn step; minibatches: learn the same minibatches, "
          "PPO without a cell")
      ->check(CLI::IsMember({"updates", "minibatches"}))
      ->option_text("KIND=updates");
  command->add_option("--every", options->every, "learn steps between exchanges")
      ->check(CLI::Range(1, 1'000'000))
      ->option_text("N=1");
  command->add_option("--checkpoint", options->checkpoint, "exchanges between checkpoints; 0: none")
      ->option_text("N=50");
  command
      ->add_option("--evaluators", options->evaluators,
                   "of the games, those that play only and learn nothing")
      ->option_text("N=0");
  command->add_option("--curriculum", options->curriculum, "file of lessons and parameters of worlds")
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  command->add_option("--seed", options->seed, "of the games' worlds")->option_text("N=1");
  command
      ->add_option("--patience", options->patience_s,
                   "seconds without an exchange until the job is started again; 0: any")
      ->check(CLI::NonNegativeNumber)
      ->option_text("S=60");
  command
      ->add_option("--restarts", options->restarts, "starts in a row that may end without a new checkpoint")
      ->option_text("N=10");
  command->add_option("--report", options->report_s, "seconds between lines; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->option_text("S=1");
  command->add_option("--mpirun", options->mpirun, "Open MPI's program")->option_text("PROGRAM=mpirun");
  command
      ->add_option("--mpirun-option", options->mpirun_options,
                   "one more word for mpirun, such as --hostfile=FILE; may be repeated")
      ->allow_extra_args(false)
      ->type_name("WORD");
  command->prefix_command();  // the game's own options are not read here
  set_work(*command, [options, command]() -> Result<> {
    options->game = command->remaining();
    if (!options->game.empty() && options->game.front() == "--") options->game.erase(options->game.begin());
    if (options->game.empty())
      return make_error(
          ErrorCode::invalid_argument,
          "GAME: found none, expected a headless game that joins the studio, and its arguments.");
    return run_jobs(*options);
  });
}

}  // namespace imprint::tools
