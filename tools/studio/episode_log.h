#pragma once
// An episode as a file: what it began from, and in each step what the agent saw and did. No MPI.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::studio {

struct EpisodeLog {
  std::uint64_t seed = 0, number = 0;
  std::uint32_t rank = 0;
  std::map<std::string, double> parameters;
  double score = 0;
  // Sizes of a step, the same in all steps.
  std::uint32_t observations = 0, branches = 0, numbers = 0;
  std::vector<float> observation, continuous;
  std::vector<std::uint32_t> discrete;

  std::size_t steps() const {
    if (observations > 0) return observation.size() / observations;
    if (branches > 0) return discrete.size() / branches;
    return numbers > 0 ? continuous.size() / numbers : 0;
  }
  std::span<const float> observation_of(std::size_t step) const {
    return std::span(observation).subspan(step * observations, observations);
  }
  std::span<const std::uint32_t> discrete_of(std::size_t step) const {
    return std::span(discrete).subspan(step * branches, branches);
  }
  std::span<const float> continuous_of(std::size_t step) const {
    return std::span(continuous).subspan(step * numbers, numbers);
  }
  // The first step sets the sizes. Errors: shape_mismatch.
  Result<> add(std::span<const float> seen, std::span<const std::uint32_t> chosen,
               std::span<const float> given);

  // Errors: io.
  Result<> write(const std::string& path) const;
  std::vector<std::byte> bytes() const;  // of the file
  // Bounds for a file of n bytes: time O(n log n), memory 8 n + 4 KiB. name: for messages. Errors: io,
  // corrupt_file.
  static Result<EpisodeLog> read(const std::string& path);
  static Result<EpisodeLog> parse(std::span<const std::byte> bytes, const std::string& name);
};

}  // namespace imprint::studio
