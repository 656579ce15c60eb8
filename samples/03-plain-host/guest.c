#include "guest.h"

static const imp_api* api;
static imp_context context;
static imp_brain brain;
static imp_agent creature;
static imp_frames frames;
static uint32_t floats_seen;

const char* guest_open(const imp_vk_device_info* device, uint32_t frames_in_flight, uint32_t floats,
                       uint32_t actions) {
  const imp_brain_desc desc = imp_brain_desc_of(IMP_LEARNER_DQN, floats, &actions, 1);
  if (floats > GUEST_MAX_FLOATS) return "guest_open: floats: expected at most GUEST_MAX_FLOATS";
  floats_seen = floats;
  frames = imp_frames_init(frames_in_flight);
  if (imp_get_api(IMP_ABI_VERSION, &api) < 0) return "imp_get_api";
  if (api->context_create(device, NULL, NULL, &context) < 0) return "context_create";
  if (api->brain_create(context, &desc, &brain) < 0) return "brain_create";
  if (api->agent_create(brain, 0, &creature) < 0) return "agent_create";
  return api->context_warmup(context, NULL, NULL) < 0 ? "context_warmup" : NULL;
}

/* Act, reward, end, observe: the calls of a frame. The caller ends the frame even if one fails. */
static const char* creature_turn(VkCommandBuffer commands, const guest_world* world) {
  imp_record_info info = imp_record_info_init();
  imp_action action = imp_action_init();
  const imp_result due = api->agent_act(creature, &action);
  if (due < 0 && due != IMP_ERROR_NOT_FOUND) return "agent_act";
  if (action.is_new) { /* a decision is due: the game carries it out */
    int over = 0;
    if (api->agent_reward(creature, world->step(world->user, action.branches[0], &over)) < 0)
      return "agent_reward";
    if (over && api->agent_end_episode(creature, IMP_EPISODE_TERMINATED) < 0) return "agent_end_episode";
  }
  if (due != IMP_NOT_READY) { /* no answer is on its way: ask */
    float seen[GUEST_MAX_FLOATS];
    world->look(world->user, seen);
    if (api->agent_observe(creature, seen, floats_seen) < 0) return "agent_observe";
  }
  info.command_buffer = commands;
  if (frames.frame == 1) info.scope = IMP_SCOPE_WARMUP; /* a game does this in its loading screen */
  return api->vulkan->frame_record(context, &info, NULL) < 0 ? "frame_record" : NULL;
}

const char* guest_frame(double step_s, VkCommandBuffer commands, const guest_world* world) {
  const imp_frame_info now = imp_frames_next(&frames, step_s);
  const char* failed;
  if (api->frame_begin(context, &now) < 0) return "frame_begin";
  failed = creature_turn(commands, world);
  if (failed)
    api->frame_end(context);
  else if (api->frame_end(context) < 0)
    failed = "frame_end";
  return failed;
}

const char* guest_close(void) {
  if (api->vulkan->context_device_idle(context) < 0) return "context_device_idle";
  return api->context_destroy(context) < 0 ? "context_destroy" : NULL;
}

const char* guest_error(void) { return api ? api->last_error() : "the library serves another ABI version"; }
