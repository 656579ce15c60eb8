#pragma once
// Makes a program right for every extent of its named axes (Extent): what joins elements along such an axis
// reads only those that a run uses. Elements beyond have memory, and any bits.

#include <span>
#include <string>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::program {

// true where the element is used, of the tensor's shape; empty: it has no named axis.
Tensor used_elements(const Tensor& tensor);

// Row numbers [n], of which those that a run does not use are -1.
Tensor used_rows(const Tensor& rows);

// An extent whose value a program reads, or an axis of its inputs and outputs has.
struct ProgramExtent {
  std::string name;
  std::int64_t bound = 0;
};

struct MaskedRoots {
  // With masks on the inputs of folds, products, scans in reverse, and indices. Without named axes: as given.
  std::vector<Tensor> roots;
  // The extents of named axes of the nodes behind the roots, and of the ports.
  std::vector<ProgramExtent> extents;
};
// Errors: invalid_argument (two bounds for one name).
Result<MaskedRoots> with_extent_masks(std::span<const Tensor> roots, std::span<const Tensor> ports);

}  // namespace imprint::program
