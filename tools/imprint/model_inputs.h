#pragma once
// A model's inputs from a file of tensors, or made up.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/import.h"
#include "compute/program/run.h"
#include "tools/imprint/model_shapes.h"

namespace imprint::tools {

// Numbers in [0, 1), and zero for whole numbers, which may be indices. path: of the model, for messages.
// memory_limit: of the inputs here, as host tensors and on the device, bytes. Errors: those of shapes_of;
// unsupported (memory_limit).
Result<safetensors::File> noise_for(const onnx::Model& model, const std::string& path,
                                    const ModelShapes& given,
                                    std::uint64_t memory_limit = std::uint64_t{4} << 30);

// Imports the model for the shapes of these inputs, named as in the model or "in.NAME". Shapes may follow
// from the values of inputs: a model that is refused for that is imported again, for these values. path: of
// the inputs, for messages. bounds: dimensions that each run chooses; no values follow then. Errors: those of
// import_onnx and bound_dimensions; not_found (an input is missing).
Result<ImportedModel> import_for(const onnx::Model& model, const std::string& path,
                                 const safetensors::File& given,
                                 std::uint64_t constant_limit_bytes = ImportOptions().constant_limit_bytes,
                                 std::span<const DimensionBound> bounds = {});

// In the order of the model's inputs. Errors: dtype_mismatch, invalid_argument.
Result<std::vector<HostTensor>> host_tensors(const ImportedModel& imported, const safetensors::File& given);

}  // namespace imprint::tools
