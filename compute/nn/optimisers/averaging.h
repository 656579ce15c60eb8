#pragma once
// Averages of parameters over the steps of a training run: an exponential moving average (EMA), or the mean
// of all since the start (SWA). Both often generalise better than the last weights.
//
//   const AveragedParameters averages("net.average", network.parameters(), {.decay = 0.999});
//   auto updates = optimiser.step(gradients, rate);
//   averages.follow(*updates);          // in the same program: averages the parameters after the step
//   ... evaluate with averages.swap() run before and after, or write averages.parameters() to a file
//
// Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, 2018. PyTorch's
// AveragedModel: the first step copies.

#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct AveragingOptions {
  double decay = 0;  // EMA: average = decay average + (1 - decay) parameter. 0: the mean of all steps (SWA)
};

class AveragedParameters {
 public:
  // The averages' variables are called "<name>.<parameter>".
  AveragedParameters(const std::string& name, const Parameters& parameters,
                     const AveragingOptions& options = {});

  // Adds the updates of the averages. Where `updates` assigns a parameter, its new value counts, else its
  // content.
  void follow(std::vector<Update>& updates) const;
  // The updates that exchange parameters and averages. Run them again to undo.
  std::vector<Update> swap() const;

  const Parameters& parameters() const { return averages_; }  // under the names of the parameters
  const Parameters& state() const { return state_; }          // "average.<parameter>" and "count": int32 [1]

 private:
  AveragingOptions options_;
  Parameters source_, averages_, state_;
  Variable count_;
};

}  // namespace imprint::nn
