#pragma once
// Kernels whose GLSL has the matrices of GL_NV_cooperative_matrix, on devices that also have
// VK_KHR_cooperative_matrix, and where the compiler only knows the older extension.

#include <optional>

#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint::vk {

// The same module in the words of SPV_KHR_cooperative_matrix, whose matrices have a use: results have the
// same bits, and NVIDIA's driver makes faster code of it. A type of float16 is a right operand where a
// specialisation constant gives its rows (matrices_nv.glsl), else a left one. Nothing for modules without
// matrices, and for those that compute matrices of float16, which have several uses.
std::optional<Spirv> in_newer_matrices(const Spirv& spirv);

}  // namespace imprint::vk
