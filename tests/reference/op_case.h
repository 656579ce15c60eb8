#pragma once
// Small named cases that cover every primitive and composite on odd shapes: what a device computes, and its
// gradients, must agree with the oracle.

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "compute/tensor/tensor.h"
#include "tests/reference/interpreter.h"

namespace imprint::reference {

struct CaseInput {
  Shape shape;
  DType dtype = DType::float32;
  double low = -2, high = 2;  // float32: uniform in [low, high); int32: integers low .. high; bool: 0 or 1
  std::vector<double> avoid;  // kinks: no float32 value lies within 0.05 of these
};

// How far float32 may lie from the oracle: |found - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
  bool accepts(double found, double expected) const;  // NaN agrees with NaN, an infinity with itself
};

using Build = std::function<Tensor(std::span<const Tensor> inputs)>;

struct OpCase {
  std::string name;               // op, slash, what is odd about the operands
  std::vector<CaseInput> inputs;  // fed to inputs named "in0", "in1", ...
  Build build;
  Tolerance tolerance;
  Tolerance gradient_tolerance{2e-5, 2e-4};
  bool differentiable = true;  // false: integer or boolean results, steps, random numbers
};

std::vector<OpCase> op_cases();

// How GoogleTest names a case in messages.
void PrintTo(const OpCase& op_case, std::ostream* stream);

std::vector<Tensor> case_inputs(const OpCase& op_case);
// Fixed pseudo-random content for each input; exact in float32.
Bindings case_bindings(const OpCase& op_case);
// Whether float16 or bfloat16 is anywhere on the way to the output.
bool has_narrow_floats(const Tensor& output);
// A scalar that weighs each element of the output differently, so that no gradient cancels by symmetry.
Tensor case_loss(const Tensor& output);
// gradients of case_loss by the float32 inputs, in order; empty for a case that is not differentiable.
Result<std::vector<Tensor>> case_gradients(const OpCase& op_case, std::span<const Tensor> inputs,
                                           const Tensor& output);

// ---- the families op_cases() is made of ----
void add_elementwise_cases(std::vector<OpCase>& cases);
void add_activation_cases(std::vector<OpCase>& cases);
void add_shape_cases(std::vector<OpCase>& cases);
void add_folding_cases(std::vector<OpCase>& cases);

}  // namespace imprint::reference
