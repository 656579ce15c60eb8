#include "guest.h"

static const imp_api* api;
static imp_context context;
static imp_brain brain;
static imp_agent creature;
static uint32_t floats_seen;

const char* guest_open(const imp_vk_device_info* device, uint32_t floats, uint32_t actions) {
  imp_brain_desc desc = imp_brain_desc_init();
  desc.observation_count = floats_seen = floats;
  desc.branch_count = 1, desc.branch_sizes = &actions;
  desc.learner = IMP_LEARNER_FEEDBACK;
  if (imp_get_api(IMP_ABI_VERSION, &api) < 0) return "imp_get_api";
  if (api->context_create(device, NULL, NULL, &context) < 0) return "context_create";
  if (api->brain_create(context, &desc, &brain) < 0) return "brain_create";
  if (api->agent_create(brain, 0, &creature) < 0) return "agent_create";
  return api->context_warmup(context, NULL, NULL) < 0 ? "warmup" : NULL;
}

/* The calls between frame_begin and frame_end. The caller ends the frame even if one fails. */
static const char* creature_turn(VkCommandBuffer commands, const float* seen, float reward, uint32_t* action,
                                 uint64_t* decision) {
  imp_record_info info = imp_record_info_init();
  imp_action answer = imp_action_init();
  info.command_buffer = commands;
  if (reward != 0 && api->agent_reward(creature, reward) < 0) return "agent_reward";
  if (api->agent_act(creature, &answer) == IMP_OK) *action = answer.branches[0], *decision = answer.decision;
  if (seen && api->agent_observe(creature, seen, floats_seen) < 0) return "agent_observe";
  return api->vulkan->frame_record(context, &info, NULL) < 0 ? "record" : NULL;
}

const char* guest_frame(const imp_frame_info* frame, VkCommandBuffer commands, const float* seen,
                        float reward, uint32_t* action, uint64_t* decision) {
  const char* failed;
  if (api->frame_begin(context, frame) < 0) return "frame_begin";
  failed = creature_turn(commands, seen, reward, action, decision);
  if (failed)
    api->frame_end(context);
  else if (api->frame_end(context) < 0)
    failed = "frame_end";
  return failed;
}

const char* guest_close(const imp_frame_info* frame) {
  if (api->frame_begin(context, frame) < 0 || api->frame_end(context) < 0) return "the last frame";
  return api->context_destroy(context) < 0 ? "context_destroy" : NULL;
}

const char* guest_error(void) { return api ? api->last_error() : "the library serves another ABI version"; }
