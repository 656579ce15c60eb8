#pragma once
// How much memory a reader takes: every operator new of the test program is counted.

#include <cstddef>

namespace imprint::test {

// Peak of the bytes allocated since construction, beyond those at construction. One at a time.
class HeapWatch {
 public:
  HeapWatch();
  std::size_t peak_bytes() const;
};

}  // namespace imprint::test
