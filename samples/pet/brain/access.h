#pragma once
// How Imprint reaches the GPU, or that it computes on the CPU.

#include <array>
#include <cstdint>

namespace pet {

enum class Access : std::uint8_t { record, submit, cpu };
inline constexpr std::array kAccesses = {Access::record, Access::submit, Access::cpu};

inline const char* name(Access access) {
  switch (access) {
    case Access::record:
      return "record";
    case Access::submit:
      return "submit";
    case Access::cpu:
      return "cpu";
  }
  return "";
}

}  // namespace pet
