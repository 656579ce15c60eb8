// float16 and bfloat16: conversion of every value, rounding, and the operations that refuse them.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "compute/base/number_format.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/tensor.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

TEST(NarrowFloats, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    if (const float half = float_from_half(narrow); std::isnan(half))
      EXPECT_TRUE(std::isnan(float_from_half(half_from_float(half))));
    else
      EXPECT_EQ(half_from_float(half), narrow);
    if (const float brain = float_from_bfloat16(narrow); std::isnan(brain))
      EXPECT_TRUE(std::isnan(float_from_bfloat16(bfloat16_from_float(brain))));
    else
      EXPECT_EQ(bfloat16_from_float(brain), narrow);
  }
}

TEST(NarrowFloats, RoundToNearestEven) {
  // Between each half and the next: below the middle rounds down, above it up, and the middle to even.
  for (std::uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = float_from_half(bits), high = float_from_half(static_cast<std::uint16_t>(bits + 1)),
                middle = (low + high) / 2;
    EXPECT_EQ(half_from_float(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(half_from_float(std::nextafter(middle, low)), bits);
    EXPECT_EQ(half_from_float(std::nextafter(middle, high)), bits + 1);
  }
  EXPECT_EQ(half_from_float(65519.996f), 0x7BFF);
  EXPECT_EQ(half_from_float(65520.0f), 0x7C00);
  EXPECT_EQ(half_from_float(-1e10f), 0xFC00);
  EXPECT_EQ(bfloat16_from_float(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(bfloat16_from_float(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(bfloat16_from_float(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(NarrowFloats, ResultsHaveTheOperandsType) {
  const Tensor x = cast(input("x", {4, 8}), DType::float16), w = cast(input("w", {8, 3}), DType::float16);
  for (const Tensor& one : {transpose(x), x + x, 0.1f * x, exp(x), where(x > 0.1f, x, 0.1f), sum(x),
                            mean(x, {1}), variance(x), softmax(x), max(x, {0}), norm(x)})
    EXPECT_EQ(one.dtype(), DType::float16) << (one.ok() ? "" : one.error().message);
  EXPECT_EQ((x > 0.1f).dtype(), DType::boolean);
  EXPECT_EQ(argmax(x, 1).dtype(), DType::int32);
  EXPECT_EQ(matmul(x, w).dtype(), DType::float32);
  EXPECT_EQ((x + 0).node(), x.node());
}

TEST(NarrowFloats, RefuseOtherTypesAndOrders) {
  const Tensor x = cast(input("x", {4, 8}), DType::float16), wide = input("wide", {4, 8});
  for (const Tensor& one : {x + wide, wide * x, x + cast(wide, DType::bfloat16), where(x > 0.0f, x, wide),
                            cumsum(x, 0), sort(x).values}) {
    ASSERT_FALSE(one.ok());
    EXPECT_NE(one.error().message.find("float16"), std::string::npos) << one.error().message;
  }
  EXPECT_FALSE(matmul(x, cast(input("w", {8, 3}), DType::bfloat16)).ok());
}

TEST(NarrowFloats, GradientsAreFloat32) {
  const Tensor x = input("x", {4, 8}), w = input("w", {8, 3});
  const Tensor narrow = cast(w, DType::float16);
  const Tensor loss = sum(matmul(cast(x, DType::float16), narrow));
  const std::vector<Tensor> targets{x, w, narrow};
  const auto found = gradients(loss, targets);
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    EXPECT_EQ((*found)[i].dtype(), DType::float32);
    EXPECT_EQ((*found)[i].shape(), targets[i].shape());
  }
  // The gradients of sum(x w): the row sums of w and the column sums of x. Small integers are exact in either
  // type.
  reference::Bindings bindings;
  for (int i = 0; i < 32; ++i) bindings["x"].push_back(i % 5 - 2);
  for (int i = 0; i < 24; ++i) bindings["w"].push_back(i % 7 - 3);
  const std::vector<std::vector<double>> values = reference::evaluate_all(*found, bindings);
  for (std::size_t k = 0; k < 8; ++k) {
    double row = 0, column = 0;
    for (std::size_t j = 0; j < 3; ++j) row += bindings["w"][k * 3 + j];
    for (std::size_t i = 0; i < 4; ++i) column += bindings["x"][i * 8 + k];
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(values[0][i * 8 + k], row);
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(values[1][k * 3 + j], column);
      EXPECT_EQ(values[2][k * 3 + j], column);
    }
  }
}

}  // namespace
}  // namespace imprint
