// A headless game that joins the studio: bodies that balance poles, taught by PPO on device cpu. Rank 0 plays
// 20 greedy episodes by each checkpoint and by the outcome, apart from the training games.

#include <signal.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include <imprint/studio.h>
#include <chrono>
#include <cmath>
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

#include "samples/picture/canvas.h"
#include "tests/must.h"
#include "tools/trials/environments.h"

namespace {

using namespace imprint::game;
namespace studio = imprint::studio;
namespace trials = imprint::trials;

struct Flags {
  std::uint32_t bodies = 1;
  std::uint64_t seed = 1;
  std::string learner = "ppo";  // dqn, or sac, whose number pushes left below 0
  PpoOptions ppo;
  bool evaluates = false;
  bool remembers = false;  // PPO with a GRU, which sees no velocities
  // Faults, for tests.
  std::int64_t hang_rank = -1, hang_frame = 0;
  std::string hang_share;        // hangs from the start where games share so
  double slow_ms = 0;            // of each frame of rank 1
  double odd_lean = 0;           // of the pole at the start: a game that is not the one of a log
  std::int64_t exit_frame = -1;  // in which rank 1 calls exit()
  int exit_status = 1;
  bool idle = false;             // its agents neither observe nor act
  bool nan_score = false;        // of rank 1's episodes
  std::int64_t nan_frame = -1;   // in which rank 1 observes NaN
  std::int64_t full_frame = -1;  // from which on rank 1 writes no file beyond some bytes: its disk is full
  std::uint32_t odd_width = 0;   // of rank 1's hidden layers
};

struct Body {
  std::unique_ptr<trials::Environment> world = trials::make_cart_pole();
  std::unique_ptr<trials::Draws> draws;
  Agent agent;
  studio::Episode episode;  // of a member's game
  bool in_episode = false;
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
    hides_velocities_ = flags.remembers;
    pushes_by_number_ = flags.learner == "sac";
    if (pushes_by_number_)
      desc.continuous_count = 1;
    else
      desc.branch_sizes = {2};
    desc.agents_per_brain = bodies;
    desc.seed = seed;
    if (!learns)
      desc.learner = NoLearner();
    else if (flags.learner == "dqn")
      desc.learner = DqnOptions();
    else if (flags.learner == "sac")
      desc.learner = SacOptions();
    else
      desc.learner = flags.ppo;
    if (!learns) desc.action_latency_frames = 1;
    if (flags.odd_width > 0 && studio::rank() == 1) desc.hidden_sizes = {flags.odd_width};
    if (flags.remembers) desc.network.cell = IMP_CELL_GRU;
    imp_brain_desc shared = desc;
    if (learns) studio::share(shared);
    brain_ = must(context_.create_brain(shared));
    for (Body& body : bodies_) {
      body.agent = must(brain_.create_agent());
      if (!learns || studio::evaluates()) must(body.agent.set_mode(Mode::inference));
    }
    must(context_.warmup());
  }

  // A world begins.
  std::function<void(Body&)> on_begin = [](Body& body) { body.world->reset(*body.draws); };

  void break_observation() { bodies_[0].world->state()[1] = std::nan(""); }

  std::function<void(Body&)> on_step = [](Body&) {};

  Context& context() { return context_; }
  Brain& brain() { return brain_; }

  // New worlds; the agents' episodes end in the next frame.
  void begin(std::uint64_t seed) {
    for (std::uint32_t i = 0; i < bodies_.size(); ++i) {
      Body& body = bodies_[i];
      body.draws = std::make_unique<trials::Draws>(seed, i);
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
      observe(body);
      body.asked = true;
    }
    begins_ = false;
    must(context_.submit());
    must(context_.frame_end());
  }

 private:
  void observe(Body& body) const {
    body.world->observe(body.seen);
    if (hides_velocities_) body.seen[1] = body.seen[3] = 0;
    must(body.agent.observe(body.seen));
  }

  // False: no answer yet.
  template <class Ended>
  bool act(Body& body, const Ended& ended) {
    Made<Action> made = body.agent.act();
    must(made.outcome);
    if (!made.outcome.ready()) return false;
    if (body.in_episode)
      body.episode.decided(body.seen, {made.value.branches, made.value.branch_count},
                           {made.value.continuous, made.value.continuous_count});
    const double push = pushes_by_number_ ? (made.value.continuous[0] > 0 ? 1.0 : 0.0)
                                          : static_cast<double>(made.value.branches[0]);
    const trials::Outcome outcome = body.world->step(push);
    must(body.agent.reward(static_cast<float>(outcome.reward)));
    body.returned += outcome.reward;
    on_step(body);
    if (!outcome.terminated && !outcome.truncated) return true;
    if (outcome.truncated) observe(body);
    must(body.agent.end_episode(outcome.truncated ? EpisodeEnd::truncated : EpisodeEnd::terminated));
    ended(body);
    on_begin(body);
    body.returned = 0;
    return true;
  }

  Context context_;
  Brain brain_;
  std::vector<Body> bodies_;
  std::uint64_t frame_ = 0;
  bool begins_ = false, pushes_by_number_ = false, hides_velocities_ = false;
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

// The cart, its pole and the track.
void draw(Body& body) {
  constexpr std::uint32_t kSide = 96;
  const std::span<const double> state = body.world->state();
  picture::Canvas canvas(kSide, kSide);
  canvas.set_area(0, 0, kSide);
  const float at = 0.5f + static_cast<float>(state[0]) / 5.2f, angle = static_cast<float>(state[2]);
  canvas.line({0, 0.8f}, {1, 0.8f}, 0.01f, picture::kGrey);
  canvas.box({at - 0.08f, 0.74f}, {0.16f, 0.08f}, picture::kInk);
  canvas.line({at, 0.74f}, {at + 0.4f * std::sin(angle), 0.74f - 0.4f * std::cos(angle)}, 0.03f,
              picture::kRed);
  body.episode.picture(kSide, kSide, canvas.rgba());
}

void inject_faults(const Flags& flags, std::int64_t frame, Stage& stage) {
  if (frame == flags.exit_frame) std::exit(flags.exit_status);
  if (frame == flags.nan_frame) stage.break_observation();
  if (frame != flags.full_frame) return;
  const rlimit small{256, 256};
  ::signal(SIGXFSZ, SIG_IGN);  // write() then fails as on a full disk
  if (::setrlimit(RLIMIT_FSIZE, &small) != 0) throw std::runtime_error("setrlimit failed");
}

int play(const Flags& flags) {
  const studio::Settings settings = studio::Settings::from_environment();
  const char* share = std::getenv("IMPRINT_STUDIO_SHARE");
  if (share && share == flags.hang_share) std::this_thread::sleep_for(std::chrono::hours(1));
  Stage stage(flags, flags.bodies, true, flags.seed);
  studio::Member member = studio::join(stage.context().handle(), stage.brain().handle(), settings);
  // The curriculum may lean the pole at the start: radians.
  stage.on_begin = [&](Body& body) {
    body.episode = member.begin_episode();
    body.in_episode = true;
    trials::Draws draws(body.episode.seed(), 0);
    body.world->reset(draws);
    for (const auto& [name, number] : body.episode.parameters())
      if (name == "lean") body.world->state()[2] += number;
    body.world->state()[2] += flags.odd_lean;
  };
  stage.on_step = [](Body& body) {
    if (body.episode.wants_pictures()) draw(body);
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
    if (studio::rank() == 1) inject_faults(flags, frames, stage);
    if (flags.slow_ms > 0 && studio::rank() == 1)
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(flags.slow_ms));
    const bool odd = flags.nan_score && studio::rank() == 1;
    if (!flags.idle) stage.frame([&](Body& body) { body.episode.ended(odd ? std::nan("") : body.returned); });
  }
  if (studio::rank() == 0 && !settings.folder.empty()) {
    const imprint::game::BrainHash hash = must(stage.brain().hash());
    std::printf("brain %016llx%016llx\n", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
    if (flags.evaluates && flags.learner != "sac")  // its weights fit no brain without a learner
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
  app.add_option("--learner", flags.learner, "ppo, dqn or sac")->check(CLI::IsMember({"ppo", "dqn", "sac"}));
  app.add_option("--rollout", flags.ppo.rollout_steps, "steps per update of this game");
  app.add_option("--batch", flags.ppo.batch_size, "steps per minibatch of this game");
  app.add_option("--epochs", flags.ppo.epochs, "of an update");
  app.add_option("--rate", flags.ppo.learning_rate, "learning rate");
  app.add_option("--rate-decisions", flags.ppo.rate_decisions, "of this game until the rate is 0");
  app.add_flag("--remember", flags.remembers, "a PPO brain with a GRU, which sees no velocities");
  app.add_flag("--evaluate", flags.evaluates, "play greedy episodes by each checkpoint");
  app.add_option("--hang-rank", flags.hang_rank, "rank that hangs");
  app.add_option("--hang-frame", flags.hang_frame, "frame in which it hangs");
  app.add_option("--hang-share", flags.hang_share, "way to share with which it hangs from the start");
  app.add_option("--slow-ms", flags.slow_ms, "milliseconds that rank 1 sleeps in each frame");
  app.add_option("--odd-lean", flags.odd_lean, "radians that the pole leans at the start");
  app.add_option("--exit-frame", flags.exit_frame, "frame in which rank 1 calls exit()");
  app.add_option("--exit-status", flags.exit_status, "status of that");
  app.add_flag("--idle", flags.idle, "agents neither observe nor act");
  app.add_flag("--nan-score", flags.nan_score, "scores of rank 1's episodes are NaN");
  app.add_option("--nan-frame", flags.nan_frame, "frame in which rank 1 observes NaN");
  app.add_option("--full-frame", flags.full_frame, "frame from which on rank 1's disk is full");
  app.add_option("--odd-width", flags.odd_width, "width of rank 1's only hidden layer");
  CLI11_PARSE(app, argc, argv);
  try {
    return play(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_cart_pole: %s\n", error.what());
    return 1;
  }
}
