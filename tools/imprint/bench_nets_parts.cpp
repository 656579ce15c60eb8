// Suite nets: look-ups, scans, sorts and single products.

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/modules/embedding.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/ops/quantised.h"
#include "tools/imprint/bench_nets.h"

namespace imprint::tools {
namespace {

Result<ProgramDescription> embedding(bool small, bool step) {
  const nn::Embedding table("table", small ? 512 : 8192, 256);
  const Tensor rows = table(noise_indices("ids", {small ? 64 : 4096}, small ? 512 : 8192).value());
  return step ? trained(mean(square(rows)), table.parameters()) : stored({rows});
}

// The step is that of plain gradient descent, which adds nothing to the scan.
Result<ProgramDescription> running_sum(bool small, bool step) {
  const Tensor x = noise_values("x", {small ? 1 << 14 : 1 << 20}).value(), sums = cumsum(x, 0);
  if (!step) return stored({sums});
  IMPRINT_ASSIGN(const std::vector<Tensor> found, gradients(mean(square(sums)), std::span(&x, 1)));
  return stored({x - 0.01f * found[0]});
}

Result<ProgramDescription> sorted(bool small) {
  const WithIndices found = sort(noise_values("x", {small ? 1 << 14 : 1 << 20}).value());
  return stored({found.values, found.indices});
}

Result<ProgramDescription> largest(bool small) {
  const WithIndices found = topk(noise_values("x", {small ? 16 : 4096, 4096}).value(), 64);
  return stored({found.values, found.indices});
}

// Operands are float16 in memory.
Result<ProgramDescription> half_product(bool small) {
  const std::int64_t n = small ? 128 : 4096;
  return stored({matmul(Variable::zeros("left", {n, n}, DType::float16).value(),
                        Variable::zeros("right", {n, n}, DType::float16).value())});
}

// One row times weights of few bits.
Result<ProgramDescription> row_product(bool small, int bits) {
  const std::int64_t n = small ? 256 : 4096;
  const Variable values = bits == 8 ? Variable::zeros("values", {n, n}, DType::int8)
                                    : Variable::zeros("values", {n, n / 2}, DType::uint8);
  const Variable scales = Variable::zeros("scales", {n, n / 32}, DType::float16);
  return stored(
      {matmul(noise_values("x", {1, n}).value(), QuantisedWeights{values.value(), scales.value(), bits})});
}

}  // namespace

std::vector<Net> part_nets() {
  return {{"embedding/8192x256/ids4096/step", [](bool small) { return embedding(small, true); }},
          {"embedding/8192x256/ids4096/forward", [](bool small) { return embedding(small, false); }},
          {"cumsum/1048576/step", [](bool small) { return running_sum(small, true); }},
          {"cumsum/1048576/forward", [](bool small) { return running_sum(small, false); }},
          {"sort/1048576", sorted},
          {"top64/4096x4096", largest},
          {"matmul/4096/f16", half_product},
          {"gemv/4096x4096/q8", [](bool small) { return row_product(small, 8); }},
          {"gemv/4096x4096/q4", [](bool small) { return row_product(small, 4); }}};
}

}  // namespace imprint::tools
