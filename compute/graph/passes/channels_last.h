#pragma once
// Convolutions as products that matrix units and memory like: places by channels.
//
// A convolution is made as a product of weights with windows, [channels, terms] x [terms, places]. Channels
// are then far apart in memory, and neighbouring terms of a window are scattered. This pass turns such
// products around, [places, terms] x [terms, channels], with float16 operands and float32 sums. Terms run
// over channels last, so that eight of them lie next to each other wherever the window is. Later
// elementwise operations, pools, pads, windows and convolutions stay in that order of axes. Only values that
// another operation reads are arranged back, as views.
//
// Constant weights are rounded and arranged here, once.

#include <string>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"

namespace imprint::graph {

// A program with updates learns, or so it is taken: there only convolutions of whole eights of channels are
// turned, and with them the gradients by their images, which are convolutions too. The gradients of weights
// then find both operands in eights. Values keep float32 beside the copies that products read.
//
// For programs without named extents. Renumbers the nodes. Returns a line for the log; empty if there is no
// such product.
std::string arrange_channels_last(Graph& graph, FusionRequest& request, const FusionOptions& options);

}  // namespace imprint::graph
