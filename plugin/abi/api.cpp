#include "plugin/abi/error.h"
#include "plugin/abi/exports.h"
#include "plugin/include/imprint/imprint.h"
#include "plugin/include/imprint/version.h"

namespace imprint::abi {
namespace {

constexpr imp_api kApi = {
    .size = sizeof(imp_api),
    .abi_version = IMP_ABI_VERSION,
    .version = IMP_VERSION_STRING,
    .result_name = result_name,
    .last_error = last_error,
    .context_create = context_create,
    .context_create_standalone = context_create_standalone,
    .context_destroy = context_destroy,
    .context_report = context_report,
    .warmup = warmup,
    .set_limits = set_limits,
    .drain = drain,
    .context_get_stats = context_get_stats,
    .frame_begin = frame_begin,
    .submit = submit,
    .record = record,
    .frame_end = frame_end,
    .brain_create = brain_create,
    .brain_create_from_onnx = brain_create_from_onnx,
    .brain_destroy = brain_destroy,
    .brain_get_info = brain_get_info,
    .brain_get_stats = brain_get_stats,
    .brain_set_learning = brain_set_learning,
    .brain_save = brain_save,
    .brain_save_status = brain_save_status,
    .brain_load = brain_load,
    .brain_snapshot = brain_snapshot,
    .brain_restore = brain_restore,
    .brain_hash = brain_hash,
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
    .notify_device_lost = notify_device_lost,
    .quiesce = quiesce,
    .resume = resume,
    .trim = trim,
    .vk_query_requirements = vk_query_requirements,
    .vk_merge_device_create_info = vk_merge_device_create_info,
    .vk_free_merged = vk_free_merged,
    .vk_query_extra_queues = vk_query_extra_queues,
    .context_get_report = context_get_report,
    .context_get_loss = context_get_loss,
    .estimate = estimate,
    .pipeline_cache_get = pipeline_cache_get,
    .pipeline_cache_set = pipeline_cache_set,
    .tensor_import_vk = tensor_import_vk,
    .tensor_create_vk = tensor_create_vk,
    .tensor_export_vk = tensor_export_vk,
    .tensor_destroy = tensor_destroy,
    .tensor_acquire = tensor_acquire,
    .tensor_release = tensor_release,
    .agent_observe_in_place = agent_observe_in_place,
    .submit_with = submit_with,
    .run_jobs = run_jobs,
    .context_get_semaphore = context_get_semaphore,
    .tuning_get = tuning_get,
    .tuning_set = tuning_set,
    .tuning_stop = tuning_stop,
    .brain_load_weights = brain_load_weights,
};

}  // namespace
}  // namespace imprint::abi

extern "C" IMP_EXPORT imp_result IMP_CALL imp_get_api(uint32_t abi_version, const imp_api** api) {
  using namespace imprint::abi;
  if (!api) return fail(IMP_ERROR_INVALID_ARGUMENT, "imp_get_api: api is null");
  if (abi_version != IMP_ABI_VERSION)
    return fail(IMP_ERROR_UNSUPPORTED,
                "imp_get_api: this library serves ABI version 1 only; use the header that came with it");
  *api = &kApi;
  return IMP_OK;
}
