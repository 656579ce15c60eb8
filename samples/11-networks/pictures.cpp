// A residual network on coloured pictures that are turned, flipped, recoloured and cut while it trains. With
// --data FOLDER: PNG and JPEG files in one folder per class.

#include <cmath>
#include <random>

#include "examples.h"

namespace examples {

using namespace imprint;

namespace {

struct Pictures {
  training::DatasetRef training, validation;
  std::int64_t classes = 0;
  std::string note;
};

// Discs, squares, triangles, crosses and rings of light colours on dark grounds, under noise.
training::DatasetRef draw_figures(std::int64_t count, std::int64_t side, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  HostTensor x{DType::float32, {count, 3, side, side}, {}, {}}, label{DType::int32, {count}, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto figure = static_cast<std::int32_t>(random() % 5);
    label.ints.push_back(figure);
    const double size = between(0.6, 0.9), left = between(-0.2, 0.2), top = between(-0.2, 0.2),
                 turn = between(-0.5, 0.5), noise = between(0, 0.3);
    const auto covers = [&](double across, double down) {
      const double u = ((across - left) * std::cos(turn) + (down - top) * std::sin(turn)) / size,
                   v = ((down - top) * std::cos(turn) - (across - left) * std::sin(turn)) / size;
      const double most = std::fmax(std::fabs(u), std::fabs(v)), away = std::hypot(u, v);
      switch (figure) {
        case 0:
          return away < 0.9;
        case 1:
          return most < 0.8;
        case 2:
          return v < 0.7 && v > 2 * std::fabs(u) - 0.9;
        case 3:
          return most < 0.9 && std::fmin(std::fabs(u), std::fabs(v)) < 0.28;
        default:
          return away < 0.95 && away > 0.55;
      }
    };
    for (int channel = 0; channel < 3; ++channel) {
      const double ground = between(0, 0.5), ink = ground + between(0.3, 0.5);
      for (std::int64_t pixel = 0; pixel < side * side; ++pixel) {
        const double half = static_cast<double>(side) / 2;
        const bool inside = covers((static_cast<double>(pixel % side) + 0.5 - half) / half,
                                   (static_cast<double>(pixel / side) + 0.5 - half) / half);
        const double value = (inside ? ink : ground) + between(-noise, noise);
        x.floats.push_back(static_cast<float>(std::fmin(1, std::fmax(0, value))));
      }
    }
  }
  return training::in_memory({{"x", std::move(x)}, {"label", std::move(label)}}).value();
}

Result<Pictures> load_pictures(const Settings& settings, std::int64_t side) {
  if (settings.data.empty()) {
    const std::int64_t count = settings.small ? 1500 : 10'000;
    return Pictures{
        draw_figures(count, side, 2 * settings.seed), draw_figures(count / 5, side, 2 * settings.seed + 1), 5,
        "Data: " + std::to_string(count) +
            " figures that a generator draws. With --data FOLDER, pictures in a folder per class."};
  }
  IMPRINT_ASSIGN(const std::vector<std::string> names, training::class_names(settings.data));
  IMPRINT_ASSIGN(training::DatasetRef all,
                 training::picture_folder(settings.data, {.height = side, .width = side}));
  IMPRINT_ASSIGN(const training::Parts parts, training::split(std::move(all), 0.8, settings.seed));
  return Pictures{parts.first, parts.second, static_cast<std::int64_t>(names.size()),
                  "Data: pictures of " + std::to_string(names.size()) + " classes in " + settings.data};
}

// relu(shortcut(x) + norm(conv(relu(norm(conv(x)))))), as torchvision's BasicBlock, with its names.
struct Block {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm bn1, bn2;
  nn::Sequential downsample;

  Block(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t stride, std::uint64_t seed)
      : conv1(name + ".conv1", in, out, 3, {.stride = stride, .padding = 1, .bias = false, .seed = seed}),
        conv2(name + ".conv2", out, out, 3, {.padding = 1, .bias = false, .seed = seed}),
        bn1(name + ".bn1", out),
        bn2(name + ".bn2", out),
        downsample(name + ".downsample") {
    if (stride == 1 && in == out) return;
    downsample.add<nn::Conv2d>(in, out, 1, nn::ConvOptions{.stride = stride, .bias = false, .seed = seed});
    downsample.add<nn::BatchNorm>(out);
  }
  Tensor operator()(const Tensor& x, nn::Pass& pass) const {
    const Tensor y = bn2(conv2(relu(bn1(conv1(x, pass), pass)), pass), pass);
    return relu(y + downsample(x, pass));
  }
  nn::Parameters parameters() const {
    return nn::parameters_of("conv1", conv1, "bn1", bn1, "conv2", conv2, "bn2", bn2, "downsample",
                             downsample);
  }
  nn::Parameters buffers() const { return nn::buffers_of("bn1", bn1, "bn2", bn2, "downsample", downsample); }
  static constexpr std::string_view kKind = "Block";
};

}  // namespace

Result<Finding> pictures(const Settings& settings) {
  const std::int64_t side = settings.small ? 16 : 32, width = settings.small ? 8 : 32;
  IMPRINT_ASSIGN(const Pictures data, load_pictures(settings, side));
  IMPRINT_ASSIGN(
      training::Loader training,
      training::Loader::create(data.training,
                               {.batch = settings.small ? 20 : 64, .shuffle = true, .seed = settings.seed}));
  IMPRINT_ASSIGN(training::Loader validation, training::Loader::create(data.validation, {.batch = 100}));

  const std::uint64_t seed = settings.seed;
  nn::Sequential network("resnet");
  network.add<nn::Conv2d>(3, width, 3, nn::ConvOptions{.padding = 1, .bias = false, .seed = seed});
  network.add<nn::BatchNorm>(width).activation(nn::Activation::relu);
  network.add<Block>(width, width, 1, seed).add<Block>(width, 2 * width, 2, seed);
  network.add<Block>(2 * width, 4 * width, 2, seed).add(nn::GlobalAvgPool());
  network.linear(4 * width, data.classes, {.seed = seed});

  const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
    Tensor x = training::random_flip(in[0], pass);
    x = training::random_affine(x, pass, {.turn = 15, .least = 0.9, .most = 1.1, .shift = 0.05});
    x = training::random_colour(x, pass, {.brightness = 0.2, .contrast = 0.2, .saturation = 0.2});
    x = training::normalise(training::random_cutout(x, pass, side / 8), {0.5f, 0.5f, 0.5f},
                            {0.3f, 0.3f, 0.3f});
    const Tensor y = network(x, pass);
    return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
                              {{"accuracy", training::accuracy(y, in[1])}}};
  };
  const std::int64_t epochs = settings.small ? 4 : 12;
  IMPRINT_ASSIGN(const training::Outcome outcome,
                 train(settings, model, training::state_of(network),
                       std::make_shared<nn::Adam>(nn::adam_w(network.parameters())),
                       {.epochs = epochs, .rate = nn::Schedule::one_cycle(0.01, epochs * training.batches())},
                       training, &validation));
  return Finding{.measure = "share of new pictures that are right",
                 .value = outcome.validation.metric("accuracy"),
                 .goal = settings.data.empty() ? 0.9 : 0.0,
                 .notes = {data.note},
                 .interrupted = outcome.interrupted};
}

}  // namespace examples
