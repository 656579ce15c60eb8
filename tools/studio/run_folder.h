#pragma once
// The files of a run. No MPI: rank 0 writes what is for all.
//
//   checkpoints/N/rank-R.brain   each rank's brain, as brain_save writes it
//   checkpoint                   the newest complete one, in words
//   checkpoints/N/checkpoint     the same of each complete one
//   checkpoints/N/lesson         how far the curriculum is (curriculum.h)
//   curve.csv                    one row per exchange
//   events.out.tfevents.studio   the same, and the learner's figures, for TensorBoard
//   command                      options and game of the newest start
//   league/N.brain, league.csv   opponents and their ratings (league.h)
//   episodes/R-N-E.episode       recorded ones of rank R: E since checkpoint N (episode_log.h)
//   learners/R                   where a learner hears its actors
//   alive/R                      how far each rank is: for `imprint studio`, which looks for games that hang
//   final.brain                  the outcome

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/result.h"

namespace imprint::studio {

struct Checkpoint {
  std::uint64_t number = 0, exchanges = 0, steps = 0;
  std::uint32_t ranks = 0;
};

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  bool none() const { return path_.empty(); }
  std::string brain_of(std::uint64_t checkpoint, std::uint32_t rank) const;
  std::string final_brain() const { return path_ + "/final.brain"; }
  // Where a learner hears its actors: a file with HOST:PORT.
  std::string learner(std::uint32_t rank) const;
  // Recorded ones. number: of the checkpoint before, then since it (32 bits).
  std::string episode(std::uint32_t rank, std::uint64_t number) const;
  std::string league_brain(const std::string& name) const;  // an entry's
  std::string league_of(std::uint64_t checkpoint) const;    // the league's state
  std::string curve() const { return path_ + "/curve.csv"; }
  std::string events() const { return path_ + "/events.out.tfevents.studio"; }
  // How the run was started last, one word per line.
  std::string command() const { return path_ + "/command"; }

  // Subfolders by what the run does.
  struct Use {
    bool league = false, episodes = false, learners = false;
  };
  Result<> make_folders(const Use& use) const;
  Result<> make_checkpoint_folder(std::uint64_t number) const;
  // The newest complete one; none in a new folder. Errors: corrupt_file.
  Result<std::optional<Checkpoint>> newest() const;
  // The one before `number`, if it is complete.
  std::optional<Checkpoint> before(std::uint64_t number) const;
  // Once all ranks' brains of it are on disk. Removes checkpoints before the one before.
  Result<> complete(const Checkpoint& checkpoint) const;
  // Drops rows of what came after the checkpoint, which a resumed run makes again.
  Result<> cut_curve(const Checkpoint& from) const;
  // Numbers of a checkpoint's curriculum; `otherwise` where there are none.
  std::vector<double> read_lesson(std::uint64_t checkpoint, const std::vector<double>& otherwise) const;
  Result<> write_lesson(std::uint64_t checkpoint, const std::vector<double>& numbers) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A run's folder is for one run at a time. The lock ends with the process, however that ends.
class RunLock {
 public:
  // Errors: wrong_state (another run).
  static Result<RunLock> take(const std::string& folder);
  RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

 private:
  explicit RunLock(int file) : file_(file) {}
  int file_;
};

// How far a rank is. Fixed size; written through memory that the file maps.
struct Alive {
  std::uint64_t exchanges = 0;  // of an actor: frames
  std::uint32_t waits = 0;      // 1: for the other ranks
  std::uint32_t process = 0;    // 0: not begun
  char computer[64] = {};
  std::uint32_t asked_to_end = 0;  // of rank 0, by `imprint studio`
  std::uint32_t over = 0;          // of an actor: its learner said that the run is over
  std::uint64_t frames = 0;        // calls of Member::frame
};

// A rank's own note. Without a value where there is no such folder, as on another computer. Errors: io (a
// full disk).
class AliveNote {
 public:
  static Result<std::shared_ptr<AliveNote>> create(const RunFolder& folder, std::uint32_t rank,
                                                   const std::string& computer);
  ~AliveNote();
  AliveNote(const AliveNote&) = delete;
  AliveNote& operator=(const AliveNote&) = delete;
  void set(std::uint64_t exchanges, bool waits);
  void add_frame();
  void set_over();
  bool asked_to_end() const;

 private:
  explicit AliveNote(Alive* alive) : alive_(alive) {}
  Alive* alive_;
};
std::optional<Alive> read_alive(const std::string& folder, std::uint32_t rank);
// The run ends at its next exchange, with a checkpoint. False: no rank 0 has begun.
bool ask_to_end(const std::string& folder);

}  // namespace imprint::studio
