// A generator and a critic against each other: points that must look as if drawn from a ring of eight spots.
// One program trains both; the data are drawn on the device. Goodfellow et al., Generative Adversarial Nets,
// 2014.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <set>

#include "examples.h"

namespace examples {

using namespace imprint;

namespace {

constexpr std::int64_t kBatch = 128, kNoise = 8;
constexpr float kSpread = 0.08f;

Tensor real_points(nn::Pass& pass) {
  const Tensor spot = floor(pass.uniform({kBatch, 1}) * 8.0f) * static_cast<float>(std::numbers::pi / 4);
  return concat({cos(spot), sin(spot)}, 1) + kSpread * pass.normal({kBatch, 2});
}

// The share of points near a spot, times the share of spots that have points. Draws them too.
double judge(const std::vector<float>& points, HostTensor& picture) {
  constexpr int kSide = 64;
  picture = {DType::float32, {1, kSide, kSide}, std::vector<float>(kSide * kSide), {}};
  std::set<long> spots;
  double near = 0;
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    const double angle = std::atan2(points[i + 1], points[i]) / (std::numbers::pi / 4);
    const long spot = std::lround(angle) & 7;
    const double x = std::cos(static_cast<double>(spot) * std::numbers::pi / 4),
                 y = std::sin(static_cast<double>(spot) * std::numbers::pi / 4);
    if (std::hypot(points[i] - x, points[i + 1] - y) < 4 * kSpread) near += 1, spots.insert(spot);
    const auto pixel = [](float at) {
      return std::clamp(static_cast<int>((at / 1.5f + 1) * kSide / 2), 0, kSide - 1);
    };
    picture.floats[static_cast<std::size_t>(pixel(points[i + 1]) * kSide + pixel(points[i]))] = 1;
  }
  return near / (static_cast<double>(points.size()) / 2) * static_cast<double>(spots.size()) / 8;
}

}  // namespace

Result<Finding> gan(const Settings& settings) {
  if (settings.epochs > 0 || settings.steps >= 0)
    return make_error(ErrorCode::invalid_argument,
                      "gan: found epochs or steps, expected neither. Its length is fixed.");
  const std::int64_t wide = settings.small ? 48 : 128;
  const nn::MlpOptions shape{.activation = nn::Activation::leaky_relu, .seed = settings.seed};
  const nn::Sequential generator = nn::mlp("generator", {kNoise, wide, wide, 2}, shape),
                       critic = nn::mlp("critic", {2, wide, wide, 1}, shape);
  nn::Pass pass("gan", settings.seed);
  const Tensor made = generator(pass.normal({kBatch, kNoise}));
  const Tensor of_real = critic(real_points(pass)), of_made = critic(stop_gradient(made));
  const Tensor ones_there = ones({kBatch, 1}), none = zeros({kBatch, 1});
  const Tensor critic_loss = nn::binary_cross_entropy_with_logits(of_real, ones_there) +
                             nn::binary_cross_entropy_with_logits(of_made, none);
  const Tensor generator_loss = nn::binary_cross_entropy_with_logits(critic(made), ones_there);

  const nn::Adam critic_adam(critic.parameters(), {.beta1 = 0.5}),
      generator_adam(generator.parameters(), {.beta1 = 0.5});
  IMPRINT_ASSIGN(const std::vector<Tensor> down, gradients(critic_loss, critic.parameters().values()));
  IMPRINT_ASSIGN(const std::vector<Tensor> up, gradients(generator_loss, generator.parameters().values()));
  IMPRINT_ASSIGN(std::vector<Update> updates, critic_adam.step(down, 2e-3));
  IMPRINT_ASSIGN(const std::vector<Update> others, generator_adam.step(up, 1e-3));
  updates.insert(updates.end(), others.begin(), others.end());
  pass.finish(updates);
  IMPRINT_ASSIGN(
      Program step,
      Program::compile(settings.session.runtime(),
                       {.name = "both", .outputs = {generator_loss, critic_loss}, .updates = updates}));
  if (!settings.folder.empty()) IMPRINT_CHECK(training::cut_curves(settings.folder, -1));
  const std::int64_t steps = settings.small ? 1500 : 8000, rounds = 20;
  training::Report report{.epochs = rounds, .batches = steps / rounds, .rate = 1e-3, .ends_epoch = true};
  bool interrupted = false;
  for (report.epoch = 1; report.epoch <= rounds && !interrupted; ++report.epoch) {
    const auto start = std::chrono::steady_clock::now();
    double loss = 0, against = 0;
    for (report.batch = 0; report.batch < report.batches; ++report.batch, ++report.step) {
      IMPRINT_ASSIGN(const std::vector<HostTensor> found, settings.session.run(step));
      loss += found[0].floats[0], against += found[1].floats[0];
    }
    const double count = static_cast<double>(report.batches);
    report.training.loss = loss / count;
    report.training.samples = report.batches * kBatch;
    report.training.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.training.metrics = {{"critic's loss", against / count}};
    if (settings.report) settings.report(report);
    if (!settings.folder.empty())
      IMPRINT_CHECK(training::add_curve(settings.folder, {"critic's loss"},
                                        {.epoch = report.epoch,
                                         .step = report.step,
                                         .split = "training",
                                         .rate = 1e-3,
                                         .loss = loss / count,
                                         .metrics = {against / count}}));
    interrupted = settings.stop != nullptr && settings.stop->load();
  }
  nn::Pass last("last", settings.seed);
  IMPRINT_ASSIGN(const HostTensor points, settings.session.evaluate(generator(last.normal({1024, kNoise}))));
  Finding finding{.measure = "share of points at a spot, times the share of spots that are found",
                  .goal = settings.small ? 0.5 : 0.7,
                  .notes = {"Data: a ring of eight spots, drawn on the device. A run cannot be resumed."},
                  .interrupted = interrupted};
  finding.value = judge(points.floats, finding.pictures);
  return finding;
}

}  // namespace examples
