#include "plugin/abi/error.h"
#include "plugin/abi/exports.h"
#include "plugin/include/imprint/version.h"

namespace imprint::abi {
namespace {

constexpr imp_vulkan_api kVulkanApi = {
    .size = sizeof(imp_vulkan_api),
    .frame_record = frame_record,
    .frame_submit_with = frame_submit_with,
    .context_get_semaphore = context_get_semaphore,
    .context_device_idle = context_device_idle,
    .tensor_import_vk = tensor_import_vk,
    .tensor_create_vk = tensor_create_vk,
    .tensor_export_vk = tensor_export_vk,
    .tensor_destroy = tensor_destroy,
    .tensor_acquire = tensor_acquire,
    .tensor_release = tensor_release,
    .agent_observe_in_place = agent_observe_in_place,
    .plan_query_requirements = plan_query_requirements,
    .plan_query_extra_queues = plan_query_extra_queues,
    .plan_merge_device_create_info = plan_merge_device_create_info,
    .merged_free = merged_free,
};

constexpr imp_tools_api kToolsApi = {
    .size = sizeof(imp_tools_api),
    .context_create_standalone = context_create_standalone,
    .context_get_report_text = context_get_report_text,
    .context_get_report = context_get_report,
    .context_get_missing_feature = context_get_missing_feature,
    .missing_feature_remedy = missing_feature_remedy,
    .context_get_stats = context_get_stats,
    .context_run_jobs = context_run_jobs,
    .frame_estimate = frame_estimate,
    .pipeline_cache_get = pipeline_cache_get,
    .pipeline_cache_set = pipeline_cache_set,
    .tuning_get = tuning_get,
    .tuning_set = tuning_set,
    .tuning_stop = tuning_stop,
    .brain_get_stats = brain_get_stats,
    .brain_hash = brain_hash,
    .brain_get_state_array = brain_get_state_array,
    .brain_get_state = brain_get_state,
    .brain_set_state = brain_set_state,
    .brain_get_curves = brain_get_curves,
    .brain_write_curves = brain_write_curves,
    .brain_load_demonstrations = brain_load_demonstrations,
    .brain_save_demonstrations = brain_save_demonstrations,
    .brain_clear_demonstrations = brain_clear_demonstrations,
    .brain_take_experience = brain_take_experience,
    .brain_give_experience = brain_give_experience,
    .brain_forget_returns = brain_forget_returns,
};

constexpr imp_models_api kModelsApi = {
    .size = sizeof(imp_models_api),
    .model_create = model_create,
    .model_destroy = model_destroy,
    .model_get_info = model_get_info,
    .model_get_input = model_get_input,
    .model_get_output = model_get_output,
    .model_set_extent = model_set_extent,
    .model_run = model_run,
    .model_read = model_read,
    .model_discard = model_discard,
    .model_reset = model_reset,
};

constexpr imp_api kApi = {
    .size = sizeof(imp_api),
    .abi_version = IMP_ABI_VERSION,
    .version = IMP_VERSION_STRING,
    .vulkan = &kVulkanApi,
    .tools = &kToolsApi,
    .models = &kModelsApi,
    .result_name = result_name,
    .last_error = last_error,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .context_warmup = context_warmup,
    .context_set_limits = context_set_limits,
    .context_drain = context_drain,
    .context_quiesce = context_quiesce,
    .context_resume = context_resume,
    .context_trim = context_trim,
    .context_notify_device_lost = context_notify_device_lost,
    .frame_begin = frame_begin,
    .frame_submit = frame_submit,
    .frame_end = frame_end,
    .brain_create = brain_create,
    .brain_create_from_onnx = brain_create_from_onnx,
    .brain_destroy = brain_destroy,
    .brain_get_info = brain_get_info,
    .brain_set_learning = brain_set_learning,
    .brain_save = brain_save,
    .brain_save_status = brain_save_status,
    .brain_load = brain_load,
    .brain_load_weights = brain_load_weights,
    .brain_snapshot = brain_snapshot,
    .brain_restore = brain_restore,
    .brain_keep_opponent = brain_keep_opponent,
    .brain_get_opponent = brain_get_opponent,
    .agent_create = agent_create,
    .agent_destroy = agent_destroy,
    .agent_set_mode = agent_set_mode,
    .agent_set_goal = agent_set_goal,
    .agent_set_mask = agent_set_mask,
    .agent_observe = agent_observe,
    .agent_act = agent_act,
    .agent_heuristic = agent_heuristic,
    .agent_feedback = agent_feedback,
    .agent_demonstrate = agent_demonstrate,
    .agent_reward = agent_reward,
    .agent_end_episode = agent_end_episode,
    .agent_set_opponent = agent_set_opponent,
    .agent_set_group = agent_set_group,
    .agent_group_reward = agent_group_reward,
    .agent_end_group_episode = agent_end_group_episode,
    .match_report = match_report,
};

}  // namespace
}  // namespace imprint::abi

extern "C" IMP_EXPORT imp_result IMP_CALL imp_get_api(uint32_t abi_version, const imp_api** api) {
  using namespace imprint::abi;
  if (!api) return fail(IMP_ERROR_INVALID_ARGUMENT, "imp_get_api: api: found null, expected a pointer");
  if (abi_version != IMP_ABI_VERSION)
    return fail(
        IMP_ERROR_UNSUPPORTED,
        "imp_get_api: abi_version: found another ABI version than this library's. Use the header that came "
        "with the library.");
  *api = &kApi;
  return IMP_OK;
}
