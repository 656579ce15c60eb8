// Programs on several threads of the CPU: the same bits as on one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "compute/base/at.h"
#include "compute/cpu/kernels.h"
#include "compute/program/run.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"

namespace imprint {
namespace {

// A value between -1 and 1 per element.
HostTensor some_values(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.element_count(); ++i)
    values.push_back(std::sin(static_cast<float>(i * 7919 % 10007)));
  return HostTensor::from(std::move(values), shape);
}

// Kernels of every kind, with sizes that no number of threads divides.
std::vector<Tensor> some_results(const Tensor& image, const Tensor& rows) {
  const auto weight = [](const Shape& shape) { return Tensor::from(some_values(shape).floats, shape); };
  const Tensor order = cast(remainder(rows * 1000, 37.0f) + 37.0f, DType::int32);
  return {relu(image) * 2 + tanh(image),
          convolution(image, weight({24, 5, 3, 3}), weight({24}), {.padding = 1}),
          convolution(convolution(image, weight({130, 5, 1, 1}), {}), weight({131, 130, 3, 3}), {}) + 1,
          convolution(image, weight({5, 1, 3, 3}), {}, {.stride = 2, .padding = 1, .groups = 5}),
          convolution(slice(slice(slice(image, 0, 0, 1), 2, 0, 16), 3, 0, 16), weight({24, 5, 3, 3}), {}),
          convolution(slice(slice(slice(image, 0, 0, 1), 2, 0, 9), 3, 0, 9), weight({32, 5, 3, 3}), {}),
          max_pool(image, {.size = 3, .stride = 2}),
          matmul(rows, weight({131, 517})),
          matmul(transpose(rows), rows),
          matmul(reshape(rows, {7, 43, 131}), transpose(reshape(rows, {7, 43, 131}))),
          sum(rows * 3, {1}),
          sum(rows * rows, {0}),
          mean(image, {0, 2, 3}),
          softmax(rows),
          argmax(rows, 1),
          cumsum(rows, 1),
          transpose(rows),
          concat({rows, rows * 2}, 1),
          take(rows, 1, Tensor::from_ints(std::vector<std::int32_t>{5, 3, 130, 0, 77}, {5})),
          gather(rows, 0, order),
          cast(cast(rows, DType::float16), DType::float32)};
}

std::vector<HostTensor> results_on(std::uint32_t threads) {
  const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
  Session session(*runtime);
  const Tensor image = input("image", {3, 5, 67, 71}), rows = input("rows", {301, 131});
  auto program = Program::compile(
      *runtime, {.name = "threads", .inputs = {image, rows}, .outputs = some_results(image, rows)});
  EXPECT_TRUE(program.ok()) << program.error().message;
  if (!program) return {};
  EXPECT_THAT(program->explain(), testing::HasSubstr(std::to_string(threads) + " threads"));
  std::vector<HostTensor> found;
  for (int again = 0; again < 3; ++again) {
    auto results = session.run(*program, std::vector{some_values(image.shape()), some_values(rows.shape())});
    EXPECT_TRUE(results.ok()) << results.error().message;
    if (results) found = std::move(*results);
  }
  return found;
}

TEST(CpuThreads, GiveTheSameBits) {
  const std::vector<HostTensor> alone = results_on(1);
  ASSERT_FALSE(alone.empty());
  for (const std::uint32_t threads : {2u, 3u, 7u}) {
    const std::vector<HostTensor> found = results_on(threads);
    ASSERT_EQ(found.size(), alone.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].ints, alone[i].ints) << "result " << i << " on " << threads;
      ASSERT_EQ(found[i].floats.size(), alone[i].floats.size());
      EXPECT_EQ(
          std::memcmp(found[i].floats.data(), alone[i].floats.data(), found[i].floats.size() * sizeof(float)),
          0)
          << "result " << i << " on " << threads;
    }
  }
}

// x w, and what reads it: in the same step, where it reads the same elements only.
struct Readers {
  Tensor x = input("x", {70, 96}), w = input("w", {96, 700}), bias = input("bias", {700}),
         rest = input("rest", {70, 700});
  Tensor product = matmul(x, w), square = matmul(x, transpose(x));
  std::vector<Tensor> each() const {
    return {relu(product + bias),                   // one reader
            tanh(product) * rest + product,         // several
            concat({rest, sigmoid(product)}, 0),    // into a part of another value
            transpose(product) + transpose(rest),   // at other indices
            product + sum(product, {1}, true),      // after all of it
            square * 2 + transpose(tanh(square))};  // in two orders
  }
};

Result<Program> readers_on(Runtime& runtime, const Readers& of, const std::vector<Tensor>& outputs) {
  return Program::compile(runtime,
                          {.name = "readers", .inputs = {of.x, of.w, of.bias, of.rest}, .outputs = outputs});
}

TEST(CpuThreads, ProductsComputeWhatReadsThem) {
  const Readers readers;
  std::vector<HostTensor> inputs;
  for (const Tensor& value : {readers.x, readers.w, readers.bias, readers.rest})
    inputs.push_back(some_values(value.shape()));
  const auto number = [&](std::size_t value, std::size_t i) { return inputs[value].floats[i]; };
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
    Session session(*runtime);
    auto program = readers_on(*runtime, readers, readers.each());
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto results = session.run(*program, inputs);
    ASSERT_TRUE(results.ok()) << results.error().message;
    std::vector<float> total(70, 0.0f), product(70 * 700, 0.0f);
    for (std::size_t row = 0; row < 70; ++row)
      for (std::size_t i = 0; i < 700; ++i) {
        float& sum = product[row * 700 + i];
        for (std::size_t k = 0; k < 96; ++k) sum += number(0, row * 96 + k) * number(1, k * 700 + i);
        total[row] += sum;
      }
    for (std::size_t row = 0; row < 70; ++row)
      for (std::size_t i = 0; i < 700; ++i) {
        const std::size_t place = row * 700 + i;
        const float value = product[place];
        ASSERT_NEAR((*results)[0].floats[place], std::max(value + number(2, i), 0.0f), 1e-5);
        ASSERT_NEAR((*results)[1].floats[place], std::tanh(value) * number(3, place) + value, 1e-5);
        ASSERT_EQ((*results)[2].floats[place], number(3, place));
        ASSERT_NEAR((*results)[2].floats[70 * 700 + place], 1 / (1 + std::exp(-value)), 1e-5);
        ASSERT_NEAR((*results)[3].floats[i * 70 + row], value + number(3, place), 1e-5);
        ASSERT_NEAR((*results)[4].floats[place], value + total[row], 1e-3);
      }
    for (std::size_t row = 0; row < 70; ++row)
      for (std::size_t column = 0; column < 70; ++column) {
        float sum = 0;
        for (std::size_t k = 0; k < 96; ++k) sum += number(0, row * 96 + k) * number(0, column * 96 + k);
        ASSERT_NEAR((*results)[5].floats[row * 70 + column], 2 * sum + std::tanh(sum), 1e-4);
      }
  }
}

TEST(CpuThreads, AProductAndItsReaderAreOneStep) {
  const auto runtime = Runtime::create_on_cpu({}, 0, {.count = 2});
  const Readers readers;
  auto one = readers_on(*runtime, readers, {readers.each()[0]});
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_THAT(one->explain(), testing::HasSubstr(": 1 kernels of 1 steps"));
  // The product becomes the result in place: memory for no other value.
  EXPECT_THAT(one->explain(), testing::HasSubstr("arena 0 bytes"));
  auto two = readers_on(*runtime, readers, {readers.each()[3]});
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_THAT(two->explain(), testing::HasSubstr("2 kernels of 2 steps"));
}

// Values that are joined are computed with their products, though another product is between.
TEST(CpuThreads, PartsOfAJoinedValueAreStepsOfTheirProducts) {
  const auto weight = [](const Shape& shape) { return Tensor::from(some_values(shape).floats, shape); };
  const Tensor x = input("x", {96, 700}), joined = input("joined", {128, 700});
  const Tensor first = relu(matmul(weight({64, 96}), x)),
               second = tanh(matmul(transpose(weight({96, 64})), x));
  const auto after = [&](const Tensor& both) { return matmul(weight({32, 128}), both); };
  const auto runtime = Runtime::create_on_cpu({}, 0, {.count = 2});
  Session session(*runtime);
  auto whole = Program::compile(
      *runtime, {.name = "whole", .inputs = {x}, .outputs = {after(concat({first, second}, 0))}});
  auto parts = Program::compile(*runtime, {.name = "parts", .inputs = {x}, .outputs = {first, second}});
  auto rest = Program::compile(*runtime, {.name = "rest", .inputs = {joined}, .outputs = {after(joined)}});
  ASSERT_TRUE(whole.ok() && parts.ok() && rest.ok());
  EXPECT_THAT(whole->explain(), testing::HasSubstr("of 3 steps"));
  // The joined value alone: products keep pieces in their workspace.
  EXPECT_THAT(whole->explain(), testing::HasSubstr("arena 358400 bytes"));
  const std::vector given{some_values(x.shape())};
  auto found = session.run(*whole, given), each = session.run(*parts, given);
  ASSERT_TRUE(found.ok() && each.ok());
  HostTensor both = some_values(joined.shape());
  std::ranges::copy((*each)[1].floats, std::ranges::copy((*each)[0].floats, both.floats.begin()).out);
  auto expected = session.run(*rest, std::vector{both});
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ((*found)[0].floats, (*expected)[0].floats);
}

// Rows of a constant are copied in tiles, of which the last may have fewer; parts of several rows have pieces
// of several widths.
TEST(CpuThreads, ConstantRowsLieInTiles) {
  for (const std::int64_t rows : {17, 61, 64, 130})
    for (const std::int64_t columns : {16, 49, 700}) {
      const Shape left{rows, 16}, right{16, columns};
      const HostTensor weights = some_values(left), values = some_values(right);
      const Tensor x = input("x", right), w = input("w", left), constant = Tensor::from(weights.floats, left);
      std::vector<float> of_one;
      for (const std::uint32_t threads : {1u, 2u, 3u}) {
        const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
        Session session(*runtime);
        auto tiled = Program::compile(
            *runtime, {.name = "tiled", .inputs = {x}, .outputs = {tanh(matmul(constant, x)) + 1}});
        auto plain = Program::compile(
            *runtime, {.name = "plain", .inputs = {x, w}, .outputs = {tanh(matmul(w, x)) + 1}});
        ASSERT_TRUE(tiled.ok() && plain.ok());
        const auto found = session.run(*tiled, std::vector{values}),
                   expected = session.run(*plain, std::vector{values, weights});
        ASSERT_TRUE(found.ok() && expected.ok());
        if (threads == 1) of_one = (*found)[0].floats;
        EXPECT_EQ((*found)[0].floats, of_one) << rows << " x " << columns << ", " << threads << " threads";
        for (std::size_t i = 0; i < (*expected)[0].floats.size(); ++i)
          ASSERT_NEAR((*found)[0].floats[i], (*expected)[0].floats[i], 1e-5)
              << rows << " x " << columns << ", " << threads << " threads, " << i;
      }
    }
}

// A view of constants that a product of many rows reads has memory of its own: its elements, not the
// source's.
TEST(CpuThreads, ViewsOfConstantsAreCopiedInTheirOwnOrder) {
  constexpr std::int64_t kRows = 1100, kTerms = 79, kColumns = 17;
  const HostTensor values = some_values({kRows, kTerms}), weights = some_values({kColumns + 4, 2 * kTerms});
  const Tensor x = input("x", values.shape), w = input("w", weights.shape),
               constant = Tensor::from(weights.floats, weights.shape);
  const auto result = [&](const Tensor& of) {
    return matmul(x, transpose(narrow(narrow(of, 1, 3, kTerms), 0, 2, kColumns)));
  };
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto kept = Program::compile(*runtime, {.name = "kept", .inputs = {x}, .outputs = {result(constant)}});
  auto plain = Program::compile(*runtime, {.name = "plain", .inputs = {x, w}, .outputs = {result(w)}});
  ASSERT_TRUE(kept.ok() && plain.ok());
  const auto found = session.run(*kept, std::vector{values}),
             expected = session.run(*plain, std::vector{values, weights});
  ASSERT_TRUE(found.ok() && expected.ok());
  for (std::size_t i = 0; i < (*expected)[0].floats.size(); ++i)
    ASSERT_NEAR((*found)[0].floats[i], (*expected)[0].floats[i], 1e-4) << i;
}

// A chain may write what the product reads: then it waits for all of it.
TEST(CpuThreads, AProductReadsAVariableBeforeItsReaderWritesIt) {
  std::vector<std::vector<float>> found;
  for (const std::uint32_t threads : {1u, 3u}) {
    const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
    Session session(*runtime);
    const Variable weights("weights", {512, 512}, std::span<const float>(some_values({512, 512}).floats));
    auto program = Program::compile(
        *runtime, {.name = "writes",
                   .updates = {Update::assign(weights, matmul(weights.value(), weights.value()) * 0.1f)}});
    ASSERT_TRUE(program.ok()) << program.error().message;
    for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(session.run(*program, {}).ok());
    auto value = session.read(std::array{weights});
    ASSERT_TRUE(value.ok()) << value.error().message;
    found.push_back((*value)[0].floats);
  }
  EXPECT_EQ(found[0], found[1]);
}

using Sides = std::vector<std::pair<std::int64_t, std::int64_t>>;

// relu(x * 2 + 1) of a matrix with a border, then a product, on two threads.
std::string explained(std::int64_t rows) {
  const auto runtime = Runtime::create_on_cpu({}, 0, {.count = 2});
  const Tensor x = input("x", {rows, 64});
  const Tensor padded = pad(relu(x * 2 + 1), Sides{{0, 0}, {1, 1}});
  const Tensor product = matmul(padded, transpose(padded));
  auto program = Program::compile(*runtime, {.name = "p", .inputs = {x}, .outputs = {sum(product, {1})}});
  EXPECT_TRUE(program.ok()) << program.error().message;
  return program ? program->explain() : std::string();
}

TEST(CpuThreads, ShareOnlyProgramsThatAreLargeEnough) {
  EXPECT_THAT(explained(16), testing::HasSubstr(" 0 of them and 0.0 % of the work divided"));
  EXPECT_THAT(explained(256),
              testing::ContainsRegex("[1-9] of them and (9.\\..|100.0) % of the work divided"));
}

// As in the last layers of a network: 32 channels of 14 x 14 or 7 x 7 places are too few for two shares of 32
// channels.
TEST(CpuThreads, ShareProductsOfFewRowsAndColumns) {
  for (const std::int64_t size : {14, 7}) {
    const auto runtime = Runtime::create_on_cpu({}, 0, {.count = 2});
    const Tensor image = input("image", {1, 256, size + 2, size + 2}),
                 weight = Tensor::from(some_values({32, 256, 3, 3}).floats, {32, 256, 3, 3});
    auto program = Program::compile(
        *runtime, {.name = "few", .inputs = {image}, .outputs = {convolution(image, weight, {})}});
    ASSERT_TRUE(program.ok()) << program.error().message;
    EXPECT_THAT(program->explain(), testing::ContainsRegex("(9.\\..|100.0) % of the work divided")) << size;
  }
}

// relu(a b + 0.25), term by term in blocks of kMatmulDepth, whose sums are added in order.
std::vector<float> sums_in_order(const std::vector<float>& a, const std::vector<float>& b, std::int64_t depth,
                                 std::int64_t columns, bool transposed) {
  std::vector<float> sums(a.size() / at(depth) * at(columns));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float* const row = a.data() + i / at(columns) * at(depth);
    const auto column = static_cast<std::int64_t>(i % at(columns));
    for (std::int64_t first = 0; first < depth; first += cpu::kMatmulDepth) {
      float block = 0;
      for (std::int64_t k = first; k < std::min(depth, first + cpu::kMatmulDepth); ++k) {
        const float factor = b[at(transposed ? column * depth + k : k * columns + column)];
        const volatile float term = row[k] * factor;  // rounded: compilers may fuse, too
        block = cpu::kernels().fuses ? std::fma(row[k], factor, block) : block + term;
      }
      sums[i] = first == 0 ? block : sums[i] + block;
    }
    sums[i] = std::max(sums[i] + 0.25f, 0.0f);
  }
  return sums;
}

// Products with constants have other forms: panels, transposed weights. With few results of many terms
// threads share the terms. All add their terms in one order, with fused multiply-adds where the CPU has them.
TEST(CpuThreads, ProductsWithConstantsAddInOneOrder) {
  struct Factors {
    Shape left, right;
    bool transposed = false;  // the right one
  };
  const std::vector<Factors> all{
      {{64, 96}, {96, 160}},    {{33, 600}, {64, 600}, true}, {{47, 20}, {20, 97}},
      {{3, 17, 64}, {64, 32}},  {{60, 240}, {240, 1}},        {{5, 700}, {700, 1}},
      {{1, 2600}, {2600, 32}},  {{3, 5003}, {5003, 7}},       {{1, 9000}, {30, 9000}, true},
      {{116, 464}, {464, 600}}, {{58, 96}, {96, 1500}}};
  std::vector<Tensor> inputs;
  std::vector<HostTensor> values;
  const auto plain = [&](const Shape& shape) {
    values.push_back(some_values(shape));
    return inputs.emplace_back(input("x" + std::to_string(inputs.size()), shape));
  };
  std::vector<Tensor> products;
  std::vector<std::vector<float>> expected;
  for (const auto& [left, right, transposed] : all) {
    const Tensor a = plain(left), b = plain(right),
                 left_weights = Tensor::from(some_values(left).floats, left),
                 right_weights = Tensor::from(some_values(right).floats, right);
    const auto product = [&, is_transposed = transposed](const Tensor& x, const Tensor& y) {
      return relu(matmul(x, is_transposed ? transpose(y) : y) + 0.25f);
    };
    products.push_back(product(a, right_weights));
    products.push_back(product(left_weights, b));
    const auto columns = transposed ? right[0] : right[1];
    expected.push_back(sums_in_order(some_values(left).floats, some_values(right).floats,
                                     left[left.rank() - 1], columns, transposed));
  }
  const auto results = [&](const std::vector<Tensor>& outputs, std::uint32_t threads) {
    const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
    Session session(*runtime);
    auto program = Program::compile(*runtime, {.name = "forms", .inputs = inputs, .outputs = outputs});
    EXPECT_TRUE(program.ok()) << program.error().message;
    auto found = session.run(*program, values);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return std::move(*found);
  };
  for (const std::uint32_t threads : {1u, 2u, 3u, 7u}) {
    const std::vector<HostTensor> found = results(products, threads);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i].floats, expected[i / 2]) << "product " << i << " on " << threads;
  }
}

// A border on one side or several, of images, of lines, and of a value without elements.
TEST(CpuThreads, FillBordersLikeOneThread) {
  std::vector<std::vector<float>> found;
  for (const std::uint32_t threads : {1u, 3u}) {
    const auto runtime = Runtime::create_on_cpu({}, 0, {.count = threads});
    Session session(*runtime);
    const Tensor image = input("image", {70, 61, 1, 67}), none = input("none", {3, 0});
    const Sides around{{0, 0}, {0, 2}, {3, 1}, {0, 5}};
    auto program =
        Program::compile(*runtime, {.name = "borders",
                                    .inputs = {image, none},
                                    .outputs = {pad(image, around, 0.25), pad(transpose(image), around, -1),
                                                pad(none, Sides{{1, 1}, {2, 0}}, 7)}});
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto results = session.run(*program, std::vector{some_values(image.shape()), some_values(none.shape())});
    ASSERT_TRUE(results.ok()) << results.error().message;
    for (const HostTensor& result : *results) found.push_back(result.floats);
  }
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[2], std::vector<float>(10, 7.0f));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i], found[i + 3]) << i;
  // By hand: row 3 of an image is inside, before column 67.
  const HostTensor source = some_values({70, 61, 1, 67});
  std::vector<float> expected;
  for (std::int64_t n = 0; n < 70; ++n)
    for (std::int64_t c = 0; c < 63; ++c)
      for (std::int64_t y = 0; y < 5; ++y)
        for (std::int64_t x = 0; x < 72; ++x)
          expected.push_back(c < 61 && y == 3 && x < 67
                                 ? source.floats[static_cast<std::size_t>((n * 61 + c) * 67 + x)]
                                 : 0.25f);
  EXPECT_EQ(found[0], expected);
}

// Values with one border share memory, in which a run does not write the border again. Without memory for
// that it does.
TEST(CpuThreads, BordersStayFromRunToRun) {
  constexpr std::int64_t kRows = 1024, kColumns = 95;
  const auto halves = [](const HostTensor& x) {
    std::vector<float> found = x.floats;
    for (const float border : {1.0f, 1.0f, -2.0f})
      for (auto row = found.begin(); row != found.end(); row += kColumns) {
        float sum = 3 * border;
        for (std::int64_t i = 0; i < kColumns; ++i) row[i] = (sum += row[i]) / 2;
      }
    return found;
  };
  const Tensor x = input("x", {kRows, kColumns});
  Tensor last = x;
  for (const double border : {1.0, 1.0, -2.0})
    last = slice(cumsum(pad(last, Sides{{0, 0}, {3, 2}}, border), 1), 1, 3, 3 + kColumns) / 2;
  std::uint64_t programs = 0;  // the first has too little memory for borders
  for (std::uint64_t cap = 1 << 20; programs < 8; cap += 1 << 18) {
    const auto runtime = Runtime::create_on_cpu({}, cap, {.count = 2});
    auto program = Program::compile(*runtime, {.name = "borders", .inputs = {x}, .outputs = {last}});
    if (!program && programs == 0) continue;
    ASSERT_TRUE(program.ok()) << program.error().message;
    ++programs;
    Session session(*runtime);
    for (const float sign : {1.0f, -1.0f}) {
      HostTensor values = some_values(x.shape());
      for (float& value : values.floats) value = sign * std::round(16 * value);
      auto results = session.run(*program, std::vector{values});
      ASSERT_TRUE(results.ok()) << results.error().message;
      EXPECT_EQ((*results)[0].floats, halves(values)) << cap;
    }
  }
}

}  // namespace
}  // namespace imprint
