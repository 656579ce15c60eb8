// A hovercraft that learns to steer. SAC chooses two numbers, thrust and rudder; the reward is the way
// towards the next buoy. 07-steering-body [--window] [--help]

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint64_t kFrames = 24'000;
constexpr float kPond = 2.0f, kReach = 0.3f;  // half the pond's side, and how near to a buoy counts
constexpr int kEpisode = 200;                 // steps until it is put somewhere else
constexpr float kGoal = 3.0f;                 // buoys per episode

struct Craft {
  float x = 0, y = 0, heading = 0;
  float speed_x = 0, speed_y = 0, turning = 0;
  float thrust = 0;

  // A tenth of a second. It slides: the air cushion hardly holds it.
  void steer(float thrust_now, float rudder) {
    constexpr float kSeconds = 0.1f;
    thrust = std::max(thrust_now, 0.0f);
    turning += (4.0f * rudder - 2.0f * turning) * kSeconds;
    heading = std::remainder(heading + turning * kSeconds, 2 * std::numbers::pi_v<float>);
    speed_x += (2.0f * thrust * std::cos(heading) - 0.8f * speed_x) * kSeconds;
    speed_y += (2.0f * thrust * std::sin(heading) - 0.8f * speed_y) * kSeconds;
    slide(x, speed_x, kSeconds);
    slide(y, speed_y, kSeconds);
  }

 private:
  // The shore throws it back.
  static void slide(float& place, float& speed, float seconds) {
    place += speed * seconds;
    if (std::fabs(place) <= kPond) return;
    place = std::copysign(kPond, place);
    speed = -0.3f * speed;
  }
};

class Pond final : public Game {
 public:
  explicit Pond(std::uint64_t seed) : Game(seed), seed_(seed) { begin(); }

  Outcome open(Context& context) override {
    BrainDesc desc;
    desc.learner = SacOptions();
    desc.observation_count = 6;
    desc.continuous_count = 2;
    desc.seed = seed_;
    Made<Brain> brain = context.create_brain(desc);
    Made<Agent> agent = brain->create_agent();
    if (!agent) return agent.outcome;
    brain_ = std::move(*brain);
    agent_ = std::move(*agent);
    return done();
  }

  void step(Frame& frame) override {
    const Action action = frame.act(agent_);
    if (action.is_new) {
      const float before = distance();
      craft_.steer(action.numbers()[0], action.numbers()[1]);
      float reward = before - distance();
      if (distance() < kReach) {
        reward += 1;
        ++reached_;
        place_buoy();
      }
      frame.keep(agent_.reward(reward));
      if (++steps_ == kEpisode) {  // cut off from outside: the last state is told too
        frame.keep(agent_.observe(look()));
        frame.keep(agent_.end_episode(EpisodeEnd::truncated));
        begin();
      }
    }
    if (action.wants_observation) frame.keep(agent_.observe(look()));
  }

  void draw(Canvas& canvas) const override {
    const auto place = [](float x, float y) {
      return Point{0.5f + 0.46f * x / kPond, 0.5f + 0.46f * y / kPond};
    };
    canvas.box({0.02f, 0.02f}, {0.96f, 0.96f}, 0xcfe3ea);
    canvas.disc(place(buoy_x_, buoy_y_), 0.46f * kReach / kPond, 0xf3c9cf);
    canvas.disc(place(buoy_x_, buoy_y_), 0.02f, kRed);
    const float ahead_x = std::cos(craft_.heading), ahead_y = std::sin(craft_.heading);
    const auto point = [&](float forward, float aside) {
      return place(craft_.x + forward * ahead_x - aside * ahead_y,
                   craft_.y + forward * ahead_y + aside * ahead_x);
    };
    canvas.line(point(-0.15f, 0), point(-0.15f - 0.3f * craft_.thrust, 0), 0.02f, kGold);
    canvas.line(point(-0.14f, -0.09f), point(0.2f, 0), 0.02f, kInk);
    canvas.line(point(-0.14f, 0.09f), point(0.2f, 0), 0.02f, kInk);
    canvas.line(point(-0.14f, -0.09f), point(-0.14f, 0.09f), 0.02f, kInk);
  }
  const char* axis() const override { return "buoys reached per episode of 20 seconds"; }
  std::vector<const Curve*> curves() const override { return {&curve_}; }

 private:
  float distance() const { return std::hypot(buoy_x_ - craft_.x, buoy_y_ - craft_.y); }
  void place_buoy() {
    do {
      buoy_x_ = uniform(-0.9f * kPond, 0.9f * kPond);
      buoy_y_ = uniform(-0.9f * kPond, 0.9f * kPond);
    } while (distance() < 1);
  }
  void begin() {
    if (steps_ > 0) curve_.add(static_cast<float>(reached_));
    craft_ = {};
    craft_.heading = uniform(-3.0f, 3.0f);
    place_buoy();
    steps_ = reached_ = 0;
  }
  // The buoy and the way, as seen from the craft.
  std::array<float, 6> look() const {
    const float ahead_x = std::cos(craft_.heading), ahead_y = std::sin(craft_.heading);
    const float x = buoy_x_ - craft_.x, y = buoy_y_ - craft_.y, far = distance() + 1e-3f;
    return {(x * ahead_x + y * ahead_y) / far,
            (y * ahead_x - x * ahead_y) / far,
            far / kPond,
            craft_.speed_x * ahead_x + craft_.speed_y * ahead_y,
            craft_.speed_y * ahead_x - craft_.speed_x * ahead_y,
            craft_.turning};
  }

  std::uint64_t seed_;
  Brain brain_;
  Agent agent_;
  Craft craft_;
  float buoy_x_ = 0, buoy_y_ = 0;
  int steps_ = 0, reached_ = 0;
  Curve curve_{"SAC", kBlue, 4, kGoal};
};

}  // namespace

int main(int argc, char** argv) {
  return arcade::play<Pond>({"07-steering-body", "A hovercraft that learns to steer", kFrames}, argc, argv);
}
