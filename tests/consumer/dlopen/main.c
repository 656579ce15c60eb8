/* A game that loads the plugin at run time: one symbol, then the table. argv[1] is the library. */
#include <dlfcn.h>
#include <imprint/imprint_tools.h>
#include <stdio.h>

#define EXPECT(condition)                                              \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "line %d: expected %s\n", __LINE__, #condition); \
      return 1;                                                        \
    }                                                                  \
  } while (0)

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  imp_get_api_function get_api = NULL;
  *(void**)&get_api = dlsym(library, "imp_get_api");
  EXPECT(get_api != NULL);

  const imp_api* api = NULL;
  EXPECT(get_api(IMP_ABI_VERSION + 1000, &api) == IMP_ERROR_UNSUPPORTED && api == NULL);
  EXPECT(get_api(IMP_ABI_VERSION, NULL) == IMP_ERROR_INVALID_ARGUMENT);
  EXPECT(get_api(IMP_ABI_VERSION, &api) == IMP_OK && api != NULL);
  EXPECT(api->abi_version == IMP_ABI_VERSION && api->size >= sizeof(imp_api));
  EXPECT(api->vulkan != NULL && api->tools != NULL && api->tools->size >= sizeof(imp_tools_api));

  /* A device of Imprint's own, one frame, and destruction. */
  const imp_standalone_info device = imp_standalone_info_init();
  imp_context context = {0};
  imp_result result = api->tools->context_create_standalone(&device, NULL, NULL, &context);
  if (result != IMP_OK) {
    fprintf(stderr, "%s: %s\n", api->result_name(result), api->last_error());
    return 1;
  }
  imp_frame_info frame = imp_frame_info_init();
  frame.frame = 1;
  EXPECT(api->frame_begin(context, &frame) == IMP_OK);
  EXPECT(api->frame_submit(context, UINT32_MAX) == IMP_OK);
  EXPECT(api->frame_end(context) == IMP_OK);
  EXPECT(api->context_destroy(context) == IMP_OK);
  EXPECT(api->context_destroy(context) == IMP_ERROR_INVALID_HANDLE);
  EXPECT(dlclose(library) == 0);
  return 0;
}
