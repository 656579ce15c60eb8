// Dispatches and barriers of a learn step and of a policy. Planning needs no GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compute/graph/gradients/autodiff.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/nn/learners/ppo_loss.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/program/device_profile.h"
#include "compute/program/program_body.h"
#include "plugin/agent/learn/training/describe_learning.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;

namespace {

struct Counts {
  std::size_t dispatches = 0, barriers = 0;
  std::int64_t kept = 0;   // elements of the largest value that a map stores for later kernels
  std::size_t waits = 0;   // of a map's workgroup for its own lanes, at most
  std::size_t loaded = 0;  // weights that regions load into their workgroups' memory first
};

// Barriers of the function that a dispatch has for its task.
std::size_t waits_of(const DispatchSource& dispatch, std::size_t task) {
  const std::string& glsl = dispatch.glsl;
  const std::size_t first = glsl.find("void task_" + std::to_string(task) + "("),
                    end = glsl.find("\n}\n", first);
  std::size_t count = 0;
  for (std::size_t at = glsl.find("barrier();", first); at < end; at = glsl.find("barrier();", at + 1))
    ++count;
  return count;
}

void count_maps(const Graph& graph, const Schedule& schedule, const DispatchSource& dispatch,
                Counts& counts) {
  for (std::size_t i = 0; i < dispatch.tasks.size(); ++i) {
    const Task& task = schedule.tasks[static_cast<std::size_t>(dispatch.tasks[i])];
    if (task.kind != TaskKind::map) continue;
    counts.waits = std::max(counts.waits, waits_of(dispatch, i));
    for (const Store& store : task.stores)
      if (store.place.kind == PlaceKind::temporary)
        counts.kept = std::max(counts.kept, graph[store.node].element_count());
  }
}

Counts counts_of(const ProgramDescription& description) {
  vk::CapabilityProfile gpu;
  gpu.max_storage_buffers_per_stage = 16;
  gpu.max_workgroup_invocations = gpu.max_workgroup_size_x = 1024;
  gpu.max_shared_memory_bytes = 49152;
  gpu.subgroup_size = 32;
  auto source = build_program_graph(description);
  EXPECT_TRUE(source.ok()) << source.error().message;
  const Schedule schedule = fuse(source->graph, source->request, fusion_options(gpu)).value();
  const auto dispatches =
      build_dispatches(source->graph, schedule, dispatch_limits(gpu),
                       [](const Place& place) { return static_cast<std::int32_t>(place.kind); });
  EXPECT_TRUE(dispatches.ok()) << dispatches.error().message;
  Counts counts{dispatches->size(), 0};
  const auto level_of = [&](const DispatchSource& dispatch) {
    return schedule.tasks[static_cast<std::size_t>(dispatch.tasks[0])].level;
  };
  for (const DispatchSource& dispatch : *dispatches) count_maps(source->graph, schedule, dispatch, counts);
  for (const Region& region : schedule.regions) counts.loaded += region.stages[0].members.size();
  for (std::size_t i = 1; i < dispatches->size(); ++i)
    counts.barriers += level_of((*dispatches)[i]) != level_of((*dispatches)[i - 1]);
  return counts;
}

ProgramDescription ppo_step(std::int64_t batch, std::int64_t hidden) {
  constexpr std::int64_t kObservations = 32, kActions = 8;
  const auto data = [&](const char* name) { return Variable::zeros(name, {batch}).value(); };
  const nn::Sequential network = nn::mlp("ppo", {kObservations, hidden, hidden, kActions + 1},
                                         {.activation = nn::Activation::tanh, .seed = 1});
  const Tensor outputs = network(Variable::zeros("observation", {batch, kObservations}).value());
  const nn::PpoLoss loss =
      nn::ppo_loss(slice(outputs, 1, 0, kActions), squeeze(slice(outputs, 1, kActions, kActions + 1), 1),
                   {Variable::zeros("action", {batch}, DType::int32).value(), data("log_probability"),
                    data("advantage"), data("target")},
                   {.entropy_coefficient = 0.01});
  const nn::ClippedGradients clipped =
      nn::clip_by_global_norm(gradients(loss.total, network.parameters().values()).value(), 0.5).value();
  ProgramDescription description{
      .name = "ppo", .updates = nn::Adam(network.parameters()).step(clipped.gradients, 3e-4).value()};
  description.updates.push_back(Update::assign(
      Variable::zeros("metrics", {4}), stack({loss.policy, loss.value, loss.entropy, loss.divergence}, 0)));
  return description;
}

TEST(Dispatches, AKernelThatFillsTheDevicePartsNoOthers) {
  ProgramDescription description{.name = "three"};
  for (const std::int64_t count : {8, 1 << 21, 8}) {
    const Variable values = Variable::zeros("v" + std::to_string(description.updates.size()), {count});
    description.updates.push_back(Update::assign(values, values.value() + 1.0f));
  }
  EXPECT_EQ(counts_of(description).dispatches, 2u);
}

TEST(Dispatches, OfAPpoMinibatchAreAHandful) {
  for (const std::int64_t batch : {256, 2048, 16384}) {
    const Counts counts = counts_of(ppo_step(batch, 64));
    EXPECT_LE(counts.dispatches, 3u) << "batch " << batch;
    EXPECT_LE(counts.barriers, 2u) << "batch " << batch;
  }
  EXPECT_LE(counts_of(ppo_step(256, 256)).dispatches, 4u);
  const Counts wide = counts_of(ppo_step(16384, 256));  // the large products have separate kernels
  EXPECT_LE(wide.dispatches, 8u);
  EXPECT_LE(wide.barriers, 7u);
}

TEST(Dispatches, OfAPolicyAreOne) {
  for (const std::int64_t batch : {1, 64, 1024, 131072}) {
    const nn::Sequential policy =
        nn::mlp("policy", {32, 64, 64, 8}, {.activation = nn::Activation::tanh, .seed = 1});
    const Counts counts =
        counts_of({.name = "policy",
                   .updates = {Update::assign(Variable::zeros("action", {batch, 8}),
                                              policy(Variable::zeros("observation", {batch, 32}).value()))}});
    EXPECT_EQ(counts.dispatches, 1u) << "batch " << batch;
    EXPECT_EQ(counts.barriers, 0u) << "batch " << batch;
  }
}

// The pet's network and learner, with the plugin's settings. A kennel's norms are one per network, and take
// kernels of their own.
TEST(Dispatches, OfPetsMinibatchesAreAHandful) {
  struct Kennel {
    std::uint32_t brains;
    std::size_t dispatches;
  };
  for (const Kennel kennel : {Kennel{1, 3}, Kennel{16, 5}, Kennel{64, 5}, Kennel{256, 4}}) {
    agent::BrainSpec spec;
    spec.name = "pet";
    spec.observation.count = 28;
    spec.action.branch_sizes = {10};
    spec.goal_count = 6;
    spec.brain_count = kennel.brains;
    spec.seed = 1;
    spec.learner = agent::LearnerKind::feedback;
    spec.batch_size = 32;
    spec.replay_capacity = 1024;
    const agent::Network network = agent::Network::create(spec).value();
    const Counts counts = counts_of(agent::describe_learning(spec, network).value().description);
    EXPECT_LE(counts.dispatches, kennel.dispatches) << kennel.brains << " brains";
    EXPECT_LE(counts.barriers, kennel.dispatches - 1) << kennel.brains << " brains";
    if (kennel.brains == 1) EXPECT_GE(counts.loaded, 6u) << "all layers, for the minibatch and for the news";
  }
}

// As imprint bench --suite learners measures it. Weights of one brain, whose shapes have an axis for brains,
// are loaded first. Folds of few workgroups still have room in the region's dispatch.
TEST(Dispatches, OfADqnUpdateAreThree) {
  agent::BrainSpec spec;
  spec.learner = agent::LearnerKind::dqn;
  spec.hidden_sizes = {64, 64};
  spec.observation.count = 32;
  spec.action.branch_sizes = {8};
  spec.double_estimate = true;
  spec.batch_size = 64;
  spec.replay_capacity = 20'000;
  spec.max_gradient_norm = 10;
  spec.seed = 1;
  const agent::Network network = agent::Network::create(spec).value();
  const Counts counts = counts_of(agent::describe_learning(spec, network).value().description);
  EXPECT_LE(counts.dispatches, 3u);
  EXPECT_LE(counts.barriers, 2u);
  EXPECT_GE(counts.loaded, 3u);
}

// As imprint bench --suite learners measures it. The cell's weight gradients are beside the layer below.
TEST(Dispatches, OfARecurrentMinibatchAreAHandful) {
  agent::BrainSpec spec;
  spec.learner = agent::LearnerKind::ppo;
  spec.cell = agent::Cell::gru;
  spec.cell_size = 64;
  spec.hidden_sizes = {64};
  spec.observation.count = 32;
  spec.action.branch_sizes = {8};
  spec.activation = agent::Activation::tanh;
  spec.batch_size = spec.rollout_steps = 256;
  spec.sequence_steps = 16;
  spec.epochs = 1;
  spec.max_gradient_norm = 0.5f;
  spec.replay_capacity = 1024;
  spec.seed = 1;
  const agent::Network network = agent::Network::create(spec).value();
  EXPECT_LE(counts_of(agent::describe_learning(spec, network).value().description).dispatches, 7u);
}

// The sizes that imprint bench --suite learners measures.
TEST(Dispatches, OfLearnersThatReplayAreAHandful) {
  struct Size {
    agent::LearnerKind learner;
    std::uint32_t hidden, batch, brains;
    std::size_t dispatches;
  };
  using agent::LearnerKind;
  for (const Size size : {Size{LearnerKind::dqn, 64, 64, 1, 3}, Size{LearnerKind::dqn, 256, 256, 1, 5},
                          Size{LearnerKind::sac, 256, 256, 1, 5}, Size{LearnerKind::sac, 64, 64, 64, 6}}) {
    agent::BrainSpec spec;
    spec.learner = size.learner;
    spec.hidden_sizes = {size.hidden, size.hidden};
    spec.batch_size = size.batch;
    spec.brain_count = size.brains;
    spec.replay_capacity = 1024;
    spec.max_gradient_norm = 10;
    spec.observation.count = 17;
    if (size.learner == LearnerKind::sac)
      spec.action.continuous_count = 6;
    else
      spec.action.branch_sizes = {8};
    spec.target_rate = 0.005f;
    spec.seed = 1;
    const agent::Network network = agent::Network::create(spec).value();
    const Counts counts = counts_of(agent::describe_learning(spec, network).value().description);
    EXPECT_LE(counts.dispatches, size.dispatches) << size.hidden << " wide, " << size.brains << " brains";
    EXPECT_LE(counts.barriers, counts.dispatches - 1);
    // Sums that all lanes need, of which SAC has ten in one kernel, share their barriers.
    EXPECT_LE(counts.waits, 4u) << size.hidden << " wide, " << size.brains << " brains";
    // Clip factors are kept, not the clipped gradients.
    if (size.brains == 1) EXPECT_LE(counts.kept, 16) << size.hidden << " wide";
  }
}

}  // namespace
}  // namespace imprint
