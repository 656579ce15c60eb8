#pragma once
// How layers make their variables. Internal.

#include <string>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

// The variable "<layer>.<name>" with values drawn for it, added to the parameters as `name`.
// wanted: rows times columns are the elements of `shape`.
Variable add_parameter(Parameters& parameters, const std::string& layer, const std::string& name,
                       const Shape& shape, const Initialisation& initialisation, const InitialValues& wanted,
                       bool transposed = false);
// The same with one value everywhere.
Variable add_constant(Parameters& parameters, const std::string& layer, const std::string& name,
                      const Shape& shape, double value);

// "<kind> '<layer>': found input [2, 3], expected [..., 4]"
Tensor unfit_input(const std::string& kind, const std::string& layer, const Tensor& x,
                   const std::string& expected);

}  // namespace imprint::nn
