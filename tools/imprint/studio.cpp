// imprint studio: starts many copies of a headless game that learn one brain together, and starts them again
// from the newest checkpoint when one dies or hangs.

#include <signal.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "engine-bridge/own/standalone.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/studio_command.h"
#include "tools/imprint/studio_job.h"
#include "tools/imprint/studio_run.h"
#include "tools/studio/curriculum.h"
#include "tools/studio/exit_status.h"
#include "tools/studio/run_folder.h"

namespace imprint::tools {
namespace {

// Every GPU of this computer, by number.
std::vector<std::string> found_gpus() {
  std::vector<std::string> found;
  const auto devices = bridge::list_devices();
  if (devices)
    for (const bridge::PhysicalDeviceSummary& device : *devices) {
      const VkPhysicalDeviceType type = device.capabilities.device_type;
      if (type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU)
        found.push_back(text(device.index));
    }
  return found;
}

// Actors of a run; with --join all its processes are actors.
std::uint32_t actors_of(const StudioOptions& options) {
  if (options.share != "actors") return 0;
  return options.join.empty() ? options.games - options.learners : options.games;
}

// --devices auto: all GPUs, or the CPU if there is none. Processes that share a GPU compute in turns of about
// a millisecond, so actors take a GPU of their own or the CPU.
std::string found_devices(const StudioOptions& options) {
  const std::vector<std::string> gpus = found_gpus();
  if (gpus.empty()) return "cpu";
  const bool apart = options.share == "actors";
  const std::uint32_t learners = options.join.empty() ? options.learners : 0;
  const std::size_t count = apart ? options.games : gpus.size();
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    const bool on_cpu = i >= gpus.size() && i >= learners;
    list += text(i > 0 ? "," : "", on_cpu ? "cpu" : gpus[i % gpus.size()]);
  }
  if (!apart && options.games > gpus.size())
    std::printf(
        "studio: %u games take turns on %s, about a millisecond each, and wait for each other. --share "
        "actors lets games play on the CPU, --devices cpu lets them learn there too\n",
        options.games, amount(gpus.size(), "GPU").c_str());
  return list;
}

StudioActorsOptions actors_options(const StudioOptions& options) {
  StudioActorsOptions actors;
  actors.command = options.game;
  actors.folder = options.folder;
  actors.count = actors_of(options);
  actors.first_rank = options.learners;
  actors.restarts = options.restarts;
  actors.patience_s = options.patience_s;
  return actors;
}

// The variables that studio::Settings::from_environment reads; returns their names.
std::vector<std::string> set_environment(const StudioOptions& options, const std::string& devices) {
  const std::pair<const char*, std::string> variables[] = {
      {"IMPRINT_STUDIO_STEPS", text(options.steps)},
      {"IMPRINT_STUDIO_SECONDS", text(options.seconds)},
      {"IMPRINT_STUDIO_FOLDER", options.folder},
      {"IMPRINT_STUDIO_EVERY", text(options.every)},
      {"IMPRINT_STUDIO_CHECKPOINT", text(options.checkpoint)},
      {"IMPRINT_STUDIO_SEED", text(options.seed)},
      {"IMPRINT_STUDIO_REPORT", text(options.report_s)},
      {"IMPRINT_STUDIO_SHARE", options.share},
      {"IMPRINT_STUDIO_EVALUATORS", text(options.evaluators)},
      {"IMPRINT_STUDIO_CURRICULUM", options.curriculum},
      {"IMPRINT_STUDIO_LEARNERS", text(options.learners)},
      {"IMPRINT_STUDIO_ACTORS", text(actors_of(options))},
      {"IMPRINT_STUDIO_LEARNER", options.join},
      {"IMPRINT_STUDIO_LISTEN", options.listen},
      {"IMPRINT_STUDIO_COMPRESS", options.compress ? "1" : "0"},
      {"IMPRINT_STUDIO_LEAGUE", text(options.league)},
      {"IMPRINT_STUDIO_RECORD", text(options.record)},
      {"IMPRINT_STUDIO_REPLAY", options.replay},
      {"IMPRINT_STUDIO_PICTURES", options.pictures},
      {"IMPRINT_STUDIO_REPLAY_RATIO", text(options.replay_ratio)},
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
  job.games = options.games - actors_of(options);
  job.has_checkpoints = options.checkpoint > 0;
  job.patience_s = options.patience_s;
  job.actors = actors_options(options);
  job.command = {options.mpirun, "-q", "--oversubscribe", "--bind-to", "none", "-np", text(job.games)};
  if (::geteuid() == 0) job.command.emplace_back("--allow-run-as-root");
  for (const std::string& name : variables) job.command.insert(job.command.end(), {"-x", name});
  job.command.insert(job.command.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  job.command.insert(job.command.end(), options.game.begin(), options.game.end());
  return job;
}

// mpirun finds a name without a slash in PATH or in the working directory. Games of other computers are
// mpirun's to find.
Result<> check_game(const StudioOptions& options) {
  if (!options.mpirun_options.empty()) return {};
  const std::string& game = options.game.front();
  const auto runs = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (runs(game)) return {};
  if (game.find('/') == std::string::npos) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (runs(folder + '/' + game)) return {};
  }
  if (game.starts_with('-'))
    return make_error(ErrorCode::invalid_argument,
                      text(game, ": found an unknown option. See imprint studio --help."));
  return make_error(ErrorCode::not_found,
                    text("GAME: found '", game, "', expected a program: its path, or a name in PATH."));
}

std::uint64_t newest_checkpoint(const std::string& folder) {
  const auto found = studio::RunFolder(folder).newest();
  return found && *found ? (*found)->number : 0;
}

// Whether the folder has the outcome of this many steps already.
bool is_done(const StudioOptions& options) {
  std::error_code error;
  const auto newest = studio::RunFolder(options.folder).newest();
  if (options.steps == 0 || !newest || !*newest || (*newest)->steps < options.steps) return false;
  const auto brain = std::filesystem::last_write_time(options.folder + "/final.brain", error);
  if (error) return false;
  // An older brain is of a run of fewer steps.
  if (brain < std::filesystem::last_write_time(options.folder + "/checkpoint", error) || error) return false;
  std::printf(
      "studio: the run is done: %llu steps of %llu. Raise --steps to go on; the brain is %s/final.brain\n",
      static_cast<unsigned long long>((*newest)->steps), static_cast<unsigned long long>(options.steps),
      options.folder.c_str());
  return true;
}

}  // namespace

Result<> run_studio(const StudioOptions& options) {
  if (is_done(options)) return {};
  std::error_code error;
  const std::string devices = options.devices == "auto" ? found_devices(options) : options.devices;
  const std::vector<std::string> variables = set_environment(options, devices);
  std::printf("studio: %s on %s; files in %s\n", amount(options.games, "game").c_str(), devices.c_str(),
              options.folder.c_str());
  if (const Result<> noted = note_command(options, newest_checkpoint(options.folder) > 0); !noted.ok())
    std::fprintf(stderr, "studio: %s. The run goes on.\n", noted.error().message.c_str());
  std::fflush(stdout);
  const StudioJob job = job_of(options, variables);
  std::uint32_t in_a_row = 0;
  for (;;) {
    const std::uint64_t before = newest_checkpoint(options.folder);
    for (const char* of_start_before : {"/alive", "/learners"})
      std::filesystem::remove_all(options.folder + of_start_before, error);
    const StudioJobEnd end = run_studio_job(job);
    if (end.kind == StudioJobEnd::Kind::done) {
      if (!end.began || !std::filesystem::exists(options.folder + "/final.brain", error))
        return make_error(ErrorCode::wrong_state,
                          "the game ended without a brain: found no studio::join in it, expected a game that "
                          "calls Member::frame until it returns false.");
      std::printf("studio: the brain is %s/final.brain\n", options.folder.c_str());
      return {};
    }
    if (end.kind == StudioJobEnd::Kind::stopped)
      return make_error(ErrorCode::wrong_state,
                        newest_checkpoint(options.folder) > 0
                            ? text("stopped by a signal. The same command goes on from ", end.reason, ".")
                            : "stopped by a signal, without a checkpoint. The same command begins again.");
    if (end.status == studio::kRefused)
      return make_error(ErrorCode::wrong_state, "a game refused to go on; see its message above.");
    if (!end.began) return make_error(ErrorCode::wrong_state, end.reason);
    in_a_row = newest_checkpoint(options.folder) > before ? 0 : in_a_row + 1;
    if (in_a_row > options.restarts || end.status == 127)
      return make_error(ErrorCode::wrong_state,
                        text(end.reason, " Ended ", amount(in_a_row, "time"),
                             " without a new checkpoint. See the messages above, or run the game alone."));
    const std::uint64_t from = newest_checkpoint(options.folder);
    std::fprintf(stderr, "studio: %s Starts again from %s.\n", end.reason.c_str(),
                 from > 0 ? text("checkpoint ", from).c_str() : "the beginning");
  }
}

Result<> replay_episode(const StudioOptions& given) {
  StudioOptions options = given;
  options.folder.clear();
  options.share = "updates";
  options.games = 1;
  (void)set_environment(options, options.devices == "auto" ? found_devices(options) : options.devices);
  std::vector<char*> arguments;
  for (std::string& word : options.game) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(arguments[0], arguments.data());
  return make_error(ErrorCode::not_found,
                    text("GAME: cannot run '", options.game[0], "': ", std::strerror(errno), "."));
}

Result<> join_studio(const StudioOptions& given) {
  StudioOptions options = given;
  options.share = "actors";
  options.folder.clear();
  options.patience_s = 0;
  (void)set_environment(options, options.devices == "auto" ? found_devices(options) : options.devices);
  std::printf("studio: %s; the learner calls them \"of --join %d\"\n", amount(options.games, "actor").c_str(),
              static_cast<int>(::getpid()));
  std::fflush(stdout);
  StudioActors actors(actors_options(options));
  while (!actors.ended()) {
    actors.watch();
    if (!actors.problem().empty()) return make_error(ErrorCode::wrong_state, actors.problem());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

int run_studio_apart(const StudioOptions& options, const std::string& output) {
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // the run ends with the search that it is of
#endif
  if (!std::freopen(output.c_str(), "a", stdout) || !std::freopen(output.c_str(), "a", stderr)) return 1;
  const auto run = [&]() -> Result<> {
    IMPRINT_ASSIGN(const studio::RunLock lock, studio::RunLock::take(options.folder));
    return run_studio(options);
  };
  const Result<> done = run();
  if (!done.ok()) std::fprintf(stderr, "imprint studio: %s\n", done.error().message.c_str());
  std::fflush(nullptr);
  return done.ok() ? 0 : 1;
}

namespace {

// Options that would have no effect.
Result<> check_options(const StudioOptions& options, const CLI::App& command) {
  const bool apart = options.share == "actors" || options.share == "auto" || !options.join.empty();
  for (const char* name : {"--learners", "--listen", "--replay-ratio"})
    if (!apart && command.count(name) > 0)
      return make_error(ErrorCode::invalid_argument,
                        text(name, ": found it with --share ", options.share, ", expected --share actors."));
  if (options.compress && options.share != "minibatches")
    return make_error(ErrorCode::invalid_argument, text("--compress: found it with --share ", options.share,
                                                        ", expected --share minibatches."));
  if (options.share != "actors" || !options.join.empty()) return {};
  if (options.games <= options.learners)
    return make_error(ErrorCode::invalid_argument,
                      text("--games: found ", options.games, ", expected more than --learners ",
                           options.learners, ": the others are actors."));
  if (options.games <= options.learners + options.evaluators)
    return make_error(
        ErrorCode::invalid_argument,
        text("--games: found ", options.games, ", expected more than --learners ", options.learners,
             " and --evaluators ", options.evaluators, ": an actor or more must send steps."));
  return {};
}

Result<> work(StudioOptions& options, const StudioSearch& search, const CLI::App& command) {
  if (options.game.empty())
    return make_error(ErrorCode::invalid_argument,
                      "GAME: found none, expected a headless game that joins the studio, and its arguments.");
  IMPRINT_CHECK(check_options(options, command));
  IMPRINT_CHECK(check_game(options));
  if (!options.replay.empty()) return replay_episode(options);
  if (!options.join.empty()) return join_studio(options);
  std::error_code error;
  options.folder = std::filesystem::absolute(options.folder, error).string();
  std::filesystem::create_directories(options.folder, error);
  if (error)
    return make_error(ErrorCode::io, text("--folder: cannot make '", options.folder, "': ", error.message()));
  IMPRINT_ASSIGN(const studio::RunLock lock, studio::RunLock::take(options.folder));
  if (!options.curriculum.empty()) {
    options.curriculum = std::filesystem::absolute(options.curriculum).string();
    if (const auto sound = studio::Curriculum::read(options.curriculum); !sound) return sound.error();
  }
  if (options.share == "auto") {
    IMPRINT_ASSIGN(options.share, choose_share(options));
  }
  return search.file.empty() ? run_studio(options) : search_studio(options, search);
}

// CLI11 reads -1 as the largest whole number, and takes NaN for any.
const CLI::Validator kCount(
    [](std::string& given) {
      return given.starts_with('-') ? text("found ", given, ", expected a whole number of 0 or more") : "";
    },
    "");
const CLI::Validator kSeconds(
    [](std::string& given) {
      double seconds = 0;
      const bool sound = CLI::detail::lexical_cast(given, seconds) && seconds >= 0 && std::isfinite(seconds);
      return sound ? "" : text("found ", given, ", expected seconds, 0 or more");
    },
    "");

void add_actors(CLI::App& command, StudioOptions& options) {
  command
      .add_option("--learners", options.learners,
                  "games that learn from the samples of the others, the actors")
      ->check(CLI::Range(1, 100000))
      ->option_text("N=1");
  command.add_option("--listen", options.listen, "where learners hear actors; 0.0.0.0 for other computers")
      ->option_text("HOST[:PORT]=127.0.0.1");
  command
      .add_option("--replay-ratio", options.replay_ratio,
                  "DQN and SAC: minibatches per step of the actors, which wait for them")
      ->check(CLI::Range(0.001, 4.0))
      ->option_text("N=1");
  command
      .add_option("--join", options.join,
                  "all games are actors of a learner that runs already, perhaps on another computer")
      ->option_text("HOST:PORT");
}

void add_episodes(CLI::App& command, StudioOptions& options) {
  command
      .add_option("--league", options.league,
                  "every N-th checkpoint becomes an opponent for games of two sides; 0: none")
      ->check(kCount)
      ->option_text("N=0");
  command
      .add_option("--record", options.record,
                  "every N-th episode of each game becomes a file in DIR/episodes; 0: none")
      ->check(kCount)
      ->option_text("N=0");
  CLI::Option* replay = command
                            .add_option("--replay", options.replay,
                                        "one game plays the episode of this file again, and learns nothing")
                            ->check(CLI::ExistingFile)
                            ->option_text("FILE");
  command.add_option("--pictures", options.pictures, "PNG files of the replay, where the game draws any")
      ->needs(replay)
      ->option_text("DIR");
}

void add_search(CLI::App& command, StudioSearch& search) {
  CLI::Option* file = command.add_option("--search", search.file, "file of the game's options to search")
                          ->check(CLI::ExistingFile)
                          ->option_text("FILE");
  command.add_option("--how", search.how, "kind of search: random, grid, halving or population")
      ->needs(file)
      ->check(CLI::IsMember({"random", "grid", "halving", "population"}))
      ->option_text("KIND=random");
  command.add_option("--trials", search.trials, "trials of the search")
      ->needs(file)
      ->check(CLI::Range(1, 10'000))
      ->option_text("N=8");
  command.add_option("--rounds", search.rounds, "rounds of halving and population")
      ->needs(file)
      ->check(CLI::Range(1, 100))
      ->option_text("N=3");
  command.add_option("--parallel", search.parallel, "trials at a time")
      ->needs(file)
      ->check(CLI::Range(1, 1000))
      ->option_text("N=1");
}

}  // namespace

void add_studio(CLI::App& app) {
  CLI::App* command = app.add_subcommand("studio", "train a brain in many games at once");
  auto options = std::make_shared<StudioOptions>();
  command->add_option("--games", options->games, "processes that play and learn")
      ->check(CLI::Range(1, 100000))
      ->option_text("N=2");
  command->add_option("--steps", options->steps, "decisions of all games; 0: the game ends the run")
      ->check(kCount)
      ->option_text("N=0");
  command
      ->add_option("--folder", options->folder,
                   "for checkpoints, curve.csv and final.brain; a run in it goes on")
      ->option_text("DIR=studio-run");
  command
      ->add_option(
          "--devices", options->devices,
          "devices that the games of a computer take in turn: 0,1 or cpu; auto: all GPUs, or the CPU if "
          "there is none; actors beyond the number of GPUs play on the CPU")
      ->option_text("LIST=auto");
  command
      ->add_option(
          "--share", options->share,
          "updates: average the brains after each learn step; minibatches: learn the same minibatches, "
          "PPO without a cell; actors: games play and send their steps to --learners; auto: by the speed "
          "of a short run of each")
      ->check(CLI::IsMember({"updates", "minibatches", "actors", "auto"}))
      ->option_text("KIND=updates");
  command->add_flag("--compress", options->compress,
                    "with --share minibatches: gradients travel as float16, for games of several computers");
  add_actors(*command, *options);
  add_episodes(*command, *options);
  command
      ->add_option("--every", options->every,
                   "learn steps between exchanges; raise it where waits and reduces take most of the time")
      ->check(CLI::Range(1, 1'000'000))
      ->option_text("N=1");
  command->add_option("--checkpoint", options->checkpoint, "exchanges between checkpoints; 0: none")
      ->check(kCount)
      ->option_text("N=50");
  command->add_option("--evaluators", options->evaluators, "games that only play and learn nothing")
      ->check(kCount)
      ->option_text("N=0");
  command->add_option("--curriculum", options->curriculum, "file of lessons and parameters of worlds")
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  auto search = std::make_shared<StudioSearch>();
  add_search(*command, *search);
  command->add_option("--seconds", options->seconds, "length of the run; 0: no limit")
      ->check(kSeconds)
      ->option_text("S=0");
  command->add_option("--seed", options->seed, "seed of the games' worlds")
      ->check(kCount)
      ->option_text("N=1");
  command
      ->add_option("--patience", options->patience_s,
                   "seconds without an exchange until the job is started again; 0: no limit")
      ->check(kSeconds)
      ->option_text("S=60");
  command
      ->add_option("--restarts", options->restarts, "starts in a row that may end without a new checkpoint")
      ->check(kCount)
      ->option_text("N=10");
  command->add_option("--report", options->report_s, "seconds between lines; 0: none")
      ->check(kSeconds)
      ->option_text("S=1");
  command->add_option("--mpirun", options->mpirun, "Open MPI's program")->option_text("PROGRAM=mpirun");
  command
      ->add_option("--mpirun-option", options->mpirun_options,
                   "one more word for mpirun; may be repeated: --mpirun-option=--hostfile "
                   "--mpirun-option=FILE")
      ->allow_extra_args(false)
      ->type_name("WORD");
  command->prefix_command();  // the game's own options are not read here
  set_work(*command, [options, search, command]() -> Result<> {
    options->game = command->remaining();
    if (!options->game.empty() && options->game.front() == "--") options->game.erase(options->game.begin());
    return work(*options, *search, *command);
  });
}

}  // namespace imprint::tools
