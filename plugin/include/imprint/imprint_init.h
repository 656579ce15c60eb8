#ifndef IMPRINT_IMPRINT_INIT_H_
#define IMPRINT_IMPRINT_INIT_H_
/* Part of imprint.h, which includes it: one imp_*_init function per struct, with the defaults. */

static inline imp_host imp_host_init(void) {
  IMP_INIT(imp_host, s, IMP_STRUCT_HOST);
  return s;
}
static inline imp_limits imp_limits_init(void) {
  IMP_INIT(imp_limits, s, IMP_STRUCT_LIMITS);
  s.memory_cap_bytes = (uint64_t)256 << 20;
  s.gpu_us_per_frame = 500;
  s.max_slice_us = 1000;
  s.worker_threads = 1;
  return s;
}
static inline imp_frame_info imp_frame_info_init(void) {
  IMP_INIT(imp_frame_info, s, IMP_STRUCT_FRAME_INFO);
  return s;
}
static inline imp_brain_desc imp_brain_desc_init(void) {
  IMP_INIT(imp_brain_desc, s, IMP_STRUCT_BRAIN_DESC);
  s.goal_count = 1;
  s.hidden_count = 2;
  s.brain_count = 1;
  s.agents_per_brain = 1;
  s.decision_period_frames = 1;
  s.snapshot_count = 4;
  return s;
}
static inline imp_policy_desc imp_policy_desc_init(void) {
  IMP_INIT(imp_policy_desc, s, IMP_STRUCT_POLICY_DESC);
  s.agent_capacity = 64;
  s.constant_limit_bytes = (uint64_t)1 << 30;
  return s;
}
static inline imp_brain_info imp_brain_info_init(void) {
  IMP_INIT(imp_brain_info, s, IMP_STRUCT_BRAIN_INFO);
  return s;
}
static inline imp_action imp_action_init(void) {
  IMP_INIT(imp_action, s, IMP_STRUCT_ACTION);
  return s;
}
static inline imp_feedback imp_feedback_init(void) {
  IMP_INIT(imp_feedback, s, IMP_STRUCT_FEEDBACK);
  s.weight = 1.0f;
  return s;
}
static inline imp_demonstration imp_demonstration_init(void) {
  IMP_INIT(imp_demonstration, s, IMP_STRUCT_DEMONSTRATION);
  s.weight = 2.0f;
  return s;
}

static inline imp_feedback_options imp_feedback_options_init(void) {
  IMP_INIT(imp_feedback_options, s, IMP_STRUCT_FEEDBACK_OPTIONS);
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
  return s;
}
static inline imp_cloning_options imp_cloning_options_init(void) {
  IMP_INIT(imp_cloning_options, s, IMP_STRUCT_CLONING_OPTIONS);
  s.learn_period_frames = 6;
  s.batch_size = 32;
  s.replay_capacity = 4096;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 1.0f;
  s.exploration = 0.2f;
  return s;
}
/* Measured by `tools/learning abi`. */
static inline imp_dqn_options imp_dqn_options_init(void) {
  IMP_INIT(imp_dqn_options, s, IMP_STRUCT_DQN_OPTIONS);
  s.learn_period_frames = 2;
  s.batch_size = 64;
  s.replay_capacity = 20000;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 10.0f;
  s.discount = 0.99f;
  s.target_period = 1;
  s.target_rate = 0.005f;
  s.double_estimate = 1;
  s.epsilon = 0.05f;
  s.epsilon_decisions = 500;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}
static inline imp_coach_options imp_coach_options_init(void) {
  IMP_INIT(imp_coach_options, s, IMP_STRUCT_COACH_OPTIONS);
  s.learn_period_frames = 6;
  s.batch_size = 32;
  s.learning_rate = 0.05f;
  s.max_gradient_norm = 1.0f;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}
/* The rates of Stable-Baselines3 with a crowd's rollout. */
static inline imp_ppo_options imp_ppo_options_init(void) {
  IMP_INIT(imp_ppo_options, s, IMP_STRUCT_PPO_OPTIONS);
  s.epochs = 4;
  s.learning_rate = 3e-4f;
  s.max_gradient_norm = 0.5f;
  s.discount = 0.99f;
  s.advantage_decay = 0.95f;
  s.clip_range = 0.2f;
  s.entropy_coefficient = 0.005f;
  s.value_coefficient = 0.5f;
  s.max_divergence = 0.03f;
  s.normalise_observations = 1;
  s.normalise_rewards = 1;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

#endif /* IMPRINT_IMPRINT_INIT_H_ */
