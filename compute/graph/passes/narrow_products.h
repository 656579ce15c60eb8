#pragma once
// Mixed precision, after Micikevicius et al., Mixed Precision Training, 2018. Products read float16 where
// that is faster and sum in float32. Everything else stays float32.
//
// Both float32 operands of a contraction are narrowed (matmul and what uses it: linear layers, convolutions,
// the products of their gradients):
// - outside row-local regions, if it is large enough for tiles (FusionOptions::product_operations);
// - inside a region, if the region runs on matrix units (region.h, suits_matrix_units).
//
// Inputs that a page's kernel reads as float16 are narrowed too (LibraryPage::eights). Such a kernel stores a
// float32 output as float16 if all its readers round it.
//
// In a program with updates, kernels store rounded what later kernels read of a product's results, such as
// for an activation's derivative. Kernels of the product itself, residual sums, scores and logits are not
// rounded.
//
// In a program with updates, products of windows that matrix units would pack one by one are narrowed only
// where that is faster (packing_is_faster).
//
// Not narrowed:
// - sums of products, elementwise operations, folds, softmax, norms and losses; but the sum of a value that
//   else only rounded operands read, such as a bias's gradient, adds up the rounded copy;
// - variables: weights, gradients and optimiser state are float32. A product reads a copy of a weight,
//   rounded in each run;
// - products of other regions: rounding would cost more arithmetic and gain nothing.

#include <string>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"

namespace imprint::graph {

// Renumbers the nodes. Returns one line for the log that says what was narrowed.
std::string narrow_products(Graph& graph, FusionRequest& request, const FusionOptions& options);

}  // namespace imprint::graph
