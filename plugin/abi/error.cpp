#include "plugin/abi/error.h"

#include <cstring>

namespace imprint::abi {
namespace {

// Plain bytes: no code runs when a thread ends, so the library can be unloaded at any time.
constinit thread_local char error_text[1024] = "";

imp_result code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return IMP_ERROR_INVALID_ARGUMENT;
    case ErrorCode::shape_mismatch:
      return IMP_ERROR_SHAPE_MISMATCH;
    case ErrorCode::dtype_mismatch:
      return IMP_ERROR_DTYPE_MISMATCH;
    case ErrorCode::unsupported:
      return IMP_ERROR_UNSUPPORTED;
    case ErrorCode::out_of_device_memory:
      return IMP_ERROR_OUT_OF_DEVICE_MEMORY;
    case ErrorCode::out_of_host_memory:
      return IMP_ERROR_OUT_OF_HOST_MEMORY;
    case ErrorCode::device_lost:
      return IMP_ERROR_DEVICE_LOST;
    case ErrorCode::not_ready:
      return IMP_NOT_READY;
    case ErrorCode::io:
      return IMP_ERROR_IO;
    case ErrorCode::corrupt_file:
      return IMP_ERROR_CORRUPT_FILE;
    case ErrorCode::compile_failed:
      return IMP_ERROR_COMPILE_FAILED;
    case ErrorCode::wrong_state:
      return IMP_ERROR_WRONG_STATE;
    case ErrorCode::not_found:
      return IMP_ERROR_NOT_FOUND;
    case ErrorCode::internal:
      return IMP_ERROR_INTERNAL;
  }
  return IMP_ERROR_INTERNAL;
}

}  // namespace

imp_result fail(imp_result code, const char* text) noexcept {
  shorten(text, error_text, sizeof error_text);
  return code;
}

// The call stands at the beginning and the remedy at the end; an overlong name or path is in between.
void shorten(const char* text, char* into, std::size_t room) noexcept {
  constexpr char kCut[] = " ... ";
  constexpr std::size_t kCutLength = sizeof kCut - 1;
  const std::size_t length = std::strlen(text);
  if (length < room) {
    std::memcpy(into, text, length + 1);
    return;
  }
  // A byte of a UTF-8 character after its first.
  const auto inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  std::size_t head = (room - 1 - kCutLength) / 2;
  std::size_t tail = length - (room - 1 - kCutLength - head);
  while (head > 0 && inside(text[head])) --head;
  while (tail < length && inside(text[tail])) ++tail;
  std::memcpy(into, text, head);
  std::memcpy(into + head, kCut, kCutLength);
  std::memcpy(into + head + kCutLength, text + tail, length - tail + 1);
}

imp_result fail(const Error& error) noexcept {
  // Not ready is a remark, not a failure: the text of the last failure stays.
  if (error.code == ErrorCode::not_ready) return IMP_NOT_READY;
  return fail(code_of(error.code), error.message.c_str());
}

const char* last_error() noexcept { return error_text; }

const char* result_name(imp_result result) noexcept {
  switch (result) {
    case IMP_OK:
      return "IMP_OK";
    case IMP_NOT_READY:
      return "IMP_NOT_READY";
    case IMP_ERROR_INVALID_ARGUMENT:
      return "IMP_ERROR_INVALID_ARGUMENT";
    case IMP_ERROR_SHAPE_MISMATCH:
      return "IMP_ERROR_SHAPE_MISMATCH";
    case IMP_ERROR_DTYPE_MISMATCH:
      return "IMP_ERROR_DTYPE_MISMATCH";
    case IMP_ERROR_UNSUPPORTED:
      return "IMP_ERROR_UNSUPPORTED";
    case IMP_ERROR_OUT_OF_DEVICE_MEMORY:
      return "IMP_ERROR_OUT_OF_DEVICE_MEMORY";
    case IMP_ERROR_OUT_OF_HOST_MEMORY:
      return "IMP_ERROR_OUT_OF_HOST_MEMORY";
    case IMP_ERROR_DEVICE_LOST:
      return "IMP_ERROR_DEVICE_LOST";
    case IMP_ERROR_IO:
      return "IMP_ERROR_IO";
    case IMP_ERROR_CORRUPT_FILE:
      return "IMP_ERROR_CORRUPT_FILE";
    case IMP_ERROR_COMPILE_FAILED:
      return "IMP_ERROR_COMPILE_FAILED";
    case IMP_ERROR_WRONG_STATE:
      return "IMP_ERROR_WRONG_STATE";
    case IMP_ERROR_NOT_FOUND:
      return "IMP_ERROR_NOT_FOUND";
    case IMP_ERROR_INTERNAL:
      return "IMP_ERROR_INTERNAL";
    case IMP_ERROR_INVALID_HANDLE:
      return "IMP_ERROR_INVALID_HANDLE";
    default:
      return "unknown result";
  }
}

}  // namespace imprint::abi
