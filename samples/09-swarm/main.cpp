// A swarm in which each fish sees those near it: none, or up to eight, friends and pikes. The network takes
// them as a set, in any order and number. A fish is paid for swimming away from the nearest pike and, when
// none is in sight, for staying with its friends. 09-swarm [--window] [--help]

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint64_t kFrames = 9'000;
constexpr std::uint32_t kFish = 24, kPikes = 3, kMostSeen = 8, kFeatures = 3, kDirections = 8;
constexpr float kSight = 0.3f, kStep = 0.012f, kPikeStep = 0.006f;
constexpr float kApart = 0.1f;            // of friends
constexpr std::uint32_t kWindow = 4'000;  // steps of all fish per point of the curve

struct Fish {
  Agent agent{};
  Point at{};
  float heading = 0;
};

class Swarm final : public Game {
 public:
  explicit Swarm(std::uint64_t seed) : Game(seed), seed_(seed) {
    for (Fish& fish : fish_) fish.at = anywhere();
    for (Fish& pike : pikes_) pike.at = anywhere(), pike.heading = uniform(-3, 3);
  }

  Outcome open(Context& context) override {
    const std::array<imp_stream, 1> streams = {entity_stream(kMostSeen, kFeatures)};
    BrainDesc desc = BrainDesc::of(PpoOptions(), 1 + kMostSeen * kFeatures, {kDirections});
    desc.network.set_streams(streams);
    desc.agents_per_brain = kFish;
    desc.seed = seed_;
    PpoOptions options;
    options.discount = 0.5f;  // what a step is worth shows at once
    desc.learner = options;
    Made<Brain> brain = context.create_brain(desc);
    Made<std::vector<Agent>> agents = brain->create_agents(kFish);
    if (!agents) return agents.outcome;
    brain_ = std::move(*brain);
    for (std::uint32_t i = 0; i < kFish; ++i) fish_[i].agent = std::move((*agents)[i]);
    return done();
  }

  void step(Frame& frame) override {
    for (Fish& pike : pikes_) {
      pike.heading += uniform(-0.2f, 0.2f);
      swim(pike, kPikeStep);
    }
    for (Fish& fish : fish_) {
      const Action action = frame.act(fish.agent);
      if (action.is_new) {
        fish.heading = 2 * std::numbers::pi_v<float> * static_cast<float>(action.choices()[0]) / kDirections;
        const float reward = swim_and_judge(fish);
        curve_.add(reward > 0 ? 1.0f : 0.0f);
        frame.keep(fish.agent.reward(reward));
      }
      if (action.wants_observation) frame.keep(fish.agent.observe(look(fish)));
    }
  }

  void draw(Canvas& canvas) const override {
    canvas.box({0.02f, 0.02f}, {0.96f, 0.96f}, 0xcfe3ea);
    const auto place = [](Point at) { return Point{0.02f + 0.96f * at.x, 0.02f + 0.96f * at.y}; };
    const auto body = [&](const Fish& fish, float size, std::uint32_t colour) {
      const Point at = place(fish.at);
      canvas.disc(at, size, colour);
      canvas.line(at, {at.x - 2 * size * std::cos(fish.heading), at.y - 2 * size * std::sin(fish.heading)},
                  size, colour);
    };
    for (const Fish& pike : pikes_) body(pike, 0.022f, kRed);
    for (const Fish& fish : fish_) body(fish, 0.01f, kInk);
  }
  const char* axis() const override { return "share of steps that led the right way"; }
  std::vector<const Curve*> curves() const override { return {&curve_}; }

 private:
  Point anywhere() { return {uniform(0, 1), uniform(0, 1)}; }
  // The pond has no shore: who leaves it at one side comes back at the other.
  static void swim(Fish& fish, float step) {
    fish.at.x = std::fmod(fish.at.x + step * std::cos(fish.heading) + 1, 1.0f);
    fish.at.y = std::fmod(fish.at.y + step * std::sin(fish.heading) + 1, 1.0f);
  }
  static Point way(const Fish& from, const Fish& to) {
    return {std::remainder(to.at.x - from.at.x, 1.0f), std::remainder(to.at.y - from.at.y, 1.0f)};
  }
  static float distance(const Fish& from, const Fish& to) {
    const Point there = way(from, to);
    return std::hypot(there.x, there.y);
  }
  // Null: none in sight.
  template <std::size_t kCount>
  static const Fish* nearest(const Fish& to, const std::array<Fish, kCount>& of) {
    const Fish* found = nullptr;
    for (const Fish& each : of)
      if (&each != &to && distance(to, each) < (found ? distance(to, *found) : kSight)) found = &each;
    return found;
  }

  float swim_and_judge(Fish& fish) {
    const Fish* const pike = nearest(fish, pikes_);
    const Fish* const other = pike ? pike : nearest(fish, fish_);
    // How far it is from where it should be.
    const auto astray = [&] {
      return pike ? -distance(fish, *pike) : std::fabs(distance(fish, *other) - kApart);
    };
    const float before = other ? astray() : 0;
    swim(fish, kStep);
    return other ? (before - astray()) / kStep : 0.5f;  // alone any way is as good
  }

  // How many are in sight, then place and kind of each.
  std::array<float, 1 + kMostSeen * kFeatures> look(const Fish& fish) const {
    std::array<float, 1 + kMostSeen * kFeatures> seen{};
    std::uint32_t count = 0;
    const auto see = [&](const Fish& other, float kind) {
      if (&other == &fish || count == kMostSeen || distance(fish, other) >= kSight) return;
      const Point there = way(fish, other);
      const std::array<float, kFeatures> row = {there.x / kSight, there.y / kSight, kind};
      std::ranges::copy(row, seen.begin() + 1 + count++ * kFeatures);
    };
    for (const Fish& pike : pikes_) see(pike, 1);
    for (const Fish& other : fish_) see(other, -1);
    seen[0] = static_cast<float>(count);
    return seen;
  }

  std::uint64_t seed_;
  Brain brain_;
  std::array<Fish, kFish> fish_;
  std::array<Fish, kPikes> pikes_;
  Curve curve_{"PPO with a set", kBlue, kWindow, 0.65f};
};

}  // namespace

int main(int argc, char** argv) {
  return arcade::play<Swarm>({"09-swarm", "A swarm that flees pikes", kFrames}, argc, argv);
}
