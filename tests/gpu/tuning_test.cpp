// Variants of kernels: the effect of a table on a program, and measuring on a device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "compute/nn/modules/sequential.h"
#include "compute/tuning/tuner.h"
#include "compute/tuning/tuning_table.h"
#include "compute/vk/pipelines/capability_profile.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"
#include "tests/gpu/trainer.h"

namespace imprint {

using namespace graph;

namespace {

using test::Trainer;

class TuningTest : public test::SessionTest {
 protected:
  void TearDown() override {
    runtime().set_tuner(nullptr);
    runtime().set_variants(nullptr);
    SessionTest::TearDown();
  }

  std::shared_ptr<Tuner> tuner(TuningOptions options, VariantTable known = {}) {
    auto made =
        Tuner::create(runtime(), *test::gpu()->context().queue(), std::move(known), std::move(options));
    if (!made) throw std::runtime_error(made.error().message);
    runtime().set_tuner(*made);
    return *made;
  }
};

std::vector<VariantChoice> choices(const Program& program) {
  std::vector<VariantChoice> all;
  for (const ScheduleFigures& part : program.schedule())
    for (const DispatchFigures& dispatch : part.dispatches)
      for (const KernelFigures& kernel : dispatch.kernels)
        all.insert(all.end(), kernel.choices.begin(), kernel.choices.end());
  return all;
}

std::uint64_t workgroups(const Program& program) {
  std::uint64_t sum = 0;
  for (const ScheduleFigures& part : program.schedule())
    for (const DispatchFigures& dispatch : part.dispatches) sum += dispatch.workgroups;
  return sum;
}

// A product, a fold over rows, a network over a batch and a fold over columns: one kernel of each kind with
// variants.
ProgramDescription all_kinds() {
  constexpr std::int64_t kSide =
      104;  // a product of several tiles, and its parts, which tuning runs repeatedly
  std::vector<float> numbers(kSide * kSide);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i) * 0.37f);
  const Tensor x = Tensor::from(numbers, {kSide, kSide});
  const nn::Sequential network =
      nn::mlp("net", {kSide, 24, 5}, {.activation = nn::Activation::tanh, .seed = 3});
  return {.name = "kinds",
          .outputs = {matmul(x, matmul(x, transpose(x)) * 0.01f),
                      softmax(reshape(concat({x, x, x, x}, 0), {4 * kSide, kSide}), 1), network(x),
                      sum(exp(x), {0})}};
}

// The largest difference, relative to the numbers. NaN counts as infinitely far.
double difference(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  double most = 0;
  for (std::size_t o = 0; o < a.size(); ++o)
    for (std::size_t i = 0; i < a[o].floats.size(); ++i) {
      const double x = a[o].floats[i], y = b[o].floats[i],
                   apart = std::abs(x - y) / std::max(1.0, std::abs(x));
      most = std::max(most, apart >= 0 ? apart : std::numeric_limits<double>::infinity());
    }
  return most;
}

// The cost model's choice, the variant nearest to it and the farthest. IMPRINT_TEST_VARIANTS: how many of the
// nearest.
std::vector<std::string> some_of(const std::vector<std::string>& variants) {
  const char* count = std::getenv("IMPRINT_TEST_VARIANTS");
  const std::size_t near = std::min<std::size_t>(count ? std::stoul(count) : 2, variants.size());
  std::vector<std::string> some(variants.begin(), variants.begin() + static_cast<std::ptrdiff_t>(near));
  if (variants.size() > some.size()) some.push_back(variants.back());
  return some;
}

TEST_F(TuningTest, VariantsComputeTheSame) {
  Program usual = compile(all_kinds());
  const auto expected = session().run(usual).value();
  const std::vector<VariantChoice> all = choices(usual);
  ASSERT_GE(all.size(), 4u) << usual.explain();
  std::size_t other_schedules = 0;
  for (const VariantChoice& choice : all)
    for (const std::string& variant : some_of(choice.variants)) {
      SCOPED_TRACE(choice.kernel + ": " + variant);
      runtime().set_variants(std::make_shared<const VariantTable>(VariantTable{{choice.kernel, variant}}));
      Program program = compile(all_kinds());
      EXPECT_LT(difference(session().run(program).value(), expected), 1e-5);
      const auto made = choices(program);
      const auto own = std::ranges::find(made, choice.kernel, &VariantChoice::kernel);
      ASSERT_NE(own, made.end());
      EXPECT_TRUE(own->taken == variant || !own->refused.empty());
      other_schedules += workgroups(program) != workgroups(usual) || program.glsl() != usual.glsl();
    }
  EXPECT_GT(other_schedules, all.size());
}

// Products of float16 in every tile that the device supports, on matrix units if any: whole and partial
// tiles, rows aligned to eight elements and unaligned, transposed, concatenated, with a bias and an
// activation, stored as float16.
TEST_F(TuningTest, TilesOfHalfProductsComputeTheSame) {
  const auto half = [](const Shape& shape, float phase) {
    std::vector<float> numbers(static_cast<std::size_t>(shape.element_count()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = std::sin(static_cast<float>(i % 10007) * 0.37f + phase);
    return Variable("x" + shape.text() + std::to_string(phase), shape, numbers);
  };
  struct Operands {
    Shape left, right;
    bool turned;
  };
  const bool software =
      test::gpu()->context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  int shapes = 0;
  for (const Operands& operands : {Operands{{384, 256}, {256, 512}, false},
                                   {{296, 264}, {264, 328}, false},
                                   {{264, 296}, {328, 264}, true},
                                   {{261, 133}, {133, 259}, false},
                                   {{133, 261}, {259, 133}, true},
                                   {{2, 200, 136}, {2, 136, 264}, false}}) {
    const Variable left = half(operands.left, 1), right = half(operands.right, 2);
    ProgramDescription description{.name = "halves"};
    const Variable a = Variable::zeros("a", operands.left, DType::float16),
                   b = Variable::zeros("b", operands.right, DType::float16);
    Program rounding =
        compile(ProgramDescription{.name = "round",
                                   .updates = {Update::assign(a, cast(left.value(), DType::float16)),
                                               Update::assign(b, cast(right.value(), DType::float16))}});
    ASSERT_TRUE(session().run(rounding).ok());
    const Tensor product =
        operands.turned ? matmul(transpose(a.value()), transpose(b.value())) : matmul(a.value(), b.value());
    const Tensor bias = half({product.extent(-1)}, 3).value();
    description.outputs = {product, cast(relu(product * 0.1f + bias), DType::float16)};
    std::vector<Tensor> alone{description.outputs[0]}, finished{description.outputs[1]};
    // Both outputs of one product take as long to compile as each alone: once is enough.
    std::vector<std::vector<Tensor>> all{alone, finished};
    if (operands.left == Shape{384, 256}) {
      all.push_back(description.outputs);
    } else if (software) {
      all.erase(all.begin() + (++shapes % 2));  // compiling takes its time: one end per shape, in turn
    }
    for (const std::vector<Tensor>& outputs : all) {
      description.outputs = outputs;
      runtime().set_variants(nullptr);
      ProgramDescription plain = description;
      plain.fuse = false;
      Program reference = compile(plain), usual = compile(description);
      const auto expected = session().run(reference).value();
      for (const VariantChoice& choice : choices(usual))
        for (const std::string& variant : choice.variants) {
          SCOPED_TRACE(choice.kernel + ": " + variant);
          runtime().set_variants(
              std::make_shared<const VariantTable>(VariantTable{{choice.kernel, variant}}));
          Program program = compile(description);
          EXPECT_LT(difference(session().run(program).value(), expected), 2e-3)
              << program.explain();  // one rounding to float16
        }
    }
  }
}

TEST_F(TuningTest, OneTableGivesOneResultToTheBit) {
  VariantTable table;
  for (const VariantChoice& choice : choices(compile(all_kinds())))
    table[choice.kernel] = choice.variants.back();
  runtime().set_variants(std::make_shared<const VariantTable>(table));
  Program first = compile(all_kinds()), second = compile(all_kinds());
  EXPECT_EQ(first.glsl(), second.glsl());
  EXPECT_EQ(difference(session().run(first).value(), session().run(second).value()), 0);
}

TEST_F(TuningTest, MeasuresTheVariantsOfAProgram) {
  std::size_t told = 0, timed = 0;
  const auto measuring = tuner({.seconds = 600, .runs = 1, .progress = [&](const TuningStep& step) {
                                  EXPECT_LE(step.position, step.count);
                                  ++told;
                                  timed += step.us > 0;
                                  return true;
                                }});
  Program program = compile(all_kinds());
  const TuningStats stats = measuring->stats();
  EXPECT_EQ(stats.programs, 1u);
  EXPECT_GE(stats.kernels, 4u);
  EXPECT_GT(stats.variants, stats.kernels);
  EXPECT_GE(stats.runs, timed);
  EXPECT_GT(told, timed);
  for (const VariantChoice& choice : choices(program)) {
    EXPECT_TRUE(choice.from_table) << choice.kernel;
    EXPECT_EQ(measuring->table().at(choice.kernel), choice.taken);
  }

  compile(all_kinds());  // known by then
  EXPECT_EQ(measuring->stats().runs, stats.runs);

  // Through text, as a file or a shipped game has it.
  const vk::Capabilities& device = test::gpu()->context().device().capabilities();
  const std::string text = write_tuning_tables(measuring->table(), device).value();
  runtime().set_tuner(nullptr);
  runtime().set_variants(std::make_shared<const VariantTable>(read_tuning_tables(text, device).value()));
  EXPECT_EQ(compile(all_kinds()).glsl(), program.glsl());
}

// Submissions of the tuner's own raise a GPU's clock between them.
TEST_F(TuningTest, CountsTheRunsOfVariants) {
  const std::atomic<std::uint64_t>& submits = test::gpu()->context().device().counters().submits;
  std::uint64_t timed = 0;
  const auto measuring = tuner({.seconds = 4, .runs = 1, .progress = [&](const TuningStep& step) {
                                  return (timed += step.us > 0) < 5;
                                }});
  const std::uint64_t before = submits;
  compile(all_kinds());
  const std::uint64_t most =
      2 + 1 +
      timed * 2 * 5;  // the program's own, and for each variant twice the three first and two timed ones
  EXPECT_GT(timed, 1u);
  EXPECT_LE(measuring->stats().runs, most);
  const vk::Device& device = test::gpu()->context().device();
  const bool has_clock =
      !vk::CapabilityProfile::of(device.capabilities(), device.options().schedule_as_gpu).processor;
  if (has_clock) EXPECT_GT(submits - before, measuring->stats().runs + 10);
}

// A tuner's own programs end with the runtime, even with uploads that were never submitted.
TEST_F(TuningTest, ARuntimeMayGoWithItsTuner) {
  std::string complaints;  // of the memory pool, of validation
  bridge::StandaloneOptions options{.device = test::gpu()->context().device().capabilities().device_name,
                                    .validation = true};
  options.options.schedule_as_gpu = true;  // which has a clock to observe
  options.options.log = {[](void* into, LogLevel level, std::string_view message) {
                           if (level == LogLevel::error)
                             static_cast<std::string*>(into)->append(message).append("\n");
                         },
                         &complaints};
  auto opened = bridge::Standalone::open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Runtime& runtime = (*opened)->session().runtime();
  auto made = Tuner::create(runtime, *(*opened)->context().queue(), {}, {.seconds = 1});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(runtime.has_uploads());
  runtime.set_tuner(std::move(*made));
  opened->reset();
  EXPECT_EQ(complaints, "");
}

// Its state fits into the memory once, but not twice.
TEST_F(TuningTest, UnmeasurableProgramsAreCompiledAndReported) {
  bridge::StandaloneOptions options{.device = test::gpu()->context().device().capabilities().device_name,
                                    .validation = true};
  options.options.memory.cap_bytes = 48 << 20;
  auto opened = bridge::Standalone::open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Session& session = (*opened)->session();
  auto made = Tuner::create(session.runtime(), *(*opened)->context().queue(), {}, {.seconds = 60});
  ASSERT_TRUE(made.ok()) << made.error().message;
  session.runtime().set_tuner(*made);
  const Variable state = Variable::zeros("state", {32 << 18});  // 32 MiB
  ASSERT_TRUE(session.runtime().place(state).ok());
  const auto program = Program::compile(
      session.runtime(),
      {.name = "large", .updates = {Update::assign(state, state.value() + 1.0f)}, .slot_count = 1});
  EXPECT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ((*made)->stats().failed, 1u);
  EXPECT_THAT((*made)->stats().failure, ::testing::HasSubstr("the cap has no room"));
  session.runtime().set_tuner(nullptr);
}

TEST_F(TuningTest, MeasuringLeavesTheProgramsStateUnchanged) {
  Trainer usual;
  Program reference = compile(usual.description);
  const std::uint64_t in_use = test::gpu()->context().device().memory().stats().bytes_in_use;
  Trainer trainer;
  const auto measuring = tuner({.seconds = 600, .runs = 1});
  Program program = compile(trainer.description);
  EXPECT_GT(measuring->stats().runs, 0u);
  runtime().set_tuner(nullptr);
  test::gpu()->context().device().collect();
  EXPECT_LT(test::gpu()->context().device().memory().stats().bytes_in_use, 2 * in_use + (1 << 20));
  for (int step = 0; step < 3; ++step) {
    const auto a = session().run(reference).value(), b = session().run(program).value();
    EXPECT_LT(difference(a, b), 1e-4) << "step " << step;
  }
}

TEST_F(TuningTest, ManyStepsInOneSubmitAreMeasuredPartByPart) {
  const Variable rows = Variable::zeros("rows", {416, 104});
  const ProgramDescription step{.name = "step",
                                .updates = {Update::assign(rows, softmax(rows.value() * 2.0f + 1.0f, 1))}};
  const auto measuring = tuner({.seconds = 600, .runs = 1});
  Program program = compile(ProgramSequence{.name = "steps", .parts = {{step, 3}}});
  EXPECT_EQ(measuring->stats().programs, 1u);
  EXPECT_GT(measuring->stats().kernels, 0u);
  runtime().set_tuner(nullptr);
  EXPECT_TRUE(session().run(program).ok());
}

TEST_F(TuningTest, StopsWhenItIsToldTo) {
  std::uint32_t steps = 0;
  const auto measuring =
      tuner({.seconds = 600, .runs = 1, .progress = [&](const TuningStep&) { return ++steps < 4; }});
  compile(all_kinds());
  EXPECT_EQ(steps, 4u);
  const std::uint64_t runs = measuring->stats().runs;
  compile({.name = "other",
           .outputs = {exp(full({512, 512}, 0.5) + Variable::zeros("zeros", {512, 512}).value())}});
  EXPECT_EQ(measuring->stats().runs, runs);

  const auto late = tuner({.seconds = 0, .runs = 1});
  compile(all_kinds());
  EXPECT_EQ(late->stats().runs, 0u);
  EXPECT_TRUE(late->table().empty());
}

TEST_F(TuningTest, NeverInAFrame) {
  const auto measuring = tuner({.seconds = 600, .runs = 1});
  vk::Counters& counters = test::gpu()->context().device().counters();
  const std::uint64_t waits = counters.frame_waits;
  {
    const bridge::FrameCall frame(test::gpu()->context());
    compile(all_kinds());
  }
  EXPECT_EQ(measuring->stats().refused_in_frame, 1u);
  EXPECT_EQ(measuring->stats().runs, 0u);
  EXPECT_EQ(counters.frame_waits, waits);
}

}  // namespace
}  // namespace imprint
