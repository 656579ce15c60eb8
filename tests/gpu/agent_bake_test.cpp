// Baking a brain or policy adds every kernel that it needs, on this device and in agent systems of any other
// brains.

#include <gmock/gmock.h>

#include "compute/model/files/file.h"
#include "compute/program/device_profile.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "plugin/agent/brain_programs.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {

using namespace program;

namespace {

BrainSpec pet() {
  BrainSpec spec;
  spec.name = "pet";
  spec.observation.count = 28;
  spec.observation.scale.assign(28, 0.5f);
  spec.action.branch_sizes = {10};
  spec.goal_count = 6;
  spec.learner = LearnerKind::feedback;
  return spec;
}

BrainSpec copycats() {
  BrainSpec spec;
  spec.name = "copycats";
  spec.observation.count = 5;
  spec.action.branch_sizes = {3, 2};
  spec.action.continuous_count = 2;
  spec.hidden_sizes = {16};
  spec.activation = Activation::tanh;
  spec.brain_count = 3;
  spec.agents_per_brain = 2;
  spec.learner = LearnerKind::cloning;
  spec.replay_capacity = 64;
  return spec;
}

BrainSpec stepper(LearnerKind learner) {
  BrainSpec spec = pet();
  spec.name = learner_name(learner);
  spec.learner = learner;
  spec.brain_count = 2;
  spec.replay_capacity = 64;
  return spec;
}

BrainSpec rememberer() {
  BrainSpec spec = stepper(LearnerKind::ppo);
  spec.name = "rememberer";
  spec.observation.streams = {{.kind = StreamKind::vector, .count = 22},
                              {.kind = StreamKind::entities, .count = 2, .features = 2},
                              {.kind = StreamKind::ids, .count = 1, .vocabulary = 4}};
  spec.cell = Cell::gru;
  spec.cell_size = 8;
  spec.sequence_steps = 4;
  return spec;
}

std::vector<std::byte> policy_file() {
  return read_file(std::string(IMPRINT_TEST_MODELS) + "/godot/BallChase.onnx").value();
}

class BakeBrains : public AgentSystemTest {
 protected:
  void SetUp() override {
    if (device_options().device == "cpu") GTEST_SKIP() << "the CPU's kernels are part of the library";
    AgentSystemTest::SetUp();
  }

  // The same device again, which now searches the archive first.
  void reopen(const std::vector<std::byte>& archive, std::uint64_t block_bytes) {
    bridge::StandaloneOptions options = device_options();
    options.options.log = messages.sink();
    options.options.memory.block_bytes = block_bytes;
    options.options.kernels = vk::KernelArchive::parse(archive).value();
    system.reset();
    auto opened = AgentSystem::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    system = std::move(*opened);
  }
  // The tensor with a buffer of its own.
  SharedTensor placed(SharedTensor tensor) {
    const std::uint64_t bytes = tensor.element_count() * sizeof(float);
    tensor.buffer = system->create_buffer({.name = tensor.name, .size = bytes}).value();
    tensor.parts = split(tensor.name, tensor.shape, tensor.dtype, UINT64_MAX, 1).value();
    EXPECT_OK(
        system->context().runtime().place_in(tensor.parts[0], bridge::SharedBuffer::range(tensor.buffer)));
    return tensor;
  }
  Baker baker() { return Baker({profile_of(system->context().device())}); }
};

TEST_F(BakeBrains, BakedKernelsAreNotCompiled) {
  Baker all = baker();
  ASSERT_OK(bake_brain(all, pet()));
  ASSERT_OK(bake_brain(all, copycats()));
  const BrainSpec dqn = stepper(LearnerKind::dqn), coach = stepper(LearnerKind::coach),
                  ppo = stepper(LearnerKind::ppo), bandit = stepper(LearnerKind::bandit);
  ASSERT_OK(bake_brain(all, dqn));
  ASSERT_OK(bake_brain(all, coach));
  ASSERT_OK(bake_brain(all, ppo));
  ASSERT_OK(bake_brain(all, rememberer()));
  ASSERT_OK(bake_brain(all, bandit));  // its learning has a loop
  const std::vector<std::byte> file = policy_file();
  ASSERT_OK(bake_policy(all, {.file = file, .agent_capacity = 4}));
  const auto archive = all.compile();
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  // Memory blocks of several sizes: brains share one, fill one, span two, and exceed any.
  for (const std::uint64_t block_bytes :
       {std::uint64_t{32} << 20, std::uint64_t{3} << 20, std::uint64_t{1} << 20, std::uint64_t{1} << 16}) {
    reopen(*archive, block_bytes);
    std::vector<std::shared_ptr<Brain>> brains;
    for (const BrainSpec& spec :
         {copycats(), pet(), dqn, pet(), coach, copycats(), ppo, rememberer(), bandit, pet()}) {
      auto made = system->add_brain(spec);
      ASSERT_TRUE(made.ok()) << made.error().message;
      brains.push_back(*made);
    }
    EXPECT_OK(system->add_policy({.file = file, .agent_capacity = 4}));
    ASSERT_OK(system->warmup([](float) {}));
    const vk::PipelineStats stats = system->context().device().pipelines().stats();
    EXPECT_EQ(stats.glsl_compiles, 0u) << "blocks of " << block_bytes;
    EXPECT_GT(stats.archive_hits, 0u);
  }
}

// A tensor of a game, as imprint bake describes it.
SharedTensor described_tensor(const std::string& name, const Shape& shape) {
  SharedTensor tensor;
  tensor.name = name;
  tensor.shape = shape;
  tensor.parts = split(name, shape, DType::float32, UINT64_MAX, 1).value();
  return tensor;
}

TEST_F(BakeBrains, BakedModelsAreNotCompiled) {
  const std::vector<std::byte> file = policy_file();
  const ModelSpec spec{
      .file = file, .extents = {{"batch_size", 16}}, .states = {{"state_ins", "state_outs"}}};
  const ModelSpec stateless{.file = file};
  // Any batch up to 16, with the observations and the output in tensors that a game shares.
  ModelSpec shared{.file = file, .bounds = {{"batch_size", 16}}, .states = {{"state_ins", "state_outs"}}};
  shared.bindings = {{"obs", described_tensor("obs", {16, 21})},
                     {"output", described_tensor("output", {16, 2})}};
  Baker all = baker();
  for (const ModelSpec* one : std::initializer_list<const ModelSpec*>{&spec, &stateless, &shared})
    ASSERT_OK(bake_model(all, *one));
  const auto archive = all.compile();
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  for (const std::uint64_t block_bytes : {std::uint64_t{32} << 20, std::uint64_t{1} << 16}) {
    reopen(*archive, block_bytes);
    for (const ModelSpec* one : {&spec, &stateless, &spec}) EXPECT_OK(system->add_model(*one));
    for (ModelBinding& binding : shared.bindings) binding.tensor = placed(binding.tensor);
    const auto made = system->add_model(shared);
    ASSERT_OK(made);
    ASSERT_OK(system->warmup([](float) {}));
    for (const std::int64_t batch : {3, 16, 1}) {
      pass([&] {
        EXPECT_OK((*made)->set_extent("batch_size", batch));
        const auto run = (*made)->begin({});
        ASSERT_OK(run);
        EXPECT_OK((*made)->discard(*run));
      });
    }
    const vk::PipelineStats stats = system->context().device().pipelines().stats();
    EXPECT_EQ(stats.glsl_compiles, 0u) << "blocks of " << block_bytes;
    EXPECT_GT(stats.archive_hits, 0u);
    for (ModelBinding& binding : shared.bindings) binding.tensor.buffer.reset();
  }
  Baker none = baker();
  EXPECT_EQ(bake_model(none, {}).error().code, ErrorCode::invalid_argument);
}

TEST_F(BakeBrains, ObservationsInPlaceAndSharedActionsAreBakedToo) {
  const BrainSpec spec = pet();
  const Variable seen = Variable::external("observations", {40, 28}),
                 done = Variable::external("actions", {spec.agent_capacity(), action_width(spec)});
  Baker in_place = baker(), numbers = baker();
  ASSERT_OK(bake_brain(in_place, spec, {seen}, {done}));
  ASSERT_OK(bake_brain(numbers, spec));
  EXPECT_GT(in_place.kernel_count(), 0u);
  EXPECT_NE(in_place.compile().value(), numbers.compile().value());
}

TEST_F(BakeBrains, InvalidBrainsAreRefused) {
  BrainSpec spec = pet();
  spec.observation.count = 0;
  Baker none = baker();
  EXPECT_EQ(bake_brain(none, spec).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(bake_policy(none, {}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(none.kernel_count(), 0u);
}

}  // namespace
}  // namespace imprint::agent::test
