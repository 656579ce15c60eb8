#include "tools/studio/group.h"

#include <mpi.h>
#if defined(__linux__)
#include <signal.h>
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace imprint::studio {
namespace {

// MPI counts in int; pieces of this size keep far from its end.
constexpr std::size_t kPiece = std::size_t{1} << 28;

template <class T, class Use>
void in_pieces(std::span<T> numbers, Use&& use) {
  while (!numbers.empty()) {
    const std::span<T> piece = numbers.first(std::min(numbers.size(), kPiece));
    use(piece, static_cast<int>(piece.size()));
    numbers = numbers.subspan(piece.size());
  }
}

template <class T>
std::vector<T> gathered(std::span<const T> own, std::uint32_t ranks, MPI_Datatype type) {
  std::vector<T> found(own.size() * ranks);
  const int count = static_cast<int>(own.size());
  MPI_Allgather(own.data(), count, type, found.data(), count, type, MPI_COMM_WORLD);
  return found;
}

}  // namespace

Group& Group::all() {
  static Group group;
  return group;
}

Group::Group() {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no game outlives the mpirun that started it
#endif
  int provided = 0, number = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  rank_ = static_cast<std::uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  ranks_ = static_cast<std::uint32_t>(number);
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &number);
  local_rank_ = static_cast<std::uint32_t>(number);
  MPI_Comm_free(&local);
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  MPI_Get_processor_name(name, &number);
  computer_ = name;
}

void Group::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void Group::broadcast(std::span<std::byte> bytes) {
  in_pieces(bytes, [](std::span<std::byte> piece, int count) {
    MPI_Bcast(piece.data(), count, MPI_BYTE, 0, MPI_COMM_WORLD);
  });
}

std::vector<double> Group::gather(std::span<const double> own) { return gathered(own, ranks_, MPI_DOUBLE); }
std::vector<std::uint64_t> Group::gather(std::span<const std::uint64_t> own) {
  return gathered(own, ranks_, MPI_UINT64_T);
}

void Group::add(std::span<float> numbers) {
  const double began = MPI_Wtime();
  in_pieces(numbers, [](std::span<float> piece, int count) {
    MPI_Allreduce(MPI_IN_PLACE, piece.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  seconds_in_add_ += MPI_Wtime() - began;
}

void Group::take_largest(std::span<std::int32_t> numbers) {
  in_pieces(numbers, [](std::span<std::int32_t> piece, int count) {
    MPI_Allreduce(MPI_IN_PLACE, piece.data(), count, MPI_INT32_T, MPI_MAX, MPI_COMM_WORLD);
  });
}

void Group::take_largest(std::span<float> numbers) {
  in_pieces(numbers, [](std::span<float> piece, int count) {
    MPI_Allreduce(MPI_IN_PLACE, piece.data(), count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  });
}

void Group::finish() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Finalize();
}

void Group::fail(const std::string& text, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "studio: rank %u on %s: %s\n", rank_, computer_.c_str(), text.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace imprint::studio
