#pragma once
// A brain as a file: bytes in, bytes out; no GPU, no file system.
//
//   offset size
//   0      8    "IMPRINTB"
//   8      4    format version, little-endian as everything
//   12     4    0
//   16     16   schema hash (schema.h)
//   32     8    bytes of the body
//   40     16   hash of the body
//   56     16   hash of bytes 0 .. 56
//   72     ...  body: a safetensors file. Its arrays: the state on the device under its variables' names
//   (weights, moments, step counters, replay
//               memory, generator), and what the host keeps: "host.counters", "host.draws", "replay.next",
//               "replay.filled", "waiting.counts", "waiting.rows". Its metadata say in words what brain this
//               was, and "network" which brains its weights fit (network_hash, 32 hexadecimal digits).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/learn/replay.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

// A variable of the brain's state on the device, with what a loaded file must fulfil.
struct StateVariable {
  std::string name;
  Variable variable;
  std::int32_t low = INT32_MIN, high = INT32_MAX;  // int32 variables: range of valid elements
};

// Counted since the brain was made, in stats and files.
struct BrainCounters {
  std::uint64_t decisions = 0, feedbacks = 0, demonstrations = 0, minibatches = 0, episodes = 0;
};

// Everything a brain needs to act and learn on as if it had never stopped.
struct HostState {
  std::uint64_t seed = 0;  // of exploration; the saved brain's temperament moves with it
  BrainCounters counters;
  std::vector<std::uint64_t> draws;  // [seats]
  ReplayState replay;
};

struct SavedBrain {
  HostState host;
  std::vector<std::vector<std::byte>> state;  // content of each state variable, in their order
};

inline constexpr std::uint32_t kSavedBrainVersion = 1;

// `state` holds the bytes of each variable. Errors: internal (bytes that do not fit a variable), wrong_state
// (content that decode_brain would refuse).
Result<std::vector<std::byte>> encode_brain(const BrainSpec& spec, std::span<const StateVariable> variables,
                                            const HostState& host,
                                            std::span<const std::span<const std::byte>> state);

// Checks every byte. Errors: corrupt_file (not a saved brain, truncated, damaged, numbers that are not finite
// or out of range), unsupported (a newer format version), shape_mismatch (a brain of another schema; both are
// described).
Result<SavedBrain> decode_brain(std::span<const std::byte> bytes, const BrainSpec& spec,
                                std::span<const StateVariable> variables);

// Of a saved brain of the same networks (schema.h) its weights alone, whatever its agents, learner and
// memory: the content of each variable that holds weights, and nothing for the others. A target network gets
// the network's; a critic that the file does not have is left. Errors: as decode_brain.
Result<std::vector<std::vector<std::byte>>> decode_weights(std::span<const std::byte> bytes,
                                                           const BrainSpec& spec,
                                                           std::span<const StateVariable> variables);

}  // namespace imprint::agent
