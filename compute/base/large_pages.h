#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace imprint {

// Asks the system for large pages under memory that nothing has touched yet: programs that walk through many
// megabytes look up fewer addresses. A hint. It has no effect below a few megabytes and outside Linux.
inline void prefer_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::size_t kLeast = std::size_t{4} << 20, kLargePage = std::size_t{2} << 20;
  if (bytes < kLeast) return;
  // Whole large pages. The system keeps the rest in small ones.
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + kLargePage - 1) / kLargePage * kLargePage,
             end = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / kLargePage * kLargePage;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

}  // namespace imprint
