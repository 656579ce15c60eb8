// Sentences of two kinds: letters become vectors, a GRU reads them, its last state decides.

#include <algorithm>
#include <random>

#include "examples.h"

namespace examples {

using namespace imprint;

namespace {

constexpr std::int64_t kSteps = 32;

// "x" int32 [32]: letters, 0 after the end; "label" int32 []: 1 if the sentence praises, else 0. A "not"
// turns the meaning.
training::DatasetRef opinions(std::int64_t count, std::uint64_t seed, const training::Alphabet& letters) {
  static constexpr const char* kThings[] = {"the game", "this map", "the boss", "her pet"};
  static constexpr const char* kGood[] = {"great", "fun", "lovely", "clever"};
  static constexpr const char* kBad[] = {"dull", "unfair", "ugly", "broken"};
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  HostTensor x{DType::int32, {count, kSteps}, {}, {}}, label{DType::int32, {count}, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const bool good = random() % 2 == 0, turned = random() % 2 == 0;
    const std::string sentence = std::string(kThings[random() % 4]) + (turned ? " is not " : " is ") +
                                 (good ? kGood : kBad)[random() % 4];
    std::vector<std::int32_t> row = letters.encode(sentence);
    for (std::int32_t& letter : row) ++letter;
    row.resize(kSteps);
    x.ints.insert(x.ints.end(), row.begin(), row.end());
    label.ints.push_back(good != turned ? 1 : 0);
  }
  return training::in_memory({{"x", std::move(x)}, {"label", std::move(label)}}).value();
}

}  // namespace

Result<Finding> text_class(const Settings& settings) {
  const training::Alphabet letters("abcdefghijklmnopqrstuvwxyz ");
  const std::int64_t count = settings.small ? 600 : 6000, extent = settings.small ? 16 : 64;
  IMPRINT_ASSIGN(training::Loader training,
                 training::Loader::create(opinions(count, 2 * settings.seed, letters),
                                          {.batch = 30, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation,
                 training::Loader::create(opinions(300, 2 * settings.seed + 1, letters), {.batch = 150}));

  const nn::Embedding embedding("letters", letters.size() + 1, extent,
                                {.padding_index = 0, .seed = settings.seed});
  const nn::Recurrent reader = nn::gru("reader", extent, extent, {.seed = settings.seed});
  const nn::Linear verdict("verdict", extent, 2, {.seed = settings.seed});
  nn::Parameters parameters;
  parameters.add("letters", embedding.parameters());
  parameters.add("reader", reader.parameters());
  parameters.add("verdict", verdict.parameters());
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor states = reader(embedding(in[0]), pass);  // [batch, steps, extent]
    const Tensor y = verdict(max(states, {1}));
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  const std::int64_t epochs = settings.small ? 8 : 4;
  IMPRINT_ASSIGN(const training::Outcome outcome,
                 train(settings, model, parameters, std::make_shared<nn::Adam>(parameters),
                       {.epochs = epochs,
                        .rate = nn::Schedule::one_cycle(0.02, epochs * training.batches()),
                        .clip_norm = 1},
                       training, &validation));
  return Finding{.measure = "share of new sentences that are right",
                 .value = outcome.validation.metric("accuracy"),
                 .goal = 0.9,
                 .notes = {"Data: opinions of a small grammar, made up. Half of them say \"not\"."},
                 .interrupted = outcome.interrupted};
}

}  // namespace examples
