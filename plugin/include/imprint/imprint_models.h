#ifndef IMPRINT_IMPRINT_MODELS_H_
#define IMPRINT_IMPRINT_MODELS_H_
/* Trained networks of any form: detectors, voices, animation. They run in frames, beside brains and
 * within the same budget; imp_api::models has the functions. A network with the form of a policy,
 * observations in and actions out, can be a brain instead: imp_api::brain_create_from_onnx.
 *
 * Order of calls: model_create, context_warmup; in a frame model_run, before submit or record; from
 * latency_frames later on, model_read. Runs of one model follow each other. */

#include "imprint.h"
#ifdef __cplusplus
extern "C" {
#endif

IMP_DEFINE_HANDLE(imp_model);

#define IMP_MAX_MODEL_RANK 8u

/* Elements of arrays that the host gives; the numbers are those of ONNX. A model computes whole
 * numbers in 32 bits, and floats in 32. Of an output below 32 bits the low bits are kept, as a cast
 * in C. */
typedef enum imp_element {
  IMP_ELEMENT_FLOAT32 = 1,
  IMP_ELEMENT_UINT8 = 2,
  IMP_ELEMENT_INT8 = 3,
  IMP_ELEMENT_UINT16 = 4,
  IMP_ELEMENT_INT16 = 5,
  IMP_ELEMENT_INT32 = 6,
  IMP_ELEMENT_INT64 = 7,
  IMP_ELEMENT_BOOL = 9, /* a byte, 0 or 1 */
  IMP_ELEMENT_FLOAT16 = 10,
  IMP_ELEMENT_FLOAT64 = 11,
  IMP_ELEMENT_UINT32 = 12,
  IMP_ELEMENT_UINT64 = 13,
  IMP_ELEMENT_BFLOAT16 = 16
} imp_element;

/* A free dimension of the inputs. Those that are not given are 1. */
typedef struct imp_model_extent {
  const char* name; /* as the file names it; INPUT:AXIS for one without a name */
  uint64_t value;   /* 1 .. 2147483647; of a bound at most 16777216 */
} imp_model_extent;

/* State that stays on the device: `input` is zero at first, then `output` of the run before. Equal
 * shapes. model_run takes no such input, and model_read gives no such output. */
typedef struct imp_model_state {
  const char* input;
  const char* output;
} imp_model_state;

/* An input or output in a shared tensor (imprint_vulkan.h) with as many elements, instead of in
 * host memory. The GPU reads and writes it from model_run until the run is complete. */
typedef struct imp_model_binding {
  const char* name;
  imp_tensor tensor; /* float32, or int32 for whole numbers */
} imp_model_binding;

/* Lists may be null when their count is 0. Defaults that are not named are 0. */
typedef struct imp_model_desc {
  imp_header header;
  const char* name; /* in messages; null = "model" */
  const char* path; /* an ONNX file, with external tensors in its folder or below it. Those files
                     * must not change while the model lives. Or: */
  const void* data; /* the bytes of a file without external tensors. Give one of both */
  size_t size;      /* of data, bytes */
  const imp_model_extent* extents;
  /* Dimensions that runs choose, from 1 to `value`: model_set_extent. With value 0 the name says
   * more: "past=0..128" begins at 0, "height=640/32" takes multiples of 32, and "total=past+1"
   * follows from others. */
  const imp_model_extent* bounds;
  const imp_model_state* states;
  const imp_model_binding* bindings;
  uint32_t extent_count, bound_count, state_count, binding_count; /* at most 256 of each */
  uint32_t run_capacity;   /* runs under way or unread, 1 .. 64. Default 3 */
  uint32_t latency_frames; /* model_run to model_read, 1 .. 64. Default 2. Above 2, the work may
                            * be cut into slices over latency_frames - 2 frames more */
  uint64_t constant_limit_bytes; /* host memory for the file's constants. Default 1 GiB */
  uint64_t operation_limit;      /* additions (exp: 6), bytes moved; per run. Default 2^36 */
} imp_model_desc;

/* The parts of a policy by name, instead of by a rule: on imp_policy_desc::header.next. Each input
 * has one part. Several observations are one row in this order, and several actions too. Outputs
 * that no list names are dropped. Lists may be null when their count is 0. */
typedef struct imp_policy_names {
  imp_header header;
  const char* const* observations; /* inputs: 1 or more */
  const char* const* actions;      /* outputs: 1 or more */
  const imp_model_state* states;   /* zero at the start of an episode */
  const char* const* zeros;        /* inputs that stay zero */
  uint32_t observation_count, action_count, state_count, zero_count; /* at most 256 of each */
} imp_policy_names;

typedef struct imp_model_info {
  imp_header header;
  uint32_t input_count;     /* that model_run takes */
  uint32_t output_count;    /* that model_read gives */
  uint64_t parameter_count; /* floats in the file's weights */
  uint64_t runs;            /* begun */
  uint64_t late_runs;       /* complete later than latency_frames after */
  uint64_t operations;      /* floating-point, of one run; 0 before context_warmup */
  uint32_t dispatches;      /* of one run; 0 before context_warmup */
  uint32_t latency_frames;
} imp_model_info;

/* An input or an output. */
typedef struct imp_model_value {
  imp_header header;
  const char* name; /* lives as long as the model */
  imp_element element;
  uint32_t rank;                      /* 0 .. IMP_MAX_MODEL_RANK */
  uint64_t shape[IMP_MAX_MODEL_RANK]; /* row-major, without gaps */
  uint64_t size;                      /* bytes */
} imp_model_value;

/* Arrays of a run, of any alignment. A null name takes the position in the list. */
typedef struct imp_model_input {
  const char* name;
  const void* data;
  size_t size; /* bytes: imp_model_value::size */
} imp_model_input;
typedef struct imp_model_output {
  const char* name;
  void* data;
  size_t size;
} imp_model_output;

static inline imp_model_desc imp_model_desc_init(void) {
  IMP_INIT(imp_model_desc, s, IMP_STRUCT_MODEL_DESC);
  s.run_capacity = 3;
  s.latency_frames = 2;
  s.constant_limit_bytes = (uint64_t)1 << 30;
  s.operation_limit = (uint64_t)1 << 36;
  return s;
}
static inline imp_policy_names imp_policy_names_init(void) {
  IMP_INIT(imp_policy_names, s, IMP_STRUCT_POLICY_NAMES);
  return s;
}
static inline imp_model_info imp_model_info_init(void) {
  IMP_INIT(imp_model_info, s, IMP_STRUCT_MODEL_INFO);
  return s;
}
static inline imp_model_value imp_model_value_init(void) {
  IMP_INIT(imp_model_value, s, IMP_STRUCT_MODEL_VALUE);
  return s;
}

/* ---- imp_api::models. Tags and codes: see imprint.h. ---- */

typedef struct imp_models_api {
  uint32_t size; /* of this table, bytes */

  /* [create] Then call context_warmup. NOT_FOUND, IO: the file. CORRUPT_FILE: damaged or not ONNX.
   * UNSUPPORTED: an operator, type or shape that Imprint lacks; the text names all. SHAPE_MISMATCH,
   * DTYPE_MISMATCH: a state or a tensor does not fit. */
  imp_result(IMP_CALL* model_create)(imp_context context, const imp_model_desc* desc,
                                     imp_model* model);
  imp_result(IMP_CALL* model_destroy)(imp_model model); /* [create] With its runs. */
  imp_result(IMP_CALL* model_get_info)(imp_model model, imp_model_info* info); /* [any] */
  /* [any] In the file's order, with the extents of runs that begin now. */
  imp_result(IMP_CALL* model_get_input)(imp_model model, uint32_t index, imp_model_value* value);
  imp_result(IMP_CALL* model_get_output)(imp_model model, uint32_t index, imp_model_value* value);

  /* [either] The extent of a dimension of desc.bounds in runs that begin afterwards; the bound
   * until then. Nothing is compiled. A shared tensor has the shape of the bounds, and a run uses
   * the first places of each dimension. A state keeps the places that a run does not use. */
  imp_result(IMP_CALL* model_set_extent)(imp_model model, const char* name, uint64_t value);
  /* [frame] Before submit or record: copies all inputs and begins a run. *run: its number, from 1.
   * NOT_READY: run_capacity runs are under way or unread; nothing began. INVALID_ARGUMENT also for
   * a whole number that 32 bits cannot hold. */
  imp_result(IMP_CALL* model_run)(imp_model model, const imp_model_input* inputs,
                                  uint32_t input_count, uint64_t* run);
  /* [either] Copies outputs of a run, all or some, and ends it. NOT_READY: it is not due, or not
   * complete; call again in a later frame. NOT_FOUND: no such run, or it has ended. */
  imp_result(IMP_CALL* model_read)(imp_model model, uint64_t run, const imp_model_output* outputs,
                                   uint32_t output_count);
  imp_result(IMP_CALL* model_discard)(imp_model model, uint64_t run); /* [either] Ends it unread. */
  imp_result(IMP_CALL* model_reset)(imp_model model); /* [either] The next run's state is zero. */
} imp_models_api;

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_IMPRINT_MODELS_H_ */
