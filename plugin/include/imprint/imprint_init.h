#ifndef IMPRINT_IMPRINT_INIT_H_
#define IMPRINT_IMPRINT_INIT_H_
/* Part of imprint.h, which includes it: one imp_*_init function per struct, with the defaults, and
 * two short ways that need no library: imp_brain_desc_of and imp_frames. Learners have theirs in
 * imprint_learners.h. */

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
  s.operation_limit = (uint64_t)1 << 34;
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

static inline imp_network_options imp_network_options_init(void) {
  IMP_INIT(imp_network_options, s, IMP_STRUCT_NETWORK_OPTIONS);
  s.stack = 1;
  s.cell_size = 64;
  s.sequence_steps = 32;
  return s;
}

static inline imp_demonstration_options imp_demonstration_options_init(void) {
  IMP_INIT(imp_demonstration_options, s, IMP_STRUCT_DEMONSTRATION_OPTIONS);
  s.capacity = 1024;
  s.batch_size = 32;
  s.strength = 1.0f;
  s.margin = 0.8f;
  return s;
}
static inline imp_self_play_options imp_self_play_options_init(void) {
  IMP_INIT(imp_self_play_options, s, IMP_STRUCT_SELF_PLAY_OPTIONS);
  s.pool_size = 8;
  s.pool_period = 20000;
  s.newest_share = 0.5f;
  return s;
}
static inline imp_group_options imp_group_options_init(void) {
  IMP_INIT(imp_group_options, s, IMP_STRUCT_GROUP_OPTIONS);
  s.group_size = 4;
  return s;
}
static inline imp_opponent imp_opponent_init(void) {
  IMP_INIT(imp_opponent, s, IMP_STRUCT_OPPONENT);
  return s;
}
static inline imp_signal_options imp_signal_options_init(void) {
  IMP_INIT(imp_signal_options, s, IMP_STRUCT_SIGNAL_OPTIONS);
  s.reward_strength = 1.0f;
  s.hidden_size = 64;
  s.learning_rate = 3e-4f;
  return s;
}

/* A brain with one choice among *choices options, from what every game decides. It keeps the
 * pointer. */
static inline imp_brain_desc imp_brain_desc_of(imp_learner learner, uint32_t observations,
                                               const uint32_t* choices, uint32_t agents) {
  imp_brain_desc s = imp_brain_desc_init();
  s.learner = learner;
  s.observation_count = observations;
  s.branch_count = 1;
  s.branch_sizes = choices;
  s.agents_per_brain = agents;
  return s;
}

/* A frame clock, for a host that waits for frame n - in_flight before it begins frame n. With an
 * in_flight of 0 the host sets safe_frame itself. */
typedef struct imp_frames {
  uint32_t in_flight; /* frames that the GPU may have at once: 2, for example */
  uint64_t frame;     /* the newest one; 0 before the first */
  uint64_t safe_frame;
  double time_s;
} imp_frames;

static inline imp_frames imp_frames_init(uint32_t in_flight) {
  imp_frames s;
  memset(&s, 0, sizeof s);
  s.in_flight = in_flight;
  return s;
}
static inline imp_frame_info imp_frames_info(const imp_frames* frames) {
  imp_frame_info s = imp_frame_info_init();
  s.frame = frames->frame;
  s.safe_frame = frames->safe_frame;
  s.time_s = frames->time_s;
  return s;
}
/* The next frame. step_s: simulated seconds since the last one; 0 while the game pauses. */
static inline imp_frame_info imp_frames_next(imp_frames* frames, double step_s) {
  const uint64_t frame = ++frames->frame;
  if (frames->in_flight > 0 && frame > frames->in_flight &&
      frame - frames->in_flight > frames->safe_frame)
    frames->safe_frame = frame - frames->in_flight;
  if (step_s > 0) frames->time_s += step_s;
  return imp_frames_info(frames);
}
/* After the host waited for its whole GPU: a frame in which all earlier ones are safe. */
static inline imp_frame_info imp_frames_idle(imp_frames* frames) {
  frames->safe_frame = frames->frame++;
  return imp_frames_info(frames);
}
#endif /* IMPRINT_IMPRINT_INIT_H_ */
