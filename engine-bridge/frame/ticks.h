#pragma once
// A counter cheap enough to read twice in every frame call: reading the clock would cost more than some
// calls. It rises at a constant rate, which the reader finds by comparing with a clock.

#include <chrono>
#include <cstdint>

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

namespace imprint::bridge {

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(_MSC_VER) && defined(_M_X64)
  return __rdtsc();
#elif defined(__aarch64__) && !defined(_MSC_VER)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace imprint::bridge
