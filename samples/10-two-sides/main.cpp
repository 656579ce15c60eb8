// Chasers and runners learn from each other, one brain each. In a third of the arenas for learning both
// learn. In the others one side acts by older weights of its brain, so that the other does not forget how to
// beat them (self-play). In the last arenas each side meets a rule, so that the curves show how good it is: a
// runner that runs straight away, a chaser that goes straight for its prey. 10-two-sides [--window] [--help]

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint64_t kFrames = 30'000;
constexpr std::uint32_t kArenas = 16, kShared = 12;           // the others: half for each side to be judged
constexpr std::uint32_t kDirections = 8, kWindow = 60;        // episodes per point of a curve
constexpr float kChase = 0.1f, kRun = 0.11f, kCatch = 0.15f;  // steps; half of an arena's side is 1
constexpr int kEpisode = 60;

struct Arena {
  std::array<Point, 2> at{};  // chaser, runner
  std::array<std::uint32_t, 2> choice{};
  int steps = 0;

  float distance() const { return std::hypot(at[0].x - at[1].x, at[0].y - at[1].y); }
  void move(std::size_t side, std::uint32_t direction) {
    const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(direction) / kDirections,
                step = side == 0 ? kChase : kRun;
    Point& body = at[side];
    body = {std::clamp(body.x + step * std::cos(angle), -1.0f, 1.0f),
            std::clamp(body.y + step * std::sin(angle), -1.0f, 1.0f)};
  }
  // Own place, the way to the other, how near it is, the time that is left.
  std::array<float, 6> look(std::size_t side) const {
    const Point own = at[side], other = at[1 - side];
    const float left = 1 - static_cast<float>(steps) / kEpisode;
    return {own.x, own.y, other.x - own.x, other.y - own.y, distance(), left};
  }
  // The direction straight for the other.
  std::uint32_t straight(std::size_t side) const {
    const float turns = std::atan2(look(side)[3], look(side)[2]) / (2 * std::numbers::pi_v<float>);
    return static_cast<std::uint32_t>(std::lround(turns * kDirections + kDirections)) % kDirections;
  }
};

class TwoSides final : public Game {
 public:
  explicit TwoSides(std::uint64_t seed) : Game(seed), seed_(seed) {
    for (Arena& arena : arenas_) begin(arena);
  }

  Outcome open(Context& context) override {
    for (std::size_t side = 0; side < 2; ++side) {
      BrainDesc desc = BrainDesc::of(PpoOptions(), 6, {kDirections});
      desc.agents_per_brain = kArenas, desc.action_latency_frames = 1;
      desc.seed = seed_ + side;
      desc.self_play.emplace().pool_size = 2;
      Made<Brain> brain = context.create_brain(desc);
      if (!brain) return brain.outcome;
      for (std::uint32_t i = 0; i < kArenas; ++i) {
        if (!plays(i, side)) continue;
        Made<Agent> agent = brain->create_agent();
        if (agent && i >= kShared) agent.outcome = agent->set_mode(Mode::inference);
        if (agent && stands_in(i, side)) agent.outcome = agent->set_opponent().outcome;
        if (!agent) return agent.outcome;
        agents_[i][side] = std::move(*agent);
      }
      brains_[side] = std::move(*brain);
    }
    return done();
  }

  void step(Frame& frame) override {
    for (std::uint32_t i = 0; i < kArenas; ++i) {
      bool moves = true, waits = false;
      for (std::size_t side = 0; side < 2; ++side) {
        if (!plays(i, side)) continue;
        const Action action = frame.act(agents_[i][side]);
        moves &= action.is_new;  // both sides asked in the same frame
        waits |= !action.wants_observation;
        if (action.is_new) arenas_[i].choice[side] = action.choices()[0];
      }
      if (moves) move(frame, i);
      for (std::size_t side = 0; side < 2 && !waits; ++side)
        if (plays(i, side)) frame.keep(agents_[i][side].observe(arenas_[i].look(side)));
    }
  }

  void draw(Canvas& canvas) const override {
    for (std::uint32_t i = 0; i < kArenas; ++i) {
      const float left = 0.02f + 0.245f * static_cast<float>(i % 4),
                  top = 0.02f + 0.245f * static_cast<float>(i / 4);
      canvas.box({left, top}, {0.225f, 0.225f}, i < kShared ? 0xe2ead9 : 0xe2dccb);
      for (const Point& body : arenas_[i].at)
        canvas.disc({left + 0.1125f + 0.1f * body.x, top + 0.1125f + 0.1f * body.y}, 0.012f,
                    &body == arenas_[i].at.data() ? kRed : kBlue);
    }
  }
  const char* axis() const override { return "episodes won against a rule"; }
  std::vector<const Curve*> curves() const override { return {&won_[0], &won_[1]}; }

 private:
  // In the arenas for judging the other side is a rule.
  static bool plays(std::uint32_t i, std::size_t side) { return i < kShared || i % 2 == side; }
  // By an entry of its brain's pool, or by its newest weights.
  static bool stands_in(std::uint32_t i, std::size_t side) { return i < kShared && i % 3 == 1 + side; }
  void begin(Arena& arena) {
    arena = {};
    while (arena.distance() < 0.5f)
      for (Point& body : arena.at) body = {uniform(-1, 1), uniform(-1, 1)};
  }

  void move(Frame& frame, std::uint32_t index) {
    Arena& arena = arenas_[index];
    if (!plays(index, 0)) arena.choice[0] = arena.straight(0);
    if (!plays(index, 1)) arena.choice[1] = (arena.straight(1) + kDirections / 2) % kDirections;
    const float before = arena.distance();
    for (std::size_t side = 0; side < 2; ++side) arena.move(side, arena.choice[side]);
    const bool caught = arena.distance() < kCatch, over = ++arena.steps == kEpisode || caught;
    const float chased = before - arena.distance() + (!over ? 0.0f : caught ? 1.0f : -1.0f);
    for (std::size_t side = 0; side < 2; ++side) {
      if (!plays(index, side)) continue;
      Agent& agent = agents_[index][side];
      const float won = caught == (side == 0) ? 1.0f : 0.0f;
      frame.keep(agent.reward(side == 0 ? chased : -chased));
      if (!over) continue;
      if (index >= kShared) won_[side].add(won);
      // The time that is left is seen, so the end of it is no cut.
      frame.keep(agent.end_episode(EpisodeEnd::terminated));
      if (!stands_in(index, side)) continue;
      frame.keep(agents_[index][1 - side].report_match(agent, 1 - won));
      frame.keep(agent.set_opponent().outcome);
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
  return arcade::play<TwoSides>({"10-two-sides", "Chasers and runners", kFrames}, argc, argv);
}
