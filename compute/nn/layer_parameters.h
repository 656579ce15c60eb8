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

// A kennel's parameter [groups, 1, extent] beside x [groups, batch..., extent]; other parameters as they are.
Tensor beside_rows(const Tensor& parameter, const Tensor& x);
// The networks of a kennel as groups of channels: [networks, batch, channels, ...] <-> [batch,
// networks channels, ...].
Tensor networks_as_channels(const Tensor& x);
Tensor channels_as_networks(const Tensor& x, std::int64_t networks);

}  // namespace imprint::nn
