#include "tests/learning/signal_games.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace imprint::trials {
namespace {

constexpr int kSide = 15, kWall = 7, kDoor = 14;  // columns and rows; the wall's column; the door's row

class Keys final : public ShownGame {
 public:
  int observation_count() const override { return 2 * kSide + 1; }
  int choice_count() const override { return 4; }
  int step_limit() const override { return 200; }
  void observe(std::span<float> into) const override {
    std::ranges::fill(into, 0.0f);
    into[static_cast<std::size_t>(row_)] = 1;
    into[static_cast<std::size_t>(kSide + column_)] = 1;
    into[2 * kSide] = has_key_ ? 1.0f : 0.0f;
  }
  std::span<double> state() override { return {}; }
  // To the key, to the door, through it, to the goal.
  double expert() const override {
    if (!has_key_) return column_ > 0 ? 2 : 0;
    if (column_ <= kWall) return row_ < kDoor ? 1 : 3;
    return column_ < kSide - 1 ? 3 : 0;
  }

 protected:
  void start(Draws& draws) override {
    row_ = kDoor - static_cast<int>(draws.between(0, 2));
    column_ = kWall - 1 - static_cast<int>(draws.between(0, 2));
    has_key_ = false;
  }
  Outcome advance(double action) override {
    constexpr std::array<std::array<int, 2>, 4> kWays = {{{-1, 0}, {1, 0}, {0, -1}, {0, 1}}};
    const std::array<int, 2>& move = kWays[static_cast<std::size_t>(action)];
    const int row = std::clamp(row_ + move[0], 0, kSide - 1),
              column = std::clamp(column_ + move[1], 0, kSide - 1);
    if (column != kWall || (row == kDoor && has_key_)) {
      row_ = row;
      column_ = column;
    }
    has_key_ = has_key_ || (row_ == 0 && column_ == 0);
    const bool there = row_ == 0 && column_ == kSide - 1;
    return {there ? 1.0 : 0.0, there, false};
  }

 private:
  int row_ = 0, column_ = 0;
  bool has_key_ = false;
};

class Lock final : public ShownGame {
 public:
  explicit Lock(std::uint32_t wheels) : wheels_(static_cast<int>(wheels)) {}
  int observation_count() const override { return wheels_; }
  int choice_count() const override { return 4; }
  int step_limit() const override { return 60; }
  void observe(std::span<float> into) const override {
    std::ranges::fill(into, 0.0f);
    into[static_cast<std::size_t>(turned_)] = 1;
  }
  std::span<double> state() override { return {}; }
  double expert() const override {
    constexpr std::array<int, 12> kCode = {2, 0, 3, 1, 1, 0, 2, 3, 0, 1, 3, 2};
    return kCode[static_cast<std::size_t>(turned_) % kCode.size()];
  }

 protected:
  void start(Draws&) override { turned_ = 0; }
  Outcome advance(double action) override {
    const bool turns = action == expert(), opens = turns && turned_ == wheels_ - 1;
    turned_ = turns && !opens ? turned_ + 1 : 0;
    return {opens ? 1.0 : 0.0, opens, false};
  }

 private:
  int wheels_, turned_ = 0;
};

constexpr int kDirections = 8;
constexpr double kStep = 0.12, kRadius = 0.6, kLength = 60;

class Circle final : public ShownGame {
 public:
  int observation_count() const override { return 2; }
  int choice_count() const override { return kDirections; }
  int step_limit() const override { return static_cast<int>(kLength); }
  void observe(std::span<float> into) const override {
    into[0] = static_cast<float>(x_);
    into[1] = static_cast<float>(y_);
  }
  std::span<double> state() override { return {}; }
  // Along the circle, and back to it.
  double expert() const override {
    const double distance = std::hypot(x_, y_);
    const double along = std::atan2(y_, x_) + std::numbers::pi / 2;
    const double wanted = along + std::clamp((distance - kRadius) * 4, -1.2, 1.2);
    const double turns = wanted / (2 * std::numbers::pi) * kDirections;
    return static_cast<double>((std::lround(turns) + 2L * kDirections) % kDirections);
  }

 protected:
  void start(Draws& draws) override {
    x_ = draws.between(-1, 1);
    y_ = draws.between(-1, 1);
  }
  Outcome advance(double action) override {
    const double angle = 2 * std::numbers::pi * action / kDirections, before = std::atan2(y_, x_);
    x_ = std::clamp(x_ + kStep * std::cos(angle), -1.0, 1.0);
    y_ = std::clamp(y_ + kStep * std::sin(angle), -1.0, 1.0);
    const double turned = std::remainder(std::atan2(y_, x_) - before, 2 * std::numbers::pi);
    const double off = std::abs(std::hypot(x_, y_) - kRadius);
    const double around = std::clamp(turned * kRadius / kStep, -1.0, 1.0);
    return {(off < 0.2 ? std::max(around, 0.0) : 0.0) / kLength, false, false};
  }

 private:
  double x_ = 0, y_ = 0;
};

class ShownMountainCar final : public ShownGame {
 public:
  int observation_count() const override { return car_->observation_count(); }
  int choice_count() const override { return 0; }
  int step_limit() const override { return car_->step_limit(); }
  double largest_action() const override { return car_->largest_action(); }
  void observe(std::span<float> into) const override { car_->observe(into); }
  std::span<double> state() override { return car_->state(); }
  double expert() const override {
    std::array<float, 2> seen{};
    car_->observe(seen);
    return seen[1] >= 0 ? 1 : -1;
  }

 protected:
  void start(Draws& draws) override { car_->reset(draws); }
  Outcome advance(double action) override { return car_->step(action); }

 private:
  std::unique_ptr<Environment> car_ = make_mountain_car_continuous();
};

}  // namespace

std::unique_ptr<ShownGame> make_keys() { return std::make_unique<Keys>(); }
std::unique_ptr<ShownGame> make_lock(std::uint32_t wheels) { return std::make_unique<Lock>(wheels); }
std::unique_ptr<ShownGame> make_circle() { return std::make_unique<Circle>(); }
std::unique_ptr<ShownGame> make_shown_mountain_car() { return std::make_unique<ShownMountainCar>(); }

}  // namespace imprint::trials
