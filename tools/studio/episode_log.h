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
    return observations > 0 ? observation.size() / observations
                            : discrete.size() / (branches > 0 ? branches : 1);
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

  // Errors: io, corrupt_file.
  Result<> write(const std::string& path) const;
  static Result<EpisodeLog> read(const std::string& path);
};

}  // namespace imprint::studio
