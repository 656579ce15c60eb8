// Programs with named extents (compute/docs/extents.md) beside programs with fixed ones, at several extents:
// what a run costs should follow the extent, not the bound.

#include <string>
#include <utility>
#include <vector>

#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/sequential.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

constexpr std::int64_t kMostRows = 16384, kMostBatch = 8, kMostLength = 512, kWidth = 256;

struct ModelEnds {
  Tensor input, output;
};

ModelEnds policy_ends(const tensor::ShapeAxis& rows) {
  const Tensor x = input("x", {rows, 64});
  return {x, nn::mlp("policy", {64, 256, 256, 8}, {.seed = 1})(x)};
}

ModelEnds attention_ends(const tensor::ShapeAxis& batch, const tensor::ShapeAxis& length) {
  const Tensor x = input("x", {batch, length, kWidth});
  return {x, nn::MultiHeadAttention("attention", kWidth, 4, {.seed = 1})(x, {.causal = true})};
}

using Extents = std::vector<std::pair<std::string, std::int64_t>>;

Result<BenchResult> run_net(BenchDevice& device, const std::string& name, const ModelEnds& net,
                            const Extents& extents) {
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), {.name = "extents",
                                                                      .inputs = {net.input},
                                                                      .outputs = {net.output},
                                                                      .slot_count = kChainedRuns}));
  Noise noise;
  for (std::uint32_t slot = 0; slot < program.slot_count(); ++slot) {
    noise.fill(program.input_bytes(slot, 0));
    for (const auto& [extent, value] : extents) IMPRINT_CHECK(program.set_extent(slot, extent, value));
  }
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> extents_cases() {
  std::vector<BenchCase> cases;
  const auto add = [&](const std::string& name, const std::function<ModelEnds()>& net,
                       const Extents& extents) {
    cases.push_back({name, [=](BenchDevice& device) { return run_net(device, name, net(), extents); }});
  };
  for (const std::int64_t rows : {64, 1024, 16384}) {
    const std::string name = "extents/64-256-256-8/b" + std::to_string(rows);
    add(name + "/named", [] { return policy_ends(Extent("rows", kMostRows)); }, {{"rows", rows}});
    add(name + "/fixed", [rows] { return policy_ends(rows); }, {});
  }
  for (const auto& [batch, length] :
       {std::pair<std::int64_t, std::int64_t>{1, 64}, {8, 64}, {1, 512}, {8, 512}}) {
    const std::string name =
        "extents/attention-256/b" + std::to_string(batch) + "-t" + std::to_string(length);
    add(name + "/named",
        [] { return attention_ends(Extent("batch", kMostBatch), Extent("length", kMostLength)); },
        {{"batch", batch}, {"length", length}});
    add(name + "/fixed", [batch = batch, length = length] { return attention_ends(batch, length); }, {});
  }
  return cases;
}

}  // namespace imprint::tools
