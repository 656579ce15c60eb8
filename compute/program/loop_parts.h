#pragma once
// Takes programs with loops (compute/tensor/loop.h) apart into a sequence: values before a loop, the body
// with one turn per step, values after it. Variables of the sequence's own carry values between the parts.

#include <span>
#include <vector>

#include "compute/program/program_sequence.h"
#include "compute/tensor/node.h"

namespace imprint::program {

// The nodes that the roots depend on, ordered by creation: inputs before users. They lie in the roots.
std::vector<const tensor::NodeRef*> reachable(std::span<const Tensor> roots);

bool has_loops(const ProgramDescription& description);

// Errors: the error of any tensor.
Result<ProgramSequence> parts_of_loops(const ProgramDescription& description);

// The sequence with its loops taken apart; a part that repeats becomes rounds. Errors: unsupported (loops and
// rounds).
Result<ProgramSequence> without_loops(const ProgramSequence& sequence);

}  // namespace imprint::program
