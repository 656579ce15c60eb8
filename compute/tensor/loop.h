#pragma once
// Loops with a body: a function of tensors that is recorded and compiled once and runs many times. A program
// does not grow with the steps. Loops differentiate, to any order, and a run can be cut between any two
// dispatches (compute/docs/loops.md).

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint {

struct ScanStep {
  std::vector<Tensor> carry;    // with the shapes and dtypes of the carry that the body was given
  std::vector<Tensor> results;  // of this step
};

// May use any tensors from outside, such as weights: their gradients sum over the steps.
using ScanBody = std::function<ScanStep(std::span<const Tensor> carry, std::span<const Tensor> x)>;

struct Scanned {
  std::vector<Tensor> carry;    // after the last step
  std::vector<Tensor> results;  // [steps, ...] each
};

struct ScanOptions {
  std::int64_t steps = 0;  // if there are no stacks
  bool reverse = false;    // from the last row to the first; results keep their rows
  std::string label = {};  // names the loop's part of a program, for figures and dumps
};

// Calls the body once, to record it. Step t sees row t of each stack [steps, ...]. If the first axis of the
// stacks is named (Extent), the carry stays as it is in steps that a run does not use; they take time all the
// same. Errors: the error of any
// tensor; shape_mismatch (stacks of other lengths, another carry than was given); invalid_argument (no
// steps); unsupported (a loop inside of the body that depends on the carry or the rows).
Result<Scanned> scan(const ScanBody& body, std::span<const Tensor> carry, std::span<const Tensor> stacks = {},
                     const ScanOptions& options = {});

using LoopCondition = std::function<Tensor(std::span<const Tensor> carry)>;  // one bool
using LoopBody = std::function<std::vector<Tensor>(std::span<const Tensor> carry)>;

// Runs the body while the condition holds, at most `most_steps` times. Each run takes the time of
// `most_steps` steps: a recorded program has no branches. Differentiable. Errors: those of scan.
Result<std::vector<Tensor>> while_loop(const LoopCondition& condition, const LoopBody& body,
                                       std::span<const Tensor> carry, std::int64_t most_steps);

using Branch = std::function<std::vector<Tensor>()>;

// The results of one of two branches. Both are computed; a gradient reaches only the chosen one. chosen: one
// bool. Errors: the error of any tensor; shape_mismatch (branches of different results).
Result<std::vector<Tensor>> cond(const Tensor& chosen, const Branch& if_true, const Branch& if_false);

namespace tensor {

// The body of an op `loop`. Its leaves are placeholders, each an `input`, and literals. The node's inputs are
// the first carry, the stacks, then the values that the steps share. Its outputs are the last carry, then
// stacks of the results.
struct Loop {
  std::int64_t steps = 0;
  bool reverse = false;
  AxisName name;                             // of the steps, in stacks of results
  std::string label;                         // ScanOptions::label
  std::vector<NodeRef> carry, rows, shared;  // placeholders
  std::vector<NodeRef> next;                 // of each carry
  std::vector<NodeRef> results;              // the caller's, then the carries as the step found them
};

// The tensors that a loop's placeholders stand for.
struct LoopInputs {
  std::vector<Tensor> carry, stacks, shared;
};

// Makes a loop; `loop.results` are the caller's only. Whatever else the body reads from outside becomes
// shared. Leaves out stacks and shared values that the body does not use. Gives all outputs.
Result<std::vector<Tensor>> make_loop(Loop loop, LoopInputs inputs);

// A placeholder for a value of this shape and dtype.
NodeRef loop_placeholder(const Shape& shape, DType dtype);

Tensor loop_output(const NodeRef& loop, std::size_t position);

}  // namespace tensor
}  // namespace imprint
