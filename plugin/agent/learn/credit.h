#pragma once
// Which past actions a person meant when they praised or scolded. Pure arithmetic on times in seconds.
//
// People react to the onset of what they see, some time later, so credit goes to actions by their onset: a
// triangle of height 1 around the reaction time. W. Bradley Knox and Peter Stone, Interactively Shaping
// Agents via Human Reinforcement, 2009 (credit assigner); the triangle replaces their gamma density.

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

// Shares below this are noise in the reaction time rather than intent: they would only dilute the replay
// memory.
inline constexpr float kLeastCredit = 0.05f;

// The triangle's value for every action with onset <= time_s, shares below kLeastCredit left out, in the
// order of the onsets. The values are not normalised: a signal that fits no action well teaches little. Equal
// onsets get equal shares. Onsets may be in any order.
void credit_by_onset(std::span<const double> onsets, double time_s, const CreditShape& shape,
                     std::vector<Credit>& credits);

// The action under way at time_s with weight 1: the newest onset <= time_s, of equal onsets the later one in
// the list. Nothing when none had begun.
void credit_current(std::span<const double> onsets, double time_s, std::vector<Credit>& credits);

// The one action that a scolding forbids for the rest of the command: the largest share, of equal shares the
// newest onset, of equal onsets the later one in the list. -1 when nothing was credited.
std::ptrdiff_t most_credited(std::span<const Credit> credits, std::span<const double> onsets);

}  // namespace imprint::agent
