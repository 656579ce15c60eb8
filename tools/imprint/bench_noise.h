#pragma once
// Numbers for benchmarks. Their values do not matter for the cost; they differ, and are equal in every run.

#include <cstddef>
#include <cstdint>
#include <span>

namespace imprint::tools {

class Noise {
 public:
  // In [0, 1). A linear congruential generator: Donald Knuth's MMIX.
  float next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(state_ >> 40) / static_cast<float>(1u << 24);
  }

  // float32 elements.
  void fill(std::span<std::byte> bytes) {
    for (float& value : std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)))
      value = next();
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace imprint::tools
