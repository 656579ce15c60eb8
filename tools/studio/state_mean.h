#pragma once
// The mean of the brains of all ranks: weights and moments of the optimiser.
//
//   float arrays           the mean over the ranks that take part, the largest or the smallest: imp_merge
//   NAME.variance          of the ranks' samples together, with the means in NAME.mean
//   integer arrays         the largest: counters of steps
//
// Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "imprint/imprint_tools.h"
#include "tools/studio/group.h"

namespace imprint::studio {

struct StateArray {
  std::string name;
  std::size_t offset = 0, count = 0;  // bytes; numbers of four bytes
  bool is_integer = false;
  imp_merge merge = IMP_MERGE_MEAN;

  bool is_bound() const { return !is_integer && merge != IMP_MERGE_MEAN; }
};

class StateMean {
 public:
  explicit StateMean(std::vector<StateArray> arrays);

  // Collective. Replaces a state by the mean of all that take part, of which there are `takers`, at least 1.
  void average(std::span<std::byte> state, bool takes_part, std::uint32_t takers, Group& group);

 private:
  struct Spread {
    std::size_t variance = 0, mean = 0;  // indices into arrays_
  };
  void pack(std::span<const std::byte> state, bool takes_part, float share);
  void add_spreads(std::span<const std::byte> own, std::span<std::byte> state, bool takes_part, float share,
                   Group& group);

  std::vector<StateArray> arrays_;
  std::vector<Spread> spreads_;
  std::vector<float> floats_, spread_floats_;
  std::vector<float> bounds_;  // the smallest with the other sign
  std::vector<std::int32_t> integers_;
  std::vector<std::byte> own_;
};

}  // namespace imprint::studio
