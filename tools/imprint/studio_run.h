#pragma once
// A run of the studio, and a search over settings that is made of runs.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::tools {

struct StudioOptions {
  std::uint32_t games = 2, every = 1, evaluators = 0, checkpoint = 50, restarts = 10;
  std::uint32_t learners = 1;  // of the games, with share "actors"
  std::string listen = "127.0.0.1", join;
  double replay_ratio = 1;
  std::uint32_t record = 0, league = 0;
  bool compress = false;  // with share "minibatches"
  std::string replay, pictures;
  std::uint64_t steps = 0, seed = 1;
  double seconds = 0;  // 0: any
  double patience_s = 60, report_s = 1;
  std::string curriculum, folder = "studio-run", devices = "auto", mpirun = "mpirun", share = "updates";
  std::vector<std::string> mpirun_options, game;
};

// options.folder and options.curriculum are absolute below, and the folder is there.
//
// Starts the games until the run is over. Once per process: it sets the environment.
Result<> run_studio(const StudioOptions& options);
// The same in a process of its own, whose output goes to a file. Returns its exit status.
int run_studio_apart(const StudioOptions& options, const std::string& output);
// The game plays the episode of options.replay, instead of this process.
Result<> replay_episode(const StudioOptions& options);
// Only actors, for learners of another computer: options.join. Until the run is over.
Result<> join_studio(const StudioOptions& options);
// "updates", "minibatches" or "actors", by the speed of a short run of each; says why. A run that goes on
// keeps the way that it began with. studio_auto.cpp
Result<std::string> choose_share(const StudioOptions& options);

struct StudioSearch {
  std::string file;  // the options of the game that are searched
  std::string how = "random";
  std::uint32_t trials = 8, rounds = 3, parallel = 1;
};
// Trials in FOLDER/trial-N, the table in FOLDER/search.csv, the best brain in FOLDER/final.brain.
Result<> search_studio(const StudioOptions& options, const StudioSearch& search);

}  // namespace imprint::tools
