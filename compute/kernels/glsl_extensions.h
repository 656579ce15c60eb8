#pragma once
// The extensions that a kernel's GLSL requires, and the modes that it asks for.

#include <string>
#include <vector>

#include "compute/base/text.h"
#include "compute/graph/schedule/schedule.h"
#include "compute/kernels/dispatch_source.h"

namespace imprint::kernels {

struct ShaderNeeds {
  bool loops = false;           // has loops that it says whether to unroll
  bool narrow_floats = false;   // has arrays of 16 bits
  bool rounded_halves = false;  // asks that stored float16 are rounded halves to even and keep subnormals
  graph::MatrixUnits units = graph::MatrixUnits::none;
  MatrixDialect dialect = MatrixDialect::nv;
};

// Stands after #version.
inline std::string extension_lines(const ShaderNeeds& needs) {
  std::vector<std::string> names;
  if (needs.loops) names.emplace_back("GL_EXT_control_flow_attributes");
  if (needs.units != graph::MatrixUnits::none)
    names.insert(names.end(),
                 {"GL_EXT_shader_explicit_arithmetic_types_float16", "GL_KHR_memory_scope_semantics"});
  if (needs.units == graph::MatrixUnits::workgroup)
    names.insert(names.end(), {"GL_KHR_cooperative_matrix", "GL_NV_cooperative_matrix2"});
  if (needs.units == graph::MatrixUnits::subgroup)
    names.insert(names.end(), {"GL_KHR_shader_subgroup_basic", needs.dialect == MatrixDialect::khr
                                                                   ? "GL_KHR_cooperative_matrix"
                                                                   : "GL_NV_cooperative_matrix"});
  if (needs.narrow_floats) names.emplace_back("GL_EXT_shader_16bit_storage");
  if (needs.rounded_halves) names.emplace_back("GL_EXT_spirv_intrinsics");
  std::string lines;
  for (const std::string& name : names) lines += text("#extension ", name, " : require\n");
  return lines;
}

// Stands before the functions: DenormPreserve and RoundingModeRTE of SPIR-V, each with the capability that it
// needs.
inline std::string execution_modes(const ShaderNeeds& needs) {
  if (!needs.rounded_halves) return {};
  return "#define ROUNDS_HALVES\n"
         "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4464], 4459, 16);\n"
         "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4467], 4462, "
         "16);\n\n";
}

}  // namespace imprint::kernels
