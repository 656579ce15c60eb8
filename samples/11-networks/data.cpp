// Digits and sentences: MNIST's files where they are, else made up.

#include <array>
#include <cmath>
#include <filesystem>
#include <random>

#include "examples.h"

namespace examples {

using namespace imprint;

namespace {

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

// The strokes of each digit, in a square from -1 to 1; y points down.
const std::array<std::vector<Stroke>, 10>& strokes() {
  static const auto arc = [](double x, double y, double wide, double high, double from, double to) {
    Stroke stroke;
    for (int i = 0; i <= 10; ++i) {
      const double angle = from + (to - from) * i / 10;
      stroke.push_back({x + wide * std::cos(angle), y + high * std::sin(angle)});
    }
    return stroke;
  };
  static const std::array<std::vector<Stroke>, 10> all = {{
      {arc(0, 0, 0.6, 0.95, 0, 6.2832)},
      {{{-0.4, -0.5}, {0.1, -0.95}, {0.1, 0.95}}},
      {arc(0, -0.45, 0.55, 0.5, -3.1, 0.6), {{0.45, -0.15}, {-0.6, 0.95}, {0.65, 0.95}}},
      {arc(-0.1, -0.48, 0.6, 0.47, -2.6, 1.5), arc(-0.1, 0.48, 0.65, 0.48, -1.5, 2.6)},
      {{{0.3, 0.95}, {0.3, -0.95}, {-0.6, 0.35}, {0.65, 0.35}}},
      {{{0.6, -0.95}, {-0.45, -0.95}, {-0.5, -0.1}}, arc(-0.05, 0.35, 0.6, 0.58, -2.3, 2.4)},
      {{{0.35, -0.95}, {-0.3, -0.35}, {-0.58, 0.4}}, arc(0, 0.4, 0.58, 0.55, 0, 6.2832)},
      {{{-0.6, -0.9}, {0.6, -0.9}, {-0.1, 0.95}}},
      {arc(0, -0.48, 0.48, 0.46, 0, 6.2832), arc(0, 0.48, 0.58, 0.48, 0, 6.2832)},
      {arc(0, -0.42, 0.55, 0.52, 0, 6.2832), {{0.55, -0.42}, {0.45, 0.3}, {0.1, 0.95}}},
  }};
  return all;
}

double distance_to(const Point& p, const Point& a, const Point& b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double along =
      std::fmin(1, std::fmax(0, ((p.x - a.x) * dx + (p.y - a.y) * dy) / std::fmax(dx * dx + dy * dy, 1e-9)));
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

}  // namespace

training::DatasetRef draw_digits(std::int64_t count, std::uint64_t seed, double turned) {
  std::mt19937 random(static_cast<std::uint32_t>(seed * 2654435761u + 1));
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  HostTensor x{DType::float32, {count, 1, 28, 28}, {}, {}}, label{DType::int32, {count}, {}, {}};
  x.floats.assign(static_cast<std::size_t>(count * 784), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto digit = static_cast<std::int32_t>(random() % 10);
    label.ints.push_back(digit);
    const double angle = between(-0.45, 0.45) + turned, shear = between(-0.4, 0.4), wide = between(5, 9.5),
                 high = between(7, 10.5), left = between(12, 15), top = between(12, 15),
                 thick = between(0.8, 1.7), noise = between(0, 0.35);
    float* picture = x.floats.data() + i * 784;
    const auto placed = [&](const Point& p) {
      const double a = wide * (p.x + shear * p.y) + between(-0.8, 0.8), b = high * p.y + between(-0.8, 0.8);
      return Point{left + a * std::cos(angle) - b * std::sin(angle),
                   top + a * std::sin(angle) + b * std::cos(angle)};
    };
    for (const Stroke& stroke : strokes()[static_cast<std::size_t>(digit)]) {
      Point from = placed(stroke[0]);
      for (std::size_t k = 1; k < stroke.size(); ++k) {
        const Point to = placed(stroke[k]);
        const auto edge = [](double at) { return static_cast<int>(std::fmin(27, std::fmax(0, at))); };
        for (int row = edge(std::fmin(from.y, to.y) - 3); row <= edge(std::fmax(from.y, to.y) + 3); ++row)
          for (int column = edge(std::fmin(from.x, to.x) - 3); column <= edge(std::fmax(from.x, to.x) + 3);
               ++column) {
            const double near =
                distance_to({static_cast<double>(column), static_cast<double>(row)}, from, to);
            const auto ink = static_cast<float>(std::fmin(1, std::fmax(0, thick + 0.5 - near)));
            picture[28 * row + column] = std::fmax(picture[28 * row + column], ink);
          }
        from = to;
      }
    }
    for (int pixel = 0; pixel < 784; ++pixel)
      picture[pixel] = std::fmin(1.0f, picture[pixel] + static_cast<float>(between(0, noise)));
  }
  return training::in_memory({{"x", std::move(x)}, {"label", std::move(label)}}).value();
}

Result<Digits> load_digits(const Settings& settings) {
  if (settings.data.empty()) {
    const std::int64_t count = settings.small ? 2000 : 20'000, checks = settings.small ? 500 : 2000;
    return Digits{draw_digits(count, 2 * settings.seed), draw_digits(checks, 2 * settings.seed + 1),
                  "Data: " + std::to_string(count) +
                      " digits that a generator draws. With --data FOLDER, MNIST's own files."};
  }
  const std::filesystem::path folder(settings.data);
  const auto files = [&](const char* kind) {
    return training::idx_files((folder / (std::string(kind) + "-images-idx3-ubyte")).string(),
                               (folder / (std::string(kind) + "-labels-idx1-ubyte")).string());
  };
  IMPRINT_ASSIGN(const training::DatasetRef training, files("train"));
  IMPRINT_ASSIGN(const training::DatasetRef validation, files("t10k"));
  return Digits{training, validation, "Data: MNIST in " + settings.data};
}

std::string write_sentences(std::int64_t count, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  const auto one_of = [&](const std::vector<const char*>& words) {
    return std::string(words[random() % words.size()]) + " ";
  };
  const std::vector<const char*> sizes = {"small", "large", "quiet", "young"},
                                 animals = {"fox", "hen", "goat", "crow"},
                                 deeds = {"sees", "follows", "carries", "hides"},
                                 things = {"lamp", "apple", "rope", "stone"},
                                 places = {"by the river", "under the bridge", "in the barn"};
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    text += "the " + one_of(sizes) + one_of(animals) + one_of(deeds) + "a " + one_of(things);
    text += one_of(places);
    text.back() = '.';
    text += '\n';
  }
  return text;
}

}  // namespace examples
