#include "compute/tensor/ops/detection.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/box_suppression.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr std::int64_t kMostBoxes = 65536;  // one bit each in shared memory
constexpr std::int64_t kMostSamples = 64;   // of a bin, per axis

struct Corners {
  float low[2], high[2];

  explicit Corners(const float* numbers) {
    for (int i = 0; i < 2; ++i) {
      low[i] = std::min(numbers[i], numbers[2 + i]);
      high[i] = std::max(numbers[i], numbers[2 + i]);
    }
  }
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

float overlap_of(const Corners& a, const Corners& b) {
  float shared = 1;
  for (int i = 0; i < 2; ++i)
    shared *= std::max(0.0f, std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]));
  const float joined = a.area() + b.area() - shared;
  return a.area() > 0 && b.area() > 0 && joined > 0 ? shared / joined : 0;
}

// lists [lists, length, 4] have the best boxes first; the first `counts` are valid. Returns positions
// [lists, most], then -1, and how many there are.
std::vector<Tensor> suppressed(const Tensor& boxes, const Tensor& counts, std::int64_t most, float overlap) {
  const std::int64_t lists = boxes.extent(0), length = boxes.extent(1);
  LibraryPage page;
  page.name = "non_max_suppression";
  page.shader = "pages/suppress";
  page.outputs = {{{lists, most}, DType::int32}, {{lists}, DType::int32}};
  page.groups = lists;
  // Each box against those that are kept.
  page.work = 8 * static_cast<double>(lists * length) * static_cast<double>(std::min(most, length) + 1);
  page.group_size = length > 64 ? 128 : 64;
  page.constants = {{"LENGTH", length},
                    {"WORDS", (length + 31) / 32},
                    {"MOST", most},
                    {"OVERLAP_BITS", std::bit_cast<std::int32_t>(overlap)}};
  page.cpu = [length, most, overlap](std::span<const PageArray> in, std::span<const PageArray> out) {
    const auto width = static_cast<std::size_t>(most);
    for (std::size_t list = 0; list < in[1].ints().size(); ++list) {
      const auto valid = static_cast<std::size_t>(in[1].ints()[list]);
      const auto kept = kept_boxes(
          in[0].floats().subspan(list * static_cast<std::size_t>(length) * 4, valid * 4), most, overlap);
      for (std::size_t i = 0; i < width; ++i)
        out[0].ints()[list * width + i] = i < kept.size() ? static_cast<std::int32_t>(kept[i]) : -1;
      out[1].ints()[list] = static_cast<std::int32_t>(kept.size());
    }
  };
  return run_page(std::move(page), std::vector{boxes, counts});
}

// Where the samples of one axis fall: [regions, bins, samples].
struct RegionSamples {
  Tensor at, inside, own;  // own: bool, whether the region has the sample; inside: and it is near the image
  Tensor count;            // of each region, [regions, 1, 1]
};

// axis 0: rows; 1: columns.
RegionSamples region_samples(const RegionOptions& form, const Tensor& boxes, int axis, std::int64_t extent) {
  const std::int64_t regions = boxes.extent(0), bins = form.bins[axis], most = form.samples;
  const auto corner = [&](int which) {
    return reshape(narrow(boxes, 1, which, 1), {regions, 1, 1}) * form.scale;
  };
  const double offset = form.half_pixel ? 0.5 : 0;
  const Tensor start = corner(1 - axis) - offset;
  Tensor length = corner(3 - axis) - offset - start;
  if (!form.half_pixel) length = maximum(length, 1.0f);
  const Tensor bin = length / static_cast<double>(bins);
  RegionSamples out;
  out.count = form.adaptive ? clamp(ceil(stop_gradient(bin)), 1, static_cast<double>(most))
                            : full({regions, 1, 1}, static_cast<double>(most));
  const Tensor number = cast(iota({1, bins, most}, 1), DType::float32),
               sample = cast(iota({1, bins, most}, 2), DType::float32);
  out.at = start + number * bin + (sample + 0.5f) * bin / out.count;
  out.own = expand(sample < out.count, {regions, bins, most});
  out.inside = logical_and(out.own, logical_and(out.at >= -1.0f, out.at <= static_cast<double>(extent)));
  return out;
}

// The two places of a sample along an axis: their int32 number and weight, shaped to combine with the other
// axis.
struct RegionTaps {
  Tensor place[2], weight[2], inside, own;
};

RegionTaps region_taps(const RegionSamples& samples, std::int64_t extent, const Shape& shape) {
  const auto last = static_cast<double>(extent - 1);
  const Tensor at = clamp(samples.at, 0, last), low = floor(at), rest = at - low;
  const auto shaped = [&](const Tensor& t) { return reshape(t, shape); };
  RegionTaps taps;
  taps.place[0] = shaped(cast(low, DType::int32));
  taps.place[1] = shaped(cast(clamp(low + 1.0f, 0, last), DType::int32));
  taps.weight[0] = shaped(1.0f - rest);
  taps.weight[1] = shaped(rest);
  taps.inside = shaped(samples.inside);
  taps.own = shaped(samples.own);
  return taps;
}

}  // namespace

std::vector<std::int64_t> tensor::kept_boxes(std::span<const float> boxes, std::int64_t most, float overlap) {
  std::vector<std::int64_t> kept;
  std::vector<Corners> corners;
  for (std::size_t i = 0; i < boxes.size() / 4 && static_cast<std::int64_t>(kept.size()) < most; ++i) {
    const Corners box(boxes.data() + i * 4);
    const auto covers = [&](const Corners& other) { return overlap_of(box, other) > overlap; };
    if (std::ranges::any_of(corners, covers)) continue;
    corners.push_back(box);
    kept.push_back(static_cast<std::int64_t>(i));
  }
  return kept;
}

Tensor box_overlap(const Tensor& a, const Tensor& b) {
  for (const Tensor* boxes : {&a, &b}) {
    if (!boxes->ok()) return *boxes;
    if (boxes->rank() < 2 || boxes->extent(boxes->rank() - 1) != 4 || boxes->dtype() != DType::float32)
      return failure(ErrorCode::shape_mismatch, "box_overlap",
                     text("found ", describe(*boxes), ", expected float32 [..., boxes, 4]"));
  }
  const auto side = [](const Tensor& boxes, int axis, bool high, int where) {
    const Tensor first = narrow(boxes, -1, axis, 1), second = narrow(boxes, -1, axis + 2, 1);
    return unsqueeze(squeeze(high ? maximum(first, second) : minimum(first, second), -1), where);
  };
  Tensor shared, area_a, area_b;
  for (int axis = 0; axis < 2; ++axis) {
    const Tensor low_a = side(a, axis, false, -1), high_a = side(a, axis, true, -1),
                 low_b = side(b, axis, false, -2), high_b = side(b, axis, true, -2);
    const Tensor width = clamp_min(minimum(high_a, high_b) - maximum(low_a, low_b), 0);
    shared = axis == 0 ? width : shared * width;
    area_a = axis == 0 ? high_a - low_a : area_a * (high_a - low_a);
    area_b = axis == 0 ? high_b - low_b : area_b * (high_b - low_b);
  }
  const Tensor joined = area_a + area_b - shared;
  const Tensor real = logical_and(logical_and(area_a > 0.0f, area_b > 0.0f), joined > 0.0f);
  return where(real, shared / where(real, joined, 1.0f), 0.0f);
}

KeptBoxes non_max_suppression(const Tensor& boxes, const Tensor& scores, const SuppressionOptions& options) {
  const auto failed = [](const Tensor& error) { return KeptBoxes{error, error}; };
  if (!boxes.ok()) return failed(boxes);
  if (!scores.ok()) return failed(scores);
  Shape expected = scores.shape();
  expected.append(4);
  const std::int64_t length = scores.rank() > 0 ? scores.extent(scores.rank() - 1) : 0;
  if (scores.rank() < 1 || boxes.shape() != expected || boxes.dtype() != DType::float32 ||
      scores.dtype() != DType::float32 || length > kMostBoxes || options.most < 0 ||
      options.most > kMostBoxes)
    return failed(failure(
        ErrorCode::shape_mismatch, "non_max_suppression",
        text("found boxes ", describe(boxes), ", scores ", describe(scores), " and most ", options.most,
             ", expected float32 [..., n, 4], [..., n] and up to ", kMostBoxes, " of both")));
  Shape kept_shape = scores.shape(), count_shape = scores.shape();
  kept_shape[kept_shape.rank() - 1] = options.most;
  count_shape = Shape(scores.shape().extents().first(static_cast<std::size_t>(scores.rank() - 1)));
  if (scores.shape().element_count() == 0 || options.most == 0)
    return {full(kept_shape, -1, DType::int32), zeros(count_shape, DType::int32)};
  const std::int64_t lists = scores.shape().element_count() / length;
  const Tensor order = argsort(stop_gradient(reshape(scores, {lists, length})), 1, true);
  const Tensor sorted = gather(stop_gradient(reshape(boxes, {lists, length, 4})), 1,
                               expand(unsqueeze(order, 2), {lists, length, 4}));
  const Tensor valid = sum(cast(reshape(scores, {lists, length}) > Tensor(options.score), DType::int32), {1});
  const std::vector<Tensor> found =
      suppressed(sorted, valid, options.most, static_cast<float>(options.overlap));
  // Position -1 reads 0.
  const Tensor indices = where(found[0] >= 0, gather(order, 1, found[0]), -1);
  return {reshape(indices, kept_shape), reshape(found[1], count_shape)};
}

Tensor roi_align(const Tensor& x, const Tensor& boxes, const Tensor& images, const RegionOptions& options) {
  for (const Tensor* operand : {&x, &boxes, &images})
    if (!operand->ok()) return *operand;
  const std::int64_t rows = options.bins[0], columns = options.bins[1], samples = options.samples;
  if (x.rank() != 4 || x.dtype() != DType::float32 || x.shape().element_count() == 0 || boxes.rank() != 2 ||
      boxes.extent(1) != 4 || boxes.dtype() != DType::float32 || images.dtype() != DType::int32 ||
      images.shape() != Shape{boxes.extent(0)} || rows < 1 || columns < 1 || samples < 1 ||
      samples > kMostSamples)
    return failure(ErrorCode::shape_mismatch, "roi_align",
                   text("found ", describe(x), ", boxes ", describe(boxes), ", images ", describe(images),
                        ", ", rows, " x ", columns, " bins and ", samples,
                        " samples, expected float32 images, [n, 4], int32 [n], and 1 or more of all, up to ",
                        kMostSamples, " samples"));
  const std::int64_t regions = boxes.extent(0), channels = x.extent(1), height = x.extent(2),
                     width = x.extent(3);
  const RegionSamples down = region_samples(options, boxes, 0, height),
                      across = region_samples(options, boxes, 1, width);
  const RegionTaps y = region_taps(down, height, {regions, 1, rows, samples, 1, 1}),
                   z = region_taps(across, width, {regions, 1, 1, 1, columns, samples});
  const Tensor flat = reshape(x, {x.shape().element_count()});
  const Tensor plane = reshape(images, {regions, 1, 1, 1, 1, 1}) * static_cast<int>(channels) +
                       reshape(iota({channels}, 0), {1, channels, 1, 1, 1, 1});
  const Tensor known = logical_and(images >= 0, images < static_cast<int>(x.extent(0)));
  const Tensor inside =
      logical_and(logical_and(y.inside, z.inside), reshape(known, {regions, 1, 1, 1, 1, 1}));
  Tensor seen;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const Tensor at =
          (plane * static_cast<int>(height) + y.place[i]) * static_cast<int>(width) + z.place[j];
      const Tensor term =
          take(flat, 0, where(inside, at, -1)) * where(inside, y.weight[i] * z.weight[j], 0.0f);
      // As its authors wrote it: the largest weighted neighbour, not the largest of their sums.
      seen = !seen.ok() ? term : options.largest ? maximum(seen, term) : seen + term;
    }
  if (!options.largest) return sum(seen, {3, 5}) / reshape(down.count * across.count, {regions, 1, 1, 1});
  const Tensor lowest = Tensor(std::numeric_limits<float>::lowest());
  return max(where(logical_and(y.own, z.own), seen, lowest), {3, 5});
}

}  // namespace imprint
