// Sizes and offsets of what crosses the interface: a change here breaks games that are already shipped, so it
// has to be a decision.

#include <cstddef>

#include "plugin/abi/structs.h"

#if UINTPTR_MAX == UINT64_MAX
namespace {

static_assert(sizeof(imp_header) == 16);
static_assert(sizeof(imp_context) == 8 && sizeof(imp_brain) == 8 && sizeof(imp_agent) == 8);
static_assert(sizeof(imp_vk_queue) == 56);
// Version 1, for ever: hosts with its header are served by every later library.
using imprint::abi::kKind;
static_assert(kKind<imp_vk_device_info>.first_size == 160 && kKind<imp_standalone_info>.first_size == 32 &&
              kKind<imp_host>.first_size == 48);
static_assert(kKind<imp_limits>.first_size == 40 && kKind<imp_frame_info>.first_size == 40 &&
              kKind<imp_record_info>.first_size == 32);
static_assert(kKind<imp_brain_desc>.first_size == 152 && kKind<imp_policy_desc>.first_size == 48 &&
              kKind<imp_brain_info>.first_size == 48);
static_assert(kKind<imp_action>.first_size == 592 && kKind<imp_feedback>.first_size == 40 &&
              kKind<imp_demonstration>.first_size == 328);
static_assert(kKind<imp_brain_stats>.first_size == 104 && kKind<imp_context_stats>.first_size == 160);

static_assert(sizeof(imp_vk_device_info) == 184 && offsetof(imp_vk_device_info, queue) == 104);
static_assert(sizeof(imp_standalone_info) == 32);
static_assert(sizeof(imp_host) == 104 && offsetof(imp_host, job_submit) == 72 &&
              offsetof(imp_host, kernel_archive) == 80);
static_assert(sizeof(imp_limits) == 64);
static_assert(sizeof(imp_frame_info) == 48);
static_assert(sizeof(imp_record_info) == 40 && offsetof(imp_record_info, state) == 32);
static_assert(sizeof(imp_brain_desc) == 224 && offsetof(imp_brain_desc, target_period) == 172 &&
              offsetof(imp_brain_desc, learner) == 100);
static_assert(sizeof(imp_policy_desc) == 64);
static_assert(sizeof(imp_brain_info) == 56);
static_assert(sizeof(imp_tensor) == 8 && sizeof(imp_tensor_desc) == 96 &&
              offsetof(imp_tensor_desc, shape) == 32);
static_assert(sizeof(imp_vk_buffer) == 88 && offsetof(imp_vk_buffer, families) == 56);
static_assert(sizeof(imp_vk_semaphore) == 24 && sizeof(imp_submit_info) == 48);
static_assert(sizeof(imp_action) == 592 && offsetof(imp_action, values) == 336);
static_assert(sizeof(imp_feedback) == 40);
static_assert(sizeof(imp_demonstration) == 328);
static_assert(sizeof(imp_brain_stats) == 120);
static_assert(sizeof(imp_context_stats) == 200);
static_assert(sizeof(imp_vk_plan) == 48 && sizeof(imp_vk_wish) == 256 && sizeof(imp_vk_merged) == 56);
static_assert(sizeof(imp_vk_extra_queue) == 12 && sizeof(imp_report) == 72 && sizeof(imp_loss) == 80 &&
              sizeof(imp_estimate) == 24);
static_assert(offsetof(imp_report, tensor_sharing) == kKind<imp_report>.first_size);
static_assert(offsetof(imp_api, result_name) == 16 && offsetof(imp_api, vk_free_merged) == 368);
static_assert(offsetof(imp_api, context_get_loss) == 392 && offsetof(imp_api, pipeline_cache_set) == 416);
static_assert(offsetof(imp_api, submit_with) == 480 && offsetof(imp_api, context_get_semaphore) == 496);
static_assert(offsetof(imp_api, tuning_stop) == 520 &&
              offsetof(imp_api, brain_load_weights) == sizeof(imp_api) - 8);

}  // namespace
#endif
