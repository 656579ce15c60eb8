#pragma once
// Boxes in images: how much they overlap, which ones stay, and what lies in them. Boxes are float32 [..., 4]:
// x1, y1, x2, y2. Errors as in tensor.h.

#include <cstdint>

#include "compute/tensor/composites/images.h"

namespace imprint {

// The shared area over the joined one, of each of a [..., n, 4] with each of b [..., m, 4]: [..., n, m]. 0
// for boxes without an area.
Tensor box_overlap(const Tensor& a, const Tensor& b);

struct SuppressionOptions {
  std::int64_t most = 100;  // boxes kept per list
  double overlap = 0.5;     // a box that overlaps a better one by more is dropped
  double score = -1e30;     // only boxes with a higher score count
};
struct KeptBoxes {
  Tensor indices;  // int32 [..., most]: the best first, of equals the first; then -1
  Tensor count;    // int32 [...]
};
// boxes [..., n, 4], n up to 65,536, and scores [..., n]: each list by itself. A box with a NaN score is
// dropped. No gradient.
KeptBoxes non_max_suppression(const Tensor& boxes, const Tensor& scores,
                              const SuppressionOptions& options = {});

struct RegionOptions {
  PerAxis bins = 7;          // rows and columns of each result
  std::int64_t samples = 2;  // per bin and axis, up to 64
  bool adaptive = false;     // each region has as many samples as a bin has places, at most `samples`
  double scale = 1;          // from boxes to places of x
  bool half_pixel = true;    // a place's centre is at + 0.5; else at the place, and sizes are at least 1
  bool largest = false;      // the largest weighted neighbour instead of the mean of the samples
};
// x [batch, channels, height, width], boxes [n, 4], int32 [n] images of the batch -> [n, channels, rows,
// columns]: bilinear samples of each box, 0 more than one place outside. No gradient to the boxes' images.
// He et al., Mask R-CNN, 2017.
Tensor roi_align(const Tensor& x, const Tensor& boxes, const Tensor& images,
                 const RegionOptions& options = {});

}  // namespace imprint
