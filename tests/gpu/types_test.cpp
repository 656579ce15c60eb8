// Elements of less than four bytes as state, inputs, outputs, constants and indices. Runs on the device and
// on the CPU; integers have equal bits on both.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/base/number_format.h"
#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/loop.h"
#include "compute/tensor/ops/quantised.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

class TypesTest : public test::SessionTest {
 protected:
  std::vector<HostTensor> run(const ProgramDescription& description,
                              std::span<const HostTensor> inputs = {}) {
    Program program = compile(description);
    return session().run(program, inputs).value();
  }
};

HostTensor ints_of(DType dtype, std::vector<std::int32_t> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {dtype, {count}, {}, std::move(values)};
}

TEST_F(TypesTest, VariablesTakeTheirBytesAndInputsWrap) {
  const struct {
    DType dtype;
    std::uint64_t bytes;
    std::vector<std::int32_t> found;  // of -1, 300, 70000, 5, 128
  } kCases[] = {{DType::int8, 5, {-1, 44, 112, 5, -128}},
                {DType::uint8, 5, {255, 44, 112, 5, 128}},
                {DType::int16, 10, {-1, 300, 4464, 5, 128}},
                {DType::uint16, 10, {65535, 300, 4464, 5, 128}},
                {DType::uint32, 20, {-1, 300, 70000, 5, 128}}};
  for (const auto& [dtype, bytes, found] : kCases) {
    const Tensor x = input("x", {5}, dtype);
    const Variable kept = Variable::zeros("kept", {5}, dtype);
    EXPECT_EQ(kept.bytes(), bytes);
    const HostTensor given[] = {ints_of(dtype, {-1, 300, 70000, 5, 128})};
    const auto outputs = run({.name = "types",
                              .inputs = {x},
                              .outputs = {x, cast(x, DType::int32)},
                              .updates = {Update::assign(kept, flip(x, 0))}},
                             given);
    EXPECT_EQ(outputs[0].ints, found) << dtype_name(dtype);
    EXPECT_EQ(outputs[1].ints, found) << dtype_name(dtype);
    EXPECT_EQ(outputs[0].dtype, dtype);
    EXPECT_EQ(ints(kept), std::vector<std::int32_t>(found.rbegin(), found.rend())) << dtype_name(dtype);
    ASSERT_TRUE(session().write(kept, ints_of(dtype, {1, 2, 3, 4, 260})).ok());
    EXPECT_EQ(ints(kept)[4], dtype_size(dtype) == 1 ? 4 : 260) << dtype_name(dtype);
  }
}

// Rows of three elements share words with their neighbours.
TEST_F(TypesTest, UpdatesSingleRowsOfUnevenBytes) {
  for (const DType dtype : {DType::int8, DType::boolean, DType::int16, DType::float16}) {
    const bool is_float = dtype_is_float(dtype);
    const Variable table = Variable::zeros("table", {7, 3}, dtype);
    const Tensor rows = input("rows", {3}, DType::uint8), values = input("values", {3, 3}, dtype);
    Program program = compile(ProgramDescription{
        .name = "rows", .inputs = {rows, values}, .updates = {Update::scatter_rows(table, rows, values)}});
    HostTensor given{dtype, {3, 3}, {}, {}};
    if (is_float)
      given.floats = {1, 1, 1, 1, 0.5f, 1, 1, 1, 1};
    else
      given.ints = {1, 1, 1, 1, 0, 1, 1, 1, 1};
    const HostTensor inputs[] = {ints_of(DType::uint8, {5, 1, 200}), given};
    ASSERT_TRUE(session().run(program, inputs).ok());
    std::vector<double> expected(21);
    for (int k = 0; k < 3; ++k) expected[15 + k] = expected[3 + k] = 1;
    expected[4] = is_float ? 0.5 : 0;
    const HostTensor found = session().read(std::span(&table, 1)).value()[0];
    for (std::size_t i = 0; i < 21; ++i)
      EXPECT_EQ(is_float ? static_cast<double>(found.floats[i]) : found.ints[i], expected[i])
          << dtype_name(dtype) << " " << i;
  }
}

TEST_F(TypesTest, UpdatesInPlaceAndGivesEqualBitsSliced) {
  constexpr std::int64_t kCount = 70001;  // wide kernels, with a rest
  std::vector<std::uint8_t> start(kCount);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<std::uint8_t>(i * 37);
  for (const std::uint32_t slice : {1000u, 1u}) {
    const Variable state("state", {kCount}, DType::uint8, std::as_bytes(std::span(start)));
    const Variable mask = Variable::zeros("mask", {kCount}, DType::boolean);
    const Tensor wide = cast(state.value(), DType::int32);
    Program program =
        compile(ProgramDescription{.name = "in place",
                                   .updates = {Update::assign(state, cast(wide * 3 + 1, DType::uint8)),
                                               Update::assign(mask, wide > 100)}});
    run_sliced(program, {slice});
    run_sliced(program, {slice});
    const std::vector<std::int32_t> found = ints(state), above = ints(mask);
    for (std::size_t i = 0; i < start.size(); ++i) {
      const int once = (start[i] * 3 + 1) & 255;
      ASSERT_EQ(found[i], (once * 3 + 1) & 255) << i;
      ASSERT_EQ(above[i], once > 100) << i;
    }
  }
}

// Stored values of few bits, and their scales.
QuantisedWeights stored_weights(int bits, const Shape& shape, std::int64_t blocks) {
  Shape packed = shape, sizes = shape;
  packed[packed.rank() - 1] = shape[shape.rank() - 1] * bits / 8;
  sizes[sizes.rank() - 1] = blocks;
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed.element_count()));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 89 % 251);
  const Variable values("values", packed, bits == 8 ? DType::int8 : DType::uint8, bytes);
  const Variable scales("scales", sizes,
                        test::wave(static_cast<std::size_t>(sizes.element_count()), 0.01f, 1));
  return {values.value(), scales.value(), bits};
}

// A product of one row takes as long as reading its weights.
TEST_F(TypesTest, AProductOfOneRowReadsWeightsOfFewBitsInPlace) {
  if (runtime().on_cpu()) GTEST_SKIP() << "the CPU unpacks them first";
  for (const std::int64_t columns : {384, 520})  // by a region, by a page
    for (const int bits : {8, 4}) {
      const Tensor x = input("x", {1, 512});
      Program program =
          compile(ProgramDescription{.name = "few bits",
                                     .inputs = {x},
                                     .outputs = {matmul(x, stored_weights(bits, {columns, 512}, 16))}});
      EXPECT_EQ(program.stats().kernels, 1u) << bits;
      EXPECT_EQ(program.stats().arena_bytes, 0u) << bits;
    }
}

// One layer of several, a layer that a view has moved, and a run again.
TEST_F(TypesTest, ProductsOfFewRowsAreThoseOfUnpackedWeights) {
  for (const int bits : {8, 4}) {
    const QuantisedWeights all = stored_weights(bits, {2, 512, 512}, 16);
    const auto layer = [&](const Tensor& of, int i) { return squeeze(narrow(of, 0, i, 1), 0); };
    const QuantisedWeights second{layer(all.values, 1), layer(all.scales, 1), bits},
        turned{flip(second.values, 0), flip(second.scales, 0), bits};
    const Tensor x = input("x", {2, 512});
    Program program = compile(ProgramDescription{
        .name = "few rows",
        .inputs = {x},
        .outputs = {matmul(x, second), matmul(x, dequantise(second)), flip(matmul(x, turned), 1)}});
    const HostTensor given[] = {{DType::float32, {2, 512}, test::wave(1024, 1, 2), {}}};
    const std::vector<HostTensor> found = session().run(program, given).value(),
                                  again = session().run(program, given).value();
    for (std::size_t i = 0; i < found[0].floats.size(); ++i)
      ASSERT_NEAR(found[0].floats[i], found[1].floats[i], 2e-3) << bits << " " << i;
    EXPECT_EQ(found[2].floats, found[0].floats) << bits;
    EXPECT_EQ(again[0].floats, found[0].floats) << bits;
  }
}

// Eight-bit weights with a scale per column, as importers and quantisers store them.
TEST_F(TypesTest, AProductOfQuantisedWeightsIsThatOfTheirValues) {
  constexpr std::int64_t kRows = 9, kDepth = 130, kColumns = 70;
  std::vector<std::int8_t> quantised(kDepth * kColumns);
  std::vector<float> values(quantised.size()), scales(kColumns);
  for (std::size_t j = 0; j < scales.size(); ++j) scales[j] = 0.001f * static_cast<float>(j + 1);
  for (std::size_t i = 0; i < quantised.size(); ++i) {
    quantised[i] = static_cast<std::int8_t>(static_cast<int>(i * 89 % 255) - 127);
    values[i] = static_cast<float>(quantised[i]) * scales[i % kColumns];
  }
  const Variable bytes("bytes", {kDepth, kColumns}, DType::int8, std::as_bytes(std::span(quantised)));
  const Tensor constant =
      Tensor::from_bytes(std::as_bytes(std::span(quantised)), {kDepth, kColumns}, DType::int8);
  const Tensor x = Tensor::from(test::wave(kRows * kDepth, 1, 1), {kRows, kDepth});
  const Tensor scale = Tensor::from(scales, {kColumns});
  const auto product = [&](const Tensor& weights) {
    return matmul(x, cast(weights, DType::float32) * scale);
  };
  const auto found = run({.name = "quantised",
                          .outputs = {product(bytes.value()), product(constant),
                                      matmul(x, Tensor::from(values, {kDepth, kColumns}))}});
  EXPECT_EQ(found[0].floats, found[2].floats);
  EXPECT_EQ(found[1].floats, found[2].floats);
}

TEST_F(TypesTest, HalvesMoveAndContractWithFloat32Gradients) {
  const Variable w("w", {24, 9}, test::wave(24 * 9, 1, 2));
  const Tensor x = Tensor::from(test::wave(5 * 24, 1, 3), {5, 24});
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Tensor y = matmul(cast(x, dtype), cast(w.value(), dtype));
    const Tensor target = w.value();
    const std::vector<Tensor> gradient = gradients(sum(square(y)), std::span(&target, 1)).value();
    const Tensor rounded = cast(cast(w.value(), dtype), DType::float32);
    const auto found =
        run({.name = "halves",
             .outputs = {y, matmul(cast(cast(x, dtype), DType::float32), rounded), gradient[0]}});
    for (std::size_t i = 0; i < found[0].floats.size(); ++i)
      EXPECT_NEAR(found[0].floats[i], found[1].floats[i], 1e-5) << i;
    EXPECT_EQ(found[2].shape, w.shape());
  }
}

// Sums, differences and products are those of IEEE's float16, on every device.
TEST_F(TypesTest, HalvesComputeWithEqualBits) {
  constexpr std::size_t kCount = 4096;
  std::vector<std::uint16_t> left(kCount), right(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    left[i] = static_cast<std::uint16_t>(i * 40503 % 65536);
    right[i] = static_cast<std::uint16_t>(i * 30011 % 65536);
  }
  const auto half = [&](const char* name, const std::vector<std::uint16_t>& bits) {
    return Variable(name, {kCount}, DType::float16, std::as_bytes(std::span(bits)));
  };
  const Variable a = half("a", left), b = half("b", right);
  const auto found = run({.name = "halves",
                          .outputs = {a.value() + b.value(), a.value() - b.value(), a.value() * b.value()},
                          .updates = {Update::assign(a, a.value() * 0.25f)}});
  const std::vector<float> quarters = session().read(std::span(&a, 1)).value()[0].floats;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float x = float_from_half(left[i]), y = float_from_half(right[i]);
    const float expected[] = {x + y, x - y, x * y, x * 0.25f};
    for (std::size_t k = 0; k < 4; ++k) {
      const float own = k == 3 ? quarters[i] : found[k].floats[i],
                  rounded = float_from_half(half_from_float(expected[k]));
      ASSERT_TRUE(own == rounded || (std::isnan(own) && std::isnan(rounded)))
          << k << ": " << x << ", " << y << ": " << own << ", " << rounded;
    }
  }
  EXPECT_EQ(found[0].dtype, DType::float16);
}

// Every pair of numbers at the edges of words and of float32's digits.
struct EdgePairs {
  std::vector<std::int64_t> left, right;

  EdgePairs();
  Shape shape() const { return {static_cast<std::int64_t>(left.size())}; }
};

EdgePairs::EdgePairs() {
  std::vector<std::int64_t> edges;
  for (const int bit : {0, 1, 24, 25, 31, 32, 33, 49, 56, 62})
    for (const std::int64_t near : {-1, 0, 1})
      for (const std::int64_t sign : {1, -1}) edges.push_back(sign * ((std::int64_t{1} << bit) + near));
  edges.insert(edges.end(), {INT64_MIN, INT64_MIN + 1, INT64_MAX, (std::int64_t{3} << 40) + (1 << 16),
                             (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1});
  for (const std::int64_t a : edges)
    for (const std::int64_t b : edges) left.push_back(a), right.push_back(b);
}

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t number(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

// Against the host's own integers.
TEST_F(TypesTest, Int64AddsComparesAndConverts) {
  const EdgePairs pairs;
  const auto& [left, right] = pairs;
  const Tensor a = input("left", pairs.shape(), DType::int64), b = Tensor::from_int64s(right, pairs.shape());
  const HostTensor given[] = {HostTensor::from_int64s(left, pairs.shape())};
  const auto found =
      run({.name = "int64",
           .inputs = {a},
           .outputs = {a + b, a - b, -a, cast(a, DType::float32), cast(a, DType::int16),
                       cast(cast(a, DType::float32), DType::int64),
                       cast(cast(a, DType::uint32), DType::int64), cast(cast(a, DType::int32), DType::int64),
                       cast(a, DType::boolean), sign(a), cast(cast(a, DType::boolean), DType::int64)}},
          given);
  const auto compared = run({.name = "compared",
                             .inputs = {a},
                             .outputs = {less(a, b), less_equal(a, b), equal(a, b), not_equal(a, b),
                                         greater(a, b), greater_equal(a, b)}},
                            given);
  EXPECT_EQ(found[0].dtype, DType::int64);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int64_t x = left[i], y = right[i];
    SCOPED_TRACE(text(x, " and ", y));
    ASSERT_EQ(found[0].int64s[i], number(bits(x) + bits(y)));
    ASSERT_EQ(found[1].int64s[i], number(bits(x) - bits(y)));
    ASSERT_EQ(found[2].int64s[i], number(-bits(x)));
    const auto nearest = static_cast<float>(x);
    ASSERT_EQ(found[3].floats[i], nearest);
    ASSERT_EQ(found[4].ints[i], static_cast<std::int16_t>(x));
    ASSERT_EQ(found[5].int64s[i], nearest >= 0x1p63f ? INT64_MAX : static_cast<std::int64_t>(nearest));
    ASSERT_EQ(found[6].int64s[i], static_cast<std::uint32_t>(x));
    ASSERT_EQ(found[7].int64s[i], static_cast<std::int32_t>(x));
    ASSERT_EQ(found[8].ints[i], x != 0);
    ASSERT_EQ(found[9].int64s[i], (x > 0) - (x < 0));
    ASSERT_EQ(found[10].int64s[i], x != 0);
    const bool expected[] = {x<y, x <= y, x == y, x != y, x> y, x >= y};
    for (std::size_t k = 0; k < 6; ++k) ASSERT_EQ(compared[k].ints[i], expected[k]) << k;
  }
}

TEST_F(TypesTest, Int64MultipliesDividesAndShifts) {
  const EdgePairs pairs;
  const auto& [left, right] = pairs;
  const Tensor a = input("left", pairs.shape(), DType::int64), b = Tensor::from_int64s(right, pairs.shape()),
               shifts = cast(remainder(iota(pairs.shape(), 0), 64), DType::int64);
  const HostTensor given[] = {HostTensor::from_int64s(left, pairs.shape())};
  const auto found = run(
      {.name = "divided",
       .inputs = {a},
       .outputs = {a * b, a / b, fmod(a, b), remainder(a, b), shift_left(a, shifts), shift_right(a, shifts),
                   maximum(a, bit_not(b)), bit_xor(bit_and(a, b), bit_or(a, minimum(abs(a), b)))}},
      given);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int64_t x = left[i], y = right[i];
    SCOPED_TRACE(text(x, " and ", y));
    ASSERT_EQ(found[0].int64s[i], number(bits(x) * bits(y)));
    const bool wraps = x == INT64_MIN && y == -1;
    const std::int64_t rest = y == 0 || wraps ? 0 : x % y;
    ASSERT_EQ(found[1].int64s[i], wraps ? x : y == 0 ? 0 : x / y);
    ASSERT_EQ(found[2].int64s[i], rest);
    ASSERT_EQ(found[3].int64s[i], rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    ASSERT_EQ(found[4].int64s[i], number(bits(x) << i % 64));
    ASSERT_EQ(found[5].int64s[i], x >> i % 64);
    ASSERT_EQ(found[6].int64s[i], std::max(x, ~y));
    const std::int64_t size = x < 0 ? number(-bits(x)) : x;
    ASSERT_EQ(found[7].int64s[i], (x & y) ^ (x | std::min(size, y)));
  }
}

std::vector<std::int64_t> mixed_numbers(std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = number((i + 1) * 0x9e3779b97f4a7c15u);
  return values;
}

TEST_F(TypesTest, Int64FoldsWithoutLosingBits) {
  constexpr std::int64_t kRows = 3, kLength = 70000;  // more terms than one sum of half words takes
  const std::vector<std::int64_t> values = mixed_numbers(kRows * kLength);
  const Variable x("x", {kRows, kLength}, values);
  const Tensor part = slice(x.value(), 1, 5, 300);
  const auto found =
      run({.name = "folds",
           .outputs = {sum(x.value(), {1}), max(x.value(), {1}), min(x.value(), {0}, true),
                       argmax(x.value(), {1}), argmin(x.value()), sum(x.value()), cumsum(part, 1),
                       sum(part, {0}), max(zeros({0, 2}, DType::int64), {0}), any(equal(part, 0)),
                       scatter_add(part, 1, zeros({3, 295}, DType::int32), part)}});
  std::uint64_t all = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto first = values.begin() + row * kLength, last = first + kLength;
    std::uint64_t total = 0;
    for (auto at = first; at != last; ++at) total += bits(*at);
    all += total;
    EXPECT_EQ(found[0].int64s[static_cast<std::size_t>(row)], number(total));
    EXPECT_EQ(found[1].int64s[static_cast<std::size_t>(row)], *std::max_element(first, last));
    EXPECT_EQ(found[3].ints[static_cast<std::size_t>(row)], std::max_element(first, last) - first);
    std::uint64_t running = 0, scattered = bits(first[5]);
    for (std::int64_t i = 5; i < 300; ++i) {
      running += bits(first[i]);
      const auto place = static_cast<std::size_t>(row * 295 + i - 5);
      ASSERT_EQ(found[6].int64s[place], number(running)) << row << " " << i;
    }
    EXPECT_EQ(found[10].int64s[static_cast<std::size_t>(row * 295)], number(scattered + running));
  }
  EXPECT_EQ(found[5].int64s[0], number(all));
  EXPECT_EQ(found[2].shape, (Shape{1, kLength}));
  for (std::size_t i = 0; i < kLength; ++i)
    ASSERT_EQ(found[2].int64s[i], std::min({values[i], values[i + kLength], values[i + 2 * kLength]}));
  EXPECT_EQ(found[4].ints[0], std::min_element(values.begin(), values.end()) - values.begin());
  for (std::size_t i = 0; i < 295; ++i)
    ASSERT_EQ(found[7].int64s[i], number(bits(values[i + 5]) + bits(values[i + 5 + kLength]) +
                                         bits(values[i + 5 + 2 * kLength])));
  EXPECT_EQ(found[8].int64s, (std::vector<std::int64_t>{INT64_MIN, INT64_MIN}));
  EXPECT_EQ(found[9].ints[0], 0);
}

TEST_F(TypesTest, Int64MovesAsStateAndAsIndices) {
  const std::vector<std::int64_t> values = mixed_numbers(12);
  const Variable x("x", {4, 3}, values), rows = Variable::zeros("rows", {4, 3}, DType::int64);
  EXPECT_EQ(x.bytes(), 96u);
  const std::pair<std::int64_t, std::int64_t> around[] = {{1, 0}, {0, 1}};
  const Tensor far = Tensor::from_int64s(std::vector<std::int64_t>{3, std::int64_t{1} << 32, -1}, {3});
  Program program = compile(ProgramDescription{
      .name = "moves",
      .outputs = {transpose(x.value()), pad(x.value(), around, -7), concat({x.value(), x.value() + 1}, 1),
                  take(x.value(), 0, far), x.value(), full({2}, -5e9, DType::int64),
                  take(cast(iota({4}, 0), DType::float32) + 1.0f, 0, far),
                  scatter(x.value(), 0, expand(reshape(far, {3, 1}), {3, 3}), slice(x.value(), 0, 0, 3),
                          Scatter::assign)},
      .updates = {Update::scatter_rows(rows, far, slice(x.value(), 0, 1, 4)),
                  Update::assign(x, flip(x.value(), 0))}});
  const auto found = session().run(program).value();
  const auto value = [&](std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * 3 + column)];
  };
  for (std::int64_t row = 0; row < 4; ++row)
    for (std::int64_t column = 0; column < 3; ++column) {
      const auto place = [&](std::int64_t width, std::int64_t i, std::int64_t k) {
        return static_cast<std::size_t>(i * width + k);
      };
      EXPECT_EQ(found[0].int64s[place(4, column, row)], value(row, column));
      EXPECT_EQ(found[1].int64s[place(4, row + 1, column)], value(row, column));
      EXPECT_EQ(found[2].int64s[place(6, row, column)], value(row, column));
      EXPECT_EQ(found[2].int64s[place(6, row, column + 3)], number(bits(value(row, column)) + 1));
      EXPECT_EQ(found[3].int64s[place(3, row % 3, column)], row % 3 == 0 ? value(3, column) : 0);
      EXPECT_EQ(found[7].int64s[place(3, row, column)], row == 3 ? value(0, column) : value(row, column));
    }
  EXPECT_EQ(found[1].int64s[3], -7);
  EXPECT_EQ(found[4].int64s, values);
  EXPECT_EQ(found[5].int64s, (std::vector<std::int64_t>{-5000000000, -5000000000}));
  EXPECT_EQ(found[6].floats, (std::vector<float>{4, 0, 0}));
  const Variable both[] = {x, rows};
  const auto state = session().read(both).value();
  EXPECT_EQ(state[0].int64s[0], value(3, 0));
  EXPECT_EQ(state[1].int64s[9], value(1, 0));
  EXPECT_EQ(state[1].int64s[0], 0);
  ASSERT_TRUE(session().write(x, HostTensor::from_ints(std::vector<std::int32_t>(12, -3), {4, 3})).ok());
  EXPECT_EQ(session().evaluate(x.value()).value().int64s, std::vector<std::int64_t>(12, -3));
  const Tensor near = Tensor::from_int64s(std::vector<std::int64_t>{-7, 2, 3000000000}, {3});
  EXPECT_EQ(session().evaluate(clamp(near, -5, 1e9)).value().int64s,
            (std::vector<std::int64_t>{-5, 2, 1000000000}));
  EXPECT_EQ(session().evaluate(square(near)).value().int64s,
            (std::vector<std::int64_t>{49, 4, 9000000000000000000}));
  EXPECT_EQ(session().evaluate(floor_divide(near, 2)).value().int64s,
            (std::vector<std::int64_t>{-4, 1, 1500000000}));
  EXPECT_EQ(session().evaluate(one_hot(near, 3)).value().floats,
            (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 0, 0}));
  // A literal takes the type; what has no form for pairs says so.
  EXPECT_EQ(session().evaluate(far * 2 - std::int64_t{1}).value().int64s,
            (std::vector<std::int64_t>{5, (std::int64_t{1} << 33) - 1, -3}));
  EXPECT_EQ(session().evaluate(far).value().int64s[1], std::int64_t{1} << 32);
  EXPECT_FALSE(prod(far).ok());
  EXPECT_FALSE(exp(far).ok());
  EXPECT_FALSE((far + Tensor::from_ints(std::vector{1, 2, 3}, {3})).ok());
  EXPECT_FALSE(sort(far, 0).values.ok());
}

// Knuth's generator, a step for each turn.
TEST_F(TypesTest, Int64IsCarriedThroughLoops) {
  constexpr std::int64_t kFactor = 6364136223846793005, kMore = 1442695040888963407;
  const std::vector<std::int64_t> start = {1, INT64_MIN}, added = mixed_numbers(10);
  const Variable state("state", {2}, start);
  const Tensor carry[] = {state.value()}, stacks[] = {reshape(Tensor::from_int64s(added, {10}), {5, 2})};
  const auto body = [&](std::span<const Tensor> now, std::span<const Tensor> rows) {
    const Tensor next = now[0] * kFactor + kMore + rows[0];
    return ScanStep{{next}, {next < std::int64_t{0}, next}};
  };
  const Scanned scanned = scan(body, carry, stacks).value();
  const auto found = run({.name = "loop",
                          .outputs = {scanned.carry[0], scanned.results[0], scanned.results[1]},
                          .updates = {Update::assign(state, scanned.carry[0])}});
  for (std::size_t k = 0; k < 2; ++k) {
    std::uint64_t now = bits(start[k]);
    for (std::size_t step = 0; step < 5; ++step) {
      now = now * bits(kFactor) + bits(kMore) + bits(added[2 * step + k]);
      EXPECT_EQ(found[2].int64s[2 * step + k], number(now));
      EXPECT_EQ(found[1].ints[2 * step + k], number(now) < 0);
    }
    EXPECT_EQ(found[0].int64s[k], number(now));
    EXPECT_EQ(session().read(std::span(&state, 1)).value()[0].int64s[k], number(now));
  }
}

TEST_F(TypesTest, Int64HasNamedExtents) {
  const Extent batch("batch", 6);
  const Tensor x = input("x", {batch, 2}, DType::int64);
  Program program = compile(ProgramDescription{
      .name = "named", .inputs = {x}, .outputs = {x + std::int64_t{1}, sum(x, {0}), transpose(x), x}});
  for (const std::int64_t rows : {1, 4, 6}) {
    const std::vector<std::int64_t> values = mixed_numbers(static_cast<std::size_t>(2 * rows));
    const HostTensor given[] = {HostTensor::from_int64s(values, {rows, 2})};
    const auto found = session().run(program, given).value();
    std::uint64_t sums[] = {0, 0};
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums[i % 2] += bits(values[i]);
      EXPECT_EQ(found[0].int64s[i], number(bits(values[i]) + 1));
      EXPECT_EQ(found[2].int64s[i % 2 * static_cast<std::size_t>(rows) + i / 2], values[i]);
    }
    EXPECT_EQ(found[1].int64s, (std::vector<std::int64_t>{number(sums[0]), number(sums[1])}));
    EXPECT_EQ(found[3].int64s, values);
  }
}

}  // namespace
}  // namespace imprint
