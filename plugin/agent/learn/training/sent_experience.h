#pragma once
// Waiting samples as bytes, for actors that send experience to a learner in another process. Per sample: the
// brain of the kennel and the agent, uint32 each, then its row (learn/sample_layout.h). Both processes have
// one spec, so the bytes need no description. Samples with copies on the device cannot be sent: validate().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compute/base/result.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

std::uint64_t waiting_bytes(const BrainSpec& spec, const SampleQueue& waiting);
// Moves all samples out, each agent's in their order. into: of waiting_bytes().
void take_waiting(const BrainSpec& spec, SampleQueue& waiting, std::span<std::byte> into);
// How many samples were taken in, all or none; none where a brain has those of a learn step already.
// source: tells agents of one process from those of others. Errors: invalid_argument, naming the sample.
Result<std::optional<std::uint64_t>> put_waiting(const BrainSpec& spec, SampleQueue& waiting,
                                                 std::uint32_t source, std::span<const std::byte> from);

}  // namespace imprint::agent
