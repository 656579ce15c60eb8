/* baked LIBRARY LIBRARY_WITHOUT_COMPILER FOLDER: a brain is warmed up by the library that compiles its shaders into the folder, then by one that has
 * no compiler and reads them there; from an empty folder that one says what to do. */

#include <dlfcn.h>
#include <imprint/imprint.h>
#include <stdio.h>

static int warm_up(const char* path, const char* folder, imp_result expected, const char* words) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  imp_get_api_function get_api = NULL;
  *(void**)&get_api = dlsym(library, "imp_get_api");
  const imp_api* api = NULL;
  if (!get_api || get_api(IMP_ABI_VERSION, &api) < 0) return fprintf(stderr, "%s is not Imprint\n", path), 1;

  imp_standalone_info device = imp_standalone_info_init();
  imp_host host = imp_host_init();
  host.shader_cache_directory = folder;
  imp_context context = {0};
  imp_result result = api->context_create_standalone(&device, &host, NULL, &context);
  if (result == IMP_OK) {
    const uint32_t actions = 4;
    imp_brain_desc desc = imp_brain_desc_init();
    desc.observation_count = 3;
    desc.branch_count = 1, desc.branch_sizes = &actions;
    desc.learner = IMP_LEARNER_FEEDBACK;
    imp_brain brain = {0};
    result = api->brain_create(context, &desc, &brain);
    if (result == IMP_OK) result = api->warmup(context, NULL, NULL);
  }
  const int right = result == expected && (result == IMP_OK || strstr(api->last_error(), words));
  if (!right) fprintf(stderr, "%s: %s, expected %s: %s\n", path, api->result_name(result), api->result_name(expected), api->last_error());
  if (context.id) api->context_destroy(context);
  dlclose(library);
  return !right;
}

int main(int argc, char** argv) {
  char empty[4096];
  if (argc != 4) return 2;
  snprintf(empty, sizeof empty, "%s-empty", argv[3]);
  return warm_up(argv[1], argv[3], IMP_OK, "") || warm_up(argv[2], argv[3], IMP_OK, "") ||
         warm_up(argv[2], empty, IMP_ERROR_UNSUPPORTED, "without a shader compiler");
}
