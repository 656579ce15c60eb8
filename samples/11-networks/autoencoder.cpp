// A picture goes through 16 numbers and comes back.

#include "examples.h"

namespace examples {

using namespace imprint;

Result<Finding> autoencoder(const Settings& settings) {
  IMPRINT_ASSIGN(const Digits digits, load_digits(settings));
  IMPRINT_ASSIGN(
      training::Loader training,
      training::Loader::create(digits.training, {.batch = 64, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(digits.validation, {.batch = 250}));

  const std::int64_t wide = settings.small ? 96 : 256;
  const nn::Sequential network = nn::mlp("autoencoder", {784, wide, 16, wide, 784},
                                         {.activation = nn::Activation::gelu, .seed = settings.seed});
  const auto logits = [&](const Tensor& x, nn::Pass& pass) {
    return reshape(network(flatten(x, 1), pass), x.shape());
  };
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = logits(in[0], pass);
    return training::Computed{nn::binary_cross_entropy_with_logits(y, in[0], nn::Reduction::none),
                              {{"PSNR", training::peak_signal_to_noise(sigmoid(y), in[0])},
                               {"SSIM", training::structural_similarity(sigmoid(y), in[0])}}};
  };
  const std::int64_t epochs = settings.small ? 6 : 10;
  IMPRINT_ASSIGN(
      const training::Outcome outcome,
      train(settings, model, network.parameters(), std::make_shared<nn::Adam>(network.parameters()),
            {.epochs = epochs, .rate = nn::Schedule::one_cycle(4e-3, epochs * training.batches())}, training,
            &validation));

  // Ten pictures of the validation, and below them what came back.
  validation.start(0);
  training::Batch batch;
  IMPRINT_CHECK(validation.next(batch));
  std::vector<float> ten(batch.fields[0].floats.begin(), batch.fields[0].floats.begin() + 7840);
  nn::Pass evaluation;
  const Tensor x = Tensor::from(ten, {10, 1, 28, 28});
  IMPRINT_ASSIGN(HostTensor pictures, settings.session.evaluate(reshape(
                                          concat({x, sigmoid(logits(x, evaluation))}, 0), {20, 28, 28})));
  return Finding{.measure = "structural similarity of new digits",
                 .value = outcome.validation.metric("SSIM"),
                 .goal = settings.small ? 0.3 : 0.6,
                 .notes = {digits.note},
                 .interrupted = outcome.interrupted,
                 .pictures = std::move(pictures)};
}

}  // namespace examples
