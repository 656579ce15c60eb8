#pragma once
// The oracle: computes node graphs with plain loops in double precision. Slow and readable on purpose. Every
// kernel, derivative and composite is compared with it. int32 values are exact doubles and wrap at 32 bits;
// bools are 0 or 1; float32 values are not rounded.

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::reference {

// Row-major elements by name of input or variable. A variable without an entry has its initial content.
using Bindings = std::map<std::string, std::vector<double>>;

// The tensor's elements, row-major. Throws std::runtime_error for a failed tensor, an unbound input or a
// wrong number of elements.
std::vector<double> evaluate(const Tensor& tensor, const Bindings& bindings = {});
// Several tensors; shared nodes are computed once.
std::vector<std::vector<double>> evaluate_all(std::span<const Tensor> tensors, const Bindings& bindings = {});

// The initial content of a variable.
std::vector<double> initial_values(const Variable& variable);

// ---- one primitive on elements, for evaluate ----
struct Operand {
  const tensor::Node& node;
  const std::vector<double>& values;
};
std::vector<double> elementwise(const tensor::Node& node, std::span<const Operand> operands);
std::vector<double> generate(const tensor::Node& node, std::span<const Operand> operands);
std::vector<double> arrange(const tensor::Node& node,
                            std::span<const Operand> operands);  // views and selects
// Output node.ints[0] of a page, from the page's operands: by the oracle of its name, else by its CPU
// function or its composition.
std::vector<double> page(const tensor::Node& node, std::span<const Operand> operands);
std::vector<double> fold(const tensor::Node& node,
                         std::span<const Operand> operands);  // reductions, contraction, scans, scatters

}  // namespace imprint::reference
