#ifndef IMPRINT_IMPRINT_H_
#define IMPRINT_IMPRINT_H_
/*
 * Imprint: game agents that infer and learn on the player's GPU, between frames, on the game's own Vulkan
 * device.
 *
 * One exported symbol, imp_get_api, hands out a table of functions. C11; no Vulkan header needed (include it
 * before or after, or not at all).
 *
 * A game's calls, in order. Before it makes its device, if it can: vk_query_requirements or
 * vk_merge_device_create_info. Then context_create, brain_create and agent_create, and warmup behind the
 * loading screen. In each frame: frame_begin; agent_observe for who wants to decide, agent_act for answers,
 * agent_feedback or agent_reward for what came of them; submit, or record; frame_end. Round its own wait for
 * an idle device: quiesce and resume. At the end context_destroy, before its device goes. A brain that has
 * learned: brain_save and brain_load.
 *
 * Threads. Each function carries a tag:
 *   [create]  any one thread at a time, not a frame thread: may allocate, compile, block.
 *   [frame]   the host's frame thread (one thread a context, always the same between frame_begin and
 * frame_end): never compiles, allocates device memory or blocks after warmup has returned. [frame or create]
 * either of these: between frames on any one thread, in a frame on the frame's. [any]     any thread, at any
 * time, from within a callback too. Calls for one context that are not [any] must not overlap: one that comes
 * while another is under way returns IMP_ERROR_WRONG_STATE, and so does a [create] call while a frame is
 * open, or a frame call out of order. Nothing of it is run, and an overlap with context_destroy does no harm
 * either.
 *
 * Strings are UTF-8 and borrowed for the duration of the call unless said otherwise. Arrays passed in are
 * copied before the call returns. Output pointers are written only on success. Every struct starts with its
 * size and type: make them with the imp_*_init functions, which also set defaults.
 *
 * Game and library may come from different versions of this header. Structs grow at their end, and what came
 * later means its default when it is zero. So a shorter struct of an older header is taken with the rest as
 * zero, and a longer one of a newer header while its unknown rest is zero; structs that the library fills are
 * filled as far as both know them. A size below that of version 1 is refused. Of the table, see imp_api.size.
 *
 * Handles are values. A destroyed or foreign handle is recognised and refused with IMP_ERROR_INVALID_HANDLE.
 * A context has at most 1048576 brains, agents and tensors each: one more is IMP_ERROR_UNSUPPORTED.
 *
 * Failures. last_error tells which field and what was expected. Any function may return
 * IMP_ERROR_INVALID_ARGUMENT, IMP_ERROR_INVALID_HANDLE, IMP_ERROR_WRONG_STATE, IMP_ERROR_OUT_OF_HOST_MEMORY,
 * IMP_ERROR_OUT_OF_DEVICE_MEMORY, IMP_ERROR_DEVICE_LOST and IMP_ERROR_INTERNAL; what else it returns, and
 * when, is said there. One that failed has changed nothing, unless said otherwise.
 *
 * Callbacks and their user pointers are used until context_destroy has returned. They are ordinary C
 * functions of the platform's default convention; those of Vulkan (get_instance_proc_addr,
 * allocation_callbacks) have Vulkan's.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IMP_ABI_VERSION 1u

#if defined(_WIN32)
#define IMP_EXPORT __declspec(dllexport)
#define IMP_CALL __cdecl
#else
#define IMP_EXPORT __attribute__((visibility("default")))
#define IMP_CALL
#endif

/* The Vulkan handles that cross this interface; the same typedefs as Vulkan's own header. */
typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
typedef struct VkQueue_T* VkQueue;
typedef struct VkCommandBuffer_T* VkCommandBuffer;

typedef struct imp_context {
  uint64_t id;
} imp_context; /* one adopted device */
typedef struct imp_brain {
  uint64_t id;
} imp_brain; /* one policy, or a kennel of policies of one shape */
typedef struct imp_agent {
  uint64_t id;
} imp_agent; /* one body that observes and acts */
typedef struct imp_tensor {
  uint64_t id;
} imp_tensor; /* an array in a buffer that the host's shaders use too */

/* ---- results
 * ------------------------------------------------------------------------------------------------------------------------
 */

typedef int32_t imp_result; /* 0 success, > 0 success with a remark, < 0 failure */
enum {
  IMP_OK = 0,
  IMP_NOT_READY = 1, /* the answer is still on its way: ask again in a later frame */
  IMP_ERROR_INVALID_ARGUMENT =
      -1, /* null, out of range, NaN or infinite observation, a struct of the wrong size or type */
  IMP_ERROR_SHAPE_MISMATCH = -2,       /* a tensor, a file or a model of another shape than it is to serve */
  IMP_ERROR_DTYPE_MISMATCH = -3,       /* a tensor or a model of other elements than it is to serve with */
  IMP_ERROR_UNSUPPORTED = -4,          /* not by this device, this library or this way of using a queue */
  IMP_ERROR_OUT_OF_DEVICE_MEMORY = -5, /* the device's, or the cap's (imp_limits::memory_cap_bytes); nothing
                                          is lost, it may be tried again */
  IMP_ERROR_OUT_OF_HOST_MEMORY = -6,   /* the same */
  IMP_ERROR_DEVICE_LOST = -7,          /* see imp_host::device_lost */
  IMP_ERROR_IO = -9,                   /* the operating system refused a file; last_error has its words */
  IMP_ERROR_CORRUPT_FILE = -10,        /* damaged, truncated, or no file of this kind */
  IMP_ERROR_COMPILE_FAILED =
      -11, /* the compiler or the driver refused a kernel: our fault or its; last_error has its words */
  IMP_ERROR_WRONG_STATE = -12, /* calls in the wrong order or on the wrong thread */
  IMP_ERROR_NOT_FOUND =
      -13, /* no such device, snapshot or kernel; or nothing was asked of what is to answer */
  IMP_ERROR_INTERNAL = -14,      /* our fault */
  IMP_ERROR_INVALID_HANDLE = -15 /* zero, destroyed or foreign */
};

typedef enum imp_log_level {
  IMP_LOG_DEBUG = 0,
  IMP_LOG_INFO = 1,
  IMP_LOG_WARNING = 2,
  IMP_LOG_ERROR = 3
} imp_log_level;

/* ---- structs: {size, type, next} first; next chains are reserved and must be null
 * ------------------------------------------------------ */

typedef enum imp_struct_type {
  IMP_STRUCT_VK_DEVICE_INFO = 1,
  IMP_STRUCT_STANDALONE_INFO = 2,
  IMP_STRUCT_HOST = 3,
  IMP_STRUCT_LIMITS = 4,
  IMP_STRUCT_FRAME_INFO = 5,
  IMP_STRUCT_RECORD_INFO = 6,
  IMP_STRUCT_BRAIN_DESC = 7,
  IMP_STRUCT_POLICY_DESC = 8,
  IMP_STRUCT_ACTION = 9,
  IMP_STRUCT_FEEDBACK = 10,
  IMP_STRUCT_DEMONSTRATION = 11,
  IMP_STRUCT_BRAIN_STATS = 12,
  IMP_STRUCT_CONTEXT_STATS = 13,
  IMP_STRUCT_BRAIN_INFO = 14,
  IMP_STRUCT_VK_PLAN = 15,
  IMP_STRUCT_VK_MERGED = 16,
  IMP_STRUCT_REPORT = 17,
  IMP_STRUCT_LOSS = 18,
  IMP_STRUCT_ESTIMATE = 19,
  IMP_STRUCT_TENSOR_DESC = 20,
  IMP_STRUCT_VK_BUFFER = 21,
  IMP_STRUCT_SUBMIT_INFO = 22
} imp_struct_type;

typedef struct imp_header {
  uint32_t size; /* sizeof the whole struct, as the caller's header has it */
  uint32_t type; /* imp_struct_type */
  const void* next;
} imp_header;

typedef void (*imp_void_function)(void);
typedef imp_void_function (*imp_get_instance_proc_addr)(VkInstance instance, const char* name);

/* A queue that Imprint may submit to, and how. Exactly one of lock+unlock, submit, single_thread, or a way of
 * imp_vk_device_info's must be given. The callbacks are called on the thread that calls the function which
 * submits, with no lock of ours held. */
typedef struct imp_vk_queue {
  VkQueue queue; /* null: Imprint never submits; use record. Several contexts of a process may share a queue,
                    in one and the same way, and then keep out of each other's; in another way it is
                    IMP_ERROR_INVALID_ARGUMENT */
  uint32_t family; /* required also without a queue: the family of the command buffers given to record; must
                      support compute */
  uint32_t index;  /* in its family, as the host got it; Imprint asks for no queue by it */
  void (*lock)(void* user, VkQueue queue);
  void (*unlock)(void* user, VkQueue queue);
  /* Submits on the host's behalf, as vkQueueSubmit(queue, submit_count, submits, fence), in the order of
   * calls and before it returns: its VkResult. `submits` is a VkSubmitInfo array, with chains, of this call
   * only; `fence` a VkFence or 0. */
  int32_t (*submit)(void* user, VkQueue queue, uint32_t submit_count, const void* submits, uint64_t fence);
  uint32_t single_thread; /* 1: the host promises that nothing else uses the queue while it calls frame
                             functions */
  void* user;
} imp_vk_queue;

/* The host's device, as declared: Imprint uses what is listed and supported, and nothing else. The lists are
 * the ones that were given to vkCreateInstance and vkCreateDevice. All handles stay the host's and must
 * outlive the context. */
typedef struct imp_vk_device_info {
  imp_header header;
  imp_get_instance_proc_addr get_instance_proc_addr; /* required */
  VkInstance instance;                               /* required */
  VkPhysicalDevice physical_device;                  /* required */
  VkDevice device;                                   /* required */
  uint32_t api_version; /* VkApplicationInfo::apiVersion; at least 1.1 (VK_MAKE_API_VERSION(0, 1, 1, 0)) */
  uint32_t instance_extension_count;
  const char* const* instance_extensions;
  uint32_t device_extension_count;
  const char* const* device_extensions;
  const void* features;             /* const VkPhysicalDeviceFeatures2* with its chain; null = none enabled */
  const void* allocation_callbacks; /* const VkAllocationCallbacks*; null = none. Threads of Imprint's call
                                       them too: those that compile shaders, and the one that takes learning's
                                       memory back and away */
  uint64_t pipeline_cache; /* VkPipelineCache, used by threads that compile, so none that is externally
                              synchronized; 0 = our own */
  imp_vk_queue queue;
  /* Two more ways to share `queue`, in the place of those in imp_vk_queue. run_on_queue(queue.user, work,
   * data): calls work(data, queue) where the host may submit (its submission thread), and returns when that
   * has returned; one that does not call it makes the submission IMP_ERROR_WRONG_STATE.
   * internally_synchronized: 1 when anybody may use the queue at any time. */
  void (*run_on_queue)(void* user, void (*work)(void* data, VkQueue queue), void* data);
  uint32_t internally_synchronized;
  /* 1: queue.submit cannot pass a fence on, and is given none. Without timeline semaphores among `features`,
   * what a frame submitted is then done when the host calls the frame safe, as with record; and drain and
   * brain_hash are IMP_ERROR_UNSUPPORTED. */
  uint32_t submit_without_fence;
  /* 1: where this device cannot serve (IMP_ERROR_UNSUPPORTED, as with Vulkan 1.0 or a family without
   * compute), the context gets a second device, of Imprint's own, on the same GPU when it serves:
   * imp_report::own_device tells. It is then as after context_create_standalone: frames are given to submit,
   * record is IMP_ERROR_UNSUPPORTED, and numbers go in and out through host memory. Tensors lie in memory
   * that both devices have, where the lists above have VK_KHR_external_memory_fd (on Windows _win32) and with
   * Vulkan 1.0 what it is built on, VK_KHR_external_memory for the device and
   * VK_KHR_external_memory_capabilities and VK_KHR_get_physical_device_properties2 for the instance:
   * imp_report::tensor_sharing says so; else tensor_create_vk is IMP_ERROR_UNSUPPORTED, and the report says
   * what lacks. Where no such device can be made the processor computes, as for the device "cpu" of
   * context_create_standalone. 0: never. */
  uint32_t allow_own_device;
  /* 1: a further way: the host uses queue.queue for nothing, and Imprint submits to it from a thread of its
   * own ("imprint-submit"), so that what it learns runs beside what the host draws, and the frame thread only
   * says what is to be done. All of Imprint's work runs there; record is IMP_ERROR_UNSUPPORTED. imp_limits'
   * microseconds are then of this queue's time a frame, beside the host's, and not taken from it: below the
   * length of a frame answers keep coming in time. Towards the host's own queues only submit_with orders it;
   * a binary semaphore to signal makes submit_with wait until its submission is made. Allocation callbacks
   * may be called on that thread. quiesce parks it. What the queue refuses for want of memory is tried again
   * until it is taken, and meanwhile submit says so. queue.lock and unlock may be given besides, and are then
   * held round each submission, on that thread. Where this is the device's only queue it serves training
   * without drawing. Needs imp_limits::worker_threads above 0, for that thread is one of Imprint's own; else
   * IMP_ERROR_INVALID_ARGUMENT. */
  uint32_t exclusive;
} imp_vk_device_info;

/* A device that is yet to be made, by the host and for itself. */
typedef struct imp_vk_plan {
  imp_header header;
  imp_get_instance_proc_addr get_instance_proc_addr; /* these four as in imp_vk_device_info, all required */
  VkInstance instance;
  VkPhysicalDevice physical_device;
  uint32_t api_version;
} imp_vk_plan;

/* Something that Imprint uses where it is enabled, and does without where it is not. */
typedef struct imp_vk_wish {
  char feature[64];   /* "timelineSemaphore"; "" when the extension is all there is to enable */
  char extension[64]; /* to enable with it; "" when it is part of api_version */
  char cost[128];     /* what is lost without */
} imp_vk_wish;

/* A family that computes beside graphics: a queue of it, of the host's making, lets learning run behind the
 * picture. */
typedef struct imp_vk_extra_queue {
  uint32_t family;
  uint32_t queue_count; /* that the family has */
  float priority;       /* to make one with: lower than any of the host's */
} imp_vk_extra_queue;

/* A VkDeviceCreateInfo of the host's with the wishes in it. It borrows the host's, which must stay as it is
 * until the device is made. */
typedef struct imp_vk_merged {
  imp_header header;
  const void* create_info; /* const VkDeviceCreateInfo*, for vkCreateDevice */
  const void* features;    /* these three for imp_vk_device_info */
  uint32_t device_extension_count;
  const char* const* device_extensions;
  void* owner; /* for vk_free_merged */
} imp_vk_merged;

/* A device of Imprint's own, for tools, tests and headless servers. */
typedef struct imp_standalone_info {
  imp_header header;
  const char* device; /* index ("0") or part of a name ("nvidia", "llvmpipe"); null = the first discrete, else
                       * integrated, else any; "cpu" = none: submit runs inference and learning on the frame
                       * thread, imp_limits::gpu_us_per_frame is of that thread's time, and no Vulkan is
                       * needed, nor used where it is. There is no device memory then:
                       * imp_limits::memory_cap_bytes bounds nothing, and imp_context_stats counts no bytes of
                       * it. For one small brain, or a few. Brains are saved as by any other context. */
  uint32_t validation; /* 1: enable VK_LAYER_KHRONOS_validation with synchronisation checks; its messages go
                          to the log as errors */
} imp_standalone_info;

/* What the host lends. All optional. */
typedef struct imp_host {
  imp_header header;
  void (*log)(void* user, imp_log_level level, const char* message); /* [any] thread */
  const char* shader_cache_directory; /* compiled shaders by content hash, of a library with a compiler;
                                         created if missing; null = off */
  const char* shader_dump_directory;  /* generated GLSL, for reading; null = off */
  void* user;
  /* The device was lost. Called once a context, at the end of the call that met it and on its thread; call
   * nothing of this context in it. Afterwards no function touches the device any more but to destroy what is
   * ours: all say IMP_ERROR_DEVICE_LOST, frame_end too, which ends the frame all the same. Served as ever are
   * brain_save and brain_save_status of brains with a shadow (imp_limits::shadow_period_frames), run_jobs,
   * reports, [any] calls, what destroys brains, agents and tensors, and context_destroy, which does not wait
   * for the device, but for a call to it that a worker had begun before it could know. */
  void (*device_lost)(void* user, const char* message);
  /* Device memory from the host, of the device that imp_vk_device_info names: as vkAllocateMemory with
   * `info`, a VkMemoryAllocateInfo with its chain, which returns a VkResult, and as vkFreeMemory;
   * VkDeviceMemory as a number. Not asked for memory of a second device, nor for what is imported from it,
   * which is another's. Both or neither. [any] thread. */
  int32_t (*allocate_device_memory)(void* user, const void* info, uint64_t* memory);
  void (*free_device_memory)(void* user, uint64_t memory);
  /* The host's job system, for what is no frame's: compiling (in warmup) and writing files (brain_save,
   * shadows). Hands run(data) over, which has to be called exactly once, on any thread, at once or later, and
   * returned before the library is unloaded; it may come after context_destroy, and does nothing then.
   * Imprint then has no worker threads of its own, and a [create] call that waits for such work does what no
   * worker has begun, so that it may itself be one of the host's jobs. [any] thread. */
  void (*job_submit)(void* user, void (*run)(void* data), void* data);
  /* Compiled shaders that the command imprint bake wrote: the bytes of its file, which are copied, or its
   * path; null = none. They are asked for before the cache and the compiler. A library without a compiler has
   * no others: a kernel that is missing makes warmup IMP_ERROR_NOT_FOUND and is named. A damaged file is
   * IMP_ERROR_CORRUPT_FILE, one of another version IMP_ERROR_UNSUPPORTED, and no context is made. */
  const void* kernel_archive;
  size_t kernel_archive_size;
  const char* kernel_archive_path;
} imp_host;

/* Who gives way when a frame of the host's (imp_frame_info::host_gpu_us) takes longer than
 * imp_limits::frame_gpu_us. What is due is always done. */
typedef enum imp_preference {
  IMP_PREFER_GRAPHICS = 0, /* learning stops at once, and comes back slowly when there is room */
  IMP_PREFER_BALANCE = 1,  /* learning gives way step by step, down to a quarter of its budget */
  IMP_PREFER_COMPUTE = 2   /* learning keeps its budget */
} imp_preference;

typedef struct imp_limits {
  imp_header header;
  uint32_t gpu_us_per_frame; /* budget of GPU time a frame, microseconds; 0 = inference only, no learning.
                                Default 500 */
  uint32_t
      max_slice_us; /* longest single submission of learning work, microseconds; 0 = no limit. Default 1000 */
  uint32_t worker_threads; /* of Imprint's own ("imprint-jobs"), that compile shaders, write files and move
                            * learning's memory; none where imp_host::job_submit is given. 0: no thread of
                            * Imprint's at all: that work is done by [create] calls that wait for it (warmup,
                            * drain), and by run_jobs. At most 64. Default 1 */
  uint64_t
      memory_cap_bytes; /* device memory that Imprint may reserve; passing it is
                           IMP_ERROR_OUT_OF_DEVICE_MEMORY. 0 = no cap. Default 256 MiB. set_limits may change
                           it: while more is reserved than it allows, learning gives its memory back
                           (imp_context_stats::memory_pressure), so that a game in need can ask for it */
  imp_preference preference;
  uint32_t frame_gpu_us; /* GPU time that a whole frame of the host's may take, microseconds; 0 = learning
                            takes no notice of it */
  uint32_t shadow_period_frames; /* every learning brain is copied to host memory about this often while it
                                    changes, for when the device is lost; takes as much host-visible device
                                    memory as brain_save, from warmup on. 0 = never */
  uint32_t cpu_us_per_frame;     /* time of the frame thread that all calls of a frame may take together,
                                    microseconds (imp_context_stats::frame_cpu_us).     Learning that does not
                                    have to     finish in the frame waits for a later one when there is no time left
                                    to hand     it     over; what is asked and what is due is always done. Where the
                                    processor     computes gpu_us_per_frame is limited by it.     0 = no limit */
  uint32_t
      tuning_ms; /* time that a warmup may spend on measuring which variants of the kernels that it compiles
                    are the fastest on this GPU, milliseconds, compiling those variants included; what is
                    begun is finished. They run on zeros beside the brains, which takes as much device memory
                    again while it lasts; where the cap has no room the cost model chooses. Later starts know
                    what was measured from pipeline_cache_get, other computers from tuning_get. Needs own
                    submits, timestamps and a compiler, else nothing is measured. 0 = nothing is measured */
  uint32_t deterministic; /* 1: which variant of a kernel runs is fixed: nothing is measured, and what a
                             pipeline cache brings of measurements is not used, so that equal libraries, GPUs
                             and drivers compute equal bits. tuning_set still counts: what the host ships is
                             the host's choice. As at creation; set_limits does not change it */
} imp_limits;

typedef struct imp_frame_info {
  imp_header header;
  uint64_t frame; /* rises by one each frame, from any start, and stays below 2^63. A jump counts as frames
                     that passed: answers and minibatches that were due in them are due now */
  uint64_t safe_frame; /* with record, and with submit_without_fence: every command buffer up to and including
                          this frame has completed on the GPU, below `frame`; else ignored */
  double time_s; /* the game's simulated time, seconds, never falling; feedback is credited on this clock */
  uint32_t host_gpu_us; /* GPU time of the newest whole frame that the host has measured, ours included,
                           microseconds; 0 = unknown */
} imp_frame_info;

/* What a command buffer must not be. Vulkan cannot be asked, so a host that knows says it, and gets an error
 * in the place of a lost device. */
typedef enum imp_record_state {
  IMP_RECORD_IN_RENDER_PASS = 1, /* inside a render pass or dynamic rendering: end it first */
  IMP_RECORD_SECONDARY = 2,
  IMP_RECORD_PROTECTED = 4,
  IMP_RECORD_REUSED = 8,       /* it will be submitted more than once */
  IMP_RECORD_OTHER_FAMILY = 16 /* its pool is of another queue family than imp_vk_queue::family */
} imp_record_state;

/* Recording into the host's command buffer: recording state, outside a render pass and dynamic rendering, of
 * the declared family, not protected, primary, and without active queries unless the device has
 * inheritedQueries. Clobbered: bound compute pipeline, compute descriptor sets, compute push constants. Left
 * behind: a barrier from our work to all later compute and transfer commands. Then submit it once, in the
 * order of frames: what was recorded counts as done when its frame is safe. There is no recording to be used
 * again: each frame's work is another. */
typedef struct imp_record_info {
  imp_header header;
  VkCommandBuffer command_buffer;
  uint32_t budget_us; /* microseconds for this call; UINT32_MAX = imp_limits::gpu_us_per_frame */
  uint32_t reserved;  /* 0 */
  uint32_t state; /* imp_record_state bits that hold, as far as the host knows: any is an error, nothing is
                     recorded, and record may be called again */
} imp_record_info;

/* A semaphore of the host's. */
typedef struct imp_vk_semaphore {
  uint64_t semaphore; /* VkSemaphore */
  uint64_t value;     /* of a timeline semaphore */
  uint32_t timeline;  /* 1: a timeline semaphore, which needs that feature declared; 0: binary */
  uint32_t reserved;
} imp_vk_semaphore;

/* What one submission of a frame carries beside its work: for hosts that share tensors across queues. */
typedef struct imp_submit_info {
  imp_header header;
  uint32_t budget_us; /* microseconds for this frame; UINT32_MAX = imp_limits::gpu_us_per_frame */
  uint32_t wait_count;
  const imp_vk_semaphore* waits; /* before any of the frame's work */
  uint32_t completion_count;
  const imp_vk_semaphore* completions; /* signalled behind all of it; also when there was nothing to do */
} imp_submit_info;

/* ---- tensors that host and Imprint share
 * --------------------------------------------------------------------------------------------------
 *
 * A tensor lies in a range of a VkBuffer, and nobody copies it: the host's shaders write what agents observe,
 * and read how they act. One frame's order, on the queue that both use or in the command buffer of record:
 * the host's commands before; Imprint's; the host's after. A barrier on either side of Imprint's makes writes
 * visible, for the stages and accesses that the host has declared; the host needs none of its own. Across
 * queues the host hands semaphores to submit_with, and declares no stages. Across queue families a buffer
 * that is VK_SHARING_MODE_EXCLUSIVE changes its owner besides: the host releases it to Imprint's family,
 * tensor_acquire takes it over, tensor_release gives it back, and the host acquires it from Imprint's family,
 * all for the tensor's offset and size.
 *
 * Across devices (IMP_TENSORS_ACROSS_DEVICES) tensor_create_vk makes one memory that both devices have;
 * tensor_export_vk gives the buffer and the memory of the host's device. Sharing is exclusive, stages and
 * access count for nothing, and Imprint's family is VK_QUEUE_FAMILY_EXTERNAL for the host. A tensor is
 * Imprint's at first: a frame with tensor_release, submitted, begins. The processor orders: submit is called
 * when a fence of the host's tells that its release is complete, and the host acquires when drain or quiesce
 * has returned, or agent_act has answered what was asked in a later frame than the one of tensor_release. The
 * host's GPU is done with a tensor when it is destroyed, by tensor_destroy or context_destroy. */

typedef enum imp_dtype { IMP_DTYPE_FLOAT32 = 0, IMP_DTYPE_INT32 = 1 } imp_dtype;

#define IMP_MAX_RANK 8u

/* Row-major and without gaps, elements of 4 bytes. */
typedef struct imp_tensor_desc {
  imp_header header;
  const char* name; /* for messages; default "tensor" */
  imp_dtype dtype;
  uint32_t rank;                /* 1 .. IMP_MAX_RANK */
  uint64_t shape[IMP_MAX_RANK]; /* extents, >= 1 each */
} imp_tensor_desc;

/* A range of a VkBuffer. Vulkan cannot be asked for any of it, so it is declared, as the buffer was created.
 * Each field that does not fit is refused by its name. */
typedef struct imp_vk_buffer {
  imp_header header;
  uint64_t buffer;  /* VkBuffer */
  uint64_t offset;  /* bytes, a multiple of minStorageBufferOffsetAlignment and of 16 */
  uint64_t size;    /* bytes, a multiple of 4, at least the tensor's; 0 = the tensor's. What is longer than
                       maxStorageBufferRange is         reached in parts of at most that, which costs a little
                       for each */
  uint32_t usage;   /* VkBufferUsageFlags; VK_BUFFER_USAGE_STORAGE_BUFFER_BIT is required */
  uint32_t sharing; /* VkSharingMode */
  uint32_t family_count;
  uint32_t
      memory_flags; /* VkMemoryPropertyFlags of its memory type; neither lazily allocated nor protected */
  const uint32_t* families; /* exclusive: the one that the host uses it in, or none when that is Imprint's;
                               concurrent: all, Imprint's among them */
  uint64_t
      device_address; /* of the buffer, or 0; needs VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT. Not used yet */
  uint32_t stages;    /* VkPipelineStageFlags in which the host uses it, on the queue that it shares with
                         Imprint; 0 = on no such queue */
  uint32_t access;    /* VkAccessFlags there */
  uint64_t memory;    /* VkDeviceMemory; only filled, by tensor_export_vk, for Imprint's own buffers: Imprint
                         frees it */
} imp_vk_buffer;

/* ---- brains
 * ------------------------------------------------------------------------------------------------------------------------------
 */

typedef enum imp_activation {
  IMP_ACTIVATION_RELU = 0,
  IMP_ACTIVATION_TANH = 1,
  IMP_ACTIVATION_SILU = 2,
  IMP_ACTIVATION_ELU = 3,
  IMP_ACTIVATION_GELU = 4
} imp_activation;

#include "imprint_learner.h"

/* A network from observations to actions, its learner, and how many of them there are. Sizes are free. */
typedef struct imp_brain_desc {
  imp_header header;
  const char* name;               /* for logs and saved files; default "brain" */
  uint32_t observation_count;     /* floats an observation; >= 1 */
  const float* observation_scale; /* observation_count factors applied before the network, finite; null = 1 */
  uint32_t goal_count;   /* cues or tasks that an agent can be given, each with its own output head; >= 1.
                            Default 1 */
  uint32_t branch_count; /* discrete action branches; the learners feedback and DQN need exactly 1 */
  const uint32_t* branch_sizes; /* choices of each branch, >= 2; at most IMP_MAX_BRANCHES branches */
  uint32_t continuous_count;    /* continuous actions in [-1, 1]; of the learners IMP_LEARNER_CLONING only */
  uint32_t hidden_count;        /* hidden layers, at most 16. Default 2 */
  const uint32_t* hidden_sizes; /* widths; null = 64 each */
  imp_activation activation;    /* Default relu */
  uint32_t brain_count; /* 1, or a kennel: this many brains of one shape, each with its own weights, optimiser
                           and memory */
  uint32_t agents_per_brain; /* most agents that share one brain; brain_count times this is at most 1048576.
                                Default 1 */
  uint64_t seed; /* weights, exploration and minibatches; equal seeds give equal brains on one device. Brain i
                    of a kennel has the weights and the noise of a single brain with seed + i */
  uint32_t action_latency_frames; /* frames from request to answer, fixed so that play does not depend on GPU
                                     speed; 1 .. 64. With record: at least the frames that pass until
                                     safe_frame tells of one. Default 2 */

  imp_learner learner;
  uint32_t
      learn_period_frames;  /* one minibatch (PPO: one update, with all its minibatches) every this many
                               frames; its result takes effect exactly one  period after it began. Default 6 */
  uint32_t batch_size;      /* samples a minibatch and brain. COACH: steps that it takes in, at most. PPO: a
                               divisor of      rollout_steps. Default 32 */
  uint32_t replay_capacity; /* samples remembered a brain; the oldest is overwritten. COACH, PPO: not used,
                               >= 1. Default 4096 */
  float learning_rate; /* Adam; COACH: plain gradient ascent. Default 1e-3; imp_brain_desc_init_for gives each
                          learner its own */
  float max_gradient_norm; /* global norm clip; 0 = none. Default 1 */
  float exploration; /* standard deviation of the noise added to the values of choices (predicted feedback or
                        return, logits) when acting in IMP_MODE_LEARNING. COACH, PPO: not used. Default 0.2 */
  float margin;      /* feedback: a praised or shown action pushes its rivals below -margin. Default 0.5 */
  float margin_weight;     /* weight of that push; 0 = off. Default 0.3 */
  float credit_delay_s;    /* where feedback counts: reaction time of a person from the onset of an action.
                              Default 0.8 */
  float credit_width_s;    /* half-width of the triangle of credit around it. Default 0.6 */
  uint32_t snapshot_count; /* snapshots kept for undo, at most 64; the oldest is dropped. 0 = none. Each takes
                              as much device memory as weights, moments and replay together. Default 4 */
  /* Tensors of this context, or zero; they outlive the brain. Both float32.
   * observations: of any shape, read by agent_observe_in_place. What an agent learns from stays on the
   * device: takes memory for 256 + learn_period_frames observations an agent, and samples that wait longer
   * than that are dropped and counted. Numbers that are not finite count as 0. The learners DQN and PPO,
   * whose samples have two observations, take numbers only: IMP_ERROR_UNSUPPORTED. actions: [brain_count *
   * agents_per_brain, imp_brain_info::action_width], written when an agent is answered, in the frame that it
   * asked: a row is the index of each branch's choice, the continuous actions, and the values, as in
   * imp_action, all as floats. Agent j of brain i has row i * agents_per_brain + j, agents of a brain in the
   * order of creation. Rows of agents that did not ask stay. */
  imp_tensor observations;
  imp_tensor actions;
  /* Frames between two decisions of an agent; 0 counts as 1. Default 1. The agents of a brain take turns, so
   * that a crowd's decisions spread over frames and each frame's batch is that much smaller: agent j of a
   * brain, in the order of creation, decides in every decision_period_frames-th frame that is submitted or
   * recorded, agent j + 1 one frame later. What it saw last is remembered until its turn, when the answer's
   * requested_frame is that frame; until the answer is due agent_act repeats the last one, which stands, and
   * is IMP_NOT_READY only before the first. With agent_observe_in_place the buffer is read in the turn. In
   * heuristic and record modes the game decides when it likes. */
  uint32_t decision_period_frames;
  /* DQN: every target_period minibatches the target network goes target_rate of the way to the network. 0
   * counts as 50 and 1: a copy, every so often. */
  uint32_t target_period;
  float target_rate;        /* 0 < .. <= 1 */
  float discount;           /* DQN, PPO: of what an action leads to, 0 < .. <= 1; 0 counts as 0.99 */
  uint32_t double_estimate; /* DQN: 1 = the network itself says which choice is the best, and the target
                               network what it is worth. Van Hasselt, Guez, Silver, Deep Reinforcement
                               Learning with Double Q-learning, 2016 */
  /* DQN: share of choices in IMP_MODE_LEARNING that are made at random from those that are open, beside
   * `exploration`'s noise. An agent's n-th decision has 1 - (1 - epsilon) n / epsilon_decisions of it, until
   * that is epsilon. Both 0: none. */
  float epsilon;
  uint32_t epsilon_decisions;
  float trace_decay; /* COACH: what a step leaves of the eligibility of the steps before it in its episode, 0
                        .. 0.9999. 0: a step's feedback is for its own action alone. A step of another agent
                        of the brain ends it too */
  uint32_t rollout_steps; /* PPO: steps of all agents of a brain together that an update learns from; 0 counts
                             as 128, at most 65536 */
  uint32_t epochs; /* PPO: how often an update goes through them, in another order each time; 0 counts as 4,
                      at most 64. All minibatches of an update are recorded as one: beyond 1,048,576
                      dispatches warmup is IMP_ERROR_INVALID_ARGUMENT */
  float advantage_decay; /* PPO: lambda of generalised advantage estimation, 0 < .. <= 1; 0 counts as 0.95 */
  float clip_range; /* PPO: how far an action's probability may move before an update gains nothing by it, 0 <
                       .. <= 1; 0 counts as 0.2 */
  float
      entropy_coefficient; /* PPO: weight of the policy's entropy, for exploring longer; 0 counts as 0.005 */
  uint32_t reserved;       /* 0 */
} imp_brain_desc;

/* A trained policy from an ONNX file; it does not learn. The first input is the observation; further inputs
 * are state, fed back from the output of the same position (state_ins -> state_outs) and zero at the start of
 * an episode. An action's values and continuous are both the first output as it is. */
typedef struct imp_policy_desc {
  imp_header header;
  const char* name;
  const void* data; /* the file's bytes */
  size_t size;
  uint32_t agent_capacity;        /* most agents; they are one batch. Default 64 */
  uint32_t action_latency_frames; /* Default 2 */
  /* Tensors of this context, or zero, as in imp_brain_desc: where agent_observe_in_place looks, and
   * [agent_capacity, action_width] for answers, whose rows are the first output as it is. */
  imp_tensor observations;
  imp_tensor actions;
} imp_policy_desc;

/* What a brain turned out to be. */
typedef struct imp_brain_info {
  imp_header header;
  uint32_t observation_count, goal_count, branch_count, continuous_count, brain_count, agent_capacity;
  uint64_t parameter_count; /* weights and biases of all brains */
  uint32_t action_width; /* floats a row of imp_brain_desc::actions: branches, continuous actions and values;
                            of a policy from a file: its first output */
} imp_brain_info;

/* ---- agents
 * -------------------------------------------------------------------------------------------------------------------------------
 */

#define IMP_MAX_BRANCHES 8u
#define IMP_MAX_CONTINUOUS 64u
#define IMP_MAX_VALUES 64u

/* An answer. values are the network's outputs for the agent's goal before noise: predicted feedback, logits
 * or raw policy outputs. */
typedef struct imp_action {
  imp_header header;
  uint64_t decision; /* counts the agent's decisions from 1 */
  uint64_t requested_frame;
  uint32_t goal;
  uint32_t branch_count;
  uint32_t branches[IMP_MAX_BRANCHES]; /* chosen index of each branch */
  uint32_t continuous_count;
  float continuous[IMP_MAX_CONTINUOUS];
  uint32_t value_count; /* at most IMP_MAX_VALUES; the rest is cut */
  float values[IMP_MAX_VALUES];
} imp_action;

typedef struct imp_feedback {
  imp_header header;
  float value;  /* -1 .. 1. Below 0, a scolding, the action with the largest share of the credit (of equal
                   shares the newest) is also not  chosen again during the command that it belonged to */
  float weight; /* > 0, how much it counts; default 1 (a treat: 2) */
  imp_credit credit;
  double time_s; /* when the player reacted, on imp_frame_info's clock; not later than the current frame */
} imp_feedback;

/* "Show me": in this situation, for this goal, do this. For the learners feedback and cloning; with others
 * IMP_ERROR_UNSUPPORTED. */
typedef struct imp_demonstration {
  imp_header header;
  const float* observation;
  uint32_t observation_count;
  uint32_t goal;
  uint32_t branches[IMP_MAX_BRANCHES];
  float continuous[IMP_MAX_CONTINUOUS];
  float weight; /* default 2 */
} imp_demonstration;

#include "imprint_report.h"

/* ---- the table
 * ------------------------------------------------------------------------------------------------------------------------------
 */

typedef struct imp_api {
  uint32_t size; /* bytes of this table: a newer library has a longer one */
  uint32_t abi_version;
  const char* version; /* "0.1.0" */

  /* [any] A constant name for a code ("IMP_OK"), never null. */
  const char*(IMP_CALL* result_name)(imp_result result);
  /* [any] The text of the newest failure on the calling thread, until its next failure; "" when there was
   * none. */
  const char*(IMP_CALL* last_error)(void);

  /* [create] Adopts the host's device. host and limits may be null. IMP_ERROR_UNSUPPORTED names the field to
   * raise. */
  imp_result(IMP_CALL* context_create)(const imp_vk_device_info* device, const imp_host* host,
                                       const imp_limits* limits, imp_context* context);
  /* [create] A device and queue of our own. */
  imp_result(IMP_CALL* context_create_standalone)(const imp_standalone_info* device, const imp_host* host,
                                                  const imp_limits* limits, imp_context* context);
  /* [create] Destroys brains, agents and tensors too, of which the log is told how many there were, and their
   * names. The GPU must be done with what was recorded or submitted: with own submits it is waited for; with
   * record, call frame_begin with the last safe_frame, and frame_end, first; else IMP_ERROR_WRONG_STATE and
   * nothing is destroyed. */
  imp_result(IMP_CALL* context_destroy)(imp_context context);
  /* [create] What was adopted, what is missing, what that costs and how to get it: text, NUL-terminated. Two
   * calls: buffer null gives *size. */
  imp_result(IMP_CALL* context_report)(imp_context context, char* buffer, size_t* size);
  /* [create] Compiles and uploads everything that the brains made so far need, and takes the memory that
   * brain_save needs. progress (may be null) is called on this thread with 0..1. */
  imp_result(IMP_CALL* warmup)(imp_context context, void (*progress)(void* user, float fraction), void* user);
  /* [create] Between frames. Changes all of it but worker_threads and deterministic, which stay what they
   * were at creation; a shadow_period_frames that was 0 takes its memory with the next warmup. */
  imp_result(IMP_CALL* set_limits)(imp_context context, const imp_limits* limits);
  /* [create] With own submits: submits what is pending (saves, loads, snapshots) and waits for the GPU and
   * for files. IMP_NOT_READY when the time was over: all goes on, and it may be called again. With record:
   * IMP_ERROR_UNSUPPORTED. A loop without a clock of its own, which runs ahead of the GPU, gets its answers
   * in time by calling it after each frame_end. */
  imp_result(IMP_CALL* drain)(imp_context context, uint32_t timeout_ms);
  /* [any] */
  imp_result(IMP_CALL* context_get_stats)(imp_context context, imp_context_stats* stats);

  /* A frame: frame_begin, any agent calls, then one of submit (own submits) or record (the host's command
   * buffer), frame_end. A frame may end with neither, as one that only tells of safe_frame does: what was
   * asked in it waits for the next frame. So does everything that a failed submit was to carry: nothing given
   * is lost, and it is done first and in its own order when submit works again. */
  imp_result(IMP_CALL* frame_begin)(imp_context context, const imp_frame_info* info); /* [frame] */
  imp_result(IMP_CALL* submit)(imp_context context, uint32_t budget_us); /* [frame] UINT32_MAX = the limit */
  /* [frame] remaining_us may be null: estimated learning work that did not fit. */
  imp_result(IMP_CALL* record)(imp_context context, const imp_record_info* info, uint32_t* remaining_us);
  imp_result(IMP_CALL* frame_end)(imp_context context); /* [frame] */

  /* [create] A field out of its range is IMP_ERROR_INVALID_ARGUMENT, a learner that this network does not
   * suit and one too large for the device IMP_ERROR_UNSUPPORTED, a tensor that does not fit
   * IMP_ERROR_SHAPE_MISMATCH or IMP_ERROR_DTYPE_MISMATCH. To be followed by warmup. */
  imp_result(IMP_CALL* brain_create)(imp_context context, const imp_brain_desc* desc, imp_brain* brain);
  /* [create] IMP_ERROR_CORRUPT_FILE for what is damaged or no ONNX, IMP_ERROR_UNSUPPORTED for an operator or
   * a shape that is not known, which last_error names. */
  imp_result(IMP_CALL* brain_create_from_onnx)(imp_context context, const imp_policy_desc* desc,
                                               imp_brain* brain);
  /* [create] And its agents; legal while the GPU is busy. A save that the GPU has not delivered yet is given
   * up, which the log says; one that is being written is waited for. */
  imp_result(IMP_CALL* brain_destroy)(imp_brain brain);
  imp_result(IMP_CALL* brain_get_info)(imp_brain brain, imp_brain_info* info);    /* [any] */
  imp_result(IMP_CALL* brain_get_stats)(imp_brain brain, imp_brain_stats* stats); /* [any] */
  /* [frame or create] Learning of the whole brain on or off; minibatches under way finish. While off,
   * feedback and demonstrations are not remembered. Default on. On, for a brain without a learner, is
   * IMP_ERROR_UNSUPPORTED. */
  imp_result(IMP_CALL* brain_set_learning)(imp_brain brain, uint32_t enabled);

  /* [frame or create] On a lost device: writes the newest shadow, which then is what brain_load takes on a
   * new one. Else: Starts writing weights, optimiser, replay, counters and schema to a file: a temporary name
   * first, renamed when complete. Poll with brain_save_status: IMP_NOT_READY until the GPU has delivered and
   * the file is on disk, then the outcome. The file holds the brain as it is when the minibatch under way is
   * done, without feedback given after this call. What brain_load would refuse, as of numbers that are not
   * finite, is not written: IMP_ERROR_WRONG_STATE by brain_save_status, and an older file stays. One save at
   * a time, else IMP_ERROR_WRONG_STATE. The way back takes as much host-visible device memory as weights,
   * moments and replay together, and none of it in a frame: warmup has taken it. Where the memory cap had no
   * room then, which the log says, a save in a frame is IMP_ERROR_WRONG_STATE, and one between frames tries
   * for the memory again. */
  imp_result(IMP_CALL* brain_save)(imp_brain brain, const char* path);
  imp_result(IMP_CALL* brain_save_status)(
      imp_brain brain); /* [frame or create] IMP_ERROR_NOT_FOUND when it was never saved; else as above */
  /* [create] Replaces everything by a saved brain, its seed included, whose observations with their scale,
   * goals, actions, hidden layers, activation, brain_count, agents_per_brain, learner and replay_capacity are
   * equal, else IMP_ERROR_SHAPE_MISMATCH with both; rates and timing may differ, and brain_load_weights asks
   * for less. A damaged, truncated or foreign file is refused with a reason and the running brain stays as it
   * is. Takes effect before the next frame's work. IMP_ERROR_WRONG_STATE while a save or snapshot is on its
   * way. */
  imp_result(IMP_CALL* brain_load)(imp_brain brain, const char* path);
  /* [frame or create] Keeps a copy on the device; *snapshot names it. Takes effect in order with the frames'
   * work, when the minibatch under way is done. IMP_ERROR_UNSUPPORTED without imp_brain_desc::snapshot_count,
   * and for a policy from a file. */
  imp_result(IMP_CALL* brain_snapshot)(imp_brain brain, uint64_t* snapshot);
  /* [frame or create] Goes back to it, which stays, in the same order. IMP_ERROR_NOT_FOUND when it is not
   * kept any more. */
  imp_result(IMP_CALL* brain_restore)(imp_brain brain, uint64_t snapshot);
  /* [create] A hash of weights, moments and counters. Own submits only (it waits), else
   * IMP_ERROR_UNSUPPORTED: with record use brain_save. */
  imp_result(IMP_CALL* brain_hash)(imp_brain brain, uint64_t* low, uint64_t* high);

  /* [create] brain_index < brain_count names the agent's own brain in a kennel. IMP_ERROR_UNSUPPORTED beyond
   * agents_per_brain. */
  imp_result(IMP_CALL* agent_create)(imp_brain brain, uint32_t brain_index, imp_agent* agent);
  imp_result(IMP_CALL* agent_destroy)(imp_agent agent); /* [create] */
  /* [frame or create] Default IMP_MODE_LEARNING. */
  imp_result(IMP_CALL* agent_set_mode)(imp_agent agent, imp_mode mode);
  /* [frame or create] A new command, 0 .. goal_count - 1: later decisions use this head; actions scolded
   * during the last command are allowed again. */
  imp_result(IMP_CALL* agent_set_goal)(imp_agent agent, uint32_t goal);
  /* [frame or create] count = sum of branch sizes, 1 allowed, 0 not; stays until replaced; null = all
   * allowed. At least one a branch must be allowed. */
  imp_result(IMP_CALL* agent_set_mask)(imp_agent agent, const uint8_t* allowed, uint32_t count);
  /* [frame] Between frame_begin and submit / record: what the agent sees now, observation_count numbers, and
   * that it wants to decide. NaN and infinity are refused, and another count. IMP_ERROR_WRONG_STATE before
   * warmup. */
  imp_result(IMP_CALL* agent_observe)(imp_agent agent, const float* observation, uint32_t count);
  /* [frame] The answer to the newest request that is due: IMP_NOT_READY until action_latency_frames after
   * agent_observe (with a decision period, after its turn). The first successful call for a decision marks
   * the onset of the action at the frame's time_s; further calls repeat the answer until something new is
   * asked. An agent may observe in every frame and is then answered in every frame. IMP_ERROR_NOT_FOUND when
   * nothing was requested. */
  imp_result(IMP_CALL* agent_act)(imp_agent agent, imp_action* action);
  /* [frame] Heuristic and record modes: what the game chose after agent_observe. branches: branch_count
   * indices; continuous: continuous_count values in [-1, 1]. IMP_ERROR_WRONG_STATE in other modes, and when
   * nothing was seen since the last. */
  imp_result(IMP_CALL* agent_heuristic)(imp_agent agent, const uint32_t* branches, const float* continuous);
  /* [frame] For brains that learn from it, else IMP_ERROR_UNSUPPORTED; IMP_ERROR_WRONG_STATE in inference
   * mode. */
  imp_result(IMP_CALL* agent_feedback)(imp_agent agent, const imp_feedback* feedback);
  imp_result(IMP_CALL* agent_demonstrate)(imp_agent agent,
                                          const imp_demonstration* demonstration); /* [frame] The same */
  /* [frame] Reward of the environment for the action under way. DQN and PPO take it as it is, all of a step
   * summed; the feedback learner and COACH take it as feedback with exact credit, clamped to -1 .. 1, and 0
   * as no word at all. It closes no action, as a scolding does, for a price on every step is a reward too;
   * and it pushes no rivals down, as praise does, for many actions may be worth something. Other learners
   * ignore it, as does an agent between two episodes, when no action is under way. */
  imp_result(IMP_CALL* agent_reward)(imp_agent agent, float reward);
  /* [frame] Forgets what was asked and answered, actions that could still be credited, what was scolded, and
   * an ONNX policy's state: ask again. */
  imp_result(IMP_CALL* agent_end_episode)(imp_agent agent, imp_episode_end end);

  /* [any] The host has met the loss of the device itself: as if a call of ours had, but device_lost is not
   * called. */
  imp_result(IMP_CALL* notify_device_lost)(imp_context context);
  /* [create] Round the host's own wait for its device to be idle (a resize): waits for own submissions, and
   * until resume nothing of ours touches any queue; frames, drain and brain_hash are IMP_ERROR_WRONG_STATE.
   * IMP_NOT_READY when the time was over: not quiet then. */
  imp_result(IMP_CALL* quiesce)(imp_context context, uint32_t timeout_ms);
  imp_result(IMP_CALL* resume)(imp_context context);
  /* [create] Gives device memory back that nothing is in, as after brain_destroy. freed_bytes may be null. */
  imp_result(IMP_CALL* trim)(imp_context context, uint64_t* freed_bytes);

  /* [any] Before the device is made: what Imprint would use of it; nothing of it is needed. Two calls: wishes
   * null gives *count. */
  imp_result(IMP_CALL* vk_query_requirements)(const imp_vk_plan* plan, uint32_t* count, imp_vk_wish* wishes);
  /* [any] create_info: const VkDeviceCreateInfo*. A struct that this library does not know may stand in its
   * chain only behind those that have to change, else IMP_ERROR_UNSUPPORTED. Queues stay the host's. */
  imp_result(IMP_CALL* vk_merge_device_create_info)(const imp_vk_plan* plan, const void* create_info,
                                                    imp_vk_merged* merged);
  void(IMP_CALL* vk_free_merged)(imp_vk_merged* merged); /* [any] Once the device and the context are made. */
  /* [any] Before the device is made: the families in which a further queue would help. Two calls: queues null
   * gives *count, which may be 0. */
  imp_result(IMP_CALL* vk_query_extra_queues)(const imp_vk_plan* plan, uint32_t* count,
                                              imp_vk_extra_queue* queues);

  /* [create] What context_report says, to be read by a program. */
  imp_result(IMP_CALL* context_get_report)(imp_context context, imp_report* report);
  imp_result(IMP_CALL* context_get_loss)(
      imp_context context, uint32_t index,
      imp_loss* loss); /* [create] IMP_ERROR_NOT_FOUND from loss_count on */

  /* [frame] What submit or record would do now: after the frame's agent calls and before one of these. */
  imp_result(IMP_CALL* estimate)(imp_context context, imp_estimate* estimate);

  /* [create] What the driver has compiled and what was measured (imp_limits::tuning_ms) so far, to start
   * sooner next time on the same GPU and driver: opaque bytes, for pipeline_cache_set. Two calls: data null
   * gives *size. With imp_vk_device_info::pipeline_cache both are IMP_ERROR_UNSUPPORTED: keep that one
   * yourself. */
  imp_result(IMP_CALL* pipeline_cache_get)(imp_context context, void* data, size_t* size);
  /* [create] Before the first brain. A failure takes nothing and does no harm: IMP_ERROR_UNSUPPORTED for
   * another GPU or driver, IMP_ERROR_CORRUPT_FILE for what is damaged. */
  imp_result(IMP_CALL* pipeline_cache_set)(imp_context context, const void* data, size_t size);

  /* [create] A buffer of the host's as a tensor. It stays the host's, as it is: it must outlive the tensor
   * and the GPU's work on it. IMP_ERROR_UNSUPPORTED with a device of Imprint's own, and on the processor. */
  imp_result(IMP_CALL* tensor_import_vk)(imp_context context, const imp_tensor_desc* desc,
                                         const imp_vk_buffer* buffer, imp_tensor* tensor);
  /* [create] A tensor in a buffer and memory of its own, zero at first, for the host to use too. Of `wish`
   * count usage (VERTEX, INDEX, INDIRECT, ..., but not SHADER_DEVICE_ADDRESS; STORAGE, UNIFORM and TRANSFER
   * come with it), sharing, families, stages and access; the rest is 0. IMP_ERROR_UNSUPPORTED on the
   * processor, and with a second device that has no memory in common with the host's, or gets none of this:
   * hand numbers in by agent_observe then. */
  imp_result(IMP_CALL* tensor_create_vk)(imp_context context, const imp_tensor_desc* desc,
                                         const imp_vk_buffer* wish, imp_tensor* tensor);
  /* [create] Where a tensor lies, for the host's descriptors and barriers. The buffer is valid until
   * tensor_destroy. families is not filled. */
  imp_result(IMP_CALL* tensor_export_vk)(imp_tensor tensor, imp_vk_buffer* buffer);
  /* [create] IMP_ERROR_WRONG_STATE while a brain uses it. Imprint's own memory is given back when the GPU is
   * done with it; a host that imported a buffer destroys it when the GPU is (drain, or the last frame is
   * safe). */
  imp_result(IMP_CALL* tensor_destroy)(imp_tensor tensor);
  /* [frame] Before submit or record: the tensor changes its owner at the start of this frame's work, and at
   * its end. Both do nothing for a tensor that is concurrent or of one family. IMP_ERROR_WRONG_STATE when it
   * is not that side's turn. A brain that asks while its tensor is with the host makes submit and record fail
   * with that code. */
  imp_result(IMP_CALL* tensor_acquire)(imp_tensor tensor);
  imp_result(IMP_CALL* tensor_release)(imp_tensor tensor);
  /* [frame] agent_observe from imp_brain_desc::observations (or imp_policy_desc's): what the agent sees now
   * begins at element `place`, and is read on the GPU when this frame's work runs. One look a frame: the last
   * call counts. Learning, crediting and recording work as with agent_observe; agent_demonstrate takes
   * numbers. */
  imp_result(IMP_CALL* agent_observe_in_place)(imp_agent agent, uint64_t place);
  /* [frame] As submit. With a device of Imprint's own IMP_ERROR_UNSUPPORTED for any semaphore, and nothing is
   * submitted: call again without. */
  imp_result(IMP_CALL* submit_with)(imp_context context, const imp_submit_info* info);
  /* [create] Lends this thread: compiles and writes files that wait, job after job, until none waits or
   * budget_us microseconds are over; at least one. waiting (may be null): how many still wait. */
  imp_result(IMP_CALL* run_jobs)(imp_context context, uint32_t budget_us, uint32_t* waiting);
  /* [frame or create] For a queue of the host's that is to wait for Imprint's: Imprint's own timeline
   * semaphore, and the value that it reaches when all that was submitted up to now is complete. It lives as
   * long as the context; wait for it, never signal it. IMP_ERROR_UNSUPPORTED without timeline semaphores or
   * without own submits; IMP_NOT_READY while nothing was submitted. IMP_ERROR_UNSUPPORTED with a device of
   * Imprint's own. */
  imp_result(IMP_CALL* context_get_semaphore)(imp_context context, imp_vk_semaphore* semaphore);

  /* [create] Which variants of kernels are known to be the fastest on this GPU and driver, shipped and
   * measured: JSON, UTF-8, not NUL-terminated, to keep or to ship (imprint tune writes such files too, with
   * tables of many GPUs). Two calls: text null gives *size. IMP_ERROR_UNSUPPORTED on the processor. */
  imp_result(IMP_CALL* tuning_get)(imp_context context, char* text, size_t* size);
  /* [create] Before warmup, for the programs that it compiles: the table for this GPU and this version of its
   * driver goes before what was measured and before the cost model. A library without a compiler has the
   * kernels for it from imprint bake --tuning. A failure takes nothing: IMP_ERROR_UNSUPPORTED when there is
   * no table for them, or the text is of another version, IMP_ERROR_CORRUPT_FILE for what is damaged. What it
   * asks for and cannot be made is left to the cost model, which the log says. */
  imp_result(IMP_CALL* tuning_set)(imp_context context, const char* text, size_t size);
  /* [any] A warmup that is measuring (imp_limits::tuning_ms) stops doing so, and goes on with what it knows.
   * From its progress callback too. */
  imp_result(IMP_CALL* tuning_stop)(imp_context context);
  /* [create] Takes the weights alone of a file that brain_save wrote: trained by sixty-four agents, they may
   * serve in one that learns no more, in another kind of learner or with another replay. Observations with
   * their scale, goals, actions, hidden layers, activation and brain_count must be equal, else
   * IMP_ERROR_SHAPE_MISMATCH. The optimiser, what is remembered, counters and seed stay as they are: for a
   * brain just created those of the beginning. A rollout under way begins anew. Otherwise as brain_load;
   * IMP_ERROR_UNSUPPORTED also for a file of a library that did not have this function yet. */
  imp_result(IMP_CALL* brain_load_weights)(imp_brain brain, const char* path);
} imp_api;

/* The one exported function. *api points to a constant table that lives as long as the library.
 * IMP_ERROR_UNSUPPORTED when this library cannot serve that ABI version. [any] */
IMP_EXPORT imp_result IMP_CALL imp_get_api(uint32_t abi_version, const imp_api** api);
typedef imp_result(IMP_CALL* imp_get_api_function)(uint32_t abi_version, const imp_api** api);

#include "imprint_init.h"

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_IMPRINT_H_ */
