#pragma once
// The oracles of layers that are pages of compute/nn: plain loops.

#include <span>
#include <vector>

#include "compute/tensor/pages/page.h"
#include "tests/reference/interpreter.h"

namespace imprint::reference {

// The outputs of the pages of compute/nn/modules/recurrent_page.cpp.
std::vector<std::vector<double>> recurrent(const Page& page, std::span<const Operand> operands);
std::vector<std::vector<double>> recurrent_gradient(const Page& page, std::span<const Operand> operands);

// The outputs of the pages of compute/nn/modules/attention_page.cpp.
std::vector<std::vector<double>> attention(const Page& page, std::span<const Operand> operands);
std::vector<std::vector<double>> attention_gradient(const Page& page, std::span<const Operand> operands);

}  // namespace imprint::reference
