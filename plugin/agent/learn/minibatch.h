#pragma once
// Samples in a graph, by their columns.

#include <cstdint>

#include "compute/tensor/tensor.h"
#include "plugin/agent/learn/sample_layout.h"

namespace imprint::agent {

// rows [P, n, W].
struct Minibatch {
  Tensor rows;
  SampleLayout layout;
  Tensor rewards = {};  // float32 [P, n] where they are not those of the samples: learn/learners/signals.h

  Tensor columns(std::uint32_t first, std::uint32_t count) const { return narrow(rows, 2, first, count); }
  Tensor column(std::uint32_t index) const { return squeeze(columns(index, 1), 2); }
  Tensor whole_number(std::uint32_t index) const { return cast(column(index), DType::int32); }
  Tensor reward() const { return rewards.ok() ? rewards : column(layout.reward); }
};

}  // namespace imprint::agent
