#include "compute/nn/learners/classic_environments.h"

#include "compute/kernels/embedded_shaders.h"

namespace imprint::nn {

using namespace kernels;

Environment cart_pole() {
  Environment environment{.name = "cart_pole",
                          .glsl = std::string(embedded_shader("environments/cart_pole")),
                          .state = 4,
                          .observations = 4,
                          .step_limit = 500};
  environment.action.branches = {2};
  return environment;
}

Environment pendulum() {
  Environment environment{.name = "pendulum",
                          .glsl = std::string(embedded_shader("environments/pendulum")),
                          .state = 2,
                          .observations = 3,
                          .step_limit = 200};
  environment.action.continuous = 1;
  return environment;
}

}  // namespace imprint::nn
