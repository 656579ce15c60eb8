#pragma once
// Classic control problems as environments on the GPU, with the constants, limits and starts of Gymnasium's.
// For trying learners, and as examples of an environment's GLSL.

#include "compute/nn/learners/environment.h"

namespace imprint::nn {

Environment cart_pole();  // CartPole-v1: 4 observations, 1 branch of 2 choices, 500 steps
Environment pendulum();   // Pendulum-v1: 3 observations, 1 continuous number, 200 steps

}  // namespace imprint::nn
