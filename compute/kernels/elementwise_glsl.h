#pragma once
// The GLSL expression of each elementwise op.

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "compute/tensor/dtype.h"
#include "compute/tensor/op.h"

namespace imprint::kernels {

// The register type of a dtype: float, int or bool.
std::string_view glsl_type(DType dtype);

// A literal of the dtype; infinities and NaN are allowed.
std::string glsl_literal(double value, DType dtype);

// The expression of an elementwise op. operand_dtype: of the operands; for where, of the branches. Adds the
// names of the files of shaders that it calls to `includes`.
std::string elementwise_glsl(tensor::Op op, DType operand_dtype, DType result_dtype,
                             std::span<const std::string> operands, std::set<std::string>& includes);

// The operator between its two operands, such as "+"; empty where it is a function.
std::string operator_glsl(tensor::Op op, DType operand_dtype);

// Whether GLSL defines that expression for vectors and scalars alike, mixed in any order.
bool takes_vectors(tensor::Op op, DType operand_dtype);

}  // namespace imprint::kernels
