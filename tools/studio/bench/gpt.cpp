// A GPT over characters, trained by the Trainer in data parallel.

#include <atomic>
#include <memory>
#include <vector>

#include "compute/training/trainer.h"
#include "samples/11-networks/examples.h"
#include "tools/studio/bench/bench.h"

namespace imprint::studio {
namespace {

constexpr std::int64_t kSteps = 128, kExtent = 256;

}  // namespace

Result<BenchOutcome> bench_gpt(Session& session, const BenchSettings& settings) {
  const std::string text = examples::write_sentences(20'000, settings.seed);
  const training::Alphabet alphabet(text);
  IMPRINT_ASSIGN(const training::DatasetRef windows, training::token_windows(alphabet.encode(text), kSteps));
  const std::int64_t batch = settings.count > 0 ? settings.count : 16;
  IMPRINT_ASSIGN(training::Loader loader,
                 training::Loader::create(windows, {.batch = batch,
                                                    .shuffle = true,
                                                    .seed = settings.seed,
                                                    .last = training::LastBatch::drop,
                                                    .parts = ranks(),
                                                    .part = rank()}));
  const nn::Embedding letters("letters", alphabet.size(), kExtent,
                              {.values = {nn::Scheme::normal, 0.1}, .seed = settings.seed});
  const nn::TransformerEncoder network("net", 4, kExtent, 8,
                                       {.hidden = 4 * kExtent,
                                        .activation = nn::Activation::gelu,
                                        .norm_first = true,
                                        .rotary = true,
                                        .seed = settings.seed});
  nn::Parameters parameters;
  parameters.add("letters", letters.parameters());
  parameters.add("net", network.parameters());
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = letters.logits(network(letters(in[0]), {.causal = true}, pass));
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none), {}};
  };
  // Some of the same windows, in all processes alike.
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < 256; ++i) some.push_back(i * (windows->size() / 256));
  IMPRINT_ASSIGN(const training::DatasetRef judged, training::subset(windows, std::move(some)));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(judged, {.batch = 16}));

  constexpr std::int64_t kReported = 8;  // batches
  BenchClock clock(settings, kReported * batch);
  std::atomic<bool> stop = false;
  training::TrainerOptions options{.epochs = 1'000'000,
                                   .rate = nn::Schedule::constant(1e-3).warmed_up(20),
                                   .clip_norm = 1,
                                   .seed = settings.seed,
                                   .report_every = kReported,
                                   .report = [&](const training::Report&) { stop = clock.is_over(); },
                                   .stop = &stop,
                                   .process_count = ranks(),
                                   .process_index = rank()};
  if (ranks() > 1) options.all_reduce = all_reduce(settings.compressed);
  if (ranks() > 1 && settings.maps()) options.shared_sums = shared_sums();
  training::Trainer trainer(session, model, parameters, nn::adam_w(parameters), options);
  IMPRINT_CHECK(trainer.fit(loader));
  BenchOutcome outcome = clock.outcome();
  IMPRINT_ASSIGN(const training::Scores scores, trainer.evaluate(validation));
  outcome.score_name = "loss";
  outcome.score = scores.loss;
  return outcome;
}

}  // namespace imprint::studio
