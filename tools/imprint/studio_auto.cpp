// imprint studio --share auto: a short run of each way to share decides.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "tools/imprint/seconds.h"
#include "tools/imprint/studio_run.h"
#include "tools/studio/run_folder.h"

namespace imprint::tools {
namespace {

constexpr double kTriedSeconds = 2.5;
// Minibatches give the result of one process, whatever the number of games; that is worth this much speed.
constexpr double kWorthSpeed = 0.8;
// Steps of older weights teach less. So much faster they must be.
constexpr double kWorthLag = 1.25;
// A way whose games take this many times as long as a whole run of another way, start included, is given up.
constexpr double kTooSlow = 3, kLeastPatienceS = 10;

struct TriedWay {
  const char* share = nullptr;
  double speed = 0;    // decisions per second, without the first quarter of the run
  double seconds = 0;  // of the run, with its start
};

std::string tried_folder(const StudioOptions& options, const char* share) {
  return text(options.folder, "/tried-", share);
}

double speed_of(const std::string& curve) {
  std::vector<std::pair<double, double>> rows;  // seconds, steps
  std::ifstream file(curve);
  for (std::string line; std::getline(file, line);) {
    double exchange = 0, steps = 0, seconds = 0;
    if (std::sscanf(line.c_str(), "%lf,%lf,%lf", &exchange, &steps, &seconds) == 3)
      rows.emplace_back(seconds, steps);
  }
  if (rows.size() < 2) return 0;
  const auto& from = rows[rows.size() / 4];
  return (rows.back().second - from.second) / std::max(rows.back().first - from.first, 1e-9);
}

// most_s: after which the run is ended. 0: any time.
TriedWay try_way(const StudioOptions& given, const char* share, double most_s) {
  StudioOptions options = given;
  options.share = share;
  options.seconds = kTriedSeconds;
  options.steps = options.checkpoint = options.restarts = options.league = options.record = 0;
  options.report_s = 0;
  options.folder = tried_folder(given, share);
  std::error_code ignored;
  std::filesystem::remove_all(options.folder, ignored);
  std::filesystem::create_directories(options.folder, ignored);
  std::printf("studio: tries %s: ", share);
  std::fflush(nullptr);
  const auto began = std::chrono::steady_clock::now();
  const pid_t process = ::fork();
  if (process == 0) ::_exit(run_studio_apart(options, options.folder + "/log.txt"));
  int status = 1;
  bool too_slow = false;
  while (process > 0 && ::waitpid(process, &status, WNOHANG) == 0) {
    if (most_s > 0 && !too_slow && seconds_since(began) > most_s) too_slow = ::kill(process, SIGTERM) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  TriedWay tried{share, 0, seconds_since(began)};
  if (status == 0) tried.speed = speed_of(options.folder + "/curve.csv");
  if (tried.speed > 0) {
    std::printf("%.0f steps per second\n", tried.speed);
    std::filesystem::remove_all(options.folder, ignored);
  } else if (too_slow) {
    std::printf("given up after %.0f s\n", most_s);
  } else {
    std::printf("no steps, see %s/log.txt\n", options.folder.c_str());
  }
  return tried;
}

}  // namespace

Result<std::string> choose_share(const StudioOptions& options) {
  const std::string note = options.folder + "/share";
  const auto earlier = studio::RunFolder(options.folder).newest();
  std::string before;
  if (std::ifstream file(note); earlier && *earlier && file >> before &&
                                (before == "actors" || before == "updates" || before == "minibatches")) {
    std::printf("studio: shares %s, as the run did before\n", before.c_str());
    return before;
  }
  TriedWay actors, updates, minibatches;
  double most_s = 0;
  const auto try_next = [&](const char* share) {
    const TriedWay tried = try_way(options, share, most_s);
    const double limit = std::max(kTooSlow * tried.seconds, kLeastPatienceS);
    if (tried.speed > 0) most_s = most_s > 0 ? std::min(most_s, limit) : limit;
    return tried;
  };
  updates = try_next("updates");
  if (options.games > options.learners + options.evaluators) actors = try_next("actors");
  minibatches = try_next("minibatches");
  const double together = std::max(updates.speed, minibatches.speed);
  if (std::max(actors.speed, together) == 0)
    return make_error(ErrorCode::wrong_state, text("--share auto: found no way that works: see ",
                                                   tried_folder(options, "updates"), "/log.txt"));
  std::string chosen = "updates", why = "minibatches take more than a fifth of the speed";
  if (actors.speed > kWorthLag * together) {
    chosen = "actors";
    why = text("at ", kWorthLag, " times the speed of the other ways they are worth steps of older weights");
  } else if (minibatches.speed >= kWorthSpeed * updates.speed) {
    chosen = "minibatches";
    why = "the number of games changes nothing, for at most a fifth of the speed";
  } else if (minibatches.speed == 0) {
    why = "minibatches do not work here";
  }
  std::printf("studio: shares %s: %s\n", chosen.c_str(), why.c_str());
  const std::string line = chosen + "\n";
  IMPRINT_CHECK(write_file_atomic(note, std::as_bytes(std::span(line))));
  return chosen;
}

}  // namespace imprint::tools
