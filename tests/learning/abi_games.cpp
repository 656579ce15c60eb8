#include "tests/learning/abi_games.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <imprint/imprint.hpp>
#include <numeric>
#include <span>
#include <stdexcept>

#include "tests/learning/signal_games.h"

namespace imprint::trials {
namespace {

using game::entity_stream;
using game::picture_stream;

constexpr std::uint32_t kMoves = 6;

// A bandit-like fight. The opponent's next move follows from its last one by a habit, four times in five;
// else it is any. Observation: the last move (6), stance (3), and health, distance, stamina, which say
// nothing. Reward: 1 for the move that counters, -1 for a hit. Rounds have 20 moves.
class Fight final : public Environment {
 public:
  explicit Fight(std::uint64_t seed) : draws_(seed, 1u << 24) { new_habit(); }
  int observation_count() const override { return 12; }
  int choice_count() const override { return kMoves; }
  int step_limit() const override { return 1'000'000; }
  void new_habit() {
    std::iota(habit_.begin(), habit_.end(), 0u);
    for (std::uint32_t i = kMoves - 1; i > 0; --i) std::swap(habit_[i], habit_[below(i + 1)]);
  }
  static double bayes() { return 0.8 + 0.2 / kMoves; }

  void observe(std::span<float> into) const override {
    std::ranges::fill(into, 0.0f);
    into[last_] = 1;
    into[kMoves + stance_] = 1;
    std::ranges::copy(noise_, into.begin() + 9);
  }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws&) override {
    turn_ = 0;
    next_scene();
  }
  Outcome advance(double action) override {
    const std::uint32_t move = draws_.between(0, 1) < 0.8 ? habit_[last_] : below(kMoves);
    last_ = move;
    next_scene();
    return {action == move ? 1.0 : -1.0, ++turn_ % 20 == 0, false};
  }

 private:
  std::uint32_t below(std::uint32_t count) {
    return std::min(count - 1, static_cast<std::uint32_t>(draws_.between(0, count)));
  }
  void next_scene() {
    if (draws_.between(0, 1) < 0.3) last_ = below(kMoves);
    stance_ = below(3);
    for (float& number : noise_) number = static_cast<float>(draws_.between(-1, 1));
  }

  Draws draws_;
  std::array<std::uint32_t, kMoves> habit_{};
  std::array<float, 3> noise_{};
  std::uint32_t last_ = 0, stance_ = 0;
  int turn_ = 0;
};

// A cart pole of which only the positions are seen.
class BlindCartPole final : public Environment {
 public:
  int observation_count() const override { return 2; }
  int choice_count() const override { return whole_->choice_count(); }
  int step_limit() const override { return whole_->step_limit(); }
  void observe(std::span<float> into) const override {
    std::array<float, 4> all{};
    whole_->observe(all);
    into[0] = all[0];
    into[1] = all[2];
  }
  std::span<double> state() override { return whole_->state(); }

 protected:
  void start(Draws& draws) override { whole_->reset(draws); }
  Outcome advance(double action) override { return whole_->step(action); }

 private:
  std::unique_ptr<Environment> whole_ = make_cart_pole();
};

// A corridor that ends in a fork. The first observation alone shows the right way. Observation: the sign,
// corridor, fork. Choices: on, left, right. Reward: 1 for the right way; standing still costs 0.05. Bakker,
// Reinforcement Learning with Long Short-Term Memory, 2002.
class Maze final : public Environment {
 public:
  explicit Maze(std::uint32_t length) : length_(length) {}
  int observation_count() const override { return 3; }
  int choice_count() const override { return 3; }
  int step_limit() const override { return static_cast<int>(2 * length_ + 10); }
  void observe(std::span<float> into) const override {
    into[0] = place_ == 0 ? static_cast<float>(way_) : 0.0f;
    into[1] = place_ < length_ ? 1.0f : 0.0f;
    into[2] = place_ == length_ ? 1.0f : 0.0f;
  }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws& draws) override {
    way_ = draws.between(0, 1) < 0.5 ? -1 : 1;
    place_ = 0;
  }
  Outcome advance(double action) override {
    const int choice = static_cast<int>(action);
    if (place_ < length_) {
      place_ += choice == 0 ? 1 : 0;
      return {choice == 0 ? 0.0 : -0.05, false, false};
    }
    if (choice == 0) return {-0.05, false, false};
    return {(choice == 1) == (way_ < 0) ? 1.0 : 0.0, true, false};
  }

 private:
  std::uint32_t length_, place_ = 0;
  int way_ = 1;
};

constexpr std::uint32_t kCells = 12;

// A ball falls through a picture of 12 x 12 cells, one cell per step and perhaps aside; a paddle of three
// cells at the bottom must catch it. Choices: left, stay, right. Reward at the end: 1 or -1. After Mnih et
// al., Recurrent Models of Visual Attention, 2014.
class Catch final : public Environment {
 public:
  explicit Catch(std::uint32_t pixels) : pixels_(pixels) {}
  int observation_count() const override { return static_cast<int>(side() * side()); }
  int choice_count() const override { return 3; }
  int step_limit() const override { return 1'000; }
  std::uint32_t side() const { return kCells * pixels_; }
  void observe(std::span<float> into) const override {
    for (std::uint32_t y = 0; y < side(); ++y)
      for (std::uint32_t x = 0; x < side(); ++x) {
        const int row = static_cast<int>(y / pixels_), column = static_cast<int>(x / pixels_);
        const bool ball = row == row_ && column == ball_;
        const bool paddle = row == kLast && std::abs(column - paddle_) <= 1;
        into[y * side() + x] = ball || paddle ? 1.0f : 0.0f;
      }
  }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws& draws) override {
    row_ = 0;
    ball_ = static_cast<int>(draws.between(0, kCells));
    paddle_ = 1 + static_cast<int>(draws.between(0, kCells - 2));
    drift_ = static_cast<int>(draws.between(0, 3)) - 1;
  }
  Outcome advance(double action) override {
    paddle_ = std::clamp(paddle_ + static_cast<int>(action) - 1, 1, kLast - 1);
    ++row_;
    if (row_ % 2 == 0) ball_ = std::clamp(ball_ + drift_, 0, kLast);
    if (row_ < kLast) return {0, false, false};
    return {std::abs(ball_ - paddle_) <= 1 ? 1.0 : -1.0, true, false};
  }

 private:
  static constexpr int kLast = static_cast<int>(kCells) - 1;
  std::uint32_t pixels_;
  int row_ = 0, ball_ = 0, paddle_ = 1, drift_ = 0;
};

constexpr std::uint32_t kMostEntities = 12, kColours = 3;

// 2 to 12 entities around, in any order: which colour has the nearest? Observation: their number, then place
// and colour of each. One step per episode. Reward: 1 for the right colour.
class Nearest final : public Environment {
 public:
  static constexpr std::uint32_t kFeatures = 2 + kColours;
  int observation_count() const override { return 1 + kMostEntities * kFeatures; }
  int choice_count() const override { return kColours; }
  int step_limit() const override { return 10; }
  void observe(std::span<float> into) const override { std::ranges::copy(seen_, into.begin()); }
  std::span<double> state() override { return {}; }

 protected:
  void start(Draws& draws) override {
    seen_.fill(0);
    const auto count = static_cast<std::uint32_t>(draws.between(2, kMostEntities + 1));
    seen_[0] = static_cast<float>(count);
    double nearest = 4;
    for (std::uint32_t i = 0; i < count; ++i) {
      const double x = draws.between(-1, 1), y = draws.between(-1, 1);
      const auto colour = static_cast<std::uint32_t>(draws.between(0, kColours));
      float* entity = seen_.data() + 1 + i * kFeatures;
      entity[0] = static_cast<float>(x);
      entity[1] = static_cast<float>(y);
      entity[2 + colour] = 1;
      if (x * x + y * y >= nearest) continue;
      nearest = x * x + y * y;
      answer_ = colour;
    }
  }
  Outcome advance(double action) override {
    return {static_cast<std::uint32_t>(action) == answer_ ? 1.0 : 0.0, true, false};
  }

 private:
  std::array<float, 1 + kMostEntities * kFeatures> seen_{};
  std::uint32_t answer_ = 0;
};

}  // namespace

// Empty: one vector.
std::vector<imp_stream> streams_of(const AbiTrial& trial) {
  if (!trial.streams) return {};
  if (trial.game == "catch") return {picture_stream(1, kCells * trial.pixels, kCells * trial.pixels)};
  if (trial.game == "nearest") return {entity_stream(kMostEntities, Nearest::kFeatures)};
  return {};
}

std::unique_ptr<Environment> make_game(const AbiTrial& trial) {
  if (trial.game == "cartpole") return make_cart_pole();
  if (trial.game == "blind-cartpole") return std::make_unique<BlindCartPole>();
  if (trial.game == "catch") return std::make_unique<Catch>(trial.pixels);
  if (trial.game == "nearest") return std::make_unique<Nearest>();
  if (trial.game == "maze") return std::make_unique<Maze>(trial.length);
  if (trial.game == "keys") return make_keys();
  if (trial.game == "lock") return make_lock(trial.length);
  if (trial.game == "circle") return make_circle();
  if (trial.game == "shown-mountain-car") return make_shown_mountain_car();
  if (trial.game == "acrobot") return make_acrobot();
  if (trial.game == "mountain-car") return make_mountain_car();
  if (trial.game == "mountain-car-continuous") return make_mountain_car_continuous();
  if (trial.game == "pendulum") return make_pendulum();
  if (trial.game == "fight") return std::make_unique<Fight>(trial.seed);
  throw std::runtime_error("game: found '" + trial.game + "', expected one of " + kGameNames);
}

void change_habit(Environment& fight) { dynamic_cast<Fight&>(fight).new_habit(); }

double fight_score(double mean_reward) {
  const double countered = (mean_reward + 1) / 2;
  return (countered - 1.0 / kMoves) / (Fight::bayes() - 1.0 / kMoves);
}

}  // namespace imprint::trials
