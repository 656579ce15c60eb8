#include "tools/trials/environments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace imprint::trials {
namespace {

constexpr double kPi = std::numbers::pi;

// x brought into [-pi, pi).
double wrapped(double x) {
  const double turned = std::fmod(x + kPi, 2 * kPi);
  return (turned < 0 ? turned + 2 * kPi : turned) - kPi;
}

class CartPole final : public Environment {
 public:
  int observation_count() const override { return 4; }
  int choice_count() const override { return 2; }
  int step_limit() const override { return 500; }
  std::span<double> state() override { return state_; }
  void observe(std::span<float> into) const override {
    std::ranges::transform(state_, into.begin(), [](double x) { return static_cast<float>(x); });
  }

 protected:
  void start(Draws& draws) override {
    for (double& x : state_) x = draws.between(-0.05, 0.05);
  }
  Outcome advance(double action) override {
    auto& [x, x_rate, angle, angle_rate] = state_;
    const double force = action > 0.5 ? 10 : -10, sine = std::sin(angle), cosine = std::cos(angle);
    const double pushed = (force + 0.05 * angle_rate * angle_rate * sine) / 1.1;
    const double angle_acceleration =
        (9.8 * sine - cosine * pushed) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
    const double acceleration = pushed - 0.05 * angle_acceleration * cosine / 1.1;
    x += 0.02 * x_rate;
    x_rate += 0.02 * acceleration;
    angle += 0.02 * angle_rate;
    angle_rate += 0.02 * angle_acceleration;
    return {1, std::abs(x) > 2.4 || std::abs(angle) > 12 * 2 * kPi / 360, false};
  }

 private:
  std::array<double, 4> state_{};
};

class Pendulum final : public Environment {
 public:
  int observation_count() const override { return 3; }
  int choice_count() const override { return 0; }
  int step_limit() const override { return 200; }
  double largest_action() const override { return 2; }
  std::span<double> state() override { return state_; }
  void observe(std::span<float> into) const override {
    into[0] = static_cast<float>(std::cos(state_[0]));
    into[1] = static_cast<float>(std::sin(state_[0]));
    into[2] = static_cast<float>(state_[1]);
  }

 protected:
  void start(Draws& draws) override { state_ = {draws.between(-kPi, kPi), draws.between(-1, 1)}; }
  Outcome advance(double action) override {
    auto& [angle, rate] = state_;
    const double torque = std::clamp(action, -2.0, 2.0);
    const double cost = wrapped(angle) * wrapped(angle) + 0.1 * rate * rate + 0.001 * torque * torque;
    rate = std::clamp(rate + (15 * std::sin(angle) + 3 * torque) * 0.05, -8.0, 8.0);
    angle += rate * 0.05;
    return {-cost, false, false};
  }

 private:
  std::array<double, 2> state_{};
};

class Acrobot final : public Environment {
 public:
  int observation_count() const override { return 6; }
  int choice_count() const override { return 3; }
  int step_limit() const override { return 500; }
  std::span<double> state() override { return state_; }
  void observe(std::span<float> into) const override {
    const double values[] = {std::cos(state_[0]), std::sin(state_[0]), std::cos(state_[1]),
                             std::sin(state_[1]), state_[2],           state_[3]};
    std::ranges::transform(values, into.begin(), [](double x) { return static_cast<float>(x); });
  }

 protected:
  using State = std::array<double, 4>;

  void start(Draws& draws) override {
    for (double& x : state_) x = draws.between(-0.1, 0.1);
  }
  Outcome advance(double action) override {
    // One step of the classic fourth-order Runge-Kutta method.
    constexpr double kStep = 0.2;
    const double torque = action - 1;
    const auto moved = [&](const State& slope, double by) {
      State result = state_;
      for (std::size_t i = 0; i < 4; ++i) result[i] += by * slope[i];
      return result;
    };
    const State k1 = slope(state_, torque), k2 = slope(moved(k1, kStep / 2), torque),
                k3 = slope(moved(k2, kStep / 2), torque), k4 = slope(moved(k3, kStep), torque);
    for (std::size_t i = 0; i < 4; ++i) state_[i] += kStep / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    state_[0] = wrapped(state_[0]);
    state_[1] = wrapped(state_[1]);
    state_[2] = std::clamp(state_[2], -4 * kPi, 4 * kPi);
    state_[3] = std::clamp(state_[3], -9 * kPi, 9 * kPi);
    const bool up = -std::cos(state_[0]) - std::cos(state_[0] + state_[1]) > 1;
    return {up ? 0.0 : -1.0, up, false};
  }

 private:
  static State slope(const State& state, double torque) {
    const auto& [a1, a2, r1, r2] = state;
    const double d1 = 0.25 + (1.25 + std::cos(a2)) + 2, d2 = 0.25 + 0.5 * std::cos(a2) + 1;
    const double phi2 = 0.5 * 9.8 * std::cos(a1 + a2 - kPi / 2);
    const double phi1 =
        -0.5 * r2 * r2 * std::sin(a2) - r2 * r1 * std::sin(a2) + 1.5 * 9.8 * std::cos(a1 - kPi / 2) + phi2;
    const double acceleration2 =
        (torque + d2 / d1 * phi1 - 0.5 * r1 * r1 * std::sin(a2) - phi2) / (1.25 - d2 * d2 / d1);
    return {r1, r2, -(d2 * acceleration2 + phi1) / d1, acceleration2};
  }

  State state_{};
};

class MountainCar final : public Environment {
 public:
  int observation_count() const override { return 2; }
  int choice_count() const override { return 3; }
  int step_limit() const override { return 200; }
  std::span<double> state() override { return state_; }
  void observe(std::span<float> into) const override {
    std::ranges::transform(state_, into.begin(), [](double x) { return static_cast<float>(x); });
  }

 protected:
  void start(Draws& draws) override { state_ = {draws.between(-0.6, -0.4), 0}; }
  Outcome advance(double action) override {
    auto& [position, speed] = state_;
    speed = std::clamp(speed + (action - 1) * 0.001 - 0.0025 * std::cos(3 * position), -0.07, 0.07);
    position = std::clamp(position + speed, -1.2, 0.6);
    if (position == -1.2 && speed < 0) speed = 0;
    return {-1, position >= 0.5 && speed >= 0, false};
  }

 private:
  std::array<double, 2> state_{};
};

// A force instead of a choice, which costs its square; 100 at the goal.
class MountainCarContinuous final : public Environment {
 public:
  int observation_count() const override { return 2; }
  int choice_count() const override { return 0; }
  int step_limit() const override { return 999; }
  std::span<double> state() override { return state_; }
  void observe(std::span<float> into) const override {
    std::ranges::transform(state_, into.begin(), [](double x) { return static_cast<float>(x); });
  }

 protected:
  void start(Draws& draws) override { state_ = {draws.between(-0.6, -0.4), 0}; }
  Outcome advance(double action) override {
    auto& [position, speed] = state_;
    const double force = std::clamp(action, -1.0, 1.0);
    speed = std::clamp(speed + force * 0.0015 - 0.0025 * std::cos(3 * position), -0.07, 0.07);
    position = std::clamp(position + speed, -1.2, 0.6);
    if (position == -1.2 && speed < 0) speed = 0;
    const bool there = position >= 0.45 && speed >= 0;
    return {(there ? 100.0 : 0.0) - 0.1 * action * action, there, false};
  }

 private:
  std::array<double, 2> state_{};
};

}  // namespace

std::unique_ptr<Environment> make_cart_pole() { return std::make_unique<CartPole>(); }
std::unique_ptr<Environment> make_pendulum() { return std::make_unique<Pendulum>(); }
std::unique_ptr<Environment> make_acrobot() { return std::make_unique<Acrobot>(); }
std::unique_ptr<Environment> make_mountain_car_continuous() {
  return std::make_unique<MountainCarContinuous>();
}
std::unique_ptr<Environment> make_mountain_car() { return std::make_unique<MountainCar>(); }

}  // namespace imprint::trials
