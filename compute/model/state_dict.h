#pragma once
// Parameters as state dictionaries: the names and layouts of PyTorch's files. Imprint stores some weights
// transposed (Parameter::transposed); these functions turn them on the way.

#include <string_view>

#include "compute/model/safetensors.h"
#include "compute/nn/parameter.h"
#include "compute/program/run.h"

namespace imprint::nn {

// The content of the variables under "<prefix><name>". int32 variables become int64, as PyTorch's counters.
Result<safetensors::File> save_state(Session& session, const Parameters& parameters,
                                     std::string_view prefix = {});

// Writes "<prefix><name>" into each variable. Arrays of other names are ignored. Errors: not_found (a name
// that the file lacks), shape_mismatch; nothing is written then.
Result<> load_state(Session& session, const Parameters& parameters, const safetensors::File& file,
                    std::string_view prefix = {});

}  // namespace imprint::nn
