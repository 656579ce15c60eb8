#pragma once
// Pictures changed at random in a training pass, on the device: x [batch, channels, height, width]. An
// evaluation leaves them as they are. Random numbers are the pass's, so that a resumed run has the same bits.

#include <cstdint>
#include <vector>

#include "compute/nn/pass.h"
#include "compute/tensor/composites/images.h"

namespace imprint::training {

// (x - mean) / deviation, one number per channel.
Tensor normalise(const Tensor& x, const std::vector<float>& mean, const std::vector<float>& deviation);

// Each picture is mirrored, left to right, with probability p.
Tensor random_flip(const Tensor& x, nn::Pass& pass, double p = 0.5);
// Each picture moves by up to `most` pixels along both axes; what enters is 0. torchvision's RandomCrop with
// padding.
Tensor random_shift(const Tensor& x, nn::Pass& pass, std::int64_t most);
struct AffineRange {
  double turn = 0;                  // degrees, in both directions
  double least = 1, most = 1;       // factor of the size
  double shift = 0;                 // share of each side, in all directions
  PadMode outside = PadMode::edge;  // constant: what enters is 0
};
// Each picture is turned, scaled and moved by even draws, and read bilinearly. torchvision's RandomAffine;
// with least above 1, its RandomResizedCrop without a change of the aspect.
Tensor random_affine(const Tensor& x, nn::Pass& pass, const AffineRange& range);
struct ColourRange {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from 1 - number to 1 + number
};
// Each picture is made brighter, then richer in contrast, then in colour. Values stay in [0, 1].
// torchvision's ColorJitter, which draws the order too and also turns hues. saturation: for three channels.
Tensor random_colour(const Tensor& x, nn::Pass& pass, const ColourRange& range);
// A square of `side` pixels of each picture is 0. DeVries, Taylor, Improved Regularization of Convolutional
// Neural Networks with Cutout, 2017.
Tensor random_cutout(const Tensor& x, nn::Pass& pass, std::int64_t side);

}  // namespace imprint::training
