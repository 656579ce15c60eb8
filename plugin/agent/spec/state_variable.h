#pragma once
// The variables that make up a brain's state on the device.

#include <cstdint>
#include <optional>
#include <string>

#include "compute/tensor/tensor.h"

namespace imprint::agent {

inline constexpr const char* kLogDeviationName = "log_deviation";  // of continuous actions that are drawn
inline constexpr const char* kChangeEpsilonName = "change_epsilon";
inline constexpr const char* kHeardName = "heard";
inline constexpr const char *kUsualName = "usual_words", *kTrustName = "trust";
// The replay memory: numbers, and where there are any pictures as bytes (learn/samples/replay_memory.h).
inline constexpr const char *kReplayName = "replay", *kReplayPicturesName = "replay_pictures";

// How tools that learn one brain in several processes make one of theirs (keep/shared_state.cpp). none: it
// belongs to a brain's own experience. In the order of imp_merge.
enum class Merge : std::uint8_t { mean, largest, smallest, none };

struct StateVariable {
  std::string name;
  Variable variable;
  std::int32_t low = INT32_MIN, high = INT32_MAX;  // int32 variables: valid range of an element in a file
  Merge merge = Merge::mean;                       // int32 variables: the largest, or none
  std::optional<float> otherwise = {};  // all its elements, where a file of an older library lacks it
};

// Part of the replay memory, which may leave the device (keep/memory_eviction.h).
inline bool is_replay(const StateVariable& entry) {
  return entry.name == kReplayName || entry.name == kReplayPicturesName;
}

}  // namespace imprint::agent
