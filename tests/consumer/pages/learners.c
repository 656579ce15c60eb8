/* The C code of plugin/docs/learners.md makes a brain on the CPU. */

#include <stdio.h>

#include <imprint/imprint_tools.h>

#include "learners-options.inc"

int run_learners_cpp(void); /* learners.cpp */

int main(void) {
  const imp_api* api;
  const uint32_t moves = 8;
  imp_context context;
  imp_brain brain;
  imp_dqn_options options;
  imp_brain_desc desc = chess_player(&moves, &options);
  imp_standalone_info cpu = imp_standalone_info_init();
  cpu.device = "cpu";
  if (imp_get_api(IMP_ABI_VERSION, &api) < 0) return 1;
  if (api->tools->context_create_standalone(&cpu, NULL, NULL, &context) < 0 ||
      api->brain_create(context, &desc, &brain) < 0 || api->context_warmup(context, NULL, NULL) < 0 ||
      api->context_destroy(context) < 0)
    return fprintf(stderr, "learners: %s\n", api->last_error()), 1;
  return run_learners_cpp();
}
