#pragma once
// A GRU or LSTM of a brain, or of all brains of a kennel at once.
//
// P = brain_count, N = rows, S = BrainSpec::state_count, H = cell_size. A state is the cell's outputs [H],
// then an LSTM's cells [H].
//
// Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014, in cuDNN's form; Hochreiter,
// Schmidhuber, Long Short-Term Memory, 1997. The gates are in PyTorch's order.

#include <string>

#include "compute/base/result.h"
#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// Rows of steps: sequences of `steps` rows one after the other. N is a multiple of steps.
struct SequenceRows {
  Tensor states;    // float32 [P, N, S]: from before each row, by the weights that decided
  Tensor restarts;  // float32 [P, N]: 1 = the row goes on from there, not from the row before
  std::int64_t steps = 1;
};

class RecurrentCell {
 public:
  // Weights "cell.weight_ih" [P, in, gates H], "cell.weight_hh" [P, H, gates H] and biases "cell.bias_ih",
  // "cell.bias_hh" [P, 1, gates H] of the network `name`. Orthogonal and 0 for the PPO learner, else uniform.
  static Result<RecurrentCell> create(const BrainSpec& spec, const std::string& name, std::int64_t in);

  struct Output {
    Tensor features;  // [P, N, H]
    Tensor states;    // [P, N, S] after each row
  };
  // One step of each row: x [P, N, in], states [P, N, S].
  Output step(const Tensor& x, const Tensor& states) const;
  // Sequences begin from their first row's state. Errors are in the tensors.
  Output run(const Tensor& x, const SequenceRows& rows) const;
  const nn::Parameters& parameters() const { return parameters_; }  // the input's weight and bias first

 private:
  RecurrentCell(Cell kind, std::int64_t size) : kind_(kind), size_(size) {}
  Tensor projected(const Tensor& x) const;  // [..., gates H]
  // [P, N, S] after one step.
  Tensor advance(const Tensor& projected, const Tensor& states) const;

  Cell kind_;
  std::int64_t size_;
  nn::Parameters parameters_;
};

// A variable [P, rows, out]. Brain p draws from seed + p alone, so that its first weights do not depend on
// the other brains. in: of the layer, for the range of the values.
Variable grouped_parameter(const BrainSpec& spec, const nn::Initialisation& initialisation,
                           const std::string& network, const std::string& name, std::int64_t rows,
                           std::int64_t in, std::int64_t out);

}  // namespace imprint::agent
