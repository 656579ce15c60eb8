#ifndef IMPRINT_IMPRINT_REPORT_H_
#define IMPRINT_IMPRINT_REPORT_H_
/* Part of imprint.h, which includes it: what the library tells of itself, as counts and as a report of what
 * it has to work with. All of these are filled by the library; times are in microseconds, memory in bytes. */

typedef struct imp_brain_stats {
  imp_header header;
  uint64_t decisions, feedbacks, demonstrations, minibatches,
      episodes;     /* since creation, of all agents and brains together; brain_load
                      sets them to the file's */
  uint64_t samples; /* in replay, all brains */
  float last_loss;  /* of the newest minibatch that was read back, mean over the brains that learned; NaN when
                       one was not finite */
  uint32_t snapshots; /* kept now */
  uint32_t infer_dispatches, learn_dispatches, infer_barriers, learn_barriers;
  uint32_t late_actions;    /* answers that the GPU delivered after their frame */
  uint32_t stopped_brains;  /* that no longer learn because their loss was not finite; brain_restore or
                               brain_load sets them going again */
  uint64_t dropped_samples; /* given faster than minibatches could take them in (8 a brain and minibatch, 256
                               may wait; DQN and COACH: batch_size and four times that, where it is more; PPO:
                               rollout_steps). Of steps that PPO has no use for, nothing is counted */
  uint64_t shadow_frame;    /* the newest copy in host memory is of the brain between two minibatches, in this
                               frame; 0 = none */
  uint64_t bytes_away;      /* > 0: learning has left the device, for want of memory
                               (imp_context_stats::memory_pressure) */
} imp_brain_stats;

typedef struct imp_context_stats {
  imp_header header;
  uint64_t frames, submits, slices; /* since creation; slices: pieces of learning */
  uint64_t bytes_in_use,
      bytes_reserved; /* device memory: that something is in, and that was taken from the device */
  uint64_t bytes_peak,
      largest_free; /* most that was ever in use; longest range of what is reserved and free */
  uint32_t blocks;  /* VkDeviceMemory objects that it is */
  uint64_t compiles, allocations, waits; /* since creation: pipelines, vkAllocateMemory, blocking waits */
  uint64_t frame_compiles, frame_allocations,
      frame_waits;                  /* the same, inside calls of an open frame, since warmup returned: 0 */
  uint64_t over_budget_frames;      /* frames whose measured GPU time exceeded the budget */
  uint64_t measured_frame;          /* newest frame whose timestamps arrived; 0 = none yet */
  float infer_gpu_us, learn_gpu_us; /* of measured_frame; 0 where the queue has no timestamps */
  float frame_cpu_us; /* inside all calls from frame_begin to frame_end of the last closed frame, but for
                         [any] calls: wall clock of the frame thread */
  double learn_share; /* of the budget, 0 .. 1: what imp_limits::frame_gpu_us leaves of it */
  uint32_t
      memory_pressure; /* 1: more is in use than the driver's budget (VK_EXT_memory_budget) or the cap has.
                          Then learning pauses once the minibatch under way is done, and leaves the device:
                          replay goes to host memory, activations and the rest are taken anew later. Agents
                          act on, brains can be saved, samples that are given wait, snapshots and restores
                          too. When there is room it comes back by itself, and its next minibatch has the bits
                          that it would have had. Nothing of this is done by the frame thread */
  uint32_t
      waiting_jobs; /* compiling and files that nobody has begun: for run_jobs, where nobody else does them */
  uint64_t cpu_deferred_frames; /* frames in which learning that the GPU's budget had room for waited because
                                   of imp_limits::cpu_us_per_frame */
  uint64_t over_cpu_frames;     /* frames whose calls took longer than that */
  uint64_t bytes_away;          /* about the device memory that learning has given up so */
} imp_context_stats;

/* GPU time of a frame's work, estimated from timestamps of earlier frames, or guessed where there are none;
 * microseconds. */
typedef struct imp_estimate {
  imp_header header;
  uint32_t due_us;   /* whatever the budget: inference, and learning that has to finish in this frame */
  uint32_t later_us; /* learning beyond that, of which the budget decides */
} imp_estimate;

/* What tells that work on the GPU is complete. */
typedef enum imp_completion {
  IMP_COMPLETED_BY_TIMELINE = 0, /* a timeline semaphore of ours */
  IMP_COMPLETED_BY_FENCES = 1,
  IMP_COMPLETED_BY_FRAMES = 2, /* imp_frame_info::safe_frame */
  IMP_COMPLETED_BY_CALLS = 3   /* on the CPU: submit returns when all is done */
} imp_completion;

/* Where tensors lie. */
typedef enum imp_tensor_sharing {
  IMP_TENSORS_NOT_SHARED =
      0, /* on no device of the host's: numbers go in and out by agent_observe and agent_act */
  IMP_TENSORS_ON_ONE_DEVICE = 1, /* on the host's */
  IMP_TENSORS_ACROSS_DEVICES = 2 /* in memory that the host's device and Imprint's own both have; see tensors
                                    that host and Imprint share */
} imp_tensor_sharing;

/* What a context has to work with. Strings live as long as the context. */
typedef struct imp_report {
  imp_header header;
  const char*
      device; /* name of the GPU, or "CPU": then of what is below only driver, submits and completion apply */
  const char* driver;
  uint32_t api_version; /* the lower of the declared and the device's */
  uint32_t queue_family;
  uint32_t submits; /* 1: on a queue; 0: records into the host's command buffers only */
  imp_completion completion;
  uint32_t measures_gpu_time; /* 1: by timestamps; 0: GPU time is estimated */
  uint32_t own_device;        /* 1: a device of Imprint's own */
  uint32_t loss_count;        /* for context_get_loss */
  uint32_t reserved;          /* 0 */
  imp_tensor_sharing tensor_sharing;
} imp_report;

/* Something that the device, as declared, has not: nothing of it is needed. Strings live as long as the
 * context. */
typedef struct imp_loss {
  imp_header header;
  const char* item;   /* "timelineSemaphore", "VK_EXT_memory_budget" */
  const char* cause;  /* "not declared", "not supported by the device" */
  const char* cost;   /* what is lost or slower */
  const char* remedy; /* what to do, in a host that makes its device itself; the others: in these engines */
  const char* unity;
  const char* unreal;
  const char* godot;
  const char* vulkan_scene_graph;
} imp_loss;

#endif /* IMPRINT_IMPRINT_REPORT_H_ */
