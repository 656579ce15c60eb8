/* The C code of plugin/docs/learners.md makes a brain on the CPU. */

#include <stdio.h>

#include <imprint/imprint_tools.h>

#include "learners-demonstrate.inc"
#include "learners-options.inc"

int run_learners_cpp(void); /* learners.cpp */

/* A pupil that is shown a choice, and then records one. */
static int teach(const imp_api* api, imp_context context) {
  const uint32_t moves = 3;
  const float seen[2] = {0.5f, -0.5f};
  imp_brain brain;
  imp_agent pupil;
  imp_frame_info now = imp_frame_info_init();
  imp_brain_stats stats = imp_brain_stats_init();
  imp_brain_desc desc = imp_brain_desc_init();
  desc.observation_count = 2;
  desc.branch_count = 1;
  desc.branch_sizes = &moves;
  desc.learner = IMP_LEARNER_CLONING;
  if (api->brain_create(context, &desc, &brain) < 0 || api->agent_create(brain, 0, &pupil) < 0 ||
      api->context_warmup(context, NULL, NULL) < 0)
    return 0;
  for (now.frame = 1; now.frame <= 20; ++now.frame) {
    const int records = now.frame > 10;
    if (now.frame == 11 && api->agent_set_mode(pupil, IMP_MODE_RECORD) < 0) return 0;
    if (api->frame_begin(context, &now) < 0 ||
        (records ? record_choice(api, pupil, seen, 2, 1) : show_choice(api, pupil, seen, 2, 1)) < 0 ||
        api->frame_submit(context, UINT32_MAX) < 0 || api->frame_end(context) < 0)
      return 0;
  }
  return api->tools->brain_get_stats(brain, &stats) >= 0 && stats.demonstrations > 10 &&
         stats.minibatches > 0;
}

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
      !teach(api, context) || api->context_destroy(context) < 0)
    return fprintf(stderr, "learners: %s\n", api->last_error()), 1;
  return run_learners_cpp();
}
