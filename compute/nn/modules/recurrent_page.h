#pragma once
// The steps of a recurrent layer as one operation. On a device one kernel takes a sequence through all steps,
// with the weights in registers and caches; another one goes back. Device cpu, large layers and further
// derivatives run the same steps as ordinary operations.

#include "compute/nn/modules/recurrent.h"

namespace imprint::nn {

// Sequences of `lines` per network of `brains`. A state is the hidden state, then an LSTM's cells.
struct CellSteps {
  Cell cell = Cell::gru;  // or lstm
  Tensor projected;       // [brains, lines, steps, gates hidden]: the inputs' part with its bias
  Tensor weight;          // [brains, hidden, gates hidden]
  Tensor bias;            // [brains, gates hidden], of the hidden part
  Tensor states;          // before the first step [brains, lines, state]; with restarts before each step at
                          // which a sequence begins [brains, lines, steps, state]
  Tensor restarts = {};   // float32 [brains, lines, steps]: above 0.5 a sequence begins at this step, as it
                          // does at the first; empty: only there
  bool reverse = false;   // from the last step to the first
};

// The states after each step: [brains, lines, steps, state]. Operands must have these shapes.
Tensor run_cells(const CellSteps& steps);

}  // namespace imprint::nn
