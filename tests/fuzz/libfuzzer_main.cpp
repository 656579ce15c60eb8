// Compiled once per harness, which IMPRINT_FUZZ_HARNESS names.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return std::atexit([] {
    if (const std::uint64_t calls = imprint::fuzz::abi_calls(); calls > 0)
      std::fprintf(stderr, "calls of the C interface: %llu\n", static_cast<unsigned long long>(calls));
  });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  imprint::fuzz::IMPRINT_FUZZ_HARNESS(std::as_bytes(std::span(data, size)));
  return 0;
}
