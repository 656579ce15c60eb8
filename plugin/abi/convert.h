#pragma once
// Structs of the interface as those of the rooms below. Here or there, each input is checked before use.

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/result.h"
#include "engine-bridge/context.h"
#include "engine-bridge/own/standalone.h"
#include "plugin/abi/structs.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/policy_spec.h"

namespace imprint::abi {

Result<> check_pointer(const char* call, const char* name, const void* pointer);
// Errors: invalid_argument for more than `most` elements, and for null with any. A wild count stops here.
Result<> check_array(const char* call, const char* name, const void* pointer, std::size_t count,
                     std::size_t most);

inline constexpr std::size_t kMostListed = 256;  // names, extents, states, bindings, inputs, outputs
// A copy. Errors: invalid_argument (null, not UTF-8).
Result<std::string> to_name(const char* call, const std::string& field, const char* given);
Result<std::vector<std::string>> to_names(const char* call, const std::string& field,
                                          const char* const* given, std::uint32_t count);
// imp_model_state as pairs of input and output.
Result<std::vector<std::pair<std::string, std::string>>> to_states(const char* call, const std::string& field,
                                                                   const imp_model_state* given,
                                                                   std::uint32_t count);

// The number behind an enumeration from the host. It may be none of the enumerators, so reading it as one
// would be undefined.
template <class Enum>
std::uint32_t number_of(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(std::uint32_t));
  std::uint32_t number;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Errors: invalid_argument for a number above `last`.
template <class Enum>
Result<> check_enum(const char* call, const char* name, const Enum& value, Enum last) {
  if (number_of(value) <= number_of(last)) return {};
  return refuse(call, text(name, ": found ", number_of(value), ", expected 0 to ", number_of(last)));
}

// Errors: invalid_argument for a value above 1.
Result<> check_flag(const char* call, const char* name, std::uint32_t value);

// imp_limits in the terms of the rooms below. Null: defaults.
struct Limits {
  bridge::Budget budget;
  std::uint32_t worker_threads = 1;  // 0: Imprint starts no thread
  std::uint64_t memory_cap_bytes = 0;
  std::uint32_t host_copy_period_frames = 0;
  std::uint32_t tuning_ms = 0;
  bool deterministic = false;
};
Result<Limits> to_limits(const char* call, const imp_limits* limits);

// Services of the host. Null: none.
Result<imp_host> to_host(const char* call, const imp_host* host);

// `given` came from read_struct. The result borrows its lists, and `queue`, which is filled here and must
// outlive the context.
Result<bridge::ContextDescription> to_context(const char* call, const imp_vk_device_info& given,
                                              const imp_host& host, const Limits& limits,
                                              imp_vk_queue& queue);
Result<bridge::StandaloneOptions> to_standalone(const char* call, const imp_standalone_info* device,
                                                const imp_host& host, const Limits& limits);
Result<agent::BrainSpec> to_brain_spec(const imp_brain_desc* desc);
Result<agent::PolicySpec> to_policy_spec(const imp_policy_desc* desc);

}  // namespace imprint::abi
