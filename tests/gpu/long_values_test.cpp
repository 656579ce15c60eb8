// Values that are longer than a descriptor binds: a device with a short range gives the same results.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/ops/quantised.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

constexpr std::uint64_t kRange = 16384;  // bytes

struct LongCase {
  const char* name;
  std::function<std::vector<Tensor>(const Tensor& x)> outputs;  // x: [96, 128]: three parts
};

class LongValues : public test::SessionTest, public testing::WithParamInterface<LongCase> {
 protected:
  static bridge::Standalone& short_range() {
    static const std::unique_ptr<bridge::Standalone> device = [] {
      bridge::StandaloneOptions options;
      if (const char* name = std::getenv("IMPRINT_TEST_DEVICE")) options.device = name;
      options.validation = test::gpu()->context().device().capabilities().debug_utils;
      options.options.storage_buffer_range = kRange;
      return std::move(bridge::Standalone::open(options)).value();
    }();
    return *device;
  }
};

TEST_P(LongValues, EqualsAWholeRange) {
  const Tensor x = input("x", {96, 128});
  const ProgramDescription description{
      .name = "long", .inputs = {x}, .outputs = GetParam().outputs(x), .slot_count = 1};
  Program whole = compile(description);
  Result<Program> parts = Program::compile(short_range().session().runtime(), description);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  const HostTensor data = HostTensor::from(test::wave(96 * 128, 2, 3), {96, 128});
  const auto wanted = session().run(whole, std::span(&data, 1)),
             found = short_range().session().run(*parts, std::span(&data, 1));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(short_range().validation_messages(), 0u) << short_range().first_validation_message();
  for (std::size_t o = 0; o < wanted->size(); ++o) {
    EXPECT_EQ((*found)[o].ints, (*wanted)[o].ints) << o;
    ASSERT_EQ((*found)[o].floats.size(), (*wanted)[o].floats.size()) << o;
    for (std::size_t i = 0; i < (*wanted)[o].floats.size(); ++i)
      ASSERT_NEAR((*found)[o].floats[i], (*wanted)[o].floats[i],
                  1e-5 * std::max(1.0f, std::fabs((*wanted)[o].floats[i])))
          << o << ": " << i;
  }
}

// Read, changed in place and by rows, written, copied and read back.
TEST_F(LongValues, VariablesAreStateAsOthers) {
  const std::vector<float> start = test::wave(96 * 128, 2, 3);
  const Variable state("state", {96, 128}, start), bytes = Variable::zeros("bytes", {201, 203}, DType::int8);
  const Tensor rows = Tensor::from_ints(std::vector{95, 0, 40}, {3}), values = take(state.value(), 0, rows);
  Session& session = short_range().session();
  const auto run = [&](std::vector<Tensor> outputs, std::vector<Update> updates) {
    Result<Program> program = Program::compile(
        session.runtime(), {.name = "state", .outputs = std::move(outputs), .updates = std::move(updates)});
    EXPECT_TRUE(program.ok()) << program.error().message;
    return session.run(*program).value();
  };
  const auto found = run({matmul(values, transpose(state.value())), state.value() * 3.0f},
                         {Update::assign(bytes, cast(iota({201, 203}, 1), DType::int8))});
  const auto at = [](std::size_t row, std::size_t column) { return row * 128 + column; };
  double dot = 0;
  for (std::size_t k = 0; k < 128; ++k) dot += static_cast<double>(start[at(95, k)]) * start[at(41, k)];
  EXPECT_NEAR(found[0].floats[41], dot, 1e-3);
  EXPECT_EQ(found[1].floats[at(95, 127)], start[at(95, 127)] * 3);
  run({}, {Update::assign(state, state.value() + 1.0f)});
  run({}, {Update::scatter_rows(state, rows, values * 2.0f)});
  std::vector<float> wanted = start;
  for (float& one : wanted) one += 1;
  for (const std::size_t row : {95u, 0u, 40u})
    for (std::size_t k = 0; k < 128; ++k) wanted[at(row, k)] *= 2;
  const Variable both[] = {state, bytes};
  const std::unique_ptr<StateCopy> kept = session.runtime().copy(both).value();
  const std::vector<HostTensor> read = session.read(both).value();
  EXPECT_EQ(read[0].floats, wanted);
  for (std::size_t i = 0; i < read[1].ints.size(); ++i)
    ASSERT_EQ(read[1].ints[i], static_cast<std::int8_t>(i % 203)) << i;
  ASSERT_TRUE(session.write(state, HostTensor::from(start, {96, 128})).ok());
  EXPECT_EQ(session.read(both).value()[0].floats, start);
  EXPECT_EQ(short_range().validation_messages(), 0u) << short_range().first_validation_message();
}

Tensor long_constant() { return Tensor::from(test::wave(96 * 128, 1, 1), {96, 128}); }

const LongCase kCases[] = {
    {"inputs_outputs_and_constants",
     [](const Tensor& x) {
       return std::vector{tanh(x) + long_constant(), sum(x, {0}), transpose(x)};
     }},
    {"products",
     [](const Tensor& x) {
       const Tensor hidden = matmul(x, narrow(transpose(long_constant()), 1, 0, 32) * 0.1f);  // [96, 32]
       const Tensor loss = sum(square(relu(hidden)));
       return std::vector{gradients(loss, std::span(&x, 1)).value()[0], hidden};
     }},
    {"rows",
     [](const Tensor& x) {
       return std::vector{softmax(x), argmax(x, 1), max(x, {0})};
     }},
    {"orders",
     [](const Tensor& x) {
       const WithIndices sorted = sort(reshape(x, {96 * 128}));
       return std::vector{sorted.values, sorted.indices, cumsum(reshape(x, {96 * 128}), 0),
                          topk(x, 5).values};
     }},
    {"bytes",
     [](const Tensor& x) {
       const Tensor wide = concat({x, -x}, 0);
       return std::vector{cast(wide * 20.0f, DType::int8), wide > 0.0f};
     }},
    {"halves",
     [](const Tensor& x) {
       return std::vector{cast(x, DType::bfloat16), cast(cast(x, DType::float16), DType::float32) * 2.0f};
     }},
    {"few_bits",
     [](const Tensor& x) {
       const Tensor bytes = cast(bit_and(iota({128, 1024}, 1) + iota({128, 1024}, 0), 255), DType::uint8);
       const QuantisedWeights weights{bytes, full({128, 64}, 0.001), 4};
       return std::vector{matmul(reshape(x, {6, 2048}), weights)};
     }},
    {"moved",
     [](const Tensor& x) {
       const Tensor rows = remainder(iota({300}, 0) * 7, 96);
       const Tensor taken = take(x, 0, rows);  // [300, 128]
       const Tensor where_to = expand(reshape(rows, {300, 1}), {300, 128});
       return std::vector{taken, scatter(zeros({96, 128}), 0, where_to, taken, Scatter::add),
                          pad(x, std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1}, {5, 2}}, 1.5)};
     }},
};

INSTANTIATE_TEST_SUITE_P(Cases, LongValues, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<LongCase>& tested) { return tested.param.name; });

}  // namespace
}  // namespace imprint
