// Every harness over its corpus and some thousand mutations of it, without clang. Arguments: the corpus
// folder, and optionally executions per harness or seconds ("20s"), the name of one harness, and a seed.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/harness.h"

namespace {

namespace fs = std::filesystem;
using namespace imprint::fuzz;

using File = std::vector<std::byte>;

std::vector<File> seeds_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  if (fs::is_directory(folder))
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<File> seeds{{}};
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

// A few changes of `file`: flipped bits, interesting numbers, removed, repeated and foreign stretches.
File mutated(File file, const File& other, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (std::size_t change = 0, changes = 1 + below(4); change < changes; ++change) {
    const std::size_t at = below(file.size() + 1), length = std::min(below(16) + 1, file.size() - at);
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at),
               end = begin + static_cast<std::ptrdiff_t>(length);
    switch (below(5)) {
      case 0:
        if (at < file.size()) file[at] ^= static_cast<std::byte>(1u << below(8));
        break;
      case 1:
        for (auto byte = begin; byte != end; ++byte)
          *byte = static_cast<std::byte>(below(2) ? 0xFF : below(256));
        break;
      case 2:
        file.erase(begin, end);
        break;
      case 3: {
        const File stretch(begin, end);
        file.insert(begin, stretch.begin(), stretch.end());
        break;
      }
      default: {
        const std::size_t from = below(other.size()), count = std::min(below(64), other.size() - from);
        const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
        file.insert(begin, first, first + static_cast<std::ptrdiff_t>(count));
      }
    }
  }
  return file;
}

struct Limit {
  long executions = 4096;
  std::chrono::seconds time = std::chrono::hours(24);
};

// "4096", or "20s" for seconds.
Limit limit_of(const std::string& text) {
  const long number = std::atol(text.c_str());
  if (text.ends_with('s')) return {std::numeric_limits<long>::max(), std::chrono::seconds(number)};
  return {.executions = number};
}

void run(const Harness& harness, const fs::path& corpus, const Limit& limit, unsigned seed_number) {
  using Clock = std::chrono::steady_clock;
  const std::vector<File> seeds = seeds_of(corpus / harness.name);
  for (const File& seed : seeds) harness.take(seed);
  std::mt19937 random(seed_number);
  const Clock::time_point end = Clock::now() + limit.time;
  long count = 0;
  double slowest = 0;
  for (; count < limit.executions / harness.cost && Clock::now() < end; ++count) {
    const File file = mutated(seeds[random() % seeds.size()], seeds[random() % seeds.size()], random);
    const std::clock_t start = std::clock();
    harness.take(file);
    slowest = std::max(slowest, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::printf("%s: %zu seeds, %ld mutations, %.1f ms of CPU time for the slowest\n", harness.name,
              seeds.size(), count, slowest);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fuzz_corpus FOLDER [EXECUTIONS [HARNESS [SEED]]]\n");
    return 2;
  }
  const Limit limit = argc > 2 ? limit_of(argv[2]) : Limit();
  const unsigned seed = argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : 20;
  for (const Harness& harness : kHarnesses)
    if (argc < 4 || std::strcmp(argv[3], harness.name) == 0) run(harness, argv[1], limit, seed);
  print_abi_calls();
  return 0;
}
