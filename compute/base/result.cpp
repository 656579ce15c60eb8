#include "compute/base/result.h"

namespace imprint {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::shape_mismatch:
      return "shape_mismatch";
    case ErrorCode::dtype_mismatch:
      return "dtype_mismatch";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_device_memory:
      return "out_of_device_memory";
    case ErrorCode::out_of_host_memory:
      return "out_of_host_memory";
    case ErrorCode::device_lost:
      return "device_lost";
    case ErrorCode::not_ready:
      return "not_ready";
    case ErrorCode::io:
      return "io";
    case ErrorCode::corrupt_file:
      return "corrupt_file";
    case ErrorCode::compile_failed:
      return "compile_failed";
    case ErrorCode::wrong_state:
      return "wrong_state";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace imprint
