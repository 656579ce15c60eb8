// Programs that do not fit a memory cap compute values again instead of keeping them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/sequential.h"
#include "compute/program/runtime.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sixteen layers and their gradients. Equal names have equal first weights.
struct DeepTraining {
  nn::Sequential network =
      nn::mlp("deep", std::vector<std::int64_t>(17, 32), {.activation = nn::Activation::tanh});
  ProgramDescription description{.name = "deep", .inputs = {input("x", {512, 32})}, .slot_count = 1};

  DeepTraining() {
    const Tensor x = description.inputs[0], loss = nn::mse_loss(network(x), x * 0.5f);
    const std::vector<Tensor> slopes = gradients(loss, network.parameters().values()).value();
    description.outputs = {loss};
    const std::vector<Variable> weights = network.parameters().variables();
    for (std::size_t i = 0; i < weights.size(); ++i)
      description.updates.push_back(Update::assign(weights[i], weights[i].value() - 0.1f * slopes[i]));
  }
  // After two steps.
  std::vector<HostTensor> weights(Session& session, Program& program) {
    const HostTensor data = HostTensor::from(test::wave(512 * 32, 1, 3), {512, 32});
    for (int step = 0; step < 2; ++step)
      if (!session.run(program, std::span(&data, 1)).ok()) return {};
    session.runtime().set_cpu_memory_cap(0);  // the copies on the host count too
    return session.read(network.parameters().variables()).value();
  }
};

TEST(CpuRecompute, LongProgramsComputeAgainWhatDoesNotFit) {
  std::vector<std::string> told;
  const LogSink sink{[](void* user, LogLevel, std::string_view message) {
                       static_cast<std::vector<std::string>*>(user)->emplace_back(message);
                     },
                     &told};
  const auto free = Runtime::create_on_cpu(), tight = Runtime::create_on_cpu(sink);
  DeepTraining wanted, found;
  Session session(*free), tight_session(*tight);
  Result<Program> whole = Program::compile(*free, wanted.description);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const std::uint64_t whole_bytes = whole->stats().arena_bytes;
  std::uint64_t others = whole->stats().io_bytes;
  for (const Variable& weight : found.network.parameters().variables()) others += weight.bytes();
  tight->set_cpu_memory_cap(others + whole_bytes / 2 + 4096);
  Result<Program> pieces = Program::compile(*tight, found.description);
  ASSERT_TRUE(pieces.ok()) << pieces.error().message;
  EXPECT_LT(pieces->stats().arena_bytes, whole_bytes / 2);
  EXPECT_THAT(told,
              testing::Contains(AllOf(HasSubstr("program 'deep' computes"), HasSubstr("again to fit"))));
  const std::vector<HostTensor> expected = wanted.weights(session, *whole),
                                given = found.weights(tight_session, *pieces);
  ASSERT_EQ(given.size(), 32u);
  for (std::size_t i = 0; i < given.size(); ++i) EXPECT_EQ(given[i].floats, expected[i].floats) << i;
}

}  // namespace
}  // namespace imprint
