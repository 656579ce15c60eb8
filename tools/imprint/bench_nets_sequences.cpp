// Suite nets: transformers, attention and recurrent cells.

#include <memory>

#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/recurrent.h"
#include "compute/nn/modules/transformer.h"
#include "compute/tensor/loop.h"
#include "tools/imprint/bench_nets.h"

namespace imprint::tools {
namespace {

struct GptSize {
  std::int64_t layers, extent, heads, steps, batch;
};
constexpr std::int64_t kLetters = 256;

// Learned positions, norms before attention and feed-forward, an output layer of its own.
struct Gpt {
  nn::Embedding letters;
  nn::LearnedPositions positions;
  nn::TransformerEncoder network;
  nn::Linear head;
  nn::Parameters parameters;

  explicit Gpt(const GptSize& size)
      : letters("letters", kLetters, size.extent),
        positions("positions", size.steps, size.extent),
        network("net", size.layers, size.extent, size.heads,
                {.hidden = 4 * size.extent,
                 .dropout = 0,
                 .activation = nn::Activation::gelu,
                 .norm_first = true}),
        head("head", size.extent, kLetters, {.bias = false}) {
    parameters.add("letters", letters.parameters());
    parameters.add("positions", positions.parameters());
    parameters.add("net", network.parameters());
    parameters.add("head", head.parameters());
  }
  Tensor operator()(const Tensor& ids) const {
    return head(network(positions(letters(ids)), nn::AttentionMask{.causal = true}));
  }
};

Result<ProgramDescription> gpt(GptSize size, bool small, bool step, Precision precision) {
  if (small) size = {1, 64, 2, 16, 2};
  const Gpt net(size);
  const Tensor y = net(noise_indices("ids", {size.batch, size.steps}, kLetters).value());
  if (!step) return stored({y}, precision);
  const Variable next = noise_indices("next", {size.batch, size.steps}, kLetters);
  return trained(nn::cross_entropy(y, next.value()), net.parameters, precision);
}

// Causal attention, and the step of its operands.
Result<ProgramDescription> attend(bool small, bool step, Precision precision) {
  const Shape shape = small ? Shape{1, 2, 64, 32} : Shape{8, 8, 1024, 64};
  nn::Parameters operands;
  for (const char* name : {"query", "key", "value"}) operands.add(name, noise_values(name, shape));
  const Tensor y =
      nn::attention(operands[0].value(), operands[1].value(), operands[2].value(), {.causal = true});
  return step ? trained(mean(square(y)), operands, precision) : stored({y}, precision);
}

// 32 numbers a step into an LSTM of 128. Its step minimises the mean square of the last output.
struct LstmSize {
  std::int64_t steps, batch = 64, in = 32, hidden = 128;
};

Tensor unrolled(const nn::Recurrent& cell, const Tensor& x) { return narrow(cell(x), 1, x.extent(1) - 1, 1); }

// The same cell as the body of a loop.
Tensor looped(const nn::Recurrent& cell, const Tensor& x, std::int64_t hidden) {
  const std::vector<Tensor> values = cell.parameters().values();
  const Tensor projected = matmul(permute(x, {1, 0, 2}), values[0]) + values[2];  // [steps, batch, 4 hidden]
  const Tensor start = zeros({x.extent(0), hidden});
  const std::vector<Tensor> carry{start, start}, stacks{projected};
  const auto scanned = scan(
      [&](std::span<const Tensor> before, std::span<const Tensor> now) -> ScanStep {
        const Tensor gates = now[0] + matmul(before[0], values[1]) + values[3];
        const auto gate = [&](std::int64_t i) { return narrow(gates, 1, i * hidden, hidden); };
        const Tensor c = sigmoid(gate(1)) * before[1] + sigmoid(gate(0)) * tanh(gate(2));
        return {{sigmoid(gate(3)) * tanh(c), c}, {}};
      },
      carry, stacks);
  return scanned ? scanned->carry[0] : Tensor(scanned.error());
}

Result<ProgramDescription> lstm(LstmSize size, bool small, bool loop, bool step) {
  if (small) size = {4, 2, 8, 16};
  const nn::Recurrent cell = nn::lstm("lstm", size.in, size.hidden);
  const Tensor x = noise_values("x", {size.batch, size.steps, size.in}).value();
  const Tensor y = loop ? looped(cell, x, size.hidden) : unrolled(cell, x);
  return step ? trained(mean(square(y)), cell.parameters()) : stored({y});
}

std::string variant(bool step, Precision precision, const char* forward) {
  return std::string(step ? "step" : forward) + (precision == Precision::mixed16 ? "-16" : "");
}

}  // namespace

std::vector<Net> sequence_nets() {
  std::vector<Net> nets;
  const std::pair<const char*, GptSize> sizes[] = {{"gpt4x256/t128/b16", {4, 256, 8, 128, 16}},
                                                   {"gpt6x384/t256/b32", {6, 384, 6, 256, 32}}};
  for (const auto& [name, size] : sizes)
    for (const bool step : {true, false})
      for (const Precision precision : {Precision::float32, Precision::mixed16})
        nets.push_back(
            {std::string(name) + "/" + variant(step, precision, "inference"),
             [size = size, step, precision](bool small) { return gpt(size, small, step, precision); }});
  for (const bool step : {true, false})
    for (const Precision precision : {Precision::float32, Precision::mixed16})
      nets.push_back({"attention/b8/h8/t1024/d64/" + variant(step, precision, "forward"),
                      [=](bool small) { return attend(small, step, precision); }});
  for (const std::int64_t steps : {16, 64})
    for (const bool loop : {false, true})
      for (const bool step : {true, false})
        nets.push_back({"lstm128/t" + std::to_string(steps) + "/b64/" + (loop ? "loop" : "unrolled") + "/" +
                            variant(step, Precision::float32, "inference"),
                        [=](bool small) { return lstm({steps}, small, loop, step); }});
  return nets;
}

}  // namespace imprint::tools
