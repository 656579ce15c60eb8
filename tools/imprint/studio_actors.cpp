#include "tools/imprint/studio_actors.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "compute/base/text.h"
#include "tools/imprint/seconds.h"
#include "tools/studio/exit_status.h"
#include "tools/studio/run_folder.h"

namespace imprint::tools {
namespace {

constexpr double kPauseS = 0.5;       // between an end and the next start
constexpr double kLivesS = 5;         // an actor that played for so long counts as healthy
constexpr double kLookAtNoteS = 0.2;  // between looks at an actor's note

pid_t start_actor_game(const std::vector<std::string>& words, std::uint32_t number) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string name = text(number);
  const pid_t child = ::fork();
  if (child != 0) return child;
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  leave_terminal();
  ::setenv("IMPRINT_STUDIO_ACTOR", name.c_str(), 1);
  ::execvp(arguments[0], arguments.data());
  const std::string problem =
      text("imprint studio: cannot run '", words[0], "': ", std::strerror(errno), "\n");
  (void)!::write(STDERR_FILENO, problem.data(), problem.size());
  ::_exit(127);
}

}  // namespace

// Reading from the terminal would stop a process of another group.
void leave_terminal() {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
}

StudioActors::StudioActors(StudioActorsOptions options) : options_(std::move(options)) {
  actors_.resize(options_.count);
  for (std::uint32_t number = 0; number < options_.count; ++number) {
    actors_[number].number = number;
    start(actors_[number]);
  }
}

StudioActors::~StudioActors() {
  for (Actor& actor : actors_) {
    if (actor.process <= 0) continue;
    ::kill(actor.process, SIGKILL);
    ::waitpid(actor.process, nullptr, 0);
  }
}

void StudioActors::start(Actor& actor) {
  actor.process = start_actor_game(options_.command, actor.number);
  actor.wants_start = false;
  actor.frames = 0;
  actor.started = actor.moved = std::chrono::steady_clock::now();
  ++actor.starts;
}

// By its learner. Where actors have no folder, status 0 says so. The note may be of another process than the
// one started: a script that runs the game.
bool StudioActors::was_told_to_end(const Actor& actor) const {
  if (options_.folder.empty()) return true;
  const auto alive = studio::read_alive(options_.folder, options_.first_rank + actor.number);
  return alive && alive->over != 0;
}

void StudioActors::ended_with(Actor& actor, int status) {
  const pid_t process = std::exchange(actor.process, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && was_told_to_end(actor)) {
    actor.given_up = true;
    return;
  }
  const std::string how = WIFEXITED(status)
                              ? text("ended with status ", WEXITSTATUS(status), " before the run was over")
                              : text("was ended by signal ", WTERMSIG(status));
  if (WIFEXITED(status) && (WEXITSTATUS(status) == studio::kRefused || WEXITSTATUS(status) == 127)) {
    actor.given_up = true;
    problem_ =
        text("actor ", actor.number, " (process ", process, ") refused to go on; see its message above.");
    return;
  }
  const bool alone = WIFEXITED(status) && WEXITSTATUS(status) == studio::kAlone;
  if (seconds_since(actor.started) > kLivesS && !alone) actor.starts = 1;
  actor.given_up = actor.starts > options_.restarts;
  actor.wants_start = !actor.given_up;
  std::fprintf(stderr, "studio: actor %u (process %d) %s. %s\n", actor.number, static_cast<int>(process),
               how.c_str(),
               actor.given_up ? "It is given up: it ended too often." : "It starts again; the run goes on.");
  actor.moved = std::chrono::steady_clock::now();
  if (std::ranges::all_of(actors_, [](const Actor& other) { return other.given_up; }))
    problem_ = "no actor is left.";
}

void StudioActors::look_at(Actor& actor) {
  if (actor.process <= 0) {
    if (actor.wants_start && seconds_since(actor.moved) > kPauseS) start(actor);
    return;
  }
  int status = 0;
  if (::waitpid(actor.process, &status, WNOHANG) == actor.process) return ended_with(actor, status);
  if (options_.patience_s <= 0 || seconds_since(actor.looked) < kLookAtNoteS) return;
  actor.looked = std::chrono::steady_clock::now();
  const auto alive = studio::read_alive(options_.folder, options_.first_rank + actor.number);
  const std::uint64_t frames = alive ? alive->exchanges : 0;
  if (frames != actor.frames) {
    actor.frames = frames;
    actor.moved = std::chrono::steady_clock::now();
  } else if (seconds_since(actor.moved) > options_.patience_s) {
    std::fprintf(stderr, "studio: actor %u (process %d) hangs: no frame in %g s. It is ended.\n",
                 actor.number, static_cast<int>(actor.process), options_.patience_s);
    ::kill(actor.process, SIGKILL);
    actor.moved = std::chrono::steady_clock::now();
  }
}

void StudioActors::watch() {
  for (Actor& actor : actors_) look_at(actor);
}

bool StudioActors::ended() const {
  return std::ranges::all_of(actors_,
                             [](const Actor& actor) { return actor.process <= 0 && !actor.wants_start; });
}

void StudioActors::wait_for_end(double seconds) {
  for (Actor& actor : actors_) actor.wants_start = false;
  for (const auto began = std::chrono::steady_clock::now(); !ended() && seconds_since(began) < seconds;) {
    for (Actor& actor : actors_) {
      int status = 0;
      if (actor.process > 0 && ::waitpid(actor.process, &status, WNOHANG) == actor.process) actor.process = 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace imprint::tools
