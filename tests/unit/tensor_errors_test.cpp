// Error texts: the op, the operands by name, both shapes, and the expected shape.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "compute/tensor/composites/images.h"
#include "compute/tensor/extent.h"

namespace imprint {
namespace {

using ::testing::HasSubstr;

void expect_error(const Tensor& tensor, ErrorCode code, std::initializer_list<const char*> words) {
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.error().code, code) << tensor.error().message;
  for (const char* word : words) EXPECT_THAT(tensor.error().message, HasSubstr(word));
}

const Tensor kX = input("x", {3, 5});
const Tensor kWeight = input("weight", {4, 7});
const Tensor kInts = input("indices", {3}, DType::int32);

TEST(Errors, NameOpOperandsAndShapes) {
  expect_error(kX + kWeight, ErrorCode::shape_mismatch, {"add: ", "x [3, 5]", "weight [4, 7]", "equal or 1"});
  expect_error(matmul(kX, kWeight), ErrorCode::shape_mismatch,
               {"matmul: ", "x [3, 5]", "weight [4, 7]", "instead of 5 and 4"});
  expect_error(matmul(input("a", {2, 3, 4}), input("b", {5, 4, 3})), ErrorCode::shape_mismatch,
               {"matmul", "leading"});
  expect_error(reshape(kX, {4, -1}), ErrorCode::shape_mismatch,
               {"reshape", "x [3, 5]", "15 elements", "[4, -1]"});
  expect_error(reshape(kX, {4, 4}), ErrorCode::shape_mismatch,
               {"x [3, 5]", "expected 15", "[4, 4]", "16 elements"});
  expect_error(concat({kX, kWeight}, 0), ErrorCode::shape_mismatch,
               {"concat", "x [3, 5]", "weight [4, 7]", "except along axis 0"});
  expect_error(gather(kX, 1, kInts), ErrorCode::shape_mismatch, {"gather", "x [3, 5]", "indices [3]"});
  expect_error(expand(kX, {4, 5}), ErrorCode::shape_mismatch, {"expand", "x [3, 5]", "[4, 5]"});
  expect_error(permute(kX, {0, 0}), ErrorCode::shape_mismatch, {"permute", "[0, 0]", "x [3, 5]"});
  expect_error(sum(kX, {2}), ErrorCode::shape_mismatch, {"sum", "axis 2", "x [3, 5]"});
  expect_error(sum(kX, {1, -1}), ErrorCode::invalid_argument, {"sum", "twice"});
  expect_error(window(kX, 1, 6), ErrorCode::shape_mismatch, {"window", "6", "x [3, 5]"});
  expect_error(layer_norm(kX, ones({4}), zeros({5})), ErrorCode::shape_mismatch,
               {"layer_norm", "gain", "[5]", "x [3, 5]"});
  expect_error(convolution(kX, kWeight, Tensor()), ErrorCode::shape_mismatch,
               {"convolution", "x [3, 5]", "[batch, channels, places...]"});
  expect_error(argmax(input("nothing", {2, 0}), 1), ErrorCode::shape_mismatch,
               {"argmax", "nothing [2, 0]", "empty"});
  expect_error(Tensor::from({1, 2, 3}, {2, 2}), ErrorCode::shape_mismatch, {"3 values", "[2, 2]", "4"});
}

TEST(Errors, NameDtypes) {
  expect_error(kX + cast(kX, DType::int32), ErrorCode::dtype_mismatch,
               {"add: found float32 x [3, 5] and int32 cast [3, 5]", "expected one dtype. Cast one"});
  expect_error(tanh(kInts), ErrorCode::dtype_mismatch, {"tanh", "indices [3] is int32", "expected float32"});
  expect_error(where(kX, kX, kX), ErrorCode::dtype_mismatch, {"where", "bool condition"});
  expect_error(take(kX, 0, kX), ErrorCode::dtype_mismatch, {"take", "integer indices"});
  expect_error(sum(kX > 0), ErrorCode::dtype_mismatch, {"sum", "bool"});
  expect_error(matmul(kInts, kInts), ErrorCode::dtype_mismatch, {"matmul", "float32"});
  expect_error(mean(kInts), ErrorCode::dtype_mismatch, {"mean", "Cast it first"});
  expect_error(input("d", {2}, DType::float64), ErrorCode::dtype_mismatch, {"input 'd'", "float64"});
  expect_error(cast(kX, DType::float64), ErrorCode::dtype_mismatch, {"cast", "float64"});
}

TEST(Errors, RefuseNonsense) {
  expect_error(full({2, -1}, 0), ErrorCode::invalid_argument, {"no negative extent"});
  expect_error(full({std::int64_t{1} << 40, std::int64_t{1} << 40}, 0), ErrorCode::invalid_argument,
               {"2^48"});
  expect_error(slice(kX, 0, 0, 3, 0), ErrorCode::invalid_argument, {"slice", "step 0"});
  expect_error(arange(0, 1, 0), ErrorCode::invalid_argument, {"arange"});
  expect_error(concat(std::span<const Tensor>{}, 0), ErrorCode::invalid_argument,
               {"concat", "found no tensors"});
  expect_error(random_uniform(kInts, {3}, 0), ErrorCode::shape_mismatch,
               {"random_uniform", "indices [3]", "[4]"});
  expect_error(unsqueeze(input("deep", {1, 1, 1, 1, 1, 1, 1, 1}), 0), ErrorCode::shape_mismatch,
               {"unsqueeze"});
}

TEST(Errors, TheFirstOneIsCarriedOn) {
  const Tensor failed = kX + kWeight;
  const Tensor later = softmax(matmul(failed * 2, kWeight) + Tensor());
  EXPECT_EQ(later.error().message, failed.error().message);
  expect_error(Tensor(), ErrorCode::invalid_argument, {"uninitialised tensor"});
  EXPECT_EQ(later.shape(), Shape{});
}

// Values that such functions compute first are refused; a position along both axes would be one of the
// bounds.
TEST(Errors, OfNamedAxes) {
  const Extent batch("batch", 9), steps("steps", 13);
  const Tensor x = input("x", {batch, steps, 4});
  expect_error(logcumsumexp(x, 1), ErrorCode::unsupported, {"cummax", "x [batch <= 9, steps <= 13, 4]"});
  expect_error(argmin(x, {0, 1}), ErrorCode::unsupported, {"argmin", "batch <= 9 * steps <= 13"});
  EXPECT_TRUE(argmin(x, {1, 2}).ok());  // the inner axis has all its places
}

TEST(Errors, Variables) {
  const std::array<float, 3> values{1, 2, 3};
  const Variable wrong("w", {2}, std::span<const float>(values));
  EXPECT_FALSE(wrong.ok());
  expect_error(wrong.value(), ErrorCode::shape_mismatch,
               {"variable 'w'", "3 initial values", "[2]", "expected 2"});
  expect_error(Variable().value(), ErrorCode::invalid_argument, {"default-constructed"});
  EXPECT_FALSE(Variable::zeros("huge", {std::int64_t{1} << 50}).ok());
}

TEST(Errors, ZerosThatNoMemoryHolds) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends programs that allocate this much";
#endif
  expect_error(Variable::zeros("huge", {std::int64_t{1} << 47}).value(), ErrorCode::out_of_host_memory,
               {"variable 'huge'", "[140737488355328]"});
}

}  // namespace
}  // namespace imprint
