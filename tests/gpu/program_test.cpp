// Programs on a device or the CPU: state in place, any slicing, random numbers, errors.

#include "compute/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compute/program/run.h"
#include "tests/gpu/session_test.h"
#include "tests/gpu/trainer.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using test::Trainer;

class ProgramTest : public test::SessionTest {};

TEST_F(ProgramTest, UpdatesSeeTheStateFromBeforeTheRun) {
  const Variable a("a", {3}, std::vector<float>{1, 2, 3}), b("b", {3}, std::vector<float>{10, 20, 30});
  Program program =
      compile({.name = "exchange",
               .updates = {Update::assign(a, b.value() + a.value()), Update::assign(b, a.value() * 2.0f)}});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(a), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(floats(b), (std::vector<float>{2, 4, 6}));
}

TEST_F(ProgramTest, SwapsVariables) {
  const Variable a("a", {2}, std::vector<float>{1, 2}), b("b", {2}, std::vector<float>{3, 4});
  Program program =
      compile({.name = "swap", .updates = {Update::assign(a, b.value()), Update::assign(b, a.value())}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(a), (std::vector<float>{3, 4}));
  EXPECT_EQ(floats(b), (std::vector<float>{1, 2}));
}

TEST_F(ProgramTest, AnUpdateThatReadsOtherElementsIsNotOverwrittenTooEarly) {
  std::vector<float> values(200);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Variable a("a", {200}, values);
  Program program =
      compile({.name = "reverse", .updates = {Update::assign(a, flip(a.value(), 0) + a.value() * 0.5f)}});
  ASSERT_TRUE(session().run(program).ok());
  const std::vector<float> found = floats(a);
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_EQ(found[i], static_cast<float>(199 - i) + 0.5f * static_cast<float>(i)) << i;
}

TEST_F(ProgramTest, CopiesAVariableForASnapshot) {
  const Variable live("live", {4}, std::vector<float>{1, 2, 3, 4}), copy = Variable::zeros("copy", {4});
  Program snapshot = compile({.name = "snapshot", .updates = {Update::assign(copy, live.value())}});
  ASSERT_TRUE(session().run(snapshot).ok());
  EXPECT_EQ(floats(copy), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(snapshot.stats().dispatches, 1u);
}

TEST_F(ProgramTest, ScattersRowsAndSkipsNegativeOnes) {
  const Variable memory = Variable::zeros("memory", {5, 3});
  const Tensor rows = input("rows", {3}, DType::int32), values = input("values", {3, 3});
  Program program = compile({.name = "remember",
                             .inputs = {rows, values},
                             .updates = {Update::scatter_rows(memory, rows, values * 2.0f)}});
  const HostTensor inputs[] = {HostTensor::from_ints({4, -1, 1}, {3}),
                               HostTensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3})};
  ASSERT_TRUE(session().run(program, inputs).ok());
  EXPECT_EQ(floats(memory), (std::vector<float>{0, 0, 0, 14, 16, 18, 0, 0, 0, 0, 0, 0, 2, 4, 6}));
}

TEST_F(ProgramTest, ScattersRowsComputedFromTheVariableItself) {
  const Variable memory("memory", {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Tensor rows = Tensor::from_ints(std::vector<std::int32_t>{0, 1, 2}, {3});
  Program program =
      compile({.name = "rotate", .updates = {Update::scatter_rows(memory, rows, flip(memory.value(), 0))}});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(memory), (std::vector<float>{5, 6, 3, 4, 1, 2}));
}

TEST_F(ProgramTest, RowUpdatesThatReadEachOtherSeeTheStateFromBefore) {
  const Variable a("a", {3, 1}, std::vector<float>{1, 2, 3}), b("b", {3, 1}, std::vector<float>{10, 20, 30});
  const Tensor rows = Tensor::from_ints(std::vector<std::int32_t>{2, 0}, {2});
  const Tensor shown = take(b.value(), 0, rows) + 1.0f;
  Program program = compile({.name = "exchange rows",
                             .outputs = {shown * 2.0f},
                             .updates = {Update::scatter_rows(a, rows, shown),
                                         Update::scatter_rows(b, rows, take(a.value(), 0, rows))}});
  const auto found = session().run(program).value();
  EXPECT_EQ(found[0].floats, (std::vector<float>{62, 22}));
  EXPECT_EQ(floats(a), (std::vector<float>{11, 2, 31}));
  EXPECT_EQ(floats(b), (std::vector<float>{1, 20, 3}));
}

// A log of state that the same kernel overwrites, at the row of a running counter.
TEST_F(ProgramTest, RowsOfOverwrittenStateAreKept) {
  const Variable state("state", {4}, std::vector<float>{1, 2, 3, 4}),
      clock = Variable::zeros("clock", {1}, DType::int32);
  const Variable after = Variable::zeros("after", {3, 4}), doubled = Variable::zeros("doubled", {3, 4});
  const Tensor next = state.value() + 1.0f;
  Program program =
      compile({.name = "log",
               .updates = {Update::assign(state, next),
                           Update::scatter_rows(after, clock.value(), unsqueeze(next, 0)),
                           Update::scatter_rows(doubled, clock.value(), unsqueeze(state.value() * 2.0f, 0)),
                           Update::assign(clock, clock.value() + 1)}});
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(state), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(floats(after), (std::vector<float>{2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7}));
  EXPECT_EQ(floats(doubled), (std::vector<float>{2, 4, 6, 8, 4, 6, 8, 10, 6, 8, 10, 12}));
}

// The log's rows and the state are computed from the same products.
TEST_F(ProgramTest, RowsOfStateAndTheStateReadTheSameProducts) {
  const Variable state("state", {2}, std::vector<float>{1, 2}),
      log = Variable::zeros("log", {2, 2}), scale("scale", {2}, std::vector<float>{10, 100}),
      clock = Variable::zeros("clock", {1}, DType::int32);
  const Variable one("one", {2, 2}, std::vector<float>{1, 2, 3, 4}),
      other("other", {2, 2}, std::vector<float>{1, 0, -1, 1});
  const Tensor next =
      (matmul(state.value(), one.value()) + matmul(scale.value(), other.value())) * scale.value();
  Program program =
      compile({.name = "log products",
               .updates = {Update::assign(state, next),
                           Update::scatter_rows(log, clock.value(),
                                                unsqueeze(next * 2.0f + state.value() * scale.value(), 0)),
                           Update::assign(clock, clock.value() + 1)}});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(state), (std::vector<float>{-830, 11000}));
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(state), (std::vector<float>{320800, 4244000}));
  EXPECT_EQ(floats(log), (std::vector<float>{-1650, 22200, 633300, 9588000}));
}

TEST_F(ProgramTest, RowNumbersComputedFromTheTargetAreFinishedFirst) {
  std::vector<float> values(300 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(300 - i / 64);
  const Variable table("table", {300, 64}, values);
  const Tensor lowest = reshape(argmin(narrow(table.value(), 1, 0, 1), 0), {1});
  Program program =
      compile({.name = "evict", .updates = {Update::scatter_rows(table, lowest, full({1, 64}, 1000.0))}});
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session().run(program).ok());
  const std::vector<float> found = floats(table);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], i / 64 >= 297 ? 1000.0f : values[i]) << i;
}

TEST_F(ProgramTest, SwapsThroughViews) {
  const Variable a("a", {2}, std::vector<float>{1, 2}), b("b", {2}, std::vector<float>{3, 4});
  Program program = compile({.name = "swap",
                             .updates = {Update::assign(a, stop_gradient(b.value())),
                                         Update::assign(b, reshape(reshape(a.value(), {1, 2}), {2}))}});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(floats(a), (std::vector<float>{3, 4}));
  EXPECT_EQ(floats(b), (std::vector<float>{1, 2}));
}

TEST_F(ProgramTest, StateIsWrittenAsLateAsItCan) {
  Trainer trainer;
  Program program = compile(trainer.description);
  // At the last level; the CPU runs one kernel at a time.
  EXPECT_GE(program.first_state_write() + (runtime().on_cpu() ? 6 : 3), program.piece_count())
      << program.explain();
}

TEST_F(ProgramTest, DropsUploadsOfDestroyedVariables) {
  for (int i = 0; i < 20; ++i) {
    const Variable gone("gone", {4096}, std::vector<float>(4096, 7.0f));
    ASSERT_TRUE(runtime().place(gone).ok());
  }
  const Variable a("a", {64, 64}, std::vector<float>(4096, 1.0f));
  EXPECT_EQ(floats(a), std::vector<float>(4096, 1.0f));
}

// Each link reads its predecessor twice, so two to the power of forty paths lead to the start.
TEST_F(ProgramTest, ALongChainOfSharedLinksCompiles) {
  const Variable base("base", {3}, std::vector<std::int32_t>{1, -1, 0}),
      which("which", {3}, std::vector<std::int32_t>{5, 7, 9});
  const Variable result = Variable::zeros("result", {3}, DType::int32);
  Tensor product = base.value(), power = base.value();
  std::vector<std::int32_t> expected{1, -1, 0}, powers = expected;
  for (int link = 0; link < 40; ++link) {
    product = where(equal(remainder(which.value(), 2 + link), 1), product * power, product);
    power = power * power;
    for (std::size_t i = 0; i < 3; ++i) {
      if ((5 + 2 * static_cast<int>(i)) % (2 + link) == 1) expected[i] *= powers[i];
      powers[i] *= powers[i];
    }
  }
  Program program = compile({.name = "chain", .updates = {Update::assign(result, product)}});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(ints(result), expected);
}

TEST_F(ProgramTest, EmptyTensorsAndNegativeIntegersCompile) {
  const Tensor nothing = input("x", {3, 0});
  Program program = compile({.name = "empty",
                             .inputs = {nothing},
                             .outputs = {sum(reshape(nothing, {0})), neg(full({4}, -5, DType::int32))}});
  const HostTensor value = HostTensor::from({}, {3, 0});
  const auto found = session().run(program, std::span(&value, 1)).value();
  EXPECT_EQ(found[0].floats, (std::vector<float>{0}));
  EXPECT_EQ(found[1].ints, (std::vector<std::int32_t>{5, 5, 5, 5}));
}

TEST_F(ProgramTest, RandomNumbersAreTheOraclesAndAdvance) {
  const Variable generator("generator", {4}, std::vector<std::int32_t>{12345, -77, 0, 0});
  const Tensor draw = random_uniform(generator.value(), {257}, 9);
  Program program = compile({.name = "draw",
                             .outputs = {draw, random_normal(generator.value(), {33}, 3)},
                             .updates = {Update::assign(generator, generator_next(generator.value()))}});
  std::vector<float> last;
  for (int step = 0; step < 3; ++step) {
    const auto found = session().run(program).value();
    const auto expected =
        reference::evaluate(draw, {{"generator", {12345, -77, static_cast<double>(step), 0}}});
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(found[0].floats[i], static_cast<float>(expected[i])) << step << " " << i;
    EXPECT_NE(found[0].floats, last);
    last = found[0].floats;
  }
  EXPECT_EQ(ints(generator)[2], 3);
}

TEST_F(ProgramTest, IsTheSameToTheBitHoweverItIsCut) {
  std::vector<std::vector<float>> results;
  for (const std::vector<std::uint32_t>& lengths :
       {std::vector<std::uint32_t>{1000}, {1}, {2}, {1, 3, 2}, {5, 1}}) {
    Trainer trainer;
    Program program = compile(trainer.description);
    for (int step = 0; step < 20; ++step) run_sliced(program, lengths);
    std::vector<float> state = floats(trainer.w0);
    for (const Variable& variable : {trainer.w1, trainer.m0, trainer.m1})
      for (float value : floats(variable)) state.push_back(value);
    results.push_back(state);
  }
  for (std::size_t i = 1; i < results.size(); ++i)
    EXPECT_EQ(std::memcmp(results[i].data(), results[0].data(), results[0].size() * sizeof(float)), 0)
        << "way " << i;
}

TEST_F(ProgramTest, Learns) {
  Trainer trainer;
  Program program = compile(trainer.description);
  const float before = session().run(program).value()[0].floats[0];
  float after = before;
  for (int step = 0; step < 300; ++step) after = session().run(program).value()[0].floats[0];
  EXPECT_LT(after, 0.5f * before);
}

TEST_F(ProgramTest, FirstStateWriteIsTheFirstPieceThatChangesAVariable) {
  Trainer trainer;
  Program program = compile(trainer.description);
  const std::vector<float> before = floats(trainer.w0);
  const std::uint32_t pure = program.first_state_write();
  ASSERT_GT(pure, 0u);
  ASSERT_LT(pure, program.piece_count());
  test::run_slices(program, std::span(&pure, 1));
  EXPECT_EQ(floats(trainer.w0), before);
  EXPECT_EQ(ints(trainer.generator)[2], 0);
}

TEST_F(ProgramTest, UnfusedGivesTheSameWithinRounding) {
  Trainer fused, unfused;
  unfused.description.fuse = false;
  Program one = compile(fused.description), other = compile(unfused.description);
  EXPECT_LT(one.stats().dispatches, other.stats().dispatches);
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(session().run(one).ok());
    ASSERT_TRUE(session().run(other).ok());
  }
  const std::vector<float> a = floats(fused.w0), b = floats(unfused.w0);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5) << i;
}

TEST_F(ProgramTest, EvaluatesTheSameStructureWithOtherNumbers) {
  const auto polynomial = [](std::vector<float> values) {
    const Tensor x = Tensor::from(values, {4});
    return x * x + x * 3.0f;
  };
  EXPECT_EQ(session().evaluate(polynomial({1, 2, 3, 4})).value().floats, (std::vector<float>{4, 10, 18, 28}));
  EXPECT_EQ(session().evaluate(polynomial({5, 6, 7, 8})).value().floats,
            (std::vector<float>{40, 54, 70, 88}));
}

TEST_F(ProgramTest, ReadsAndWritesVariables) {
  const Variable a("a", {2, 2}, std::vector<float>{1, 2, 3, 4});
  ASSERT_TRUE(session().write(a, HostTensor::from({9, 8, 7, 6}, {2, 2})).ok());
  ASSERT_TRUE(session().write(a, HostTensor::from({5, 5, 5, 5}, {2, 2})).ok());
  EXPECT_EQ(floats(a), (std::vector<float>{5, 5, 5, 5}));
  const auto wrong = session().write(a, HostTensor::from({1, 2}, {2}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::shape_mismatch);
}

TEST_F(ProgramTest, NamesFaultsOfDescriptions) {
  const Tensor x = input("x", {2}), y = input("y", {2});
  const Variable a = Variable::zeros("a", {2});
  const auto error = [&](const ProgramDescription& description) {
    const auto program = Program::compile(runtime(), description);
    return program.ok() ? std::string("no error") : program.error().message;
  };
  EXPECT_THAT(error({.name = "p", .inputs = {x}, .outputs = {x + y}}),
              testing::HasSubstr("inputs: found no 'y'"));
  EXPECT_THAT(error({.name = "p", .inputs = {x, x}, .outputs = {x}}), testing::HasSubstr("'x' twice"));
  EXPECT_THAT(error({.name = "p", .inputs = {x + x}}), testing::HasSubstr("expected one of input()"));
  EXPECT_THAT(error({.name = "p", .inputs = {x}, .outputs = {x + input("z", {3})}}),
              testing::HasSubstr("[3]"));
  EXPECT_THAT(error({.name = "p", .inputs = {x}, .updates = {Update::assign(a, x), Update::assign(a, x)}}),
              testing::HasSubstr("found a second update"));
  EXPECT_THAT(error({.name = "p", .updates = {Update::assign(a, Tensor(1.0f))}}),
              testing::HasSubstr("shape"));
  Program good = compile({.name = "p", .inputs = {x}, .outputs = {x * 2.0f}});
  const HostTensor wrong = HostTensor::from({1, 2, 3}, {3});
  const auto run = session().run(good, std::span(&wrong, 1));
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, testing::HasSubstr("'x': found shape"));
}

TEST_F(ProgramTest, ResultsWithoutContentAreEmpty) {
  const Tensor x = input("x", {2});
  Program program = compile({.name = "small", .inputs = {x}, .outputs = {x + 1.0f}, .slot_count = 2});
  EXPECT_EQ(program.input_bytes(1, 0).size(), 8u);
  EXPECT_TRUE(program.input_bytes(2, 0).empty());
  EXPECT_TRUE(program.input_bytes(0, 1).empty());
  EXPECT_TRUE(program.output_bytes(2, 0).empty());
  EXPECT_TRUE(program.output_bytes(0, 1).empty());
  EXPECT_TRUE(program.pieces(2, VK_COMMAND_BUFFER_LEVEL_PRIMARY).empty());
  EXPECT_EQ(program.whole(2, VK_COMMAND_BUFFER_LEVEL_SECONDARY), VkCommandBuffer{VK_NULL_HANDLE});
}

TEST_F(ProgramTest, VeryLongFoldsTakeTwoStages) {
  const Tensor ones = iota({600, 500}, 1) >= Tensor(0);
  const Tensor x = sin(cast(iota({2, 300, 500}, 2), DType::float32) * 0.01f);
  Program program =
      compile({.name = "long folds", .outputs = {sum(cast(ones, DType::int32)), sum(x, {1, 2}), max(x)}});
  if (!runtime().on_cpu()) {
    EXPECT_EQ(compile({.name = "long fold", .outputs = {sum(x)}}).stats().dispatches, 2u);
    EXPECT_LE(program.stats().dispatches, 3u)
        << program.explain();  // the sines that two folds share are computed once, before them
  }
  const auto found = session().run(program).value();
  EXPECT_EQ(found[0].ints[0], 300000);
  double expected = 0;
  for (int i = 0; i < 500; ++i) expected += 300 * std::sin(i * 0.01);
  EXPECT_NEAR(found[1].floats[0], expected, 1e-4 * std::abs(expected));
  EXPECT_NEAR(found[1].floats[1], expected, 1e-4 * std::abs(expected));
  EXPECT_NEAR(found[2].floats[0], 1.0, 1e-5);
}

// Names come from games and from files, and kernels contain them in comments.
TEST_F(ProgramTest, ExtremesOfVeryLongLinesAreFound) {
  constexpr int kCount = 8 * 1024 * 1024 + 1000;
  const Tensor x = iota({kCount}, 0), low = where(equal(x, kCount - 2000), -5, x);
  const Tensor both[] = {argmax(x), argmin(low), argmin(x * 0)};
  const auto found = session().evaluate(both);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)[0].ints[0], kCount - 1);
  EXPECT_EQ((*found)[1].ints[0], kCount - 2000);
  EXPECT_EQ((*found)[2].ints[0], 0);
}

TEST_F(ProgramTest, NamesMayHoldAnything) {
  const std::string names[] = {
      "two\nlines", "two\r\nlines", "#error\n#error", std::string("a\0b\n;", 5), "back\\",
      "/* open",    "*/",           "\xff\xfe",       std::string(5000, 'x')};
  for (const std::string& name : names) {
    SCOPED_TRACE(name.substr(0, 20));
    const Variable bias(name, {4}, std::vector<float>{1, 2, 3, 4}),
        weight(name, {4, 4}, std::vector<float>(16, 0.5f));
    const Tensor x = input(name, {3, 4});
    Program program = compile(ProgramDescription{
        .name = name,
        .inputs = {x},
        .outputs = {tanh(matmul(x, weight.value()) + bias.value()).named(name), sum(x, {0}).named(name)},
        .updates = {Update::assign(bias, bias.value() * 2.0f)}});
    const HostTensor given = HostTensor::from(std::vector<float>(12, 0.1f), {3, 4});
    const auto found = session().run(program, std::span(&given, 1)).value();
    EXPECT_NEAR(found[0].floats[0], std::tanh(1.2), 1e-5);
    EXPECT_NEAR(found[1].floats[3], 0.3, 1e-5);
    EXPECT_EQ(floats(bias), (std::vector<float>{2, 4, 6, 8}));
  }
}

// Kernels number elements with 32 bits. A sum over a table of all pairs that is never stored may have more
// elements. A new stored shape may not.
TEST_F(ProgramTest, TooManyElementsAreRefused) {
  const Variable rows("rows", {50000, 1}, std::vector<float>(50000, 1)),
      columns("columns", {1, 50000}, std::vector<float>(50000, 2));
  const Tensor pairs = rows.value() * columns.value();
  EXPECT_TRUE(
      Program::compile(runtime(), ProgramDescription{.name = "pairs", .outputs = {sum(pairs, {1})}}).ok());
  for (const Tensor& value : {sum(reshape(pairs, {25000, 100000}), {1}), max(pairs), sum(flatten(pairs))}) {
    const auto program = Program::compile(runtime(), ProgramDescription{.name = "pairs", .outputs = {value}});
    ASSERT_EQ(program.ok(), runtime().on_cpu()) << "the CPU counts with 64 bits";
    if (program) continue;
    EXPECT_EQ(program.error().code, ErrorCode::unsupported);
    EXPECT_THAT(program.error().message, testing::HasSubstr("kernels count to 2147483647"));
  }
}

TEST_F(ProgramTest, LargeFoldsAndProducts) {
  // Beyond the sizes at which folds use whole workgroups and products use tiles.
  const Tensor x = input("x", {130, 300}), w = input("w", {300, 140});
  const Tensor y = relu(matmul(x, w) + 0.5f), total = sum(square(y)), columns = sum(x, {0}),
               best = argmax(y, 1);
  Program program = compile({.name = "large", .inputs = {x, w}, .outputs = {y, total, columns, best}});
  std::vector<float> a(130 * 300), b(300 * 140);
  std::vector<double> da, db;
  for (std::size_t i = 0; i < a.size(); ++i)
    da.push_back(a[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1001) / 1001.0f);
  for (std::size_t i = 0; i < b.size(); ++i)
    db.push_back(b[i] = static_cast<float>(static_cast<int>(i * 104729 % 1999) - 999) / 999.0f);
  const HostTensor inputs[] = {HostTensor::from(a, {130, 300}), HostTensor::from(b, {300, 140})};
  const auto found = session().run(program, inputs).value();
  const Tensor outputs[] = {y, total, columns, best};
  const auto expected = reference::evaluate_all(outputs, {{"x", da}, {"w", db}});
  for (std::size_t i = 0; i < expected[0].size(); ++i)
    ASSERT_NEAR(found[0].floats[i], expected[0][i], 1e-3) << i;
  EXPECT_NEAR(found[1].floats[0], expected[1][0], 1e-4 * expected[1][0]);
  for (std::size_t i = 0; i < 300; ++i) EXPECT_NEAR(found[2].floats[i], expected[2][i], 1e-4);
  for (std::size_t i = 0; i < 130; ++i) EXPECT_EQ(found[3].ints[i], static_cast<int>(expected[3][i]));
}

TEST_F(ProgramTest, StartedRunsComputeInTheirOrder) {
  const Variable sum = Variable::zeros("sum", {3});
  const Tensor x = input("x", {3});
  const Tensor next = sum.value() * 2.0f + x;
  Program program =
      compile({.name = "ahead", .inputs = {x}, .outputs = {next}, .updates = {Update::assign(sum, next)}});
  ASSERT_GE(program.slot_count(), 2u);
  float expected = 0, last = 0;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const HostTensor value = HostTensor::from(std::vector<float>(3, static_cast<float>(i)), {3});
    ASSERT_TRUE(session().start(program, i % 2, std::span(&value, 1)).ok());
    last = expected;
    expected = expected * 2 + static_cast<float>(i);
    if (i == 0) continue;
    EXPECT_EQ(session().finish(program, (i - 1) % 2).value()[0].floats, std::vector<float>(3, last));
  }
  EXPECT_EQ(session().finish(program, 1).value()[0].floats, std::vector<float>(3, expected));
  EXPECT_EQ(floats(sum), std::vector<float>(3, expected));
}

TEST_F(ProgramTest, RunsThatWaitAreSubmittedInTheirOrder) {
  const Variable sum = Variable::zeros("sum", {});
  const Tensor x = input("x", {});
  const Tensor next = sum.value() * 2.0f + x;
  Program program = compile({.name = "later",
                             .inputs = {x},
                             .outputs = {next},
                             .updates = {Update::assign(sum, next)},
                             .slot_count = 4});
  const auto start = [&](std::uint32_t slot, float number, Submit when) {
    const HostTensor value = HostTensor::from({number}, {});
    ASSERT_TRUE(session().start(program, slot, std::span(&value, 1), when).ok());
  };
  const auto finish = [&](std::uint32_t slot) {
    return session().finish(program, slot).value()[0].floats[0];
  };
  start(0, 1, Submit::later);
  start(1, 2, Submit::later);
  start(2, 3, Submit::now);
  EXPECT_EQ(finish(0), 1);
  EXPECT_EQ(finish(1), 4);
  start(0, 4, Submit::later);  // with a slot of the last submission unfinished
  EXPECT_EQ(finish(2), 11);
  start(1, 5, Submit::later);
  EXPECT_EQ(finish(0), 26);  // submits both
  EXPECT_EQ(finish(1), 57);
  // Reading and writing state come after runs that wait.
  start(3, 1, Submit::later);
  EXPECT_EQ(floats(sum)[0], 115);
  EXPECT_EQ(finish(3), 115);
  start(2, 0, Submit::later);
  ASSERT_TRUE(session().write(sum, HostTensor::from({7}, {})).ok());
  start(3, 0, Submit::now);
  EXPECT_EQ(finish(2), 230);
  EXPECT_EQ(finish(3), 14);
}

TEST_F(ProgramTest, ASlotHasOneStartedRun) {
  const Tensor x = input("x", {});
  Program program = compile({.name = "ahead", .inputs = {x}, .outputs = {x + 1.0f}});
  const HostTensor value = HostTensor::from({4}, {});
  const auto code = [](const auto& result) { return result.ok() ? ErrorCode::io : result.error().code; };
  EXPECT_EQ(code(session().finish(program, 0)), ErrorCode::invalid_argument);
  EXPECT_EQ(code(session().start(program, program.slot_count(), std::span(&value, 1))),
            ErrorCode::invalid_argument);
  ASSERT_TRUE(session().start(program, 0, std::span(&value, 1)).ok());
  EXPECT_EQ(code(session().start(program, 0, std::span(&value, 1))), ErrorCode::invalid_argument);
  EXPECT_EQ(code(session().run(program, std::span(&value, 1))), ErrorCode::invalid_argument);
  EXPECT_EQ(session().finish(program, 0).value()[0].floats[0], 5.0f);
  EXPECT_EQ(code(session().finish(program, 0)), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace imprint
