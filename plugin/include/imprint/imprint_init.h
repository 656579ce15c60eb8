#ifndef IMPRINT_IMPRINT_INIT_H_
#define IMPRINT_IMPRINT_INIT_H_
/* Part of imprint.h, which includes it: the structs with their defaults, one imp_*_init function each. */

#define IMP_INIT(s, TYPE) \
  (memset(&(s), 0, sizeof(s)), (s).header.size = (uint32_t)sizeof(s), (s).header.type = (uint32_t)(TYPE))

static inline imp_vk_device_info imp_vk_device_info_init(void) {
  imp_vk_device_info s;
  IMP_INIT(s, IMP_STRUCT_VK_DEVICE_INFO);
  return s;
}
static inline imp_vk_plan imp_vk_plan_init(void) {
  imp_vk_plan s;
  IMP_INIT(s, IMP_STRUCT_VK_PLAN);
  return s;
}
static inline imp_vk_merged imp_vk_merged_init(void) {
  imp_vk_merged s;
  IMP_INIT(s, IMP_STRUCT_VK_MERGED);
  return s;
}
static inline imp_report imp_report_init(void) {
  imp_report s;
  IMP_INIT(s, IMP_STRUCT_REPORT);
  return s;
}
static inline imp_estimate imp_estimate_init(void) {
  imp_estimate s;
  IMP_INIT(s, IMP_STRUCT_ESTIMATE);
  return s;
}
static inline imp_loss imp_loss_init(void) {
  imp_loss s;
  IMP_INIT(s, IMP_STRUCT_LOSS);
  return s;
}
static inline imp_standalone_info imp_standalone_info_init(void) {
  imp_standalone_info s;
  IMP_INIT(s, IMP_STRUCT_STANDALONE_INFO);
  return s;
}
static inline imp_host imp_host_init(void) {
  imp_host s;
  IMP_INIT(s, IMP_STRUCT_HOST);
  return s;
}
static inline imp_limits imp_limits_init(void) {
  imp_limits s;
  IMP_INIT(s, IMP_STRUCT_LIMITS);
  s.gpu_us_per_frame = 500;
  s.max_slice_us = 1000;
  s.worker_threads = 1;
  s.memory_cap_bytes = (uint64_t)256 << 20;
  return s;
}
static inline imp_frame_info imp_frame_info_init(void) {
  imp_frame_info s;
  IMP_INIT(s, IMP_STRUCT_FRAME_INFO);
  return s;
}
static inline imp_record_info imp_record_info_init(void) {
  imp_record_info s;
  IMP_INIT(s, IMP_STRUCT_RECORD_INFO);
  s.budget_us = UINT32_MAX;
  return s;
}
static inline imp_submit_info imp_submit_info_init(void) {
  imp_submit_info s;
  IMP_INIT(s, IMP_STRUCT_SUBMIT_INFO);
  s.budget_us = UINT32_MAX;
  return s;
}
static inline imp_tensor_desc imp_tensor_desc_init(void) {
  imp_tensor_desc s;
  IMP_INIT(s, IMP_STRUCT_TENSOR_DESC);
  return s;
}
static inline imp_vk_buffer imp_vk_buffer_init(void) {
  imp_vk_buffer s;
  IMP_INIT(s, IMP_STRUCT_VK_BUFFER);
  return s;
}
static inline imp_brain_desc imp_brain_desc_init(void) {
  imp_brain_desc s;
  IMP_INIT(s, IMP_STRUCT_BRAIN_DESC);
  s.goal_count = 1;
  s.hidden_count = 2;
  s.brain_count = 1;
  s.agents_per_brain = 1;
  s.action_latency_frames = 2;
  s.decision_period_frames = 1;
  s.learn_period_frames = 6;
  s.batch_size = 32;
  s.replay_capacity = 4096;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 1.0f;
  s.exploration = 0.2f;
  s.margin = 0.5f;
  s.margin_weight = 0.3f;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  s.snapshot_count = 4;
  return s;
}
/* The same with a learner, and what that one usually has elsewhere: DQN the rates of Stable-Baselines3 with
 * the memory, target and epsilon of CleanRL, PPO those of Stable-Baselines3 with a crowd's rollout. */
static inline imp_brain_desc imp_brain_desc_init_for(imp_learner learner) {
  imp_brain_desc s = imp_brain_desc_init();
  s.learner = learner;
  if (learner == IMP_LEARNER_DQN) {
    s.learning_rate = 1e-4f;
    s.max_gradient_norm = 10.0f;
    s.replay_capacity = 10000;
    s.exploration = 0.0f;
    s.epsilon = 0.05f;
    s.epsilon_decisions = 10000;
  } else if (learner == IMP_LEARNER_COACH) {
    s.learning_rate = 0.05f;
  } else if (learner == IMP_LEARNER_PPO) {
    s.learning_rate = 3e-4f;
    s.max_gradient_norm = 0.5f;
    s.batch_size = 64;
  }
  return s;
}
static inline imp_policy_desc imp_policy_desc_init(void) {
  imp_policy_desc s;
  IMP_INIT(s, IMP_STRUCT_POLICY_DESC);
  s.agent_capacity = 64;
  s.action_latency_frames = 2;
  return s;
}
static inline imp_brain_info imp_brain_info_init(void) {
  imp_brain_info s;
  IMP_INIT(s, IMP_STRUCT_BRAIN_INFO);
  return s;
}
static inline imp_action imp_action_init(void) {
  imp_action s;
  IMP_INIT(s, IMP_STRUCT_ACTION);
  return s;
}
static inline imp_feedback imp_feedback_init(void) {
  imp_feedback s;
  IMP_INIT(s, IMP_STRUCT_FEEDBACK);
  s.weight = 1.0f;
  return s;
}
static inline imp_demonstration imp_demonstration_init(void) {
  imp_demonstration s;
  IMP_INIT(s, IMP_STRUCT_DEMONSTRATION);
  s.weight = 2.0f;
  return s;
}
static inline imp_brain_stats imp_brain_stats_init(void) {
  imp_brain_stats s;
  IMP_INIT(s, IMP_STRUCT_BRAIN_STATS);
  return s;
}
static inline imp_context_stats imp_context_stats_init(void) {
  imp_context_stats s;
  IMP_INIT(s, IMP_STRUCT_CONTEXT_STATS);
  return s;
}

#endif /* IMPRINT_IMPRINT_INIT_H_ */
