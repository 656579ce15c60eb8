#pragma once
// Pictures changed at random in a training pass, on the device: x [batch, channels, height, width]. An
// evaluation leaves them as they are. Random numbers are the pass's, so that a resumed run has the same bits.

#include <cstdint>
#include <vector>

#include "compute/nn/pass.h"

namespace imprint::training {

// (x - mean) / deviation, one number per channel.
Tensor normalise(const Tensor& x, const std::vector<float>& mean, const std::vector<float>& deviation);

// Each picture is mirrored, left to right, with probability p.
Tensor random_flip(const Tensor& x, nn::Pass& pass, double p = 0.5);
// Each picture moves by up to `most` pixels along both axes; what enters is 0. torchvision's RandomCrop with
// padding.
Tensor random_shift(const Tensor& x, nn::Pass& pass, std::int64_t most);
// A square of `side` pixels of each picture is 0. DeVries, Taylor, Improved Regularization of Convolutional
// Neural Networks with Cutout, 2017.
Tensor random_cutout(const Tensor& x, nn::Pass& pass, std::int64_t side);

}  // namespace imprint::training
