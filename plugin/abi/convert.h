#pragma once
// The interface's structs into ours. Everything that a host hands in is checked here or in the rooms below
// before it is used.

#include <cstring>
#include <span>
#include <string>

#include "compute/base/result.h"
#include "engine-bridge/context.h"
#include "engine-bridge/own/standalone.h"
#include "plugin/abi/structs.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::abi {

Status check_pointer(const char* call, const char* name, const void* pointer);
// Of an array whose end nothing tells: that it is there, and no longer than anything that is meant.
Status check_array(const char* call, const char* name, const void* pointer, std::size_t count,
                   std::size_t most);

// The number behind an enumeration of the host's, which may be none of its values: reading it as such would
// be undefined.
template <class Enum>
std::uint32_t number_of(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(std::uint32_t));
  std::uint32_t number;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Errors: invalid_argument when the number lies above `last`.
template <class Enum>
Status check_enum(const char* call, const char* name, const Enum& value, Enum last) {
  if (number_of(value) <= number_of(last)) return {};
  return refuse(call, text(name, ": found ", number_of(value), ", expected 0 to ", number_of(last)));
}

// Errors: invalid_argument for anything else than 0 and 1.
Status check_flag(const char* call, const char* name, std::uint32_t value);

// Limits as our options; null = defaults.
struct Limits {
  bridge::Budget budget;
  std::uint32_t worker_threads = 1;  // 0: no thread of ours at all
  std::uint64_t memory_cap_bytes = 0;
  std::uint32_t shadow_period_frames = 0;
  std::uint32_t tuning_ms = 0;
  bool deterministic = false;
};
Result<Limits> to_limits(const char* call, const imp_limits* limits);

// What the host lends; null = nothing.
Result<imp_host> to_host(const char* call, const imp_host* host);

// `given` was read. Its lists are borrowed; `queue` is filled, borrowed, and must outlive the context.
Result<bridge::ContextDescription> to_context(const char* call, const imp_vk_device_info& given,
                                              const imp_host& host, const Limits& limits,
                                              imp_vk_queue& queue);
Result<bridge::StandaloneOptions> to_standalone(const char* call, const imp_standalone_info* device,
                                                const imp_host& host, const Limits& limits);
Result<agent::BrainSpec> to_brain_spec(const imp_brain_desc* desc);
Result<agent::PolicySpec> to_policy_spec(const imp_policy_desc* desc);

}  // namespace imprint::abi
