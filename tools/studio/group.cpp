#include "tools/studio/group.h"

#include <mpi.h>
#if defined(__linux__)
#include <signal.h>
#include <sys/prctl.h>
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "compute/base/text.h"
#include "compute/base/thread_pool.h"
#include "compute/tensor/dtype.h"
#include "tools/studio/add_numbers.h"

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

struct Group::Handles {
  MPI_Comm adders = MPI_COMM_WORLD;
  MPI_Request arrival = MPI_REQUEST_NULL;
};

Group& Group::all() {
  static Group group;
  return group;
}

Group::Group() {
#if defined(__linux__)
  // No game outlives the program that started it, where that was mpirun or `imprint studio`.
  if (std::getenv("IMPRINT_STUDIO_ACTOR") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMI_RANK"))
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  char here[256] = {};
  ::gethostname(here, sizeof here - 1);
  computer_ = here;
  if (const char* actor = std::getenv("IMPRINT_STUDIO_ACTOR"); actor && *actor) {
    const char* learners = std::getenv("IMPRINT_STUDIO_LEARNERS");
    rank_ = local_rank_ = static_cast<std::uint32_t>(std::strtoul(actor, nullptr, 10)) +
                          (learners ? static_cast<std::uint32_t>(std::strtoul(learners, nullptr, 10)) : 1);
    ranks_ = rank_ + 1;
    return;
  }
  if (const char* replay = std::getenv("IMPRINT_STUDIO_REPLAY"); replay && *replay) return;
  int provided = 0, number = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  rank_ = static_cast<std::uint32_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  ranks_ = adders_ = static_cast<std::uint32_t>(number);
  handles_ = std::make_shared<Handles>();
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &number);
  local_rank_ = static_cast<std::uint32_t>(number);
  MPI_Comm_size(local, &number);
  const int all_here = static_cast<std::uint32_t>(number) == ranks_ ? 1 : 0;
  int everywhere = 0;
  MPI_Allreduce(&all_here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  is_on_one_computer_ = everywhere != 0;
  MPI_Comm_free(&local);
}

void Group::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void Group::arrive() { MPI_Ibarrier(MPI_COMM_WORLD, &handles_->arrival); }

bool Group::all_arrived() {
  int done = 0;
  MPI_Test(&handles_->arrival, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

void Group::leave_out_of_sums(std::uint32_t count) {
  adders_ = ranks_ - std::min(count, ranks_ - 1);
  if (count > 0)
    MPI_Comm_split(MPI_COMM_WORLD, rank_ < adders_ ? 0 : 1, static_cast<int>(rank_), &handles_->adders);
}

void Group::broadcast(std::span<std::byte> bytes) {
  in_pieces(bytes, [](std::span<std::byte> piece, int count) {
    MPI_Bcast(piece.data(), count, MPI_BYTE, 0, MPI_COMM_WORLD);
  });
}

std::vector<double> Group::gather(std::span<const double> own) { return gathered(own, ranks_, MPI_DOUBLE); }
std::vector<std::uint64_t> Group::gather(std::span<const std::uint64_t> own) {
  return gathered(own, ranks_, MPI_UINT64_T);
}

// Shorter sums go by MPI's own messages, which take less time then.
constexpr std::size_t kLeastInMemory = 2048;
// A part of a thread: long enough to be worth a thread, short enough for the sums to stay in its cache.
constexpr std::size_t kNumbersOfPart = std::size_t{1} << 15;
constexpr std::uint32_t kMostThreads = 8;

template <class Work>
void in_parts(ThreadPool& threads, std::size_t begin, std::size_t end, const Work& work) {
  const std::size_t parts = std::min<std::size_t>((end - begin + kNumbersOfPart - 1) / kNumbersOfPart,
                                                  ThreadPool::kMostParts),
                    count = end - begin;
  threads.each(static_cast<std::uint32_t>(parts), [&](std::uint32_t part, std::uint32_t) {
    work(begin + count * part / parts, begin + count * (part + 1) / parts);
  });
}

struct Group::SharedMemory {
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Win window = MPI_WIN_NULL;
  std::size_t capacity = 0;         // numbers of a segment
  std::vector<const float*> parts;  // each rank's segment
  float* own = nullptr;
  float* sums = nullptr;  // of rank 0's window
  bool unusable = false;  // ranks on several computers, or no such memory
  std::shared_ptr<ThreadPool> threads;
  std::uint64_t bytes(std::uint32_t adders) const { return capacity * (adders + 1) * sizeof(float); }
};

// Open MPI's files for memory that processes share. A container may have 64 MB there.
constexpr const char* kSharedFolder = "/dev/shm";

// Rank 0 looks for all: where its file has no room, Open MPI ends the job.
bool Group::has_room(const SharedMemory& memory) const {
  int has = 1;
  struct statvfs found {};
  constexpr std::uint64_t kOfTheirOwn = std::uint64_t{1} << 20;
  if (rank_ == 0 && ::access(kSharedFolder, W_OK) == 0 && ::statvfs(kSharedFolder, &found) == 0) {
    const std::uint64_t room = std::uint64_t{found.f_bavail} * found.f_frsize;
    has = room >= memory.bytes(adders_) + kOfTheirOwn ? 1 : 0;
    if (has == 0)
      std::fprintf(
          stderr,
          "studio: %s: found %llu KiB free, expected %llu for sums of the games. They go by messages, "
          "which may take longer. Give it more room (Docker: --shm-size).\n",
          kSharedFolder, static_cast<unsigned long long>(room >> 10),
          static_cast<unsigned long long>((memory.bytes(adders_) + kOfTheirOwn) >> 10));
  }
  MPI_Bcast(&has, 1, MPI_INT, 0, memory.ranks);
  return has != 0;
}

// Each rank adds one share of all ranks' numbers, in the order of the ranks, so the bits are the same however
// the messages run. Threads divide the copies and the share: one thread copies far less per second than the
// memory can.
bool Group::add_in_memory(std::span<float> numbers) {
  if (!memory_) {
    memory_ = std::make_shared<SharedMemory>();
    MPI_Comm_split_type(handles_->adders, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &memory_->ranks);
    int size = 0, together = 0;
    MPI_Comm_size(memory_->ranks, &size);
    const int all = size == static_cast<int>(adders_) ? 1 : 0;
    MPI_Allreduce(&all, &together, 1, MPI_INT, MPI_MIN, handles_->adders);
    memory_->unusable = together == 0;
    const std::uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
    memory_->threads = ThreadPool::create({.threads = std::clamp(cores / adders_, 1u, kMostThreads)});
  }
  SharedMemory& memory = *memory_;
  if (memory.unusable) return false;
  if (memory.capacity < numbers.size()) {
    if (memory.window != MPI_WIN_NULL) {
      MPI_Win_unlock_all(memory.window);
      MPI_Win_free(&memory.window);
    }
    memory.capacity = std::max(numbers.size(), 2 * memory.capacity);
    memory.unusable = !has_room(memory);
    if (memory.unusable) return false;
    // Rank 0's window has the sums too.
    const auto bytes = static_cast<MPI_Aint>(memory.capacity * (rank_ == 0 ? 2 : 1) * sizeof(float));
    void* own = nullptr;
    MPI_Comm_set_errhandler(memory.ranks, MPI_ERRORS_RETURN);
    const int made =
        MPI_Win_allocate_shared(bytes, sizeof(float), MPI_INFO_NULL, memory.ranks, &own, &memory.window);
    if (made != MPI_SUCCESS)
      fail(text("found no memory to share with the other games, expected ", memory.bytes(adders_) >> 20,
                " MiB. Give ", kSharedFolder, " more room."));
    MPI_Comm_set_errhandler(memory.ranks, MPI_ERRORS_ARE_FATAL);
    memory.own = static_cast<float*>(own);
    memory.parts.clear();
    for (std::uint32_t r = 0; r < adders_; ++r) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      MPI_Win_shared_query(memory.window, static_cast<int>(r), &size, &unit, &base);
      memory.parts.push_back(static_cast<const float*>(base));
      if (r == 0) memory.sums = static_cast<float*>(base) + memory.capacity;
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, memory.window);
  }
  const auto meet = [&] {
    MPI_Win_sync(memory.window);
    MPI_Barrier(memory.ranks);
    MPI_Win_sync(memory.window);
  };
  const auto copy = [&](const float* from, float* to) {
    in_parts(*memory.threads, 0, numbers.size(),
             [&](std::size_t begin, std::size_t end) { std::copy(from + begin, from + end, to + begin); });
  };
  copy(numbers.data(), memory.own);
  meet();
  const std::size_t first = numbers.size() * rank_ / adders_, last = numbers.size() * (rank_ + 1) / adders_;
  in_parts(*memory.threads, first, last,
           [&](std::size_t begin, std::size_t end) { add_numbers(memory.parts, memory.sums, begin, end); });
  meet();
  copy(memory.sums, numbers.data());
  return true;
}

void Group::add(std::span<float> numbers) {
  const double began = MPI_Wtime();
  if (adders_ > 1 && numbers.size() >= kLeastInMemory && add_in_memory(numbers)) {
    seconds_in_add_ += MPI_Wtime() - began;
    return;
  }
  in_pieces(numbers, [this](std::span<float> piece, int count) {
    MPI_Allreduce(MPI_IN_PLACE, piece.data(), count, MPI_FLOAT, MPI_SUM, handles_->adders);
  });
  seconds_in_add_ += MPI_Wtime() - began;
}

namespace {

#if defined(__x86_64__) && defined(__GNUC__)
bool converts_halves() {
  static const bool found = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return found;
}

// Eight at a time; returns how many, and the caller does the rest. Rounds to even, as pack_elements does.
__attribute__((target("avx,f16c"))) std::size_t write_halves(const float* from, std::size_t count,
                                                             float factor, std::byte* to) {
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i),
                     _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(from + i), factors), 0));
  return i;
}
__attribute__((target("avx,f16c"))) std::size_t read_halves(const std::byte* from, std::size_t count,
                                                            float factor, float* to) {
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i));
    _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_cvtph_ps(halves), factors));
  }
  return i;
}
#else
bool converts_halves() { return false; }
std::size_t write_halves(const float*, std::size_t, float, std::byte*) { return 0; }
std::size_t read_halves(const std::byte*, std::size_t, float, float*) { return 0; }
#endif

// Numbers as float16 times a power of two, which the largest of them sets.
struct Compressed {
  float scale = 1;
  std::vector<float> scaled;

  void write(std::span<const float> numbers, std::byte* to) {
    float largest = 0;
    for (const float number : numbers) largest = std::max(largest, std::abs(number));
    // NaN and infinity stay what they are. Neither the scale nor its inverse leaves the normal numbers.
    scale = largest > 0 && std::isfinite(largest)
                ? std::exp2(std::max(std::ceil(std::log2(largest)) - 15.0f, -126.0f))
                : 1.0f;
    const float factor = 1 / scale;
    std::memcpy(to, &scale, sizeof scale);
    to += sizeof scale;
    const std::size_t done = converts_halves() ? write_halves(numbers.data(), numbers.size(), factor, to) : 0;
    scaled.clear();
    for (const float number : numbers.subspan(done)) scaled.push_back(number * factor);
    pack_elements(scaled.data(), scaled.size(), DType::float16, to + 2 * done);
  }
  void read(const std::byte* from, std::size_t count) {
    std::memcpy(&scale, from, sizeof scale);
    from += sizeof scale;
    scaled.resize(count);
    const std::size_t done = converts_halves() ? read_halves(from, count, scale, scaled.data()) : 0;
    const std::span<float> rest = std::span(scaled).subspan(done);
    unpack_elements(from + 2 * done, rest.size(), DType::float16, rest.data());
    for (float& number : rest) number *= scale;
  }
};

}  // namespace

void Group::add_compressed(std::span<float> numbers) {
  if (adders_ == 1) return;
  const double began = MPI_Wtime();
  // Equal shares, the last ones shorter; each message is a scale and a share.
  const std::size_t share = (numbers.size() + adders_ - 1) / adders_, message = sizeof(float) + 2 * share;
  const auto part = [&](std::uint32_t r) {
    const std::size_t begin = std::min(numbers.size(), r * share);
    return numbers.subspan(begin, std::min(share, numbers.size() - begin));
  };
  std::vector<std::byte> sent(message * adders_), got(message * adders_);
  Compressed compressed;
  for (std::uint32_t r = 0; r < adders_; ++r) compressed.write(part(r), sent.data() + r * message);
  MPI_Alltoall(sent.data(), static_cast<int>(message), MPI_BYTE, got.data(), static_cast<int>(message),
               MPI_BYTE, handles_->adders);
  const std::span<float> own = part(rank_);
  std::ranges::fill(own, 0.0f);
  for (std::uint32_t r = 0; r < adders_; ++r) {
    compressed.read(got.data() + r * message, own.size());
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += compressed.scaled[i];
  }
  compressed.write(own, sent.data());
  MPI_Allgather(sent.data(), static_cast<int>(message), MPI_BYTE, got.data(), static_cast<int>(message),
                MPI_BYTE, handles_->adders);
  for (std::uint32_t r = 0; r < adders_; ++r) {
    const std::span<float> sums = part(r);
    compressed.read(got.data() + r * message, sums.size());
    std::ranges::copy(compressed.scaled, sums.begin());
  }
  seconds_in_add_ += MPI_Wtime() - began;
}

void Group::take_largest(std::span<std::int32_t> numbers) {
  in_pieces(numbers, [this](std::span<std::int32_t> piece, int count) {
    MPI_Allreduce(MPI_IN_PLACE, piece.data(), count, MPI_INT32_T, MPI_MAX, handles_->adders);
  });
}

void Group::take_largest(std::span<float> numbers) {
  in_pieces(numbers, [this](std::span<float> piece, int count) {
    MPI_Allreduce(MPI_IN_PLACE, piece.data(), count, MPI_FLOAT, MPI_MAX, handles_->adders);
  });
}

void Group::finish() {
  if (!handles_) return;  // an actor
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  if (memory_ && memory_->window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(memory_->window);
    MPI_Win_free(&memory_->window);
  }
  memory_.reset();
  MPI_Finalize();
}

void Group::fail(const std::string& text, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "studio: rank %u on %s: %s\n", rank_, computer_.c_str(), text.c_str());
  std::fflush(stderr);
  if (handles_) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace imprint::studio
