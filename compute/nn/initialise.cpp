#include "compute/nn/initialise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "compute/base/hash.h"
#include "compute/base/philox.h"

namespace imprint::nn {
namespace {

// One group's draws: uniform and normal numbers in order.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t name, std::uint32_t group)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        name_(name),
        group_(group) {}

  double uniform() {  // in (0, 1): half a step off the 24-bit grid, so that a logarithm stays finite
    if (used_ == 4) {
      words_ = philox({next_++, name_, group_, 1}, key_);
      used_ = 0;
    }
    return uniform_of(words_[used_++]) + 0x1p-25;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  PhiloxKey key_;
  std::uint32_t name_;
  std::uint32_t group_;
  std::uint32_t next_ = 0;
  std::size_t used_ = 4;
  PhiloxCounter words_{};
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// `count` orthonormal vectors of `length` >= count. Gaussian vectors, orthogonalised twice: once loses digits
// when two are nearly parallel (Giraud, Langou, Rozloznik, The Loss of Orthogonality in the Gram-Schmidt
// Process, 2005).
std::vector<double> orthonormal(std::size_t count, std::size_t length, Draws& draws) {
  std::vector<double> vectors(count * length);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<double> vector = std::span(vectors).subspan(i * length, length);
    double norm = 0;
    while (norm < 1e-6) {
      for (double& element : vector) element = draws.normal();
      for (int pass = 0; pass < 2; ++pass)
        for (std::size_t k = 0; k < i; ++k) {
          const std::span<const double> earlier =
              std::span<const double>(vectors).subspan(k * length, length);
          const double along = dot(vector, earlier);
          for (std::size_t j = 0; j < length; ++j) vector[j] -= along * earlier[j];
        }
      norm = std::sqrt(dot(vector, vector));
    }
    for (double& element : vector) element /= norm;
  }
  return vectors;
}

void fill_orthogonal(double gain, std::int64_t rows, std::int64_t columns, Draws& draws,
                     std::vector<float>& out) {
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
  const bool wide = height <= width;  // orthonormal rows, else orthonormal columns
  const std::vector<double> vectors = orthonormal(std::min(height, width), std::max(height, width), draws);
  for (std::size_t row = 0; row < height; ++row)
    for (std::size_t column = 0; column < width; ++column)
      out.push_back(
          static_cast<float>(gain * (wide ? vectors[row * width + column] : vectors[column * height + row])));
}

double centre_of(const Initialisation& initialisation) {
  switch (initialisation.scheme) {
    case Scheme::ones:
      return 1;
    case Scheme::constant:
      return initialisation.gain;
    case Scheme::uniform:
    case Scheme::normal:
      return initialisation.mean;
    default:
      return 0;
  }
}

// Half-width of a uniform or deviation of a normal distribution.
double spread_of(const Initialisation& initialisation, const InitialValues& wanted) {
  const double fan_in = static_cast<double>(std::max<std::int64_t>(wanted.fan_in, 1));
  const double both = static_cast<double>(std::max<std::int64_t>(wanted.fan_in + wanted.fan_out, 1));
  switch (initialisation.scheme) {
    case Scheme::uniform_fan_in:
      return initialisation.gain / std::sqrt(fan_in);
    case Scheme::kaiming_uniform:
      return initialisation.gain * std::sqrt(3 / fan_in);
    case Scheme::kaiming_normal:
      return initialisation.gain / std::sqrt(fan_in);
    case Scheme::xavier_uniform:
      return initialisation.gain * std::sqrt(6 / both);
    case Scheme::xavier_normal:
      return initialisation.gain * std::sqrt(2 / both);
    case Scheme::uniform:
    case Scheme::normal:
      return initialisation.gain;
    default:
      return 0;
  }
}

double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// A standard normal number between low and high.
double truncated(double low, double high, Draws& draws) {
  if (low > 0) return -truncated(-high, -low, draws);  // digits are lost near 1, not near 0
  const double below = normal_share(low), inside = normal_share(high) - below;
  if (inside > 0.1) {
    for (;;)
      if (const double draw = draws.normal(); draw >= low && draw <= high) return draw;
  }
  // Few normal numbers fall inside: inverts the distribution function by halving.
  const double wanted = below + draws.uniform() * inside;
  double left = std::max(low, -40.0), right = std::min(high, 40.0);
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (left + right);
    (normal_share(middle) < wanted ? left : right) = middle;
  }
  return std::clamp(left, std::min(low, high), std::max(low, high));
}

void fill_sparse(const Initialisation& initialisation, const InitialValues& wanted, Draws& draws,
                 std::vector<float>& out) {
  const auto columns = static_cast<std::size_t>(wanted.columns);
  const double share = std::clamp(initialisation.sparsity, 0.0, 1.0);
  const auto zeros = static_cast<std::size_t>(std::ceil(share * static_cast<double>(columns)));
  for (std::int64_t row = 0; row < wanted.rows; ++row) {
    const std::size_t begin = out.size();
    for (std::size_t k = 0; k < columns; ++k)
      out.push_back(static_cast<float>(initialisation.gain * draws.normal()));
    // Knuth's selection sampling: each element with the chance that leaves `zeros` in all.
    std::size_t left = zeros;
    for (std::size_t k = 0; k < columns && left > 0; ++k) {
      if (draws.uniform() * static_cast<double>(columns - k) >= static_cast<double>(left)) continue;
      out[begin + k] = 0;
      --left;
    }
  }
}

void fill_identity(double gain, const InitialValues& wanted, std::vector<float>& out) {
  for (std::int64_t row = 0; row < wanted.rows; ++row)
    for (std::int64_t column = 0; column < wanted.columns; ++column)
      out.push_back(column == row * wanted.kernel + wanted.centre ? static_cast<float>(gain) : 0.0f);
}

void fill_group(const Initialisation& initialisation, const InitialValues& wanted, Draws& draws,
                std::vector<float>& out) {
  if (initialisation.scheme == Scheme::orthogonal)
    return fill_orthogonal(initialisation.gain, wanted.rows, wanted.columns, draws, out);
  if (initialisation.scheme == Scheme::sparse) return fill_sparse(initialisation, wanted, draws, out);
  if (initialisation.scheme == Scheme::identity) return fill_identity(initialisation.gain, wanted, out);
  if (initialisation.scheme == Scheme::truncated_normal) {
    const double deviation = initialisation.gain, mean = initialisation.mean;
    for (std::int64_t i = 0; i < wanted.rows * wanted.columns; ++i)
      out.push_back(deviation > 0
                        ? static_cast<float>(
                              mean + deviation * truncated((initialisation.low - mean) / deviation,
                                                           (initialisation.high - mean) / deviation, draws))
                        : static_cast<float>(mean));
    return;
  }
  const bool is_normal = initialisation.scheme == Scheme::normal ||
                         initialisation.scheme == Scheme::kaiming_normal ||
                         initialisation.scheme == Scheme::xavier_normal;
  const double centre = centre_of(initialisation);
  const double spread = spread_of(initialisation, wanted);
  for (std::int64_t i = 0; i < wanted.rows * wanted.columns; ++i) {
    const double draw = is_normal ? draws.normal() : 2 * draws.uniform() - 1;
    out.push_back(static_cast<float>(centre + spread * draw));
  }
}

}  // namespace

InitialValues convolution_values(const Shape& weight) {
  InitialValues wanted{.rows = weight.rank() > 0 ? weight[0] : 1};
  for (int axis = 2; axis < weight.rank(); ++axis) {
    wanted.kernel *= weight[axis];
    wanted.centre = wanted.centre * weight[axis] + weight[axis] / 2;
  }
  wanted.columns = (weight.rank() > 1 ? weight[1] : 1) * wanted.kernel;
  wanted.fan_in = wanted.columns;
  wanted.fan_out = wanted.rows * wanted.kernel;
  return wanted;
}

std::vector<float> initial_values(const Initialisation& initialisation, std::string_view name,
                                  const InitialValues& wanted) {
  if (wanted.rows < 0 || wanted.columns < 0) return {};
  const auto name_word = static_cast<std::uint32_t>(Hasher().text(name).digest().low);
  std::vector<float> out;
  for (std::int64_t group = 0; group < std::max<std::int64_t>(wanted.groups, 1); ++group) {
    Draws draws(wanted.seed, name_word, wanted.first_group + static_cast<std::uint32_t>(group));
    fill_group(initialisation, wanted, draws, out);
  }
  return out;
}

}  // namespace imprint::nn
