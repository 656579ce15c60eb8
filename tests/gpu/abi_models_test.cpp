// imp_api::models: networks of any form, in frames, through the C++ classes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/standalone_game.h"
#include "tests/unit/model_onnx_builder.h"

namespace {

using imprint::test::OnnxBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace imprint::game;

constexpr int kInt64 = 7, kBool = 9, kFloat16 = 10, kUint8 = 2, kFloat64 = 11;

// total = sum of rows `ids` of a table of two columns, times scale.
std::vector<std::byte> lookup() {
  return OnnxBuilder()
      .floats("table", {3, 2}, {1, 2, 10, 20, 100, 200})
      .longs("axes", {1}, {0})
      .input("ids", {"words"}, kInt64)
      .input("scale", {"2"})
      .node("Gather", {"table", "ids"}, {"rows"})
      .node("ReduceSum", {"rows", "axes"}, {"sum"}, {OnnxBuilder::number("keepdims", 0)})
      .node("Mul", {"sum", "scale"}, {"total"})
      .output("rows", {"words", "2"})
      .output("total", {"2"})
      .bytes();
}

// sum_out = sum + x
std::vector<std::byte> running_sum() {
  return OnnxBuilder()
      .input("x", {"2"})
      .input("sum", {"2"})
      .node("Add", {"sum", "x"}, {"sum_out"})
      .node("Mul", {"sum_out", "sum_out"}, {"square"})
      .output("sum_out", {"2"})
      .output("square", {"2"})
      .bytes();
}

// y = tanh(... tanh(x W) W) with 24 layers: work for several slices.
std::vector<std::byte> deep(std::int64_t width = 64) {
  std::vector<float> weights;
  for (std::int64_t i = 0; i < width * width; ++i)
    weights.push_back(0.2f * std::sin(static_cast<float>(i * i % 997)));
  OnnxBuilder builder;
  builder.floats("w", {width, width}, weights);
  builder.input("x", {std::to_string(width), std::to_string(width)});
  std::string last = "x";
  for (int i = 0; i < 24; ++i) {
    const std::string product = "p" + std::to_string(i), next = i == 23 ? "y" : "t" + std::to_string(i);
    builder.node("MatMul", {last, "w"}, {product}).node("Tanh", {product}, {next});
    last = next;
  }
  return builder.output("y", {std::to_string(width), std::to_string(width)}).bytes();
}

class ModelsTest : public imprint::game::test::StandaloneGame {
 protected:
  void SetUp() override { open_test_device(); }
  void TearDown() override {
    context.reset();  // models are gone; validation tells what is left on the device
    // A software device may be late for long.
    std::erase_if(log,
                  [](const std::string& line) { return line.find("latency_frames") != std::string::npos; });
    EXPECT_THAT(log, ElementsAre());
  }

  Model make(const ModelDesc& desc) {
    Made<Model> made = context.create_model(desc);
    EXPECT_TRUE(made) << made.outcome.message();
    return std::move(*made);
  }
  // The message of a descriptor that is refused.
  std::string refused(const ModelDesc& desc, Code code = Code::invalid_argument) {
    const Made<Model> made = context.create_model(desc);
    EXPECT_EQ(made.outcome.code(), code);
    return made.outcome.message();
  }
  // Passes frames until the run can be read.
  void read(Model& model, std::uint64_t run, std::initializer_list<ModelOutput> outputs) {
    for (int i = 0; i < 200; ++i) {
      const Outcome outcome = model.read(run, outputs);
      ASSERT_TRUE(outcome) << outcome.message();
      if (outcome.ready()) return;
      pass([] {});
      ASSERT_WORKS(context.drain(60'000));
    }
    FAIL() << "run " << run << " is never ready";
  }
};

TEST_F(ModelsTest, RunByNameOrByPositionAndAnswerAfterTheLatency) {
  const std::vector<std::byte> file = lookup();
  const std::array extents{ModelExtent{"words", 4}};
  Model model = make({.file = file, .extents = extents, .latency_frames = 3});
  ASSERT_WORKS(context.warmup());

  const Made<imp_model_info> info = model.info();
  EXPECT_EQ(info->input_count, 2u);
  EXPECT_EQ(info->output_count, 2u);
  EXPECT_EQ(info->parameter_count, 6u);
  EXPECT_EQ(info->latency_frames, 3u);
  const Made<imp_model_value> ids = model.input(0), rows = model.output(0);
  EXPECT_STREQ(ids->name, "ids");
  EXPECT_EQ(ids->element, IMP_ELEMENT_INT64);
  EXPECT_EQ(ids->size, 32u);
  EXPECT_STREQ(rows->name, "rows");
  EXPECT_EQ(rows->rank, 2u);
  EXPECT_EQ(rows->shape[0], 4u);
  EXPECT_EQ(rows->shape[1], 2u);

  const std::array<std::int64_t, 4> words{2, 0, 0, 1};
  const std::array<float, 2> scale{1, 0.5f};
  std::array<float, 2> total{};
  std::array<float, 8> seen{};
  std::uint64_t first = 0, second = 0;
  pass([&] {
    const Made<std::uint64_t> run = model.run({{"scale", scale}, {"ids", words}});
    ASSERT_TRUE(run) << run.outcome.message();
    first = *run;
    second = *model.run({words, scale});
  });
  EXPECT_EQ(model.read(first, {{"total", total}}).code(), Code::not_ready);
  pass([] {});
  EXPECT_EQ(model.read(first, {{"total", total}}).code(), Code::not_ready);
  pass([] {});
  EXPECT_EQ(model.read(first, {{"total", total}}).code(), Code::not_ready) << "one frame too early";
  pass([] {});
  read(model, first, {{"total", total}, {"rows", seen}});
  EXPECT_THAT(total, ElementsAre(112, 112));
  EXPECT_THAT(seen, ElementsAre(100, 200, 1, 2, 1, 2, 10, 20));
  EXPECT_EQ(model.read(first, {{"total", total}}).code(), Code::not_found) << "read ends a run";
  total = {};
  read(model, second, {{"total", total}});
  EXPECT_THAT(total, ElementsAre(112, 112));
  EXPECT_EQ(model.info()->runs, 2u);
}

TEST_F(ModelsTest, RunsUnderWayAreLimitedAndCanBeDiscarded) {
  const std::vector<std::byte> file = lookup();
  Model model = make({.file = file, .run_capacity = 2});
  ASSERT_WORKS(context.warmup());
  const std::array<std::int64_t, 1> words{1};
  const std::array<float, 2> scale{1, 1};
  pass([&] {
    ASSERT_TRUE(model.run({words, scale}));
    ASSERT_TRUE(model.run({words, scale}));
    const Made<std::uint64_t> third = model.run({words, scale});
    EXPECT_FALSE(third);
    EXPECT_EQ(third.outcome.code(), Code::not_ready);
  });
  ASSERT_WORKS(context.drain(60'000));
  pass([&] { EXPECT_EQ(model.run({words, scale}).outcome.code(), Code::not_ready) << "unread"; });
  ASSERT_WORKS(model.discard(1));
  EXPECT_EQ(model.discard(1).code(), Code::not_found);
  pass([&] { EXPECT_EQ(*model.run({words, scale}), 3u); });
  ASSERT_WORKS(model.discard(3));
  std::array<float, 2> total{};
  read(model, 2, {{"total", total}});
  EXPECT_THAT(total, ElementsAre(10, 20));
}

// A policy whose inputs no rule fits.
TEST_F(ModelsTest, APolicyTakesItsPartsByName) {
  const std::vector<std::byte> file = OnnxBuilder()
                                          .input("memory", {"n", "1"})
                                          .input("eyes", {"n", "2"})
                                          .input("noise", {"n", "2"})
                                          .node("Add", {"memory", "eyes"}, {"sums"})
                                          .node("Add", {"sums", "noise"}, {"hands"})
                                          .node("ReduceSum", {"eyes"}, {"sum"})
                                          .node("Add", {"memory", "sum"}, {"later"})
                                          .output("hands")
                                          .output("later")
                                          .bytes();
  PolicyDesc desc{.file = file, .agent_capacity = 2};
  EXPECT_FALSE(context.create_brain_from_onnx(desc));
  const std::array<Text, 1> eyes{"eyes"}, hands{"hands"}, noise{"noise"};
  const std::array states{ModelState{"memory", "later"}};
  const auto refused_names = [&](const PolicyNames& names) {
    desc.names = names;
    const Made<Brain> made = context.create_brain_from_onnx(desc);
    EXPECT_FALSE(made);
    return std::string(made.outcome.message());
  };
  EXPECT_THAT(refused_names({.actions = hands}), HasSubstr("found 0 observations and 1 action"));
  EXPECT_THAT(refused_names({.observations = hands, .actions = hands}),
              HasSubstr("observation: found 'hands', expected one of 'memory', 'eyes', 'noise'"));
  EXPECT_THAT(refused_names({.observations = eyes, .actions = hands, .states = states}),
              HasSubstr("found no part for input 'noise'"));
  const std::array<Text, 1> nothing{};
  EXPECT_THAT(refused_names({.observations = nothing, .actions = hands}), HasSubstr("observations[0]"));

  desc.names = PolicyNames{.observations = eyes, .actions = hands, .states = states, .zeros = noise};
  Made<Brain> named = context.create_brain_from_onnx(desc);
  ASSERT_TRUE(named) << named.outcome.message();
  Made<Agent> agent = named->create_agent();
  ASSERT_TRUE(agent) << agent.outcome.message();
  ASSERT_WORKS(context.warmup());
  const std::array<std::array<float, 2>, 2> expected{{{1, 2}, {4, 5}}};  // then memory is 3
  for (const std::array<float, 2>& action : expected) {
    pass([&] { ASSERT_WORKS(agent->observe(std::array<float, 2>{1, 2})); });
    for (int i = 0; i < 4; ++i) {
      pass([] {});
      ASSERT_WORKS(context.drain(60'000));
    }
    pass([&] {
      const auto answer = agent->act();
      ASSERT_TRUE(answer) << answer.outcome.message();
      EXPECT_EQ(answer->values[0], action[0]);
      EXPECT_EQ(answer->values[1], action[1]);
    });
  }
}

TEST_F(ModelsTest, StateStaysOnTheDeviceUntilItIsReset) {
  const std::vector<std::byte> file = running_sum();
  const std::array states{ModelState{"sum", "sum_out"}};
  Model model = make({.file = file, .states = states, .run_capacity = 8});
  ASSERT_WORKS(context.warmup());
  EXPECT_EQ(model.info()->input_count, 1u);
  EXPECT_EQ(model.info()->output_count, 1u);
  std::array<float, 2> x{1, 2}, square{};
  pass([&] {
    ASSERT_TRUE(model.run({x}));
    ASSERT_TRUE(model.run({x}));  // two in one frame: in order
  });
  pass([&] {
    ASSERT_TRUE(model.run({x}));
    ASSERT_WORKS(model.reset_state());
    ASSERT_TRUE(model.run({x}));
    ASSERT_TRUE(model.run({x}));
  });
  const std::array<std::array<float, 2>, 5> expected{{{1, 4}, {4, 16}, {9, 36}, {1, 4}, {4, 16}}};
  for (std::uint64_t run = 1; run <= 5; ++run) {
    read(model, run, {square});
    EXPECT_EQ(square, expected[run - 1]) << run;
  }
}

// One compilation for a past that grows in each run, from none.
TEST_F(ModelsTest, APastGrowsFromRunToRun) {
  const std::vector<std::byte> file =
      OnnxBuilder()
          .input("past", {"past", "2"})
          .input("x", {"1", "2"})
          .input("weights", {"all", "1"})
          .longs("axes", {1}, {0})
          .node("Concat", {"past", "x"}, {"present"}, {OnnxBuilder::number("axis", 0)})
          .node("Mul", {"present", "weights"}, {"weighted"})
          .node("ReduceSum", {"weighted", "axes"}, {"sum"}, {OnnxBuilder::number("keepdims", 0)})
          .output("present", {"all", "2"})
          .output("sum", {"2"})
          .bytes();
  const std::array bounds{ModelExtent{"past=0..3"}, ModelExtent{"all=past+1"}};
  Model model = make({.file = file, .bounds = bounds});
  ASSERT_WORKS(context.warmup());
  std::vector<float> past, sum(2);
  for (std::size_t step = 0; step < 4; ++step) {
    std::vector<float> present(past.size() + 2), weights(step + 1, 2);
    std::uint64_t began = 0;
    pass([&] {
      ASSERT_WORKS(model.set_extent("past", step));
      const std::vector<float> x{static_cast<float>(step + 1), 10};
      const Made<std::uint64_t> run = model.run({past, x, weights});
      ASSERT_TRUE(run) << run.outcome.message();
      began = *run;
    });
    read(model, began, {{"present", present}, {"sum", sum}});
    past.insert(past.end(), {static_cast<float>(step + 1), 10});
    EXPECT_EQ(present, past);
    const auto steps = static_cast<float>(step + 1);
    EXPECT_THAT(sum, ElementsAre(steps * (steps + 1), 20 * steps));
  }
  EXPECT_THAT(model.set_extent("past", 4).message(), HasSubstr("found 4 for 'past', expected 0 to 3"));
  EXPECT_THAT(model.set_extent("all", 2).message(), HasSubstr("found 'all', expected a name"));
  const std::array wrong{ModelExtent{"past=0..3"}, ModelExtent{"all=rest+1"}};
  EXPECT_THAT(refused({.file = file, .bounds = wrong}), HasSubstr("found 'rest+1', expected a sum"));
}

// The past is a state: it stays on the device, and each run adds a place.
TEST_F(ModelsTest, AStateGrowsByAPlaceInEachRun) {
  const std::vector<std::byte> file =
      OnnxBuilder()
          .input("past", {"2", "past", "2"})
          .input("x", {"2", "1", "2"})
          .longs("axes", {1}, {1})
          .node("Concat", {"past", "x"}, {"present"}, {OnnxBuilder::number("axis", 1)})
          .node("ReduceSum", {"present", "axes"}, {"sum"}, {OnnxBuilder::number("keepdims", 0)})
          .output("present", {"2", "all", "2"})
          .output("sum", {"2", "2"})
          .bytes();
  const std::array bounds{ModelExtent{"past=0..5"}};
  const std::array states{ModelState{"past", "present"}};
  Model model = make({.file = file, .bounds = bounds, .states = states});
  ASSERT_WORKS(context.warmup());
  for (int game = 0; game < 2; ++game) {
    ASSERT_WORKS(model.reset_state());
    float total = 0;
    for (std::size_t step = 0; step < 6; ++step) {
      std::uint64_t began = 0;
      const auto own = static_cast<float>(step * step + 1);
      pass([&] {
        ASSERT_WORKS(model.set_extent("past", step));
        const Made<std::uint64_t> run = model.run({std::array{own, 1.0f, 2 * own, 3.0f}});
        ASSERT_TRUE(run) << run.outcome.message();
        began = *run;
      });
      std::vector<float> sum(4);
      read(model, began, {{"sum", sum}});
      total += own;
      const auto steps = static_cast<float>(step + 1);
      EXPECT_THAT(sum, ElementsAre(total, steps, 2 * total, 3 * steps)) << "game " << game;
    }
  }
}

// One compilation for all lengths: each run uses the first places of the bounds' arrays.
TEST_F(ModelsTest, RunsChooseExtentsUpToABound) {
  const std::vector<std::byte> file = lookup();
  const std::array bounds{ModelExtent{"words", 5}};
  Model model = make({.file = file, .bounds = bounds, .run_capacity = 4});
  EXPECT_EQ(model.input(0)->size, 40u) << "the bound";
  ASSERT_WORKS(context.warmup());
  const std::array<float, 2> scale{1, 0.5f};
  const std::vector<std::vector<std::int64_t>> sentences{{2}, {0, 1, 2}, {1, 1, 1, 1, 1}, {0, 2}};
  std::vector<std::uint64_t> runs;
  pass([&] {
    for (const std::vector<std::int64_t>& words : sentences) {
      ASSERT_WORKS(model.set_extent("words", words.size()));
      const Made<std::uint64_t> run = model.run({words, scale});
      ASSERT_TRUE(run) << run.outcome.message();
      runs.push_back(*run);
    }
    EXPECT_EQ(model.output(0)->shape[0], 2u);
    EXPECT_EQ(model.output(0)->size, 16u);
  });
  const float columns[] = {1, 10, 100};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<float> rows(2 * sentences[i].size()), total(2), expected;
    float sum = 0;
    for (const std::int64_t word : sentences[i]) {
      const float first = columns[static_cast<std::size_t>(word)];
      expected.insert(expected.end(), {first, 2 * first});
      sum += first;
    }
    read(model, runs[i], {{"rows", rows}, {"total", total}});
    EXPECT_EQ(rows, expected) << i;
    EXPECT_THAT(total, ElementsAre(sum, sum)) << i;
  }
  EXPECT_THAT(model.set_extent("words", 6).message(),
              HasSubstr("value: found 6 for 'words', expected 1 to 5"));
  EXPECT_THAT(model.set_extent("letters", 1).message(),
              HasSubstr("found 'letters', expected a name of imp_model_desc::bounds: 'words'"));
  pass([&] {
    const Made<std::uint64_t> run = model.run({std::vector<std::int64_t>(5), scale});
    EXPECT_THAT(run.outcome.message(),
                HasSubstr("found 40 bytes, expected 16, which is int64[2] of [words <= 5]"));
  });
  const std::array twice{ModelExtent{"words", 4}}, unknown{ModelExtent{"letters", 4}};
  EXPECT_THAT(refused({.file = file, .extents = twice, .bounds = bounds}),
              HasSubstr("each name in one list"));
  EXPECT_THAT(refused({.file = file, .bounds = unknown}),
              HasSubstr("found 'letters', expected a free dimension: 'words'"));
}

// Rows that a run does not use keep their state.
TEST_F(ModelsTest, AStateOfABoundKeepsUnusedRows) {
  const std::vector<std::byte> file = OnnxBuilder()
                                          .input("x", {"n"})
                                          .input("sum", {"n"})
                                          .node("Add", {"sum", "x"}, {"sum_out"})
                                          .node("Neg", {"sum_out"}, {"y"})
                                          .output("sum_out", {"n"})
                                          .output("y", {"n"})
                                          .bytes();
  const std::array bounds{ModelExtent{"n", 3}};
  const std::array states{ModelState{"sum", "sum_out"}};
  Model model = make({.file = file, .bounds = bounds, .states = states, .run_capacity = 4});
  ASSERT_WORKS(context.warmup());
  const std::vector<std::vector<float>> given{{1, 2, 3}, {10}, {100, 200, 300}},
      expected{{-1, -2, -3}, {-11}, {-111, -202, -303}};
  pass([&] {
    for (const std::vector<float>& x : given) {
      ASSERT_WORKS(model.set_extent("n", x.size()));
      ASSERT_TRUE(model.run({x}));
    }
  });
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::vector<float> y(given[i].size());
    read(model, i + 1, {y});
    EXPECT_EQ(y, expected[i]) << i;
  }
}

// Types of the file in the host's arrays, and back.
TEST_F(ModelsTest, ArraysHaveTheTypesOfTheFile) {
  const std::vector<std::byte> file = OnnxBuilder()
                                          .input("half", {"3"}, kFloat16)
                                          .input("wide", {"3"}, kFloat64)
                                          .input("byte", {"3"}, kUint8)
                                          .input("flag", {"3"}, kBool)
                                          .node("Identity", {"half"}, {"half_out"})
                                          .node("Identity", {"wide"}, {"wide_out"})
                                          .node("Identity", {"byte"}, {"byte_out"})
                                          .node("Not", {"flag"}, {"flag_out"})
                                          .output("half_out", {"3"}, kFloat16)
                                          .output("wide_out", {"3"}, kFloat64)
                                          .output("byte_out", {"3"}, kUint8)
                                          .output("flag_out", {"3"}, kBool)
                                          .bytes();
  Model model = make({.file = file});
  ASSERT_WORKS(context.warmup());
  const std::array<std::uint16_t, 3> half{0x3C00, 0xC100, 0x7BFF};  // 1, -2.5, 65504
  const std::array<double, 3> wide{0.5, -3, 1e10};
  const std::array<std::uint8_t, 3> byte{0, 7, 255}, flag{0, 1, 1};
  pass([&] {
    const Made<std::uint64_t> run =
        model.run({{"half", half}, {"wide", wide}, {"byte", byte}, {"flag", flag}});
    ASSERT_TRUE(run) << run.outcome.message();
  });
  std::array<std::uint16_t, 3> half_out{};
  std::array<double, 3> wide_out{};
  std::array<std::uint8_t, 3> byte_out{}, flag_out{};
  read(model, 1, {half_out, wide_out, byte_out, flag_out});
  EXPECT_EQ(half_out, half);
  EXPECT_EQ(wide_out, wide);
  EXPECT_EQ(byte_out, byte);
  EXPECT_THAT(flag_out, ElementsAre(1, 0, 0));
}

TEST_F(ModelsTest, SlicesOverFramesGiveTheSameNumbers) {
  const std::vector<std::byte> file = deep();
  std::vector<float> x(64 * 64), whole(x.size()), cut(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) * 0.1f - 0.5f;
  Model model = make({.file = file});
  Model slow = make({.file = file, .latency_frames = 12});
  ASSERT_WORKS(context.warmup());
  pass([&] { ASSERT_TRUE(model.run({x})); });
  read(model, 1, {whole});
  Limits limits;
  limits.gpu_us_per_frame = 1;
  limits.max_slice_us = 1;
  ASSERT_WORKS(context.set_limits(limits));
  const std::uint64_t before = frame + 1, slices = context.stats()->slices;
  pass([&] { ASSERT_TRUE(slow.run({x})); });
  for (int i = 0; i < 12; ++i) pass([] {});
  read(slow, 1, {cut});
  EXPECT_GE(frame, before + 12);
  EXPECT_GT(context.stats()->slices, slices + 1) << "the run was cut";
  EXPECT_EQ(cut, whole);
  EXPECT_NE(whole[5], 0.0f);
}

TEST_F(ModelsTest, AFileMayHaveItsTensorsBesideIt) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("imprint-models-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
       std::to_string(reinterpret_cast<std::uintptr_t>(this)));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "model.onnx").string();
  const std::vector<std::byte> file = lookup();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  {
    Model model = make({.path = path.c_str()});
    EXPECT_EQ(model.info()->input_count, 2u);
  }
  EXPECT_THAT(refused({.path = (folder / "none.onnx").string().c_str()}, Code::not_found),
              HasSubstr("none.onnx"));
  std::filesystem::remove_all(folder);
}

TEST_F(ModelsTest, DescriptorsThatDoNotFitAreRefusedByName) {
  const std::vector<std::byte> file = lookup(), sums = running_sum();
  EXPECT_THAT(refused({}), HasSubstr("path, data: found neither, expected one of them"));
  EXPECT_THAT(refused({.path = "a.onnx", .file = file}), HasSubstr("found both"));
  EXPECT_THAT(refused({.file = file, .run_capacity = 0}), HasSubstr("run_capacity: found 0"));
  EXPECT_THAT(refused({.file = file, .latency_frames = 65}), HasSubstr("latency_frames: found 65"));
  const std::array unknown{ModelExtent{"sentences", 4}};
  EXPECT_THAT(refused({.file = file, .extents = unknown}),
              HasSubstr("found 'sentences', expected a free dimension of model 'model': 'words'"));
  const std::array zero{ModelExtent{"words", 0}};
  EXPECT_THAT(refused({.file = file, .extents = zero}), HasSubstr("desc.extents[0].value: found 0"));
  const std::array misspelt{ModelState{"sum", "sum_oud"}};
  EXPECT_THAT(refused({.file = sums, .states = misspelt}),
              HasSubstr("desc.states[0].output: found 'sum_oud', expected an output of model 'model': "
                        "'sum_out', 'square'"));
  const std::array twice{ModelState{"sum", "sum_out"}, ModelState{"sum", "square"}};
  EXPECT_THAT(refused({.file = sums, .states = twice}), HasSubstr("input 'sum' again"));
  const std::array bound{ModelBinding{"x", {}}};
  EXPECT_THAT(refused({.file = sums, .bindings = bound}),
              HasSubstr("desc.bindings[0].tensor: found zero, expected a tensor"));
  const std::vector<std::byte> damaged(file.begin(), file.begin() + 40);
  EXPECT_NE(refused({.file = damaged}, Code::corrupt_file), "");
}

TEST_F(ModelsTest, RunsThatDoNotFitAreRefusedByName) {
  const std::vector<std::byte> file = lookup();
  Model model = make({.file = file});
  const std::array<std::int64_t, 1> words{1}, huge{std::int64_t{1} << 40};
  const std::array<float, 2> scale{1, 1};
  const std::array<float, 3> longer{};
  std::array<float, 2> total{};
  pass([&] { EXPECT_THAT(model.run({words, scale}).outcome.message(), HasSubstr("Call context_warmup")); });
  ASSERT_WORKS(context.warmup());
  pass([&] {
    EXPECT_THAT(model.run({words}).outcome.message(), HasSubstr("found 1, expected 2: 'scale' is missing"));
    EXPECT_THAT(model.run({words, longer}).outcome.message(),
                HasSubstr("input 'scale': found 12 bytes, expected 8, which is float32[2]"));
    EXPECT_THAT(model.run({{"words", words}}).outcome.message(),
                HasSubstr("inputs[0]: found 'words', expected one of: 'ids', 'scale'"));
    EXPECT_THAT(model.run({{"ids", words}, {"ids", words}}).outcome.message(), HasSubstr("'ids' again"));
    EXPECT_THAT(model.run({huge, scale}).outcome.message(),
                HasSubstr("element 0: found 1099511627776, expected a number of 32 bits"));
    EXPECT_EQ(*model.run({words, scale}), 1u) << "the refused ones left nothing behind";
  });
  EXPECT_EQ(model.read(7, {{"total", total}}).code(), Code::not_found);
  EXPECT_THAT(model.read(1, {{"totals", total}}).message(), HasSubstr("'rows', 'total'"));
  read(model, 1, {{"total", total}});
  EXPECT_THAT(total, ElementsAre(10, 20));
  Model gone = std::move(model);
  const imp_model stale = gone.handle();
  gone.reset();
  EXPECT_EQ(context.api()->models->model_reset(stale), IMP_ERROR_INVALID_HANDLE);
}

TEST_F(ModelsTest, AModelThatAsksForTooMuchIsRefusedInWarmup) {
  const std::vector<std::byte> file = deep();
  const Model model = make({.file = file, .operation_limit = 1000});
  const Outcome warm = context.warmup();
  EXPECT_EQ(warm.code(), Code::unsupported);
  EXPECT_THAT(warm.message(), HasSubstr("raise operation_limit"));
}

// Shared tensors in place of an input and an output.
TEST_F(ModelsTest, TensorsTakeThePlaceOfHostMemory) {
  imp_tensor_desc shape = TensorDesc{.name = "sum", .shape = {2}};
  Made<Tensor> before = context.create_tensor(shape, imp_vk_buffer_init());
  if (!before) {  // device cpu
    EXPECT_EQ(before.outcome.code(), Code::unsupported);
    EXPECT_THAT(before.outcome.message(), HasSubstr("runs on the CPU, which has no buffers to share"));
    return;
  }
  const std::vector<std::byte> file = running_sum();
  const std::array bindings{ModelBinding{"sum", before->handle()}, ModelBinding{"sum_out", before->handle()}};
  Model model = make({.file = file, .bindings = bindings});
  ASSERT_WORKS(context.warmup());
  EXPECT_EQ(model.info()->input_count, 1u);
  const std::array<float, 2> x{1, 2};
  std::array<float, 2> square{};
  pass([&] { ASSERT_TRUE(model.run({x})); });
  read(model, 1, {square});
  pass([&] { ASSERT_TRUE(model.run({x})); });
  read(model, 2, {square});
  EXPECT_THAT(square, ElementsAre(4, 16));
  const imp_tensor used = before->handle();
  EXPECT_EQ(context.api()->vulkan->tensor_destroy(used), IMP_ERROR_WRONG_STATE);
  EXPECT_THAT(context.api()->last_error(), HasSubstr("model 'model' uses 'sum'"));
  const std::array wrong{ModelBinding{"x", used}, ModelBinding{"y", used}};
  EXPECT_THAT(refused({.file = file, .bindings = wrong}), HasSubstr("'y', expected an input or output"));
}

}  // namespace
