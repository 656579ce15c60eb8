// A game of one choice joins the studio as a run of one game, and learns until it ends the run.

#include <imprint/studio.h>

#include <cstdio>
#include <imprint/imprint.hpp>

using namespace imprint::game;
namespace studio = imprint::studio;

int main() {
  StandaloneDesc device;
  const std::string name = studio::device();
  device.device = name.c_str();
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = 1'000'000;
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device, imp_host_init(), limits);
  if (!context) return 1;
  PpoOptions ppo;
  ppo.rollout_steps = ppo.batch_size = 16;
  BrainDesc desc;
  desc.observation_count = 1;
  desc.branch_sizes = {2};
  desc.hidden_sizes = {8};
  desc.learner = ppo;
  imp_brain_desc shared = desc;
  studio::share(shared);
  Made<Brain> brain = context->create_brain(shared);
  if (!brain) return 1;
  Made<Agent> agent = brain->create_agent();
  if (!agent || !context->warmup()) return 1;
  studio::Member member = studio::join(context->handle(), brain->handle());
  Frames clock(1);
  while (member.frame()) {
    Frame frame(*context, clock.next(1.0 / 60));
    if (const Action action = frame.act(*agent); action.is_new) {
      frame.keep(agent->reward(action.choices()[0] == 1 ? 1.0f : 0.0f));
      frame.keep(agent->end_episode(EpisodeEnd::terminated));
      member.episode_ended(1);
    }
    const float sees[] = {1};
    frame.keep(agent->observe(sees));
    frame.submit();
    if (!frame.end()) return 1;
    if (member.steps() >= 64) member.end();
  }
  std::printf("the run is over after %d steps\n", static_cast<int>(member.steps()));
  return member.steps() >= 64 ? 0 : 1;
}
