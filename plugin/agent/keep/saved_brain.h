#pragma once
// A brain as a file: bytes in, bytes out; no GPU, no file system.
//
//   offset size
//   0      8    "IMPRINTB"
//   8      4    format version, little-endian as everything
//   12     4    0
//   16     16   schema_hash (keep/schema.h)
//   32     8    bytes of the body
//   40     16   hash of the body
//   56     16   hash of bytes 0 .. 56
//   72     ...  body: a safetensors file
//
// Arrays of the body: the state on the device, under its variables' names (weights, moments, step counters,
// replay memory, generator), and the host's part: "host.counters", "host.draws", "replay.next",
// "replay.filled", "waiting.counts", "waiting.rows"; of a learner whose exploration may slow also
// "waiting.sparsity", which older files lack; of one that keeps demonstrations "demonstrations.counts",
// "demonstrations.next", "demonstrations.rows" and "demonstrations.minibatches"; of one with a pool of
// opponents "opponents.ratings" and "opponents.numbers". Older files lack variables that have a
// StateVariable::otherwise. Metadata: the schema in words; "brain": the schema as JSON, which older files
// lack; and "network": network_hash in 32 hexadecimal digits, which says what brains the weights fit.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/spec/brain_counts.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

// The host's part of what a brain needs to continue as if it had never stopped.
struct HostState {
  std::uint64_t seed = 0;  // of exploration: a loaded brain explores as the saved one would have
  BrainCounters counters;
  std::vector<std::uint64_t> draws;  // [agents] AgentSlot::draws
  ReplayState replay;
};

struct SavedBrain {
  HostState host;
  std::vector<std::vector<std::byte>> state;  // content per state variable, in their order
};

inline constexpr std::uint32_t kSavedBrainVersion = 1;

// state: the bytes per variable. Errors: wrong_state (content that decode_brain would refuse), internal.
Result<std::vector<std::byte>> encode_brain(const BrainSpec& spec, std::span<const StateVariable> variables,
                                            const HostState& host,
                                            std::span<const std::span<const std::byte>> state);

// Checks every byte. Bounds for n bytes: those of safetensors::parse, plus the content. Errors: corrupt_file
// (not a saved brain, truncated, damaged, numbers not finite or out of range), unsupported (another format
// version), shape_mismatch (another schema; the text describes both).
Result<SavedBrain> decode_brain(std::span<const std::byte> bytes, const BrainSpec& spec,
                                std::span<const StateVariable> variables);

// The weights alone, from a brain with the same network_hash, whatever its agents, learner and memory. Empty
// for variables that hold no weights. A target network gets the network's weights; a critic that the file
// lacks stays as it is. The last layer takes in how far a feedback brain trusts its features
// (Network::trusted), so that the weights act alike with any learner. Errors: as decode_brain.
Result<std::vector<std::vector<std::byte>>> decode_weights(std::span<const std::byte> bytes,
                                                           const BrainSpec& spec,
                                                           std::span<const StateVariable> variables);

// Metadata of a saved brain that says what brain it is. Errors: as decode_brain.
struct BrainDescription {
  std::string name;
  std::string json;  // schema_json; empty: an older library wrote the file
};
Result<BrainDescription> describe_file(std::span<const std::byte> bytes);

}  // namespace imprint::agent
