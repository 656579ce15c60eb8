// The shortest of all: 784 pixels, two hidden layers, ten classes.

#include "examples.h"

namespace examples {

using namespace imprint;

Result<Finding> mnist_mlp(const Settings& settings) {
  IMPRINT_ASSIGN(const Digits digits, load_digits(settings));
  IMPRINT_ASSIGN(
      training::Loader training,
      training::Loader::create(digits.training, {.batch = 128, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(digits.validation, {.batch = 250}));

  const std::int64_t wide = settings.small ? 128 : 512;
  const nn::Sequential network = nn::mlp("mlp", {784, wide, wide, 10}, {.seed = settings.seed});
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = network(flatten(in[0], 1), pass);
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  const std::int64_t epochs = settings.small ? 5 : 3;
  IMPRINT_ASSIGN(
      const training::Outcome outcome,
      train(settings, model, network.parameters(), std::make_shared<nn::Adam>(network.parameters()),
            {.epochs = epochs, .rate = nn::Schedule::one_cycle(4e-3, epochs * training.batches())}, training,
            &validation));
  return Finding{.measure = "share of new digits that are right",
                 .value = outcome.validation.metric("accuracy"),
                 .goal = settings.small ? 0.85 : 0.97,
                 .notes = {digits.note},
                 .interrupted = outcome.interrupted};
}

}  // namespace examples
