// Two convolutions with batch norm, dropout, and pictures that are moved at random while it trains.

#include "examples.h"

namespace examples {

using namespace imprint;

Result<Finding> mnist_cnn(const Settings& settings) {
  IMPRINT_ASSIGN(const Digits digits, load_digits(settings));
  IMPRINT_ASSIGN(
      training::Loader training,
      training::Loader::create(digits.training,
                               {.batch = settings.small ? 32 : 64, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(digits.validation, {.batch = 250}));

  const std::int64_t first = settings.small ? 8 : 32, second = 2 * first;
  nn::Sequential network("cnn");
  network.add<nn::Conv2d>(1, first, 3, nn::ConvOptions{.padding = 1, .seed = settings.seed});
  network.add<nn::BatchNorm>(first).activation(nn::Activation::relu).add(nn::MaxPool());
  network.add<nn::Conv2d>(first, second, 3, nn::ConvOptions{.padding = 1, .seed = settings.seed});
  network.add<nn::BatchNorm>(second).activation(nn::Activation::relu).add(nn::MaxPool());
  network.add(nn::Flatten()).add(nn::Dropout(settings.small ? 0.0 : 0.3));
  network.linear(second * 49, 10, {.seed = settings.seed});

  const std::int64_t moved = settings.small ? 0 : 2;
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = network(training::random_shift(in[0], pass, moved), pass);
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  const std::int64_t epochs = 3;
  IMPRINT_ASSIGN(const training::Outcome outcome,
                 train(settings, model, training::state_of(network),
                       std::make_shared<nn::Adam>(nn::adam_w(network.parameters())),
                       {.epochs = epochs, .rate = nn::Schedule::one_cycle(0.01, epochs * training.batches())},
                       training, &validation));
  return Finding{.measure = "share of new digits that are right",
                 .value = outcome.validation.metric("accuracy"),
                 .goal = settings.small ? 0.9 : 0.985,
                 .notes = {digits.note},
                 .interrupted = outcome.interrupted};
}

}  // namespace examples
