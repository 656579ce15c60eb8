// A maze that needs memory. A sign at the entrance of a corridor says at which side of its end the cheese is;
// further on it is out of sight. PPO with a GRU remembers it, PPO without one guesses. 08-maze-with-memory
// [--window] [--help]

#include <algorithm>
#include <array>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint64_t kFrames = 12'000;
constexpr std::uint32_t kMice = 16, kLength = 8;
constexpr std::uint32_t kMostSteps = 3 * kLength;
constexpr std::uint32_t kWindow = 400;  // episodes per point of a curve

enum Choice : std::uint32_t { kOn = 0, kLeft = 1, kRight = 2 };

// Sees the sign (-1 left, 1 right, 0 none), whether it is in the corridor, whether it is at the fork.
struct Mouse {
  Agent agent;
  std::uint32_t place = 0, steps = 0;
  bool cheese_is_right = false;
  int last = 0;  // of the last episode: 1 cheese, -1 none

  std::array<float, 3> look() const {
    return {place == 0 ? (cheese_is_right ? 1.0f : -1.0f) : 0.0f, place < kLength ? 1.0f : 0.0f,
            place == kLength ? 1.0f : 0.0f};
  }
  // 1 for the cheese. A step that does not lead on costs a little.
  float step(std::uint32_t choice, bool& over) {
    ++steps;
    over = false;
    if (place < kLength) {
      if (choice == kOn) ++place;
      return choice == kOn ? 0.0f : -0.05f;
    }
    if (choice == kOn) return -0.05f;
    over = true;
    last = (choice == kRight) == cheese_is_right ? 1 : -1;
    return last > 0 ? 1.0f : 0.0f;
  }
};

// Mice that share a brain.
struct Family {
  Curve curve;
  bool remembers;
  Brain brain{};
  std::array<Mouse, kMice> mice{};
};

class Maze final : public Game {
 public:
  explicit Maze(std::uint64_t seed) : Game(seed), seed_(seed) {}

  Outcome open(Context& context) override {
    for (Family& family : families_) {
      BrainDesc desc = BrainDesc::of(PpoOptions(), 3, {3});
      desc.agents_per_brain = kMice;
      desc.seed = seed_;
      if (family.remembers) desc.network.cell = IMP_CELL_GRU;
      Made<Brain> brain = context.create_brain(desc);
      Made<std::vector<Agent>> agents = brain->create_agents(kMice);
      if (!agents) return agents.outcome;
      family.brain = std::move(*brain);
      for (std::uint32_t i = 0; i < kMice; ++i) {
        family.mice[i].agent = std::move((*agents)[i]);
        begin(family.mice[i]);
      }
    }
    return done();
  }

  void step(Frame& frame) override {
    for (Family& family : families_)
      for (Mouse& mouse : family.mice) {
        const Action action = frame.act(mouse.agent);
        if (action.is_new) {
          bool over = false;
          frame.keep(mouse.agent.reward(mouse.step(action.choices()[0], over)));
          if (over || mouse.steps == kMostSteps) end(frame, family, mouse, over);
        }
        if (action.wants_observation) frame.keep(mouse.agent.observe(mouse.look()));
      }
  }

  void draw(Canvas& canvas) const override {
    float left = 0.02f;
    for (const Family& family : families_) {
      canvas.text({left, 0.01f}, 0.035f, family.curve.name(), family.curve.colour());
      for (std::uint32_t i = 0; i < kMice; ++i)
        draw(canvas, family.mice[i], left, 0.06f + 0.058f * static_cast<float>(i));
      left += 0.5f;
    }
  }
  const char* axis() const override { return "share of episodes with cheese"; }
  std::vector<const Curve*> curves() const override { return {&families_[0].curve, &families_[1].curve}; }

 private:
  void begin(Mouse& mouse) {
    mouse.place = mouse.steps = 0;
    mouse.cheese_is_right = below(2) == 1;
  }
  void end(Frame& frame, Family& family, Mouse& mouse, bool terminated) {
    family.curve.add(terminated && mouse.last > 0 ? 1.0f : 0.0f);
    if (!terminated) frame.keep(mouse.agent.observe(mouse.look()));
    frame.keep(mouse.agent.end_episode(terminated ? EpisodeEnd::terminated : EpisodeEnd::truncated));
    begin(mouse);
  }

  // A corridor with its fork, the sign, the cheese and the mouse.
  static void draw(Canvas& canvas, const Mouse& mouse, float left, float top) {
    constexpr float kStep = 0.045f, kHigh = 0.02f;
    const float fork = left + kStep * kLength;
    canvas.box({left, top + kHigh / 2}, {kStep * (kLength + 0.7f), kHigh}, 0xe2dccb);
    canvas.box({fork, top - 0.006f}, {0.7f * kStep, 2.6f * kHigh}, 0xe2dccb);
    const float side = mouse.cheese_is_right ? 1.7f : -0.1f;
    canvas.disc({fork + 0.016f, top + side * kHigh + 0.003f}, 0.009f, kGold);
    if (mouse.place == 0) canvas.disc({left + 0.02f, top + side * kHigh + 0.003f}, 0.007f, kRed);
    canvas.disc({left + 0.02f + kStep * static_cast<float>(mouse.place), top + kHigh}, 0.012f, kInk);
    if (mouse.last != 0) canvas.disc({fork + 0.055f, top + kHigh}, 0.008f, mouse.last > 0 ? kGreen : kRed);
  }

  std::uint64_t seed_;
  // Guessing finds it in half of the episodes.
  std::array<Family, 2> families_ = {Family{{"with GRU", kBlue, kWindow, 0.8f}, true},
                                     Family{{"without", kGold, kWindow, 0.0f}, false}};
};

}  // namespace

int main(int argc, char** argv) {
  return arcade::play<Maze>({"08-maze-with-memory", "A maze that needs memory", kFrames}, argc, argv);
}
