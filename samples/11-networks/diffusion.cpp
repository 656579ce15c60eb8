// A diffusion model: the network learns to see pictures through noise, then makes digits from noise alone.
// Ho, Jain, Abbeel, Denoising Diffusion Probabilistic Models, 2020; the walk back without noise: Song, Meng,
// Ermon, Denoising Diffusion Implicit Models, 2021; the schedule: Nichol, Dhariwal, Improved Denoising
// Diffusion Probabilistic Models, 2021.

#include <algorithm>
#include <numbers>

#include "examples.h"

namespace examples {

using namespace imprint;

namespace {

constexpr std::int64_t kPixels = 14 * 14;

// The share of the picture in what the network sees at time t in [0, 1]; the rest is noise.
Tensor signal_at(const Tensor& t) { return square(cos(t * static_cast<float>(std::numbers::pi / 2 * 0.97))); }

// The picture in x at time t [batch, 1], by a residual network of rows of pixels.
struct Denoiser {
  nn::Linear in, out, time;
  std::vector<nn::Linear> layers;
  nn::Parameters parameters;

  Denoiser(std::int64_t wide, std::uint64_t seed)
      : in("in", kPixels, wide, {.seed = seed}),
        out("out", wide, kPixels, {.seed = seed}),
        time("time", 16, wide, {.seed = seed}) {
    parameters.add("in", in.parameters());
    parameters.add("out", out.parameters());
    parameters.add("time", time.parameters());
    for (int i = 0; i < 3; ++i) {
      layers.emplace_back("layers." + std::to_string(i), wide, wide, nn::LinearOptions{.seed = seed});
      parameters.add("layers." + std::to_string(i), layers.back().parameters());
    }
  }
  Tensor operator()(const Tensor& x, const Tensor& t) const {
    const Tensor waves = t * exp2(cast(reshape(arange(8), {1, 8}), DType::float32));
    const Tensor when = time(concat({sin(waves), cos(waves)}, 1));
    Tensor hidden = in(x);
    for (const nn::Linear& layer : layers) hidden = hidden + layer(silu(hidden + when));
    return out(silu(hidden));
  }
};

// Pictures of 28 x 28 in [0, 1] -> [batch, 196] in [-1, 1].
Tensor halved(const Tensor& x) { return 2.0f * flatten(avg_pool(x, {.size = 2}), 1) - 1.0f; }

// From noise to pictures in `steps` steps, which one program repeats.
Result<HostTensor> make_pictures(const Settings& settings, const Denoiser& network, std::int64_t count,
                                 std::int64_t steps) {
  nn::Pass pass("noise", settings.seed);
  const Tensor x = input("x", {count, kPixels}), now = input("now", {1, 1}), next = input("next", {1, 1});
  const Tensor clean = clamp(network(x, expand(now, {count, 1})), -1, 1);
  const Tensor noise = (x - sqrt(signal_at(now)) * clean) / sqrt(clamp_min(1 - signal_at(now), 1e-4));
  const Tensor after = sqrt(signal_at(next)) * clean + sqrt(1 - signal_at(next)) * noise;
  IMPRINT_ASSIGN(Program step,
                 Program::compile(settings.session.runtime(),
                                  {.name = "remove noise", .inputs = {x, now, next}, .outputs = {after}}));
  IMPRINT_ASSIGN(HostTensor pictures, settings.session.evaluate(pass.normal({count, kPixels})));
  for (std::int64_t i = steps; i > 0; --i) {
    const auto at = [&](std::int64_t k) {
      return HostTensor::from({static_cast<float>(k) / static_cast<float>(steps)}, {1, 1});
    };
    const HostTensor given[] = {std::move(pictures), at(i), at(i - 1)};
    IMPRINT_ASSIGN(std::vector<HostTensor> found, settings.session.run(step, given));
    pictures = std::move(found[0]);
  }
  for (float& pixel : pictures.floats) pixel = std::clamp(0.5f + 0.5f * pixel, 0.0f, 1.0f);
  pictures.shape = {count, 14, 14};
  return pictures;
}

}  // namespace

Result<Finding> diffusion(const Settings& settings) {
  IMPRINT_ASSIGN(const Digits digits, load_digits(settings));
  IMPRINT_ASSIGN(
      training::Loader training,
      training::Loader::create(digits.training, {.batch = 100, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(digits.validation, {.batch = 100}));
  const Denoiser network(settings.small ? 128 : 512, settings.seed);
  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    const Tensor clean = halved(in[0]);
    const std::int64_t batch = clean.extent(0);
    // An evaluation has no random numbers of its own: it takes the same ones again and again.
    nn::Pass fixed("fixed", 7);
    nn::Pass& random = pass.trains() ? pass : fixed;
    const Tensor t = random.uniform({batch, 1}), noise = random.normal(clean.shape());
    const Tensor mixed = sqrt(signal_at(t)) * clean + sqrt(1 - signal_at(t)) * noise;
    const Tensor loss = mean(square(network(mixed, t) - clean), 1);
    return training::Computed{loss, {{"share found", 1 - loss / variance(clean, {1})}}};
  };
  const std::int64_t epochs = settings.small ? 40 : 100;
  IMPRINT_ASSIGN(const training::Outcome outcome,
                 train(settings, model, network.parameters, std::make_shared<nn::Adam>(network.parameters),
                       {.epochs = epochs,
                        .rate = nn::Schedule::one_cycle(3e-3, epochs * training.batches()),
                        .clip_norm = 1},
                       training, &validation));
  IMPRINT_ASSIGN(HostTensor pictures, make_pictures(settings, network, 20, 40));
  return Finding{.measure = "share of new pictures that is seen through noise",
                 .value = outcome.validation.metric("share found"),
                 .goal = settings.small ? 0.45 : 0.55,
                 .notes = {digits.note, "The pictures are 14 x 14 pixels, made from noise in 40 steps."},
                 .interrupted = outcome.interrupted,
                 .pictures = std::move(pictures)};
}

}  // namespace examples
