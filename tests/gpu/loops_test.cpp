// Loops in programs: one body whatever the number of steps, equal bits however a run is cut, and the results
// of the same steps written out.

#include "compute/tensor/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/ops/associative_scan.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using ::testing::HasSubstr;

class LoopsTest : public test::SessionTest {};

// A recurrent network with an LSTM's gates, and descent on its weights.
struct Network {
  std::int64_t steps, rows, inputs, hidden;
  Variable weights, bias;
  Tensor x;
  Network(std::int64_t steps_, std::int64_t rows_, std::int64_t inputs_, std::int64_t hidden_)
      : steps(steps_), rows(rows_), inputs(inputs_), hidden(hidden_) {
    const std::int64_t in = inputs + hidden, gates = 4 * hidden;
    weights = Variable("weights", {in, gates}, test::wave(in * gates, 0.2f, 1));
    bias = Variable("bias", {gates}, test::wave(gates, 0.1f, 2));
    x = input("x", {steps, rows, inputs});
  }

  ScanStep step(std::span<const Tensor> state, const Tensor& row) const {
    const Tensor gates = matmul(concat({row, state[0]}, 1), weights.value()) + bias.value();
    const auto gate = [&](std::int64_t k) { return narrow(gates, 1, k * hidden, hidden); };
    const Tensor cell = sigmoid(gate(1)) * state[1] + sigmoid(gate(0)) * tanh(gate(2));
    const Tensor out = sigmoid(gate(3)) * tanh(cell);
    return {{out, cell}, {out}};
  }

  Tensor outputs() const {  // [steps, rows, hidden]
    const Tensor start[] = {zeros({rows, hidden}), zeros({rows, hidden})}, stacks[] = {x};
    const auto body = [this](std::span<const Tensor> state, std::span<const Tensor> row) {
      return step(state, row[0]);
    };
    const Result<Scanned> scanned = scan(body, start, stacks);
    return scanned ? scanned->results[0] : Tensor(scanned.error());
  }

  Tensor outputs_written_out() const {
    std::vector<Tensor> state{zeros({rows, hidden}), zeros({rows, hidden})}, found;
    for (std::int64_t t = 0; t < steps; ++t) {
      const ScanStep next = step(state, reshape(narrow(x, 0, t, 1), {rows, inputs}));
      state = next.carry;
      found.push_back(next.results[0]);
    }
    return stack(found, 0);
  }

  ProgramDescription training(const Tensor& found) const {
    const Tensor loss = mean(square(found - 0.5f));
    const Tensor by[] = {weights.value(), bias.value()};
    const Result<std::vector<Tensor>> slopes = gradients(loss, by);
    if (!slopes) throw std::runtime_error(slopes.error().message);
    return {.name = "network",
            .inputs = {x},
            .outputs = {loss},
            .updates = {Update::assign(weights, by[0] - (*slopes)[0]),
                        Update::assign(bias, by[1] - (*slopes)[1])}};
  }

  HostTensor data() const {
    return HostTensor::from(test::wave(steps * rows * inputs, 1.0f, 3), {steps, rows, inputs});
  }
};

TEST_F(LoopsTest, TrainsLikeTheStepsWrittenOut) {
  const Network looped(7, 5, 3, 8), written(7, 5, 3, 8);
  Program loop = compile(looped.training(looped.outputs())),
          plain = compile(written.training(written.outputs_written_out()));
  const HostTensor data = looped.data();
  for (int run = 0; run < 3; ++run) {
    const auto one = session().run(loop, std::span(&data, 1)),
               other = session().run(plain, std::span(&data, 1));
    ASSERT_TRUE(one.ok()) << one.error().message;
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_NEAR((*one)[0].floats[0], (*other)[0].floats[0], 1e-5) << run;
  }
  const std::vector<float> found = floats(looped.weights), expected = floats(written.weights);
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4) << i;
}

// A recurrent network whose first state its steps read too: tangents of its outputs.
TEST_F(LoopsTest, TangentsAreThoseOfTheStepsWrittenOut) {
  const Variable first("first", {3}, test::wave(3, 1.0f, 1)),
      weights("weights", {3, 3}, test::wave(9, 1.0f, 2));
  const Tensor start[] = {first.value()}, x[] = {Tensor::from(test::wave(12, 1.0f, 3), {4, 3})};
  const auto body = [&](std::span<const Tensor> state, std::span<const Tensor> row) {
    const Tensor next = tanh(matmul(state[0], weights.value()) + row[0]);
    return ScanStep{{next}, {next * start[0]}};
  };
  const Result<Scanned> scanned = scan(body, start, x);
  ASSERT_TRUE(scanned) << scanned.error().message;
  std::vector<Tensor> state{start[0]}, rows;
  for (int t = 0; t < 4; ++t) {
    const Tensor row[] = {reshape(narrow(x[0], 0, t, 1), {3})};
    ScanStep step = body(state, row);
    state = std::move(step.carry);
    rows.push_back(step.results[0]);
  }
  const Tensor outputs[] = {scanned->results[0]}, written[] = {stack(rows, 0)};
  const Tensor by[] = {start[0], weights.value()},
               tangents[] = {Tensor::from({1, -2, 3}, {3}), Tensor::from(test::wave(9, 1.0f, 4), {3, 3})};
  const auto found = jvp(outputs, by, tangents), expected = jvp(written, by, tangents);
  ASSERT_TRUE(found && expected);
  const Tensor both[] = {(*found)[0], (*expected)[0]};
  const auto values = session().evaluate(both);
  ASSERT_TRUE(values) << values.error().message;
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR((*values)[0].floats[i], (*values)[1].floats[i], 1e-5) << i;
}

TEST_F(LoopsTest, AreTheSameToTheBitHoweverTheyAreCut) {
  const Network whole(9, 4, 3, 8);
  Program program = compile(whole.training(whole.outputs()));
  const HostTensor data = whole.data();
  ASSERT_TRUE(session().run(program, std::span(&data, 1)).ok());
  const std::vector<float> expected = floats(whole.weights);
  for (const std::uint32_t length : {1u, 3u, 8u}) {
    const Network cut(9, 4, 3, 8);
    Program pieces = compile(cut.training(cut.outputs()));
    std::ranges::copy(std::as_bytes(std::span(data.floats)), pieces.input_bytes(0, 0).begin());
    run_sliced(pieces, {length});
    EXPECT_EQ(floats(cut.weights), expected) << length;
  }
}

// A part with a loop repeats as a whole: three steps of descent in one run, in slices too.
TEST_F(LoopsTest, RepeatWithTheirPart) {
  const Network once(6, 4, 3, 8);
  Program single = compile(once.training(once.outputs()));
  const HostTensor data = once.data();
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session().run(single, std::span(&data, 1)).ok());
  const std::vector<float> expected = floats(once.weights);
  for (const std::uint32_t length : {1u, 5u, 1000u}) {
    const Network thrice(6, 4, 3, 8);
    Program program =
        compile(ProgramSequence{.name = "thrice", .parts = {{thrice.training(thrice.outputs()), 3}}});
    EXPECT_EQ(program.stats().dispatches, 3 * single.stats().dispatches);
    std::ranges::copy(std::as_bytes(std::span(data.floats)), program.input_bytes(0, 0).begin());
    run_sliced(program, {length});
    EXPECT_EQ(floats(thrice.weights), expected) << length;
  }
  const Network odd(6, 4, 3, 8);
  const auto both = Program::compile(
      runtime(),
      ProgramSequence{.name = "odd", .parts = {{odd.training(odd.outputs())}}, .rounds = {{0, 1, 2}}});
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().message, HasSubstr("'odd': found loops and rounds, expected one of them"));
}

// Kernels per part, whatever the number of steps.
TEST_F(LoopsTest, HaveOneBodyWhateverTheSteps) {
  const auto kernels = [&](std::int64_t steps) {
    const Network network(steps, 4, 8, 16);
    const Program program = compile(network.training(network.outputs()));
    std::size_t count = 0;
    for (const ScheduleFigures& part : program.schedule()) {
      count += part.dispatches.size();
      EXPECT_TRUE(part.repeat == 1 || part.repeat == steps) << part.repeat;
    }
    return count;
  };
  EXPECT_EQ(kernels(200), kernels(20));
}

TEST_F(LoopsTest, ReadStateAsItWasBeforeTheRun) {
  const Variable state("state", {2}, std::vector<float>{1, 2});
  const Tensor start[] = {zeros({2})};
  const auto body = [&](std::span<const Tensor> x, std::span<const Tensor>) {
    return ScanStep{{x[0] + state.value()}, {}};
  };
  const Result<Scanned> scanned = scan(body, start, {}, {.steps = 3});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  Program program =
      compile(ProgramDescription{.name = "sums", .updates = {Update::assign(state, scanned->carry[0])}});
  EXPECT_EQ(program.first_shared_write(), program.piece_count() - 2);
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(state), (std::vector<float>{9, 18}));
}

TEST_F(LoopsTest, AreEvaluated) {
  const Tensor start[] = {Tensor::from({1, 2}, {2})};
  const auto body = [](std::span<const Tensor> x, std::span<const Tensor>) {
    return ScanStep{{x[0] * 2.0f}, {x[0]}};
  };
  const Result<Scanned> scanned = scan(body, start, {}, {.steps = 3});
  ASSERT_TRUE(scanned.ok());
  const auto found = session().evaluate(scanned->results[0]);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->floats, (std::vector<float>{1, 2, 2, 4, 4, 8}));
}

TEST_F(LoopsTest, SayWhatIsWrong) {
  const Tensor start[] = {zeros({2})}, stacks[] = {zeros({3, 2}), zeros({4, 2})};
  const auto same = [](std::span<const Tensor> x, std::span<const Tensor>) { return ScanStep{{x[0]}, {}}; };
  const auto wider = [](std::span<const Tensor> x, std::span<const Tensor>) {
    return ScanStep{{concat({x[0], x[0]}, 0)}, {}};
  };
  const auto message = [](const Result<Scanned>& result) { return result ? "" : result.error().message; };
  EXPECT_EQ(message(scan(same, start, stacks)), "scan: stack 1: found 4 rows, expected 3");
  EXPECT_EQ(message(scan(same, start)), "scan: steps: found 0, expected at least 1");
  EXPECT_EQ(message(scan(wider, start, {}, {.steps = 2})),
            "scan: the body's carry: tensor 0: found float32[4], expected float32[2]");
  const auto nested = [&](std::span<const Tensor> x, std::span<const Tensor>) {
    return ScanStep{scan(same, x, {}, {.steps = 2}).value().carry, {}};
  };
  EXPECT_THAT(message(scan(nested, start, {}, {.steps = 2})), HasSubstr("found a loop inside of the body"));
}

// h[t] = a[t] h[t - 1] + b[t], as pairs that combine, against one step after the other. It differentiates.
TEST_F(LoopsTest, AssociativeScansCombineWhatTheCallerSays) {
  constexpr std::int64_t kRows = 37, kWidth = 3;
  const Tensor a = input("a", {kRows, kWidth}), b = input("b", {kRows, kWidth});
  const auto combine = [](std::span<const Tensor> before, std::span<const Tensor> after) {
    return std::vector{after[0] * before[0], after[0] * before[1] + after[1]};
  };
  const Tensor both[] = {a, b};
  const auto forward = associative_scan(combine, both, 0),
             backward = associative_scan(combine, both, -2, true);
  ASSERT_TRUE(forward.ok() && backward.ok());
  const auto slopes = gradients(sum((*forward)[1]), std::span(both).subspan(1));
  ASSERT_TRUE(slopes.ok()) << slopes.error().message;
  Program program = compile(ProgramDescription{
      .name = "pairs", .inputs = {a, b}, .outputs = {(*forward)[1], (*backward)[1], (*slopes)[0]}});
  const std::vector<float> factors = test::wave(kRows * kWidth, 0.9f, 1),
                           terms = test::wave(kRows * kWidth, 1, 2);
  const auto found = session().run(program, std::vector{HostTensor::from(factors, {kRows, kWidth}),
                                                        HostTensor::from(terms, {kRows, kWidth})});
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (std::size_t k = 0; k < kWidth; ++k) {
    double state = 0, back = 0, slope = 0;
    for (std::size_t t = 0; t < kRows; ++t) {
      const std::size_t i = t * kWidth + k, j = (kRows - 1 - t) * kWidth + k;
      state = double{factors[i]} * state + double{terms[i]};
      back = double{factors[j]} * back + double{terms[j]};
      slope = 1 + (t == 0 ? 0 : double{factors[j + kWidth]} * slope);
      EXPECT_NEAR((*found)[0].floats[i], state, 1e-5) << i;
      EXPECT_NEAR((*found)[1].floats[j], back, 1e-5) << j;
      EXPECT_NEAR((*found)[2].floats[j], slope, 1e-4) << j;
    }
  }
  EXPECT_FALSE(associative_scan(combine, both, 2).ok());
  EXPECT_FALSE(associative_scan(combine, {}, 0).ok());
}

// Ten rounds of narrow and concat, with their gradients: 3^10 paths from a row of the result to the rows of
// x.
TEST_F(LoopsTest, LongAssociativeScansHaveSmallKernels) {
  constexpr std::int64_t kRows = 1024;
  const Tensor a = input("a", {kRows}), b = input("b", {kRows});
  const auto combine = [](std::span<const Tensor> before, std::span<const Tensor> after) {
    return std::vector{after[0] * before[0], after[0] * before[1] + after[1]};
  };
  const Tensor both[] = {a, b};
  const auto scanned = associative_scan(combine, both, 0);
  ASSERT_TRUE(scanned.ok());
  const auto slopes = gradients(sum(square((*scanned)[1])), both);
  ASSERT_TRUE(slopes.ok()) << slopes.error().message;
  Program program = compile(ProgramDescription{
      .name = "long", .inputs = {a, b}, .outputs = {(*scanned)[1], (*slopes)[0], (*slopes)[1]}});
  for (const ScheduleFigures& part : program.schedule())
    for (const DispatchFigures& dispatch : part.dispatches) EXPECT_LT(dispatch.glsl.size(), 60'000u);
  const std::vector<float> factors = test::wave(kRows, 0.9f, 1), terms = test::wave(kRows, 1, 2);
  const auto found = session().run(
      program, std::vector{HostTensor::from(factors, {kRows}), HostTensor::from(terms, {kRows})});
  ASSERT_TRUE(found.ok()) << found.error().message;
  std::vector<double> states{0};
  for (std::size_t t = 0; t < kRows; ++t)
    states.push_back(double{factors[t]} * states.back() + double{terms[t]});
  double slope = 0;
  for (std::size_t t = kRows; t-- > 0;) {
    slope = 2 * states[t + 1] + (t + 1 == kRows ? 0 : double{factors[t + 1]} * slope);
    EXPECT_NEAR((*found)[0].floats[t], states[t + 1], 1e-4) << t;
    EXPECT_NEAR((*found)[1].floats[t], slope * states[t], 1e-3) << t;
    EXPECT_NEAR((*found)[2].floats[t], slope, 1e-3) << t;
  }
}

}  // namespace
}  // namespace imprint
