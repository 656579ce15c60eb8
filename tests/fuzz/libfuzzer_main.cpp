// Compiled once per harness, which IMPRINT_FUZZ_HARNESS names.

#include <cstdint>

#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  imprint::fuzz::IMPRINT_FUZZ_HARNESS(std::as_bytes(std::span(data, size)));
  return 0;
}
