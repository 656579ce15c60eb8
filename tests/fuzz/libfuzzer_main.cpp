// One program for all harnesses: fuzz --harness=NAME, then libFuzzer's own arguments.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/harness.h"

namespace {

const imprint::fuzz::Harness* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kFlag = "--harness=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument.starts_with(kFlag)) chosen = imprint::fuzz::find_harness(argument.substr(kFlag.size()));
  }
  if (!chosen) {
    std::fprintf(stderr, "fuzz: found no --harness=NAME. NAME is one of:");
    for (const imprint::fuzz::Harness& harness : imprint::fuzz::kHarnesses)
      std::fprintf(stderr, " %s", harness.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  return std::atexit(imprint::fuzz::print_abi_calls);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->take(std::as_bytes(std::span(data, size)));
  return 0;
}
