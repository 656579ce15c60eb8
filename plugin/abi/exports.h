#pragma once
// The functions in the tables. Contracts: the headers in plugin/include/imprint.

#include "plugin/include/imprint/imprint_models.h"
#include "plugin/include/imprint/imprint_tools.h"
#include "plugin/include/imprint/imprint_vulkan.h"

namespace imprint::abi {

imp_result IMP_CALL context_create(const imp_vk_device_info* device, const imp_host* host,
                                   const imp_limits* limits, imp_context* context);
imp_result IMP_CALL context_create_standalone(const imp_standalone_info* device, const imp_host* host,
                                              const imp_limits* limits, imp_context* context);
imp_result IMP_CALL context_destroy(imp_context context);
imp_result IMP_CALL context_warmup(imp_context context, void (*progress)(void* user, float fraction),
                                   void* user);
imp_result IMP_CALL context_set_limits(imp_context context, const imp_limits* limits);
imp_result IMP_CALL context_drain(imp_context context, uint32_t timeout_ms);
imp_result IMP_CALL context_quiesce(imp_context context, uint32_t timeout_ms);
imp_result IMP_CALL context_resume(imp_context context);
imp_result IMP_CALL context_device_idle(imp_context context);
imp_result IMP_CALL context_trim(imp_context context, uint64_t* freed_bytes);
imp_result IMP_CALL context_notify_device_lost(imp_context context);
imp_result IMP_CALL context_get_semaphore(imp_context context, imp_vk_semaphore* semaphore);

imp_result IMP_CALL frame_begin(imp_context context, const imp_frame_info* info);
imp_result IMP_CALL frame_submit(imp_context context, uint32_t budget_us);
imp_result IMP_CALL frame_submit_with(imp_context context, const imp_submit_info* info);
imp_result IMP_CALL frame_record(imp_context context, const imp_record_info* info, uint32_t* remaining_us);
imp_result IMP_CALL frame_estimate(imp_context context, imp_estimate* estimate);
imp_result IMP_CALL frame_end(imp_context context);

imp_result IMP_CALL brain_create(imp_context context, const imp_brain_desc* desc, imp_brain* brain);
imp_result IMP_CALL brain_create_from_onnx(imp_context context, const imp_policy_desc* desc,
                                           imp_brain* brain);
imp_result IMP_CALL brain_destroy(imp_brain brain);
imp_result IMP_CALL brain_get_info(imp_brain brain, imp_brain_info* info);
imp_result IMP_CALL brain_get_stats(imp_brain brain, imp_brain_stats* stats);
imp_result IMP_CALL brain_set_learning(imp_brain brain, uint32_t enabled);
imp_result IMP_CALL brain_save(imp_brain brain, const char* path);
imp_result IMP_CALL brain_save_status(imp_brain brain);
imp_result IMP_CALL brain_load(imp_brain brain, const char* path);
imp_result IMP_CALL brain_load_weights(imp_brain brain, const char* path);
imp_result IMP_CALL brain_snapshot(imp_brain brain, uint64_t* snapshot);
imp_result IMP_CALL brain_restore(imp_brain brain, uint64_t snapshot);
imp_result IMP_CALL brain_hash(imp_brain brain, uint64_t* low, uint64_t* high);
imp_result IMP_CALL brain_get_state_array(imp_brain brain, uint32_t index, imp_state_array* array);
imp_result IMP_CALL brain_get_state(imp_brain brain, void* data, size_t* size);
imp_result IMP_CALL brain_set_state(imp_brain brain, const void* data, size_t size);
imp_result IMP_CALL brain_take_experience(imp_brain brain, void* data, size_t* size);
imp_result IMP_CALL brain_give_experience(imp_brain brain, uint32_t source, const void* data, size_t size);
imp_result IMP_CALL brain_get_curves(imp_brain brain, uint64_t row, imp_curves* curves);
imp_result IMP_CALL brain_write_curves(imp_brain brain, const char* path);
imp_result IMP_CALL brain_forget_returns(imp_brain brain);
imp_result IMP_CALL agent_set_opponent(imp_agent agent, uint32_t opponent, uint32_t* chosen);
imp_result IMP_CALL agent_set_group(imp_agent agent, uint32_t group);
imp_result IMP_CALL agent_group_reward(imp_agent agent, float reward);
imp_result IMP_CALL agent_end_group_episode(imp_agent agent, imp_episode_end end);
imp_result IMP_CALL match_report(imp_agent first, imp_agent second, float score);
imp_result IMP_CALL brain_keep_opponent(imp_brain brain, uint32_t brain_index);
imp_result IMP_CALL brain_get_opponent(imp_brain brain, uint32_t brain_index, uint32_t opponent,
                                       imp_opponent* info);
imp_result IMP_CALL brain_load_demonstrations(imp_brain brain, const char* path, uint32_t brain_index,
                                              uint32_t* count);
imp_result IMP_CALL brain_save_demonstrations(imp_brain brain, const char* path, uint32_t brain_index);
imp_result IMP_CALL brain_clear_demonstrations(imp_brain brain);

imp_result IMP_CALL model_create(imp_context context, const imp_model_desc* desc, imp_model* model);
imp_result IMP_CALL model_destroy(imp_model model);
imp_result IMP_CALL model_get_info(imp_model model, imp_model_info* info);
imp_result IMP_CALL model_get_input(imp_model model, uint32_t index, imp_model_value* value);
imp_result IMP_CALL model_get_output(imp_model model, uint32_t index, imp_model_value* value);
imp_result IMP_CALL model_set_extent(imp_model model, const char* name, uint64_t value);
imp_result IMP_CALL model_run(imp_model model, const imp_model_input* inputs, uint32_t input_count,
                              uint64_t* run);
imp_result IMP_CALL model_read(imp_model model, uint64_t run, const imp_model_output* outputs,
                               uint32_t output_count);
imp_result IMP_CALL model_discard(imp_model model, uint64_t run);
imp_result IMP_CALL model_reset(imp_model model);

imp_result IMP_CALL agent_create(imp_brain brain, uint32_t brain_index, imp_agent* agent);
imp_result IMP_CALL agent_destroy(imp_agent agent);
imp_result IMP_CALL agent_set_mode(imp_agent agent, imp_mode mode);
imp_result IMP_CALL agent_set_goal(imp_agent agent, uint32_t goal);
imp_result IMP_CALL agent_set_mask(imp_agent agent, const uint8_t* allowed, uint32_t count);
imp_result IMP_CALL agent_observe(imp_agent agent, const float* observation, uint32_t count);
imp_result IMP_CALL agent_observe_in_place(imp_agent agent, uint64_t first);
imp_result IMP_CALL agent_act(imp_agent agent, imp_action* action);
imp_result IMP_CALL agent_heuristic(imp_agent agent, const uint32_t* branches, uint32_t branch_count,
                                    const float* continuous, uint32_t continuous_count);
imp_result IMP_CALL agent_feedback(imp_agent agent, const imp_feedback* feedback);
imp_result IMP_CALL agent_demonstrate(imp_agent agent, const imp_demonstration* demonstration);
imp_result IMP_CALL agent_reward(imp_agent agent, float reward);
imp_result IMP_CALL agent_end_episode(imp_agent agent, imp_episode_end end);

imp_result IMP_CALL tensor_import_vk(imp_context context, const imp_tensor_desc* desc,
                                     const imp_vk_buffer* buffer, imp_tensor* tensor);
imp_result IMP_CALL tensor_create_vk(imp_context context, const imp_tensor_desc* desc,
                                     const imp_vk_buffer* wish, imp_tensor* tensor);
imp_result IMP_CALL tensor_export_vk(imp_tensor tensor, imp_vk_buffer* buffer);
imp_result IMP_CALL tensor_destroy(imp_tensor tensor);
imp_result IMP_CALL tensor_acquire(imp_tensor tensor);
imp_result IMP_CALL tensor_release(imp_tensor tensor);

imp_result IMP_CALL plan_query_requirements(const imp_vk_plan* plan, uint32_t* count, imp_vk_wish* wishes);
imp_result IMP_CALL plan_query_extra_queues(const imp_vk_plan* plan, uint32_t* count,
                                            imp_vk_extra_queue* queues);
imp_result IMP_CALL plan_merge_device_create_info(const imp_vk_plan* plan, const void* create_info,
                                                  imp_vk_merged* merged);
void IMP_CALL merged_free(imp_vk_merged* merged);

imp_result IMP_CALL context_get_report_text(imp_context context, char* text, size_t* size);
imp_result IMP_CALL context_get_report(imp_context context, imp_report* report);
imp_result IMP_CALL context_get_missing_feature(imp_context context, uint32_t index,
                                                imp_missing_feature* feature);
imp_result IMP_CALL missing_feature_remedy(imp_context context, uint32_t index, imp_engine engine,
                                           const char** text);
imp_result IMP_CALL context_get_stats(imp_context context, imp_context_stats* stats);
imp_result IMP_CALL context_run_jobs(imp_context context, uint32_t budget_us, uint32_t* waiting);
imp_result IMP_CALL pipeline_cache_get(imp_context context, void* data, size_t* size);
imp_result IMP_CALL pipeline_cache_set(imp_context context, const void* data, size_t size);
imp_result IMP_CALL tuning_get(imp_context context, char* text, size_t* size);
imp_result IMP_CALL tuning_set(imp_context context, const char* text, size_t size);
imp_result IMP_CALL tuning_stop(imp_context context);

}  // namespace imprint::abi
