// Many steps in one submit: turns follow each other like separate runs, for any slicing.

#include "compute/program/program_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/gradients/autodiff.h"
#include "compute/program/run.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProgramSequenceTest : public test::SessionTest {};

TEST_F(ProgramSequenceTest, TurnsSeeTheStateOfThePreviousTurn) {
  const Variable counter = Variable::zeros("counter", {1}, DType::int32), sum = Variable::zeros("sum", {1}),
                 product("product", {1}, std::vector<float>{1});
  const Tensor scale = input("scale", {1});
  ProgramSequence sequence{.name = "turns"};
  sequence.parts.push_back(
      {{.name = "add",
        .inputs = {scale},
        .updates = {Update::assign(sum, sum.value() + scale * cast(counter.value(), DType::float32)),
                    Update::assign(counter, counter.value() + 1)}},
       5});
  sequence.parts.push_back({{.name = "multiply",
                             .inputs = {scale},
                             .outputs = {product.value() * scale + sum.value()},
                             .updates = {Update::assign(product, product.value() * scale)}},
                            3});
  Program program = compile(sequence);
  const HostTensor two = HostTensor::from({2}, {1});
  const auto outputs = session().run(program, std::span(&two, 1));
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_THAT(ints(counter), ElementsAre(5));
  EXPECT_THAT(floats(sum), ElementsAre(2 * (0 + 1 + 2 + 3 + 4)));
  EXPECT_THAT(floats(product), ElementsAre(8));
  EXPECT_THAT((*outputs)[0].floats, ElementsAre(8 + 20));  // of the last turn
  EXPECT_EQ(program.piece_count(), program.stats().dispatches + 2);
  if (!runtime().on_cpu()) {
    EXPECT_EQ(program.stats().dispatches, 5u * 2 + 3u * 1)
        << program.explain();  // the counter may move once it has been read
    EXPECT_EQ(program.stats().barriers, 5u * 2 + 3u * 1 + 2) << program.explain();
  }
  EXPECT_THAT(program.explain(), HasSubstr("5 x program turns.add"));
}

// Stochastic descent on minibatches from a shuffle and a counter on the device, over several epochs.
struct SequenceTrainer {
  static constexpr std::int64_t kRows = 96, kBatch = 32, kEpochs = 4;
  Variable data, weights, generator, order, turn, loss;
  ProgramSequence sequence{.name = "trainer"};
  SequenceTrainer() {
    std::vector<float> rows(kRows * 4);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 50.0f;
    data = Variable("data", {kRows, 4}, rows);
    weights = Variable("weights", {4, 4}, std::vector<float>(16, 0.1f));
    generator = Variable("generator", {4}, std::vector<std::int32_t>{7, 9, 0, 0});
    order = Variable::zeros("order", {kEpochs, kRows}, DType::int32);
    turn = Variable::zeros("turn", {1}, DType::int32);
    loss = Variable::zeros("loss", {1});
    sequence.parts.push_back(
        {{.name = "shuffle",
          .updates = {Update::assign(order, random_permutation(generator.value(), {kEpochs, kRows}, 1)),
                      Update::assign(turn, zeros({1}, DType::int32)),
                      Update::assign(generator, generator_next(generator.value()))}},
         1});
    const Tensor chosen = take(reshape(order.value(), {kEpochs * kRows}), 0,
                               turn.value() * static_cast<int>(kBatch) + arange(kBatch));
    const Tensor batch = take(data.value(), 0, chosen);
    const Tensor error = mean(square(matmul(tanh(batch), weights.value()) - batch));
    const Tensor by = weights.value();
    const Tensor gradient = gradients(error, std::span(&by, 1)).value()[0];
    sequence.parts.push_back({{.name = "step",
                               .outputs = {error},
                               .updates = {Update::assign(weights, weights.value() - gradient * 0.3f),
                                           Update::assign(loss, loss.value() + reshape(error, {1})),
                                           Update::assign(turn, turn.value() + 1)}},
                              static_cast<std::uint32_t>(kEpochs * kRows / kBatch)});
  }
};

TEST_F(ProgramSequenceTest, IsTheSameToTheBitHoweverItIsCut) {
  SequenceTrainer whole;
  Program program = compile(whole.sequence);
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(session().run(program).ok());
  const std::vector<float> expected = floats(whole.weights), loss = floats(whole.loss);
  EXPECT_THAT(ints(whole.turn), ElementsAre(12));
  for (const std::uint32_t length : {1u, 2u, 5u, 7u}) {
    SequenceTrainer cut;
    Program pieces = compile(cut.sequence);
    for (int run = 0; run < 2; ++run) run_sliced(pieces, {length});
    EXPECT_EQ(floats(cut.weights), expected) << length;
    EXPECT_EQ(floats(cut.loss), loss) << length;
  }

  // The same as separate program runs.
  SequenceTrainer single;
  Program shuffle = compile(single.sequence.parts[0].description),
          step = compile(single.sequence.parts[1].description);
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(session().run(shuffle).ok());
    for (int turn = 0; turn < 12; ++turn) ASSERT_TRUE(session().run(step).ok());
  }
  EXPECT_EQ(floats(single.weights), expected);
}

TEST_F(ProgramSequenceTest, KnowsWhenOthersSeeItsWrites) {
  SequenceTrainer trainer;
  const Variable published = Variable::zeros("published", {4, 4});
  trainer.sequence.parts.push_back(
      {{.name = "publish", .updates = {Update::assign(published, trainer.weights.value())}}, 1});
  trainer.sequence.own = {trainer.weights, trainer.generator, trainer.order, trainer.turn, trainer.loss};
  Program program = compile(trainer.sequence);
  EXPECT_EQ(program.first_state_write(), 1u);
  EXPECT_EQ(program.first_shared_write(), program.piece_count() - 2);
}

TEST_F(ProgramSequenceTest, NamesThePartThatIsWrong) {
  const Tensor narrow = input("x", {2}), wide = input("x", {3});
  const auto two = Program::compile(
      runtime(), ProgramSequence{.name = "odd",
                                 .parts = {{{.name = "a", .inputs = {narrow}, .outputs = {narrow * 2.0f}}},
                                           {{.name = "b", .inputs = {wide}, .outputs = {wide * 2.0f}}}}});
  ASSERT_FALSE(two.ok());
  EXPECT_THAT(
      two.error().message,
      HasSubstr("part 1 'b': input 'x': found float32[3], expected float32[2] as in an earlier part"));
  const auto bad = Program::compile(
      runtime(), ProgramSequence{.name = "odd", .parts = {{{.name = "a", .outputs = {narrow + wide}}}}});
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().message, HasSubstr("sequence 'odd', part 0 'a'"));
}

TEST_F(ProgramSequenceTest, NoTurnsAreNoWork) {
  const Variable counter = Variable::zeros("counter", {1}, DType::int32);
  Program program = compile(ProgramSequence{
      .name = "idle",
      .parts = {{{.name = "count", .updates = {Update::assign(counter, counter.value() + 1)}}, 0}}});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(program.stats().dispatches, 0u);
  EXPECT_EQ(program.first_state_write(), program.piece_count());
  EXPECT_THAT(ints(counter), ElementsAre(0));
}

// A part without dispatches counts too, because its turns are still visited.
TEST_F(ProgramSequenceTest, RefusesMoreTurnsThanCanBeRecorded) {
  const Variable counter = Variable::zeros("counter", {1}, DType::int32),
                 other = Variable::zeros("other", {1}, DType::int32);
  const auto part = [](const Variable& variable, std::uint32_t repeat) {
    return ProgramPart{{.name = variable.name(), .updates = {Update::assign(variable, variable.value() + 1)}},
                       repeat};
  };
  const auto refused = [&](std::vector<ProgramPart> parts) {
    const auto made = Program::compile(runtime(), ProgramSequence{.name = "long", .parts = std::move(parts)});
    if (made.ok()) return std::string("taken");
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    return made.error().message;
  };
  constexpr std::uint32_t kMost = kMaxSequenceDispatches, kAll = 0xffffffff;
  EXPECT_THAT(refused({part(counter, kAll)}), HasSubstr("sequence 'long', part 0 'counter': repeat: found "
                                                        "4294967295 dispatches with 4294967295 turns of "));
  EXPECT_THAT(refused({part(counter, kAll)}), HasSubstr("expected at most 1048576. Repeat less"));
  EXPECT_THAT(refused({part(counter, kMost + 1)}), HasSubstr("part 0 'counter'"));
  EXPECT_THAT(refused({part(counter, 1u << 31), part(other, 1u << 31)}), HasSubstr("part 0 'counter'"));
  EXPECT_THAT(refused({part(counter, 2), part(other, kMost - 1)}), HasSubstr("part 1 'other'"));
  EXPECT_THAT(refused({ProgramPart{{.name = "nothing"}, kAll}}),
              HasSubstr("with 4294967295 turns of 0, expected at most 1048576"));
  Program program = compile(
      ProgramSequence{.name = "many", .parts = {part(counter, 1000), part(other, 0)}, .slot_count = 1});
  ASSERT_TRUE(session().run(program).ok());
  EXPECT_THAT(ints(counter), ElementsAre(1000));
}

}  // namespace
}  // namespace imprint
