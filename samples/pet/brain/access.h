#ifndef IMPRINT_SAMPLES_PET_BRAIN_ACCESS_H_
#define IMPRINT_SAMPLES_PET_BRAIN_ACCESS_H_
// How Imprint reaches the queue; or that it does without.

#include <array>
#include <cstdint>

namespace pet {

enum class Access : uint8_t { kRecord, kSubmit, kCpu };
inline constexpr std::array kAccesses = {Access::kRecord, Access::kSubmit, Access::kCpu};

inline const char* name(Access access) {
  switch (access) {
    case Access::kRecord:
      return "record";
    case Access::kSubmit:
      return "submit";
    case Access::kCpu:
      return "cpu";
  }
  return "";
}

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_BRAIN_ACCESS_H_
