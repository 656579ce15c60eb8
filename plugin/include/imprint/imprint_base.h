#ifndef IMPRINT_IMPRINT_BASE_H_
#define IMPRINT_IMPRINT_BASE_H_
/* Part of imprint.h, which includes it: the platform, handles and what every struct starts with. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IMP_ABI_VERSION 1u

#if defined(_WIN32)
#define IMP_EXPORT __declspec(dllexport)
#define IMP_CALL __cdecl
#else
#define IMP_EXPORT __attribute__((visibility("default")))
#define IMP_CALL
#endif

#define IMP_DEFINE_HANDLE(name) \
  typedef struct name {         \
    uint64_t id;                \
  } name

typedef struct imp_header {
  uint32_t size;    /* sizeof the whole struct */
  uint32_t type;    /* IMP_STRUCT_... */
  const void* next; /* null; imp_brain_desc and imp_policy_desc take option structs here */
} imp_header;

/* Defines the struct `name`: all zero, with its size and type. */
#define IMP_INIT(T, name, TYPE)             \
  T name;                                   \
  memset(&name, 0, sizeof name);            \
  name.header.size = (uint32_t)sizeof name; \
  name.header.type = (uint32_t)(TYPE)

/* 1: imprint.h; 201: imprint_vulkan.h; 301: imprint_tools.h; 401: imprint_models.h;
 * 501: imprint_networks.h; 601: imprint_signals.h. From 101 on: see imprint_learners.h. */
typedef enum imp_struct_type {
  IMP_STRUCT_HOST = 1,
  IMP_STRUCT_LIMITS = 2,
  IMP_STRUCT_FRAME_INFO = 3,
  IMP_STRUCT_BRAIN_DESC = 4,
  IMP_STRUCT_POLICY_DESC = 5,
  IMP_STRUCT_BRAIN_INFO = 6,
  IMP_STRUCT_ACTION = 7,
  IMP_STRUCT_FEEDBACK = 8,
  IMP_STRUCT_DEMONSTRATION = 9,

  IMP_STRUCT_VK_DEVICE_INFO = 201,
  IMP_STRUCT_VK_PLAN = 202,
  IMP_STRUCT_VK_MERGED = 203,
  IMP_STRUCT_RECORD_INFO = 204,
  IMP_STRUCT_SUBMIT_INFO = 205,
  IMP_STRUCT_TENSOR_DESC = 206,
  IMP_STRUCT_VK_BUFFER = 207,

  IMP_STRUCT_STANDALONE_INFO = 301,
  IMP_STRUCT_REPORT = 302,
  IMP_STRUCT_MISSING_FEATURE = 303,
  IMP_STRUCT_ESTIMATE = 304,
  IMP_STRUCT_BRAIN_STATS = 305,
  IMP_STRUCT_CONTEXT_STATS = 306,
  IMP_STRUCT_STATE_ARRAY = 307,
  IMP_STRUCT_SHARED_LEARNING = 308,
  IMP_STRUCT_CURVES = 309,

  IMP_STRUCT_MODEL_DESC = 401,
  IMP_STRUCT_MODEL_INFO = 402,
  IMP_STRUCT_MODEL_VALUE = 403,
  IMP_STRUCT_POLICY_NAMES = 404,

  IMP_STRUCT_NETWORK_OPTIONS = 501,

  IMP_STRUCT_DEMONSTRATION_OPTIONS = 601,
  IMP_STRUCT_SIGNAL_OPTIONS = 602,
  IMP_STRUCT_SELF_PLAY_OPTIONS = 603,
  IMP_STRUCT_OPPONENT = 604,
  IMP_STRUCT_GROUP_OPTIONS = 605
} imp_struct_type;

#endif /* IMPRINT_IMPRINT_BASE_H_ */
