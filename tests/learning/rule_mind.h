#pragma once
// A mind that follows a rule, for tests without a brain of Imprint.

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "samples/pet/yard/mind.h"

namespace pet {

// Decides by a rule, and counts feedback.
class RuleMind : public Mind {
 public:
  using Rule = std::function<Action(const Observation&, const Mask&)>;
  explicit RuleMind(Rule rule, float expected = 1.0f) : rule_(std::move(rule)), expected_(expected) {}

  void set_goal(Cue cue) override { goal = cue; }
  void ask(const Observation& observation, const Mask& mask) override {
    answer_.action = rule_(observation, mask);
    answer_.expected.fill(-1.0f);
    answer_.expected[static_cast<std::size_t>(answer_.action)] = expected_;
    ++asked;
  }
  std::optional<Answer> answer() override { return answer_; }
  void feedback(float value, float weight, bool exact, double time_s) override {
    value > 0.0f ? ++praised : ++scolded;
    last_exact = exact;
    last_feedback_s = time_s;
    last_value = value;
    last_weight = weight;
  }
  void reward(float value) override { rewards.push_back(value); }
  void demonstrate(const Observation& observation, Cue cue, Action action) override {
    shown.push_back({cue, action});
    last_seen = observation;
    EXPECT_EQ(observation[static_cast<std::size_t>(cue)], 1.0f);
  }
  void end_episode() override {}

  Cue goal = Cue::none;
  int asked = 0;
  int praised = 0;
  int scolded = 0;
  bool last_exact = false;
  double last_feedback_s = 0.0;
  float last_value = 0.0f, last_weight = 0.0f;
  std::vector<std::pair<Cue, Action>> shown;
  Observation last_seen{};  // when it was shown something
  std::vector<float> rewards;

 private:
  Rule rule_;
  float expected_;
  Answer answer_;
};

}  // namespace pet
