#pragma once
// Which columns a sample has, and where. Goals, choices, meanings and flags are whole numbers held as floats.

#include <cstdint>

#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// The signal that a label comes from.
enum class LabelSource : std::uint8_t {
  reward,         // of the game, or a person's silence: says nothing about other choices
  feedback,       // of a person, who may be wrong: one choice is right
  demonstration,  // one choice is right
};
inline constexpr std::uint32_t kLabelSources = 3;

// First column of each part; 0: the samples do not have it. A learner adds the parts that it reads
// (Learner::layout).
struct SampleLayout {
  std::uint32_t observation = 0, goal = 0, branches = 0, continuous = 0;  // every sample has these
  std::uint32_t target = 0, weight = 0;
  std::uint32_t source = 0;  // a LabelSource
  std::uint32_t reward = 0;
  std::uint32_t log_probability = 0;  // of the action, by the weights that chose it
  std::uint32_t state = 0;            // [BrainSpec::state_count] of the cell before the step
  std::uint32_t begins = 0;           // 1: no step of the same trajectory lies before this one
  std::uint32_t allowed = 0;          // [choices] 1 = allowed
  std::uint32_t continues = 0;  // 0: the step terminated its episode; else the discount of steps between
  std::uint32_t next_observation = 0, next_goal = 0;
  std::uint32_t group = 0, next_group = 0;  // [BrainSpec::group_width]
  std::uint32_t width = 0;

  // The columns that every sample has: observation | goal | choice per branch | continuous actions.
  static SampleLayout begin(const BrainSpec& spec);
  // Appends columns and returns itself: layout.add(&SampleLayout::weight).
  SampleLayout& add(std::uint32_t SampleLayout::*part, std::uint32_t columns = 1);
};

}  // namespace imprint::agent
