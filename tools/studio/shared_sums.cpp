#include "tools/studio/shared_sums.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "tools/studio/add_numbers.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace imprint::studio {
namespace {

constexpr std::uint32_t kMostMappedThreads = 8;
// A part of a thread: long enough to be worth a thread, short enough for its sums to stay in its cache.
constexpr std::size_t kMappedPart = std::size_t{1} << 13;
constexpr auto kAwake = std::chrono::milliseconds(2);
constexpr int kTriesBeforeYield = 2000;

std::size_t whole_steps(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

void relax_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::shared_ptr<MappedSums> MappedSums::create(Group& group) {
#if defined(__linux__)
  if (group.ranks() > 1 && group.is_on_one_computer() && group.adders() == group.ranks())
    return std::shared_ptr<MappedSums>(new MappedSums(group));
#endif
  return nullptr;
}

MappedSums::MappedSums(Group& group) : group_(group) {
  const std::uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  // Half of the cores: the threads stay awake from one sum to the next, as long as a device learns.
  threads_ = ThreadPool::create(
      {.threads = std::clamp(cores / (2 * group.ranks()), 1u, kMostMappedThreads), .looks_for = kAwake});
}

bool MappedSums::all(bool own) {
  const std::uint64_t mine = own ? 1 : 0;
  return std::ranges::count(group_.gather(std::span(&mine, 1)), 0) == 0;
}

// Pages begin at smaller multiples than kAlignment, so some more addresses are taken first.
void MappedSums::Region::map([[maybe_unused]] int file, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  void* taken = ::mmap(nullptr, bytes + kAlignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) return;
  addresses = taken;
  length = bytes + kAlignment;
  void* aligned = reinterpret_cast<void*>(whole_steps(reinterpret_cast<std::uintptr_t>(taken), kAlignment));
  void* mapped = ::mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (mapped != MAP_FAILED) start = static_cast<std::byte*>(mapped);
#endif
}

MappedSums::Region::~Region() {
#if defined(__linux__)
  if (addresses) ::munmap(addresses, length);
#endif
}

// Rank 0's file has no name and vanishes with its last process; the others open it through rank 0's process.
std::shared_ptr<MappedSums::Region> MappedSums::map(std::size_t bytes) {
  auto region = std::make_shared<Region>();
#if defined(__linux__)
  const bool first = group_.rank() == 0;
  int file = first ? ::memfd_create("imprint-sums", MFD_CLOEXEC) : -1;
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    ::close(file);
    file = -1;
  }
  const std::uint64_t own[] = {static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(file + 1)};
  const std::vector<std::uint64_t> known = group_.gather(own);
  if (!first && known[1] > 0) {
    const std::string path = "/proc/" + std::to_string(known[0]) + "/fd/" + std::to_string(known[1] - 1);
    file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  if (file >= 0) {
    region->map(file, bytes);
  }
  const bool mapped = all(region->start != nullptr);  // rank 0's file stays open until here
  if (file >= 0) ::close(file);
  if (!mapped) return nullptr;
#endif
  return region;
}

SharedSums::Memory MappedSums::allocate(std::size_t bytes) {
  const std::size_t part = whole_steps(std::max<std::size_t>(bytes, 1), kAlignment),
                    head = whole_steps(group_.ranks() * sizeof(Progress), kAlignment);
  const std::shared_ptr<Region> region = map(head + (group_.ranks() + 1) * part);
  if (!region) return {};
  region->progress = reinterpret_cast<Progress*>(region->start);  // zeros, as all of the file
  const auto part_of = [&](std::uint32_t index) { return region->start + head + index * part; };
  for (std::uint32_t r = 0; r < group_.ranks(); ++r)
    region->numbers.push_back(reinterpret_cast<const float*>(part_of(r)));
  // The pages of a process lie where it runs.
  std::memset(part_of(group_.rank()), 0, part);
  return {part_of(group_.rank()), part_of(group_.ranks()), part, region};
}

void MappedSums::wait_for_all(const Region& region, std::atomic<std::uint64_t> Progress::*step) const {
  for (std::uint32_t r = 0; r < group_.ranks(); ++r)
    for (int tries = 0; (region.progress[r].*step).load(std::memory_order_acquire) < region.rounds; ++tries) {
      if (tries < kTriesBeforeYield)
        relax_core();
      else
        std::this_thread::yield();
    }
}

void MappedSums::add(const Memory& memory, std::size_t first, std::size_t count) {
  const auto began = std::chrono::steady_clock::now();
  Region& region = *std::static_pointer_cast<Region>(memory.keep);
  Progress& own = region.progress[group_.rank()];
  ++region.rounds;
  own.arrived.store(region.rounds, std::memory_order_release);
  wait_for_all(region, &Progress::arrived);
  const std::size_t begin = first + count * group_.rank() / group_.ranks(),
                    length = first + count * (group_.rank() + 1) / group_.ranks() - begin;
  auto* sums = reinterpret_cast<float*>(memory.sums);
  const std::size_t parts =
      std::min<std::size_t>((length + kMappedPart - 1) / kMappedPart, ThreadPool::kMostParts);
  threads_->each(static_cast<std::uint32_t>(parts), [&](std::uint32_t part, std::uint32_t) {
    add_numbers(region.numbers, sums, begin + length * part / parts, begin + length * (part + 1) / parts);
  });
  own.added.store(region.rounds, std::memory_order_release);
  wait_for_all(region, &Progress::added);
  group_.count_adding(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
}

}  // namespace imprint::studio
