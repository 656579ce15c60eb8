// The C++ of plugin/docs/integration.md: a creature on the GPU survives the loss of its device, a wrong
// archive is refused, and a creature on device cpu needs no Vulkan.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "declare.h"
#include "host.h"
#include "integration-limits.inc"
// After the limits: they use its Services.
#include "integration-archive.inc"
#include "integration-cost.inc"
#include "integration-loss.inc"

namespace {

int fail(const char* what, const char* why) {
  return std::fprintf(stderr, "integration_limits: %s: %s\n", what, why), 1;
}

// One frame: acts, is rewarded, observes.
game::Outcome live(game::Frame& frame, game::Agent& agent) {
  const game::Action action = frame.act(agent);
  if (action.is_new) frame.keep(agent.reward(action.choices()[0] == 1 ? 1.0f : -1.0f));
  if (action.wants_observation) frame.keep(agent.observe(std::array{0.5f, -0.5f}));
  return {nullptr, IMP_OK};
}

int lose_a_device(const game::BrainDesc& desc) {
  Host host;
  if (!host.open("")) return fail("no device", host.error().c_str());
  Services services;
  game::Made<game::Context> context = on_the_gpu(declare(host), services);
  if (!context) return fail("context", context.outcome.message());
  game::Made<game::Brain> brain = context->create_brain(desc);
  game::Made<game::Agent> agent = brain->create_agent();
  if (!agent || !context->warmup()) return fail("agent", agent.outcome.message());
  game::Frames clock(Host::kFramesInFlight);
  for (std::uint64_t number = 1; number <= 400 && brain->stats()->host_copy_frame == 0; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    game::Frame frame(*context, clock.next(1.0 / 60));
    (void)live(frame, *agent);
    frame.record(commands);
    if (const game::Outcome done = frame.end(); !done) return fail("frame", done.message());
    if (!host.end_frame()) return fail("end_frame", host.error().c_str());
  }
  host.wait_for_all();
  if (brain->stats()->host_copy_frame == 0) return fail("host copy", "there is none");
  (void)context->notify_device_lost();
  services.lost = true;  // the host told itself, so Imprint does not
  const game::Outcome recovered =
      recover(*context, *brain, *agent, desc, services, "lost.brain", [&] { return declare(host); });
  if (!recovered) return fail("recover", recovered.message());
  if (services.lost || brain->stats()->decisions == 0) return fail("recover", "nothing was loaded");
  return 0;
}

// The archive is refused by its digest, before it is read.
int refuse_another_archive() {
  Host host;
  if (!host.open("")) return fail("no device", host.error().c_str());
  Services services;
  const std::array<std::byte, 4> kernels{};
  const std::string sha256(64, '0');
  const game::Made<game::Context> context = with_archive(declare(host), services, kernels, sha256);
  return context.outcome.code() == game::Code::corrupt_file ? 0 : fail("archive", context.outcome.message());
}

int play_on_the_cpu(const game::BrainDesc& desc) {
  Services services;
  game::Made<game::Context> context = on_the_cpu(services);
  if (!context) return fail("cpu", context.outcome.message());
  game::Made<game::Brain> brain = context->create_brain(desc);
  game::Made<game::Agent> agent = brain->create_agent();
  if (!agent || !context->warmup()) return fail("agent", agent.outcome.message());
  game::Frames clock(0);
  GpuCost cost;
  for (int i = 0; i < 60; ++i) {
    game::Frame frame(*context, clock.next(1.0 / 60));
    (void)live(frame, *agent);
    frame.submit();
    if (const game::Outcome done = frame.end(); !done) return fail("frame", done.message());
  }
  if (brain->stats()->decisions < 20) return fail("cpu", "it rarely decided");
  const double mean_us = cost.mean_us(*context);
  if (mean_us <= 0 || mean_us > 1e6 || cost.mean_us(*context) != 0)
    return fail("cpu", "a cost that cannot be");
  game::Frame frame(*context, clock.next(1.0 / 60));
  frame.record(VkCommandBuffer{});
  return frame.end() ? fail("cpu", "found record accepted, expected a refusal") : 0;
}

}  // namespace

int main() {
  const game::BrainDesc desc = game::BrainDesc::of(game::DqnOptions(), 2, {3});
  if (const int status = lose_a_device(desc)) return status;
  if (const int status = refuse_another_archive()) return status;
  return play_on_the_cpu(desc);
}
