#pragma once
// Small brains, and their networks as plain loops in double precision, for tests of learning programs.

#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/base/philox.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/learner_traits.h"
#include "plugin/agent/spec/network.h"
#include "tests/reference/updates.h"

namespace imprint::agent::oracle {

using Numbers = std::vector<double>;

// Pseudo-random values.
inline double draw(std::uint32_t index, std::uint32_t stream) {
  return 2 * philox_uniform(index, stream, 1, 3, 4) - 1;
}

inline BrainSpec pet_spec(std::uint32_t brains) {
  BrainSpec spec;
  spec.observation.count = 3;
  spec.observation.scale = {2.0f, 1.0f, 0.5f};
  spec.action.branch_sizes = {4};
  spec.goal_count = 2;
  spec.hidden_sizes = {5, 6};
  spec.activation = Activation::tanh;  // smooth, so that differences work
  spec.brain_count = brains;
  spec.seed = 21;
  spec.learner = LearnerKind::feedback;
  spec.batch_size = 8;  // its reciprocal is exact
  spec.replay_capacity = 9;
  spec.learning_rate = 0.01f;
  spec.max_gradient_norm = 0.05f;  // well below the gradients' norm, so that the test covers the clip
  return spec;
}

// Weights of one brain, layer by layer: weight [in][out], bias [out].
using Weights = std::vector<Numbers>;

inline Weights weights_of(const Network& network, std::uint32_t brain, std::uint32_t brains) {
  Weights weights;
  for (const nn::Parameter& parameter : network.parameters()) {
    const Numbers all = reference::initial_values(parameter.variable);
    const std::size_t size = all.size() / brains;
    weights.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(brain * size),
                         all.begin() + static_cast<std::ptrdiff_t>((brain + 1) * size));
  }
  return weights;
}

inline void normalise(Numbers& layer) {
  const auto count = static_cast<double>(layer.size());
  double mean = 0, square = 0;
  for (const double value : layer) mean += value / count;
  for (const double value : layer) square += (value - mean) * (value - mean) / count;
  for (double& value : layer) value = (value - mean) / std::sqrt(square + 1e-5);
}

inline Numbers forward(const BrainSpec& spec, const Weights& weights, const Numbers& observation) {
  Numbers x = observation;
  for (std::size_t i = 0; i < x.size() && !spec.observation.scale.empty(); ++i)
    x[i] *= spec.observation.scale[i];
  for (std::size_t layer = 0; layer < weights.size(); layer += 2) {
    Numbers y = weights[layer + 1];
    for (std::size_t in = 0; in < x.size(); ++in)
      for (std::size_t out = 0; out < y.size(); ++out) y[out] += x[in] * weights[layer][in * y.size() + out];
    if (layer + 2 < weights.size()) {
      if (network_traits(spec).normalised_layers) normalise(y);
      for (double& value : y) value = std::tanh(value);
    }
    x = y;
  }
  return x;  // goal-major outputs
}

}  // namespace imprint::agent::oracle
