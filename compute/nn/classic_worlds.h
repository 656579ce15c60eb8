#pragma once
// Classic control problems as worlds (world.h), with the numbers, limits and starts of Gymnasium's: to try a
// learner in, and to start a text from.

#include "compute/nn/world.h"

namespace imprint::nn {

World cart_pole();  // CartPole-v1: 4 observations, 2 choices, 500 steps
World pendulum();   // Pendulum-v1: 3 observations, 1 number, 200 steps

}  // namespace imprint::nn
