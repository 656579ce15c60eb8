#pragma once
// Losses and metrics of batches, summed over samples. Internal.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compute/training/checkpoint.h"
#include "compute/training/trainer.h"

namespace imprint::training {

// outputs: of a batch with `count` samples: the loss, `metrics` numbers, and others.
void add_batch(Sums& sums, const std::vector<HostTensor>& outputs, std::size_t metrics, std::int64_t count);
Scores scores_of(const Sums& sums, const std::vector<std::string>& names, double seconds);
double speed(const Scores& scores);  // samples per second

}  // namespace imprint::training
