// Images at computed places, and boxes, against numbers known by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/ops/detection.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using reference::evaluate;
using Numbers = std::vector<double>;

std::string refusal(const Tensor& x) { return x.ok() ? "ok" : x.error().message; }

TEST(Samples, PlacesOfALine) {
  const Tensor x = Tensor::from({10, 20, 30, 40}, {1, 1, 4});
  const auto at = [&](std::vector<float> places, const SampleOptions& options) {
    return evaluate(
        grid_sample(x, Tensor::from(places, {1, static_cast<std::int64_t>(places.size()), 1}), options), {});
  };
  // Edges at -1 and 1: centres at -0.75, -0.25, 0.25, 0.75.
  EXPECT_EQ(at({-0.75f, 0, 0.5f, 1, 3}, {}), (Numbers{10, 25, 35, 20, 0}));
  EXPECT_EQ(at({-1, 1, 3}, {.align_corners = true}), (Numbers{10, 40, 0}));
  EXPECT_EQ(at({-1, 1, -9}, {.outside = PadMode::edge}), (Numbers{10, 40, 10}));
  // -1.75 is as far left of the edge as -0.25 is right of it.
  EXPECT_EQ(at({-1.75f, 1.25f}, {.outside = PadMode::reflect}), (Numbers{20, 40}));
  EXPECT_EQ(at({-0.6f, 0.6f, -1.3f}, {.mode = Resize::nearest}), (Numbers{10, 40, 0}));
  EXPECT_EQ(at({-0.25f, 0.25f}, {.mode = Resize::cubic}), (Numbers{20, 30}));
}

TEST(Samples, TheIdentityMapKeepsAnImage) {
  const Tensor theta = Tensor::from({1, 0, 0, 0, 1, 0}, {1, 2, 3});
  const Tensor image = Tensor::from({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3});
  for (const bool corners : {false, true}) {
    const Numbers found =
        evaluate(grid_sample(image, affine_grid(theta, {2, 3}, corners), {.align_corners = corners}), {});
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(found[i], static_cast<double>(i) + 1, 1e-5);
  }
  EXPECT_EQ(affine_grid(zeros({2, 3, 4}), {2, 3, 4}).shape(), (Shape{2, 2, 3, 4, 3}));
}

TEST(Samples, OffsetsMoveTaps) {
  const Tensor image = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  const Tensor one = ones({1, 1, 1, 1});
  // Down by 1, right by 0.5; outside is 0.
  const Tensor offsets = concat({full({1, 1, 3, 3}, 1), full({1, 1, 3, 3}, 0.5)}, 1);
  EXPECT_EQ(evaluate(deformable_convolution(image, one, Tensor(), offsets), {}),
            (Numbers{4.5, 5.5, 3, 7.5, 8.5, 4.5, 0, 0, 0}));
  EXPECT_NE(refusal(deformable_convolution(image, one, Tensor(), zeros({1, 3, 3, 3}))).find("offsets"),
            std::string::npos);
}

// The result's sum with fixed weights, and its derivatives by all operands beside central differences.
void expect_derivatives(const Shape& x, const Shape& weight, const Shape& offsets, const Shape& mask,
                        const ConvolutionOptions& options) {
  const std::vector<Tensor> operands{input("x", x), input("w", weight), input("b", {weight[0]}),
                                     input("o", offsets), input("m", mask)};
  const Tensor y =
      deformable_convolution(operands[0], operands[1], operands[2], operands[3], operands[4], options);
  ASSERT_TRUE(y.ok()) << y.error().message;
  const Tensor total =
      sum(y * cos(cast(reshape(iota({y.shape().element_count()}, 0), y.shape()), DType::float32)));
  const auto slopes = gradients(total, operands);
  ASSERT_TRUE(slopes.ok());
  reference::Bindings values;
  double phase = 0;
  for (const Tensor& operand : operands) {
    Numbers numbers;
    for (std::int64_t i = 0; i < operand.shape().element_count(); ++i)
      numbers.push_back((operand.node() == operands[3].node() ? 3.1 : 1.0) * std::sin(phase += 1.7));
    values[operand.node()->label] = numbers;
  }
  constexpr double kStep = 1e-4;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Numbers found = evaluate((*slopes)[k], values);
    Numbers& numbers = values[operands[k].node()->label];
    for (std::size_t i = 0; i < numbers.size(); i += 1 + numbers.size() / 40) {
      const double kept = numbers[i];
      numbers[i] = kept + kStep;
      const double above = evaluate(total, values)[0];
      numbers[i] = kept - kStep;
      const double below = evaluate(total, values)[0];
      numbers[i] = kept;
      EXPECT_NEAR(found[i], (above - below) / (2 * kStep), 2e-5) << operands[k].node()->label << " " << i;
    }
  }
}

TEST(Samples, OffsetsAndMasksHaveDerivatives) {
  expect_derivatives({2, 4, 5, 6}, {2, 2, 2, 3}, {2, 24, 3, 4}, {2, 12, 3, 4},
                     {.stride = {2, 1}, .padding = {1, 1}, .dilation = {2, 2}, .groups = 2});
  expect_derivatives({1, 2, 4, 4}, {3, 2, 3, 3}, {1, 18, 2, 2}, {1, 9, 2, 2}, {});
}

TEST(Samples, OffsetsMustFitTheImage) {
  const Tensor image = ones({1, 1, 3, 3}), one = ones({1, 1, 1, 1});
  const auto convolved = [&](const Shape& offsets, const ConvolutionOptions& options) {
    return deformable_convolution(image, one, Tensor(), zeros(offsets), Tensor(), options);
  };
  EXPECT_TRUE(convolved({1, 2, 2, 3}, {.stride = {2, 1}}).ok());
  EXPECT_NE(refusal(convolved({1, 2, 2, 2}, {.stride = {2, 1}})).find("offsets"), std::string::npos);
  EXPECT_NE(refusal(convolved({1, 2, 3, 3}, {.dilation = {0, 1}})).find("offsets"), std::string::npos);
  EXPECT_EQ(deformable_convolution(ones({0, 1, 3, 3}), one, Tensor(), zeros({0, 2, 3, 3})).shape(),
            (Shape{0, 1, 3, 3}));
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(evaluate(deformable_convolution(image, one, Tensor(), full({1, 2, 3, 3}, infinite)), {}),
            Numbers(9, 0.0));
}

TEST(Samples, MaximaGoBackToTheirPlaces) {
  const Tensor image = Tensor::from({1, 9, 2, 3, 4, 8, 5, 7, 6, 0, 1, 6}, {1, 1, 3, 4});
  const WithIndices best = max_pool_with_indices(image, {.size = 2, .ceil = true});
  EXPECT_EQ(evaluate(best.values, {}), (Numbers{9, 7, 6, 6}));
  EXPECT_EQ(evaluate(best.indices, {}), (Numbers{1, 7, 8, 11}));
  EXPECT_EQ(evaluate(max_unpool(best.values, best.indices, {3, 4}), {}),
            (Numbers{0, 9, 0, 0, 0, 0, 0, 7, 6, 0, 0, 6}));
  const WithIndices apart =
      max_pool_with_indices(image, {.size = 2, .stride = 1, .padding = 1, .dilation = 2});
  EXPECT_EQ(apart.values.shape(), (Shape{1, 1, 3, 4}));
  EXPECT_EQ(evaluate(apart.indices, {})[5], 8);  // of 1, 2, 6 and 1 at the places 0, 2, 8 and 10
  EXPECT_NE(refusal(max_unpool(best.values, best.values, {3, 4})).find("integers"), std::string::npos);
  EXPECT_NE(refusal(max_unpool(best.values, best.indices, {3})).find("places"), std::string::npos);
}

TEST(Samples, ErrorsNameWhatDoesNotFit) {
  EXPECT_NE(refusal(grid_sample(zeros({1, 1, 4}), zeros({1, 2, 2}))).find("expected [batch, places..., 1]"),
            std::string::npos);
  EXPECT_NE(refusal(grid_sample(zeros({1, 1, 4}), zeros({1, 2, 1}), {.outside = PadMode::wrap})).find("wrap"),
            std::string::npos);
  EXPECT_NE(refusal(grid_sample(zeros({1, 1, 2, 2, 2}), zeros({1, 1, 1, 1, 3}), {.mode = Resize::cubic}))
                .find("volumes"),
            std::string::npos);
  EXPECT_NE(refusal(affine_grid(zeros({1, 2, 2}), {2, 2})).find("theta"), std::string::npos);
}

TEST(Boxes, OverlapsAndTheBest) {
  // The second covers half of the first's union; the third lies apart; the fourth has no area.
  const Tensor boxes = Tensor::from({0, 0, 2, 2, 2, 2, 0, 1, 5, 5, 6, 6, 1, 1, 1, 3}, {4, 4});
  EXPECT_EQ(evaluate(box_overlap(narrow(boxes, 0, 0, 1), boxes), {}), (Numbers{1, 0.5, 0, 0}));
  const Tensor scores = Tensor::from({0.5f, 0.9f, 0.1f, 0.5f}, {4});
  const auto kept = [&](const SuppressionOptions& options) {
    const KeptBoxes found = non_max_suppression(boxes, scores, options);
    Numbers all = evaluate(found.indices, {});
    all.push_back(evaluate(found.count, {})[0]);
    return all;
  };
  EXPECT_EQ(kept({.most = 5, .overlap = 0.4}), (Numbers{1, 3, 2, -1, -1, 3}));
  EXPECT_EQ(kept({.most = 5, .overlap = 0.5}), (Numbers{1, 0, 3, 2, -1, 4}));
  EXPECT_EQ(kept({.most = 2, .overlap = 0.5}), (Numbers{1, 0, 2}));
  EXPECT_EQ(kept({.most = 2, .overlap = 0.5, .score = 0.5}), (Numbers{1, -1, 1}));
  EXPECT_EQ(kept({.most = 0}), (Numbers{0}));
  const KeptBoxes none = non_max_suppression(zeros({2, 0, 4}), zeros({2, 0}), {.most = 1});
  EXPECT_EQ(evaluate(none.indices, {}), (Numbers{-1, -1}));
  const Tensor broken = Tensor::from({NAN, 0.2f, NAN, NAN}, {4});
  EXPECT_EQ(evaluate(non_max_suppression(boxes, broken, {.most = 2}).indices, {}), (Numbers{1, -1}));
  EXPECT_NE(refusal(non_max_suppression(boxes, zeros({3})).indices).find("[..., n, 4]"), std::string::npos);
}

TEST(Boxes, RegionsOfAnImage) {
  // A plane: samples of any region have its values at their centres.
  const Tensor plane = reshape(cast(iota({4, 6}, 0) * 10 + iota({4, 6}, 1), DType::float32), {1, 1, 4, 6});
  const Tensor boxes = Tensor::from({1, 1, 5, 3}, {1, 4}), first = Tensor::from_ints(std::vector{0}, {1});
  EXPECT_EQ(evaluate(roi_align(plane, boxes, first, {.bins = {1, 2}}), {}), (Numbers{16.5, 18.5}));
  EXPECT_EQ(evaluate(roi_align(plane, boxes, first, {.bins = {1, 2}, .half_pixel = false}), {}),
            (Numbers{22, 24}));
  // As many samples as places: 2 of 3 allowed ones.
  EXPECT_EQ(evaluate(roi_align(plane, boxes, first, {.bins = {1, 2}, .samples = 3, .adaptive = true}), {}),
            (Numbers{16.5, 18.5}));
  // Far outside, and no such image: 0.
  EXPECT_EQ(evaluate(roi_align(plane, boxes + 90.0f, first, {.bins = 1}), {}), (Numbers{0}));
  EXPECT_EQ(evaluate(roi_align(plane, boxes, first + 1, {.bins = 1}), {}), (Numbers{0}));
  EXPECT_EQ(roi_align(plane, zeros({0, 4}), zeros({0}, DType::int32)).shape(), (Shape{0, 1, 7, 7}));
  EXPECT_NE(refusal(roi_align(plane, boxes, zeros({1}))).find("int32 [n]"), std::string::npos);
}

}  // namespace
}  // namespace imprint
