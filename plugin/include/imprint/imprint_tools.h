#ifndef IMPRINT_IMPRINT_TOOLS_H_
#define IMPRINT_IMPRINT_TOOLS_H_
/* Reports, statistics, estimates, hashes and jobs; a pipeline cache and tuning for a faster next
 * start; contexts without a host device. Times are microseconds, memory is bytes. */

#include "imprint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A device of Imprint's own, for tools, tests and headless servers ---- */

typedef struct imp_standalone_info {
  imp_header header;
  const char* device;  /* index ("0") or part of a name ("nvidia"); null = the best GPU; "cpu" = no
                          GPU: frame_submit computes on the frame thread, without Vulkan */
  uint32_t validation; /* 1: VK_LAYER_KHRONOS_validation; its messages are logged as errors */
  /* device "cpu": threads of one frame_submit, its own included; 0, the default, is 1: the cores
   * are the game's. At most 256. imp_host::job_submit lends the others, else Imprint has its own.
   * Same results for any number. */
  uint32_t cpu_threads;
} imp_standalone_info;

static inline imp_standalone_info imp_standalone_info_init(void) {
  IMP_INIT(imp_standalone_info, s, IMP_STRUCT_STANDALONE_INFO);
  return s;
}

/* ---- The report on a context's device. Strings live as long as the context. ---- */

typedef enum imp_completion {
  IMP_COMPLETED_BY_TIMELINE = 0, /* a timeline semaphore */
  IMP_COMPLETED_BY_FENCES = 1,
  IMP_COMPLETED_BY_FRAMES = 2, /* imp_frame_info::safe_frame */
  IMP_COMPLETED_BY_CALLS = 3   /* the CPU: frame_submit returns when all is done */
} imp_completion;

typedef enum imp_tensor_sharing {
  IMP_TENSORS_NOT_SHARED = 0,
  IMP_TENSORS_ON_ONE_DEVICE = 1, /* the host's */
  IMP_TENSORS_ACROSS_DEVICES = 2 /* in memory of the host's device and Imprint's own */
} imp_tensor_sharing;

typedef struct imp_report {
  imp_header header;
  const char* device; /* name of the GPU, or "CPU": then only driver, submits, completion apply */
  const char* driver;
  uint32_t api_version; /* the lower of declared and supported */
  uint32_t queue_family;
  uint32_t submits; /* 1: on a queue; 0: record only */
  imp_completion completion;
  uint32_t measures_gpu_time; /* 1: by timestamps; 0: estimated */
  uint32_t own_device;        /* 1: Imprint's own */
  imp_tensor_sharing tensor_sharing;
  uint32_t missing_feature_count; /* for context_get_missing_feature */
} imp_report;

/* An optional feature that the declared device lacks. */
typedef struct imp_missing_feature {
  imp_header header;
  const char* item;  /* "timelineSemaphore", "VK_EXT_memory_budget" */
  const char* cause; /* "not declared", "not supported by the device" */
  const char* cost;  /* what is slower or unavailable */
} imp_missing_feature;

/* Where the host's device comes from, which decides how a feature is enabled. */
typedef enum imp_engine {
  IMP_ENGINE_OWN = 0, /* the game makes its device */
  IMP_ENGINE_UNITY = 1,
  IMP_ENGINE_UNREAL = 2,
  IMP_ENGINE_GODOT = 3,
  IMP_ENGINE_VULKAN_SCENE_GRAPH = 4
} imp_engine;

/* ---- Statistics: counts since creation, unless a comment says otherwise ---- */

/* Bits of imp_brain_stats::alarms. Each was logged once as a warning, with the remedy. */
typedef enum imp_alarm {
  IMP_ALARM_DROPPED_INTAKE = 1 << 0,
  IMP_ALARM_DROPPED_STALE = 1 << 1,
  IMP_ALARM_DROPPED_UNFOLLOWED = 1 << 2,
  IMP_ALARM_UNCREDITED = 1 << 3,
  IMP_ALARM_LATE_ANSWERS = 1 << 4,
  IMP_ALARM_NOT_FINITE = 1 << 5,       /* a loss; the brain stopped learning */
  IMP_ALARM_DIVERGING_VALUES = 1 << 6, /* DQN predicts more than rewards can add up to */
  IMP_ALARM_NO_REWARD = 1 << 7,        /* in 5000 steps; 1000 without a call; 500 of feedback */
  IMP_ALARM_UNUSED_REWARD = 1 << 8,    /* agent_reward for a learner that takes none */
  IMP_ALARM_ONE_CHOICE_LEFT = 1 << 9,  /* bans: 64 decisions in a row without a new command */
  IMP_ALARM_ONE_VALUE = 1 << 10,      /* 200 words and rewards of one value: none to compare with */
  IMP_ALARM_UNSCALED = 1 << 11,       /* an observation beyond 10, times its scale */
  IMP_ALARM_SPREAD_WORDS = 1 << 12,   /* a word is for 8 actions or more, on average */
  IMP_ALARM_FLAT_REWARDS = 1 << 13,   /* feedback: rewards that differ less than exploration */
  IMP_ALARM_CUT_REWARD = 1 << 14,     /* feedback, COACH: a reward beyond -1 to 1 */
  IMP_ALARM_OVERDUE_ANSWER = 1 << 15, /* none came within 60 frames */
  IMP_ALARM_FALLING_RETURNS = 1 << 16, /* the last 20 episodes earned much less than the best 20 */
  IMP_ALARM_REWARD_SIZE = 1 << 17 /* DQN, SAC: rewards above 50 or below 0.003 (SAC 0.03) in size */
} imp_alarm;

typedef struct imp_brain_stats {
  imp_header header;
  /* brain_load sets them. decisions: with actions by agent_heuristic that are learned from */
  uint64_t decisions, feedbacks, demonstrations, minibatches, episodes;
  uint64_t samples;         /* in replay now, all brains */
  uint64_t dropped_samples; /* never learned from: the sum of the three dropped_ counts below */
  float last_loss;          /* of the newest minibatch read back; NaN = not finite */
  uint32_t stopped_brains;  /* loss was not finite; brain_restore or brain_load restarts them */
  uint32_t snapshots;       /* kept now */
  uint32_t late_actions;    /* answers that the GPU delivered after their frame */
  uint32_t infer_dispatches, learn_dispatches, infer_barriers, learn_barriers; /* per program run */
  uint64_t host_copy_frame;    /* frame of the newest copy in host memory; 0 = none */
  uint64_t evicted_bytes;      /* of learning that has left the device, for lack of memory */
  uint64_t used_samples;       /* steps and labelled samples that learning has taken in */
  uint64_t dropped_intake;     /* samples that came faster than learning takes them in */
  uint64_t dropped_stale;      /* PPO, PQN: steps by weights that two updates have replaced */
  uint64_t dropped_unfollowed; /* steps without a next observation: mode changes, truncated ends */
  uint64_t uncredited;         /* feedback and rewards that reached no action */
  uint64_t alarms;             /* imp_alarm bits that were raised since creation */
  uint64_t fall_backs;         /* returns to the best weights: imp_brain_desc::fall_back */
  float reliability;           /* feedback: share of a person's words that is right, 0.9 at first */
  uint32_t kept_demonstrations; /* in memory now, all brains: imp_demonstration_options */
  float rating;                 /* imp_self_play_options: of a kennel's first brain */
  uint64_t inference_decisions; /* of decisions, since creation: by agents in inference mode */
} imp_brain_stats;

/* One row of a brain's curves: a stretch of at least 64 minibatches. Figures are means since the
 * row before, over all brains of a kennel. NaN: there was none, or the learner has no such figure.
 */
typedef struct imp_curves {
  imp_header header;
  uint64_t rows; /* so far, numbered from 0; the newest 1024 are kept */
  double wall_s; /* seconds since 1970 */
  uint64_t decisions, minibatches, episodes, used_samples, dropped_intake, dropped_stale,
      dropped_unfollowed, uncredited; /* as in imp_brain_stats, at the end of the row */
  float mean_return, mean_length;     /* of episodes; without ends, of 250 steps of an agent */
  float loss;                         /* as last_loss */
  float policy_loss, value_loss;      /* PPO, SAC */
  float entropy;                      /* of the policy, per decision: PPO, SAC */
  float divergence;                   /* KL, of the policy before and after an update: PPO */
  float clipped_share;                /* of samples whose change was clipped: PPO */
  float gradient_norm;                /* before the limit: DQN, PPO, SAC and learners with replay */
  float explained_variance;           /* of returns, by the critic; 1 = all: PPO */
  float error;                        /* mean distance of a value from its target: DQN */
  float learning_rate;
  float lowest_value, highest_value; /* of choices that were made: DQN */
  float reliability;                 /* as in imp_brain_stats: feedback */
} imp_curves;

typedef struct imp_context_stats {
  imp_header header;
  uint64_t frames, submits, slices;      /* slice: one piece of learning */
  uint64_t compiles, allocations, waits; /* pipelines, vkAllocateMemory, blocking waits */
  uint64_t frame_compiles, frame_allocations, frame_waits; /* in frame calls after warmup: 0 */
  uint64_t bytes_in_use, bytes_reserved; /* device memory now: used, taken from the device */
  uint64_t bytes_peak, largest_free;     /* most ever used; longest free range now */
  uint64_t evicted_bytes;                /* of learning that has left the device */
  uint32_t blocks;                       /* VkDeviceMemory objects now */
  uint32_t memory_pressure;         /* 1: learning has left the device until there is room again */
  uint64_t measured_frame;          /* newest frame whose timestamps arrived; 0 = none */
  float infer_gpu_us, learn_gpu_us; /* of that one frame, no mean; 0 without timestamps */
  float frame_cpu_us;               /* of the last frame: all calls from frame_begin to frame_end */
  uint32_t waiting_jobs;        /* compiles and files that no thread has begun: context_run_jobs */
  double learn_share;           /* of the budget, 0 .. 1, that imp_limits::frame_gpu_us leaves */
  uint64_t over_budget_frames;  /* GPU time above the budget */
  uint64_t over_cpu_frames;     /* CPU time above imp_limits::cpu_us_per_frame */
  uint64_t cpu_deferred_frames; /* learning waited because of cpu_us_per_frame */
  double infer_gpu_sum_us, learn_gpu_sum_us; /* of all frames that were measured */
} imp_context_stats;

/* GPU time of a frame's work, from measurements of earlier frames where there are any. */
typedef struct imp_estimate {
  imp_header header;
  uint32_t due_us;   /* inference, and learning that must finish in this frame */
  uint32_t later_us; /* learning that the budget decides about */
} imp_estimate;

/* How one array is made of those of several processes. */
typedef enum imp_merge {
  IMP_MERGE_MEAN = 0,
  IMP_MERGE_LARGEST = 1, /* number by number: counters, upper bounds */
  IMP_MERGE_SMALLEST = 2
} imp_merge;

/* Part of a brain's state between two learn steps: of weights, moments or counters. */
typedef struct imp_state_array {
  imp_header header;
  const char* name;    /* as in files; lives as long as the brain */
  uint64_t offset;     /* in the bytes of brain_get_state */
  uint64_t count;      /* of numbers, four bytes each */
  uint32_t is_integer; /* 1: int32, 0: float */
  imp_merge merge;
} imp_state_array;

static inline imp_report imp_report_init(void) {
  IMP_INIT(imp_report, s, IMP_STRUCT_REPORT);
  return s;
}
static inline imp_missing_feature imp_missing_feature_init(void) {
  IMP_INIT(imp_missing_feature, s, IMP_STRUCT_MISSING_FEATURE);
  return s;
}
static inline imp_brain_stats imp_brain_stats_init(void) {
  IMP_INIT(imp_brain_stats, s, IMP_STRUCT_BRAIN_STATS);
  return s;
}
static inline imp_curves imp_curves_init(void) {
  IMP_INIT(imp_curves, s, IMP_STRUCT_CURVES);
  return s;
}
static inline imp_context_stats imp_context_stats_init(void) {
  IMP_INIT(imp_context_stats, s, IMP_STRUCT_CONTEXT_STATS);
  return s;
}
static inline imp_state_array imp_state_array_init(void) {
  IMP_INIT(imp_state_array, s, IMP_STRUCT_STATE_ARRAY);
  return s;
}
static inline imp_estimate imp_estimate_init(void) {
  IMP_INIT(imp_estimate, s, IMP_STRUCT_ESTIMATE);
  return s;
}

/* ---- One brain that several processes learn. Imprint itself talks to none of them. ---- */

/* For PPO, and without a cell for DQN, SAC, feedback and cloning, with vectors of numbers: actors
 * play, and learners in other processes learn from their samples: steps, or what a person told and
 * showed. PPO corrects steps of older weights by V-trace; a cell begins each sequence in the state
 * that the actor's was in. */
typedef enum imp_experience {
  IMP_EXPERIENCE_OWN = 0,
  IMP_EXPERIENCE_SENT = 1,    /* an actor: learns nothing; brain_take_experience once per frame */
  IMP_EXPERIENCE_RECEIVED = 2 /* a learner: brain_give_experience, also beside agents of its own */
} imp_experience;

/* On imp_brain_desc's header.next. With count > 1, for PPO without a cell: the processes learn the
 * same minibatches, and imp_ppo_options::rollout_steps and batch_size are each one's part. Begin
 * with the same state in all of them, by brain_set_state; then all stay equal, bit by bit. On a GPU
 * only frame_submit learns, and it waits for the GPU. */
typedef struct imp_shared_learning {
  imp_header header;
  uint32_t index, count; /* of this process, and of all. Default 0 of 1 */
  void* user;            /* passed to add */
  /* Replaces numbers by their sums over all processes: the same bits in each. Blocks until all have
   * called it. In frame_submit and context_drain; call no function of this context in it. */
  void (*add)(void* user, float* numbers, size_t count);
  imp_experience experience; /* with count 1 */
} imp_shared_learning;

static inline imp_shared_learning imp_shared_learning_init(void) {
  IMP_INIT(imp_shared_learning, s, IMP_STRUCT_SHARED_LEARNING);
  s.count = 1;
  return s;
}

/* ---- imp_api::tools. Tags and codes: see imprint.h. Functions that fill a buffer are called
 * twice: with a null buffer they give *size. ---- */

typedef struct imp_tools_api {
  uint32_t size; /* of this table, bytes */

  /* [create] A context on a device of Imprint's own. NOT_FOUND: no such device. */
  imp_result(IMP_CALL* context_create_standalone)(const imp_standalone_info* device,
                                                  const imp_host* host, const imp_limits* limits,
                                                  imp_context* context);

  /* [create] As text: features in use, and missing ones with their cost and remedy. Ended by NUL,
   * which *size includes. */
  imp_result(IMP_CALL* context_get_report_text)(imp_context context, char* text, size_t* size);
  imp_result(IMP_CALL* context_get_report)(imp_context context, imp_report* report); /* [create] */
  /* [create] NOT_FOUND: index >= missing_feature_count. Both functions. */
  imp_result(IMP_CALL* context_get_missing_feature)(imp_context context, uint32_t index,
                                                    imp_missing_feature* feature);
  /* How to get the feature in `engine`; *text lives as long as the context. */
  imp_result(IMP_CALL* missing_feature_remedy)(imp_context context, uint32_t index,
                                               imp_engine engine, const char** text);

  imp_result(IMP_CALL* context_get_stats)(imp_context context,
                                          imp_context_stats* stats); /* [any] */
  /* [create] Lends this thread to waiting jobs, at least one, until none waits or budget_us is
   * over. waiting may be null: how many still wait. */
  imp_result(IMP_CALL* context_run_jobs)(imp_context context, uint32_t budget_us,
                                         uint32_t* waiting);

  /* [frame] After the agent calls: what submit or record would do now. */
  imp_result(IMP_CALL* frame_estimate)(imp_context context, imp_estimate* estimate);

  /* [create] Compiled pipelines and measurements, for the next start on this GPU and driver. Opaque
   * bytes. UNSUPPORTED: imp_vk_device_info::pipeline_cache is set, or the CPU. */
  imp_result(IMP_CALL* pipeline_cache_get)(imp_context context, void* data, size_t* size);
  /* [create] Before the first brain. UNSUPPORTED: another GPU or driver. CORRUPT_FILE: damaged. */
  imp_result(IMP_CALL* pipeline_cache_set)(imp_context context, const void* data, size_t size);

  /* [create] The fastest kernel variants known for this GPU, as JSON to ship with the game. Not
   * ended by NUL. UNSUPPORTED: the CPU. */
  imp_result(IMP_CALL* tuning_get)(imp_context context, char* text, size_t* size);
  /* [create] Before context_warmup. Goes before measurements. UNSUPPORTED: no table for this GPU
   * and driver, or another version. CORRUPT_FILE: damaged. */
  imp_result(IMP_CALL* tuning_set)(imp_context context, const char* text, size_t size);
  /* [any] Ends the measuring of a context_warmup under way; also from its progress callback. */
  imp_result(IMP_CALL* tuning_stop)(imp_context context);

  imp_result(IMP_CALL* brain_get_stats)(imp_brain brain, imp_brain_stats* stats); /* [any] */
  /* [create] Of weights, moments and counters; waits for the GPU. UNSUPPORTED: record only. The
   * same whatever the budget, also while a learn step is under way. */
  imp_result(IMP_CALL* brain_hash)(imp_brain brain, uint64_t* low, uint64_t* high);

  /* [create] For tools that learn one brain in several processes: its state without experience.
   * NOT_FOUND: index >= the number of arrays. UNSUPPORTED: a policy from a file. */
  imp_result(IMP_CALL* brain_get_state_array)(imp_brain brain, uint32_t index,
                                              imp_state_array* array);
  /* [create] All arrays. WRONG_STATE: a learn step is under way; call context_drain first. */
  imp_result(IMP_CALL* brain_get_state)(imp_brain brain, void* data, size_t* size);
  /* [create] Experience and counters of imp_brain_stats stay; stopped brains learn again.
   * WRONG_STATE as above, or saving. */
  imp_result(IMP_CALL* brain_set_state)(imp_brain brain, const void* data, size_t size);

  /* [any] UINT64_MAX: the newest row. NOT_FOUND: no such row yet, or no longer; or no learner. */
  imp_result(IMP_CALL* brain_get_curves)(imp_brain brain, uint64_t row, imp_curves* curves);
  /* [create] Writes the rows that are kept, as a job; a failure is logged. An event file for
   * TensorBoard where the file's name contains "tfevents", else comma-separated values. NOT_FOUND:
   * no learner. */
  imp_result(IMP_CALL* brain_write_curves)(imp_brain brain, const char* path);

  /* [create] Adds a file's demonstrations to a brain of a kennel, UINT32_MAX: to each. *count,
   * which may be null: how many the file has. For a brain that agent_demonstrate serves; a brain of
   * the feedback or cloning learner takes them in with its next learn steps. CORRUPT_FILE.
   * SHAPE_MISMATCH: observations, goals or actions. INVALID_ARGUMENT: more than it keeps. */
  imp_result(IMP_CALL* brain_load_demonstrations)(imp_brain brain, const char* path,
                                                  uint32_t brain_index, uint32_t* count);
  /* [create] Writes what a brain of the kennel keeps. NOT_FOUND: nothing. UNSUPPORTED: its memory
   * holds other samples too (feedback), or, of a cloning brain, which is read back: record only. */
  imp_result(IMP_CALL* brain_save_demonstrations)(imp_brain brain, const char* path,
                                                  uint32_t brain_index);
  /* [create] All brains of a kennel forget what they were shown; their weights stay. UNSUPPORTED:
   * as above, and no demonstrations. */
  imp_result(IMP_CALL* brain_clear_demonstrations)(imp_brain brain);

  /* [create] Moves an actor's steps that are complete out: bytes for a brain of the same desc.
   * WRONG_STATE: imp_shared_learning::experience. */
  imp_result(IMP_CALL* brain_take_experience)(imp_brain brain, void* data, size_t* size);
  /* [create] For a learner, which counts them as decisions. source: another number for each actor;
   * an actor's steps in their order. NOT_READY: enough steps wait; offer them again after the next
   * learn step. INVALID_ARGUMENT names a damaged step; then none is taken. WRONG_STATE as above. */
  imp_result(IMP_CALL* brain_give_experience)(imp_brain brain, uint32_t source, const void* data,
                                              size_t size);

  /* [create] For a game that becomes harder or easier on purpose, as by a new lesson: earlier
   * returns no longer count for IMP_ALARM_FALLING_RETURNS and imp_brain_desc::fall_back.
   * NOT_FOUND: no learner. */
  imp_result(IMP_CALL* brain_forget_returns)(imp_brain brain);
} imp_tools_api;

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_IMPRINT_TOOLS_H_ */
