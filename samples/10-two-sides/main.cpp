// Two sides that learn from each other: chasers and runners, one brain each. Most arenas are for learning. In
// the others each side meets a rule instead, so that the curves show how good it is: a runner that runs
// straight away, a chaser that goes straight for its prey. 10-two-sides [--window] [--help]

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint64_t kFrames = 30'000;
constexpr std::uint32_t kArenas = 16, kShared = 12;  // the others: half for each side to be judged
constexpr std::uint32_t kDirections = 8;
constexpr float kChase = 0.1f, kRun = 0.11f, kCatch = 0.15f;  // steps; half of an arena's side is 1
constexpr int kEpisode = 60;
constexpr std::uint32_t kWindow = 60;  // episodes per point of a curve

struct Arena {
  std::array<Point, 2> at{};  // chaser, runner
  std::array<std::uint32_t, 2> choice{};
  int steps = 0;

  bool caught() const { return distance() < kCatch; }
  float distance() const { return std::hypot(at[0].x - at[1].x, at[0].y - at[1].y); }
  void move(int side, std::uint32_t direction) {
    const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(direction) / kDirections;
    const float step = side == 0 ? kChase : kRun;
    Point& body = at[static_cast<std::size_t>(side)];
    body.x = std::clamp(body.x + step * std::cos(angle), -1.0f, 1.0f);
    body.y = std::clamp(body.y + step * std::sin(angle), -1.0f, 1.0f);
  }
  // Own place, the way to the other, how near it is, the time that is left.
  std::array<float, 6> look(int side) const {
    const Point own = at[static_cast<std::size_t>(side)], other = at[static_cast<std::size_t>(1 - side)];
    return {own.x,           own.y,      other.x - own.x,
            other.y - own.y, distance(), 1 - static_cast<float>(steps) / kEpisode};
  }
  // The direction straight for the other.
  std::uint32_t straight(int side) const {
    const std::array<float, 6> seen = look(side);
    const float turns = std::atan2(seen[3], seen[2]) / (2 * std::numbers::pi_v<float>);
    return static_cast<std::uint32_t>(std::lround(turns * kDirections) + static_cast<long>(kDirections)) %
           kDirections;
  }
};

class TwoSides final : public Game {
 public:
  explicit TwoSides(std::uint64_t seed) : Game(seed), seed_(seed) {
    for (Arena& arena : arenas_) begin(arena);
  }

  Outcome open(Context& context) override {
    for (int side = 0; side < 2; ++side) {
      BrainDesc desc = BrainDesc::of(PpoOptions(), 6, {kDirections});
      desc.agents_per_brain = kArenas;
      desc.seed = seed_ + static_cast<std::uint64_t>(side);
      Made<Brain> brain = context.create_brain(desc);
      if (!brain) return brain.outcome;
      for (std::uint32_t i = 0; i < kArenas; ++i) {
        if (!plays(i, side)) continue;
        Made<Agent> agent = brain->create_agent();
        if (agent && i >= kShared) agent.outcome = agent->set_mode(Mode::inference);
        if (!agent) return agent.outcome;
        agents_[i][at(side)] = std::move(*agent);
      }
      brains_[at(side)] = std::move(*brain);
    }
    return done();
  }

  void step(Frame& frame) override {
    for (std::uint32_t i = 0; i < kArenas; ++i) {
      Arena& arena = arenas_[i];
      bool moves = true, waits = false;
      for (int side = 0; side < 2; ++side) {
        if (!plays(i, side)) continue;
        const Action action = frame.act(agents_[i][at(side)]);
        moves = moves && action.is_new;  // both sides asked in the same frame
        waits = waits || !action.wants_observation;
        if (action.is_new) arena.choice[at(side)] = action.choices()[0];
      }
      if (moves) move(frame, i);
      for (int side = 0; side < 2 && !waits; ++side)
        if (plays(i, side)) frame.keep(agents_[i][at(side)].observe(arena.look(side)));
    }
  }

  void draw(Canvas& canvas) const override {
    for (std::uint32_t i = 0; i < kArenas; ++i) {
      const float left = 0.02f + 0.245f * static_cast<float>(i % 4),
                  top = 0.02f + 0.245f * static_cast<float>(i / 4);
      canvas.box({left, top}, {0.225f, 0.225f}, i < kShared ? 0xe2ead9 : 0xe2dccb);
      for (int side = 0; side < 2; ++side) {
        const Point body = arenas_[i].at[at(side)];
        canvas.disc({left + 0.1125f + 0.1f * body.x, top + 0.1125f + 0.1f * body.y},
                    side == 0 ? 0.014f : 0.011f, side == 0 ? kRed : kBlue);
      }
    }
  }
  const char* axis() const override { return "episodes won against a rule"; }
  std::vector<const Curve*> curves() const override { return {&won_[0], &won_[1]}; }

 private:
  static constexpr std::size_t at(int side) { return static_cast<std::size_t>(side); }
  // In the arenas for judging the other side is a rule.
  static bool plays(std::uint32_t arena, int side) {
    return arena < kShared || (arena % 2 == 0) == (side == 0);
  }
  void begin(Arena& arena) {
    arena.steps = 0;
    do {
      for (Point& body : arena.at) body = {uniform(-1, 1), uniform(-1, 1)};
    } while (arena.distance() < 0.5f);
  }

  void move(Frame& frame, std::uint32_t index) {
    Arena& arena = arenas_[index];
    if (!plays(index, 0)) arena.choice[0] = arena.straight(0);
    if (!plays(index, 1)) arena.choice[1] = (arena.straight(1) + kDirections / 2) % kDirections;
    const float before = arena.distance();
    for (int side = 0; side < 2; ++side) arena.move(side, arena.choice[at(side)]);
    ++arena.steps;
    const bool caught = arena.caught(), over = caught || arena.steps == kEpisode;
    float chased = before - arena.distance();
    if (over) chased += caught ? 1.0f : -1.0f;
    for (int side = 0; side < 2; ++side) {
      if (!plays(index, side)) continue;
      Agent& agent = agents_[index][at(side)];
      frame.keep(agent.reward(side == 0 ? chased : -chased));
      // The time that is left is seen, so the end of it is no cut.
      if (over) frame.keep(agent.end_episode(EpisodeEnd::terminated));
      if (over && index >= kShared) won_[at(side)].add(caught == (side == 0) ? 1.0f : 0.0f);
    }
    if (over) begin(arena);
  }

  std::uint64_t seed_;
  std::array<Brain, 2> brains_;
  std::array<std::array<Agent, 2>, kArenas> agents_;
  std::array<Arena, kArenas> arenas_;
  std::array<Curve, 2> won_ = {Curve{"chaser", kRed, kWindow, 0.6f}, Curve{"runner", kBlue, kWindow, 0.25f}};
};

}  // namespace

int main(int argc, char** argv) {
  return arcade::play<TwoSides>({"10-two-sides", "Two sides that learn from each other", kFrames}, argc,
                                argv);
}
