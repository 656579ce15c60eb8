#pragma once
// Sums in memory that all processes of a run map, where they are on one computer: GPUs copy into it and out
// of it. Each process adds one share of all numbers in the order of the ranks, so the bits are the same
// however the processes run.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compute/base/thread_pool.h"
#include "compute/program/program_sequence.h"
#include "tools/studio/group.h"

namespace imprint::studio {

class MappedSums final : public SharedSums {
 public:
  // Null where the ranks are not on one computer, or there is one.
  static std::shared_ptr<MappedSums> create(Group& group);

  bool all(bool own) override;
  Memory allocate(std::size_t bytes) override;
  void add(const Memory& memory, std::size_t first, std::size_t count) override;

 private:
  explicit MappedSums(Group& group);

  // How far a process is with the sums of a region, each on a cache line of its own: processes wait for these
  // without MPI.
  struct alignas(64) Progress {
    std::atomic<std::uint64_t> arrived, added;
  };
  // [progress of each rank][numbers of each rank][sums]
  struct Region {
    void* addresses = nullptr;
    std::size_t length = 0;
    std::byte* start = nullptr;
    Progress* progress = nullptr;
    std::vector<const float*> numbers;  // by rank
    std::uint64_t rounds = 0;
    void map(int file, std::size_t bytes);  // start stays null if it cannot
    ~Region();
  };
  std::shared_ptr<Region> map(std::size_t bytes);
  void wait_for_all(const Region& region, std::atomic<std::uint64_t> Progress::*step) const;

  Group& group_;
  std::shared_ptr<ThreadPool> threads_;
};

}  // namespace imprint::studio
