// Single operations on tensors that lie on the device, each a program of its own: how near the generated kernels come to what the memory gives.

#include <string>

#include "compute/tensor/tensor.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

// An operation of one large operand. `small`: the operand on a device that computes in software, where the large one would take minutes.
struct Operation {
  const char* name;
  Shape large, small;
  Tensor (*apply)(const Tensor& x);
};

Variable noise_variable(const std::string& name, const Shape& shape) {
  Noise noise;
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  for (float& value : values) value = 4 * noise.next() - 2;
  return {name, shape, values};
}

Tensor normalised(const Tensor& x) {
  const Shape features{x.extent(-1)};
  return layer_norm(x, noise_variable("gain", features).value(), noise_variable("bias", features).value());
}

const Shape kVector{1 << 26}, kSmallVector{1 << 20}, kMatrix{16384, 1024}, kSmallMatrix{1024, 1024};

const Operation kOperations[] = {
    {"gelu", kVector, kSmallVector, [](const Tensor& x) { return gelu(x); }},
    {"softmax", kMatrix, kSmallMatrix, [](const Tensor& x) { return softmax(x); }},
    {"layer_norm", kMatrix, kSmallMatrix, normalised},
    {"sum_rows", kMatrix, kSmallMatrix, [](const Tensor& x) { return sum(x, {1}); }},      // of each row
    {"sum_columns", kMatrix, kSmallMatrix, [](const Tensor& x) { return sum(x, {0}); }},   // of each column
    {"transpose", kMatrix, kSmallMatrix, [](const Tensor& x) { return transpose(x); }},
};

std::string name_of(const Operation& operation, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape.extents()) extents += (extents.empty() ? "" : "x") + std::to_string(extent);
  return std::string("ops/") + operation.name + "/f32/" + extents;
}

Result<BenchResult> run_operation(BenchDevice& device, const Operation& operation) {
  bridge::Context& context = device.standalone->context();
  const bool software = context.device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const Shape& shape = software ? operation.small : operation.large;
  const Variable x = noise_variable("x", shape);
  const Tensor result = operation.apply(x.value());
  if (!result.ok()) return result.error();
  const Variable y = Variable::zeros("y", result.shape());
  IMPRINT_ASSIGN(Program program, Program::compile(context.runtime(), {.name = operation.name, .updates = {Update::assign(y, result)}, .slots = kChainedRuns}));
  IMPRINT_ASSIGN(BenchResult measured, measure_program(device, program, name_of(operation, shape)));
  measured.gb_per_s = static_cast<double>(4 * (shape.element_count() + result.shape().element_count())) / measured.gpu_us.median * 1e-3;
  return measured;
}

}  // namespace

std::vector<BenchCase> ops_cases() {
  std::vector<BenchCase> cases;
  for (const Operation& operation : kOperations)
    cases.push_back({name_of(operation, operation.large), [&operation](BenchDevice& device) { return run_operation(device, operation); }});
  return cases;
}

}  // namespace imprint::tools
