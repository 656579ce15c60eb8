#ifndef IMPRINT_IMPRINT_VULKAN_H_
#define IMPRINT_IMPRINT_VULKAN_H_
/* Imprint on the host's Vulkan device: its device and queue, recording into its command buffers,
 * semaphores, and tensors that its shaders share. Needs no Vulkan header; include one before or
 * after this, or none. Structs of Vulkan cross as const void*, flags and enums as uint32_t, handles
 * that are not dispatchable as uint64_t.
 *
 * Vulkan cannot be asked what a device was created with, so the host declares it. Imprint uses what
 * is declared and supported, and nothing else. Declaring less costs speed at most. */

#include "imprint.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
typedef struct VkQueue_T* VkQueue;
typedef struct VkCommandBuffer_T* VkCommandBuffer;

/* Functions of Vulkan have Vulkan's calling convention; callbacks have the platform's default. */
typedef void (*imp_void_function)(void);
typedef imp_void_function (*imp_get_instance_proc_addr)(VkInstance instance, const char* name);

/* ---- The host's device and queue ---- */

/* How Imprint may use the host's queue. Contexts that share a queue must use the same access. */
typedef enum imp_queue_access {
  IMP_QUEUE_RECORD_ONLY = 0,     /* never: use frame_record. queue must be null */
  IMP_QUEUE_LOCK = 1,            /* submits between lock and unlock */
  IMP_QUEUE_SUBMIT_CALLBACK = 2, /* the host submits, in `submit` */
  IMP_QUEUE_RUN_ON_QUEUE = 3,    /* submits inside `run_on_queue`, on the host's thread */
  IMP_QUEUE_SINGLE_THREAD = 4,   /* submits in frame calls: nothing else uses the queue then */
  IMP_QUEUE_INTERNALLY_SYNCHRONIZED = 5, /* any thread may submit at any time */
  IMP_QUEUE_EXCLUSIVE = 6                /* the queue is Imprint's alone; see below */
} imp_queue_access;

/* The fields that `access` does not use must be null or 0. Callbacks come on the thread of the call
 * that submits, with no lock of Imprint's held. */
typedef struct imp_vk_queue {
  imp_queue_access access;
  uint32_t family; /* must support compute; command buffers for frame_record are of this family */
  VkQueue queue;   /* all but record only */
  void* user;      /* passed to the callbacks; only with callbacks */
  /* LOCK: required. EXCLUSIVE: optional, both or neither, on the thread "imprint-submit". */
  void (*lock)(void* user, VkQueue queue);
  void (*unlock)(void* user, VkQueue queue);
  /* SUBMIT_CALLBACK: submit as vkQueueSubmit, in the order of calls, before returning its VkResult.
   * submits: a VkSubmitInfo array with chains, valid during the call. fence: a VkFence or 0. */
  int32_t (*submit)(void* user, VkQueue queue, uint32_t submit_count, const void* submits,
                    uint64_t fence);
  /* RUN_ON_QUEUE: call work(data, queue) where the host may submit; return when it has returned. */
  void (*run_on_queue)(void* user, void (*work)(void* data, VkQueue queue), void* data);
  /* SUBMIT_CALLBACK: 1: `submit` cannot pass a fence. Without timeline semaphores a frame is then
   * complete when it is safe, as with frame_record; context_drain, brain_hash: UNSUPPORTED. */
  uint32_t submit_without_fence;
} imp_vk_queue;

/* The lists are those given to vkCreateInstance and vkCreateDevice. Handles stay the host's. */
typedef struct imp_vk_device_info {
  imp_header header;
  imp_get_instance_proc_addr get_instance_proc_addr; /* required, as the next three */
  VkInstance instance;
  VkPhysicalDevice physical_device;
  VkDevice device;
  uint32_t api_version; /* VkApplicationInfo::apiVersion, at least 1.1 */
  uint32_t instance_extension_count;
  const char* const* instance_extensions;
  uint32_t device_extension_count;
  const char* const* device_extensions;
  const void* features; /* VkDeviceCreateInfo::pNext: its whole chain, in any order; or null */
  const void* enabled_features; /* VkDeviceCreateInfo::pEnabledFeatures; or null */
  imp_vk_queue queue;

  /* Rarely needed: */
  const void* allocation_callbacks; /* const VkAllocationCallbacks*, used on any thread; or null */
  uint64_t pipeline_cache; /* VkPipelineCache, not externally synchronised; 0 = Imprint's own */
  /* Device memory from the host, as vkAllocateMemory (info: const VkMemoryAllocateInfo* with its
   * chain; returns a VkResult) and vkFreeMemory. Both or neither. From any thread. */
  int32_t (*allocate_device_memory)(void* user, const void* info, uint64_t* memory);
  void (*free_device_memory)(void* user, uint64_t memory);
  void* memory_user;
  /* 1: if this device cannot serve, use a second one on the same GPU, or else the CPU. Then
   * frame_record is UNSUPPORTED. imp_report::own_device and tensor_sharing tell the result. */
  uint32_t allow_own_device;
} imp_vk_device_info;

static inline imp_vk_device_info imp_vk_device_info_init(void) {
  IMP_INIT(imp_vk_device_info, s, IMP_STRUCT_VK_DEVICE_INFO);
  return s;
}

/* ---- Frames on that device ---- */

/* States in which a command buffer cannot be used. A host that knows of one says so. */
typedef enum imp_record_state {
  IMP_RECORD_IN_RENDER_PASS = 1, /* or in dynamic rendering */
  IMP_RECORD_SECONDARY = 2,
  IMP_RECORD_PROTECTED = 4,
  IMP_RECORD_REUSED = 8,       /* submitted more than once */
  IMP_RECORD_OTHER_FAMILY = 16 /* its pool is not of imp_vk_queue::family */
} imp_record_state;

/* The work of a frame. With the second and third scope it may take long. */
typedef enum imp_frame_scope {
  IMP_SCOPE_FRAME = 0,  /* decisions, learning that is due, and learning that fits the budget */
  IMP_SCOPE_WARMUP = 1, /* also each program that has not run yet, once; brains do not change. For
                         * the loading screen, after context_warmup. No learning begins in it */
  IMP_SCOPE_EVERYTHING = 2 /* all waiting work and saves, beyond the budget: for the last frame */
} imp_frame_scope;

typedef struct imp_record_info {
  imp_header header;
  VkCommandBuffer command_buffer; /* primary, recording, outside render passes, no active query */
  uint32_t budget_us;             /* UINT32_MAX = imp_limits::gpu_us_per_frame. Default that */
  uint32_t state;                 /* imp_record_state bits that hold; any is refused. Default 0 */
  imp_frame_scope scope;
} imp_record_info;

typedef struct imp_vk_semaphore {
  uint64_t semaphore; /* VkSemaphore */
  uint64_t value;     /* of a timeline semaphore */
  uint32_t timeline;  /* 1: timeline (the feature must be declared); 0: binary */
} imp_vk_semaphore;

typedef struct imp_submit_info {
  imp_header header;
  uint32_t budget_us; /* UINT32_MAX = imp_limits::gpu_us_per_frame. Default that */
  uint32_t wait_count;
  const imp_vk_semaphore* waits; /* before the frame's work */
  uint32_t completion_count;
  const imp_vk_semaphore* completions; /* signalled after the frame's work, even if there is none */
  imp_frame_scope scope;
} imp_submit_info;

static inline imp_record_info imp_record_info_init(void) {
  IMP_INIT(imp_record_info, s, IMP_STRUCT_RECORD_INFO);
  s.budget_us = UINT32_MAX;
  return s;
}
static inline imp_submit_info imp_submit_info_init(void) {
  IMP_INIT(imp_submit_info, s, IMP_STRUCT_SUBMIT_INFO);
  s.budget_us = UINT32_MAX;
  return s;
}

/* ---- Tensors that host and Imprint share ----
 * A tensor is a range of a VkBuffer: the host's shaders write observations and read actions there.
 * On one queue or in one command buffer, Imprint's barriers order both sides, for the declared
 * stages and access. Across queues the host orders with semaphores. Across queue families an
 * exclusive buffer also changes its owner by tensor_acquire and tensor_release.
 *
 * imp_brain_desc::observations: float32, any shape, read in place by all learners. Not with
 * imp_demonstration_options or imp_signal_options.
 * imp_brain_desc::actions: float32 [brain_count * agents_per_brain, action_width].
 * Agent j of brain i writes row i * agents_per_brain + j: branch indices, continuous actions,
 * values. */

typedef enum imp_dtype { IMP_DTYPE_FLOAT32 = 0, IMP_DTYPE_INT32 = 1 } imp_dtype;

#define IMP_MAX_RANK 8u

typedef struct imp_tensor_desc {
  imp_header header;
  const char* name;             /* in messages; null = "tensor" */
  imp_dtype dtype;              /* Default float32 */
  uint32_t rank;                /* 1 .. IMP_MAX_RANK */
  uint64_t shape[IMP_MAX_RANK]; /* extents >= 1, row-major without gaps */
} imp_tensor_desc;

typedef struct imp_vk_buffer {
  imp_header header;
  uint64_t buffer;  /* VkBuffer */
  uint64_t offset;  /* bytes, a multiple of 16 and of minStorageBufferOffsetAlignment */
  uint64_t size;    /* bytes, a multiple of 4, at least the tensor's; 0 = the tensor's */
  uint32_t usage;   /* VkBufferUsageFlags of its creation, with STORAGE_BUFFER */
  uint32_t sharing; /* VkSharingMode */
  uint32_t family_count;
  uint32_t memory_flags;    /* VkMemoryPropertyFlags: neither LAZILY_ALLOCATED nor PROTECTED */
  const uint32_t* families; /* exclusive: the host's, none if it is Imprint's; concurrent: all */
  uint64_t device_address;  /* of the buffer; 0 = none */
  uint32_t stages;          /* the host's VkPipelineStageFlags on Imprint's queue; or 0 */
  uint32_t access;          /* VkAccessFlags of the host there */
  uint64_t memory; /* VkDeviceMemory, filled by tensor_export_vk for Imprint's own buffers */
} imp_vk_buffer;

static inline imp_tensor_desc imp_tensor_desc_init(void) {
  IMP_INIT(imp_tensor_desc, s, IMP_STRUCT_TENSOR_DESC);
  return s;
}
static inline imp_vk_buffer imp_vk_buffer_init(void) {
  IMP_INIT(imp_vk_buffer, s, IMP_STRUCT_VK_BUFFER);
  return s;
}

/* ---- Before the device is made ---- */

typedef struct imp_vk_plan {
  imp_header header;
  imp_get_instance_proc_addr get_instance_proc_addr; /* all as in imp_vk_device_info */
  VkInstance instance;
  VkPhysicalDevice physical_device;
  uint32_t api_version;
} imp_vk_plan;

/* An optional feature that Imprint would use. */
typedef struct imp_vk_wish {
  char feature[64];   /* "timelineSemaphore"; "" = the extension is enough */
  char extension[64]; /* to enable with it; "" = part of api_version */
  char cost[128];     /* what is lost without it */
} imp_vk_wish;

/* A family that computes beside graphics. One more queue of it lets learning overlap drawing. */
typedef struct imp_vk_extra_queue {
  uint32_t family;
  uint32_t queue_count; /* of the family */
  float priority;       /* to create it with: below the host's own queues */
} imp_vk_extra_queue;

/* The host's VkDeviceCreateInfo with the wishes added. Borrows the host's until vkCreateDevice. */
typedef struct imp_vk_merged {
  imp_header header;
  const void* create_info; /* const VkDeviceCreateInfo*, for vkCreateDevice */
  const void* features;    /* these four are for imp_vk_device_info */
  const void* enabled_features;
  uint32_t device_extension_count;
  const char* const* device_extensions;
  void* owner;          /* for merged_free */
  const char* left_off; /* wishes that stay off, since a struct of unknown size precedes theirs;
                         * "" = none. Put such structs last. */
} imp_vk_merged;

static inline imp_vk_plan imp_vk_plan_init(void) {
  IMP_INIT(imp_vk_plan, s, IMP_STRUCT_VK_PLAN);
  return s;
}
static inline imp_vk_merged imp_vk_merged_init(void) {
  IMP_INIT(imp_vk_merged, s, IMP_STRUCT_VK_MERGED);
  return s;
}

/* ---- imp_api::vulkan. Tags and codes: see imprint.h. ---- */

typedef struct imp_vulkan_api {
  uint32_t size; /* of this table, bytes */

  /* [frame] Instead of frame_submit: records the frame's work. Leaves a compute pipeline,
   * descriptor sets and push constants bound, and a barrier to all later compute and transfer.
   * Submit it once, in the order of frames. remaining_us may be null: learning that did not fit,
   * us. UNSUPPORTED: an exclusive queue or Imprint's own device. */
  imp_result(IMP_CALL* frame_record)(imp_context context, const imp_record_info* info,
                                     uint32_t* remaining_us);
  /* [frame] As frame_submit, with semaphores. UNSUPPORTED: semaphores on Imprint's own device. */
  imp_result(IMP_CALL* frame_submit_with)(imp_context context, const imp_submit_info* info);
  /* [either] Imprint's timeline semaphore, and its value when all work submitted so far is
   * complete. Wait for it, never signal it. NOT_READY: nothing was submitted. UNSUPPORTED: no
   * timeline semaphores, record only, or Imprint's own device. */
  imp_result(IMP_CALL* context_get_semaphore)(imp_context context, imp_vk_semaphore* semaphore);
  /* [create] After the host's own wait until its device is idle: every recorded frame counts as
   * complete. Submit recorded buffers before this call, or never. */
  imp_result(IMP_CALL* context_device_idle)(imp_context context);

  /* [create] The host's buffer as a tensor. The buffer must outlive it and the GPU's work on it.
   * UNSUPPORTED: Imprint's own device, or the CPU. */
  imp_result(IMP_CALL* tensor_import_vk)(imp_context context, const imp_tensor_desc* desc,
                                         const imp_vk_buffer* buffer, imp_tensor* tensor);
  /* [create] A new buffer, zero at first. `wish` sets usage, sharing, families, stages and access;
   * the rest must be 0. UNSUPPORTED: the CPU, or no memory shared with the host's device. */
  imp_result(IMP_CALL* tensor_create_vk)(imp_context context, const imp_tensor_desc* desc,
                                         const imp_vk_buffer* wish, imp_tensor* tensor);
  /* [create] Where a tensor is; valid until tensor_destroy. families is not filled. */
  imp_result(IMP_CALL* tensor_export_vk)(imp_tensor tensor, imp_vk_buffer* buffer);
  /* [create] WRONG_STATE: a brain uses it. */
  imp_result(IMP_CALL* tensor_destroy)(imp_tensor tensor);
  /* [frame] Before submit or record: takes the tensor over at the start of this frame's work, or
   * gives it back at the end. No effect if concurrent or of one family. WRONG_STATE: not now. */
  imp_result(IMP_CALL* tensor_acquire)(imp_tensor tensor);
  imp_result(IMP_CALL* tensor_release)(imp_tensor tensor);
  /* [frame] As agent_observe, from imp_brain_desc::observations, beginning at element `first`. The
   * GPU reads it when this frame's work runs. UNSUPPORTED: the brain has none. */
  imp_result(IMP_CALL* agent_observe_in_place)(imp_agent agent, uint64_t first);

  /* [any] The device features that Imprint would use. All are optional. Two calls: wishes null
   * gives *count. */
  imp_result(IMP_CALL* plan_query_requirements)(const imp_vk_plan* plan, uint32_t* count,
                                                imp_vk_wish* wishes);
  /* [any] The families in which one more queue helps. Two calls: queues null gives *count. */
  imp_result(IMP_CALL* plan_query_extra_queues)(const imp_vk_plan* plan, uint32_t* count,
                                                imp_vk_extra_queue* queues);
  /* [any] create_info: const VkDeviceCreateInfo* with any chain. Queues stay as they are. Call
   * merged_free after context_create. */
  imp_result(IMP_CALL* plan_merge_device_create_info)(const imp_vk_plan* plan,
                                                      const void* create_info,
                                                      imp_vk_merged* merged);
  void(IMP_CALL* merged_free)(imp_vk_merged* merged); /* [any] */
} imp_vulkan_api;

/* An exclusive queue: learning overlaps drawing. Imprint's thread "imprint-submit" submits all of
 * its work there, so imp_limits::worker_threads must be above 0 and frame_record is UNSUPPORTED.
 * The limits are time on this queue, beside the host's frame. Only frame_submit_with orders it
 * against the host's queues. */

/* Tensors across two devices (IMP_TENSORS_ACROSS_DEVICES): tensor_create_vk makes one memory for
 * both, and tensor_export_vk gives the host device's buffer. Sharing is exclusive, stages and
 * access are ignored, and Imprint's family is VK_QUEUE_FAMILY_EXTERNAL. Imprint owns the tensor
 * first. The CPU orders: submit when a fence shows that the host's release is complete; acquire in
 * the host after context_drain or context_quiesce, or when agent_act answered a later frame. */

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_IMPRINT_VULKAN_H_ */
