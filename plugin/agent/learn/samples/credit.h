#pragma once
// Which past actions a person meant by praise or scolding. Pure arithmetic on times in seconds.
//
// People react to the onset of an action, some time later. Credit is a triangle of height 1 around the
// reaction time. Knox, Stone, Interactively Shaping Agents via Human Reinforcement, 2009 (credit assigner);
// the triangle replaces their gamma density.

#include <cstddef>
#include <span>
#include <vector>

namespace imprint::agent {

struct CreditShape {
  double delay_s = 0.8;  // reaction time
  double width_s = 0.6;  // half-width of the triangle, > 0
};

struct Credit {
  std::size_t index = 0;  // into the onsets given
  float weight = 0;       // 0 .. 1
};

// Smaller shares are noise in the reaction time and would only dilute the replay memory.
inline constexpr float kLeastCredit = 0.05f;

// The triangle's value per action with onset <= time_s, in the order of `onsets`, without shares below
// kLeastCredit. Not normalised: a signal that fits no action well teaches little. Onsets may be in any order.
void credit_by_onset(std::span<const double> onsets, double time_s, const CreditShape& shape,
                     std::vector<Credit>& credits);

// The current action at time_s, with weight 1: the newest onset <= time_s; of equal onsets the later in the
// list. Empty when none had begun.
void credit_current(std::span<const double> onsets, double time_s, std::vector<Credit>& credits);

// The action that a scolding forbids: the largest share; of equal shares the newest onset; of equal onsets
// the later in the list. -1 when nothing was credited.
std::ptrdiff_t most_credited(std::span<const Credit> credits, std::span<const double> onsets);

}  // namespace imprint::agent
