#include "tools/imprint/large_graphs.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/tensor/loop.h"
#include "compute/tensor/tensor.h"

namespace imprint::tools {

namespace {

using Made = Result<ProgramDescription>;

// nodes: of one turn.
std::int64_t turns(std::int64_t wanted, std::int64_t nodes) {
  return std::max<std::int64_t>(1, wanted / nodes);
}

ProgramDescription of(Tensor x, Tensor result) {
  return {.name = "large", .inputs = {std::move(x)}, .outputs = {std::move(result)}};
}

Variable weights(std::string name, const Shape& shape) {
  return {std::move(name), shape,
          std::vector<float>(static_cast<std::size_t>(shape.element_count()), 0.125f)};
}

Made elementwise_chain(std::int64_t nodes) {
  const Tensor x = input("x", {64, 64});
  Tensor y = x;
  for (std::int64_t i = 0; i < turns(nodes, 2); ++i) y = tanh(y + x);
  return of(x, y);
}

Made softmax_chain(std::int64_t nodes) {
  const Tensor x = input("x", {512, 64});
  Tensor y = x;
  for (std::int64_t i = 0; i < turns(nodes, 6); ++i) y = softmax(y);
  return of(x, y);
}

Made small_softmax_chain(std::int64_t nodes) {
  const Tensor x = input("x", {1, 4});
  Tensor y = x;
  for (std::int64_t i = 0; i < turns(nodes, 6); ++i) y = softmax(y);
  return of(x, y);
}

// Chains side by side, in step. Each step reads the first of its chain and one of its neighbour.
Made crossing_chains(std::int64_t nodes) {
  constexpr std::size_t kChains = 16;
  const Tensor x = input("x", {512, 64});
  std::vector<Tensor> first, chains;
  for (std::size_t c = 0; c < kChains; ++c) first.push_back(softmax(x * static_cast<float>(c + 1)));
  chains = first;
  for (std::int64_t i = 0; i < turns(nodes, 10 * kChains); ++i) {
    const std::vector<Tensor> before = chains;
    for (std::size_t c = 0; c < kChains; ++c)
      chains[c] = softmax(before[c] + before[(c + 1) % kChains]) * first[c] + x;
  }
  return of(x, concat(chains, 0));
}

// Joins of many values, each read by many.
Made wide_joins(std::int64_t nodes) {
  const Tensor x = input("x", {4, 8});
  Tensor joined = x;
  const std::int64_t width = turns(nodes, 16);
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < width; ++i)
      parts.push_back(exp(slice(joined, 0, i % joined.extent(0), i % joined.extent(0) + 1)) *
                      static_cast<float>(i));
    joined = concat(parts, 0);
  }
  return of(x, joined);
}

// Many branches of one value, joined at the end.
Made fan_out_and_in(std::int64_t nodes) {
  const Tensor x = input("x", {32, 8});
  std::vector<Tensor> branches;
  for (std::int64_t i = 0; i < turns(nodes, 3); ++i)
    branches.push_back(exp(x * (0.5f + 1e-5f * static_cast<float>(i))));
  return of(x, sum(concat(branches, 0), {0}));
}

// Many values of many sizes that read one value, added one by one.
Made one_value_read_by_all(std::int64_t nodes) {
  const Tensor x = input("x", {64, 64});
  const Tensor scale = sigmoid(sum(x * x, {1}, true));
  Tensor total = x;
  ProgramDescription description = of(x, x);
  description.outputs.clear();
  for (std::int64_t i = 0; i < turns(nodes, 4); ++i) {
    const Tensor one = sum(x * scale + static_cast<float>(i), {0});
    if (i % 64 == 0) description.outputs.push_back(one);
    total = total + one * scale;
  }
  description.outputs.push_back(total);
  return description;
}

// Each step doubles the number of paths.
Made diamond_ladder(std::int64_t nodes) {
  const Tensor x = input("x", {128});
  Tensor y = x;
  for (std::int64_t i = 0; i < turns(nodes, 3); ++i) y = y * y + (y + 1.0f);
  return of(x, y);
}

Made views(std::int64_t nodes) {
  const Tensor x = input("x", {8, 16, 32});
  Tensor y = x, total = sum(x);
  for (std::int64_t i = 0; i < turns(nodes, 4); ++i) {
    y = permute(reshape(y, {16, 8, 32}), {1, 0, 2});
    y = slice(concat({y, x}, 2), 2, 16, 48);
    if (i % 16 == 15) total = total + sum(y);
  }
  return of(x, total);
}

Made lstm(std::int64_t nodes) {
  constexpr std::int64_t kBatch = 16, kHidden = 32;
  const std::int64_t steps = turns(nodes, 28);
  const Tensor x = input("x", {steps, kBatch, kHidden});
  const Tensor wx = weights("wx", {kHidden, 4 * kHidden}).value();
  const Tensor wh = weights("wh", {kHidden, 4 * kHidden}).value();
  const Tensor bias = weights("bias", {4 * kHidden}).value();
  Tensor hidden = zeros({kBatch, kHidden}), cell = hidden;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor now = reshape(slice(x, 0, t, t + 1), {kBatch, kHidden});
    const Tensor gates = matmul(now, wx) + matmul(hidden, wh) + bias;
    const auto gate = [&](std::int64_t i) { return slice(gates, 1, i * kHidden, (i + 1) * kHidden); };
    cell = sigmoid(gate(0)) * cell + sigmoid(gate(1)) * tanh(gate(2));
    hidden = sigmoid(gate(3)) * tanh(cell);
  }
  return of(x, hidden);
}

Result<ProgramDescription> trained(const Tensor& x, const Tensor& loss, const nn::Parameters& parameters) {
  IMPRINT_ASSIGN(const std::vector<Tensor> gradient, gradients(loss, parameters.values()));
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped, nn::clip_by_global_norm(gradient, 1.0));
  const nn::Adam adam(parameters, {});
  ProgramDescription description = of(x, loss);
  IMPRINT_ASSIGN(description.updates, adam.step(clipped.gradients, Tensor(1e-3f)));
  return description;
}

Made mlp_step(std::int64_t nodes) {
  constexpr std::int64_t kWidth = 16;
  const Tensor x = input("x", {64, kWidth});
  nn::Parameters parameters;
  Tensor y = x;
  for (std::int64_t i = 0; i < turns(nodes, 90); ++i) {
    const Variable weight = weights(text("weight", i), {kWidth, kWidth});
    const Variable bias = weights(text("bias", i), {kWidth});
    parameters.add(weight.name(), weight);
    parameters.add(bias.name(), bias);
    y = relu(matmul(y, weight.value()) + bias.value());
  }
  return trained(x, mean(square(y)), parameters);
}

// Layer norms, gates and residuals, with their gradients.
Made residual_blocks(std::int64_t nodes) {
  constexpr std::int64_t kWidth = 64;
  const Tensor x = input("x", {512, kWidth});
  nn::Parameters parameters;
  Tensor y = x;
  for (std::int64_t i = 0; i < turns(nodes, 110); ++i) {
    const Variable gain = weights(text("gain", i), {kWidth}), shift = weights(text("shift", i), {kWidth});
    parameters.add(gain.name(), gain);
    parameters.add(shift.name(), shift);
    y = y + softmax(layer_norm(y, gain.value(), shift.value())) * tanh(y);
  }
  return trained(x, mean(square(y)), parameters);
}

// Each turn takes a step of its own weights by its own gradient: one phase waits for the other.
Made unrolled_training(std::int64_t nodes) {
  const Tensor x = input("x", {64, 8});
  Tensor weight = weights("weight", {8, 8}).value();
  for (std::int64_t i = 0; i < turns(nodes, 12); ++i) {
    const Tensor error = matmul(x, weight) - x * static_cast<float>(i);
    weight = weight - 0.01f * matmul(transpose(x), error * tanh(error));
  }
  return of(x, weight);
}

Made small_components(std::int64_t nodes) {
  ProgramDescription description{.name = "large"};
  for (std::int64_t i = 0; i < turns(nodes, 12); ++i) {
    const std::int64_t rows = 4 + i % 61;
    description.inputs.push_back(input(text("x", i), {rows, 8}));
    const Tensor weight = weights(text("w", i), {8, 8}).value();
    const Tensor y = tanh(matmul(description.inputs.back(), weight)) * sigmoid(description.inputs.back());
    description.outputs.push_back(sum(softmax(y), {0}));
  }
  return description;
}

// State of its own for each counter, and readers of the old and the new content.
Made counters(std::int64_t nodes) {
  ProgramDescription description{.name = "large"};
  description.inputs.push_back(input("x", {4, 8}));
  Tensor total = description.inputs[0];
  const Tensor row = cast(sum(total) * 0.0f, DType::int32);
  for (std::int64_t i = 0; i < turns(nodes, 8); ++i) {
    const Variable counter = weights(text("counter", i), {8}), table = weights(text("table", i), {4, 8});
    const Tensor next = counter.value() + sum(total * static_cast<float>(i), {0});
    total = total + next * table.value();
    description.updates.push_back(Update::assign(counter, next));
    description.updates.push_back(
        Update::scatter_rows(table, reshape(row, {1}), reshape(next * 2.0f, {1, 8})));
  }
  description.outputs.push_back(total);
  return description;
}

constexpr std::array kGraphs{LargeGraph{"elementwise-chain", elementwise_chain},
                             LargeGraph{"softmax-chain", softmax_chain},
                             LargeGraph{"small-softmax-chain", small_softmax_chain},
                             LargeGraph{"crossing-chains", crossing_chains},
                             LargeGraph{"wide-joins", wide_joins},
                             LargeGraph{"fan-out-and-in", fan_out_and_in},
                             LargeGraph{"one-value-read-by-all", one_value_read_by_all},
                             LargeGraph{"diamond-ladder", diamond_ladder},
                             LargeGraph{"views", views},
                             LargeGraph{"lstm", lstm},
                             LargeGraph{"mlp-step", mlp_step},
                             LargeGraph{"residual-blocks", residual_blocks},
                             LargeGraph{"unrolled-training", unrolled_training},
                             LargeGraph{"small-components", small_components},
                             LargeGraph{"counters", counters}};

}  // namespace

std::span<const LargeGraph> large_graphs() { return kGraphs; }

Result<ProgramDescription> looped_lstm(std::int64_t steps) {
  constexpr std::int64_t kBatch = 64, kFeatures = 32, kHidden = 128;
  const Tensor x = input("x", {steps, kBatch, kFeatures});
  nn::Parameters parameters;
  parameters.add("weights", weights("weights", {kFeatures + kHidden, 4 * kHidden}));
  parameters.add("bias", weights("bias", {4 * kHidden}));
  const std::vector<Tensor> own = parameters.values();
  const auto body = [&](std::span<const Tensor> state, std::span<const Tensor> row) {
    const Tensor gates = matmul(concat({row[0], state[0]}, 1), own[0]) + own[1];
    const auto gate = [&](std::int64_t i) { return slice(gates, 1, i * kHidden, (i + 1) * kHidden); };
    const Tensor cell = sigmoid(gate(0)) * state[1] + sigmoid(gate(1)) * tanh(gate(2));
    const Tensor hidden = sigmoid(gate(3)) * tanh(cell);
    return ScanStep{{hidden, cell}, {hidden}};
  };
  const Tensor start[] = {zeros({kBatch, kHidden}), zeros({kBatch, kHidden})}, stacks[] = {x};
  IMPRINT_ASSIGN(const Scanned scanned, scan(body, start, stacks));
  return trained(x, mean(square(scanned.results[0])), parameters);
}

}  // namespace imprint::tools
