#include <algorithm>
#include <filesystem>

#include "examples.h"

namespace examples {

using namespace imprint;

const std::vector<Example>& all_examples() {
  static const std::vector<Example> all = {
      {"mnist-mlp", "Digits with a multilayer perceptron", mnist_mlp},
      {"mnist-cnn", "Digits with a convolutional network", mnist_cnn},
      {"pictures", "Coloured pictures with a residual network", pictures},
      {"char-gpt", "A GPT that writes letter by letter", char_gpt},
      {"autoencoder", "Digits through 16 numbers and back", autoencoder},
      {"text-class", "Opinions sorted into praise and blame", text_class},
      {"diffusion", "Digits made from noise", diffusion},
      {"gan", "A generator and a critic against each other", gan},
      {"distil", "A large network teaches a small one", distil},
      {"lora", "Fine-tuning to turned digits with LoRA", lora},
  };
  return all;
}

Result<training::Outcome> train(const Settings& settings, training::Model model, const nn::Parameters& state,
                                std::shared_ptr<const nn::Optimiser> optimiser,
                                training::TrainerOptions options, training::Loader& training,
                                training::Loader* validation) {
  if (settings.epochs > 0) options.epochs = settings.epochs;
  if (settings.steps >= 0) {
    options.steps = settings.steps;
    const std::int64_t enough = (settings.steps + training.batches() - 1) / training.batches();
    options.epochs = settings.epochs > 0 ? std::min(settings.epochs, enough) : enough;
  }
  options.seed = settings.seed;
  options.report = settings.report;
  options.report_every = std::max<std::int64_t>(1, training.batches() / 20);
  options.folder = settings.folder;
  options.stop = settings.stop;
  options.save = settings.save;
  training::Trainer trainer(settings.session, std::move(model), state, std::move(optimiser), options);
  if (settings.resume)
    IMPRINT_CHECK(trainer.load((std::filesystem::path(settings.folder) / "last.safetensors").string()));
  return trainer.fit(training, validation);
}

}  // namespace examples
