// How far a feedback brain trusts what it sees: what it acts by, what it learns from words, and what files
// hold of it, against plain loops in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "plugin/agent/decide/infer_graph.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/updates.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;
using reference::Bindings;

constexpr std::size_t kGoal = 1, kChoice = 3, kActions = 4;  // of pet_spec()
const std::vector<float> kSeen{0.5f, -0.25f, 0.75f};

Numbers numbers(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Usual words of both brains, one after the other: two goals each.
Numbers usual_words() {
  Numbers words;
  for (std::size_t i = 0; i < 2 * 2 * kActions; ++i) words.push_back(static_cast<double>(i) / 16 - 0.5);
  return words;
}

// The heads of an observation that is trusted only so far beyond the usual words.
Numbers trusted(const BrainSpec& spec, const Weights& weights, std::size_t brain, double trust) {
  const Numbers own = forward(spec, weights, numbers(kSeen)), usual = usual_words();
  Numbers heads;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double word = usual[brain * own.size() + i];
    heads.push_back(word + trust * (own[i] - word));
  }
  return heads;
}

TEST(Trust, AgentsThatDoNotExploreActByWhatIsTrusted) {
  const BrainSpec spec = pet_spec(2);
  const auto network = Network::create(spec);
  ASSERT_TRUE(network.ok());
  const InferGraph graph = describe_inference(spec, *network);
  const Numbers trust{0.5, 0.25, 0.75, 0.5};  // of two goals each
  Bindings bindings{{"goal", {1, 1}},
                    {"mask", Numbers(2 * kActions, 1)},
                    {"network.usual_words", usual_words()},
                    {"network.trust", trust}};
  for (int brain = 0; brain < 2; ++brain)
    bindings["observation"].insert(bindings["observation"].end(), kSeen.begin(), kSeen.end());
  for (const double noise : {0.0, 0.125}) {
    bindings["noise"] = {0, noise, 0, -noise, 0, 0, 0, 0};
    const auto outputs = reference::evaluate_all(graph.description.outputs, bindings);
    for (std::uint32_t brain = 0; brain < 2; ++brain) {
      const double trusts = brain == 0 && noise > 0 ? 1 : trust[2 * brain + kGoal];
      const Numbers expected = trusted(spec, weights_of(*network, brain, 2), brain, trusts);
      for (std::size_t choice = 0; choice < kActions; ++choice)
        EXPECT_NEAR(outputs[static_cast<std::size_t>(graph.values)][brain * kActions + choice],
                    expected[kGoal * kActions + choice], 1e-6);
    }
  }
}

// The first brain hears one word; the second hears none.
TEST(Trust, FollowsHowWellGuessesFittedWords) {
  const BrainSpec spec = pet_spec(2);
  const auto network = Network::create(spec);
  ASSERT_TRUE(network.ok());
  const auto graph = describe_learning(spec, *network);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const SampleLayout layout = learner_of(spec).layout(spec);
  Bindings bindings{{"filled", {0, 0}},
                    {"next row", {0, 0}},
                    {"replay", Numbers(std::size_t{2} * spec.replay_capacity * layout.width, 0)},
                    {"rows", Numbers(std::size_t{2} * rows_per_step(spec), -1)},
                    {"wrong", {0.175, 0.3}},
                    {"taken", {8, 8}},
                    {"told.outputs", {0, 0, 0, 0, 5, 5, 5, 5, 0, 0, 0, 0, 5, 5, 5, 5}},
                    {"taken.outputs", {3, 3, 3, 3, 5, 5, 5, 5, 0, 0, 0, 0, 11, 11, 11, 11}},
                    {"agreed.products", {-0.5, -0.5}},
                    {"agreed.squares", {2, 2}},
                    {"network.heard", Numbers(2 * 2 * kActions, 3)},
                    {"network.usual_words", usual_words()}};
  bindings["samples"].assign(bindings["rows"].size() * layout.width, 0);
  bindings["rows"][0] = 0;
  Numbers& word = bindings["samples"];
  std::copy(kSeen.begin(), kSeen.end(), word.begin() + static_cast<std::ptrdiff_t>(layout.observation));
  word[layout.goal] = kGoal;
  word[layout.branches] = kChoice;
  word[layout.target] = 1;
  word[layout.weight] = 2;
  word[layout.source] = static_cast<double>(LabelSource::feedback);

  std::map<std::string, Numbers> results;
  std::vector<StateVariable> state = network->state();
  state.insert(state.end(), graph->state.begin(), graph->state.end());
  for (const Update& update : graph->description.updates) {
    if (update.by_rows) continue;
    for (const StateVariable& entry : state)
      if (entry.variable.state() == update.target.state())
        results[entry.name] = reference::evaluate(update.value, bindings);
  }
  const Weights weights = weights_of(*network, 0, 2);
  const std::size_t head = kGoal * kActions + kChoice;
  const double usual = usual_words()[head], beyond = forward(spec, weights, numbers(kSeen))[head] - usual;
  const double kept = 1 - 2.0 / 200, products = -0.5 * kept + 2 * (1 - usual) * beyond,
               squares = 2 * kept + 2 * beyond * beyond;
  EXPECT_NEAR(results.at("agreed.products")[0], products, 1e-6);
  EXPECT_NEAR(results.at("agreed.squares")[0], squares, 1e-6);
  const double fitted = std::clamp(2 * (products + 1.5) / (squares + 3), 0.0, 1.0);
  const double doubt = 0.5 * (1 - fitted);  // half of what it is of a careless person
  EXPECT_NEAR(results.at("trust")[0], 1 - 0.25 * doubt, 1e-6) << "most was rewards";
  EXPECT_NEAR(results.at("trust")[1], 1 - doubt, 1e-6);
  EXPECT_EQ(results.at("agreed.products")[1], -0.5);
  const double others = 2 * (-0.5 + 1.5) / (2 + 3);
  EXPECT_NEAR(results.at("trust")[2], others, 1e-6);
  EXPECT_NEAR(results.at("trust")[3], 1 - 0.5 * (1 - others), 1e-6);
  const Numbers before = usual_words();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double way = i == head ? 2.0 / (3 + 2 + 2) : 0;
    EXPECT_NEAR(results.at("usual_words")[i], before[i] + way * (1 - before[i]), 1e-6);
    EXPECT_NEAR(results.at("heard")[i], i == head ? 5 : 3, 1e-6);
  }
}

std::vector<std::byte> bytes_of(const Numbers& values) {
  const std::vector<float> floats(values.begin(), values.end());
  const auto bytes = std::as_bytes(std::span(floats));
  return {bytes.begin(), bytes.end()};
}

Numbers numbers_of(std::span<const std::byte> bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return numbers(floats);
}

class SavedTrustTest : public ::testing::Test {
 protected:
  SavedTrustTest() {
    const LearnGraph graph = describe_learning(spec, network).value();
    variables = network.state();
    variables.insert(variables.end(), graph.state.begin(), graph.state.end());
    host.draws.resize(spec.agent_capacity());
    host.replay = ReplayState::empty(spec);
  }
  enum class Written { now, before_trust, by_usual_features };
  // A file of a brain that trusts so far.
  std::vector<std::byte> file(const Numbers& trust, Written library = Written::now) {
    std::vector<StateVariable> written;
    std::vector<std::vector<std::byte>> contents;
    for (const StateVariable& entry : variables) {
      if (library == Written::before_trust && entry.otherwise) continue;
      const SharedBytes& initial = entry.variable.state()->initial;
      written.push_back(entry);
      if (library == Written::by_usual_features && entry.name == kUsualName) written.back().name = "usual";
      if (entry.name == kReplayName && !memory.empty()) {
        contents.push_back(bytes_of(memory));
        continue;
      }
      if (entry.name == kHeardName) {
        contents.push_back(bytes_of(Numbers(2 * 2 * kActions, 400)));
        continue;
      }
      contents.push_back(entry.name == kTrustName   ? bytes_of(trust)
                         : entry.name == kUsualName ? bytes_of(usual_words())
                                                    : std::vector(initial.begin(), initial.end()));
    }
    const std::vector<std::span<const std::byte>> spans(contents.begin(), contents.end());
    return encode_brain(spec, written, host, spans).value();
  }

  BrainSpec spec = pet_spec(2);
  Network network = Network::create(spec).value();
  std::vector<StateVariable> variables;
  HostState host;
  Numbers memory;  // of the file
};

TEST_F(SavedTrustTest, WeightsAloneActAsTheBrainDid) {
  const Numbers trust{0.5, 0.25, 0.75, 1};
  BrainSpec acting = spec;
  acting.learner = LearnerKind::none;
  const std::vector<StateVariable> taken = Network::create(acting).value().state();
  const auto contents = decode_weights(file(trust), acting, taken);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  for (std::uint32_t brain = 0; brain < 2; ++brain) {
    Weights weights;
    for (const std::vector<std::byte>& content : *contents) {
      const Numbers all = numbers_of(content);
      const auto size = static_cast<std::ptrdiff_t>(all.size() / 2);
      weights.emplace_back(all.begin() + brain * size, all.begin() + (brain + 1) * size);
    }
    const Numbers found = forward(spec, weights, numbers(kSeen));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double of_goal = trust[2 * brain + i / kActions];
      EXPECT_NEAR(found[i], trusted(spec, weights_of(network, brain, 2), brain, of_goal)[i], 1e-6);
    }
  }
}

// A learner goes on from weights that act as the file's brain did, and so trusts them whole.
TEST_F(SavedTrustTest, ALearnerTrustsWeightsThatItTakes) {
  const auto contents = decode_weights(file({0.25, 0.5, 0.5, 0.5}), spec, variables);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].name == kTrustName) EXPECT_EQ((*contents)[i], bytes_of({1, 1, 1, 1}));
    if (variables[i].name == "agreed.squares") EXPECT_EQ((*contents)[i], bytes_of({0, 0}));
  }
}

// Their usual words are those that they remember, in the order in which they heard them. Choices that they
// remember no word about follow the next one as those of a new brain do.
TEST_F(SavedTrustTest, BrainsOfOlderLibrariesHearWhatTheyRememberAgain) {
  const SampleLayout layout = learner_of(spec).layout(spec);
  const std::size_t capacity = spec.replay_capacity;
  memory.assign(2 * capacity * layout.width, 0);
  Numbers heard(2 * 2 * kActions, 0), usual(2 * 2 * kActions, -0.3);
  host.replay.filled = {static_cast<std::int32_t>(capacity), 2};  // a whole ring, and one just begun
  host.replay.next = {5, 2};
  for (std::size_t p = 0; p < 2; ++p)
    for (std::size_t k = 0; k < (p == 0 ? capacity : 2); ++k) {
      double* row = memory.data() + (p * capacity + (p == 0 ? (5 + k) % capacity : k)) * layout.width;
      const std::size_t goal = p == 0 && k % 7 > 0 ? 0 : kGoal, choice = k % 3;
      const double target = k % 5 == 0 ? -1 : 1, weight = 0.5 + static_cast<double>(k % 2);
      row[layout.goal] = static_cast<double>(goal);
      row[layout.branches] = static_cast<double>(choice);
      row[layout.target] = target;
      row[layout.weight] = weight;
      const LabelSource source = k % 4 == 3   ? LabelSource::reward
                                 : k % 4 == 2 ? LabelSource::demonstration
                                              : LabelSource::feedback;
      row[layout.source] = static_cast<double>(source);
      if (source == LabelSource::reward) continue;
      const std::size_t word = (p * 2 + goal) * kActions + choice;
      usual[word] += weight * (target - usual[word]) / (std::min(heard[word], 50.0) + weight + 2);
      heard[word] += weight;
    }
  for (const Written library : {Written::before_trust, Written::by_usual_features}) {
    const auto loaded = decode_brain(file({0.25, 0.5, 0.5, 0.5}, library), spec, variables);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].name != kHeardName && variables[i].name != kUsualName) continue;
      const Numbers found = numbers_of(loaded->state[i]),
                    &expected = variables[i].name == kHeardName ? heard : usual;
      for (std::size_t word = 0; word < expected.size(); ++word)
        EXPECT_NEAR(found[word], expected[word], 1e-5) << variables[i].name << " " << word;
    }
  }
  const auto loaded = decode_brain(file({0.25, 0.5, 0.5, 0.5}), spec, variables);
  ASSERT_TRUE(loaded.ok());
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (variables[i].name == kHeardName)
      EXPECT_EQ(numbers_of(loaded->state[i])[0], 400) << "a file with usual words stays as it is";
}

TEST_F(SavedTrustTest, BrainsOfOlderLibrariesTrustWhatTheySee) {
  for (const Written library : {Written::before_trust, Written::by_usual_features}) {
    const std::vector<std::byte> saved = file({0.25, 0.5, 0.5, 0.5}, library);
    const auto loaded = decode_brain(saved, spec, variables);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].name == kTrustName) EXPECT_EQ(loaded->state[i], bytes_of({1, 1, 1, 1}));
      if (variables[i].name == kUsualName) {
        for (const double word : numbers_of(loaded->state[i]))
          EXPECT_NEAR(word, -0.3, 1e-6) << "1 of 4 choices";
      }
    }
    BrainSpec acting = spec;
    acting.learner = LearnerKind::none;
    EXPECT_TRUE(decode_weights(saved, acting, Network::create(acting).value().state()).ok());
  }
}

}  // namespace
}  // namespace imprint::agent
