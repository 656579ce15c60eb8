// Bodies on one brain learn their way with the defaults of a learner: the host names the learner, the sizes
// and the rewards, and nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

enum class Host { on_cpu, submits, records };

struct Crowd {
  std::uint32_t bodies = 16, directions = 8;
  bool one_hot = false;  // else the wished direction's cosine and sine
};

// One body: it is told a direction, takes one, and earns the cosine of the angle between the two.
class Walk {
 public:
  Walk(const Crowd& crowd, std::uint32_t body) : crowd_(crowd), random_(body * 7919u + 1) { wish(); }

  std::vector<float> look() const {
    if (crowd_.one_hot) {
      std::vector<float> seen(crowd_.directions, 0.0f);
      seen[wished_] = 1;
      return seen;
    }
    return {static_cast<float>(std::cos(angle(wished_))), static_cast<float>(std::sin(angle(wished_)))};
  }
  float step(std::uint32_t taken) {
    const auto worth = static_cast<float>(std::cos(angle(taken) - angle(wished_)));
    wish();
    return worth;
  }

 private:
  double angle(std::uint32_t direction) const { return 2 * std::numbers::pi * direction / crowd_.directions; }
  void wish() { wished_ = ((random_ = random_ * 1664525u + 1013904223u) >> 8) % crowd_.directions; }

  Crowd crowd_;
  std::uint32_t random_, wished_ = 0;
};

struct Outcomes {
  std::vector<double> worth;  // per frame that had steps: the mean of its steps
  imp_brain_stats stats = imp_brain_stats_init();
  std::vector<std::string> log;

  double end(std::size_t frames) const {
    const auto first = worth.end() - static_cast<std::ptrdiff_t>(std::min(frames, worth.size()));
    return std::accumulate(first, worth.end(), 0.0) / static_cast<double>(worth.end() - first);
  }
};

class CrowdLesson {
 public:
  CrowdLesson(Host way, const Crowd& crowd) : way_(way), crowd_(crowd) {}

  template <class Options>
  Outcomes learn(const Options& options, int frames) {
    [&] { ASSERT_NO_FATAL_FAILURE(open(options)); }();
    for (int i = 0; i < frames && !testing::Test::HasFatalFailure(); ++i)
      [&] { ASSERT_NO_FATAL_FAILURE(frame()); }();
    outcomes_.stats = brain_.stats().value;
    if (host_) host_->wait_idle();
    EXPECT_OUTCOME(context_.close());
    if (host_) EXPECT_EQ(host_->messages(), 0u) << host_->first_message();
    return outcomes_;
  }

 private:
  template <class Options>
  void open(const Options& options) {
    imp_host host = imp_host_init();
    host.user = &outcomes_.log;
    host.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<std::vector<std::string>*>(user)->emplace_back(text);
    };
    const Library library(imp_get_api);
    Made<Context> context;
    if (way_ == Host::on_cpu) {
      StandaloneDesc device;
      device.device = "cpu";
      context = Context::create_standalone(library, device, host);
    } else {
      host_ = std::make_unique<PlainHost>(HostProfile{"new", VK_API_VERSION_1_3, true});
      ASSERT_TRUE(host_->ok());
      side_ = std::make_unique<Side>(*host_);
      device_ = host_->describe();
      const Way access = way_ == Host::records ? Way::record : Way::lock;
      context = Context::create(library, info_of(device_, *side_, access), host);
    }
    ASSERT_TRUE(context) << context.outcome.message();
    context_ = std::move(*context);
    const auto seen = static_cast<std::uint32_t>(Walk(crowd_, 0).look().size());
    Made<Brain> brain =
        context_.create_brain(BrainDesc::of(options, seen, {crowd_.directions}, crowd_.bodies));
    ASSERT_TRUE(brain) << brain.outcome.message();
    brain_ = std::move(*brain);
    Made<std::vector<Agent>> agents = brain_.create_agents(crowd_.bodies);
    ASSERT_TRUE(agents) << agents.outcome.message();
    agents_ = std::move(*agents);
    for (std::uint32_t body = 0; body < crowd_.bodies; ++body) walks_.emplace_back(crowd_, body);
    ASSERT_WORKS(context_.warmup());
    if (way_ == Host::records) send(FrameScope::warmup, false);
  }
  void frame() { send(FrameScope::frame, true); }
  void send(FrameScope scope, bool plays) {
    const imp_frame_info now = clock_.next(1.0 / 60);
    const VkCommandBuffer commands = host_ ? host_->begin_frame(now.frame) : VK_NULL_HANDLE;
    Frame frame(context_, now);
    if (plays) play(frame);
    if (way_ == Host::records)
      frame.record(commands, scope);
    else
      frame.submit(scope);
    ASSERT_WORKS(frame.end());
    if (host_) host_->end_frame();
  }
  void play(Frame& frame) {
    double sum = 0;
    int steps = 0;
    for (std::size_t body = 0; body < agents_.size(); ++body) {
      const Action action = frame.act(agents_[body]);
      if (action.is_new) {
        const float worth = walks_[body].step(action.choices()[0]);
        sum += double{worth};
        ++steps;
        frame.keep(agents_[body].reward(worth));
      }
      if (action.wants_observation) frame.keep(agents_[body].observe(walks_[body].look()));
    }
    if (steps > 0) outcomes_.worth.push_back(sum / steps);
  }

  Host way_;
  Crowd crowd_;
  std::unique_ptr<PlainHost> host_;
  std::unique_ptr<Side> side_;
  imprint::vk::DeviceDescription device_;
  Outcomes outcomes_;
  Context context_;
  Brain brain_;
  std::vector<Agent> agents_;
  std::vector<Walk> walks_;
  Frames clock_{PlainHost::kFramesInFlight};
};

constexpr int kFrames = 1500;
constexpr std::size_t kLast = 100;  // frames with steps, every second one, that count as the end

std::string sizes_of(const Crowd& crowd) {
  return std::to_string(crowd.bodies) + " bodies, " + std::to_string(crowd.directions) + " directions" +
         (crowd.one_hot ? ", one-hot" : "");
}

// Nothing of what the crowd does is late or lost, and a step is worth at least `worth` at the end.
template <class Options>
void expect_learned(const char* learner, Host way, const Crowd& crowd, double worth = 0.8) {
  SCOPED_TRACE(sizes_of(crowd));
  const Outcomes outcomes = CrowdLesson(way, crowd).learn(Options(), kFrames);
  if (testing::Test::HasFatalFailure()) return;
  std::printf("  %s, %s: worth of a step %.3f\n", learner, sizes_of(crowd).c_str(), outcomes.end(kLast));
  EXPECT_GE(outcomes.worth.size(), 700u) << "an answer takes two frames";
  EXPECT_GE(outcomes.end(kLast), worth);
  EXPECT_EQ(outcomes.stats.late_actions, 0u);
  EXPECT_EQ(outcomes.stats.dropped_samples, 0u);
  EXPECT_EQ(outcomes.stats.uncredited, 0u);
  EXPECT_TRUE(outcomes.log.empty()) << outcomes.log.front();
}

class Sixteen : public testing::TestWithParam<Host> {};

TEST_P(Sixteen, LearnByFeedback) { expect_learned<FeedbackOptions>("feedback", GetParam(), {}); }
TEST_P(Sixteen, LearnByDqn) { expect_learned<DqnOptions>("DQN", GetParam(), {}); }
TEST_P(Sixteen, LearnByPpo) { expect_learned<PpoOptions>("PPO", GetParam(), {}); }

std::string name_of(const testing::TestParamInfo<Host>& way) {
  const char* const names[] = {"OnCpu", "Submitting", "Recording"};
  return names[static_cast<int>(way.param)];
}
INSTANTIATE_TEST_SUITE_P(Bodies, Sixteen, testing::Values(Host::on_cpu, Host::submits, Host::records),
                         name_of);

// Other sizes and another view of the same kind of task. PPO needs more than one body: alone it has learned
// from one rollout by then.
const Crowd kOthers[] = {{16, 8, true}, {8, 4, false}, {8, 4, true}};
const Crowd kAlone[] = {{1, 16, false}, {1, 16, true}};

template <class Options>
void expect_learned_by_others(const char* learner, bool alone) {
  for (const Crowd& crowd : kOthers) expect_learned<Options>(learner, Host::on_cpu, crowd);
  if (!alone) return;
  for (const Crowd& crowd : kAlone) expect_learned<Options>(learner, Host::on_cpu, crowd);
}
TEST(OtherCrowds, LearnByFeedback) { expect_learned_by_others<FeedbackOptions>("feedback", true); }
TEST(OtherCrowds, LearnByDqn) { expect_learned_by_others<DqnOptions>("DQN", true); }
TEST(OtherCrowds, LearnByPpo) { expect_learned_by_others<PpoOptions>("PPO", false); }

}  // namespace
