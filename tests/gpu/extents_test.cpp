// Named extents: one program for any batch or length up to a bound gives what the program with fixed extents
// gives. On the CPU with equal bits.

#include "compute/tensor/extent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/loop.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using ::testing::HasSubstr;

HostTensor waves(const Shape& shape, float scale, unsigned seed) {
  return HostTensor::from(test::wave(shape.element_count(), scale, seed), shape);
}

class ExtentsTest : public test::SessionTest {
 protected:
  // The outputs of f(inputs of the shapes), run on waves.
  using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

  static ProgramDescription describe(const Function& f, const std::vector<Shape>& shapes) {
    ProgramDescription description{.name = "extents"};
    for (std::size_t i = 0; i < shapes.size(); ++i)
      description.inputs.push_back(input("input " + std::to_string(i), shapes[i]));
    description.outputs = f(description.inputs);
    return description;
  }

  std::vector<HostTensor> run(Program& program, const std::vector<Shape>& shapes) {
    std::vector<HostTensor> values;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      values.push_back(waves(shapes[i], 1.0f, static_cast<unsigned>(i) + 1));
    auto found = session().run(program, values);
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
    return found.ok() ? *found : std::vector<HostTensor>{};
  }

  void expect_equal(const HostTensor& found, const HostTensor& wanted) {
    ASSERT_EQ(found.shape, wanted.shape);
    EXPECT_EQ(found.ints, wanted.ints);
    for (std::size_t i = 0; i < wanted.floats.size(); ++i) {
      if (std::isnan(wanted.floats[i]) && std::isnan(found.floats[i])) continue;
      if (runtime().on_cpu())
        ASSERT_EQ(found.floats[i], wanted.floats[i]) << "element " << i;
      else
        ASSERT_NEAR(found.floats[i], wanted.floats[i], 1e-5 + 1e-5 * std::fabs(wanted.floats[i]))
            << "element " << i;
    }
  }

  // shapes(batch, length): of the inputs, for extents or numbers.
  template <class Shapes>
  void compare(const Function& f, Shapes shapes, const std::vector<std::pair<int, int>>& extents) {
    const Extent batch("batch", 6), length("length", 9);
    Program named = compile(describe(f, shapes(batch, length)));
    for (const auto& [b, t] : extents) {
      SCOPED_TRACE("batch " + std::to_string(b) + ", length " + std::to_string(t));
      const std::vector<Shape> exact = shapes(b, t);
      Program fixed = compile(describe(f, exact));
      const std::vector<HostTensor> found = run(named, exact), wanted = run(fixed, exact);
      ASSERT_EQ(found.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE("output " + std::to_string(i));
        expect_equal(found[i], wanted[i]);
      }
    }
  }
};

const std::vector<std::pair<int, int>> kExtents{{6, 9}, {1, 1}, {4, 7}, {6, 2}, {1, 9}, {5, 3}};

TEST_F(ExtentsTest, FoldsStopAtTheExtent) {
  const auto shapes = [](const auto& b, const auto& t) { return std::vector<Shape>{{b, t, 5}}; };
  compare(
      [](std::span<const Tensor> in) {
        const Tensor& x = in[0];
        return std::vector{sum(x),
                           mean(x),
                           max(x, {1}),
                           min(x, {0}),
                           prod(x, {0, 1}),
                           argmax(x, {1}),
                           variance(x, {0, 1}),
                           softmax(x, 1),
                           log_softmax(x, 0),
                           logsumexp(x, {1}),
                           cumsum(x, 1, false, true),
                           cumsum(x, 1),
                           mean(x, {0}),
                           mean(x, {1, 2})};
      },
      shapes, kExtents);
}

TEST_F(ExtentsTest, ProductsAndReshapesKeepTheRows) {
  const auto shapes = [](const auto& b, const auto& t) {
    return std::vector<Shape>{{b, t, 8}, {b, t, 8}, {8, 6}};
  };
  compare(
      [](std::span<const Tensor> in) {
        const Tensor scores = matmul(in[0], transpose(in[1], 1, 2));  // [b, t, t]
        const Tensor heads = permute(reshape(in[0], {in[0].extent(0), in[0].extent(1), 2, 4}), {0, 2, 1, 3});
        return std::vector{matmul(in[0], in[2]), matmul(softmax(scores, -1), in[1]),
                           matmul(transpose(in[0], 1, 2), in[1]), sum(heads, {2}),
                           reshape(sum(in[0], {1}), {in[0].extent(0) * 8})};
      },
      shapes, kExtents);
}

TEST_F(ExtentsTest, TrainsAPerceptronLikeTheFixedBatch) {
  const auto describe_step = [](const nn::Sequential& network, const nn::Adam& adam,
                                const tensor::ShapeAxis& rows) {
    const Tensor x = input("x", {rows, 7}), y = input("y", {rows, 3});
    const Tensor loss = nn::mse_loss(network(x), y);
    const Result<std::vector<Tensor>> slopes = gradients(loss, network.parameters().values());
    const Result<std::vector<Update>> updates = adam.step(*slopes, 0.01);
    return ProgramDescription{.name = "step", .inputs = {x, y}, .outputs = {loss}, .updates = *updates};
  };
  const Extent batch("batch", 12);
  const nn::Sequential named = nn::mlp("net", {7, 16, 3}, {.seed = 3}),
                       fixed = nn::mlp("net", {7, 16, 3}, {.seed = 3});
  const nn::Adam named_adam(named.parameters()), fixed_adam(fixed.parameters());
  Program step = compile(describe_step(named, named_adam, batch));
  for (const int rows : {12, 5, 1, 8}) {
    Program exact = compile(describe_step(fixed, fixed_adam, rows));
    const std::vector<HostTensor> data{waves({rows, 7}, 1, 4), waves({rows, 3}, 1, 5)};
    const auto found = session().run(step, data), wanted = session().run(exact, data);
    ASSERT_TRUE(found.ok()) << found.error().message;
    expect_equal((*found)[0], (*wanted)[0]);
  }
  std::vector<Variable> of_named, of_fixed;
  for (const nn::Parameter& parameter : named.parameters()) of_named.push_back(parameter.variable);
  for (const nn::Parameter& parameter : fixed.parameters()) of_fixed.push_back(parameter.variable);
  const auto found = session().read(of_named), wanted = session().read(of_fixed);
  for (std::size_t i = 0; i < wanted->size(); ++i) expect_equal((*found)[i], (*wanted)[i]);
}

TEST_F(ExtentsTest, AttentionAndItsGradients) {
  const nn::MultiHeadAttention attention("attention", 8, 2, {.seed = 7});
  const nn::LayerNorm norm("norm", 8);
  compare(
      [&](std::span<const Tensor> in) {
        const Tensor found = norm(in[0] + attention(in[0], {.causal = true}));
        const Tensor loss = mean(square(found));
        std::vector<Tensor> by = attention.parameters().values();
        by.push_back(in[0]);
        const Result<std::vector<Tensor>> slopes = gradients(loss, by);
        std::vector<Tensor> out{found, loss};
        if (slopes)
          out.insert(out.end(), slopes->begin(), slopes->end());
        else
          out.push_back(Tensor(slopes.error()));
        return out;
      },
      [](const auto& b, const auto& t) {
        return std::vector<Shape>{{b, t, 8}};
      },
      kExtents);
}

// Growing caches: the new rows follow the used ones, and a fold over all stops at the sum.
TEST_F(ExtentsTest, JoinsAndPadsHaveSumsOfExtents) {
  const auto shapes = [](const auto& b, const auto& t) {
    return std::vector<Shape>{{b, t, 4}, {b, 2, 4}, {b, t, 4}};
  };
  compare(
      [](std::span<const Tensor> in) {
        const Tensor grown = concat({in[0], in[1]}, 1), twice = concat({grown, in[2]}, 1),
                     rows = concat({in[0], in[2]}, 0), fixed_first = concat({in[1], in[0]}, 1);
        const std::pair<std::int64_t, std::int64_t> around[] = {{1, 0}, {2, 3}, {0, 1}};
        const Tensor padded = pad(in[0], around, 0.5);
        return std::vector{grown,
                           twice,
                           rows,
                           fixed_first,
                           padded,
                           sum(twice, {1}),
                           softmax(grown, 1),
                           mean(padded, {0, 1}),
                           matmul(softmax(matmul(in[1], transpose(grown, 1, 2)), -1), grown)};
      },
      shapes, kExtents);
}

// Windows that move by two places have quotients of extents, also behind each other; what they are joined
// with must have the same.
TEST_F(ExtentsTest, ConvolutionsAndPoolsAlongNamedAxes) {
  compare(
      [](std::span<const Tensor> in) {
        const Tensor &x = in[0], &weight = in[1], &depthwise = in[2];
        const Tensor halved = convolution(x, weight, {}, {.stride = 2, .padding = 1}),
                     pooled = max_pool(x, {.size = 3, .stride = 2, .padding = 1}),
                     quartered = convolution(halved, weight, {}, {.stride = 2, .padding = 1}),
                     same = convolution(x, weight, {}, {.padding = 1, .dilation = 1});
        const WithIndices peaks = max_pool_with_indices(x, {.size = 2, .stride = 1, .padding = 1});
        return std::vector{
            relu(same + x),
            halved + pooled,
            convolution(quartered, weight, {}, {.stride = 3, .padding = 1}),
            convolution(x, depthwise, {}, {.stride = 2, .padding = 1, .groups = 3}),
            avg_pool(halved, {.size = 3, .stride = 1, .padding = 1, .count_padding = false}),
            avg_pool(x, {.size = 3, .stride = 2, .padding = 1, .ceil = true, .count_padding = false}),
            avg_pool(x, {.size = 3, .stride = 2, .padding = 1, .ceil = true}),
            max_pool(x, {.size = 2, .stride = 2, .padding = 1}),
            peaks.values,
            peaks.indices,
            transposed_convolution(halved, weight, {}, {.stride = 2, .padding = 1}),
            transposed_convolution(x, weight, {}, {.stride = 3, .output_padding = 1, .dilation = 2}),
            mean(softmax(reshape(halved, {x.extent(0), 3, -1}), 2), {1}),
            adaptive_max_pool(halved, 1),
            unfold(x, {.size = 3, .stride = 2, .padding = 1})};
      },
      [](const auto& b, const auto& t) {
        return std::vector<Shape>{{2, 3, t, b}, {3, 3, 3, 3}, {3, 1, 3, 3}};
      },
      kExtents);
}

TEST_F(ExtentsTest, GradientsOfWindowsStopAtTheExtent) {
  compare(
      [](std::span<const Tensor> in) {
        const Tensor small = relu(convolution(in[0], in[1], {}, {.stride = 2, .padding = 1}));
        const Tensor found = transposed_convolution(max_pool(small, {.size = 3, .stride = 1, .padding = 1}),
                                                    in[1], {}, {.stride = 2, .padding = 1});
        const Tensor by[] = {in[0], in[1]};
        const Result<std::vector<Tensor>> slopes = gradients(sum(square(found)), by);
        return slopes ? *slopes : std::vector{Tensor(slopes.error())};
      },
      [](const auto& b, const auto& t) {
        return std::vector<Shape>{{b, 3, t}, {3, 3, 3}};
      },
      kExtents);
}

// A run whose extent is too short for a window has none.
TEST_F(ExtentsTest, AWindowThatDoesNotFitHasNoPlaces) {
  const Extent length("length", 9);
  const Tensor x = input("x", {length});
  Program program = compile({.name = "windows", .inputs = {x}, .outputs = {sum(window(x, 0, 4, 2), {1})}});
  for (const auto& [count, windows] : {std::pair{9, 3}, {5, 1}, {4, 1}, {3, 0}, {1, 0}}) {
    const auto found = session().run(
        program,
        std::vector{HostTensor::from(std::vector<float>(static_cast<std::size_t>(count), 0.5f), {count})});
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ((*found)[0].floats, std::vector<float>(static_cast<std::size_t>(windows), 2.0f)) << count;
  }
}

TEST_F(ExtentsTest, TablesTakeNamedIndicesAndTheirGradients) {
  const Variable table("table", {11, 4}, test::wave(44, 1.0f, 9));
  compare(
      [&](std::span<const Tensor> in) {
        const Tensor ids = cast(abs(in[0]) * 10.0f, DType::int32);
        const Tensor rows = take(table.value(), 0, ids);
        const Tensor by[] = {table.value()};
        const Result<std::vector<Tensor>> slopes = gradients(sum(square(rows)), by);
        const Tensor steps = in[0].shape().is_named() ? actual(Extent("length", 9))
                                                      : Tensor(static_cast<int>(in[0].extent(1)));
        const Tensor last = take(rows, 1, steps - 1);
        return std::vector{rows, (*slopes)[0], last};
      },
      [](const auto& b, const auto& t) {
        return std::vector<Shape>{{b, t}};
      },
      kExtents);
}

TEST_F(ExtentsTest, LoopsOverANamedAxisKeepTheCarry) {
  const Variable weights("weights", {8, 4}, test::wave(32, 0.5f, 2));
  compare(
      [&](std::span<const Tensor> in) {
        const Tensor start[] = {sum(in[0], {0}) * 0.0f}, stacks[] = {in[0]};
        const auto body = [&](std::span<const Tensor> state, std::span<const Tensor> row) {
          const Tensor next = tanh(matmul(concat({row[0], state[0]}, 1), weights.value()));
          return ScanStep{{next}, {next}};
        };
        const Result<Scanned> scanned = scan(body, start, stacks);
        if (!scanned) return std::vector{Tensor(scanned.error())};
        const Tensor by[] = {weights.value(), in[0]};
        const Result<std::vector<Tensor>> slopes = gradients(mean(square(scanned->results[0])), by);
        if (!slopes) return std::vector{Tensor(slopes.error())};
        return std::vector{scanned->carry[0], scanned->results[0], (*slopes)[0], (*slopes)[1]};
      },
      [](const auto& b, const auto& t) {
        return std::vector<Shape>{{t, b, 4}};
      },
      kExtents);
}

TEST_F(ExtentsTest, RowsBeyondTakeNoTime) {
  const Extent batch("rows", 4096);
  const nn::Sequential network = nn::mlp("net", {32, 64, 8}, {.seed = 5});
  const Tensor x = input("x", {batch, 32});
  Program program = compile({.name = "rows", .inputs = {x}, .outputs = {network(x), exp(x * 0.5f)}});
  const auto all = session().run(program, std::vector{waves({4096, 32}, 1, 1)});
  ASSERT_TRUE(all.ok()) << all.error().message;
  // Work on the rows beyond would now give other results than those that are there.
  std::ranges::fill(program.input_bytes(0, 0), std::byte{0});
  const HostTensor some = waves({100, 32}, 1, 2);
  const auto found = session().run(program, std::span(&some, 1));
  ASSERT_TRUE(found.ok()) << found.error().message;
  const Tensor fixed = input("x", {100, 32});
  Program exact =
      compile({.name = "rows", .inputs = {fixed}, .outputs = {network(fixed), exp(fixed * 0.5f)}});
  const auto wanted = session().run(exact, std::span(&some, 1));
  for (std::size_t i = 0; i < 2; ++i) {
    expect_equal((*found)[i], (*wanted)[i]);
    const std::span<const std::byte> bytes = program.output_bytes(0, i);
    const auto* now = reinterpret_cast<const float*>(bytes.data());
    const std::size_t count = bytes.size() / sizeof(float);
    for (std::size_t k = count / 2; k < count; ++k) ASSERT_EQ(now[k], (*all)[i].floats[k]) << i << ": " << k;
  }
}

TEST_F(ExtentsTest, LongSequencesOfWideRows) {
  const Extent batch("some", 3), length("steps", 40);
  const nn::MultiHeadAttention attention("attention", 32, 2, {.seed = 7});
  const auto describe_step = [&](const tensor::ShapeAxis& b, const tensor::ShapeAxis& t) {
    const Tensor x = input("x", {b, t, 32}), found = attention(x, {.causal = true});
    const Result<std::vector<Tensor>> slopes =
        gradients(mean(square(found)), attention.parameters().values());
    std::vector<Tensor> out{found};
    out.insert(out.end(), slopes->begin(), slopes->end());
    return ProgramDescription{.name = "long", .inputs = {x}, .outputs = out};
  };
  Program named = compile(describe_step(batch, length));
  for (const auto& [b, t] : {std::pair{3, 40}, {2, 21}}) {
    SCOPED_TRACE(t);
    Program fixed = compile(describe_step(b, t));
    const HostTensor data = waves({b, t, 32}, 1, 3);
    const auto found = session().run(named, std::span(&data, 1)),
               wanted = session().run(fixed, std::span(&data, 1));
    ASSERT_TRUE(found.ok()) << found.error().message;
    for (std::size_t i = 0; i < wanted->size(); ++i) expect_equal((*found)[i], (*wanted)[i]);
  }
}

TEST_F(ExtentsTest, AssignmentsKeepTheRowsBeyond) {
  const Extent batch("batch", 4);
  const Variable state("state", {4, 2}, std::vector<float>(8, 1.0f));
  const Tensor x = input("x", {batch, 2});
  Program program =
      compile({.name = "state", .inputs = {x}, .updates = {Update::assign(state, state.value() + x)}});
  ASSERT_TRUE(session().run(program, std::vector{HostTensor::from({1, 2, 3, 4}, {2, 2})}).ok());
  ASSERT_TRUE(session().run(program, std::vector{HostTensor::from({5, 6}, {1, 2})}).ok());
  const auto found = session().read(std::vector{state});
  EXPECT_EQ((*found)[0].floats, (std::vector<float>{7, 9, 4, 5, 1, 1, 1, 1}));
}

TEST_F(ExtentsTest, ExtentsAreSetPerSlotWithoutANewProgram) {
  const Extent batch("batch", 4);
  const Tensor x = input("x", {batch});
  Program program = compile({.name = "slots", .inputs = {x}, .outputs = {sum(x), x}, .slot_count = 2});
  EXPECT_EQ(program.extent(0, "batch"), 4);
  EXPECT_TRUE(program.set_extent(1, "batch", 2).ok());
  EXPECT_EQ(program.extent(0, "batch"), 4);
  EXPECT_EQ(program.extent(1, "batch"), 2);
  EXPECT_EQ(program.used_shape(1, program.input_shape(0)), Shape{2});
  EXPECT_EQ(program.set_extent(0, "length", 2).error().code, ErrorCode::not_found);
  EXPECT_EQ(program.set_extent(2, "batch", 2).error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(program.set_extent(0, "batch", 5).error().message, HasSubstr("expected 1 .. 4"));
  const auto wrong = session().run(program, std::vector{HostTensor::from({1, 2, 3, 4, 5}, {5})});
  EXPECT_EQ(wrong.error().code, ErrorCode::shape_mismatch);
  const auto right = session().run(program, std::vector{HostTensor::from({1, 2, 3}, {3})});
  ASSERT_TRUE(right.ok());
  EXPECT_EQ((*right)[0].floats[0], 6);
  EXPECT_EQ((*right)[1].shape, Shape{3});
}

TEST_F(ExtentsTest, OperationsThatTakeNoNamedAxisSaySo) {
  const Extent batch("batch", 4), length("length", 6);
  const Tensor x = input("x", {batch, length, 2});
  const std::vector<std::pair<std::int64_t, std::int64_t>> sides{{1, 1}, {0, 0}};
  const Tensor merged = reshape(x, {24, 2});
  for (const Tensor& refused :
       {narrow(x, 1, 1, 3), flip(x, 1), concat({merged, merged}, 0), window(merged, 0, 3, 1, 1),
        pad(merged, sides), reshape(x, {12, 4}), argsort(x, 1), adaptive_avg_pool(transpose(x, 1, 2), 2)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().message, HasSubstr("named "));
  }
  EXPECT_TRUE(narrow(x, 1, 0, 1).ok());
  EXPECT_THAT((x + input("y", {length, 4, 2})).error().message, HasSubstr("broadcast"));
  const Extent other("time", 4);
  EXPECT_THAT((x + input("y", {other, 6, 2})).error().message,
              HasSubstr("named 'batch <= 4' and 'time <= 4'"));
  EXPECT_FALSE(input("x", {Extent("", 4), 2}).ok());
  EXPECT_FALSE(input("x", {Extent("batch", 0), 2}).ok());
  for (const char* made_here : {"a<=5", "a + 1", "2 * a", "(a", "a) / 2", "past from 0"})
    EXPECT_FALSE(input("x", {Extent(made_here, 4), 2}).ok()) << made_here;
  const Tensor image = input("image", {1, 1, batch, length}), kernel = input("kernel", {1, 1, 3, length});
  EXPECT_THAT(convolution(image, kernel, {}).error().message, HasSubstr("a kernel of fixed extents"));
  EXPECT_THAT(
      convolution(image, input("kernel", {1, 1, 3, 3}), {}, {.stride = 2, .same = true}).error().message,
      HasSubstr("stride 1 for same padding"));
  EXPECT_THAT(max_pool(image, {.size = 2, .stride = 3, .ceil = true}).error().message,
              HasSubstr("with ceil along a named axis"));
  EXPECT_EQ(max_pool(image, {.size = 2}).shape().text(),
            "[1, 1, (batch + 2) / 2 + -1 <= 2, (length + 2) / 2 + -1 <= 3]");
  EXPECT_EQ(x.shape().text(), "[batch <= 4, length <= 6, 2]");
}

}  // namespace
}  // namespace imprint
