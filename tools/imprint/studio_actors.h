#pragma once
// The actors of `imprint studio --share actors`: processes of this computer. One that dies or hangs is
// started again, and the others and the learner go on meanwhile.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace imprint::tools {

struct StudioActorsOptions {
  std::vector<std::string> command;  // the game and its arguments
  std::string folder;                // tools/studio/run_folder.h
  std::uint32_t count = 0;
  std::uint32_t first_rank = 1;  // of their notes: learners come first
  std::uint32_t restarts = 10;   // of one actor in a row without a sign of life in between
  double patience_s = 60;        // without a frame, until an actor counts as hung; 0: any
};

// In a child before exec: Ctrl-C in the terminal reaches `imprint studio` alone, which lets the run end well.
void leave_terminal();

class StudioActors {
 public:
  explicit StudioActors(StudioActorsOptions options);  // starts them
  ~StudioActors();                                     // kills those that are left
  StudioActors(const StudioActors&) = delete;
  StudioActors& operator=(const StudioActors&) = delete;

  void watch();  // now and then: tells of each end, and starts again
  // "" or why no start helps: an actor refused, or none is left.
  const std::string& problem() const { return problem_; }
  bool ended() const;  // all, by themselves or given up
  void wait_for_end(double seconds);

 private:
  struct Actor {
    std::uint32_t number = 0;
    pid_t process = 0;  // 0: ended
    std::uint32_t starts = 0;
    std::uint64_t frames = 0;  // as noted
    std::chrono::steady_clock::time_point moved, started, looked;
    bool given_up = false, wants_start = false;
  };
  void start(Actor& actor);
  bool was_told_to_end(const Actor& actor) const;
  void ended_with(Actor& actor, int status);
  void look_at(Actor& actor);

  const StudioActorsOptions options_;
  std::vector<Actor> actors_;
  std::string problem_;
};

}  // namespace imprint::tools
