#pragma once
// Sums of overlapping windows of a product, as one product over windows.
//
// The gradient of a convolution by its image, and a transposed convolution, multiply by every element of the
// kernel and add the results where windows overlap: a matrix of as many columns as the kernel has elements
// for each place. The same sums are a product of the kernel, mirrored, with windows of its right operand,
// which needs no memory. A stride of s makes s products per axis, one for each remainder of the place divided
// by s. Dumoulin, Visin, A Guide to Convolution Arithmetic for Deep Learning, 2016; Shi et al., Real-Time
// Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural Network, 2016.

#include <optional>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"

namespace imprint::graph {

// Per axis of places. The sum at place y has the terms kernel[k] * right[o] with y = o * stride + k *
// dilation.
struct WindowAxis {
  int axis = 0;             // of the sums
  std::int64_t kernel = 0;  // elements
  std::int64_t stride = 1, dilation = 1;
  std::int64_t places = 0;            // of the product's right operand
  std::int64_t first = 0, count = 0;  // places of the sums that are kept
};

struct WindowProduct {
  NodeIndex left = -1, right = -1;  // operands of the product
  bool shares_left = false;         // one left operand for all batches
  Shape shape;                      // of the sums
  std::vector<WindowAxis> axes;     // ascending by axis
  // The product's rows, outermost first: position in `axes` of a kernel's elements, or -1 for the channels.
  std::vector<int> rows;
  std::int64_t channels = 1;
};

// Whether the node is such a sum, or a slice of one, whose parts nothing else reads, and a product over
// windows is large enough for tiles and takes at most twice the multiply-adds. consumers: Graph::consumers().
std::optional<WindowProduct> find_window_product(const Graph& graph,
                                                 const std::vector<std::vector<NodeIndex>>& consumers,
                                                 NodeIndex index, const FusionOptions& options);

// The sums, from the operands of the product.
Tensor sums_over_windows(const WindowProduct& product, const Tensor& left, const Tensor& right);

}  // namespace imprint::graph
