#pragma once
// The error that every call on a lost device returns.

#include "compute/base/result.h"
#include "compute/base/text.h"

namespace imprint::bridge {

inline Error lost_device_error(const char* call) {
  return make_error(ErrorCode::device_lost,
                    text(call, ": the device was lost. Make a new context on a new device."));
}

}  // namespace imprint::bridge
