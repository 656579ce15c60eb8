#pragma once
// Imports a model that was read, compiles it and runs it twice on device cpu, with equal bits.

#include <span>

#include "compute/model/onnx/import.h"

namespace imprint::fuzz {

void compile_and_run(const ImportedModel& model);
// Free dimensions are 2, or any within their bounds.
void import_and_run(const imprint::onnx::Model& model, std::span<const DimensionBound> bounds);

}  // namespace imprint::fuzz
