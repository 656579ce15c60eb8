#pragma once
// One recorded forward pass through modules, for training or for evaluation. A training pass hands out random
// numbers to dropout and noise, and collects the updates of running statistics.
//
//   Pass pass("net", seed);
//   const Tensor loss = cross_entropy(network(x, pass), labels);
//   ...
//   pass.finish(updates);  // beside the optimiser's
//
// A module called without a pass evaluates: dropout and noise do nothing, statistics are the running ones.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

class Pass {
 public:
  Pass() = default;  // evaluates
  // Trains. The generator is the variable "<name>.generator".
  Pass(const std::string& name, std::uint64_t seed);
  // Not copied: take it by reference. A copy would lose the updates of statistics.
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  Pass(Pass&&) = default;
  Pass& operator=(Pass&&) = default;

  bool trains() const { return generator_.ok(); }
  // Each call has a stream of its own. Only when it trains.
  Tensor uniform(const Shape& shape) { return random_uniform(generator_.value(), shape, stream_++); }
  Tensor normal(const Shape& shape) { return random_normal(generator_.value(), shape, stream_++); }
  void update(Update update) { updates_.push_back(std::move(update)); }

  // Before the same pass is recorded again: the same random numbers, and no updates yet.
  void restart() {
    stream_ = 0;
    updates_.clear();
  }

  // Those so far, for a function that records a part of the pass.
  std::vector<Update>& updates() { return updates_; }

  // Adds the updates of statistics and, if random numbers were drawn, of the generator. Call once, after the
  // forward pass.
  void finish(std::vector<Update>& updates) const;
  const Parameters& state() const { return state_; }  // "generator": int32 [4]; empty when it evaluates

 private:
  friend class DtypePolicy;  // changes what the updates compute
  Variable generator_;
  std::uint32_t stream_ = 0;
  std::vector<Update> updates_;
  Parameters state_;
};

}  // namespace imprint::nn
