#include "tests/unit/model_heap.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kHeader = 16;  // keeps the allocation aligned
std::atomic<std::size_t> live_bytes{0}, peak_live_bytes{0};
std::size_t base_bytes = 0;

void* allocate(std::size_t size) {
  void* block = std::malloc(size + kHeader);
  if (!block) throw std::bad_alloc();
  *static_cast<std::size_t*>(block) = size;
  const std::size_t live = live_bytes += size;
  std::size_t peak = peak_live_bytes;
  while (live > peak && !peak_live_bytes.compare_exchange_weak(peak, live)) {
  }
  return static_cast<std::byte*>(block) + kHeader;
}

void release(void* memory) {
  if (!memory) return;
  void* block = static_cast<std::byte*>(memory) - kHeader;
  live_bytes -= *static_cast<std::size_t*>(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace imprint::test {

HeapWatch::HeapWatch() {
  base_bytes = live_bytes;
  peak_live_bytes = base_bytes;
}

std::size_t HeapWatch::peak_bytes() const { return peak_live_bytes - base_bytes; }

}  // namespace imprint::test
