/* The public header as strict C11, alone. */
#include <imprint/imprint.h>

imp_result use(void);
imp_result use(void) {
  imp_brain_desc brain = imp_brain_desc_init();
  imp_action action = imp_action_init();
  return brain.header.size == sizeof brain && action.header.type == IMP_STRUCT_ACTION ? IMP_OK
                                                                                      : IMP_ERROR_INTERNAL;
}
