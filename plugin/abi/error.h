#pragma once
// The wall between C++ and C: results become codes and a text for the calling thread, exceptions stop here.

#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "compute/base/result.h"
#include "plugin/include/imprint/imprint.h"

namespace imprint::abi {

// Keeps the text of a failure for last_error on this thread, and gives its code.
imp_result fail(imp_result code, const char* text) noexcept;
imp_result fail(const Error& error) noexcept;
// `text` in at most `room` bytes, its end included: what is longer loses its middle. UTF-8 stays UTF-8.
void shorten(const char* text, char* into, std::size_t room) noexcept;
inline imp_result translate(const Status& status) noexcept {
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
