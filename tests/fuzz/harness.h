#pragma once
// One function per reader of foreign bytes: it takes any bytes, and stops the process where a promise is
// broken. libFuzzer calls it (libfuzzer_main.cpp), or corpus_main.cpp with the corpus and its mutations.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace imprint::fuzz {

using Bytes = std::span<const std::byte>;

void onnx(Bytes bytes);          // parses, imports, compiles and runs on the CPU: twice with equal bits
void operators(Bytes bytes);     // bytes as calls of ONNX's operators with values of all types
void safetensors(Bytes bytes);   // reads, writes and reads again
void weights(Bytes bytes);       // files of PyTorch, GGUF and NumPy: reads, and writes as safetensors
void picture(Bytes bytes);       // PNG, JPEG, PGM: decodes, and resizes
void saved_brain(Bytes bytes);   // a whole file, and a body with a valid envelope
void dataset(Bytes bytes);       // IDX, CIFAR, CSV: reads the first and the last sample
void extents(Bytes bytes);       // texts of bounds: gives a model's free dimensions names
void experience(Bytes bytes);    // steps of an actor: DQN's and PPO's
void studio_files(Bytes bytes);  // episodes (also with their hash), curricula and leagues
#ifdef IMPRINT_FUZZ_STUDIO
void studio(Bytes bytes);  // messages between an actor and its learner, as they come over a network
#endif
void kernel_archive(Bytes bytes);  // a whole file, and content with a valid envelope
void pipeline_cache(Bytes bytes);
void tuning_table(Bytes bytes);
void profile(Bytes bytes);
void brain_file(Bytes bytes);
void abi(Bytes bytes);  // bytes as calls of the C ABI

struct Harness {
  const char* name;
  void (*take)(Bytes bytes);
  int cost = 1;  // executions of fuzz_corpus that one of its executions counts for
};

inline constexpr Harness kHarnesses[] = {
    {"onnx", onnx, 8},
    {"operators", operators, 8},
    {"safetensors", safetensors},
    {"weights", weights},
    {"picture", picture},
    {"saved_brain", saved_brain},
    {"dataset", dataset},
    {"extents", extents},
    {"experience", experience},
    {"studio_files", studio_files},
#ifdef IMPRINT_FUZZ_STUDIO
    {"studio", studio},
#endif
    {"kernel_archive", kernel_archive},
    {"pipeline_cache", pipeline_cache},
    {"tuning_table", tuning_table},
    {"profile", profile},
    {"brain_file", brain_file},
    {"abi", abi, 64},
};

inline const Harness* find_harness(std::string_view name) {
  for (const Harness& harness : kHarnesses)
    if (harness.name == name) return &harness;
  return nullptr;
}

// Calls that abi() has made so far: those that the bytes choose, and those of second threads that only watch.
struct CallCounts {
  std::uint64_t chosen = 0, watching = 0;
};
CallCounts abi_calls();

// Prints them, if there are any.
inline void print_abi_calls() {
  const CallCounts calls = abi_calls();
  if (calls.chosen > 0)
    std::fprintf(stderr, "calls of the C interface: %llu, and %llu of watching threads\n",
                 static_cast<unsigned long long>(calls.chosen),
                 static_cast<unsigned long long>(calls.watching));
}

// Stops the process: a promise is broken.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

// Errors have texts, and short ones: a file cannot flood a log.
template <class Result>
void check_error(const Result& result) {
  if (result.ok()) return;
  require(!result.error().message.empty(), "an error has a text");
  require(result.error().message.size() < 16'384, "an error's text is short");
}

}  // namespace imprint::fuzz
