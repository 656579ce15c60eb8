#pragma once
// SplitMix64. Its numbers are the same with every compiler and library; those of std distributions are not.

#include <cstdint>

namespace pet {

class Random {
 public:
  explicit Random(std::uint64_t seed = 0, std::uint64_t stream = 0)
      : state_(seed * 0x9e3779b97f4a7c15ull + (stream + 1) * 0xd1b54a32d192ed03ull) {
    next();
    next();
  }

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }  // [0, 1)
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(((next() >> 32) * count) >> 32);
  }
  bool chance(float probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace pet
