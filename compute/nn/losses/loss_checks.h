#pragma once
// The parts that losses share: the check of shapes, the weight and the reduction. Internal.

#include <initializer_list>
#include <optional>
#include <string_view>

#include "compute/nn/losses/losses.h"

namespace imprint::nn {

// A failed operand, or the error for operands of different shapes.
std::optional<Tensor> refuse_shapes(std::string_view loss, std::initializer_list<Tensor> operands);
// The same for operands [..., features] of equal shapes and a label [...].
std::optional<Tensor> refuse_rows(std::string_view loss, const Tensor& a, const Tensor& b,
                                  const Tensor& label);
// The losses times the weight, if given, reduced.
Tensor weighted_loss(const Tensor& losses, const Tensor& weight, Reduction reduction, std::string_view loss);
// losses * weight, checked; the losses without a weight.
Tensor times_weight(const Tensor& losses, const Tensor& weight, std::string_view loss);

}  // namespace imprint::nn
