#pragma once
// The variables that make up a brain's state on the device.

#include <cstdint>
#include <string>

#include "compute/tensor/tensor.h"

namespace imprint::agent {

inline constexpr const char* kLogDeviationName = "log_deviation";  // of continuous actions that are drawn
inline constexpr const char* kUnrestName = "unrest";
inline constexpr const char* kHeardName = "heard";
inline constexpr const char* kReplayName = "replay";  // the replay memory's state variable

struct StateVariable {
  std::string name;
  Variable variable;
  std::int32_t low = INT32_MIN, high = INT32_MAX;  // int32 variables: valid range of an element in a file
};

}  // namespace imprint::agent
