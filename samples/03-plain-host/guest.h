#ifndef IMPRINT_SAMPLES_GUEST_H_
#define IMPRINT_SAMPLES_GUEST_H_
/* What a game in C or C++ writes once to have a creature that learns; guest.c is the whole integration. Each
 * returns 0, or the call that failed. */

#include <imprint/imprint_vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* After vkCreateDevice: observations of `floats`, one of `actions` to choose. Compiles everything. */
const char* guest_open(const imp_vk_device_info* device, uint32_t floats, uint32_t actions);
/* Each frame, before its first render pass. seen may be null; reward is for the action under way, -1 .. 1, 0
 * = none; *action changes with a decision, which *decision counts. */
const char* guest_frame(const imp_frame_info* frame, VkCommandBuffer commands, const float* seen,
                        float reward, uint32_t* action, uint64_t* decision);
/* Before vkDestroyDevice, when the GPU is done with every frame up to frame->safe_frame. */
const char* guest_close(const imp_frame_info* frame);
/* What Imprint says about the newest failure. */
const char* guest_error(void);

#ifdef __cplusplus
}
#endif
#endif /* IMPRINT_SAMPLES_GUEST_H_ */
