// Single operations on tensors on the device, each a program of its own: how close the generated kernels come
// to the hardware's limits.

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/images.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

// An operation on one large operand. `small`: the operand on a software device, where the large one would
// take minutes.
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
    {"sum_rows", kMatrix, kSmallMatrix, [](const Tensor& x) { return sum(x, {1}); }},     // of each row
    {"sum_columns", kMatrix, kSmallMatrix, [](const Tensor& x) { return sum(x, {0}); }},  // of each column
    {"transpose", kMatrix, kSmallMatrix, [](const Tensor& x) { return transpose(x); }},
};

std::string name_of(const Operation& operation, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape.extents())
    extents += (extents.empty() ? "" : "x") + std::to_string(extent);
  return std::string("ops/") + operation.name + "/f32/" + extents;
}

Result<BenchResult> run_operation(BenchDevice& device, const Operation& operation) {
  bridge::Context& context = device.context();
  const bool software = context.device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const Shape& shape = software ? operation.small : operation.large;
  const Variable x = noise_variable("x", shape);
  const Tensor result = operation.apply(x.value());
  if (!result.ok()) return result.error();
  const Variable y = Variable::zeros("y", result.shape());
  // A variable, since GCC 13 crashes on this initialiser as an argument.
  const ProgramDescription description{
      .name = operation.name, .updates = {Update::assign(y, result)}, .slot_count = kChainedRuns};
  IMPRINT_ASSIGN(Program program, Program::compile(context.runtime(), description));
  IMPRINT_ASSIGN(BenchResult measured, measure_program(device, program, name_of(operation, shape)));
  measured.gb_per_s = static_cast<double>(4 * (shape.element_count() + result.shape().element_count())) /
                      measured.gpu_us.median * 1e-3;
  return measured;
}

// A product of two n x n matrices, or a 3 x 3 convolution and its two gradients: limited by arithmetic.
struct Product {
  std::string name;
  Shape left, right;
  double operations;
  std::function<Result<Tensor>(const Tensor& left, const Tensor& right)> apply;
  DType dtype = DType::float32;  // of both operands
};

Product matmul_of(std::int64_t n) {
  const auto extent = static_cast<double>(n);
  return {"ops/matmul/f32/" + std::to_string(n),
          {n, n},
          {n, n},
          2 * extent * extent * extent,
          [](const Tensor& left, const Tensor& right) -> Result<Tensor> { return matmul(left, right); }};
}

// The same with operands stored as float16 and sums in float32.
Product half_matmul_of(std::int64_t n) {
  Product product = matmul_of(n);
  product.name = "ops/matmul/f16/" + std::to_string(n);
  product.dtype = DType::float16;
  return product;
}

// With the layer's bias and GELU in the product's own kernel.
Product half_layer_of(std::int64_t n) {
  Product product = half_matmul_of(n);
  product.name = "ops/matmul_bias_gelu/f16/" + std::to_string(n);
  product.apply = [n](const Tensor& left, const Tensor& right) -> Result<Tensor> {
    return gelu(matmul(left, right) + noise_variable("bias", {n}).value());
  };
  return product;
}

// `size` x `size` pixels of 64 channels, `batch` of them.
std::vector<Product> convolutions_of(std::int64_t size, std::int64_t batch) {
  const Shape image{batch, 64, size, size}, weight{64, 64, 3, 3};
  const std::string extents =
      "3x3x64x64x" + std::to_string(size) + "x" + std::to_string(size) + "x" + std::to_string(batch);
  const double operations = 2 * static_cast<double>(image.element_count()) * 64 * 9;
  const auto convolved = [](const Tensor& x, const Tensor& w) {
    return convolution(x, w, Tensor(), {.padding = 1});
  };
  // The gradient of a sum weighted by `g` is what a following layer would return.
  const auto gradient = [=](const Tensor& x, const Tensor& w, const Tensor& g,
                            const Tensor& target) -> Result<Tensor> {
    IMPRINT_ASSIGN(const std::vector<Tensor> found,
                   gradients(sum(convolved(x, w) * g), std::span(&target, 1)));
    return found[0];
  };
  return {{"ops/conv/f32/" + extents, image, weight, operations,
           [=](const Tensor& x, const Tensor& w) -> Result<Tensor> { return convolved(x, w); }},
          {"ops/conv_data_gradient/f32/" + extents, image, weight, operations,
           [=](const Tensor& g, const Tensor& w) {
             const Tensor x = noise_variable("x", image).value();
             return gradient(x, w, g, x);
           }},
          {"ops/conv_weight_gradient/f32/" + extents, image, image, operations,
           [=](const Tensor& x, const Tensor& g) {
             const Tensor w = noise_variable("w", weight).value();
             return gradient(x, w, g, w);
           }}};
}

std::vector<Product> products(bool software) {
  const std::int64_t extent = software ? 512 : 4096;
  std::vector<Product> list{matmul_of(extent), half_matmul_of(extent), half_layer_of(extent),
                            half_matmul_of(extent - 1)};  // the last without whole tiles
  for (Product& convolution : convolutions_of(software ? 14 : 56, software ? 4 : 32))
    list.push_back(std::move(convolution));
  return list;
}

Result<Variable> converted(BenchDevice& device, const Variable& from, DType dtype) {
  const Variable to = Variable::zeros(from.name(), from.shape(), dtype);
  Session& session = device.computer.session();
  const ProgramDescription description{
      .name = "convert", .updates = {Update::assign(to, cast(from.value(), dtype))}, .slot_count = 1};
  IMPRINT_ASSIGN(Program program, Program::compile(session.runtime(), description));
  IMPRINT_CHECK(session.run(program));
  return to;
}

Result<BenchResult> run_product(BenchDevice& device, std::size_t position) {
  bridge::Context& context = device.context();
  const bool software = context.device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const Product product = products(software)[position];
  Variable left = noise_variable("left", product.left), right = noise_variable("right", product.right);
  if (product.dtype != DType::float32) {
    IMPRINT_ASSIGN(left, converted(device, left, product.dtype));
    IMPRINT_ASSIGN(right, converted(device, right, product.dtype));
  }
  IMPRINT_ASSIGN(const Tensor result, product.apply(left.value(), right.value()));
  if (!result.ok()) return result.error();
  const Variable y = Variable::zeros("y", result.shape());
  const ProgramDescription description{
      .name = "product", .updates = {Update::assign(y, result)}, .slot_count = kChainedRuns};
  IMPRINT_ASSIGN(Program program, Program::compile(context.runtime(), description));
  IMPRINT_ASSIGN(BenchResult measured, measure_program(device, program, product.name));
  measured.tflop_per_s = product.operations / measured.gpu_us.median * 1e-6;
  return measured;
}

}  // namespace

std::vector<BenchCase> ops_cases() {
  std::vector<BenchCase> cases;
  for (const Operation& operation : kOperations)
    cases.push_back({name_of(operation, operation.large),
                     [&operation](BenchDevice& device) { return run_operation(device, operation); }});
  const std::vector<Product> large = products(false);
  for (std::size_t i = 0; i < large.size(); ++i)
    cases.push_back({large[i].name, [i](BenchDevice& device) { return run_product(device, i); }});
  std::ranges::move(order_cases(), std::back_inserter(cases));
  return cases;
}

}  // namespace imprint::tools
