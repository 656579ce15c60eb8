#pragma once
// Structs of the interface across versions. A host's header may be older or newer than this library. A struct
// of an older header is shorter, of a newer one longer:
//   input, shorter   missing fields have the defaults of the struct's init function
//   input, longer    accepted while the fields that this library does not know are zero
//   output, shorter  filled up to its end
//   output, longer   the rest stays as it is
// No struct is shorter than in version 1. New fields go to the end, never into the padding of an older
// version.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "compute/base/result.h"
#include "compute/base/text.h"
#include "plugin/include/imprint/imprint_models.h"
#include "plugin/include/imprint/imprint_tools.h"
#include "plugin/include/imprint/imprint_vulkan.h"

namespace imprint::abi {

struct StructKind {
  const char* name = "";
  std::uint32_t type = 0;
  std::size_t first_size = 0;  // in version 1
  std::size_t size = 0;        // in this library
};

// bytes; a larger size means that the struct was never initialised.
inline constexpr std::size_t kLongestStruct = 16384;

inline Error refuse(const char* call, const std::string& what) {
  return make_error(ErrorCode::invalid_argument, text(call, ": ", what));
}

// Whether a struct may have a chain of others on header.next.
enum class Next : std::uint8_t { none, chain };

// Copies an input over the first bytes of `copy`, which holds the defaults: kind.size bytes.
// Errors: invalid_argument (null, another type, an unexpected chain, a size that no version has, an unknown
// field that is set).
Result<> read_struct(const char* call, const char* name, const void* given, const StructKind& kind,
                     void* copy, Next next = Next::none);
// Checks an output. Errors: as read_struct, except for unknown fields.
Result<> check_filled_struct(const char* call, const char* name, const void* given, const StructKind& kind,
                             Next next = Next::none);
// Copies `filled` to `out`, up to the shorter end and without the header. `out` was checked.
void write_struct(const void* filled, const StructKind& kind, void* out);

imp_header read_header(const void* given);

template <class T>
inline constexpr StructKind kKind{};

// NAME_init gives the defaults.
#define IMPRINT_STRUCT(NAME, TYPE)                                                  \
  template <>                                                                       \
  inline constexpr StructKind kKind<NAME>{#NAME, TYPE, sizeof(NAME), sizeof(NAME)}; \
  inline NAME defaults_of(std::type_identity<NAME>) { return NAME##_init(); }
IMPRINT_STRUCT(imp_host, IMP_STRUCT_HOST)
IMPRINT_STRUCT(imp_limits, IMP_STRUCT_LIMITS)
IMPRINT_STRUCT(imp_frame_info, IMP_STRUCT_FRAME_INFO)
IMPRINT_STRUCT(imp_brain_desc, IMP_STRUCT_BRAIN_DESC)
IMPRINT_STRUCT(imp_policy_desc, IMP_STRUCT_POLICY_DESC)
IMPRINT_STRUCT(imp_brain_info, IMP_STRUCT_BRAIN_INFO)
IMPRINT_STRUCT(imp_action, IMP_STRUCT_ACTION)
IMPRINT_STRUCT(imp_feedback, IMP_STRUCT_FEEDBACK)
IMPRINT_STRUCT(imp_demonstration, IMP_STRUCT_DEMONSTRATION)

#define IMPRINT_OPTIONS(name, NAME, ...) IMPRINT_STRUCT(imp_##name##_options, IMP_STRUCT_##NAME##_OPTIONS)
IMP_LEARNERS(IMPRINT_OPTIONS)
#undef IMPRINT_OPTIONS

IMPRINT_STRUCT(imp_network_options, IMP_STRUCT_NETWORK_OPTIONS)
IMPRINT_STRUCT(imp_demonstration_options, IMP_STRUCT_DEMONSTRATION_OPTIONS)
IMPRINT_STRUCT(imp_signal_options, IMP_STRUCT_SIGNAL_OPTIONS)
IMPRINT_STRUCT(imp_self_play_options, IMP_STRUCT_SELF_PLAY_OPTIONS)
IMPRINT_STRUCT(imp_opponent, IMP_STRUCT_OPPONENT)
IMPRINT_STRUCT(imp_group_options, IMP_STRUCT_GROUP_OPTIONS)

IMPRINT_STRUCT(imp_vk_device_info, IMP_STRUCT_VK_DEVICE_INFO)
IMPRINT_STRUCT(imp_vk_plan, IMP_STRUCT_VK_PLAN)
IMPRINT_STRUCT(imp_vk_merged, IMP_STRUCT_VK_MERGED)
IMPRINT_STRUCT(imp_record_info, IMP_STRUCT_RECORD_INFO)
IMPRINT_STRUCT(imp_submit_info, IMP_STRUCT_SUBMIT_INFO)
IMPRINT_STRUCT(imp_tensor_desc, IMP_STRUCT_TENSOR_DESC)
IMPRINT_STRUCT(imp_vk_buffer, IMP_STRUCT_VK_BUFFER)

IMPRINT_STRUCT(imp_model_desc, IMP_STRUCT_MODEL_DESC)
IMPRINT_STRUCT(imp_model_info, IMP_STRUCT_MODEL_INFO)
IMPRINT_STRUCT(imp_model_value, IMP_STRUCT_MODEL_VALUE)
IMPRINT_STRUCT(imp_policy_names, IMP_STRUCT_POLICY_NAMES)

IMPRINT_STRUCT(imp_standalone_info, IMP_STRUCT_STANDALONE_INFO)
IMPRINT_STRUCT(imp_report, IMP_STRUCT_REPORT)
IMPRINT_STRUCT(imp_missing_feature, IMP_STRUCT_MISSING_FEATURE)
IMPRINT_STRUCT(imp_estimate, IMP_STRUCT_ESTIMATE)
IMPRINT_STRUCT(imp_brain_stats, IMP_STRUCT_BRAIN_STATS)
IMPRINT_STRUCT(imp_context_stats, IMP_STRUCT_CONTEXT_STATS)
IMPRINT_STRUCT(imp_state_array, IMP_STRUCT_STATE_ARRAY)
IMPRINT_STRUCT(imp_shared_learning, IMP_STRUCT_SHARED_LEARNING)
IMPRINT_STRUCT(imp_curves, IMP_STRUCT_CURVES)
#undef IMPRINT_STRUCT

// An input with all fields of this library.
template <class T>
Result<T> read_struct(const char* call, const char* name, const T* given, Next next = Next::none) {
  T copy = defaults_of(std::type_identity<T>());
  IMPRINT_CHECK(read_struct(call, name, given, kKind<T>, &copy, next));
  return copy;
}

template <class T>
Result<> check_filled_struct(const char* call, const char* name, const T* given) {
  return check_filled_struct(call, name, given, kKind<T>);
}

// `given` was checked.
template <class T, class Fill>
void fill_struct(T* given, Fill&& fill) {
  T filled{};
  fill(filled);
  write_struct(&filled, kKind<T>, given);
}

}  // namespace imprint::abi
