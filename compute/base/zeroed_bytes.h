#pragma once
// Memory that begins with zeros. A large one takes pages of the system when they are first used, so a program
// that is compiled and not run takes next to none.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

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

}  // namespace imprint
