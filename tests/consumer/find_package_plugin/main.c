#include <imprint/imprint.h>
#include <stdio.h>

int main(void) {
  const imp_api* api = NULL;
  if (imp_get_api(IMP_ABI_VERSION, &api) != IMP_OK || api == NULL || api->size < sizeof(imp_api)) {
    fprintf(stderr, "the installed plugin does not serve ABI version %u of its own header\n",
            IMP_ABI_VERSION);
    return 1;
  }
  printf("imprint %s\n", api->version);
  return 0;
}
