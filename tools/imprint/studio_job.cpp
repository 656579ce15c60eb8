#include "tools/imprint/studio_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
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

bool is_here(const studio::Alive& alive) {
  char here[sizeof alive.computer] = {};
  ::gethostname(here, sizeof here - 1);
  return std::strcmp(here, alive.computer) == 0;
}

std::string name_of(std::uint32_t rank, const studio::Alive& alive) {
  return text("rank ", rank, " (process ", alive.process, " on ", alive.computer, ")");
}

// Stopped by a signal or a debugger; of another computer it is not known.
bool is_stopped(const studio::Alive& alive) {
  if (!is_here(alive)) return false;
  std::ifstream file(text("/proc/", alive.process, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t state = line.rfind(") ");
  return state != std::string::npos && state + 2 < line.size() &&
         std::strchr("Tt", line[state + 2]) != nullptr;
}

// Which games of this computer end first: mpirun ends the others at once and names none.
class FirstEnds {
 public:
  explicit FirstEnds(const StudioJob& job) : job_(job), games_(job.games) {}
  FirstEnds(const FirstEnds&) = delete;
  FirstEnds& operator=(const FirstEnds&) = delete;
  ~FirstEnds() {
    for (const Game& game : games_)
      if (game.file >= 0) ::close(game.file);
  }

  // Games that have joined since.
  void look() {
#if defined(SYS_pidfd_open)
    for (std::uint32_t rank = 0; rank < job_.games; ++rank) {
      if (games_[rank].file >= 0) continue;
      const auto alive = studio::read_alive(job_.folder, rank);
      if (!alive || !is_here(*alive)) continue;
      games_[rank] = {static_cast<int>(::syscall(SYS_pidfd_open, alive->process, 0)), name_of(rank, *alive)};
    }
#endif
  }
  // Returns early when one ends.
  void wait(int milliseconds) {
    if (!names_.empty()) return std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    std::vector<pollfd> watched;
    for (const Game& game : games_) watched.push_back({game.file, POLLIN, 0});
    if (::poll(watched.data(), watched.size(), milliseconds) <= 0) return;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].revents == 0) continue;
      names_ += text(ended++ > 0 ? ", " : "", games_[i].name);
    }
  }
  const std::string& names() const { return names_; }

 private:
  struct Game {
    int file = -1;
    std::string name;
  };
  const StudioJob& job_;
  std::vector<Game> games_;  // by rank
  std::string names_;
};

// The sum of all ranks' exchanges, which rises while the run goes on.
std::uint64_t progress_of(const StudioJob& job) {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < job.games; ++rank)
    if (const auto alive = studio::read_alive(job.folder, rank)) sum += 1 + alive->exchanges;
  return sum;
}

std::string hung_text(const StudioJob& job, std::uint64_t progress, double patience_s) {
  if (progress == 0)
    return text("no game has joined the run in ", patience_s,
                " s. The job is ended. Raise --patience if a game needs longer to begin.");
  // A game that still plays calls Member::frame meanwhile.
  constexpr auto kFrames = std::chrono::milliseconds(300);
  std::map<std::uint32_t, std::uint64_t> frames;
  for (std::uint32_t rank = 0; rank < job.games; ++rank)
    if (const auto alive = studio::read_alive(job.folder, rank)) frames[rank] = alive->frames;
  std::this_thread::sleep_for(kFrames);
  std::string names;
  bool all_play = true;
  for (std::uint32_t rank = 0; rank < job.games; ++rank) {
    const auto alive = studio::read_alive(job.folder, rank);
    // A rank that stands still within an exchange has arrived at it.
    if (!alive || (alive->waits && !is_stopped(*alive))) continue;
    const bool plays = alive->frames != frames[rank];
    all_play = all_play && plays;
    names += text(names.empty() ? "" : ", ", name_of(rank, *alive), plays ? ", whose frames go on" : "");
  }
  const char* remedy = "Raise --patience if a game needs longer from one exchange to the next.";
  if (!names.empty() && all_play)
    remedy =
        "They play and have learned nothing: see that their agents observe, act and get rewards, or raise "
        "--patience.";
  if (names.empty()) names = "unknown";
  return text("no exchange in ", patience_s, " s. Not arrived: ", names, ". The job is ended. ", remedy);
}

std::string failed_text(int status, bool began, const std::string& first) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127) return "mpirun did not start. Install openmpi-bin (Debian).";
  if (WIFSIGNALED(status)) return text("mpirun was ended by signal ", WTERMSIG(status), ".");
  if (!began)
    return text(
        "mpirun ended with status ", code,
        " before any game had joined the run; see the message above. If there is none, run the game "
        "alone: it must call studio::join, and Member::frame until that returns false. Or start it by "
        "mpirun, which says more there.");
  const std::string who = first.empty() ? "" : text(" First to end: ", first, ".");
  if (code > 128) return text("a game was ended by signal ", code - 128, ".", who);
  return text("a game ended with status ", code, " before the run was over.", who);
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
  FirstEnds first(job);
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
      return {StudioJobEnd::Kind::failed, code, failed_text(status, began, first.names()), began};
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
    if (looks) {
      looked = Clock::now();
      first.look();
    }
    if (const std::uint64_t now = looks ? progress_of(job) : progress; now != progress) {
      progress = now;
      moved = Clock::now();
    } else if (job.patience_s > 0 && seconds_since(moved) > patience_s) {
      const std::string reason = hung_text(job, progress, patience_s);
      end_job(child);
      return {StudioJobEnd::Kind::hung, 1, reason};
    }
    first.wait(20);
  }
}

}  // namespace imprint::tools
