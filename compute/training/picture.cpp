#include "compute/training/picture.h"

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/training/picture_decode.h"

namespace imprint::training {
namespace {

// Without a PictureOptions::memory_limit. A photograph takes 9 bytes per pixel at most to decode, and its
// file a seventh of a byte or more per pixel.
constexpr std::uint64_t kMemoryPerByte = 64, kLeastMemory = std::uint64_t{48} << 20,
                        kMostMemory = std::uint64_t{256} << 20;

// A stretch of an axis of the source, and where it goes in the result.
struct Span {
  double from = 0, length = 0;
  std::int64_t first = 0, count = 0;  // of the result
};

// The source's elements that make one of the result, with weights of sum 1.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights = {};
};

// A triangle around the centre, as wide as the elements of the coarser side.
std::vector<Taps> triangle_taps(const Span& span, std::int64_t extent) {
  const double scale = span.length / static_cast<double>(span.count), reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < span.count; ++i) {
    const double centre = span.from + (static_cast<double>(i) + 0.5) * scale;
    Taps taps{.first =
                  std::clamp<std::int64_t>(std::llround(std::floor(centre - reach + 0.5)), 0, extent - 1)};
    const std::int64_t last =
        std::clamp<std::int64_t>(std::llround(std::floor(centre + reach + 0.5)), taps.first + 1, extent);
    double sum = 0;
    std::vector<double> weights;
    for (std::int64_t k = taps.first; k < last; ++k) {
      weights.push_back(std::max(0.0, 1 - std::fabs(static_cast<double>(k) + 0.5 - centre) / reach));
      sum += weights.back();
    }
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
    all.push_back(std::move(taps));
  }
  return all;
}

struct Placement {
  Span rows, columns;
};

Placement placement_of(const Pixels& source, std::int64_t height, std::int64_t width, PictureFit fit) {
  const auto h = static_cast<double>(source.height), w = static_cast<double>(source.width);
  Placement place{{0, h, 0, height}, {0, w, 0, width}};
  if (fit == PictureFit::stretch) return place;
  const double down = static_cast<double>(height) / h, across = static_cast<double>(width) / w;
  if (fit == PictureFit::crop) {
    const double scale = std::max(down, across);
    place.rows.length = std::min(h, static_cast<double>(height) / scale);
    place.columns.length = std::min(w, static_cast<double>(width) / scale);
    place.rows.from = (h - place.rows.length) / 2;
    place.columns.from = (w - place.columns.length) / 2;
    return place;
  }
  const double scale = std::min(down, across);
  const auto shrink = [&](Span& span, double extent, std::int64_t wanted) {
    span.count = std::clamp<std::int64_t>(std::llround(extent * scale), 1, wanted);
    span.first = (wanted - span.count) / 2;
  };
  shrink(place.rows, h, height);
  shrink(place.columns, w, width);
  return place;
}

// The result's channel from the source's: a copy, grey on all, or the luma of ITU-R BT.601.
struct Mix {
  float factors[3];
};

std::vector<Mix> channel_mixes(std::int64_t from, std::int64_t to) {
  if (from == 1) return std::vector<Mix>(static_cast<std::size_t>(to), Mix{{1, 0, 0}});
  if (to == 1) return {Mix{{0.299f, 0.587f, 0.114f}}};
  return {Mix{{1, 0, 0}}, Mix{{0, 1, 0}}, Mix{{0, 0, 1}}};
}

HostTensor resampled(const Pixels& source, std::int64_t height, std::int64_t width,
                     const PictureOptions& options) {
  const Placement place = placement_of(source, height, width, options.fit);
  const std::vector<Taps> rows = triangle_taps(place.rows, source.height),
                          columns = triangle_taps(place.columns, source.width);
  const std::vector<Mix> mixes = channel_mixes(source.channels, options.channels);
  HostTensor out{DType::float32, {options.channels, height, width}, {}, {}};
  out.floats.resize(static_cast<std::size_t>(out.shape.element_count()));
  const auto largest = static_cast<float>(source.largest);
  for (std::size_t y = 0; y < rows.size(); ++y)
    for (std::size_t x = 0; x < columns.size(); ++x) {
      float sums[3] = {};
      for (std::size_t j = 0; j < rows[y].weights.size(); ++j) {
        const std::int64_t row = rows[y].first + static_cast<std::int64_t>(j);
        const std::uint8_t* at =
            &source
                 .values[static_cast<std::size_t>((row * source.width + columns[x].first) * source.channels)];
        float line[3] = {};
        for (const float weight : columns[x].weights) {
          for (std::int64_t c = 0; c < source.channels; ++c) line[c] += weight * static_cast<float>(at[c]);
          at += source.channels;
        }
        for (std::int64_t c = 0; c < source.channels; ++c) sums[c] += rows[y].weights[j] * line[c];
      }
      for (std::size_t c = 0; c < mixes.size(); ++c) {
        const float* by = mixes[c].factors;
        const std::int64_t row = place.rows.first + static_cast<std::int64_t>(y),
                           column = place.columns.first + static_cast<std::int64_t>(x);
        out.floats[static_cast<std::size_t>((static_cast<std::int64_t>(c) * height + row) * width + column)] =
            std::min((by[0] * sums[0] + by[1] * sums[1] + by[2] * sums[2]) / largest, 1.0f);
      }
    }
  return out;
}

}  // namespace

Result<HostTensor> decode_picture(std::span<const std::byte> bytes, const std::string& name,
                                  const PictureOptions& options) {
  constexpr std::int64_t kMostSide = 1 << 15;
  const bool keeps = options.height == 0 && options.width == 0;
  const bool fits =
      options.height > 0 && options.width > 0 && options.height <= kMostSide && options.width <= kMostSide;
  if ((!keeps && !fits) || (options.channels != 1 && options.channels != 3))
    return make_error(
        ErrorCode::invalid_argument,
        text("picture: found size ", options.height, " x ", options.width, " and ", options.channels,
             " channels, expected 1 .. ", kMostSide, " for both, or 0 for both, and 1 or 3 channels"));
  const std::uint64_t memory_limit =
      options.memory_limit > 0
          ? options.memory_limit
          : std::min(kMemoryPerByte * std::uint64_t{bytes.size()} + kLeastMemory, kMostMemory);
  IMPRINT_ASSIGN(const Pixels pixels, decode_pixels(bytes, name, memory_limit));
  return resampled(pixels, keeps ? pixels.height : options.height, keeps ? pixels.width : options.width,
                   options);
}

Result<HostTensor> read_picture(const std::string& path, const PictureOptions& options) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes,
                 read_file(path, options.memory_limit > 0 ? options.memory_limit : kMostMemory));
  return decode_picture(bytes, path, options);
}

}  // namespace imprint::training
