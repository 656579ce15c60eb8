// Every harness over its corpus and some thousand mutations of it, without clang. Arguments: the corpus
// folder, and optionally executions per harness and the name of one harness.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/harness.h"

namespace {

namespace fs = std::filesystem;
using namespace imprint::fuzz;

struct Harness {
  const char* name;
  void (*run)(Bytes bytes);
  int cost = 1;  // executions that one of its executions counts for
};
constexpr Harness kHarnesses[] = {
    {"onnx", onnx, 8},
    {"safetensors", safetensors},
    {"saved_brain", saved_brain},
    {"kernel_archive", kernel_archive},
    {"pipeline_cache", pipeline_cache},
    {"tuning_table", tuning_table},
    {"profile", profile},
    {"brain_file", brain_file},
    {"abi", abi, 64},
};

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

void run(const Harness& harness, const fs::path& corpus, int executions) {
  const std::vector<File> seeds = seeds_of(corpus / harness.name);
  for (const File& seed : seeds) harness.run(seed);
  std::mt19937 random(20);
  for (int i = 0; i < executions / harness.cost; ++i)
    harness.run(mutated(seeds[random() % seeds.size()], seeds[random() % seeds.size()], random));
  std::printf("%s: %zu seeds, %d mutations\n", harness.name, seeds.size(), executions / harness.cost);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fuzz_corpus FOLDER [EXECUTIONS [HARNESS]]\n");
    return 2;
  }
  const int executions = argc > 2 ? std::atoi(argv[2]) : 4096;
  for (const Harness& harness : kHarnesses)
    if (argc < 4 || std::strcmp(argv[3], harness.name) == 0) run(harness, argv[1], executions);
  return 0;
}
