// A headless game that joins the studio: bodies that balance poles, taught by PPO on device cpu. Rank 0 plays
// 20 greedy episodes by each checkpoint and by the outcome, apart from the training games.

#include <CLI/CLI.hpp>

#include <imprint/studio.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <imprint/imprint.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/must.h"
#include "tools/trials/environments.h"

namespace {

using namespace imprint::game;
namespace studio = imprint::studio;
namespace trials = imprint::trials;

struct Flags {
  std::uint32_t bodies = 1;
  std::uint64_t seed = 1;
  PpoOptions ppo;
  bool evaluates = false;
  // Faults, for tests.
  std::int64_t hang_rank = -1, hang_frame = 0;
  double slow_ms = 0;           // of each frame of rank 1
  std::uint32_t odd_width = 0;  // of rank 1's hidden layers
};

struct Body {
  std::unique_ptr<trials::Environment> world = trials::make_cart_pole();
  std::unique_ptr<trials::Draws> draws;
  Agent agent;
  std::vector<float> seen = std::vector<float>(4);
  double returned = 0;
  bool asked = false, done = false;
};

class Stage {
 public:
  Stage(const Flags& flags, std::uint32_t bodies, bool learns, std::uint64_t seed) : bodies_(bodies) {
    StandaloneDesc device;
    const std::string name = studio::device();
    device.device = name.c_str();
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 1'000'000'000;
    context_ = must(Context::create_standalone(Library(imp_get_api), device, imp_host_init(), limits));
    BrainDesc desc;
    desc.name = "balance";
    desc.observation_count = 4;
    desc.branch_sizes = {2};
    desc.agents_per_brain = bodies;
    desc.seed = seed;
    if (learns)
      desc.learner = flags.ppo;
    else
      desc.learner = NoLearner();
    if (!learns) desc.action_latency_frames = 1;
    if (flags.odd_width > 0 && studio::rank() == 1) desc.hidden_sizes = {flags.odd_width};
    imp_brain_desc shared = desc;
    if (learns) studio::share(shared);
    brain_ = must(context_.create_brain(shared));
    for (Body& body : bodies_) {
      body.agent = must(brain_.create_agent());
      if (!learns || studio::evaluates()) must(body.agent.set_mode(Mode::inference));
    }
    must(context_.warmup());
  }

  std::function<void(Body&)> on_begin = [](Body&) {};  // after each reset of a world

  Context& context() { return context_; }
  Brain& brain() { return brain_; }

  // New worlds; the agents' episodes end in the next frame.
  void begin(std::uint64_t seed) {
    for (std::uint32_t i = 0; i < bodies_.size(); ++i) {
      Body& body = bodies_[i];
      body.draws = std::make_unique<trials::Draws>(seed, i);
      body.world->reset(*body.draws);
      on_begin(body);
      body.returned = 0;
      body.asked = false;
    }
    begins_ = true;
  }

  // One frame. ended(body) for each episode.
  template <class Ended>
  void frame(const Ended& ended) {
    ++frame_;
    must(context_.frame_begin(frame_, static_cast<double>(frame_) / 60));
    for (Body& body : bodies_) {
      if (body.done) continue;
      if (begins_) must(body.agent.end_episode(EpisodeEnd::truncated));
      if (body.asked && !act(body, ended)) continue;
      if (body.done) continue;
      body.world->observe(body.seen);
      must(body.agent.observe(body.seen));
      body.asked = true;
    }
    begins_ = false;
    must(context_.submit());
    must(context_.frame_end());
  }

 private:
  // False: no answer yet.
  template <class Ended>
  bool act(Body& body, const Ended& ended) {
    const Made<Action> made = body.agent.act();
    must(made.outcome);
    if (!made.outcome.ready()) return false;
    const trials::Outcome outcome = body.world->step(static_cast<double>(made.value.branches[0]));
    must(body.agent.reward(static_cast<float>(outcome.reward)));
    body.returned += outcome.reward;
    if (!outcome.terminated && !outcome.truncated) return true;
    if (outcome.truncated) {
      body.world->observe(body.seen);
      must(body.agent.observe(body.seen));
    }
    must(body.agent.end_episode(outcome.truncated ? EpisodeEnd::truncated : EpisodeEnd::terminated));
    body.world->reset(*body.draws);
    on_begin(body);
    ended(body);
    body.returned = 0;
    return true;
  }

  Context context_;
  Brain brain_;
  std::vector<Body> bodies_;
  std::uint64_t frame_ = 0;
  bool begins_ = false;
};

// Greedy episodes of 20 bodies: the mean return.
double evaluate(const Flags& flags, const std::string& path) {
  constexpr std::uint32_t kBodies = 20;
  Stage stage(flags, kBodies, false, flags.seed);
  must(stage.brain().load_weights(path.c_str()));
  stage.begin(flags.seed + (1u << 20));
  double sum = 0;
  std::uint32_t left = kBodies;
  while (left > 0)
    stage.frame([&](Body& body) {
      sum += body.returned;
      body.done = true;
      --left;
    });
  return sum / kBodies;
}

int play(const Flags& flags) {
  const studio::Settings settings = studio::Settings::from_environment();
  Stage stage(flags, flags.bodies, true, flags.seed);
  studio::Member member = studio::join(stage.context().handle(), stage.brain().handle(), settings);
  // The curriculum may lean the pole at the start: radians.
  stage.on_begin = [&](Body& body) {
    for (const auto& [name, number] : member.draw_parameters())
      if (name == "lean") body.world->state()[2] += number;
  };
  std::string judged;
  std::int64_t frames = 0;
  while (member.frame()) {
    if (member.restarts()) {
      stage.begin(member.seed());
      if (flags.evaluates && studio::rank() == 0 && !member.checkpoint().empty())
        std::printf("greedy %.1f at %llu steps\n", evaluate(flags, member.checkpoint()),
                    static_cast<unsigned long long>(member.steps()));
    }
    ++frames;
    if (studio::rank() == static_cast<std::uint32_t>(flags.hang_rank) && frames == flags.hang_frame)
      std::this_thread::sleep_for(std::chrono::hours(1));
    if (flags.slow_ms > 0 && studio::rank() == 1)
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(flags.slow_ms));
    stage.frame([&](Body& body) { member.episode_ended(body.returned); });
  }
  if (studio::rank() == 0 && !settings.folder.empty()) {
    const imprint::game::BrainHash hash = must(stage.brain().hash());
    std::printf("brain %016llx%016llx\n", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
    if (flags.evaluates)
      std::printf("greedy %.1f at %llu steps, the end\n", evaluate(flags, settings.folder + "/final.brain"),
                  static_cast<unsigned long long>(member.steps()));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Balances poles, as one of the games of imprint studio."};
  app.add_option("--bodies", flags.bodies, "of this game, with one brain");
  app.add_option("--seed", flags.seed, "of the brain");
  app.add_option("--rollout", flags.ppo.rollout_steps, "steps per update of this game");
  app.add_option("--batch", flags.ppo.batch_size, "steps per minibatch of this game");
  app.add_option("--epochs", flags.ppo.epochs, "of an update");
  app.add_option("--rate", flags.ppo.learning_rate, "learning rate");
  app.add_flag("--evaluate", flags.evaluates, "play greedy episodes by each checkpoint");
  app.add_option("--hang-rank", flags.hang_rank, "rank that hangs");
  app.add_option("--hang-frame", flags.hang_frame, "frame in which it hangs");
  app.add_option("--slow-ms", flags.slow_ms, "milliseconds that rank 1 sleeps in each frame");
  app.add_option("--odd-width", flags.odd_width, "width of rank 1's only hidden layer");
  CLI11_PARSE(app, argc, argv);
  try {
    return play(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_cart_pole: %s\n", error.what());
    return 1;
  }
}
