// Tensors as ONNX files: read back, they compute the same numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compute/graph/gradients/autodiff.h"
#include "compute/model/onnx/export.h"
#include "compute/model/onnx/import.h"
#include "compute/nn/modules/attention_page.h"
#include "compute/program/program.h"
#include "compute/program/run.h"
#include "compute/program/runtime.h"
#include "compute/tensor/composites/images.h"

namespace imprint {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Result<std::vector<HostTensor>> values_of(const std::vector<Tensor>& inputs,
                                          const std::vector<Tensor>& outputs,
                                          const std::vector<HostTensor>& given) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  IMPRINT_ASSIGN(Program program,
                 Program::compile(*runtime, {.name = "export", .inputs = inputs, .outputs = outputs}));
  return session.run(program, given);
}

void expect_same_numbers(const std::vector<OnnxValue>& inputs, const std::vector<OnnxValue>& outputs,
                         const std::vector<HostTensor>& given) {
  const auto file = export_onnx({.inputs = inputs, .outputs = outputs});
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto model = onnx::parse(*file);
  ASSERT_TRUE(model.ok()) << model.error().message;
  std::map<std::string, Shape> shapes;
  std::vector<Tensor> in, out;
  for (const OnnxValue& input : inputs) {
    shapes.emplace(input.name, input.tensor.shape());
    in.push_back(input.tensor);
  }
  for (const OnnxValue& output : outputs) out.push_back(output.tensor);
  const auto again = import_onnx(*model, shapes);
  ASSERT_TRUE(again.ok()) << again.error().message;
  const auto before = values_of(in, out, given);
  ASSERT_TRUE(before.ok()) << before.error().message;
  const auto after = values_of(again->input_tensors(), again->output_tensors(), given);
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_EQ(before->size(), after->size());
  for (std::size_t i = 0; i < before->size(); ++i) {
    EXPECT_EQ(again->outputs[i].name, outputs[i].name);
    EXPECT_EQ((*before)[i].shape, (*after)[i].shape);
    EXPECT_EQ((*before)[i].dtype, (*after)[i].dtype) << outputs[i].name;
    // Sums may have another order.
    EXPECT_THAT((*after)[i].floats, Pointwise(FloatNear(1e-5f), (*before)[i].floats)) << outputs[i].name;
    EXPECT_EQ((*before)[i].ints, (*after)[i].ints) << outputs[i].name;
  }
}

std::vector<float> wave(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) * 1.7f);
  return values;
}

TEST(OnnxExport, NetworksComputeTheSame) {
  const Tensor x = input("x", {2, 3, 9, 9});
  const Tensor kernel = Tensor::from(wave(4 * 3 * 3 * 3), {4, 3, 3, 3});
  const Variable bias("bias", {4, 1, 1}, wave(4));
  const Tensor y = relu(convolution(x, kernel, {}, {.stride = 2, .padding = 1}) + bias.value());
  expect_same_numbers({{"x", x}},
                      {{"y", softmax(y, -1)}, {"pooled", max_pool(y, {.size = 2})}, {"best", argmax(y, 1)}},
                      {HostTensor::from(wave(2 * 3 * 81), {2, 3, 9, 9})});
}

TEST(OnnxExport, IndicesOutsideReadZero) {
  const Tensor x = input("x", {4, 3}), rows = input("rows", {5}, DType::int32);
  expect_same_numbers({{"x", x}, {"rows", rows}},
                      {{"taken", take(x, 0, rows)}, {"sum", cumsum(take(x, 0, rows), 0)}},
                      {HostTensor::from(wave(12), {4, 3}), HostTensor::from_ints({3, -1, 0, 4, 2}, {5})});
}

// A list of them could be as long as a file asks for.
TEST(OnnxExport, IndicesAreWrittenAsARange) {
  const Tensor x = input("x", {2, 5000});
  const Tensor y = x + cast(iota({2, 5000}, 1), DType::float32);
  expect_same_numbers({{"x", x}}, {{"y", y}}, {HostTensor::from(wave(10000), {2, 5000})});
  EXPECT_LT(export_onnx({.inputs = {{"x", x}}, .outputs = {{"y", y}}})->size(), 1000u);
}

TEST(OnnxExport, GradientsComputeTheSame) {
  const Tensor x = input("x", {2, 1, 6, 6}), kernel = input("kernel", {2, 1, 3, 3});
  const auto gradient = gradients(sum(square(convolution(x, kernel, {}))), std::vector<Tensor>{x, kernel});
  ASSERT_TRUE(gradient.ok());
  expect_same_numbers({{"x", x}, {"kernel", kernel}}, {{"dx", (*gradient)[0]}, {"dkernel", (*gradient)[1]}},
                      {HostTensor::from(wave(72), {2, 1, 6, 6}), HostTensor::from(wave(18), {2, 1, 3, 3})});
}

TEST(OnnxExport, PagesAreTheOperationsThatTheyAreComposedOf) {
  const Tensor q = input("q", {1, 2, 3, 4}), k = input("k", {1, 2, 5, 4}), v = input("v", {1, 2, 5, 4});
  expect_same_numbers({{"q", q}, {"k", k}, {"v", v}}, {{"y", nn::attention_page(q, k, v, {.causal = true})}},
                      {HostTensor::from(wave(24), {1, 2, 3, 4}), HostTensor::from(wave(40), {1, 2, 5, 4}),
                       HostTensor::from(wave(40), {1, 2, 5, 4})});
}

TEST(OnnxExport, NamesOfCallersAreKept) {
  const Tensor x = input("x", {2});
  expect_same_numbers({{"Add_0", x}}, {{"constant_0", x + 1.0f}, {"Mul_0", (x + 1.0f) * 3.0f}},
                      {HostTensor::from(wave(2), {2})});
}

TEST(OnnxExport, HasTheContentThatTheSessionHas) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const Variable w = Variable::zeros("w", {2}), half = Variable::zeros("half", {2}, DType::float16);
  auto program = Program::compile(
      *runtime, {.name = "learn",
                 .updates = {Update::assign(w, Tensor::from({3, 4}, {2})),
                             Update::assign(half, cast(Tensor::from({1, 2}, {2}), DType::float16))}});
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_TRUE(session.run(*program).ok());
  const Tensor x = input("x", {2});
  const auto file = export_onnx(
      session,
      {.inputs = {{"x", x}}, .outputs = {{"y", x * w.value() + cast(half.value(), DType::float32)}}});
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto model = onnx::parse(*file);
  ASSERT_TRUE(model.ok());
  const auto again = import_onnx(*model, {{"x", {2}}});
  ASSERT_TRUE(again.ok()) << again.error().message;
  const auto found =
      values_of(again->input_tensors(), again->output_tensors(), {HostTensor::from({1, 10}, {2})});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0].floats, (std::vector<float>{4, 42}));
}

TEST(OnnxExport, RefusesNamedExtents) {
  const Tensor x = input("x", {Extent("batch", 8), 3});
  const auto file = export_onnx({.inputs = {{"x", x}}, .outputs = {{"y", x + 1.0f}}});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::unsupported);
  EXPECT_THAT(file.error().message, HasSubstr("input 'x': found a named extent in [batch <= 8, 3]"));
}

// A window becomes a list of its indices: 4 bytes for each.
TEST(OnnxExport, ConstantsThatItMakesAreCounted) {
  const Tensor x = input("x", {100'000});
  const OnnxExport what{
      .inputs = {{"x", x}}, .outputs = {{"y", window(x, 0, 1000)}}, .constant_limit_bytes = 1 << 20};
  const auto file = export_onnx(what);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::out_of_host_memory);
  EXPECT_THAT(file.error().message, HasSubstr("constants of more than 1048576 bytes"));
}

TEST(OnnxExport, SaysWhatIsMissing) {
  const Tensor x = input("x", {3});
  const auto file = export_onnx({.inputs = {{"x", x}}, .outputs = {{"y", lgamma(x) + digamma(lgamma(x))}}});
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("digamma (1), lgamma (2)"));
  const Tensor ids = input("ids", {3}, DType::int64);
  const auto wide = export_onnx({.inputs = {{"ids", ids}}, .outputs = {{"y", ids + 1}}});
  ASSERT_FALSE(wide.ok());
  EXPECT_THAT(wide.error().message, HasSubstr("int64_pair"));
  const auto open = export_onnx({.inputs = {}, .outputs = {{"y", x + 1.0f}}});
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().code, ErrorCode::not_found);
  const auto twice = export_onnx({.inputs = {{"x", x}}, .outputs = {{"x", x + 1.0f}}});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace imprint
