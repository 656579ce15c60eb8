// An enemy that adapts to its player. The player strikes by habit: four times in five the next of six moves
// follows from the last one. Three enemies, one for each learner, must parry it. In the middle of the game
// the player takes up another habit. 06-adaptive-enemy [--window] [--help]

#include <algorithm>
#include <array>
#include <numeric>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint32_t kMoves = 6;
constexpr std::uint64_t kFrames = 24'000, kNewHabit = kFrames / 2;
constexpr std::uint32_t kWindow = 200;  // decisions per point of a curve
// Share of parried blows; the best there is: 0.8 + 0.2 / 6. PPO learns from each blow once, then forgets it.
constexpr float kGoal = 0.6f, kPpoGoal = 0.35f;

// The player, as one enemy meets it. The enemy sees the last move, and two numbers that say nothing.
struct Player {
  std::uint32_t last = 0;
  float distance = 0, stamina = 0;
  bool was_parried = false;

  std::array<float, kMoves + 2> look() const {
    std::array<float, kMoves + 2> seen{};
    seen[last] = 1;
    seen[kMoves] = distance;
    seen[kMoves + 1] = stamina;
    return seen;
  }
};

class Duel final : public Game {
 public:
  explicit Duel(std::uint64_t seed) : Game(seed), seed_(seed) { take_up_a_habit(); }

  Outcome open(Context& context) override {
    const std::array<Learner, kEnemies> learners = {BanditOptions(), DqnOptions(), PpoOptions()};
    for (std::size_t i = 0; i < kEnemies; ++i) {
      BrainDesc desc = BrainDesc::of(learners[i], kMoves + 2, {kMoves});
      desc.seed = seed_;
      Made<Brain> brain = context.create_brain(desc);
      Made<Agent> agent = brain->create_agent();
      if (!agent) return agent.outcome;
      enemies_[i].brain = std::move(*brain);
      enemies_[i].agent = std::move(*agent);
    }
    return done();
  }

  void step(Frame& frame) override {
    if (++frame_ == kNewHabit) take_up_a_habit();
    for (Enemy& enemy : enemies_) {
      const Action action = frame.act(enemy.agent);
      if (action.is_new) {
        enemy.parried = action.choices()[0];
        frame.keep(enemy.agent.reward(strike(enemy)));
      }
      if (action.wants_observation) frame.keep(enemy.agent.observe(enemy.player.look()));
    }
  }

  void draw(Canvas& canvas) const override {
    for (std::size_t i = 0; i < kEnemies; ++i)
      draw(canvas, enemies_[i], 0.14f + 0.29f * static_cast<float>(i));
    canvas.text({0.05f, 0.95f}, 0.035f,
                frame_ < kNewHabit ? "the player's first habit" : "the player's second habit", kInk);
  }
  const char* axis() const override { return "parried blows; the habit changes in the middle"; }
  std::vector<const Curve*> curves() const override {
    return {&enemies_[0].curve, &enemies_[1].curve, &enemies_[2].curve};
  }

 private:
  static constexpr std::size_t kEnemies = 3;
  struct Enemy {
    Curve curve;
    Player player{};
    Brain brain{};
    Agent agent{};
    std::uint32_t parried = 0;
  };

  void take_up_a_habit() {
    const std::array<std::uint32_t, kMoves> before = habit_;
    std::iota(habit_.begin(), habit_.end(), 0u);
    do {
      for (std::uint32_t i = kMoves - 1; i > 0; --i) std::swap(habit_[i], habit_[below(i + 1)]);
    } while (habit_ == before);
  }

  // The player's blow. 1 if the enemy parried it, -1 if not.
  float strike(Enemy& enemy) {
    Player& player = enemy.player;
    player.last = uniform(0, 1) < 0.8f ? habit_[player.last] : below(kMoves);
    player.was_parried = player.last == enemy.parried;
    player.distance = uniform(-1, 1);
    player.stamina = uniform(-1, 1);
    enemy.curve.add(player.was_parried ? 1.0f : 0.0f);
    // The moves that the player makes by habit alone may form a circle that leaves some out.
    const float reward = player.was_parried ? 1.0f : -1.0f;
    if (uniform(0, 1) < 0.3f) player.last = below(kMoves);
    return reward;
  }

  // Two fighters, and how high each holds its weapon.
  static void draw(Canvas& canvas, const Enemy& enemy, float top) {
    const auto height = [&](std::uint32_t move) { return top + 0.16f - 0.028f * static_cast<float>(move); };
    const auto fighter = [&](float x, float to, std::uint32_t move, std::uint32_t colour) {
      canvas.disc({x, top}, 0.035f, colour);
      canvas.line({x, top + 0.03f}, {x, top + 0.13f}, 0.03f, colour);
      canvas.line({x, top + 0.07f}, {to, height(move)}, 0.012f, colour);
    };
    fighter(0.4f, 0.52f, enemy.player.last, kInk);
    fighter(0.68f, 0.56f, enemy.parried, enemy.curve.colour());
    if (!enemy.player.was_parried) canvas.disc({0.68f, top + 0.08f}, 0.02f, kRed);
    canvas.text({0.05f, top + 0.03f}, 0.04f, enemy.curve.name(), enemy.curve.colour());
  }

  std::uint64_t seed_, frame_ = 0;
  std::array<std::uint32_t, kMoves> habit_{};
  std::array<Enemy, kEnemies> enemies_ = {Enemy{{"bandit", kGreen, kWindow, kGoal}},
                                          Enemy{{"DQN", kBlue, kWindow, kGoal}},
                                          Enemy{{"PPO", kGold, kWindow, kPpoGoal}}};
};

}  // namespace

int main(int argc, char** argv) {
  return arcade::play<Duel>({"06-adaptive-enemy", "An enemy that adapts to its player", kFrames}, argc, argv);
}
