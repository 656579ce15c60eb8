#pragma once
// Memory use of a reader: counts every operator new of the test program.

#include <cstddef>

namespace imprint::test {

// Peak of the bytes allocated since construction, beyond those at construction. One at a time.
class HeapWatch {
 public:
  HeapWatch();
  std::size_t peak_bytes() const;
};

}  // namespace imprint::test
