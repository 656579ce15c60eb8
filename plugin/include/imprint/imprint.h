#ifndef IMPRINT_IMPRINT_H_
#define IMPRINT_IMPRINT_H_
/* Imprint: game agents that infer and learn on the player's GPU, between frames, on the game's own
 * Vulkan device. This header is the core. It is C11 or C++11 and needs no Vulkan header.
 *   imprint_learners.h, imprint_networks.h, imprint_signals.h  how brains learn (included here)
 *   imprint_vulkan.h    the host's device and queue, recording, semaphores, shared tensors
 *   imprint_models.h    trained networks of any form
 *   imprint_tools.h     reports, statistics, tuning, pipeline cache, jobs, standalone devices
 *   imprint.hpp         all of it as C++20 classes
 *
 * Order of calls. Start: imp_get_api, context_create, brain_create, agent_create, context_warmup.
 * Each frame: frame_begin; agent_act, agent_reward or agent_feedback, agent_observe; frame_submit
 * or imp_vulkan_api::frame_record; frame_end. End: context_destroy, before the host's device goes.
 *
 * Threads. Each function has a tag:
 *   [create]  while no frame is open, on any thread; may allocate, compile and block.
 *   [frame]   in a frame, on the thread of frame_begin. After context_warmup it never blocks,
 *             compiles or allocates device memory.
 *   [either]  as [create] or as [frame].
 *   [any]     on any thread at any time, also inside callbacks.
 * Only [any] calls may overlap others of a context. A call out of turn only returns WRONG_STATE.
 *
 * Structs: make each with its imp_*_init function, which sets size, type and defaults. They grow
 * only at their end: an older game works with a newer library.
 * Memory: Imprint copies inputs before a call returns, and writes outputs only on success. Strings
 * are UTF-8. Callbacks and their user pointers must live until context_destroy has returned.
 * Errors: last_error names the field and what was expected. A failed call changes nothing. All may
 * return INVALID_ARGUMENT, INVALID_HANDLE, WRONG_STATE, OUT_OF_*_MEMORY, DEVICE_LOST or INTERNAL;
 * comments name other codes, without IMP_ERROR_. */

#include "imprint_learners.h"
#include "imprint_networks.h"
#include "imprint_signals.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct imp_vk_device_info imp_vk_device_info; /* imprint_vulkan.h */
/* Handles are values; 0 is none. A destroyed or foreign handle gives IMP_ERROR_INVALID_HANDLE. */
IMP_DEFINE_HANDLE(imp_context); /* one device, adopted or Imprint's own */
IMP_DEFINE_HANDLE(imp_brain);   /* one network that acts, or a kennel: many of one shape */
IMP_DEFINE_HANDLE(imp_agent);   /* one body that observes and acts */
IMP_DEFINE_HANDLE(imp_tensor);  /* an array shared with the host's shaders: imprint_vulkan.h */

typedef int32_t imp_result; /* 0 success, > 0 success with a remark, < 0 failure */
enum {
  IMP_OK = 0,
  IMP_NOT_READY = 1,                   /* not finished yet: call again in a later frame */
  IMP_ERROR_INVALID_ARGUMENT = -1,     /* null, out of range, not finite, wrong struct */
  IMP_ERROR_SHAPE_MISMATCH = -2,       /* a tensor, file or model has the wrong shape */
  IMP_ERROR_DTYPE_MISMATCH = -3,       /* a tensor or model has the wrong element type */
  IMP_ERROR_UNSUPPORTED = -4,          /* not on this device, library or kind of queue access */
  IMP_ERROR_OUT_OF_DEVICE_MEMORY = -5, /* the device is full or memory_cap_bytes is reached */
  IMP_ERROR_OUT_OF_HOST_MEMORY = -6,   /* nothing is lost: free some memory and call again */
  IMP_ERROR_DEVICE_LOST = -7,          /* make a new context on a new device */
  IMP_ERROR_IO = -8,                   /* the operating system refused a file */
  IMP_ERROR_CORRUPT_FILE = -9,         /* damaged, truncated or of another kind */
  IMP_ERROR_COMPILE_FAILED = -10,      /* the compiler or the driver refused a kernel */
  IMP_ERROR_WRONG_STATE = -11,         /* wrong order of calls, or wrong thread */
  IMP_ERROR_NOT_FOUND = -12,           /* no such device, file, snapshot, kernel or request */
  IMP_ERROR_INTERNAL = -13,            /* a bug in Imprint */
  IMP_ERROR_INVALID_HANDLE = -14       /* zero, destroyed or foreign */
};

typedef enum imp_log_level {
  IMP_LOG_DEBUG = 0,
  IMP_LOG_INFO = 1,
  IMP_LOG_WARNING = 2,
  IMP_LOG_ERROR = 3
} imp_log_level;

/* All optional. Callbacks: any thread, no lock held. Without log: stderr, level in IMPRINT_LOG. */
typedef struct imp_host {
  imp_header header;
  void* user; /* passed to each callback */
  void (*log)(void* user, imp_log_level level, const char* message);
  /* Once, at the end of the call that met the loss, on its thread. Call no function of this context
   * in it. Afterwards brain_save writes the newest host copy; destroy functions work as before. */
  void (*device_lost)(void* user, const char* message);
  /* The game's job system, instead of Imprint's threads. Call run(data) exactly once, on any
   * thread, now or later, before the library is unloaded. */
  void (*job_submit)(void* user, void (*run)(void* data), void* data);
  /* Kernels that `imprint bake` compiled, as bytes or as a path: give one or none. A library
   * without a compiler needs them. CORRUPT_FILE: damaged. UNSUPPORTED: made by another version. */
  const void* kernel_archive;
  size_t kernel_archive_size;
  const char* kernel_archive_path;
  const char* kernel_archive_sha256;  /* 64 hex digits; another archive: CORRUPT_FILE. null = any */
  const char* shader_cache_directory; /* compiled shaders, made if missing; null = no cache */
  const char* shader_dump_directory;  /* generated GLSL, for reading; null = none */
} imp_host;

/* The priority when the host's frame takes longer than imp_limits::frame_gpu_us. */
typedef enum imp_preference {
  IMP_PREFER_GRAPHICS = 0, /* learning stops at once and returns slowly */
  IMP_PREFER_BALANCE = 1,  /* learning shrinks in steps, to a quarter of its budget */
  IMP_PREFER_COMPUTE = 2   /* learning keeps its budget */
} imp_preference;

/* Defaults that are not named are 0. */
typedef struct imp_limits {
  imp_header header;
  uint64_t memory_cap_bytes;        /* of the device, GPU or CPU; 0 = no cap. Default 256 MiB */
  uint32_t gpu_us_per_frame;        /* GPU time per frame, us; 0 = no learning. Default 500 */
  uint32_t max_slice_us;            /* longest submission of learning, us; 0 = any. Default 1000 */
  uint32_t cpu_us_per_frame;        /* CPU time of a frame's calls, us; 0 = any */
  uint32_t frame_gpu_us;            /* GPU time of the host's whole frame, us; 0 = ignore */
  imp_preference preference;        /* when the host's frame is longer */
  uint32_t worker_threads;          /* Imprint's own, 0 .. 64; unused with job_submit. Default 1 */
  uint32_t host_copy_period_frames; /* copies to host memory, for a device loss; 0 = none */
  uint32_t tuning_ms;               /* measuring of kernel variants in warmup, ms; 0 = none */
  uint32_t deterministic;           /* 1: measurements are ignored, for equal bits */
} imp_limits;

typedef struct imp_frame_info {
  imp_header header;
  uint64_t frame;       /* rises by 1 per frame, from any start, below 2^63; may jump ahead */
  uint64_t safe_frame;  /* frame_record: newest frame whose commands the GPU has completed */
  double time_s;        /* simulated time, seconds, never falling; credit uses this clock */
  uint32_t host_gpu_us; /* GPU time of the newest measured frame of the host, us; 0 = unknown */
} imp_frame_info;

#define IMP_MAX_BRANCHES 8u
#define IMP_MAX_CONTINUOUS 64u
#define IMP_MAX_VALUES 64u
/* A network. Options on header.next: imprint_learners.h, imprint_networks.h, imprint_signals.h. */
typedef struct imp_brain_desc {
  imp_header header;
  const char* name;                /* in logs and files; null = "brain" */
  uint32_t observation_count;      /* floats per observation, 1 .. 1048576 */
  const float* observation_scale;  /* observation_count factors, finite; null = all 1 */
  uint32_t goal_count;             /* commands or tasks, one output head each; >= 1. Default 1 */
  uint32_t branch_count;           /* discrete choices per action, 0 .. IMP_MAX_BRANCHES */
  const uint32_t* branch_sizes;    /* options of each branch, >= 2 */
  uint32_t continuous_count;       /* numbers in [-1, 1], 0 .. IMP_MAX_CONTINUOUS */
  uint32_t hidden_count;           /* hidden layers, 0 .. 16. Default 2 */
  const uint32_t* hidden_sizes;    /* their widths; null = 64 each */
  imp_activation activation;       /* after each hidden layer */
  imp_learner learner;             /* imprint_learners.h. Default none: it only acts */
  uint32_t brain_count;            /* > 1: a kennel, each with its own weights. Default 1 */
  uint32_t agents_per_brain;       /* times brain_count at most 1048576. Default 1 */
  uint64_t seed;                   /* brain i of a kennel uses seed + i */
  uint32_t action_latency_frames;  /* observe to answer, up to 64; 0: 2, or as safe_frame shows */
  uint32_t decision_period_frames; /* frames between decisions of an agent, >= 1. Default 1 */
  uint32_t snapshot_count;         /* kept for brain_restore, 0 .. 64. Default 4 */
  uint32_t fall_back; /* 1: back to its best weights where returns fall or a loss is not finite */
  imp_tensor observations, actions; /* imprint_vulkan.h; 0 = none */
} imp_brain_desc;

/* A trained network from an ONNX file. It does not learn. Further inputs are its state. */
typedef struct imp_policy_desc {
  imp_header header;
  const char* name;                               /* null = "policy" */
  const void* data;                               /* the file's bytes */
  size_t size;                                    /* of data, bytes */
  uint32_t agent_capacity, action_latency_frames; /* default 64; as in imp_brain_desc */
  imp_tensor observations, actions;               /* imprint_vulkan.h; 0 = none */
  uint64_t constant_limit_bytes; /* host memory for the file's constants. Default 1 GiB */
  uint64_t operation_limit;      /* additions (exp: 6), bytes moved; per agent. Default 2^34 */
} imp_policy_desc;

typedef struct imp_brain_info {
  imp_header header;
  uint32_t observation_count, goal_count, branch_count, continuous_count;
  uint32_t brain_count, agent_capacity;
  uint32_t action_width;    /* floats per row of imp_brain_desc::actions */
  uint64_t parameter_count; /* of all brains */
} imp_brain_info;

typedef struct imp_action {
  imp_header header;
  uint64_t decision;                                          /* of this agent, counted from 1 */
  uint64_t requested_frame;                                   /* when the agent observed */
  uint32_t goal, branch_count, continuous_count, value_count; /* further values are cut */
  uint32_t branches[IMP_MAX_BRANCHES];                        /* chosen option of each branch */
  float continuous[IMP_MAX_CONTINUOUS];
  float values[IMP_MAX_VALUES]; /* raw outputs for the goal: predicted feedback, return or logits */
  uint32_t is_new;              /* 1: the first return of this decision; 0: a repetition */
} imp_action;

typedef struct imp_api {
  uint32_t size; /* of this table, bytes */
  uint32_t abi_version;
  const char* version;                 /* "0.1.0" */
  const struct imp_vulkan_api* vulkan; /* imprint_vulkan.h; never null */
  const struct imp_tools_api* tools;   /* imprint_tools.h; never null */
  const struct imp_models_api* models; /* imprint_models.h; never null */

  /* [any] "IMP_OK" and so on; never null. */
  const char*(IMP_CALL* result_name)(imp_result result);
  /* [any] Text of the calling thread's newest failure, until its next one; "" if none. */
  const char*(IMP_CALL* last_error)(void);

  /* [create] Adopts the host's device. Null host, limits: defaults. UNSUPPORTED: cannot serve. */
  imp_result(IMP_CALL* context_create)(const imp_vk_device_info* device, const imp_host* host,
                                       const imp_limits* limits, imp_context* context);
  /* [create] With all it owns, after its submissions and saves. An error destroys nothing: a frame
   * may still run (imp_vulkan_api::context_device_idle); or, once per save, it is not on disk. */
  imp_result(IMP_CALL* context_destroy)(imp_context context);
  /* [create] Compiles and uploads for all brains and models. progress: null, or gets 0 .. 1. */
  imp_result(IMP_CALL* context_warmup)(imp_context context,
                                       void (*progress)(void* user, float fraction), void* user);
  /* [create] Changes all but worker_threads and deterministic. */
  imp_result(IMP_CALL* context_set_limits)(imp_context context, const imp_limits* limits);
  /* [create] Waits for the GPU and for files. NOT_READY: time is over. UNSUPPORTED: record only. */
  imp_result(IMP_CALL* context_drain)(imp_context context, uint32_t timeout_ms);
  /* [create] Before the host waits for an idle device: finishes submissions, then keeps off all
   * queues until context_resume. NOT_READY: time is over; call again. */
  imp_result(IMP_CALL* context_quiesce)(imp_context context, uint32_t timeout_ms);
  imp_result(IMP_CALL* context_resume)(imp_context context); /* [create] */
  /* [create] Gives unused device memory back. freed_bytes may be null. */
  imp_result(IMP_CALL* context_trim)(imp_context context, uint64_t* freed_bytes);
  /* [any] The host met a device loss; device_lost is not called. On the CPU without effect. */
  imp_result(IMP_CALL* context_notify_device_lost)(imp_context context);

  /* [frame] Opens a frame, which makes this thread the frame thread. */
  imp_result(IMP_CALL* frame_begin)(imp_context context, const imp_frame_info* info);
  /* [frame] At most one submit or record per frame. budget_us: UINT32_MAX = gpu_us_per_frame.
   * After a failure the frame's work waits for the next submit. UNSUPPORTED: record only. */
  imp_result(IMP_CALL* frame_submit)(imp_context context, uint32_t budget_us);
  imp_result(IMP_CALL* frame_end)(imp_context context); /* [frame] */

  /* [create] Then call context_warmup. UNSUPPORTED: the learner does not suit the actions, or the
   * device is too small. SHAPE_MISMATCH, DTYPE_MISMATCH: a tensor does not fit. */
  imp_result(IMP_CALL* brain_create)(imp_context context, const imp_brain_desc* desc,
                                     imp_brain* brain);
  /* [create] CORRUPT_FILE: damaged or not ONNX. UNSUPPORTED: an unknown operator or shape. */
  imp_result(IMP_CALL* brain_create_from_onnx)(imp_context context, const imp_policy_desc* desc,
                                               imp_brain* brain);
  imp_result(IMP_CALL* brain_destroy)(imp_brain brain); /* [create] With its agents. */
  imp_result(IMP_CALL* brain_get_info)(imp_brain brain, imp_brain_info* info); /* [any] */
  /* [either] Default 1. At 0 no feedback or demonstration is stored. UNSUPPORTED: no learner. */
  imp_result(IMP_CALL* brain_set_learning)(imp_brain brain, uint32_t enabled);
  /* [either] Starts a save of weights, optimiser and replay. Later frames or context_drain complete
   * it and replace the file. WRONG_STATE: one is under way, or context_warmup found no memory. */
  imp_result(IMP_CALL* brain_save)(imp_brain brain, const char* path);
  /* [either] NOT_READY until the file is on disk, then the outcome. NOT_FOUND: never saved. */
  imp_result(IMP_CALL* brain_save_status)(imp_brain brain);
  /* [create] Replaces weights, optimiser, replay, counters and seed. NOT_FOUND, IO, CORRUPT_FILE.
   * UNSUPPORTED: version. SHAPE_MISMATCH: network, counts, learner, replay. WRONG_STATE: saving. */
  imp_result(IMP_CALL* brain_load)(imp_brain brain, const char* path);
  /* [create] The weights alone: learner, agents_per_brain and replay may differ. Else as above. */
  imp_result(IMP_CALL* brain_load_weights)(imp_brain brain, const char* path);
  /* [either] Keeps a copy on the device; the oldest goes. UNSUPPORTED: snapshot_count is 0. */
  imp_result(IMP_CALL* brain_snapshot)(imp_brain brain, uint64_t* snapshot);
  /* [either] Goes back to a snapshot, which stays. NOT_FOUND: dropped. */
  imp_result(IMP_CALL* brain_restore)(imp_brain brain, uint64_t snapshot);
  /* [either] Self-play: the next learn step puts the weights into the brain's pool. */
  imp_result(IMP_CALL* brain_keep_opponent)(imp_brain brain, uint32_t brain_index);
  /* [either] IMP_OPPONENT_NONE: the newest weights. NOT_FOUND: no such entry yet. */
  imp_result(IMP_CALL* brain_get_opponent)(imp_brain brain, uint32_t brain_index, uint32_t opponent,
                                           imp_opponent* info);

  /* [either] brain_index: which brain of a kennel. UNSUPPORTED: agents_per_brain is reached. */
  imp_result(IMP_CALL* agent_create)(imp_brain brain, uint32_t brain_index, imp_agent* agent);
  imp_result(IMP_CALL* agent_destroy)(imp_agent agent);                 /* [either] */
  imp_result(IMP_CALL* agent_set_mode)(imp_agent agent, imp_mode mode); /* [either] */
  imp_result(IMP_CALL* agent_set_goal)(imp_agent agent, uint32_t goal); /* [either] A command. */
  /* [either] 1 = allowed, for each option of all branches; at least one per branch. Null = all. */
  imp_result(IMP_CALL* agent_set_mask)(imp_agent agent, const uint8_t* allowed, uint32_t count);
  /* [frame] Before submit or record: what the agent sees; asks for a decision. */
  imp_result(IMP_CALL* agent_observe)(imp_agent agent, const float* observation, uint32_t count);
  /* [frame] The newest decision that is due. Its first return, is_new, is the onset of the action:
   * carry it out then. NOT_READY: none is due yet. NOT_FOUND: never asked in this episode. */
  imp_result(IMP_CALL* agent_act)(imp_agent agent, imp_action* action);
  /* [frame] Heuristic and record modes: what the game chose after agent_observe. */
  imp_result(IMP_CALL* agent_heuristic)(imp_agent agent, const uint32_t* branches,
                                        uint32_t branch_count, const float* continuous,
                                        uint32_t continuous_count);
  /* [frame] UNSUPPORTED: not for this learner. WRONG_STATE: inference mode. Both functions. */
  imp_result(IMP_CALL* agent_feedback)(imp_agent agent, const imp_feedback* feedback);
  imp_result(IMP_CALL* agent_demonstrate)(imp_agent agent, const imp_demonstration* demonstration);
  /* [frame] For the newest action, before agent_act returns the next, once or more. Bans none. */
  imp_result(IMP_CALL* agent_reward)(imp_agent agent, float reward);
  /* [frame] Forgets requests, answers and open credit; resets an ONNX policy's state. */
  imp_result(IMP_CALL* agent_end_episode)(imp_agent agent, imp_episode_end end);
  /* [either] Self-play, between episodes: whose weights the agent acts by, an entry of the pool or
   * IMP_OPPONENT_*. *chosen (may be null): the draw. NOT_FOUND: none yet. UNSUPPORTED: no pool. */
  imp_result(IMP_CALL* agent_set_opponent)(imp_agent agent, uint32_t opponent, uint32_t* chosen);
  /* [either] Agents of one brain with the same number are a group; 0: none. UNSUPPORTED: no
   * imp_group_options, or the group is full. All three functions. */
  imp_result(IMP_CALL* agent_set_group)(imp_agent agent, uint32_t group);
  /* [frame] As agent_reward, to each agent of the group that takes part. */
  imp_result(IMP_CALL* agent_group_reward)(imp_agent agent, float reward);
  /* [frame] Ends the episode of the whole group; agent_end_episode ends that of one agent. */
  imp_result(IMP_CALL* agent_end_group_episode)(imp_agent agent, imp_episode_end end);
  /* [either] How a match between two agents of brains with pools ended. score: of the first; 1 it
   * won, 0.5 a draw, 0 it lost. Before agent_set_opponent changes who they are. */
  imp_result(IMP_CALL* match_report)(imp_agent first, imp_agent second, float score);
} imp_api;

/* [any] The one exported function. *api lives as long as the library. Else UNSUPPORTED. */
IMP_EXPORT imp_result IMP_CALL imp_get_api(uint32_t abi_version, const imp_api** api);
typedef imp_result(IMP_CALL* imp_get_api_function)(uint32_t abi_version, const imp_api** api);

#ifdef __cplusplus
}
#endif
#include "imprint_init.h"
#endif /* IMPRINT_IMPRINT_H_ */
