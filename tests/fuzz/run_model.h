#pragma once
// Imports a model that was read, compiles it and runs it twice on device cpu, with equal bits.

#include "compute/model/onnx/import.h"

namespace imprint::fuzz {

void compile_and_run(const ImportedModel& model);
// With free dimensions of 3; named: any up to 3.
void import_and_run(const imprint::onnx::Model& model, bool named);

}  // namespace imprint::fuzz
