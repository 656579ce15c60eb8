// Provokes the errors of plugin/docs/troubleshooting.md and looks up each text in the page. --print prints
// the texts instead.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <imprint/imprint_tools.h>
#include <imprint/imprint_vulkan.h>

#include "declare.h"
#include "host.h"

namespace {

constexpr std::size_t kCompared = 48;  // characters of a message that a reader would search for

const imp_api* api = nullptr;
std::vector<std::string> texts;

// Numbers differ between devices: each becomes #.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  return out;
}

// The text that a failed call left.
void provoked(const char* call, imp_result result, imp_result expected) {
  if (result != expected)
    std::fprintf(stderr, "%s: found %s, expected %s: %s\n", call, api->result_name(result),
                 api->result_name(expected), api->last_error());
  texts.emplace_back(result == expected ? api->last_error() : "(not provoked)");
}

struct Creature {
  imp_context context{};
  imp_brain brain{};
  imp_agent agent{};
};

imp_brain_desc small_brain(const std::uint32_t* actions) {
  imp_brain_desc desc = imp_brain_desc_init();
  desc.observation_count = 2;
  desc.branch_count = 1;
  desc.branch_sizes = actions;
  desc.learner = IMP_LEARNER_FEEDBACK;
  return desc;
}

void device_errors(const Host& host) {
  imp_context context{};
  imp_vk_device_info old = declare(host);
  old.api_version = 1u << 22;
  provoked("context_create", api->context_create(&old, nullptr, nullptr, &context), IMP_ERROR_UNSUPPORTED);

  imp_vk_device_info queueless = declare(host);
  queueless.queue.access = IMP_QUEUE_LOCK;
  provoked("context_create", api->context_create(&queueless, nullptr, nullptr, &context),
           IMP_ERROR_INVALID_ARGUMENT);

  imp_host lent = imp_host_init();
  lent.kernel_archive_path = "missing.archive";
  const imp_vk_device_info device = declare(host);
  provoked("context_create", api->context_create(&device, &lent, nullptr, &context), IMP_ERROR_NOT_FOUND);
}

void brain_errors(Creature& creature) {
  const std::uint32_t actions = 4, more = 5;
  imp_standalone_info cpu = imp_standalone_info_init();
  cpu.device = "cpu";
  api->tools->context_create_standalone(&cpu, nullptr, nullptr, &creature.context);
  imp_brain_desc desc = small_brain(&actions), other = small_brain(&more);
  desc.continuous_count = 1;
  provoked("brain_create", api->brain_create(creature.context, &desc, &creature.brain),
           IMP_ERROR_UNSUPPORTED);
  desc.continuous_count = 0;
  imp_brain second{};
  api->brain_create(creature.context, &desc, &creature.brain);
  api->brain_create(creature.context, &other, &second);
  api->agent_create(creature.brain, 0, &creature.agent);
  api->context_warmup(creature.context, nullptr, nullptr);
  api->brain_save(second, "other.brain");
  api->context_drain(creature.context, 10000);
  provoked("brain_load", api->brain_load(creature.brain, "other.brain"), IMP_ERROR_SHAPE_MISMATCH);
  api->brain_destroy(second);
}

void frame_errors(const Creature& creature) {
  const float seen[3] = {0, 0, 0}, wrong[2] = {std::nanf(""), 0};
  imp_frame_info now = imp_frame_info_init();
  imp_action action = imp_action_init();
  now.frame = 7;
  provoked("agent_observe", api->agent_observe(creature.agent, seen, 2), IMP_ERROR_WRONG_STATE);
  api->frame_begin(creature.context, &now);
  provoked("agent_observe", api->agent_observe(creature.agent, seen, 3), IMP_ERROR_INVALID_ARGUMENT);
  provoked("agent_observe", api->agent_observe(creature.agent, wrong, 2), IMP_ERROR_INVALID_ARGUMENT);
  provoked("agent_act", api->agent_act(creature.agent, &action), IMP_ERROR_NOT_FOUND);
  provoked("brain_load", api->brain_load(creature.brain, "other.brain"), IMP_ERROR_WRONG_STATE);
  api->frame_end(creature.context);
  provoked("frame_begin", api->frame_begin(creature.context, &now), IMP_ERROR_INVALID_ARGUMENT);
  api->context_destroy(creature.context);
}

// With the game's device: too little memory, and a recorded frame that is not safe.
void recording_errors(Host& host) {
  const std::uint32_t actions = 4;
  const imp_vk_device_info device = declare(host);
  Creature creature;
  imp_limits limits = imp_limits_init();
  limits.memory_cap_bytes = 1 << 20;
  imp_brain_desc desc = small_brain(&actions);
  api->context_create(&device, nullptr, &limits, &creature.context);
  imp_result result = api->brain_create(creature.context, &desc, &creature.brain);
  if (result >= 0) result = api->context_warmup(creature.context, nullptr, nullptr);
  provoked("context_warmup", result, IMP_ERROR_OUT_OF_DEVICE_MEMORY);
  api->context_destroy(creature.context);

  const float seen[2] = {0, 0};
  imp_frame_info now = imp_frame_info_init();
  imp_record_info record = imp_record_info_init();
  api->context_create(&device, nullptr, nullptr, &creature.context);
  api->brain_create(creature.context, &desc, &creature.brain);
  api->agent_create(creature.brain, 0, &creature.agent);
  api->context_warmup(creature.context, nullptr, nullptr);
  now.frame = 1;
  record.command_buffer = host.begin_frame(1);
  api->frame_begin(creature.context, &now);
  api->agent_observe(creature.agent, seen, 2);
  api->vulkan->frame_record(creature.context, &record, nullptr);
  api->frame_end(creature.context);
  host.end_frame();
  provoked("context_destroy", api->context_destroy(creature.context), IMP_ERROR_WRONG_STATE);
  host.wait_for_all();
  now.frame = 2;
  now.safe_frame = host.safe_frame();
  api->frame_begin(creature.context, &now);
  api->frame_end(creature.context);
  api->context_destroy(creature.context);
}

}  // namespace

int main(int argc, char** argv) {
  Host host;
  if (imp_get_api(IMP_ABI_VERSION, &api) < 0 || !host.open("")) return std::puts(host.error().c_str()), 1;
  Creature creature;
  device_errors(host);
  brain_errors(creature);
  frame_errors(creature);
  recording_errors(host);

  std::ifstream in(PAGE_ROOT "/plugin/docs/troubleshooting.md");
  const std::string page = without_numbers({std::istreambuf_iterator<char>(in), {}});
  int missing = 0;
  for (const std::string& text : texts) {
    if (argc > 1 && std::strcmp(argv[1], "--print") == 0)
      std::printf("%s\n", text.c_str());
    else if (page.find(without_numbers(text).substr(0, kCompared)) == page.npos)
      ++missing, std::fprintf(stderr, "troubleshooting.md does not have: %s\n", text.c_str());
  }
  return missing > 0;
}
