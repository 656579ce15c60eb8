// Programs and the Vulkan device: memory, queue, bindings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "compute/base/text.h"
#include "compute/program/program.h"
#include "compute/program/run.h"
#include "compute/tensor/pages/scan_page.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"
#include "tests/gpu/trainer.h"

namespace imprint {
namespace {

using test::Trainer;

class ProgramDeviceTest : public test::SessionTest {};

TEST_F(ProgramDeviceTest, ReplaysWithoutAllocatingOrCompiling) {
  Trainer trainer;
  Program program = compile(trainer.description);
  ASSERT_TRUE(session().run(program).ok());
  vk::Counters& counters = test::gpu()->context().device().counters();
  const std::uint64_t compiles = counters.compiles, allocations = counters.allocations;
  const std::uint64_t in_use = test::gpu()->context().device().memory().stats().bytes_in_use;
  for (int step = 0; step < 100; ++step) ASSERT_TRUE(session().run(program).ok());
  EXPECT_EQ(counters.compiles, compiles);
  EXPECT_EQ(counters.allocations, allocations);
  EXPECT_EQ(test::gpu()->context().device().memory().stats().bytes_in_use, in_use);
  EXPECT_LE(program.stats().dispatches, 9u) << program.explain();
}

TEST_F(ProgramDeviceTest, EvaluatesTheSameStructureFromTheCache) {
  const auto polynomial = [](std::vector<float> values) {
    const Tensor x = Tensor::from(values, {4});
    return x * x + x * 3.0f;
  };
  EXPECT_EQ(session().evaluate(polynomial({1, 2, 3, 4})).value().floats, (std::vector<float>{4, 10, 18, 28}));
  const std::uint64_t compiles = test::gpu()->context().device().counters().compiles;
  const std::uint64_t in_use = test::gpu()->context().device().memory().stats().allocation_count;
  EXPECT_EQ(session().evaluate(polynomial({5, 6, 7, 8})).value().floats,
            (std::vector<float>{40, 54, 70, 88}));
  EXPECT_EQ(test::gpu()->context().device().counters().compiles, compiles);
  EXPECT_EQ(test::gpu()->context().device().memory().stats().allocation_count, in_use);
}

TEST_F(ProgramDeviceTest, GivesMemoryBack) {
  const std::uint64_t before = test::gpu()->context().device().memory().stats().bytes_in_use;
  for (int i = 0; i < 5; ++i) {
    Trainer trainer;
    Program program = compile(trainer.description);
    ASSERT_TRUE(session().run(program).ok());
  }
  test::gpu()->context().device().collect();
  EXPECT_EQ(test::gpu()->context().device().memory().stats().bytes_in_use, before);
}

TEST_F(ProgramDeviceTest, WeightsLeaveTheHostAfterTheirUpload) {
  constexpr std::int64_t kRows = 256, kColumns = 300;  // beyond what shares an upload
  std::weak_ptr<const std::vector<float>> weights;
  const auto description = [&] {
    const auto floats = std::make_shared<const std::vector<float>>(kRows * kColumns, 0.5f);
    weights = floats;
    const SharedBytes bytes(std::as_bytes(std::span(*floats)), floats);
    const Tensor x = input("x", {1, kRows}), w = Tensor::from_bytes(bytes, {kColumns, kRows}, DType::float32);
    return ProgramDescription{.name = "weights", .inputs = {x}, .outputs = {matmul(x, transpose(w))}};
  };
  Program program = compile(description());
  const auto results =
      session().run(program, std::vector{HostTensor::from(std::vector<float>(kRows, 1), {1, kRows})});
  ASSERT_TRUE(results.ok()) << results.error().message;
  EXPECT_EQ(results->at(0).floats, std::vector<float>(kColumns, 128));
  EXPECT_TRUE(weights.expired());
  EXPECT_FALSE(program.explain().empty());
}

TEST_F(ProgramDeviceTest, StateBelongsToTheDeviceOrToTheCpu) {
  const std::unique_ptr<Runtime> cpu = Runtime::create_on_cpu();
  const Variable here = Variable::zeros("here", {2}), there = Variable::zeros("there", {2});
  ASSERT_TRUE(runtime().place(here).ok());
  ASSERT_TRUE(cpu->place(there).ok());
  EXPECT_THAT(cpu->place(here).error().message, testing::HasSubstr("'here': found it on a Vulkan device"));
  EXPECT_THAT(runtime().place(there).error().message,
              testing::HasSubstr("'there': found it on another device"));
  Program program = compile({.name = "refused", .outputs = {Tensor(1.0f) + Tensor(2.0f)}});
  EXPECT_EQ(program.run_pieces(0, 0, 1).error().code, ErrorCode::unsupported);
  EXPECT_EQ(program.run_pieces(0, program.piece_count(), 1).error().code, ErrorCode::invalid_argument);
}

TEST_F(ProgramDeviceTest, AnotherDevicesProgramIsRefused) {
  bridge::StandaloneOptions options;
  if (const char* name = std::getenv("IMPRINT_TEST_DEVICE")) options.device = name;
  auto other = bridge::Standalone::open(options);
  ASSERT_TRUE(other.ok()) << other.error().message;
  Program program = compile({.name = "refused", .outputs = {Tensor(1.0f) + Tensor(2.0f)}});
  const auto run = (*other)->session().run(program);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(run.error().message, testing::HasSubstr("another runtime"));
}

// A queue that refuses the next submissions.
class RefusingQueue final : public vk::Queue {
 public:
  explicit RefusingQueue(vk::Queue& queue) : queue_(queue) {}
  std::uint32_t family() const override { return queue_.family(); }
  Result<vk::Ticket> submit(std::span<const VkCommandBuffer> commands) override {
    if (refuse == 0) return queue_.submit(commands);
    --refuse;
    return make_error(ErrorCode::out_of_host_memory, "refused");
  }
  Result<> wait(vk::Ticket ticket, std::uint64_t timeout_ns) override {
    return queue_.wait(ticket, timeout_ns);
  }

  int refuse = 0;

 private:
  vk::Queue& queue_;
};

TEST_F(ProgramDeviceTest, WritesSurviveARefusedSubmission) {
  RefusingQueue queue(*test::gpu()->context().queue());
  Session mine(runtime(), queue);
  const Variable a("a", {3}, std::vector<float>{1, 2, 3}), zeros = Variable::zeros("zeros", {2});
  Program program = compile(
      {.name = "double",
       .updates = {Update::assign(a, a.value() * 2.0f), Update::assign(zeros, zeros.value() + 1.0f)}});
  queue.refuse = 2;
  EXPECT_EQ(mine.run(program).error().code, ErrorCode::out_of_host_memory);
  ASSERT_TRUE(mine.write(a, HostTensor::from({4, 5, 6}, {3})).ok());
  EXPECT_FALSE(mine.run(program).ok());
  // Other work between them takes the ticket of the refused submission.
  ASSERT_TRUE(session().evaluate(Tensor(1.0f) + Tensor(2.0f)).ok());
  ASSERT_TRUE(mine.run(program).ok());
  EXPECT_EQ(floats(a), (std::vector<float>{8, 10, 12}));
  EXPECT_EQ(floats(zeros), (std::vector<float>{1, 1}));
}

// Variables in more memory blocks than a kernel can bind. One fused kernel would read them all; only that
// kernel is split.
TEST_F(ProgramDeviceTest, MoreBlocksThanAKernelBindsAreTakenOneByOne) {
  bridge::StandaloneOptions options;
  if (const char* name = std::getenv("IMPRINT_TEST_DEVICE")) options.device = name;
  options.validation = test::gpu()->context().device().capabilities().debug_utils;
  options.options.memory.block_bytes = 1024;
  std::vector<std::string> log;
  options.options.log = {[](void* user, LogLevel level, std::string_view text) {
                           if (level >= LogLevel::info && text.find("'scattered'") != text.npos)
                             static_cast<std::vector<std::string>*>(user)->emplace_back(text);
                         },
                         &log};
  auto opened = bridge::Standalone::open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Session& own = (*opened)->session();
  std::vector<Variable> variables;
  Tensor total = Tensor(0.5f);
  for (int i = 0; i < 40; ++i) {
    variables.push_back(
        Variable("v" + std::to_string(i), {256}, std::vector<float>(256, static_cast<float>(i))));
    total = total + variables.back().value() * 2.0f;
  }
  const Variable small("small", {64}, std::vector<float>(64, 1.0f));
  const Tensor fused = exp(small.value() * 0.0f) + small.value() * 3.0f;
  auto program = Program::compile(own.runtime(), {.name = "scattered", .outputs = {total, fused}});
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(program->stats().kernels, 81u);  // 40 products, 40 sums, and one for all of `fused`
  const auto found = own.run(*program);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)[0].floats, std::vector<float>(256, 1560.5f));
  EXPECT_EQ((*found)[1].floats, std::vector<float>(64, 4));
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], testing::HasSubstr("80 operations have kernels of their own"));
  EXPECT_THAT(log[0], testing::HasSubstr("memory blocks"));
}

// A scan in one kernel, by workgroups that find all, some or none of the chunks before them in the marks.
TEST_F(ProgramDeviceTest, ScansInOnePassWithEqualBitsWhateverIsLate) {
  constexpr std::int64_t kLines = 3, kLength = 30004;
  const tensor::PageLimits limits{.invocations = 256, .groups = 64};
  const Shape shape{kLines, kLength};
  const Variable x("x", shape, test::wave(kLines * kLength, 1, 1));
  for (const tensor::ScanKind kind : {tensor::ScanKind::sum, tensor::ScanKind::recurrence}) {
    std::vector<Update> updates;
    std::vector<Variable> found;
    for (const int tries : {0, 1, 256}) {
      // A product and a sum as they are loaded, which kernels may fuse.
      const Tensor inputs[] = {x.value() * 1.25f + 0.125f, x.value() * 0.75f};
      found.push_back(Variable::zeros(text("tries ", tries), shape));
      const bool is_sum = kind == tensor::ScanKind::sum;
      updates.push_back(
          Update::assign(found.back(), tensor::scan_on_device(kind, std::span(inputs).first(is_sum ? 1 : 2),
                                                              {.axis = 1, .tries = tries}, limits)[0]));
    }
    // Chunks that are late are read again after others have stored theirs.
    const Tensor own[] = {x.value() * 0.25f, x.value() * 0.5f};
    updates.push_back(Update::assign(
        x, tensor::scan_on_device(tensor::ScanKind::recurrence, own, {.axis = 1, .tries = 0}, limits)[0]));
    Program program = compile(ProgramDescription{.name = "one pass", .updates = updates});
    EXPECT_LT(program.stats().dispatches, 2 * updates.size());  // two passes: twice as many
    for (int run = 0; run < 3; ++run) {
      run_sliced(program, {run == 1 ? 1u : 10000u});
      const std::vector<float> late = floats(found[0]);
      EXPECT_EQ(floats(found[1]), late) << run;
      EXPECT_EQ(floats(found[2]), late) << run;
    }
  }
}

}  // namespace
}  // namespace imprint
