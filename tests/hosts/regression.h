#pragma once
// A small program to train in tests of hosts: y = x w + b by gradient descent, one kernel per operation, so
// that there are pieces to cut.

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "compute/graph/gradients/autodiff.h"
#include "compute/program/program.h"

namespace imprint::bridge {

struct Regression {
  Variable weight = Variable("weight", {4, 1}, std::vector<float>{0, 0, 0, 0});
  Variable bias = Variable::zeros("bias", {1});
  std::optional<Program> train, infer;

  Result<> build(Runtime& runtime) {
    const Tensor x = input("x", {32, 4}), y = input("y", {32, 1});
    const Tensor loss = mean(square(matmul(x, weight.value()) + bias.value() - y));
    const Tensor parameters[] = {weight.value(), bias.value()};
    IMPRINT_ASSIGN(const std::vector<Tensor> slopes, gradients(loss, parameters));
    ProgramDescription description;
    description.name = "train";
    description.inputs = {x, y};
    description.outputs = {loss};
    description.updates = {Update::assign(weight, weight.value() - slopes[0] * 0.1f),
                           Update::assign(bias, bias.value() - slopes[1] * 0.1f)};
    description.fuse = false;
    IMPRINT_ASSIGN(train, Program::compile(runtime, description));

    const Tensor one = input("x", {1, 4});
    ProgramDescription forward;
    forward.name = "infer";
    forward.inputs = {one};
    forward.outputs = {matmul(one, weight.value()) + bias.value()};
    IMPRINT_ASSIGN(infer, Program::compile(runtime, forward));
    return {};
  }

  // The samples of a step. The target is 2 x0 - x1 + x3 / 2 + 1/4.
  void fill(std::uint32_t slot, std::uint32_t step) {
    std::uint32_t state = step * 2654435761u + 12345u;
    const auto next = [&] {
      return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
    };
    float x[32][4], y[32];
    for (int row = 0; row < 32; ++row) {
      for (float& value : x[row]) value = next();
      y[row] = 2 * x[row][0] - x[row][1] + 0.5f * x[row][3] + 0.25f;
    }
    std::memcpy(train->input_bytes(slot, 0).data(), x, sizeof x);
    std::memcpy(train->input_bytes(slot, 1).data(), y, sizeof y);
  }

  float loss(std::uint32_t slot) const {
    float value = 0;
    std::memcpy(&value, train->output_bytes(slot, 0).data(), sizeof value);
    return value;
  }
};

}  // namespace imprint::bridge
