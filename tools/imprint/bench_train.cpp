// Suite train: a Trainer's epochs, with the data on the device and with batches that are uploaded. gpu is the
// step's program alone, wall an epoch's time per step: their difference is time in which the GPU is idle.

#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/sequential.h"
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

Result<BenchResult> run_trainer(BenchDevice& device, const std::string& name, std::uint64_t resident_bytes) {
  const bool small = device.look || device.computer.on_cpu() ||
                     device.context().device().capabilities().device_type == VK_PHYSICAL_DEVICE_TYPE_CPU;
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
  std::vector<double> step_us;
  training::TrainerOptions options{.epochs = small ? 2 : 12, .rate = 1e-3};
  options.resident_bytes = resident_bytes;
  options.report_every = std::max<std::int64_t>(1, loader.batches() / 20);
  options.report = [&](const training::Report& report) {
    if (report.ends_epoch && report.epoch > 1)
      step_us.push_back(1e6 * report.training.seconds / static_cast<double>(report.batches));
  };
  training::Trainer trainer(device.computer.session(), model, network, nn::Adam(network.parameters()),
                            options);
  IMPRINT_CHECK(trainer.fit(loader));
  IMPRINT_ASSIGN(BenchResult result,
                 measure_program(device, *trainer.step(), name + (small ? "/small" : "")));
  result.wall_us = spread(std::move(step_us));
  return result;
}

}  // namespace

std::vector<BenchCase> train_cases() {
  std::vector<BenchCase> cases;
  for (const bool is_resident : {true, false}) {
    const std::string name = std::string("train/mlp784/b128/") + (is_resident ? "resident" : "uploaded");
    cases.push_back({name, [=](BenchDevice& device) {
                       return run_trainer(device, name, is_resident ? 256ull << 20 : 0);
                     }});
  }
  return cases;
}

}  // namespace imprint::tools
