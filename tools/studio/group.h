#pragma once
// The processes of a run: a thin form of MPI. The only file of the studio that calls MPI is group.cpp.
//
// Collective functions are called by all ranks in the same order. An error of MPI ends the job. An actor
// (Share::actors) is no process of MPI, nor is a game that replays an episode: it is alone in its group.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/studio/exit_status.h"

namespace imprint::studio {

class Group {
 public:
  static Group& all();  // starts MPI at the first call

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t adders() const { return adders_; }          // ranks that take part in sums: the first ones
  std::uint32_t local_rank() const { return local_rank_; }  // among the ranks of this computer
  const std::string& computer() const { return computer_; }
  bool is_on_one_computer() const { return is_on_one_computer_; }  // all ranks

  // ---- collective ----
  void barrier();
  // The same in two steps: this rank is here; have all come? Between them nothing collective.
  void arrive();
  bool all_arrived();
  // The last `count` ranks call add(), add_compressed() and take_largest() no more. Once, in all ranks.
  void leave_out_of_sums(std::uint32_t count);
  void broadcast(std::span<std::byte> bytes);               // rank 0's
  std::vector<double> gather(std::span<const double> own);  // [ranks * own.size()], in all ranks
  std::vector<std::uint64_t> gather(std::span<const std::uint64_t> own);
  double seconds_in_add() const { return seconds_in_add_; }          // since the start
  void count_adding(double seconds) { seconds_in_add_ += seconds; }  // made elsewhere
  void add(std::span<float> numbers);                                // all ranks get the same bits
  // The same, sent as float16 with one scale per rank and share: half the bytes, 11 bits of each number.
  void add_compressed(std::span<float> numbers);
  void take_largest(std::span<std::int32_t> numbers);
  void take_largest(std::span<float> numbers);
  // All ranks left the run: the process may end. Without it, the end of a process ends the job.
  void finish();

  // Prints the text with rank and computer, and ends the job.
  // status: see exit_status.h.
  [[noreturn]] void fail(const std::string& text, int status = 1);

 private:
  Group();
  std::uint32_t rank_ = 0, ranks_ = 1, local_rank_ = 0;
  std::uint32_t adders_ = 1;
  bool is_on_one_computer_ = false;
  std::string computer_;
  double seconds_in_add_ = 0;

  // Memory that the ranks of this computer share, where they are all: a segment of each rank's numbers, and
  // one of sums.
  struct Handles;  // of MPI
  std::shared_ptr<Handles> handles_;
  struct SharedMemory;
  bool has_room(const SharedMemory& memory) const;
  bool add_in_memory(std::span<float> numbers);
  std::shared_ptr<SharedMemory> memory_;
};

}  // namespace imprint::studio
