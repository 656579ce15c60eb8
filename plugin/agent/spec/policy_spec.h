#pragma once
// The description of a policy, as imp_policy_desc gives it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compute/model/policy.h"

namespace imprint::agent {

struct PolicySpec {
  std::string name = "policy";
  std::span<const std::byte> file;    // borrowed for the call
  std::uint32_t agent_capacity = 64;  // agents per batch
  std::uint32_t action_latency_frames = 2;
  std::uint64_t constant_limit_bytes = std::uint64_t{1} << 30;  // ImportOptions
  std::uint64_t operation_limit = std::uint64_t{1} << 34;       // of one agent's decision, with bytes moved
  std::uint64_t state_limit_bytes = UINT64_MAX;                 // of the recurrent state of all agents
  PolicyNames names;                                            // none: by the rules
};

}  // namespace imprint::agent
