#pragma once
// Turns memory exceptions into errors. No exception crosses a public interface.

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "compute/base/result.h"

namespace imprint {

// Returns the result of `work`, a function that returns a Result. Returns out_of_host_memory when
// memory runs out or when `work` requests more than can exist.
template <class Work>
auto within_host_memory(const std::string& what, Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory,
                      what + ": found too little host memory. Close other programs or use less.");
  } catch (const std::length_error&) {
    return make_error(ErrorCode::out_of_host_memory,
                      what + ": found a size beyond any host memory, expected a smaller one");
  }
}

}  // namespace imprint
