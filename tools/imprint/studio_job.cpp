#include "tools/imprint/studio_job.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "compute/base/text.h"
#include "tools/imprint/seconds.h"
#include "tools/studio/exit_status.h"
#include "tools/studio/run_folder.h"

namespace imprint::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGraceS = 5;   // from SIGTERM to SIGKILL
constexpr double kLookS = 0.2;  // between looks at the notes of all ranks
constexpr double kStopS = 30;   // from the first signal until the job is ended
constexpr double kBeginS = 60;  // of patience at least, until a game has joined
constexpr double kTwiceS = 1;   // signals this close are one: `timeout` sends each twice

volatile sig_atomic_t stop_signals = 0;

void note_stop(int) { stop_signals = stop_signals + 1; }

pid_t start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  leave_terminal();
  ::execvp(arguments[0], arguments.data());
  std::string problem = text("imprint studio: cannot run '", words[0], "': ", std::strerror(errno), "\n");
  (void)!::write(STDERR_FILENO, problem.data(), problem.size());
  ::_exit(127);
}

// Asks a run to end at the first signal.
class Stop {
 public:
  explicit Stop(const StudioJob& job) : job_(job) {}
  bool wanted() const { return wanted_; }
  // Whether the job ends at once.
  bool now() {
    if (stop_signals == 0) return false;
    if (!wanted_) {
      wanted_ = true;
      since_ = Clock::now();
      if (!job_.has_checkpoints || !studio::ask_to_end(job_.folder)) return true;
      std::printf(
          "studio: stops after this exchange, with a checkpoint. Another signal ends the run at once\n");
      std::fflush(stdout);
    }
    if (seconds_since(since_) < kTwiceS) stop_signals = 1;
    return stop_signals > 1 || seconds_since(since_) > kStopS;
  }

 private:
  const StudioJob& job_;
  bool wanted_ = false;
  Clock::time_point since_{};
};

// mpirun passes SIGTERM on to its games, and kills those that stay.
void end_job(pid_t child) {
  ::kill(child, SIGTERM);
  for (const Clock::time_point began = Clock::now(); seconds_since(began) < kGraceS;) {
    if (::waitpid(child, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// The sum of all ranks' exchanges, which rises while the run goes on.
std::uint64_t progress_of(const StudioJob& job) {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < job.games; ++rank)
    if (const auto alive = studio::read_alive(job.folder, rank)) sum += 1 + alive->exchanges;
  return sum;
}

// Stopped by a signal or a debugger; of another computer it is not known.
bool is_stopped(const studio::Alive& alive) {
  char here[sizeof alive.computer] = {};
  ::gethostname(here, sizeof here - 1);
  if (std::strcmp(here, alive.computer) != 0) return false;
  std::ifstream file(text("/proc/", alive.process, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t state = line.rfind(") ");
  return state != std::string::npos && state + 2 < line.size() &&
         std::strchr("Tt", line[state + 2]) != nullptr;
}

std::string hung_text(const StudioJob& job, std::uint64_t progress, double patience_s) {
  if (progress == 0)
    return text("no game has joined the run in ", patience_s,
                " s. The job is ended. Raise --patience if a game needs longer to begin.");
  std::string names;
  for (std::uint32_t rank = 0; rank < job.games; ++rank) {
    const auto alive = studio::read_alive(job.folder, rank);
    // A rank that stands still within an exchange has arrived at it.
    if (!alive || (alive->waits && !is_stopped(*alive))) continue;
    names += text(names.empty() ? "" : ", ", "rank ", rank, " (process ", alive->process, " on ",
                  alive->computer, ")");
  }
  if (names.empty()) names = "unknown";
  return text("no exchange in ", patience_s, " s. Not arrived: ", names,
              ". The job is ended. Raise --patience if a game needs longer from one exchange to the next.");
}

std::string failed_text(int status, bool began) {
  if (status == 127) return "mpirun did not start. Install openmpi-bin (Debian).";
  if (!began)
    return text("mpirun ended with status ", status,
                " before any game had joined the run; see the message above.");
  if (status > 128) return text("a game was ended by signal ", status - 128, ".");
  return text("a game ended with status ", status, " before the run was over.");
}

}  // namespace

StudioJobEnd run_studio_job(const StudioJob& job) {
  struct sigaction action {};
  action.sa_handler = note_stop;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const pid_t child = start(job.command);
  if (child < 0) return {StudioJobEnd::Kind::failed, 127, text("fork: ", std::strerror(errno))};
  StudioActors actors(job.actors);
  Stop stop(job);
  std::uint64_t progress = progress_of(job);
  Clock::time_point moved = Clock::now(), looked = moved;
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == 0) {
        actors.wait_for_end(kGraceS);
        if (stop.wanted()) return {StudioJobEnd::Kind::stopped, 0, "a checkpoint of its end"};
        return {StudioJobEnd::Kind::done, 0, "", progress_of(job) > 0};
      }
      if (stop.wanted()) return {StudioJobEnd::Kind::stopped, code, "the newest checkpoint"};
      const bool began = progress_of(job) > 0 || code > 128;  // what ends by a signal may fare better
      return {StudioJobEnd::Kind::failed, code, failed_text(code, began), began};
    }
    actors.watch();
    if (!actors.problem().empty()) {
      end_job(child);
      std::fprintf(stderr, "studio: %s\n", actors.problem().c_str());
      return {StudioJobEnd::Kind::failed, studio::kRefused, actors.problem()};
    }
    if (stop.now()) {
      end_job(child);
      return {StudioJobEnd::Kind::stopped, 1, "the newest checkpoint"};
    }
    // mpirun and the games' own beginning take their time.
    const double patience_s = progress > 0 ? job.patience_s : std::max(job.patience_s, kBeginS);
    const bool looks = seconds_since(looked) > kLookS;
    if (looks) looked = Clock::now();
    if (const std::uint64_t now = looks ? progress_of(job) : progress; now != progress) {
      progress = now;
      moved = Clock::now();
    } else if (job.patience_s > 0 && seconds_since(moved) > patience_s) {
      const std::string reason = hung_text(job, progress, patience_s);
      end_job(child);
      return {StudioJobEnd::Kind::hung, 1, reason};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace imprint::tools
