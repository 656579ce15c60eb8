/* For the leak sanitizer (preset asan). Keeps drivers and layers loaded when the loader closes them, so that
 * a leak report names the driver (tests/lsan.supp). Imprint's own library is closed: a leak of it must show.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) int dlclose(void* library) {
  struct link_map* map = NULL;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map || !strstr(map->l_name, "libimprint")) return 0;
  int (*close)(void*) = NULL;
  *(void**)&close = dlsym(RTLD_NEXT, "dlclose");
  return close ? close(library) : -1;
}
