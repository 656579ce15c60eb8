#pragma once
// One line of GLSL for each elementwise operation.

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "compute/tensor/dtype.h"
#include "compute/tensor/op.h"

namespace imprint::kernels {

// The register type of a dtype: float, int or bool.
std::string_view glsl_type(DType dtype);

// A literal of the dtype, infinities and NaN included.
std::string glsl_literal(double value, DType dtype);

// The expression of an elementwise op on operand expressions of `operand_dtype` (of the branches, for where).
// Adds the names of the functions of shaders/include that it calls to `includes`.
std::string elementwise_glsl(tensor::Op op, DType operand_dtype, DType result_dtype,
                             std::span<const std::string> operands, std::set<std::string>& includes);

}  // namespace imprint::kernels
