#pragma once
// Figures of one learn step beside its loss. A learner gives some of them (LearnGraph::metrics).

#include <cstddef>
#include <cstdint>

namespace imprint::agent {

// clang-format off
#define IMPRINT_METRICS(ENTRY) \
  ENTRY(policy_loss) ENTRY(value_loss) ENTRY(entropy) ENTRY(divergence) ENTRY(clipped_share) \
  ENTRY(gradient_norm) ENTRY(explained_variance) ENTRY(error) ENTRY(lowest_value) ENTRY(highest_value) \
  ENTRY(learning_rate) ENTRY(reliability)
// clang-format on

#define IMPRINT_ENTRY(name) name,
enum class Metric : std::uint8_t { IMPRINT_METRICS(IMPRINT_ENTRY) count };
#undef IMPRINT_ENTRY

inline constexpr std::size_t kMetricCount = static_cast<std::size_t>(Metric::count);

}  // namespace imprint::agent
