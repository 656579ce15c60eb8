#pragma once
// Shapes of a model's inputs from the command line.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/import.h"

namespace CLI {
class App;
}

namespace imprint::tools {

struct ModelShapes {
  std::vector<std::string> given;  // NAME=1x3x48x192
  std::int64_t batch = 1;          // of free dimensions that `given` leaves open
  std::vector<std::string> most;   // NAME=64: free dimensions that each run chooses
};

void add_shape_option(CLI::App& command, ModelShapes& shapes);
void add_extent_option(CLI::App& command, ModelShapes& shapes);

// Errors: invalid_argument (no NAME=MOST).
Result<std::vector<DimensionBound>> bounds_of(const ModelShapes& shapes);

// name: of the model, for errors. Errors: invalid_argument (a text that is no shape, a name twice), not_found
// (no such input), unsupported (an input without a shape that none is given for).
Result<std::map<std::string, Shape>> shapes_of(const onnx::Model& model, const std::string& name,
                                               const ModelShapes& shapes);

}  // namespace imprint::tools
