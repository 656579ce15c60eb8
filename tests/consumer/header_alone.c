/* The public headers as strict C11 and C++11, alone. */
#include <imprint/imprint.h>
/**/
#include <imprint/imprint_tools.h>
#include <imprint/imprint_vulkan.h>

imp_result use(void);
imp_result use(void) {
  imp_brain_desc brain = imp_brain_desc_init();
  imp_action action = imp_action_init();
  imp_ppo_options options = imp_ppo_options_init();
  imp_vk_device_info device = imp_vk_device_info_init();
  imp_report report = imp_report_init();
  brain.header.next = &options;
  device.queue.access = IMP_QUEUE_SINGLE_THREAD;
  return brain.header.size == sizeof brain && action.header.type == IMP_STRUCT_ACTION &&
                 report.header.next == NULL && device.header.type == IMP_STRUCT_VK_DEVICE_INFO
             ? IMP_OK
             : IMP_ERROR_INTERNAL;
}
