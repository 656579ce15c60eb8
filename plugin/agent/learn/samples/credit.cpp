#include "plugin/agent/learn/samples/credit.h"

#include <cmath>

namespace imprint::agent {

void credit_by_onset(std::span<const double> onsets, double time_s, const CreditShape& shape,
                     std::vector<Credit>& credits) {
  credits.clear();
  // Most actions lie outside the triangle and need no division.
  for (std::size_t i = 0; i < onsets.size(); ++i) {
    if (onsets[i] > time_s) continue;
    const double apart = std::abs(time_s - onsets[i] - shape.delay_s);
    if (apart > shape.width_s) continue;
    const float weight = static_cast<float>(1.0 - apart / shape.width_s);
    if (weight >= kLeastCredit) credits.push_back({i, weight});
  }
}

void credit_current(std::span<const double> onsets, double time_s, std::vector<Credit>& credits) {
  credits.clear();
  std::ptrdiff_t newest = -1;
  for (std::size_t i = 0; i < onsets.size(); ++i)
    if (onsets[i] <= time_s && (newest < 0 || onsets[i] >= onsets[static_cast<std::size_t>(newest)]))
      newest = static_cast<std::ptrdiff_t>(i);
  if (newest >= 0) credits.push_back({static_cast<std::size_t>(newest), 1.0f});
}

std::ptrdiff_t most_credited(std::span<const Credit> credits, std::span<const double> onsets) {
  std::ptrdiff_t best = -1;
  for (std::size_t i = 0; i < credits.size(); ++i) {
    if (best >= 0) {
      const Credit& champion = credits[static_cast<std::size_t>(best)];
      if (credits[i].weight < champion.weight) continue;
      if (credits[i].weight == champion.weight && onsets[credits[i].index] < onsets[champion.index]) continue;
    }
    best = static_cast<std::ptrdiff_t>(i);
  }
  return best < 0 ? -1 : static_cast<std::ptrdiff_t>(credits[static_cast<std::size_t>(best)].index);
}

}  // namespace imprint::agent
