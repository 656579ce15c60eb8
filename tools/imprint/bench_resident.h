#pragma once
// One learn step of a brain whose new samples and losses stay on the device. Shared by suites pet, kennel and
// learners.

#include <cstdint>
#include <span>
#include <string>

#include "plugin/agent/spec/brain_spec.h"
#include "tools/imprint/bench.h"

namespace imprint::tools {

// P = brain_count, K = rows_per_step, W = width of a sample. Every run adds the same samples.
struct NewSamples {
  std::span<const float> values;         // [P * K, W]
  std::span<const std::int32_t> rows;    // [P * K] of the replay memory
  std::span<const std::int32_t> filled;  // [P] samples to draw from
};
Result<BenchResult> run_resident(BenchDevice& device, const std::string& name, const agent::BrainSpec& spec,
                                 const NewSamples& given);

}  // namespace imprint::tools
