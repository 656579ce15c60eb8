// Updates of several processes that share their minibatches: as one process with all of their rollouts.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;

constexpr std::uint32_t kOwnRows = 8;

BrainSpec shared_spec() {
  BrainSpec spec = pet_spec(2);
  spec.learner = LearnerKind::ppo;
  spec.rollout_steps = kOwnRows;
  spec.batch_size = 4;
  spec.epochs = 2;
  spec.learning_rate = 0.01f;
  spec.discount = 0.75f;
  spec.advantage_decay = 0.5f;
  spec.entropy_coefficient = 0.25f;
  spec.max_gradient_norm = 0.5f;
  spec.max_divergence = 0.5f;
  spec.normalise_observations = spec.normalise_rewards = true;
  return spec;
}

// One process: its graph and the content of its variables.
struct Process {
  BrainSpec spec;
  std::unique_ptr<Network> network;
  LearnGraph graph;
  reference::Bindings state;

  explicit Process(const BrainSpec& of) : spec(of) {
    network = std::make_unique<Network>(Network::create(spec).value());
    graph = describe_learning(spec, *network).value();
  }

  // Rows first, first + 1, ... of each brain's experience.
  void give(std::uint32_t first) {
    const SampleLayout layout = learner_of(spec).layout(spec);
    const std::size_t rows = std::size_t{spec.brain_count} * spec.rollout_steps;
    Numbers& samples = state["samples"];
    samples.assign(rows * layout.width, 0);
    state["rows"].assign(rows, -1);
    state["filled"].assign(spec.brain_count, spec.rollout_steps);
    for (std::uint32_t brain = 0; brain < spec.brain_count; ++brain)
      for (std::uint32_t k = 0; k < spec.rollout_steps; ++k) {
        const std::uint32_t i = 100 * brain + first + k;
        double* row = samples.data() + (std::size_t{brain} * spec.rollout_steps + k) * layout.width;
        for (std::uint32_t c = 0; c < 3; ++c) {
          row[layout.observation + c] = 3 * draw(3 * i + c, 2) + c;
          row[layout.next_observation + c] = 3 * draw(3 * i + c, 4) + c;
        }
        row[layout.goal] = i % 2;
        row[layout.next_goal] = i / 2 % 2;
        row[layout.branches] = i % 4;
        row[layout.reward] = 5 * draw(i, 5);
        row[layout.log_probability] = std::log(0.25) + 0.1 * draw(i, 6);
        const std::uint32_t own = k % kOwnRows;  // the same trajectories in one process and in many
        row[layout.begins] = own % 5 == 4 || own == 0;
        row[layout.continues] = own % 5 == 3 ? 0 : 1;
        for (std::uint32_t c = 0; c < 4; ++c) row[layout.allowed + c] = 1;
      }
  }
};

// An update of all processes, part by part; all_reduce by hand.
void update(std::vector<Process*> processes) {
  const ProgramSequence& sequence = processes[0]->graph.sequence;
  const auto run = [&](std::size_t part) {
    for (Process* process : processes)
      reference::run_updates(process->graph.sequence.parts[part].description.updates, process->state);
    for (const Variable& summed : sequence.parts[part].summed) {
      Numbers sums(static_cast<std::size_t>(summed.shape().element_count()), 0.0);
      for (Process* process : processes)
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += process->state.at(summed.name())[i];
      for (Process* process : processes) process->state[summed.name()] = sums;
    }
  };
  auto rounds = sequence.rounds.begin();
  for (std::size_t i = 0; i < sequence.parts.size();) {
    const bool together = rounds != sequence.rounds.end() && rounds->first == i;
    const std::size_t count = together ? rounds->parts : 1;
    for (std::uint32_t round = 0; round < (together ? rounds->repeat : 1); ++round)
      for (std::size_t part = i; part < i + count; ++part)
        for (std::uint32_t turn = 0; turn < sequence.parts[part].repeat; ++turn) run(part);
    i += count;
    if (together) ++rounds;
  }
}

void expect_equal_state(const Process& found, const Process& expected) {
  std::vector<StateVariable> all = expected.network->state();
  all.insert(all.end(), expected.graph.state.begin(), expected.graph.state.end());
  double moved = 0;
  for (const StateVariable& entry : all) {
    const std::string name = entry.variable.name();
    const auto wanted = expected.state.find(name), has = found.state.find(name);
    if (wanted == expected.state.end()) continue;
    ASSERT_NE(has, found.state.end()) << name;
    for (std::size_t i = 0; i < wanted->second.size(); ++i) {
      EXPECT_NEAR(has->second[i], wanted->second[i], 1e-9 * (1 + std::abs(wanted->second[i])))
          << name << "[" << i << "]";
      moved += std::abs(wanted->second[i]);
    }
  }
  EXPECT_GT(moved, 0);
}

// Two updates: the first begins from fresh moments.
void expect_as_one(std::uint32_t process_count, const BrainSpec& own) {
  BrainSpec all = own;
  all.rollout_steps = process_count * own.rollout_steps;
  all.batch_size = process_count * own.batch_size;
  all.shards = process_count;
  Process one(all);
  std::vector<std::unique_ptr<Process>> many;
  std::vector<Process*> list;
  for (std::uint32_t index = 0; index < process_count; ++index) {
    BrainSpec spec = own;
    spec.process_count = process_count;
    spec.process_index = index;
    spec.all_reduce = [](std::span<float>) {};
    many.push_back(std::make_unique<Process>(spec));
    list.push_back(many.back().get());
  }
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    one.give(50 * turn);
    for (std::uint32_t index = 0; index < process_count; ++index)
      many[index]->give(50 * turn + index * own.rollout_steps);
    update({&one});
    update(list);
    for (const auto& process : many) expect_equal_state(*process, one);
  }
}

TEST(SharedUpdate, OfTwoIsThatOfOne) { expect_as_one(2, shared_spec()); }
TEST(SharedUpdate, OfThreeIsThatOfOne) { expect_as_one(3, shared_spec()); }

TEST(SharedUpdate, WithoutNormalisationIsThatOfOne) {
  BrainSpec spec = shared_spec();
  spec.normalise_observations = spec.normalise_rewards = false;
  spec.max_divergence = 0;
  spec.clip_values = true;
  expect_as_one(2, spec);
}

TEST(SharedUpdate, OfOneAddsNothingUp) {
  const Process one(shared_spec());
  for (const ProgramPart& part : one.graph.sequence.parts) EXPECT_TRUE(part.summed.empty());
  EXPECT_TRUE(one.graph.sequence.rounds.empty());
}

}  // namespace
}  // namespace imprint::agent
