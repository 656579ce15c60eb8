#pragma once
// Small named cases that cover every primitive and composite on odd shapes. A device's results and gradients
// must agree with the oracle's.

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

// The allowed error of float32: |found - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
  bool accepts(double found, double expected) const;  // NaN equals NaN, an infinity equals itself
};

using Build = std::function<Tensor(std::span<const Tensor> inputs)>;

struct OpCase {
  std::string name;               // "op/what is special about the operands"
  std::vector<CaseInput> inputs;  // for inputs named "in0", "in1", ...
  Build build;
  Tolerance tolerance;
  Tolerance gradient_tolerance{2e-5, 2e-4};
  bool differentiable = true;  // false: integer or boolean results, steps, random numbers
};

std::vector<OpCase> op_cases();

// GoogleTest prints a case's name.
void PrintTo(const OpCase& op_case, std::ostream* stream);

std::vector<Tensor> case_inputs(const OpCase& op_case);
// Fixed pseudo-random content for each input; exact in float32.
Bindings case_bindings(const OpCase& op_case);
// Whether any node before the output is float16 or bfloat16.
bool has_narrow_floats(const Tensor& output);
// A scalar with a different weight for each element of the output, so that no gradient cancels by symmetry.
Tensor case_loss(const Tensor& output);
// Gradients of case_loss by the float32 inputs, in order. Empty for a case that is not differentiable.
Result<std::vector<Tensor>> case_gradients(const OpCase& op_case, std::span<const Tensor> inputs,
                                           const Tensor& output);

// The oracle of a primitive that is a function of one double; null for others.
using UnaryOracle = double (*)(double);
UnaryOracle unary_oracle(tensor::Op op);

// ---- the parts of op_cases() ----
void add_elementwise_cases(std::vector<OpCase>& cases);
void add_activation_cases(std::vector<OpCase>& cases);
void add_shape_cases(std::vector<OpCase>& cases);
void add_folding_cases(std::vector<OpCase>& cases);
void add_composite_cases(std::vector<OpCase>& cases);
void add_page_cases(std::vector<OpCase>& cases);
void add_loop_cases(std::vector<OpCase>& cases);
void add_layer_cases(std::vector<OpCase>& cases);

}  // namespace imprint::reference
