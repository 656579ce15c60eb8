#ifndef IMPRINT_SAMPLES_GUEST_H_
#define IMPRINT_SAMPLES_GUEST_H_
/* The whole integration of a learning creature, for a game in C or C++. Each function returns null, or the
 * call that failed. */

#include <imprint/imprint_vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GUEST_MAX_FLOATS 64u

/* The game, as its creature meets it. */
typedef struct guest_world {
  void* user; /* passed to both */
  /* Writes what the creature sees now. */
  void (*look)(void* user, float* seen);
  /* Carries out an action; returns its reward, -1 .. 1. *over = 1: the episode ends here. */
  float (*step)(void* user, uint32_t action, int* over);
} guest_world;

/* After vkCreateDevice: observations of `floats` numbers, a choice of `actions`. Compiles everything. */
const char* guest_open(const imp_vk_device_info* device, uint32_t frames_in_flight, uint32_t floats,
                       uint32_t actions);
/* Each frame, before its first render pass. step_s: simulated seconds since the last frame. */
const char* guest_frame(double step_s, VkCommandBuffer commands, const guest_world* world);
/* Before vkDestroyDevice, when the GPU has completed all frames. */
const char* guest_close(void);
/* Imprint's text of the newest failure. */
const char* guest_error(void);

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_SAMPLES_GUEST_H_ */
