// Elements of less than four bytes as state, inputs, outputs, constants and indices. Runs on the device and
// on the CPU; integers have equal bits on both.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/base/number_format.h"
#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/ops/quantised.h"
#include "compute/tensor/ops/wide_integers.h"
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
  std::vector<std::int32_t> words_of_left() const {
    std::vector<std::int32_t> words(2 * left.size());
    std::memcpy(words.data(), left.data(), words.size() * sizeof(std::int32_t));
    return words;
  }
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

std::int64_t number_at(const HostTensor& words, std::size_t i) {
  std::int64_t value = 0;
  std::memcpy(&value, &words.ints[2 * i], sizeof value);
  return value;
}

// Against the host's own integers.
TEST_F(TypesTest, PairsOfWordsComputeAs64Bits) {
  const EdgePairs pairs;
  const auto& [left, right] = pairs;
  const auto count = static_cast<std::int64_t>(left.size());
  const Tensor words = input("left", {count, 2}, DType::int32);
  const Int64 a = int64_from_words(words), b(right, {count});
  const HostTensor given[] = {HostTensor::from_ints(pairs.words_of_left(), {count, 2})};
  const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto found =
      run({.name = "pairs",
           .inputs = {words},
           .outputs = {words_of(a + b), words_of(a - b), words_of(-a), cast(a < b, DType::int32),
                       cast(a <= b, DType::int32), cast(equal(a, b), DType::int32), index_of(a),
                       cast(a, DType::float32), cast(a, DType::int16),
                       words_of(int64_of(cast(a, DType::float32))),
                       words_of(int64_of(cast(a.low, DType::uint32))), words_of(int64_of(a.low))}},
          given);
  const auto number = [&](std::size_t output, std::size_t i) { return number_at(found[output], i); };
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int64_t x = left[i], y = right[i];
    SCOPED_TRACE(text(x, " and ", y));
    ASSERT_EQ(number(0, i), static_cast<std::int64_t>(bits(x) + bits(y)));
    ASSERT_EQ(number(1, i), static_cast<std::int64_t>(bits(x) - bits(y)));
    ASSERT_EQ(number(2, i), static_cast<std::int64_t>(-bits(x)));
    ASSERT_EQ(found[3].ints[i], x < y);
    ASSERT_EQ(found[4].ints[i], x <= y);
    ASSERT_EQ(found[5].ints[i], x == y);
    ASSERT_EQ(found[6].ints[i], std::clamp<std::int64_t>(x, INT32_MIN, INT32_MAX));
    const auto nearest = static_cast<float>(x);
    ASSERT_EQ(found[7].floats[i], nearest);
    ASSERT_EQ(found[8].ints[i], static_cast<std::int16_t>(x));
    ASSERT_EQ(number(9, i), nearest >= 0x1p63f ? INT64_MAX : static_cast<std::int64_t>(nearest));
    ASSERT_EQ(number(10, i), static_cast<std::uint32_t>(x));
    ASSERT_EQ(number(11, i), static_cast<std::int32_t>(x));
  }
  EXPECT_FALSE(int64_from_words(cast(words, DType::float32)).low.ok());
  const Tensor rows = take(cast(iota({4}, 0), DType::float32) + 1.0f, 0,
                           index_of(Int64(std::vector<std::int64_t>{3, std::int64_t{1} << 32, -1}, {3})));
  EXPECT_EQ(run({.name = "rows", .outputs = {rows}})[0].floats, (std::vector<float>{4, 0, 0}));
}

TEST_F(TypesTest, PairsOfWordsMultiplyDivideAndShift) {
  const EdgePairs pairs;
  const auto& [left, right] = pairs;
  const auto count = static_cast<std::int64_t>(left.size());
  const Tensor words = input("left", {count, 2}, DType::int32), shifts = remainder(iota({count}, 0), 64);
  const Int64 a = int64_from_words(words), b(right, {count});
  const HostTensor given[] = {HostTensor::from_ints(pairs.words_of_left(), {count, 2})};
  const auto found = run({.name = "divided",
                          .inputs = {words},
                          .outputs = {words_of(a * b), words_of(a / b), words_of(fmod(a, b)),
                                      words_of(remainder(a, b)), words_of(shift_left(a, shifts)),
                                      words_of(shift_right(a, shifts)), words_of(maximum(a, bit_not(b))),
                                      words_of(bit_xor(bit_and(a, b), bit_or(a, minimum(abs(a), b))))}},
                         given);
  const auto number = [&](std::size_t output, std::size_t i) { return number_at(found[output], i); };
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int64_t x = left[i], y = right[i];
    const auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
    SCOPED_TRACE(text(x, " and ", y));
    ASSERT_EQ(number(0, i), static_cast<std::int64_t>(ux * uy));
    const bool wraps = x == INT64_MIN && y == -1;
    const std::int64_t rest = y == 0 || wraps ? 0 : x % y;
    ASSERT_EQ(number(1, i), wraps ? x : y == 0 ? 0 : x / y);
    ASSERT_EQ(number(2, i), rest);
    ASSERT_EQ(number(3, i), rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    ASSERT_EQ(number(4, i), static_cast<std::int64_t>(ux << i % 64));
    ASSERT_EQ(number(5, i), x >> i % 64);
    ASSERT_EQ(number(6, i), std::max(x, ~y));
    const std::int64_t size = x < 0 ? static_cast<std::int64_t>(0 - ux) : x;
    ASSERT_EQ(number(7, i), (x & y) ^ (x | std::min(size, y)));
  }
}

}  // namespace
}  // namespace imprint
