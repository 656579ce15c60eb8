// The shipped game, without the studio: it loads the studio's brain, runs from baked kernels, plays well at
// once, and goes on learning. Arguments: FINAL.brain ARCHIVE. IMPRINT_TEST_DEVICE names the device.

#include <cstdio>
#include <cstdlib>
#include <imprint/imprint.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/must.h"
#include "tools/trials/environments.h"

namespace {

using namespace imprint::game;
namespace trials = imprint::trials;

struct Home {
  Context context;
  Brain brain;
  Agent agent;
  std::uint64_t frame = 0;

  // Whole episodes; the mean return.
  double play(Mode mode, int episodes, std::uint32_t stream) {
    must(agent.set_mode(mode));
    const auto world = trials::make_cart_pole();
    trials::Draws draws(7, stream);
    world->reset(draws);
    std::vector<float> seen(4);
    double sum = 0;
    bool asked = false;
    for (int ended = 0; ended < episodes;) {
      ++frame;
      must(context.frame_begin(frame, static_cast<double>(frame) / 60));
      const Made<Action> action = asked ? agent.act() : Made<Action>{};
      if (asked) must(action.outcome);
      if (!asked || action) {
        bool over = false;
        if (asked) {
          const trials::Outcome outcome = world->step(static_cast<double>(action->branches[0]));
          sum += outcome.reward;
          must(agent.reward(static_cast<float>(outcome.reward)));
          over = outcome.terminated || outcome.truncated;
          if (outcome.truncated) {
            world->observe(seen);
            must(agent.observe(seen));
          }
          if (over)
            must(agent.end_episode(outcome.truncated ? EpisodeEnd::truncated : EpisodeEnd::terminated));
        }
        if (over) {
          world->reset(draws);
          ++ended;
        }
        world->observe(seen);
        must(agent.observe(seen));
        asked = true;
      }
      must(context.submit());
      must(context.frame_end());
      if (frame % 16 == 0) must(context.drain(60'000));  // no pictures hold this loop back
    }
    return sum / episodes;
  }
};

void go_home(const char* brain_file, const char* archive) {
  imp_standalone_info device = imp_standalone_info_init();
  device.device = std::getenv("IMPRINT_TEST_DEVICE");
  imp_host host = imp_host_init();
  host.kernel_archive_path = archive;
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = 1'000'000;
  Home home;
  home.context = must(Context::create_standalone(Library(imp_get_api), device, host, limits));
  BrainDesc desc = BrainDesc::of(PpoOptions(), 4, {2});
  desc.name = "balance";
  home.brain = must(home.context.create_brain(desc));
  home.agent = must(home.brain.create_agent());
  must(home.context.warmup());
  must(home.brain.load(brain_file));
  const BrainHash arrived = must(home.brain.hash());
  const std::uint64_t minibatches = must(home.brain.stats()).minibatches;
  const double knows = home.play(Mode::inference, 3, 1);
  if (must(home.brain.hash()) != arrived) throw std::runtime_error("greedy play changed the brain");
  const double learning = home.play(Mode::learning, 6, 2);
  must(home.context.drain(60'000));
  const std::uint64_t more = must(home.brain.stats()).minibatches - minibatches;
  std::printf("at home: %.1f at once, %.1f while it learns on, %llu minibatches more\n", knows, learning,
              static_cast<unsigned long long>(more));
  if (knows < 300) throw std::runtime_error("it does not know what the studio taught");
  if (more == 0 || must(home.brain.hash()) == arrived) throw std::runtime_error("it does not learn on");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("expected FINAL.brain ARCHIVE");
    go_home(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_home: %s\n", error.what());
    return 1;
  }
}
