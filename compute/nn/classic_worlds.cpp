#include "compute/nn/classic_worlds.h"

#include "compute/kernels/embedded_shaders.h"

namespace imprint::nn {

using namespace kernels;

World cart_pole() {
  World world{.name = "cart_pole",
              .glsl = std::string(embedded_shader("worlds/cart_pole")),
              .state = 4,
              .observations = 4,
              .step_limit = 500};
  world.action.branches = {2};
  return world;
}

World pendulum() {
  World world{.name = "pendulum",
              .glsl = std::string(embedded_shader("worlds/pendulum")),
              .state = 2,
              .observations = 3,
              .step_limit = 200};
  world.action.continuous = 1;
  return world;
}

}  // namespace imprint::nn
