/* The C headers after the macros of other libraries. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "platform_macros.h"
/**/
#include <imprint/imprint.h>
#include <imprint/imprint_tools.h>
#include <imprint/imprint_vulkan.h>

imp_result use(void);
imp_result use(void) {
  return imp_limits_init().header.size == sizeof(imp_limits) ? IMP_OK : IMP_ERROR_INTERNAL;
}
