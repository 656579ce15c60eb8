#pragma once
// Register tiles of a product inside a row-local region.

#include <cstdint>
#include <vector>

#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

struct VectorProduct {
  std::int64_t rows = 0, columns = 0, terms = 0;
  std::int64_t products = 1;      // that share the weights
  std::int64_t invocations = 0;   // of the workgroup
  std::int64_t most_scratch = 0;  // floats of sums that invocations pass on in shared memory
  bool is_far = false;            // whether weights come from outside shared memory
  double operations_behind = 0;   // operations that follow on each output
};

struct VectorTile {
  std::int32_t rows = 1, columns = 1, parts = 1;
  double cost = 0;  // approximate clocks of a multiprocessor with four schedulers
};

// All tiles that fit, with their cost. Never empty.
std::vector<VectorTile> vector_tiles(const VectorProduct& product);

// Sets the tile of an outer product, or of a product without vectors, and how many invocations share its
// terms.
void choose_other_tiles(RegionStage& stage, const Region& region, std::int64_t rows, std::int64_t columns,
                        std::int64_t terms);

}  // namespace imprint::graph
