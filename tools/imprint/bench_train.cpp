// Suite train: a Trainer's epochs: digits, with the data on the device and with batches that are uploaded,
// and a GPT. gpu is the step's program alone, wall an epoch's time per step: their difference is time in
// which the GPU is idle.

#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/modules/transformer.h"
#include "compute/training/metrics.h"
#include "compute/training/trainer.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

// Noise of MNIST's shape, with a class each.
Result<training::DatasetRef> noise_digits(std::int64_t count) {
  HostTensor x{DType::float32, {count, 1, 28, 28}, {}, {}}, label{DType::int32, {count}, {}, {}};
  Noise noise;
  x.floats.resize(static_cast<std::size_t>(count * 784));
  for (float& pixel : x.floats) pixel = noise.next();
  for (std::int64_t i = 0; i < count; ++i) label.ints.push_back(static_cast<std::int32_t>(noise.next() * 10));
  return training::in_memory({{"x", std::move(x)}, {"label", std::move(label)}});
}

bool is_slow(BenchDevice& device) {
  return device.look || device.computer.on_cpu() ||
         device.context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

// Trains for some epochs, then measures the program of a step.
Result<BenchResult> run_trainer(BenchDevice& device, const std::string& name, training::Loader& loader,
                                const training::Model& model, const nn::Parameters& parameters,
                                training::TrainerOptions options) {
  std::vector<double> step_us;
  options.report_every = std::max<std::int64_t>(1, loader.batches() / 20);
  options.report = [&](const training::Report& report) {
    if (report.ends_epoch && report.epoch > 1)
      step_us.push_back(1e6 * report.training.seconds / static_cast<double>(report.batches));
  };
  training::Trainer trainer(device.computer.session(), model, parameters, nn::Adam(parameters), options);
  IMPRINT_CHECK(trainer.fit(loader));
  IMPRINT_ASSIGN(BenchResult result,
                 measure_program(device, *trainer.step(), name + (is_slow(device) ? "/small" : "")));
  result.wall_us = spread(std::move(step_us));
  return result;
}

Result<BenchResult> run_digits(BenchDevice& device, const std::string& name, std::uint64_t resident_bytes) {
  const bool small = is_slow(device);
  constexpr std::int64_t kBatch = 128;
  IMPRINT_ASSIGN(const training::DatasetRef data, noise_digits(small ? 8 * kBatch : 60'000));
  IMPRINT_ASSIGN(training::Loader loader,
                 training::Loader::create(data, {.batch = kBatch, .shuffle = true, .seed = 1}));
  const nn::Sequential network = nn::mlp("mlp", {784, 512, 512, 10}, {.seed = 1});
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = network(flatten(in[0], 1), pass);
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  return run_trainer(device, name, loader, model, network.parameters(),
                     {.epochs = small ? 2 : 12, .rate = 1e-3, .resident_bytes = resident_bytes});
}

// The network of samples/11-networks/char_gpt.cpp, with its dropout, letters in common and clipped gradients.
Result<BenchResult> run_gpt(BenchDevice& device, const std::string& name) {
  const bool small = is_slow(device);
  const std::int64_t layers = small ? 1 : 4, extent = small ? 48 : 256, heads = small ? 2 : 8;
  const std::int64_t steps = small ? 64 : 128, batch = small ? 8 : 16, batches = small ? 2 : 100;
  constexpr std::int64_t kLetters = 26;
  std::vector<std::int32_t> tokens;
  Noise noise;
  for (std::int64_t i = 0; i < batches * batch + steps; ++i)
    tokens.push_back(static_cast<std::int32_t>(noise.next() * kLetters));
  IMPRINT_ASSIGN(const training::DatasetRef data, training::token_windows(std::move(tokens), steps));
  IMPRINT_ASSIGN(training::Loader loader,
                 training::Loader::create(data, {.batch = batch, .shuffle = true, .seed = 1}));
  const nn::Embedding letters("letters", kLetters, extent, {.values = {nn::Scheme::normal, 0.1}, .seed = 1});
  const nn::TransformerEncoder network("net", layers, extent, heads,
                                       {.hidden = 4 * extent,
                                        .dropout = 0.1,
                                        .activation = nn::Activation::gelu,
                                        .norm_first = true,
                                        .rotary = true,
                                        .seed = 1});
  nn::Parameters parameters;
  parameters.add("letters", letters.parameters());
  parameters.add("net", network.parameters());
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor y = letters.logits(network(letters(in[0]), {.causal = true}, pass));
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  return run_trainer(device, name, loader, model, parameters, {.epochs = 3, .rate = 1e-3, .clip_norm = 1});
}

}  // namespace

std::vector<BenchCase> train_cases() {
  std::vector<BenchCase> cases;
  for (const bool is_resident : {true, false}) {
    const std::string name = std::string("train/mlp784/b128/") + (is_resident ? "resident" : "uploaded");
    cases.push_back({name, [=](BenchDevice& device) {
                       return run_digits(device, name, is_resident ? 256ull << 20 : 0);
                     }});
  }
  const std::string gpt = "train/gpt4x256/t128/b16";
  cases.push_back({gpt, [=](BenchDevice& device) { return run_gpt(device, gpt); }});
  return cases;
}

}  // namespace imprint::tools
