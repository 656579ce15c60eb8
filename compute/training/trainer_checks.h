#pragma once
// Checks of a trainer before its first step: that something is trained, that checkpoints hold it, and that no
// other run's files are in the folder. Internal.

#include <string>

#include "compute/model/files/safetensors.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/pass.h"

namespace imprint::training {

// Errors: invalid_argument for an optimiser without parameters; a loss that depends on none of them; a loss
// through which a gradient reaches, or a pass that updates, a variable that is in none of the three.
Result<> check_training(const Tensor& loss, nn::Pass& pass, const nn::Parameters& state,
                        const nn::Optimiser& optimiser, const nn::Parameters& frozen);

// Makes the folder if it is missing. Error: io.
Result<> make_run_folder(const std::string& folder);
// Moves checkpoints and curves of an earlier run into "earlier-1", or the next number that is free. Error:
// io.
Result<> set_aside_earlier_run(const std::string& folder);

// Error: invalid_argument, if the file holds this model with another optimiser, or one of other parameters.
Result<> check_optimiser_of(const safetensors::File& checkpoint, const nn::Parameters& saved);

// A loss in messages, where NaN has no sign.
std::string loss_text(double loss);

}  // namespace imprint::training
