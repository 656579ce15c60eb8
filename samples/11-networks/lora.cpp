// A network that reads upright digits learns to read turned ones: its own weights stay, small matrices beside
// them are trained and merged.

#include "examples.h"

namespace examples {

using namespace imprint;

Result<Finding> lora(const Settings& settings) {
  const std::int64_t count = settings.small ? 2000 : 20'000;
  const training::LoaderOptions shuffled{.batch = 64, .shuffle = true, .seed = settings.seed};
  constexpr double kTurned = 1.2;  // radians
  IMPRINT_ASSIGN(training::Loader upright, training::Loader::create(draw_digits(count, 1), shuffled));
  IMPRINT_ASSIGN(training::Loader turned, training::Loader::create(draw_digits(count, 2, kTurned), shuffled));
  IMPRINT_ASSIGN(training::Loader new_turned,
                 training::Loader::create(draw_digits(1000, 3, kTurned), {.batch = 250}));

  const nn::Sequential network = nn::mlp("base", {784, 128, 128, 10}, {.seed = settings.seed});
  const nn::Lora tuned("tuned", network.parameters().matching("*.weight"),
                       {.rank = 8, .seed = settings.seed});
  const auto scored = [](const Tensor& y, const Tensor& label) {
    return training::Computed{nn::cross_entropy(y, label, nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, label)}}};
  };
  const training::Model base = [&](std::span<const Tensor> in, nn::Pass& pass) {
    return scored(network(flatten(in[0], 1), pass), in[1]);
  };
  const training::Model adapted = [&](std::span<const Tensor> in, nn::Pass& pass) {
    return scored(tuned(network(flatten(in[0], 1), pass)), in[1]);
  };

  // The base network learns upright digits first, without a folder.
  training::Trainer before(settings.session, base, network, nn::Adam(network.parameters()),
                           {.epochs = 4, .rate = nn::Schedule::one_cycle(4e-3, 4 * upright.batches())});
  IMPRINT_CHECK(before.fit(upright));
  IMPRINT_ASSIGN(const training::Scores untuned, before.evaluate(new_turned));

  nn::Parameters state = network.parameters();
  state.add("lora", tuned.parameters());
  const std::int64_t epochs = settings.small ? 6 : 4;
  IMPRINT_ASSIGN(const training::Outcome outcome,
                 train(settings, adapted, state, std::make_shared<nn::Adam>(tuned.parameters()),
                       {.epochs = epochs, .rate = nn::Schedule::one_cycle(8e-3, epochs * turned.batches())},
                       turned, &new_turned));
  IMPRINT_ASSIGN(Program merge,
                 Program::compile(settings.session.runtime(), {.name = "merge", .updates = tuned.merge()}));
  IMPRINT_CHECK(settings.session.run(merge));
  IMPRINT_ASSIGN(const training::Scores merged, before.evaluate(new_turned));
  return Finding{
      .measure = "share of new turned digits that are right, after the merge",
      .value = merged.metric("accuracy"),
      .goal = settings.small ? 0.7 : 0.9,
      .notes = {"Data: digits that a generator draws; the turned ones lean by " + std::to_string(kTurned) +
                    " radians.",
                "Before tuning: " + std::to_string(untuned.metric("accuracy")) +
                    " of the turned digits are right.",
                "Trained: " + std::to_string(tuned.parameters().element_count()) + " numbers beside " +
                    std::to_string(network.parameters().element_count()) + " that stay."},
      .interrupted = outcome.interrupted};
}

}  // namespace examples
