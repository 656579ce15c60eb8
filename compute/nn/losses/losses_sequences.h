#pragma once
// Losses between sequences without alignment: the sum over all alignments, in logarithms. Every step is
// recorded: the program grows with steps, and compiling with it.

#include <cstdint>

#include "compute/nn/losses/losses.h"

namespace imprint::nn {

struct CtcOptions {
  std::int32_t blank = 0;
  bool zero_infinity = false;  // a target that fits no alignment has loss and gradient 0, else infinity
  Reduction reduction = Reduction::mean;  // means divide each loss by its target's length (at least 1) first
};
// -log of the probability of all alignments of the target: repeats are merged, then blanks removed.
// log_probabilities: [batch, steps, classes], such as log_softmax(logits). target: int32 [batch, length],
// without blanks; what is beyond target_lengths does not count. step_lengths, target_lengths: int32 [batch].
// Graves, Fernandez, Gomez, Schmidhuber, Connectionist Temporal Classification, 2006. PyTorch's CTCLoss,
// which has the steps first.
Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& step_lengths,
                const Tensor& target_lengths, const CtcOptions& options = {});

struct RnntOptions {
  std::int32_t blank = 0;
  Reduction reduction = Reduction::mean;
};
// -log of the probability of all paths of a transducer: a blank goes to the next step, a label to the next
// label. log_probabilities: [batch, steps, length + 1, classes]. Other operands as ctc_loss's.
// Graves, Sequence Transduction with Recurrent Neural Networks, 2012. torchaudio's rnnt_loss takes logits.
Tensor rnnt_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& step_lengths,
                 const Tensor& target_lengths, const RnntOptions& options = {});

}  // namespace imprint::nn
