#pragma once
// The border where a want of memory becomes an error: no exception crosses a public face.

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "compute/base/result.h"

namespace imprint {

// What `work`, which returns a Result or a Status, returns; out_of_host_memory when it ran out of memory or
// asked for more than there can be.
template <class Work>
auto within_host_memory(const std::string& what, Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory, what + ": the processor's memory does not suffice");
  } catch (const std::length_error&) {
    return make_error(ErrorCode::out_of_host_memory, what + ": more memory was asked for than there can be");
  }
}

}  // namespace imprint
