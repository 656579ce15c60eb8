// Networks of the library that two processes learn: run by mpirun -np 2. IMPRINT_TEST_DEVICE names the
// device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "compute/nn/learners/classic_environments.h"
#include "compute/program/program_body.h"
#include "compute/training/trainer.h"
#include "engine-bridge/own/standalone.h"
#include "imprint/studio_compute.h"
#include "tools/studio/group.h"

namespace imprint::studio {
namespace {

class SharingTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(group.ranks(), 2u) << "run this by mpirun -np 2"; }

  static std::vector<float> drawn(std::uint32_t rank, std::size_t count) {
    std::vector<float> numbers(count);
    std::uint32_t state = 7 + rank;
    for (float& number : numbers) {
      state = state * 1664525 + 1013904223;
      number = static_cast<float>(state >> 8) / 8388608.0f - 1;
    }
    return numbers;
  }
  // In all ranks the same bits.
  void expect_equal_everywhere(std::vector<float> numbers) {
    std::vector<float> of_first = numbers;
    group.broadcast(std::as_writable_bytes(std::span(of_first)));
    EXPECT_EQ(numbers, of_first);
  }
  Group& group = Group::all();
};

// Few numbers go by messages, many through memory that the processes share, and more than before through
// more.
TEST_F(SharingTest, AddsFewAndMany) {
  for (const std::size_t count :
       {std::size_t{3}, std::size_t{2049}, std::size_t{100'001}, std::size_t{5000}}) {
    const std::vector<float> first = drawn(0, count), second = drawn(1, count);
    std::vector<float> sums = group.rank() == 0 ? first : second;
    group.add(sums);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sums[i], first[i] + second[i]) << i << " of " << count;
  }
}

TEST_F(SharingTest, CompressedSumsKeepElevenBits) {
  const std::size_t count = 1001;
  std::vector<float> first = drawn(0, count), second = drawn(1, count);
  for (float& number : first) number *= 1e-9f;  // below float16's smallest
  for (float& number : second) number *= 1e-9f;
  std::vector<float> sums = group.rank() == 0 ? first : second;
  group.add_compressed(sums);
  for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(sums[i], first[i] + second[i], 2e-9 / 1024) << i;
  expect_equal_everywhere(sums);
}

TEST_F(SharingTest, CompressedSumsKeepWhatIsNotFinite) {
  std::vector<float> numbers = {1, group.rank() == 0 ? NAN : 2, 3, 4};
  group.add_compressed(numbers);
  EXPECT_TRUE(std::isnan(numbers[1]));
}

// Any range of a region, several times, and regions beside each other.
TEST_F(SharingTest, AddsInMappedMemory) {
  const std::shared_ptr<SharedSums> sums = shared_sums();
  ASSERT_TRUE(sums) << "the processes are on one computer";
  EXPECT_TRUE(sums->all(true));
  EXPECT_FALSE(sums->all(group.rank() == 0));
  const std::size_t count = 100'003;
  const SharedSums::Memory memory = sums->allocate(count * sizeof(float)), other = sums->allocate(1);
  ASSERT_TRUE(memory.own && memory.sums && other.own);
  EXPECT_GE(memory.bytes, count * sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.own) % SharedSums::kAlignment, 0u);
  auto* own = reinterpret_cast<float*>(memory.own);
  const auto* added = reinterpret_cast<const float*>(memory.sums);
  const std::vector<float> first = drawn(0, count), second = drawn(1, count);
  for (const auto& [begin, length] : {std::pair<std::size_t, std::size_t>{0, count}, {7, 1}, {1, 50'001}}) {
    const float scale = static_cast<float>(length);
    for (std::size_t i = 0; i < count; ++i) own[i] = scale * (group.rank() == 0 ? first : second)[i];
    sums->add(memory, begin, length);
    for (std::size_t i = begin; i < begin + length; ++i)
      ASSERT_EQ(added[i], scale * first[i] + scale * second[i]) << i << " of " << length;
    group.barrier();  // no process writes before all have looked
  }
}

// A device that a test may use, and a session on it.
struct Computer {
  std::unique_ptr<bridge::Standalone> standalone;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Session> own;
  Session& session() { return own ? *own : standalone->session(); }

  static Computer cpu() {
    Computer made;
    made.runtime = Runtime::create_on_cpu();
    made.own = std::make_unique<Session>(*made.runtime);
    return made;
  }
  static Computer gpu() {
    Computer made;
    const char* name = std::getenv("IMPRINT_TEST_DEVICE");
    auto opened =
        bridge::Standalone::open({.device = name ? name : "", .validation = true, .copy_queues = true});
    if (opened)
      made.standalone = std::move(*opened);
    else
      ADD_FAILURE() << opened.error().message;
    return made;
  }
};

// A small network after some steps by SGD: Adam would turn roundings of small gradients into steps. parts:
// the processes that share each batch of 12.
std::vector<float> trained(Session& session, std::int64_t parts, std::int64_t accumulate) {
  // The last batch of 41 is not full: one process has 5 of 6 rows, the other none. Accumulated batches that
  // are not full count by their samples among several processes, and like full ones in one.
  const std::int64_t samples = accumulate > 1 ? 48 : 41;
  std::vector<float> x, y;
  for (std::int64_t i = 0; i < samples; ++i) {
    const float at = static_cast<float>(i) / static_cast<float>(samples);
    x.insert(x.end(), {at, at * at});
    y.push_back(std::sin(3 * at));
  }
  const auto data = training::in_memory(
      {{"x", HostTensor::from(x, {samples, 2})}, {"y", HostTensor::from(y, {samples, 1})}});
  auto loader = training::Loader::create(
      *data, {.batch = 12 / parts, .shuffle = true, .parts = parts, .part = parts > 1 ? rank() : 0});
  const nn::Sequential network = nn::mlp("net", {2, 16, 1}, {.activation = nn::Activation::tanh, .seed = 3});
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    return training::Computed{square(network(in[0], pass) - in[1])};
  };
  training::TrainerOptions options{.epochs = 3, .rate = 0.1, .clip_norm = 1, .accumulate = accumulate};
  if (parts > 1) {
    options.process_count = parts;
    options.process_index = rank();
    options.all_reduce = all_reduce();
    options.shared_sums = shared_sums();
  }
  training::Trainer trainer(session, model, training::state_of(network),
                            std::make_shared<nn::Sgd>(network.parameters()), options);
  const auto outcome = trainer.fit(*loader);
  EXPECT_TRUE(outcome) << outcome.error().message;
  std::vector<float> all;
  const std::vector<Variable> variables = network.parameters().variables();
  const auto read = session.read(variables);
  for (const HostTensor& value : *read) all.insert(all.end(), value.floats.begin(), value.floats.end());
  return all;
}

void expect_trains_as_one(Computer computer, std::int64_t accumulate) {
  ASSERT_TRUE(computer.own || computer.standalone);
  const std::vector<float> alone = trained(computer.session(), 1, accumulate);
  const std::vector<float> together = trained(computer.session(), 2, accumulate);
  ASSERT_EQ(alone.size(), together.size());
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[i], alone[i], 2e-5) << i;
  EXPECT_EQ(trained(computer.session(), 2, accumulate), together) << "another run has other bits";
  if (computer.standalone)
    EXPECT_EQ(computer.standalone->validation_messages(), 0u)
        << computer.standalone->first_validation_message();
}

TEST_F(SharingTest, TwoProcessesTrainAsOneOnTheCpu) { expect_trains_as_one(Computer::cpu(), 1); }
TEST_F(SharingTest, TwoProcessesAccumulateAsOne) { expect_trains_as_one(Computer::cpu(), 2); }
TEST_F(SharingTest, TwoProcessesTrainAsOneOnTheGpu) { expect_trains_as_one(Computer::gpu(), 1); }

// Poles on the device: both processes have the same weights after some updates, and again in another run.
TEST_F(SharingTest, TwoProcessesLearnTheSameMinibatchesInWorldsOnTheGpu) {
  Computer computer = Computer::gpu();
  ASSERT_TRUE(computer.standalone);
  Session& session = computer.session();
  const auto learned = [&] {
    nn::PpoOptions options{.agents = 8, .steps = 16, .minibatch = 64, .epochs = 2};
    options.observations = 4;
    options.action.branches = {2};
    options.process_count = 2;
    options.process_index = rank();
    const auto ppo = nn::Ppo::create(options);
    const nn::Environments worlds(nn::cart_pole(), 8, 5 + rank());
    auto sequence = ppo->update();
    sequence->parts.insert(sequence->parts.begin(), *ppo->rollout(worlds));
    for (ProgramRounds& rounds : sequence->rounds) ++rounds.first;
    sequence->all_reduce = all_reduce();
    auto start = Program::compile(session.runtime(), *ppo->start(worlds));
    auto program = Program::compile(session.runtime(), *sequence);
    EXPECT_TRUE(program) << program.error().message;
    EXPECT_TRUE(program->adds_up());
    EXPECT_TRUE(session.run(*start));
    const HostTensor rates[] = {HostTensor::from({1e-3f}, {}), HostTensor::from({0.2f}, {})};
    for (int i = 0; i < 3; ++i) {
      const auto ran = session.run(*program, rates);
      EXPECT_TRUE(ran) << ran.error().message;
    }
    std::vector<float> all;
    const auto read = session.read(ppo->acting_parameters().variables());
    for (const HostTensor& value : *read) all.insert(all.end(), value.floats.begin(), value.floats.end());
    return all;
  };
  const std::vector<float> once = learned();
  expect_equal_everywhere(once);
  EXPECT_EQ(learned(), once);
  EXPECT_EQ(computer.standalone->validation_messages(), 0u)
      << computer.standalone->first_validation_message();
}

// Each process moves its variable by itself; the mean is the same in both.
TEST_F(SharingTest, MeanPartAverages) {
  Computer computer = Computer::cpu();
  const Variable number("number", {2}, std::vector<float>{1, 2});
  nn::Parameters both;
  both.add("number", number);
  ProgramSequence sequence{.name = "averaged"};
  sequence.parts.push_back({{.name = "moves"}});
  sequence.parts.back().description.updates = {
      Update::assign(number, number.value() + static_cast<float>(1 + rank()))};
  sequence.parts.push_back(mean_part(both));
  sequence.all_reduce = all_reduce();
  auto program = Program::compile(computer.session().runtime(), sequence);
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_TRUE(computer.session().run(*program));
  const auto read = computer.session().read(std::span(&number, 1));
  EXPECT_EQ((*read)[0].floats, (std::vector<float>{2.5f, 3.5f}));
}

// Variables that are first placed for their sum follow each other in memory: one copy to the host and one
// back, whatever lies between them there.
TEST_F(SharingTest, VariablesOfOneSumHaveOneCopy) {
  Computer computer = Computer::gpu();
  ASSERT_TRUE(computer.standalone);
  Session& session = computer.session();
  std::vector<Variable> variables;
  nn::Parameters all;
  ProgramSequence sequence{.name = "averaged"};
  sequence.parts.push_back({{.name = "moves"}});
  for (const std::int64_t count : {3, 16, 5, 1, 70}) {
    const std::string name = "number" + std::to_string(count);
    const Variable& made = variables.emplace_back(Variable::zeros(name, {count}));
    all.add(name, made);
    sequence.parts[0].description.updates.push_back(
        Update::assign(made, made.value() + static_cast<float>(count + rank())));
  }
  sequence.parts.push_back(mean_part(all));
  std::size_t not_zero = 0;
  sequence.all_reduce = [&](std::span<float> numbers) {
    all_reduce()(numbers);
    not_zero = static_cast<std::size_t>(std::ranges::count_if(numbers, [](float x) { return x != 0; }));
  };
  auto program = Program::compile(session.runtime(), sequence);
  ASSERT_TRUE(program) << program.error().message;
  std::vector<std::uint32_t> copies;
  for (const Stretch& stretch : program->body().stretches(0)) copies.push_back(stretch.copies);
  EXPECT_EQ(copies, (std::vector<std::uint32_t>{1, 1}));
  ASSERT_TRUE(session.run(*program));
  EXPECT_EQ(not_zero, 3u + 16 + 5 + 1 + 70);
  const auto read = session.read(variables);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto count = static_cast<std::size_t>(variables[i].shape()[0]);
    EXPECT_EQ((*read)[i].floats, std::vector<float>(count, static_cast<float>(count) + 0.5f));
  }
}

// Sums that are large enough to go ahead, on the copy queue, and a last one on the main queue, by a kernel if
// it is short; twice, so that the second turn's numbers meet the first one's sums.
void expect_adds_ahead(Computer& computer, std::int64_t last) {
  Session& session = computer.session();
  constexpr std::int64_t kLarge = (std::int64_t{2} << 20) / sizeof(float);
  std::vector<Variable> variables;
  ProgramSequence sequence{.name = "sums", .parts = {{.description = {.name = "moves"}, .repeat = 2}}};
  for (const std::int64_t count : {kLarge, kLarge + 1, last}) {
    const Variable& made = variables.emplace_back(Variable::zeros("number" + std::to_string(count), {count}));
    sequence.parts[0].description.updates.push_back(
        Update::assign(made, made.value() + static_cast<float>(count % 5 + rank())));
  }
  sequence.parts[0].summed = variables;
  sequence.all_reduce = all_reduce();
  sequence.shared_sums = shared_sums();
  auto program = Program::compile(session.runtime(), sequence);
  ASSERT_TRUE(program) << program.error().message;
  const std::span<const Stretch> stretches = program->body().stretches(0);
  ASSERT_EQ(stretches.size(), 3u) << "one for each turn, and one that only takes sums";
  EXPECT_EQ(stretches[0].sums.size(), 3u);
  for (int run = 1; run <= 2; ++run) ASSERT_TRUE(session.run(*program));
  const auto read = session.read(variables);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    // x = 2 x + 2 c + 1, four times from 0.
    const auto count = static_cast<std::size_t>(variables[i].shape()[0]);
    EXPECT_EQ((*read)[i].floats, std::vector<float>(count, 15 * (2 * static_cast<float>(count % 5) + 1)));
  }
}

TEST_F(SharingTest, LargeSumsGoAheadOfTheLast) {
  Computer computer = Computer::gpu();
  ASSERT_TRUE(computer.standalone);
  for (const std::int64_t last : {7, 100'001}) expect_adds_ahead(computer, last);
  EXPECT_EQ(computer.standalone->validation_messages(), 0u)
      << computer.standalone->first_validation_message();
}

// The last sums are short: no kernel runs any more when they are added up.
TEST_F(SharingTest, SumsGetShorter) {
  Computer computer = Computer::gpu();
  ASSERT_TRUE(computer.standalone);
  Session& session = computer.session();
  constexpr std::int64_t kHalfMiB = 1 << 17;
  ProgramSequence sequence{.name = "sums", .parts = {{.description = {.name = "moves"}}}};
  for (int i = 0; i < 12; ++i) {
    const Variable made = Variable::zeros("number" + std::to_string(i), {kHalfMiB});
    sequence.parts[0].description.updates.push_back(
        Update::assign(made, made.value() + static_cast<float>(i + rank())));
    sequence.parts[0].summed.push_back(made);
  }
  sequence.all_reduce = all_reduce();
  sequence.shared_sums = shared_sums();
  auto program = Program::compile(session.runtime(), sequence);
  ASSERT_TRUE(program) << program.error().message;
  std::vector<std::size_t> lengths;
  for (const StretchSum& sum : program->body().stretches(0)[0].sums)
    lengths.push_back(sum.numbers.size() / kHalfMiB);
  EXPECT_EQ(lengths, (std::vector<std::size_t>{2, 2, 1, 1, 1, 1, 1, 1, 1, 1}));
  ASSERT_TRUE(session.run(*program));
  const auto read = session.read(sequence.parts[0].summed);
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_EQ((*read)[i].floats, std::vector<float>(kHalfMiB, 2 * static_cast<float>(i) + 1)) << i;
}

// Kernels of the part that read a variable after its own write get this process's numbers. On a GPU with a
// copy queue its sum would come while they run.
TEST_F(SharingTest, KernelsOfThePartReadNoSum) {
  Computer computer = Computer::gpu();
  ASSERT_TRUE(computer.standalone);
  Session& session = computer.session();
  constexpr std::int64_t kLarge = 1 << 19;
  constexpr int kReads = 40;
  const Variable large = Variable::zeros("large", {kLarge}), read_once = Variable::zeros("read", {1}),
                 small = Variable::zeros("small", {1});
  const Tensor own = large.value() + 1.0f;
  Tensor mean_of_own = mean(own);
  for (int i = 0; i < kReads; ++i) mean_of_own = mean(own * mean_of_own);
  ProgramSequence sequence{.name = "reads", .parts = {{.description = {.name = "reads"}}}};
  sequence.parts[0].description.updates = {Update::assign(large, own),
                                           Update::assign(read_once, reshape(mean_of_own, {1})),
                                           Update::assign(small, small.value() + mean_of_own)};
  sequence.parts[0].summed = {large, small};
  sequence.all_reduce = all_reduce();
  sequence.shared_sums = shared_sums();
  auto program = Program::compile(session.runtime(), sequence);
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_TRUE(session.run(*program));
  const auto found = session.read(std::vector<Variable>{large, read_once, small});
  EXPECT_EQ((*found)[0].floats, std::vector<float>(kLarge, 2));
  EXPECT_EQ((*found)[1].floats, std::vector<float>{1}) << "a kernel read the sum";
  EXPECT_EQ((*found)[2].floats, std::vector<float>{2});
}

class Ending : public ::testing::Environment {
 public:
  void TearDown() override { Group::all().finish(); }
};
const ::testing::Environment* const ending = ::testing::AddGlobalTestEnvironment(new Ending);

}  // namespace
}  // namespace imprint::studio
