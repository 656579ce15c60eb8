#pragma once
// Memory that begins with zeros. A large one takes pages of the system when they are first used, so a program
// that is compiled and not run takes next to none.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace imprint {

struct FreeBytes {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using ZeroedBytes = std::unique_ptr<std::byte[], FreeBytes>;

// Throws std::bad_alloc.
inline ZeroedBytes make_zeroed_bytes(std::size_t size) {
  auto* const bytes = static_cast<std::byte*>(std::calloc(size > 0 ? size : 1, 1));
  if (!bytes) throw std::bad_alloc();
  return ZeroedBytes(bytes);
}

// For a vector whose elements begin as zeros, in such memory.
template <class T>
struct ZeroedAllocator {
  static_assert(std::is_arithmetic_v<T>);
  using value_type = T;
  ZeroedAllocator() = default;
  template <class U>
  ZeroedAllocator(const ZeroedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return reinterpret_cast<T*>(make_zeroed_bytes(count * sizeof(T)).release());
  }
  void deallocate(T* elements, std::size_t) { std::free(elements); }
  void construct(T*) {}  // it is zero
  template <class Value>
  void construct(T* at, Value&& value) {
    ::new (at) T(std::forward<Value>(value));
  }
  bool operator==(const ZeroedAllocator&) const { return true; }
};
template <class T>
using ZeroedVector = std::vector<T, ZeroedAllocator<T>>;  // its size never grows: it would keep old elements

}  // namespace imprint
