// Sizes and offsets of the interface's structs. A change breaks shipped games, so it must be a decision.

#include <cstddef>

#include "plugin/abi/structs.h"

#if UINTPTR_MAX == UINT64_MAX
namespace {

// In version 1: every later library serves hosts with these sizes.
template <class T>
constexpr bool first(std::size_t size) {
  return imprint::abi::kKind<T>.first_size == size;
}
static_assert(first<imp_host>(96));
static_assert(first<imp_limits>(64));
static_assert(first<imp_frame_info>(48));
static_assert(first<imp_brain_desc>(128));
static_assert(first<imp_policy_desc>(80));
static_assert(first<imp_brain_info>(56));
static_assert(first<imp_action>(600));
static_assert(first<imp_feedback>(40));
static_assert(first<imp_demonstration>(64));
#define IMPRINT_OPTIONS(name, NAME, Name, bytes) static_assert(first<imp_##name##_options>(bytes));
IMP_LEARNERS(IMPRINT_OPTIONS)
#undef IMPRINT_OPTIONS
static_assert(first<imp_network_options>(56));
static_assert(first<imp_demonstration_options>(40));
static_assert(first<imp_signal_options>(48));
static_assert(first<imp_self_play_options>(32));
static_assert(first<imp_opponent>(40));
static_assert(first<imp_group_options>(24));
static_assert(first<imp_vk_device_info>(208));
static_assert(first<imp_vk_plan>(48));
static_assert(first<imp_vk_merged>(72));
static_assert(first<imp_record_info>(40));
static_assert(first<imp_submit_info>(56));
static_assert(first<imp_tensor_desc>(96));
static_assert(first<imp_vk_buffer>(88));
static_assert(first<imp_standalone_info>(32) && offsetof(imp_standalone_info, cpu_threads) == 28);
static_assert(first<imp_report>(64));
static_assert(first<imp_missing_feature>(40));
static_assert(first<imp_estimate>(24));
static_assert(first<imp_brain_stats>(200));
static_assert(first<imp_context_stats>(208));
static_assert(first<imp_state_array>(48));
static_assert(first<imp_shared_learning>(48));
static_assert(first<imp_curves>(160));
static_assert(first<imp_model_desc>(120));
static_assert(first<imp_model_info>(64));
static_assert(first<imp_model_value>(104));
static_assert(first<imp_policy_names>(64));

static_assert(sizeof(imp_header) == 16 && sizeof(imp_vk_queue) == 64 && sizeof(imp_vk_semaphore) == 24);
static_assert(sizeof(imp_context) == 8 && sizeof(imp_brain) == 8 && sizeof(imp_agent) == 8 &&
              sizeof(imp_tensor) == 8);
static_assert(sizeof(imp_model) == 8 && sizeof(imp_model_extent) == 16 && sizeof(imp_model_state) == 16 &&
              sizeof(imp_model_binding) == 16 && sizeof(imp_model_input) == 24 &&
              sizeof(imp_model_output) == 24);
static_assert(sizeof(imp_stream) == 32);
static_assert(sizeof(imp_vk_wish) == 256 && sizeof(imp_vk_extra_queue) == 12);
static_assert(sizeof(imp_api) == 392 && sizeof(imp_vulkan_api) == 128 && sizeof(imp_tools_api) == 216 &&
              sizeof(imp_models_api) == 88);
static_assert(offsetof(imp_host, kernel_archive) == 48);
static_assert(offsetof(imp_limits, worker_threads) == 44);
static_assert(offsetof(imp_brain_desc, learner) == 76);
static_assert(offsetof(imp_brain_desc, seed) == 88);
static_assert(offsetof(imp_brain_desc, observations) == 112);
static_assert(offsetof(imp_action, values) == 336);
static_assert(offsetof(imp_action, is_new) == 592);
static_assert(offsetof(imp_vk_queue, submit) == 40);
static_assert(offsetof(imp_vk_device_info, queue) == 96);
static_assert(offsetof(imp_vk_device_info, allow_own_device) == 200);
static_assert(offsetof(imp_tensor_desc, shape) == 32);
static_assert(offsetof(imp_vk_buffer, families) == 56);
static_assert(offsetof(imp_report, tensor_sharing) == 56);
static_assert(offsetof(imp_api, result_name) == 40);
static_assert(offsetof(imp_api, context_create) == 56);
static_assert(offsetof(imp_api, frame_begin) == 128);
static_assert(offsetof(imp_api, brain_create) == 152);
static_assert(offsetof(imp_api, agent_create) == 256);
static_assert(offsetof(imp_api, agent_end_episode) == 344);
static_assert(offsetof(imp_vulkan_api, frame_record) == 8);
static_assert(offsetof(imp_vulkan_api, tensor_import_vk) == 40);
static_assert(offsetof(imp_vulkan_api, merged_free) == 120);
static_assert(offsetof(imp_tools_api, context_create_standalone) == 8);
static_assert(offsetof(imp_tools_api, tuning_stop) == 104);
static_assert(offsetof(imp_tools_api, brain_set_state) == 144);
static_assert(offsetof(imp_tools_api, brain_write_curves) == 160);
static_assert(offsetof(imp_tools_api, brain_give_experience) == 200);
static_assert(offsetof(imp_tools_api, brain_forget_returns) == 208);
static_assert(offsetof(imp_models_api, model_create) == 8);
static_assert(offsetof(imp_models_api, model_reset) == 80);

}  // namespace
#endif
