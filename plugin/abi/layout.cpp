// Sizes and offsets of what crosses the interface: a change here breaks games that are already shipped, so it has to be a decision.

#include <cstddef>

#include "plugin/include/imprint/imprint.h"

#if UINTPTR_MAX == UINT64_MAX
namespace {

static_assert(sizeof(imp_header) == 16);
static_assert(sizeof(imp_context) == 8 && sizeof(imp_brain) == 8 && sizeof(imp_agent) == 8);
static_assert(sizeof(imp_vk_queue) == 56);
static_assert(sizeof(imp_vk_device_info) == 160 && offsetof(imp_vk_device_info, queue) == 104);
static_assert(sizeof(imp_standalone_info) == 32);
static_assert(sizeof(imp_host) == 48);
static_assert(sizeof(imp_limits) == 40);
static_assert(sizeof(imp_frame_info) == 40);
static_assert(sizeof(imp_record_info) == 32);
static_assert(sizeof(imp_brain_desc) == 152 && offsetof(imp_brain_desc, learner) == 100);
static_assert(sizeof(imp_policy_desc) == 48);
static_assert(sizeof(imp_brain_info) == 48);
static_assert(sizeof(imp_action) == 592 && offsetof(imp_action, values) == 336);
static_assert(sizeof(imp_feedback) == 40);
static_assert(sizeof(imp_demonstration) == 328);
static_assert(sizeof(imp_brain_stats) == 104);
static_assert(sizeof(imp_context_stats) == 160);
static_assert(offsetof(imp_api, result_name) == 16 && offsetof(imp_api, agent_end_episode) == sizeof(imp_api) - 8);

}  // namespace
#endif
