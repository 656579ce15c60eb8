#ifndef IMPRINT_SAMPLES_GUEST_H_
#define IMPRINT_SAMPLES_GUEST_H_
/* The whole integration of a learning creature, for a game in C or C++. Each function returns null, or the
 * call that failed. */

#include <imprint/imprint_vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* After vkCreateDevice: observations of `floats` numbers, a choice of `actions`. Compiles everything. */
const char* guest_open(const imp_vk_device_info* device, uint32_t floats, uint32_t actions);
/* Each frame, before its first render pass. seen may be null. reward is for the current action, -1 .. 1, 0 =
 * none. *decision counts decisions; *action changes with each. */
const char* guest_frame(const imp_frame_info* frame, VkCommandBuffer commands, const float* seen,
                        float reward, uint32_t* action, uint64_t* decision);
/* Before vkDestroyDevice, when the GPU has finished every frame up to frame->safe_frame. */
const char* guest_close(const imp_frame_info* frame);
/* Imprint's text of the newest failure. */
const char* guest_error(void);

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_SAMPLES_GUEST_H_ */
