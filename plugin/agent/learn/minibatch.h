#pragma once
// Samples in a graph, by their columns.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compute/tensor/tensor.h"
#include "plugin/agent/learn/sample_layout.h"

namespace imprint::agent {

// rows [P, n, W].
struct Minibatch {
  Tensor rows;
  SampleLayout layout;
  Tensor rewards = {};  // float32 [P, n] where they are not those of the samples: learn/learners/signals.h
  // Where samples lie in several tensors [P, n, count]: all columns, in order, instead of rows.
  struct Part {
    std::uint32_t first = 0, count = 0;
    Tensor values;
  };
  std::vector<Part> parts = {};

  Tensor columns(std::uint32_t first, std::uint32_t count) const {
    if (parts.empty()) return narrow(rows, 2, first, count);
    std::vector<Tensor> pieces;
    for (const Part& part : parts) {
      const std::uint32_t begin = std::max(first, part.first);
      const std::uint32_t end = std::min(first + count, part.first + part.count);
      if (begin < end) pieces.push_back(narrow(part.values, 2, begin - part.first, end - begin));
    }
    return pieces.size() == 1 ? pieces[0] : concat(pieces, 2);
  }
  Tensor column(std::uint32_t index) const { return squeeze(columns(index, 1), 2); }
  Tensor whole_number(std::uint32_t index) const { return cast(column(index), DType::int32); }
  Tensor reward() const { return rewards.ok() ? rewards : column(layout.reward); }
};

}  // namespace imprint::agent
