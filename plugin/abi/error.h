#pragma once
// The border between C++ and C: results become codes and a text of the calling thread. Exceptions stop here.

#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "compute/base/result.h"
#include "plugin/include/imprint/imprint.h"

namespace imprint::abi {

// Keeps the text for last_error on this thread and returns the code.
imp_result fail(imp_result code, const char* text) noexcept;
imp_result fail(const Error& error) noexcept;
// Copies `text` into `room` bytes, NUL included. A longer text loses its middle; UTF-8 stays valid.
void shorten(const char* text, char* into, std::size_t room) noexcept;
inline imp_result translate(const Result<>& status) noexcept {
  return status.ok() ? static_cast<imp_result>(IMP_OK) : fail(status.error());
}
const char* last_error() noexcept;
const char* result_name(imp_result result) noexcept;

// Runs the body of an export: a function that returns imp_result.
template <class Body>
imp_result guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(IMP_ERROR_OUT_OF_HOST_MEMORY, "out of host memory");
  } catch (const std::exception& exception) {
    return fail(IMP_ERROR_INTERNAL, exception.what());
  } catch (...) {
    return fail(IMP_ERROR_INTERNAL, "an unknown exception was caught at the interface");
  }
}

}  // namespace imprint::abi
