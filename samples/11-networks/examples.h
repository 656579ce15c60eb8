#pragma once
// Networks that people expect of a library, each a short program of its own. `imprint train NAME` runs them.

#include <imprint/compute.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace examples {

struct Settings {
  imprint::Session& session;
  bool small = false;       // a form that takes seconds on a CPU
  std::uint64_t seed = 1;   // of weights, data and order
  std::string data = {};    // a folder of MNIST or of pictures, or a text; empty: data are made up
  std::string folder = {};  // for checkpoints and curves; empty: none
  bool resume = false;      // from the folder's last checkpoint
  std::int64_t epochs = 0;  // 0: as many as the example wants
  std::int64_t steps = -1;  // of the optimiser; 0: only the first checkpoint; -1: as epochs say
  std::function<void(const imprint::training::Report&)> report = {};
  const std::atomic<bool>* stop = nullptr;
  std::atomic<bool>* save = nullptr;  // asks for a checkpoint
};

// The result of an example.
struct Finding {
  std::string measure;  // such as "accuracy of new digits"
  double value = 0;
  double goal = 0;                      // of the small form too; a lower value is a failed run
  std::vector<std::string> notes = {};  // about the data, and what was generated
  bool interrupted = false;
  imprint::HostTensor pictures = {};  // [count, height, width] in [0, 1], or empty
};

struct Example {
  const char* name;
  const char* title;
  imprint::Result<Finding> (*run)(const Settings& settings);
};
const std::vector<Example>& all_examples();

imprint::Result<Finding> mnist_mlp(const Settings& settings);
imprint::Result<Finding> mnist_cnn(const Settings& settings);
imprint::Result<Finding> pictures(const Settings& settings);
imprint::Result<Finding> char_gpt(const Settings& settings);
imprint::Result<Finding> autoencoder(const Settings& settings);
imprint::Result<Finding> lora(const Settings& settings);
imprint::Result<Finding> text_class(const Settings& settings);
imprint::Result<Finding> diffusion(const Settings& settings);
imprint::Result<Finding> gan(const Settings& settings);
imprint::Result<Finding> distil(const Settings& settings);

// ---- data ----
// Fields "x" float32 [1, 28, 28] in [0, 1] and "label" int32 [].
struct Digits {
  imprint::training::DatasetRef training, validation;
  std::string note;  // where they come from
};
// MNIST of settings.data, else digits that a generator draws.
imprint::Result<Digits> load_digits(const Settings& settings);
// Figures of strokes, turned, sheared, scaled, moved and under noise. turned: radians added to each.
imprint::training::DatasetRef draw_digits(std::int64_t count, std::uint64_t seed, double turned = 0);
// Sentences of a small grammar.
std::string write_sentences(std::int64_t count, std::uint64_t seed);

// ---- the loop ----
// Trains by the options, which get the settings' folder, report and stop. Continues a run if asked to.
imprint::Result<imprint::training::Outcome> train(const Settings& settings, imprint::training::Model model,
                                                  const imprint::nn::Parameters& state,
                                                  std::shared_ptr<const imprint::nn::Optimiser> optimiser,
                                                  imprint::training::TrainerOptions options,
                                                  imprint::training::Loader& training,
                                                  imprint::training::Loader* validation);

}  // namespace examples
