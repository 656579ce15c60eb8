#pragma once
// The interface's structs across versions. A host may have been built with an older or a newer header than
// this library:
//   given, shorter   the missing tail counts as zero, which for a field that came later means its default
//   given, longer    fine while the tail that this library does not know is zero
//   filled, shorter  filled as far as it reaches
//   filled, longer   the tail stays as it is
// No struct was ever shorter than in version 1. Fields are added at the end, never into the padding of an
// older version.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "compute/base/result.h"
#include "plugin/include/imprint/imprint.h"

namespace imprint::abi {

struct StructKind {
  const char* name = "";
  std::uint32_t type = 0;
  std::size_t first_size = 0;  // in version 1
  std::size_t size = 0;        // as this library knows it
};

// No struct of any version is longer: what claims to be was never initialised.
inline constexpr std::size_t kLongestStruct = 16384;

inline Error refuse(const char* call, const std::string& what) {
  return make_error(ErrorCode::invalid_argument, std::string(call) + ": " + what);
}

// Copies a given struct into kind.size bytes at `copy`. Errors: invalid_argument for a null pointer, another
// type, a next chain, a size that no version had, a tail that is set and not known here.
Status read_struct(const char* call, const char* name, const void* given, const StructKind& kind, void* copy);
// Checks a struct to be filled. Errors: the same, but for the tail.
Status check_filled_struct(const char* call, const char* name, const void* given, const StructKind& kind);
// Hands what lies behind the header of `filled` out, as far as `out`, which was checked, reaches.
void write_struct(const void* filled, const StructKind& kind, void* out);

template <class T>
inline constexpr StructKind kKind{};

// With the last member that the struct had in version 1.
#define IMPRINT_STRUCT(T, TYPE, LAST)                                                                     \
  template <>                                                                                             \
  inline constexpr StructKind kKind<T> {                                                                  \
#T, TYPE, (offsetof(T, LAST) + sizeof(T::LAST) + alignof(T) - 1) / alignof(T) * alignof(T), sizeof(T) \
  }
IMPRINT_STRUCT(imp_vk_device_info, IMP_STRUCT_VK_DEVICE_INFO, queue);
IMPRINT_STRUCT(imp_standalone_info, IMP_STRUCT_STANDALONE_INFO, validation);
IMPRINT_STRUCT(imp_host, IMP_STRUCT_HOST, user);
IMPRINT_STRUCT(imp_limits, IMP_STRUCT_LIMITS, memory_cap_bytes);
IMPRINT_STRUCT(imp_frame_info, IMP_STRUCT_FRAME_INFO, time_s);
IMPRINT_STRUCT(imp_record_info, IMP_STRUCT_RECORD_INFO, budget_us);
IMPRINT_STRUCT(imp_brain_desc, IMP_STRUCT_BRAIN_DESC, snapshot_count);
IMPRINT_STRUCT(imp_policy_desc, IMP_STRUCT_POLICY_DESC, action_latency_frames);
IMPRINT_STRUCT(imp_brain_info, IMP_STRUCT_BRAIN_INFO, parameter_count);
IMPRINT_STRUCT(imp_action, IMP_STRUCT_ACTION, values);
IMPRINT_STRUCT(imp_feedback, IMP_STRUCT_FEEDBACK, time_s);
IMPRINT_STRUCT(imp_demonstration, IMP_STRUCT_DEMONSTRATION, weight);
IMPRINT_STRUCT(imp_brain_stats, IMP_STRUCT_BRAIN_STATS, dropped_samples);
IMPRINT_STRUCT(imp_context_stats, IMP_STRUCT_CONTEXT_STATS, frame_cpu_us);
IMPRINT_STRUCT(imp_vk_plan, IMP_STRUCT_VK_PLAN, api_version);
IMPRINT_STRUCT(imp_vk_merged, IMP_STRUCT_VK_MERGED, owner);
IMPRINT_STRUCT(imp_report, IMP_STRUCT_REPORT, loss_count);
IMPRINT_STRUCT(imp_estimate, IMP_STRUCT_ESTIMATE, later_us);
IMPRINT_STRUCT(imp_loss, IMP_STRUCT_LOSS, vulkan_scene_graph);
IMPRINT_STRUCT(imp_tensor_desc, IMP_STRUCT_TENSOR_DESC, shape);
IMPRINT_STRUCT(imp_vk_buffer, IMP_STRUCT_VK_BUFFER, memory);
IMPRINT_STRUCT(imp_submit_info, IMP_STRUCT_SUBMIT_INFO, completions);
#undef IMPRINT_STRUCT

// A given struct, whole and in this library's form.
template <class T>
Result<T> read_struct(const char* call, const char* name, const T* given) {
  T copy;
  IMPRINT_CHECK(read_struct(call, name, given, kKind<T>, &copy));
  return copy;
}

template <class T>
Status check_filled_struct(const char* call, const char* name, const T* given) {
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
