/* A game without a GPU: an agent on the CPU learns which of four actions is rewarded. It needs nothing but
 * the installed plugin. Exit status 0: it has learned. */
#include <imprint/imprint_tools.h>
#include <stdio.h>

static int fail(const imp_api* api, const char* what) {
  fprintf(stderr, "%s: %s\n", what, api ? api->last_error() : "another ABI version");
  return 1;
}

int main(void) {
  const imp_api* api = NULL;
  const uint32_t choices = 4, wanted = 2;
  const imp_brain_desc desc = imp_brain_desc_of(IMP_LEARNER_FEEDBACK, 2, &choices, 1);
  imp_standalone_info device = imp_standalone_info_init();
  imp_frames frames = imp_frames_init(1);
  imp_context context;
  imp_brain brain;
  imp_agent agent;
  int steps = 0, right = 0;
  device.device = "cpu";
  if (imp_get_api(IMP_ABI_VERSION, &api) < 0) return fail(NULL, "imp_get_api");
  if (api->tools->context_create_standalone(&device, NULL, NULL, &context) < 0)
    return fail(api, "context_create_standalone");
  if (api->brain_create(context, &desc, &brain) < 0) return fail(api, "brain_create");
  if (api->agent_create(brain, 0, &agent) < 0) return fail(api, "agent_create");
  if (api->context_warmup(context, NULL, NULL) < 0) return fail(api, "context_warmup");
  while (frames.frame < 1200) {
    const imp_frame_info now = imp_frames_next(&frames, 1.0 / 60);
    const float seen[2] = {1, (float)(steps % 3)};
    imp_action action = imp_action_init();
    imp_result due;
    if (api->frame_begin(context, &now) < 0) return fail(api, "frame_begin");
    due = api->agent_act(agent, &action);
    if (action.is_new) {
      const int good = action.branches[0] == wanted;
      if (++steps > 400) right += good;
      if (api->agent_reward(agent, good ? 1.0f : -1.0f) < 0) return fail(api, "agent_reward");
    }
    if (due != IMP_NOT_READY && api->agent_observe(agent, seen, 2) < 0) return fail(api, "agent_observe");
    if (api->frame_submit(context, UINT32_MAX) < 0) return fail(api, "frame_submit");
    if (api->frame_end(context) < 0) return fail(api, "frame_end");
  }
  if (api->context_destroy(context) < 0) return fail(api, "context_destroy");
  printf("imprint %s: %d of the last %d actions were the rewarded one\n", api->version, right, steps - 400);
  return steps > 500 && right * 10 >= (steps - 400) * 8 ? 0 : 1;
}
