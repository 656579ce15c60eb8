// The cost of a pet or a kennel in a game's frame, with learning on and off, and of agents that learn from
// rewards: through the plugin's C interface as a game uses it, at 60 frames per second.

#include <imprint/imprint_tools.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kPetObservations = 28, kCues = 6, kPetActions = 10;  // the pet of samples/pet
constexpr std::uint32_t kPlainObservations = 12, kPlainActions = 4, kPlainContinuous = 2;  // of a plain game
constexpr std::uint32_t kWarmupFrames = 120, kLatencyFrames = 2;

// How the game plays.
struct Play {
  std::uint32_t pets = 1;
  bool learning = true;
  std::uint32_t frames_per_second = 60, frames = 600;
  std::uint32_t decision_frames = 60;  // between two decisions of a pet: one second of the game's time
  std::uint32_t learn_frames = 6;      // between two minibatches
  // FEEDBACK: the pet's brains. Others: a plain game with rewards, and the learner's own defaults.
  imp_learner learner = IMP_LEARNER_FEEDBACK;
  bool every = false;  // count every frame with work of Imprint, not only those that the row names
  bool busy = false;   // the thread computes until the next frame instead of sleeping, so caches stay warm
};

constexpr const char* kCalls[] = {"frame_begin", "agents", "submit",
                                  "frame_end"};  // agents: observe, act and feedback
using Moments = std::array<Clock::time_point, std::size(kCalls) + 1>;

double us_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

Error abi_error(const imp_api& api, const char* call, imp_result result) {
  return make_error(ErrorCode::internal,
                    std::string(call) + ": " + api.result_name(result) + ": " + api.last_error());
}

// Owns the context and makes a game's calls.
class Yard {
 public:
  Yard(const imp_api& api, const Play& play) : api_(api), play_(play), agents_(play.pets) {}
  Yard(const Yard&) = delete;
  Yard& operator=(const Yard&) = delete;
  ~Yard() {
    if (context_.id != 0) (void)api_.context_destroy(context_);
  }

  Result<> open(const std::string& device) {
    imp_standalone_info standalone = imp_standalone_info_init();
    standalone.device = device.empty() ? nullptr : device.c_str();
    imp_limits limits = imp_limits_init();
    limits.memory_cap_bytes = 0;
    IMPRINT_CHECK(check("context_create_standalone",
                        api_.tools->context_create_standalone(&standalone, nullptr, &limits, &context_)));

    IMPRINT_CHECK(rewarded() ? create_plain_brain() : create_pets());
    for (std::uint32_t i = 0; i < agents_.size(); ++i)
      IMPRINT_CHECK(check("agent_create", api_.agent_create(brain_, rewarded() ? 0 : i, &agents_[i])));
    IMPRINT_CHECK(check("brain_set_learning", api_.brain_set_learning(brain_, play_.learning ? 1 : 0)));
    return check("context_warmup", api_.context_warmup(context_, nullptr, nullptr));
  }

  // One frame of the game: each pet decides at its own moment and is praised or scolded for it. Stores the
  // times before the calls and after each of kCalls.
  Result<Moments> frame() {
    imp_frame_info info = imp_frame_info_init();
    info.frame = ++frame_;
    info.time_s =
        static_cast<double>(frame_) / (rewarded() ? play_.frames_per_second : play_.decision_frames);
    for (float& value : std::span(observation_).first(observation_count_))
      value = noise_.next();  // the game has it before it calls
    Moments moments;
    moments[0] = Clock::now();
    IMPRINT_CHECK(check("frame_begin", api_.frame_begin(context_, &info)));
    moments[1] = Clock::now();
    for (std::size_t i = 0; i < agents_.size(); ++i)
      IMPRINT_CHECK(live(agents_[i], (frame_ + i * 7) % play_.decision_frames, info.time_s));
    moments[2] = Clock::now();
    IMPRINT_CHECK(check("frame_submit", api_.frame_submit(context_, UINT32_MAX)));
    moments[3] = Clock::now();
    IMPRINT_CHECK(check("frame_end", api_.frame_end(context_)));
    moments[4] = Clock::now();
    return moments;
  }

  Result<imp_context_stats> stats() const {
    imp_context_stats stats = imp_context_stats_init();
    IMPRINT_CHECK(check("context_get_stats", api_.tools->context_get_stats(context_, &stats)));
    return stats;
  }

  Result<imp_brain_stats> brain_stats() const {
    imp_brain_stats stats = imp_brain_stats_init();
    IMPRINT_CHECK(check("brain_get_stats", api_.tools->brain_get_stats(brain_, &stats)));
    return stats;
  }

 private:
  Result<> check(const char* call, imp_result result) const {
    if (result >= IMP_OK) return {};
    return abi_error(api_, call, result);
  }

  bool rewarded() const { return play_.learner != IMP_LEARNER_FEEDBACK; }

  // One brain per pet.
  Result<> create_pets() {
    imp_brain_desc desc = imp_brain_desc_init();
    const std::uint32_t branch = kPetActions;
    desc.name = "pet";
    std::array<float, kPetObservations> scale;
    scale.fill(0.5f);
    desc.observation_count = kPetObservations;
    desc.observation_scale = scale.data();
    desc.goal_count = kCues;
    desc.branch_count = 1;
    desc.branch_sizes = &branch;
    desc.brain_count = static_cast<std::uint32_t>(agents_.size());
    imp_feedback_options options = imp_feedback_options_init();
    options.replay_capacity =
        std::min(options.replay_capacity, 64 * options.replay_capacity / desc.brain_count);
    options.learn_period_frames = play_.learn_frames;
    desc.learner = IMP_LEARNER_FEEDBACK;
    desc.header.next = &options;
    desc.seed = 1;
    desc.action_latency_frames = kLatencyFrames;
    return check("brain_create", api_.brain_create(context_, &desc, &brain_));
  }

  // One brain for all agents. SAC acts by continuous actions, the others by a choice.
  Result<> create_plain_brain() {
    imp_brain_desc desc = imp_brain_desc_init();
    const std::uint32_t branch = kPlainActions;
    desc.name = "plain";
    observation_count_ = desc.observation_count = kPlainObservations;
    if (play_.learner == IMP_LEARNER_SAC) {
      desc.continuous_count = kPlainContinuous;
    } else {
      desc.branch_count = 1;
      desc.branch_sizes = &branch;
    }
    desc.agents_per_brain = static_cast<std::uint32_t>(agents_.size());
    desc.learner = play_.learner;
    desc.seed = 1;
    desc.action_latency_frames = kLatencyFrames;
    return check("brain_create", api_.brain_create(context_, &desc, &brain_));
  }

  // Asks for the answer to the last observation, says its reward, and observes again.
  Result<> live_by_rewards(imp_agent agent, std::uint64_t moment) {
    if (moment != 0) return {};
    imp_action action = imp_action_init();
    IMPRINT_CHECK(ask(agent, action));
    if (frame_ > 2 * play_.decision_frames)
      IMPRINT_CHECK(check("agent_reward", api_.agent_reward(agent, noise_.next())));
    return check("agent_observe", api_.agent_observe(agent, observation_.data(), observation_count_));
  }

  Result<> live(imp_agent agent, std::uint64_t moment, double time_s) {
    if (rewarded()) return live_by_rewards(agent, moment);
    // For some frames, from the frame in which the answer is due.
    if ((moment + play_.decision_frames - kLatencyFrames) % play_.decision_frames <= 6) {
      imp_action action = imp_action_init();
      IMPRINT_CHECK(ask(agent, action));
    }
    if (moment == 0) {
      IMPRINT_CHECK(check("agent_observe", api_.agent_observe(agent, observation_.data(), kPetObservations)));
    }
    if (moment == 50 % play_.decision_frames) {
      imp_feedback feedback = imp_feedback_init();
      feedback.value = noise_.next() < 0.5f ? 1.0f : -1.0f;
      feedback.time_s = time_s;
      IMPRINT_CHECK(check("agent_feedback", api_.agent_feedback(agent, &feedback)));
    }
    return {};
  }

  // not_found: the pet has not asked yet.
  Result<> ask(imp_agent agent, imp_action& action) {
    const imp_result result = api_.agent_act(agent, &action);
    return result == IMP_ERROR_NOT_FOUND ? Result<>{} : check("agent_act", result);
  }

  const imp_api& api_;
  Play play_;
  imp_context context_{};
  imp_brain brain_{};
  std::vector<imp_agent> agents_;
  std::uint64_t frame_ = 0;
  Noise noise_;
  std::array<float, kPetObservations> observation_{};
  std::uint32_t observation_count_ = kPetObservations;
};

void wait_until(Clock::time_point moment, bool busy) {
  if (!busy) return std::this_thread::sleep_until(moment);
  while (Clock::now() < moment) {
  }
}

Result<BenchResult> run_frames(BenchDevice& device, const std::string& name, const Play& play) {
  const imp_api* api = nullptr;
  if (imp_get_api(IMP_ABI_VERSION, &api) != IMP_OK)
    return make_error(ErrorCode::unsupported, "libimprint does not serve this program's ABI version");
  Yard yard(*api, play);
  IMPRINT_CHECK(yard.open(device.name));

  // Costs of the frames that the row names. A frame's GPU time becomes known some frames later.
  std::vector<double> gpu, wall, cpu;
  std::array<std::vector<double>, std::size(kCalls)> calls;
  struct Cost {
    Moments moments{};
    double cpu_us = 0;
  };
  std::vector<Cost> costs(1);  // by frame number, from 1
  std::uint64_t seen = 0;
  auto next_frame = Clock::now();
  for (std::uint32_t i = 0; i < kWarmupFrames + play.frames; ++i) {
    next_frame += std::chrono::microseconds(1'000'000 / play.frames_per_second);
    const double cpu_start = thread_cpu_us();
    IMPRINT_ASSIGN(const Moments moments, yard.frame());
    const double cpu_us = thread_cpu_us() - cpu_start;
    IMPRINT_ASSIGN(const imp_context_stats stats, yard.stats());
    wait_until(next_frame, play.busy);
    costs.push_back({moments, cpu_us});
    const std::uint64_t measured = stats.measured_frame;
    if (measured == seen || measured <= kWarmupFrames) continue;
    seen = measured;
    const bool infers = stats.infer_gpu_us > 0, learns = stats.learn_gpu_us > 0;
    if (!play.every && (play.busy ? !(infers && learns) : play.learning ? !learns : !infers)) continue;
    gpu.push_back(static_cast<double>(stats.infer_gpu_us) + static_cast<double>(stats.learn_gpu_us));
    const Cost& cost = costs[measured];
    wall.push_back(us_between(cost.moments.front(), cost.moments.back()));
    for (std::size_t call = 0; call < calls.size(); ++call)
      calls[call].push_back(us_between(cost.moments[call], cost.moments[call + 1]));
    cpu.push_back(cost.cpu_us);
  }

  IMPRINT_ASSIGN(const imp_context_stats stats, yard.stats());
  IMPRINT_ASSIGN(const imp_brain_stats brain, yard.brain_stats());
  BenchResult result;
  result.name = name;
  if (gpu.empty()) return make_error(ErrorCode::internal, "no frame with such work was measured");
  result.samples_are = play.every      ? "frames with work"
                       : play.busy     ? "frames that inferred and ran a slice of learning"
                       : play.learning ? "frames that ran a slice of learning"
                                       : "frames that inferred";
  result.samples = gpu.size();
  result.gpu_us = spread(gpu);
  result.wall_us = spread(wall);
  result.frame_cpu_us = spread(cpu);
  for (std::size_t i = 0; i < calls.size(); ++i)
    result.calls.push_back({kCalls[i], spread(std::move(calls[i]))});
  result.dispatches = brain.infer_dispatches + (play.learning ? brain.learn_dispatches : 0);
  result.barriers = brain.infer_barriers + (play.learning ? brain.learn_barriers : 0);
  result.allocations = stats.frame_allocations;
  result.waits = stats.frame_waits;
  if (play.every) result.most_us = *std::ranges::max_element(gpu);
  if (play.learning && brain.minibatches == 0)
    return make_error(ErrorCode::internal, "no minibatch ran although learning was on");
  return result;
}

}  // namespace

std::vector<BenchCase> frame_cases() {
  std::vector<BenchCase> cases;
  for (const std::uint32_t pets : {1u, 64u}) {
    for (const bool learning : {false, true}) {
      const std::string name = "frame/" +
                               (pets == 1 ? std::string("pet") : "kennel-" + std::to_string(pets)) +
                               (learning ? "/learning-on" : "/learning-off");
      cases.push_back({name, [=](BenchDevice& device) {
                         return run_frames(device, name, {.pets = pets, .learning = learning});
                       }});
    }
  }
  // Frame times that a game can rely on: all frames count, cheap and expensive ones.
  for (const std::uint32_t pets : {1u, 64u}) {
    const std::string name =
        "frame/" + (pets == 1 ? std::string("pet") : "kennel-" + std::to_string(pets)) + "/every";
    cases.push_back({name, [=](BenchDevice& device) {
                       return run_frames(device, name, {.pets = pets, .frames = 1800, .every = true});
                     }});
  }
  // Learners of rewards, each with its own defaults and ten decisions per agent and second.
  struct Plain {
    const char* name;
    imp_learner learner;
    std::uint32_t agents;
  };
  for (const Plain& plain :
       {Plain{"dqn", IMP_LEARNER_DQN, 1}, {"sac", IMP_LEARNER_SAC, 1}, {"ppo-64", IMP_LEARNER_PPO, 64}}) {
    const std::string name = std::string("frame/") + plain.name + "/every";
    const Play play{
        .pets = plain.agents, .frames = 1800, .decision_frames = 6, .learner = plain.learner, .every = true};
    cases.push_back({name, [=](BenchDevice& device) { return run_frames(device, name, play); }});
  }
  // With caches as a game leaves them (1,000 frames per second), and with ticks in a row, like the
  // submissions of suite floor.
  for (const std::uint32_t per_second : {1000u, 4000u}) {
    const Play tick{.frames_per_second = per_second,
                    .frames = 4000,
                    .decision_frames = 2,
                    .learn_frames = 1,
                    .busy = true};
    const std::string name = per_second == 1000 ? "frame/pet/tick" : "frame/pet/tick-in-a-row";
    cases.push_back({name, [=](BenchDevice& device) { return run_frames(device, name, tick); }});
  }
  return cases;
}

}  // namespace imprint::tools
