#pragma once
// Scans as pages: cumulative sums, extremes and linear recurrences, parallel along any axis.

#include <span>
#include <vector>

#include "compute/tensor/pages/library_page.h"

namespace imprint::tensor {

enum class ScanKind : std::uint8_t { sum, max, min, recurrence };

struct ScanOptions {
  int axis = 0;
  bool exclusive = false, reverse = false;
  // How often a workgroup looks for another's combination before it computes it itself. No effect on bits.
  int tries = 256;
};

// The scan by pages for a device. inputs: the elements; for a recurrence terms and factors. Two outputs for
// max and min: values and positions; otherwise one. Long lines are cut into chunks. A few long lines of sums
// or recurrences take one kernel, others two: the totals of chunks, then the elements. No workgroup depends
// on another's progress, which Vulkan does not promise.
std::vector<Tensor> scan_on_device(ScanKind kind, std::span<const Tensor> inputs, const ScanOptions& options,
                                   const PageLimits& limits);

// Whether lines of this shape are worth those kernels; otherwise one invocation takes a whole line.
bool is_long_scan(const Shape& shape, int axis, const PageLimits& limits);

}  // namespace imprint::tensor
